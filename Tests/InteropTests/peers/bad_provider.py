"""bad_provider.py PORT: oidc-provider-mock on 127.0.0.1:PORT, a provider that checks little. Writes "ready" when it listens.

It ignores PKCE, has neither revocation nor introspection, answers a refresh without a new refresh token, and leaves tokens valid
when a code comes twice. Any client id will do; some make it worse:
empty-audience gets ID tokens with "aud": [], foreign-hash gets ID tokens whose at_hash is another access token's.
"""
import os
import sys

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # plain HTTP, on this machine only

import werkzeug.serving  # noqa: E402
import oidc_provider_mock._app as provider  # noqa: E402


class WorseOpenIDCode(provider.OpenIDCode):
    def get_compatible_claims(self, request):
        claims = super().get_compatible_claims(request)
        if request.client.get_client_id() == "empty-audience":
            claims["aud"] = []
        return claims

    def encode_id_token(self, token, request):
        if request.client.get_client_id() == "foreign-hash":
            token = {**token, "access_token": "another"}
        return super().encode_id_token(token, request)


provider.OpenIDCode = WorseOpenIDCode
# The SDK's clients have no secret.
for grant in (provider.AuthorizationCodeGrant, provider.RefreshTokenGrant):
    grant.TOKEN_ENDPOINT_AUTH_METHODS = ["none", "client_secret_basic", "client_secret_post"]
server = werkzeug.serving.make_server("127.0.0.1", int(sys.argv[1]), provider.app(), threaded=True)
print("ready", flush=True)
server.serve_forever()
