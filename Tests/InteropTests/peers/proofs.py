"""Proofs of possession (RFC 9449) by joserfc, and Authlib's client with one in each request: it makes none itself."""
import hashlib
import secrets
import time

from authlib.integrations.requests_client import OAuth2Auth, OAuth2Session
from joserfc import jwt
from joserfc.jwk import ECKey

import job as jobs


def key():
    return ECKey.generate_key("P-256")


def thumbprint(key):
    return key.thumbprint()


def make(key, method, url, token=None, nonce=None):
    claims = {"htm": method, "htu": url.split("?")[0], "iat": int(time.time()), "jti": secrets.token_urlsafe(16)}
    if token:
        claims["ath"] = jobs.b64u(hashlib.sha256(token.encode()).digest())
    if nonce:
        claims["nonce"] = nonce
    header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": key.as_dict(private=False)}
    return jwt.encode(header, claims, key)


def wants_nonce(reply):
    if reply.status_code == 401:
        return 'error="use_dpop_nonce"' in reply.headers.get("WWW-Authenticate", "")
    return reply.status_code == 400 and reply.json().get("error") == "use_dpop_nonce"


def dpop_token(token, uri, headers, body, placement):
    headers["Authorization"] = "DPoP " + token
    return uri, headers, body


class TokenAuth(OAuth2Auth):
    SIGN_METHODS = {"dpop": dpop_token}


class Session(OAuth2Session):
    """Proves each request by `proof_key`, unless that is None, with the newest nonce, and once more when it needs one.
    `asked` counts the replies that wanted a nonce."""
    token_auth_class = TokenAuth
    proof_key, nonce, asked = None, None, 0

    def prove(self, request):
        request.headers.pop("DPoP", None)
        if self.proof_key:
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            request.headers["DPoP"] = make(
                self.proof_key, request.method, request.url, token if scheme == "DPoP" else None, self.nonce)
        return request

    def send(self, request, **options):
        for _ in range(2):
            reply = super().send(self.prove(request), **options)
            self.nonce = reply.headers.get("DPoP-Nonce", self.nonce)
            if not self.proof_key or not wants_nonce(reply):
                break
            self.asked += 1
        return reply
