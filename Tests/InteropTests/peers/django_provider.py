"""django_provider.py DIRECTORY PORT REDIRECT_URI: django-oauth-toolkit on 127.0.0.1:PORT, as an OpenID provider.

It has one user, alice, who is signed in in every browser, and one client without a secret, app. It insists on PKCE, signs with
RS256, gives a new refresh token with every refresh, and accepts a redirect URI only as it is registered, apart from the port of a
loopback address. Writes "ready" when it listens.
"""
import os
import sys

directory, port, redirect_uri = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # plain HTTP, on this machine only

from cryptography.hazmat.primitives import serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: E402
from django.conf import settings  # noqa: E402

key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
settings.configure(
    SECRET_KEY=os.urandom(24).hex(), ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__, USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{directory}/provider.sqlite"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "oauth2_provider"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware", f"{__name__}.signed_in"],
    OAUTH2_PROVIDER={
        "OIDC_ENABLED": True, "OIDC_RSA_PRIVATE_KEY": key, "SCOPES": {"openid": "Sign in", "email": "Mail"},
        "OIDC_RP_INITIATED_LOGOUT_ENABLED": True, "OIDC_RP_INITIATED_LOGOUT_ALWAYS_PROMPT": False,
        "OAUTH2_VALIDATOR_CLASS": f"{__name__}.Validator", "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
    })

import django  # noqa: E402

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider.oauth2_validators import OAuth2Validator  # noqa: E402


class Validator(OAuth2Validator):
    oidc_claim_scope = None

    def get_additional_claims(self, request):
        return {"sub": request.user.username, "email": request.user.email}


def signed_in(get_response):
    def answer(request):
        request.user = get_user_model().objects.get(username="alice")
        return get_response(request)
    return answer


urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user("alice", "alice@example.org")
    from oauth2_provider.models import get_application_model
    get_application_model().objects.create(
        client_id="app", client_type="public", authorization_grant_type="authorization-code", algorithm="RS256",
        redirect_uris=redirect_uri, skip_authorization=True, name="App")

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadedWSGIServer(("127.0.0.1", port), Quiet)
    server.set_app(get_wsgi_application())
    print("ready", flush=True)
    server.serve_forever()
