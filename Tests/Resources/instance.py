"""An installation of an app, written from docs/ alone (registration.md, sender-constraints.md, operating.md): it registers, gets
a token of its own, calls routes of each kind at the gateway, tries what must be refused, remembers a user
(`remembered.py`), and unregisters.

The key, base64url and HTTP are those of the second implementation of transaction signing, `Tests/Signing/tsp`.

The job comes as JSON on standard input, what was seen goes out as JSON on standard output. The job: issuer, ca (the file of an
authority), now (the server's time in seconds), software_id, scope, initial_access_token (good once), resource_server (a form
with the credentials of a client that may introspect), account (a door for users with a session), and routes: `device` and
`several`, which accept installations, `other_app`, which does and has a policy for another app, `user`, `public`, and
`greeting`, which accepts users and remembered ones.

For the user: initial_access_token_of_thief, journey, user, password, session_field (the name of the field that has a
session), signing (the issuer of transaction signing), userinfo, logout, pin, wrong_pin, and max (how many guesses).
"""
import hashlib
import json
import os
import re
import secrets
import sys
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Signing"))

from tsp import jose  # noqa: E402
from tsp.framing import b64, unb64  # noqa: E402
from tsp.transport import HTTPTransport  # noqa: E402

import remembered  # noqa: E402

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
# A name that a client must not be able to give itself.
PRETENDED = {"X-Remote-User": "ana"}


def signed(typ, claims, key, **header):
    return jose.sign(typ, claims, key, header=lambda _: {"alg": "ES256", "typ": typ, **header})


class Reply:
    """What came, and with which fields it was asked for."""

    def __init__(self, sent, status, fields, data):
        self.sent, self.status, self.fields = sent, status, fields
        self.content = json.loads(data) if "json" in fields.get("content-type", "") else {}
        found = re.search(r'error="([a-z_]+)"', self.challenge)
        self.refusal = found.group(1) if found else None

    @property
    def challenge(self):
        return self.fields.get("www-authenticate", "")

    @property
    def wants_nonce(self):
        return "use_dpop_nonce" in (self.refusal, self.content.get("error"))

    @property
    def said(self):
        """The status, the name of the refusal in the door's own form, and the scheme of the challenge with its error."""
        code = self.content.get("code")
        detail = self.content.get("detail")
        named = self.content.get("error")  # OAuth
        if isinstance(code, str):  # the gateway
            named = code
        elif isinstance(detail, dict):  # /json, where `code` is the status
            named = detail.get("reason")
        if "assent_error" in self.content:
            named = f"{named} {self.content['assent_error']}"
        challenge = [self.challenge.split(" ")[0], self.refusal] if self.challenge else []
        return [self.status, named, " ".join(part for part in challenge if part) or None]


