"""The same flow by Authlib's client, as its users write it. The job is that of oidc_flow.py."""
from urllib.parse import parse_qs, urlparse
import secrets

import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.jwk import KeySet

import job as jobs

METHODS = {"none": "none", "basic": "client_secret_basic", "post": "client_secret_post"}

job = jobs.read()
browser = jobs.trusting(requests.Session(), job)
metadata = browser.get(job["issuer"] + "/.well-known/openid-configuration").json()
jobs.sign_in(browser, job)
seen = {}


def make(client):
    session = OAuth2Session(
        client["client_id"], client.get("secret"), token_endpoint_auth_method=METHODS[client["auth"]],
        revocation_endpoint_auth_method=METHODS[client["auth"]], scope=job["scope"],
        redirect_uri=job["redirect_uri"], code_challenge_method="S256", leeway=0)
    return jobs.trusting(session, job)


def answer(client, verifier, nonce):
    url, state = client.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce)
    reply = browser.get(url, allow_redirects=False)
    assert reply.status_code == 302, (reply.status_code, reply.text[:300])
    return reply.headers["Location"], state


def fetch(client, location, state, verifier):
    return client.fetch_token(
        metadata["token_endpoint"], authorization_response=location, state=state, code_verifier=verifier)


def refusal(run):
    try:
        run()
    except OAuthError as error:
        return error.error
    return None


client = make(job)
verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
location, state = answer(client, verifier, nonce)
seen["wrong_verifier"] = refusal(lambda: fetch(make(job), location, state, secrets.token_urlsafe(48)))
token = fetch(client, location, state, verifier)
seen["token_type"] = token["token_type"]

keys = KeySet.import_key_set(client.get(metadata["jwks_uri"], withhold_token=True).json())
decoded = jwt.decode(token["id_token"], keys, algorithms=metadata["id_token_signing_alg_values_supported"])
claims = CodeIDToken(
    decoded.claims, decoded.header,
    options={"iss": {"essential": True, "value": job["issuer"]}, "aud": {"essential": True, "value": job["client_id"]}},
    params={"nonce": nonce, "access_token": token["access_token"], "client_id": job["client_id"]})
claims.validate()
seen["subject"] = bool(claims["sub"])
seen["userinfo"] = client.get(metadata["userinfo_endpoint"]).json()["sub"] == claims["sub"]

first = dict(token)
second = client.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"])
seen["rotated"] = second["refresh_token"] != first["refresh_token"]
api = make(job["introspect"])
inspected = api.introspect_token(metadata["introspection_endpoint"], token=second["access_token"]).json()
seen["introspection"] = {name: inspected.get(name) for name in ("active", "client_id", "iss", "token_type")}
seen["revocation"] = client.revoke_token(
    metadata["revocation_endpoint"], token=second["refresh_token"], token_type_hint="refresh_token").status_code
seen["after_revocation"] = api.introspect_token(
    metadata["introspection_endpoint"], token=second["access_token"]).json()
seen["refresh_after_revocation"] = refusal(
    lambda: client.refresh_token(metadata["token_endpoint"], refresh_token=second["refresh_token"]))

# A code twice, then a refresh token twice.
client = make(job)
verifier = secrets.token_urlsafe(48)
location, state = answer(client, verifier, secrets.token_urlsafe(16))
token = fetch(client, location, state, verifier)
seen["code_replay"] = refusal(lambda: fetch(make(job), location, state, verifier))
seen["after_code_replay"] = client.get(metadata["userinfo_endpoint"]).status_code

client = make(job)
verifier = secrets.token_urlsafe(48)
location, state = answer(client, verifier, secrets.token_urlsafe(16))
first = dict(fetch(client, location, state, verifier))
second = client.refresh_token(metadata["token_endpoint"], refresh_token=first["refresh_token"])
seen["refresh_reuse"] = refusal(
    lambda: make(job).refresh_token(metadata["token_endpoint"], refresh_token=first["refresh_token"]))
seen["after_refresh_reuse"] = client.get(metadata["userinfo_endpoint"]).status_code
jobs.write(seen)
