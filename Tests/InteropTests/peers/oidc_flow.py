"""An authorization code client with PKCE in plain requests, and joserfc for the tokens.

The job: issuer, client_id, secret and auth (none, basic, post), redirect_uri, scope, ca, and for the sign-in server, realm,
username, password; introspect: client_id and secret of a resource server.
"""
from urllib.parse import parse_qs, urlencode, urlparse
import secrets

import requests
from joserfc import jwt
from joserfc.jwk import KeySet

import job as jobs

job = jobs.read()
browser = jobs.trusting(requests.Session(), job)
http = jobs.trusting(requests.Session(), job)
seen = {}

metadata = http.get(job["issuer"] + "/.well-known/openid-configuration").json()
assert metadata["issuer"] == job["issuer"]
jobs.sign_in(browser, job)


def authorize(challenge, state, nonce):
    query = dict(
        response_type="code", client_id=job["client_id"], redirect_uri=job["redirect_uri"], scope=job["scope"],
        state=state, nonce=nonce, code_challenge=challenge, code_challenge_method="S256")
    answer = browser.get(metadata["authorization_endpoint"] + "?" + urlencode(query), allow_redirects=False)
    assert answer.status_code == 302, (answer.status_code, answer.text[:300])
    location = answer.headers["Location"]
    assert location.startswith(job["redirect_uri"] + "?"), location
    parameters = {name: values[0] for name, values in parse_qs(urlparse(location).query).items()}
    assert parameters["state"] == state and parameters["iss"] == job["issuer"], parameters
    return parameters["code"]


def post(endpoint, form, client=None):
    client = client or job
    form = dict(form)
    basic = None
    if client["auth"] == "basic":
        basic = (client["client_id"], client["secret"])
    else:
        form["client_id"] = client["client_id"]
        if client["auth"] == "post":
            form["client_secret"] = client["secret"]
    return http.post(metadata[endpoint], data=form, auth=basic)


def exchange(code, verifier):
    form = dict(grant_type="authorization_code", code=code, redirect_uri=job["redirect_uri"], code_verifier=verifier)
    return post("token_endpoint", form)


def refresh(token):
    return post("token_endpoint", dict(grant_type="refresh_token", refresh_token=token))


def userinfo(token):
    headers = {"Authorization": "Bearer " + token} if token else {}
    return http.get(metadata["userinfo_endpoint"], headers=headers)


def introspect(token):
    return post("introspection_endpoint", dict(token=token), job["introspect"]).json()


def fresh():
    verifier, challenge = jobs.pkce()
    return authorize(challenge, secrets.token_urlsafe(16), secrets.token_urlsafe(16)), verifier


# The flow.
verifier, challenge = jobs.pkce()
state, nonce = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
code = authorize(challenge, state, nonce)
answer = exchange(code, verifier)
seen["token"] = jobs.reply(answer)
tokens = answer.json()
seen["token"]["body"] = sorted(tokens)
keys = KeySet.import_key_set(http.get(metadata["jwks_uri"]).json())
algorithms = metadata["id_token_signing_alg_values_supported"]

id_token = jwt.decode(tokens["id_token"], keys, algorithms=algorithms)
jwt.JWTClaimsRegistry(
    iss={"essential": True, "value": job["issuer"]}, aud={"essential": True, "value": job["client_id"]},
    exp={"essential": True}, iat={"essential": True}, sub={"essential": True},
    nonce={"essential": True, "value": nonce}, auth_time={"essential": True},
    at_hash={"essential": True, "value": jobs.at_hash(tokens["access_token"])},
).validate(id_token.claims)
seen["id_token"] = dict(header=id_token.header, claims=sorted(id_token.claims))

access_token = jwt.decode(tokens["access_token"], keys, algorithms=algorithms)
jwt.JWTClaimsRegistry(
    iss={"essential": True, "value": job["issuer"]}, aud={"essential": True}, exp={"essential": True},
    iat={"essential": True}, sub={"essential": True, "value": id_token.claims["sub"]},
    client_id={"essential": True, "value": job["client_id"]}, jti={"essential": True},
).validate(access_token.claims)
seen["access_token"] = dict(header=access_token.header, aud=access_token.claims["aud"])

seen["userinfo"] = jobs.reply(userinfo(tokens["access_token"]))
assert seen["userinfo"]["body"]["sub"] == id_token.claims["sub"]
seen["userinfo_without"] = jobs.reply(userinfo(None))
seen["userinfo_broken"] = jobs.reply(userinfo(tokens["access_token"][:-4] + "AAAA"))
seen["introspection"] = introspect(tokens["access_token"])

# Refresh, and the old one once more.
answer = refresh(tokens["refresh_token"])
seen["refresh"] = jobs.reply(answer)
second = answer.json()
seen["refresh"]["body"] = sorted(second)
seen["rotated"] = second["refresh_token"] != tokens["refresh_token"]
seen["introspection_refresh"] = introspect(second["refresh_token"])["active"]
seen["refresh_reuse"] = jobs.reply(refresh(tokens["refresh_token"]))
seen["after_refresh_reuse"] = dict(
    refresh=refresh(second["refresh_token"]).status_code, userinfo=userinfo(second["access_token"]).status_code,
    introspection=introspect(second["access_token"]))

# Revocation: with the refresh token goes the access token, at once.
tokens = exchange(*fresh()).json()
seen["revocation"] = jobs.reply(
    post("revocation_endpoint", dict(token=tokens["refresh_token"], token_type_hint="refresh_token")))
seen["after_revocation"] = dict(
    refresh=jobs.reply(refresh(tokens["refresh_token"])), userinfo=userinfo(tokens["access_token"]).status_code,
    introspection=introspect(tokens["access_token"]))
seen["revocation_unknown"] = post("revocation_endpoint", dict(token="unknown")).status_code

# A code twice.
again = fresh()
tokens = exchange(*again).json()
seen["code_replay"] = jobs.reply(exchange(*again))
seen["after_code_replay"] = dict(
    refresh=refresh(tokens["refresh_token"]).status_code, userinfo=userinfo(tokens["access_token"]).status_code)

# Another verifier, none, and then the right one: a failed try does not spend the code.
code, verifier = fresh()
seen["wrong_verifier"] = jobs.reply(exchange(code, jobs.pkce()[0]))
seen["no_verifier"] = jobs.reply(
    post("token_endpoint", dict(grant_type="authorization_code", code=code, redirect_uri=job["redirect_uri"])))
seen["right_verifier"] = exchange(code, verifier).status_code
jobs.write(seen)
