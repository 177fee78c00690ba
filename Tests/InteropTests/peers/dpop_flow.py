"""Authlib's client with proofs by joserfc: a flow whose tokens belong to a key, and what a thief may try with them."""
import re
import secrets

import requests
from authlib.integrations.base_client.errors import OAuthError
from joserfc import jwt
from joserfc.jwk import KeySet

import job as jobs
import proofs

METHODS = {"none": "none", "basic": "client_secret_basic", "post": "client_secret_post"}

job = jobs.read()
browser = jobs.trusting(requests.Session(), job)
metadata = browser.get(job["issuer"] + "/.well-known/openid-configuration").json()
jobs.sign_in(browser, job)
seen = {"algorithms": metadata["dpop_signing_alg_values_supported"]}
mine, theirs = proofs.key(), proofs.key()


def make(key, client=job):
    session = proofs.Session(
        client["client_id"], client.get("secret"), token_endpoint_auth_method=METHODS[client["auth"]],
        scope=job["scope"], redirect_uri=job["redirect_uri"], code_challenge_method="S256", leeway=0)
    session.proof_key = key
    return jobs.trusting(session, job)


def code(**more):
    """A code, and how a client redeems it."""
    verifier = secrets.token_urlsafe(48)
    url, state = make(None).create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier, nonce=secrets.token_urlsafe(16), **more)
    reply = browser.get(url, allow_redirects=False)
    assert reply.status_code == 302, (reply.status_code, reply.text[:300])
    location = reply.headers["Location"]
    return lambda client: dict(client.fetch_token(
        metadata["token_endpoint"], authorization_response=location, state=state, code_verifier=verifier))


def refresh(client, token):
    return dict(client.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"]))


def refusal(run, *arguments):
    try:
        run(*arguments)
    except OAuthError as error:
        return error.error
    return None


def call(token, scheme, key, proved=None):
    """What the userinfo endpoint says to this token by this scheme with a proof by this key, for `proved` if given."""
    url = metadata["userinfo_endpoint"]

    def send(nonce):
        fields = {"Authorization": f"{scheme} {token}"}
        if key:
            fields["DPoP"] = proofs.make(key, "GET", url, proved or token, nonce)
        return jobs.trusting(requests.Session(), job).get(url, headers=fields)

    reply = send(None)
    if proofs.wants_nonce(reply):
        reply = send(reply.headers["DPoP-Nonce"])
    error = re.search(r'error="(\w+)"', reply.headers.get("WWW-Authenticate", ""))
    return [reply.status_code, error and error.group(1)]


# The code belongs to the key, and is not spent by those who have another one or none.
redeem = code(dpop_jkt=proofs.thumbprint(mine))
seen["code"] = {"none": refusal(redeem, make(None)), "other": refusal(redeem, make(theirs))}
client = make(mine)
token = redeem(client)
seen["asked"] = client.asked
seen["token_type"] = token["token_type"]
keys = KeySet.import_key_set(browser.get(metadata["jwks_uri"]).json())
access = jwt.decode(token["access_token"], keys, algorithms=["ES256"]).claims
seen["bound"] = access["cnf"] == {"jkt": proofs.thumbprint(mine)}
seen["userinfo"] = client.get(metadata["userinfo_endpoint"]).json()["sub"] == access["sub"]

# The stolen access token.
stolen = token["access_token"]
seen["stolen"] = {
    "bearer": call(stolen, "Bearer", None), "bearer_and_proof": call(stolen, "Bearer", theirs),
    "none": call(stolen, "DPoP", None), "other": call(stolen, "DPoP", theirs),
    "owner": call(stolen, "DPoP", mine), "owner_any_case": call(stolen, "dpop", mine),
    "other_token": call(stolen, "DPoP", mine, proved="x"),
}
nonce = client.nonce
again = proofs.make(mine, "GET", metadata["userinfo_endpoint"], stolen, nonce)
fields = {"Authorization": "DPoP " + stolen, "DPoP": again}
seen["replay"] = [browser.get(metadata["userinfo_endpoint"], headers=fields).status_code for _ in range(2)]

# The refresh token: of a public client it belongs to the key, of a confidential one to the client.
seen["refresh"] = {"none": refusal(refresh, make(None), token), "other": refusal(refresh, make(theirs), token)} \
    if job["auth"] == "none" else {}
second = refresh(client, token)
seen["refreshed"] = second["token_type"]
seen["rotated"] = second["refresh_token"] != token["refresh_token"]
seen["userinfo_refreshed"] = client.get(metadata["userinfo_endpoint"]).json()["sub"] == access["sub"]
if job["auth"] != "none":
    third = refresh(make(theirs), second)
    seen["refresh"]["other"] = {"owner": call(third["access_token"], "DPoP", theirs),
                                "first": call(third["access_token"], "DPoP", mine)}

api = make(None, job["introspect"])
inspected = api.introspect_token(
    metadata["introspection_endpoint"], token=second["access_token"]).json()
seen["introspection"] = {
    "active": inspected["active"], "token_type": inspected.get("token_type"),
    "bound": inspected.get("cnf") == access["cnf"]}
jobs.write(seen)
