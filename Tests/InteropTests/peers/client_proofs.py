"""Looks at what our client says of itself as Authlib's server does, and at signatures as jwcrypto does.

The job: issuer, client_id, jwks, forms (the requests at the token and the revocation endpoint, in order) and proofs (their
DPoP fields).
"""
import json
from types import SimpleNamespace

from authlib.oauth2.rfc6749 import InvalidClientError
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from joserfc.jwk import KeySet
from jwcrypto import jwk, jws

import job as jobs

job = jobs.read()


class Server(JWTBearerClientAssertion):
    """A server that knows one client, and takes each assertion once. Its only name is the issuer."""

    def __init__(self):
        # Assertions are good for a minute, and this script may begin later than that on a busy machine.
        super().__init__(leeway=3600)
        self.spent = set()

    def get_audiences(self):
        return [job["issuer"]]

    def resolve_client_public_key(self, client):
        return KeySet.import_key_set(job["jwks"])

    def validate_jti(self, claims, jti):
        fresh = jti not in self.spent
        self.spent.add(jti)
        return fresh

    def look(self, form):
        known = SimpleNamespace(check_endpoint_auth_method=lambda method, endpoint: True)
        try:
            client = self(lambda name: known if name == job["client_id"] else None, SimpleNamespace(form=form))
        except InvalidClientError as error:
            return error.description
        return "ok" if client is known else "nothing"


def opened(token, key):
    """A token's header and claims, when jwcrypto verifies it."""
    message = jws.JWS()
    message.deserialize(token, key)
    return {"header": message.jose_header, "claims": json.loads(message.payload)}


def proof(token):
    head = jws.JWS()
    head.deserialize(token)
    key = jwk.JWK(**head.jose_header["jwk"])
    assert not key.has_private
    return opened(token, key) | {"thumbprint": key.thumbprint()}


def flipped(form):
    head, claims, signature = form["client_assertion"].split(".")
    other = "A" if signature[8] != "A" else "B"
    return form | {"client_assertion": ".".join([head, claims, signature[:8] + other + signature[9:]])}


server = Server()
keys = [jwk.JWK(**key) for key in job["jwks"]["keys"]]
assertions = [form["client_assertion"] for form in job["forms"]]
jobs.write({
    "accepted": [server.look(form) for form in job["forms"]],
    "repeated": [server.look(form) for form in job["forms"]],
    "flipped": [Server().look(flipped(form)) for form in job["forms"]],
    "types": [form["client_assertion_type"] for form in job["forms"]],
    "assertions": [opened(assertion, keys[0]) for assertion in assertions],
    "private": any(key.has_private for key in keys),
    "thumbprints": [key.thumbprint() for key in keys],
    "proofs": [proof(token) for token in job["proofs"]],
})
