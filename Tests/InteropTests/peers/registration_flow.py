"""An installation of an app registers by Authlib's client (RFC 7591), changes and ends what it has registered (RFC 7592), and
signs a user in with its key in between.

Authlib has no client of its own for registration: its OAuth2Session sends the requests, and its classes for the metadata
check what is sent and answered. Proofs (RFC 9449) and the software statement are joserfc's.

The job: issuer, software_id, publisher (issuer, and a private key as JWK), redirect_uri, scope, ca, and for the sign-in
server, realm, username, password.
"""
import secrets
import time

import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc7591.claims import ClientMetadataClaims
from authlib.oidc.registration import ClientMetadataClaims as OpenIDMetadataClaims
from joserfc import jwt
from joserfc.jwk import ECKey

import job as jobs
import proofs

job = jobs.read()
browser = jobs.trusting(requests.Session(), job)
metadata = browser.get(job["issuer"] + "/.well-known/openid-configuration").json()
jobs.sign_in(browser, job)
endpoint = metadata["registration_endpoint"]
mine, theirs, newer = proofs.key(), proofs.key(), proofs.key()
publisher = ECKey.import_key(job["publisher"]["key"])
seen = {}


def checked(members):
    """The members, if Authlib finds nothing wrong with them."""
    for claims in (ClientMetadataClaims, OpenIDMetadataClaims):
        claims(dict(members), {}).validate()
    return members


def statement(software=job["software_id"]):
    claims = {"iss": job["publisher"]["issuer"], "software_id": software, "iat": int(time.time())}
    return jwt.encode({"alg": "ES256", "typ": "JWT"}, claims, publisher)


def described(key, **more):
    return checked({
        "software_id": job["software_id"], "jwks": {"keys": [key.as_dict(private=False)]},
        "token_endpoint_auth_method": "private_key_jwt", "software_statement": statement(), **more})


def session(key, *client, **options):
    made = proofs.Session(*client, leeway=0, **options)
    made.proof_key = key
    return jobs.trusting(made, job)


def register(key, members):
    return session(key).post(endpoint, json=members, withhold_token=True)


def answer(reply):
    """The status, and the error where there is one."""
    return [reply.status_code, reply.json().get("error") if reply.status_code >= 400 else None]


def instance(key):
    """The client that was registered, which authenticates by `key` and has tokens that belong to it."""
    made = session(
        key, registered["client_id"], key, token_endpoint_auth_method="private_key_jwt", scope=job["scope"],
        redirect_uri=job["redirect_uri"], code_challenge_method="S256")
    made.register_client_auth_method(PrivateKeyJWT(metadata["token_endpoint"], alg="ES256"))
    return made


def refresh(client, token):
    try:
        return dict(client.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"]))
    except OAuthError as error:
        return {"error": error.error}


# What is refused, and the same as it must be.
seen["other_proof"] = answer(register(theirs, described(mine)))
seen["no_proof"] = answer(register(None, described(mine)))
seen["no_statement"] = answer(register(mine, {k: v for k, v in described(mine).items() if k != "software_statement"}))
seen["other_app"] = answer(register(mine, {**described(mine), "software_statement": statement("other")}))
seen["foreign_redirect"] = answer(register(mine, described(mine, redirect_uris=["https://thief.example/cb"])))
reply = register(mine, described(mine, client_name="Ana's laptop"))
assert reply.status_code == 201, (reply.status_code, reply.text[:300])
registered = checked(reply.json())
uri, token = registered["registration_client_uri"], registered["registration_access_token"]
seen["registered"] = {
    "of_app": registered["client_id"].startswith(job["software_id"] + "~"), "name": registered["client_name"],
    "method": registered["token_endpoint_auth_method"], "secret": "client_secret" in registered,
    "key": registered["jwks"]["keys"][0]["x"] == mine.as_dict(private=False)["x"],
    "beside": uri == endpoint + "/" + registered["client_id"], "stored": "no-store" not in reply.headers.get("Cache-Control", "")}

# It signs a user in.
client = instance(mine)
verifier = secrets.token_urlsafe(48)
url, state = client.create_authorization_url(
    metadata["authorization_endpoint"], code_verifier=verifier, dpop_jkt=proofs.thumbprint(mine))
back = browser.get(url, allow_redirects=False)
assert back.status_code == 302, (back.status_code, back.text[:300])
tokens = dict(client.fetch_token(
    metadata["token_endpoint"], authorization_response=back.headers["Location"], state=state, code_verifier=verifier))
seen["tokens"] = {
    "type": tokens["token_type"], "name": client.get(metadata["userinfo_endpoint"]).json()["name"]}
tokens = refresh(client, tokens)
seen["refreshed"] = tokens.get("token_type")

# The registration token is worth nothing without the key.
owner = session(mine, token={"access_token": token, "token_type": "DPoP"})
thief = session(theirs, token={"access_token": token, "token_type": "DPoP"})
bearer = jobs.trusting(requests.Session(), job)
seen["stolen"] = {
    "other_key": answer(thief.get(uri)), "bearer": answer(bearer.get(uri, headers={"Authorization": "Bearer " + token})),
    "ends": answer(thief.delete(uri)), "other_token": answer(
        session(mine, token={"access_token": "x" * 43, "token_type": "DPoP"}).get(uri))}
read = owner.get(uri)
seen["read"] = [read.status_code, checked(read.json())["client_id"] == registered["client_id"]]

# Another name, then another key, which proves itself beside the one that is registered.
members = {"client_id": registered["client_id"]}
renamed = owner.put(uri, json=described(mine, client_name="Ana's desk", **members))
seen["renamed"] = [renamed.status_code, renamed.json().get("client_name")]
seen["unproved_key"] = answer(owner.put(uri, json=described(newer, **members)))
proof = {"DPoP-New-Key": proofs.make(newer, "PUT", uri, token, owner.nonce)}
seen["new_key"] = answer(owner.put(uri, json=described(newer, **members), headers=proof))
seen["old_key"] = {"reads": answer(owner.get(uri)), "refreshes": refresh(client, tokens).get("error")}
client = instance(newer)
tokens = refresh(client, tokens)
seen["newer_key"] = tokens.get("token_type")

# The end.
owner = session(newer, token={"access_token": token, "token_type": "DPoP"})
seen["ended"] = owner.delete(uri).status_code
seen["after"] = {
    "read": answer(owner.get(uri)), "refresh": refresh(client, tokens).get("error"),
    "userinfo": client.get(metadata["userinfo_endpoint"]).status_code}
jobs.write(seen)
