"""A program of docs/connect-a-program.md, set up by the very lines of that page: signs a user in at Assent and tells who it is.

The job: page (the file), section (its heading), issuer, secret, host (the program's own, as in the page), ca, and for the
sign-in server, realm, username, password.
"""
import os
import re
import sys
import types
from urllib.parse import parse_qsl, urlparse

import requests

import job as jobs

job = jobs.read()
# The programs make their own connections, and trust what these name.
os.environ["REQUESTS_CA_BUNDLE"] = os.environ["SSL_CERT_FILE"] = job["ca"]
os.environ["NO_PROXY"] = "*"
browser = jobs.trusting(requests.Session(), job)
jobs.sign_in(browser, job)


def settings():
    """The section's block of Python, with this server's name and the client's secret."""
    with open(job["page"]) as page:
        sections = re.split(r"^## ", page.read(), flags=re.M)
    section = next(text for text in sections if text.startswith(job["section"] + "\n"))
    block = re.search(r"^```python\n(.*?)^```$", section, flags=re.M | re.S).group(1)
    block = block.replace("https://am.bank.example/am/oauth2/realms/root/realms/alpha", job["issuer"])
    return block.replace("(the secret)", job["secret"]).replace("(a secret of its own)", "x" * 40)


def answer(url):
    """Where the server sends the browser of a user who is signed in."""
    assert url.startswith(job["issuer"] + "/authorize?"), url
    reply = browser.get(url, allow_redirects=False)
    assert reply.status_code == 302, (reply.status_code, reply.text[:300])
    location = reply.headers["Location"]
    assert "error=" not in location, location
    return location


def path(url):
    parts = urlparse(url)
    return parts.path + "?" + parts.query


def run():
    """The block as a module: Flask asks where that is."""
    module = sys.modules["program"] = types.ModuleType("program")
    module.__file__ = __file__
    exec(compile(settings(), job["section"], "exec"), module.__dict__)
    return module.__dict__


def flask_authlib():
    app = run()["app"]
    client = app.test_client()
    begun = client.get("/login", base_url=job["host"])
    done = client.get(path(answer(begun.headers["Location"])), base_url=job["host"])
    assert done.status_code == 302, done.text[:300]
    with client.session_transaction(base_url=job["host"]) as session:
        return {name: session["user"].get(name) for name in ("email", "name")}


def flask_oidc():
    client = run()["app"].test_client()
    asked = client.get("/", base_url=job["host"])
    begun = client.get(path(asked.headers["Location"]), base_url=job["host"])
    done = client.get(path(answer(begun.headers["Location"])), base_url=job["host"])
    assert done.status_code == 302, done.text[:300]
    return {"email": client.get("/", base_url=job["host"]).text}


def alone():
    names = run()
    location = answer(names["begin"]())
    try:
        names["callback"](location.replace("state=", "state=x"))
    except Exception as error:
        assert "State" in type(error).__name__, repr(error)
    else:
        raise AssertionError("another state was taken")
    return {"name": names["callback"](location).get("name")}


def msal():
    names = run()
    location = answer(names["begin"]())
    result = names["callback"](dict(parse_qsl(urlparse(location).query)))
    assert "access_token" in result, result
    return {"scope": result["scope"], "issuer": result["id_token_claims"]["iss"] == job["issuer"]}


def stolen(token):
    """What the userinfo endpoint says to a token that comes as a bearer token."""
    fields = {"Authorization": "Bearer " + token}
    reply = jobs.trusting(requests.Session(), job).get(job["issuer"] + "/userinfo", headers=fields)
    return [reply.status_code, reply.json().get("error")]


def authlib_dpop():
    names = run()
    user = names["callback"](answer(names["begin"]()))
    first = dict(names["client"].token)
    again = names["refresh"]()
    return {
        "name": user["name"], "again": again["name"], "type": first["token_type"],
        "new": names["client"].token["access_token"] != first["access_token"], "stolen": stolen(first["access_token"])}