class Installation:
    """A key, and the newest nonce of each server. Somebody else's attempts come from an installation of their own."""

    def __init__(self, job):
        self.key = jose.Key()
        self.now = job["now"]
        self.issuer = job["issuer"]
        self.session_field = job["session_field"]
        self.transport = HTTPTransport(job["ca"])
        self.nonces = {}

    def proof(self, method, url, token=None):
        """`token` is what the request presents: an access token, or a session's."""
        claims = {"htm": method, "htu": url.split("?")[0], "iat": self.now, "jti": secrets.token_urlsafe(16)}
        if token:
            claims["ath"] = b64(hashlib.sha256(token.encode()).digest())
        nonce = self.nonces.get(urlsplit(url).netloc)
        if nonce:
            claims["nonce"] = nonce
        return signed("dpop+jwt", claims, self.key, jwk=self.key.jwk)

    def assertion(self, client):
        claims = {"iss": client, "sub": client, "aud": self.issuer, "iat": self.now, "exp": self.now + 60,
                  "jti": secrets.token_urlsafe(16)}
        return {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": signed("JWT", claims, self.key)}

    def bare(self, method, url, fields=None, body=None):
        """Sends what is given, and nothing else."""
        reply = Reply(fields or {}, *self.transport(method, url, fields or {}, body))
        nonce = reply.fields.get("dpop-nonce")
        if nonce:
            self.nonces[urlsplit(url).netloc] = nonce
        return reply

    def send(self, method, url, fields=None, body=None, token=None, session=None):
        """Sends it with a proof, and once more where the server wants a nonce."""
        fields = {**(fields or {}), **({"Authorization": "DPoP " + token} if token else {}),
                  **({self.session_field: session} if session else {})}
        for _ in range(2):
            reply = self.bare(method, url, {**fields, "DPoP": self.proof(method, url, token or session)}, body)
            if not reply.wants_nonce:
                break
        return reply

    def register(self, endpoint, members, initial_token=None, jwk=None):
        fields = {**JSON, **({"Authorization": "Bearer " + initial_token} if initial_token else {})}
        body = {"jwks": {"keys": [jwk or self.key.jwk]}, **members}
        return self.send("POST", endpoint, fields, json.dumps(body).encode())

    def ask_token(self, endpoint, client, scope, assertion=None, proofs=None):
        """With a new assertion and a new proof, unless there are others; `proofs` may be no field at all."""
        form = {"grant_type": "client_credentials", "scope": scope, **(assertion or self.assertion(client))}
        body = urlencode(form).encode()
        if proofs is None:
            return self.send("POST", endpoint, FORM, body)
        return self.bare("POST", endpoint, {**FORM, **proofs}, body)


def changed(token):
    """The token with another signature, with one more scope, and as one that needs no signature."""
    header, claims, signature = token.split(".")
    other = ("B" if signature[20] == "A" else "A").join((signature[:20], signature[21:]))
    more = json.loads(unb64(claims))
    more["scope"] = more.get("scope", "") + " openid"
    unsigned = {**json.loads(unb64(header)), "alg": "none"}
    return {
        "signature": f"{header}.{claims}.{other}",
        "scope": f"{header}.{b64(json.dumps(more).encode())}.{signature}",
        "unsigned": f"{b64(json.dumps(unsigned).encode())}.{claims}.",
    }


def run(job):
    seen, routes, scope = {}, job["routes"], job["scope"]
    mine, thief = Installation(job), Installation(job)
    metadata = mine.bare("GET", job["issuer"] + "/.well-known/openid-configuration").content
    endpoint, tokens = metadata["registration_endpoint"], metadata["token_endpoint"]

    # It registers. What is refused leaves the initial access token as it was.
    initial = job["initial_access_token"]
    members = {"software_id": job["software_id"], "scope": scope, "dpop_bound_access_tokens": True,
               "grant_types": ["client_credentials", remembered.GRANT_TYPE]}
    refused = {
        "without_token": mine.register(endpoint, members).said,
        "without_key": thief.register(endpoint, members, initial, jwk=mine.key.jwk).said,
        "more_than_the_app": mine.register(endpoint, {**members, "scope": scope + " admin"}, initial).said,
    }
    reply = mine.register(endpoint, members, initial)
    assert reply.status == 201, (reply.status, reply.content)
    registered = reply.content
    client, uri = registered["client_id"], registered["registration_client_uri"]
    seen["registered"] = {
        "of_app": client.startswith(job["software_id"] + "~") and len(client) == len(job["software_id"]) + 23,
        "beside": uri == f"{endpoint}/{client}", "key": registered["jwks"] == {"keys": [mine.key.jwk]},
        "scope": registered["scope"], "grants": registered["grant_types"], "secret": "client_secret" in registered,
        "bound": registered["dpop_bound_access_tokens"]}
    refused["used_token"] = thief.register(endpoint, members, initial).said
    seen["not_registered"] = refused

    # It gets a token of its own. A refused proof leaves the assertion as it was; a request without a proof spends it.
    assertion, lost = mine.assertion(client), mine.assertion(client)
    wrong_proof = mine.ask_token(tokens, client, scope, assertion, {"DPoP": mine.proof("POST", endpoint)}).said
    without_proof = mine.ask_token(tokens, client, scope, lost, {}).said
    reply = mine.ask_token(tokens, client, scope, assertion)
    assert reply.status == 200, (reply.status, reply.content)
    token = reply.content["access_token"]
    seen["token"] = {
        "type": reply.content["token_type"], "scope": reply.content["scope"], "expires": reply.content["expires_in"] > 0,
        "refresh": "refresh_token" in reply.content}
    seen["no_token"] = {
        "wrong_proof": wrong_proof, "without_proof": without_proof,
        "assertion_of_that": mine.ask_token(tokens, client, scope, lost).said,
        "other_key": thief.ask_token(tokens, client, scope).said,
        "used_assertion": mine.ask_token(tokens, client, scope, assertion).said,
        "more_than_registered": mine.ask_token(tokens, client, "openid").said}

    def introspected():
        form = urlencode({**job["resource_server"], "token": token}).encode()
        return mine.bare("POST", metadata["introspection_endpoint"], FORM, form).content

    told = introspected()
    seen["introspected"] = {
        "active": told["active"], "client": told.get("sub") == client, "type": told.get("token_type"),
        "key": told.get("cnf") == {"jkt": mine.key.kid}}

    # It calls a route of each kind, and doors that are for users.
    def calls():
        said = {kind: mine.send("GET", routes[kind], PRETENDED, token=token).said
                for kind in ("device", "several", "other_app", "user")}
        said["public"] = mine.bare("GET", routes["public"], PRETENDED).said
        said["userinfo"] = mine.send("GET", metadata["userinfo_endpoint"], token=token).said
        said["account"] = mine.send("GET", job["account"], token=token).said
        return said

    seen["calls"] = calls()

    # What must be refused where its token is taken. The first with the proof that is used again is not.
    route = routes["device"]
    first = mine.send("GET", route, token=token)
    assert first.status == 200, first.said
    elsewhere = {"Authorization": "DPoP " + token, "DPoP": mine.proof("GET", routes["several"], token)}
    seen["refused"] = {
        "nothing": mine.bare("GET", route).said,
        "proof_alone": mine.send("GET", route).said,
        "without_proof": mine.bare("GET", route, {"Authorization": "DPoP " + token}).said,
        "bearer": mine.bare("GET", route, {"Authorization": "Bearer " + token}).said,
        "other_key": thief.send("GET", route, token=token).said,
        "used_proof": mine.bare("GET", route, first.sent).said,
        "other_address": mine.bare("GET", route, elsewhere).said,
        **{name: mine.send("GET", route, token=other).said for name, other in changed(token).items()}}

    # It remembers a user. Who has stolen what it stores is an installation as well.
    other = thief.register(endpoint, members, job["initial_access_token_of_thief"]).content
    user = remembered.Remembered(mine, thief, client, metadata, job)
    seen["remembered"] = user.story(other["client_id"])
    thief.send("DELETE", other["registration_client_uri"], token=other["registration_access_token"])

    # It unregisters, which nobody else can.
    managing = registered["registration_access_token"]
    seen["not_ended"] = {
        "other_key": thief.send("DELETE", uri, token=managing).said,
        "without_proof": mine.bare("DELETE", uri, {"Authorization": "DPoP " + managing}).said,
        "own_token": mine.send("DELETE", uri, token=token).said}
    seen["known"] = mine.send("GET", uri, token=managing).said
    seen["ended"] = mine.send("DELETE", uri, token=managing).said
    seen["afterwards"] = {
        **calls(), "token": mine.ask_token(tokens, client, scope).said,
        "registration": mine.send("GET", uri, token=managing).said}
    seen["introspected_afterwards"] = introspected()
    seen["remembered_afterwards"] = user.afterwards()
    return seen


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