def idpyoidc():
    names = run()
    parameters = dict(parse_qsl(urlparse(answer(names["begin"]())).query))
    state = parameters["state"]
    user = names["callback"](parameters)
    first = names["handler"].get_session_information(state)
    first = {name: first[name] for name in ("access_token", "token_type")}
    again = names["refresh"](state)
    second = names["handler"].get_session_information(state)["access_token"]
    return {
        "name": user["name"], "again": again["name"], "type": first["token_type"],
        "new": second != first["access_token"], "stolen": stolen(first["access_token"])}


def django(applications, urls, middleware=()):
    """Django with the page's settings and what they need around them."""
    from django.conf import settings as configured

    module = types.ModuleType("routes")
    sys.modules["routes"] = module
    mine = {name: value for name, value in run().items() if name.isupper()}
    base = dict(
        SECRET_KEY="x" * 50, ROOT_URLCONF="routes", ALLOWED_HOSTS=["*"], USE_TZ=True, LOGIN_REDIRECT_URL="/",
        LOGOUT_REDIRECT_URL="/",
        # Their own limits are 5 seconds, which a slow machine meets.
        SOCIAL_AUTH_REQUESTS_TIMEOUT=3600, SOCIALACCOUNT_REQUESTS_TIMEOUT=3600, OIDC_TIMEOUT=3600,
        EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend", SITE_ID=1,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        INSTALLED_APPS=[
            "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.messages",
        ] + applications,
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ] + list(middleware),
        TEMPLATES=[{
            "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
            "OPTIONS": {"context_processors": [
                "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages"]}}])
    base.update(mine)
    configured.configure(**base)
    import django as package

    package.setup()
    from django.core.management import call_command
    from django.http import HttpResponse
    from django.urls import include
    from django.urls import path as route

    module.urlpatterns = [route("", lambda request: HttpResponse(request.user.get_username()))] + [
        route(prefix, include(name)) for prefix, name in urls]
    call_command("migrate", verbosity=0)
    from django.test import Client

    return Client(HTTP_HOST=urlparse(job["host"]).netloc, HTTP_X_FORWARDED_PROTO="https")


def signed_in(client, begun):
    assert begun.status_code == 302, (begun.status_code, begun.content[:300])
    done = client.get(path(answer(begun["Location"])))
    assert done.status_code == 302, (done.status_code, done.content[:600])
    from django.contrib.auth.models import User

    user = User.objects.get()
    assert client.get("/").content.decode() == user.get_username()
    return {"email": user.email}


def allauth():
    client = django(
        ["allauth", "allauth.account", "allauth.socialaccount", "allauth.socialaccount.providers.openid_connect"],
        [("accounts/", "allauth.urls")], ["allauth.account.middleware.AccountMiddleware"])
    return signed_in(client, client.post("/accounts/oidc/assent/login/"))


def social():
    client = django(["social_django"], [("", "social_django.urls")])
    return signed_in(client, client.post("/login/oidc/"))


def mozilla():
    client = django(["mozilla_django_oidc"], [("oidc/", "mozilla_django_oidc.urls")])
    return signed_in(client, client.get("/oidc/authenticate/"))


def pyjwt():
    """Checks tokens that the test has got; the job has them."""
    import jwt

    check = run()["check"]
    seen = {"scope": check(job["tokens"]["access"])["scope"]}
    for name in ("id", "elsewhere", "broken"):
        try:
            check(job["tokens"][name])
            seen[name] = "accepted"
        except jwt.InvalidTokenError as error:
            seen[name] = type(error).__name__
    return seen


jobs.write({
    "Flask and Authlib": flask_authlib, "Flask-OIDC": flask_oidc, "requests-oauthlib": alone, "Authlib alone": alone,
    "django-allauth": allauth, "social-auth-app-django": social, "mozilla-django-oidc": mozilla,
    "MSAL for Python": msal, "An API that checks tokens with PyJWT": pyjwt,
    "Authlib with DPoP": authlib_dpop, "idpyoidc with DPoP": idpyoidc,
}[job["section"]]())
