"""What the scripts have in common: a job comes as JSON on standard input, what was seen goes out as JSON on standard output.

Nothing secret is ever in the arguments, where every user of the machine could read it.
"""
import base64
import hashlib
import json
import secrets
import sys


def read():
    return json.load(sys.stdin)


def write(seen):
    json.dump(seen, sys.stdout, default=str)


def b64u(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def pkce():
    verifier = b64u(secrets.token_bytes(48))
    return verifier, b64u(hashlib.sha256(verifier.encode()).digest())


def trusting(session, job):
    """Trusts the test's authority and nothing that the environment names: REQUESTS_CA_BUNDLE would take its place."""
    session.trust_env = False
    session.verify = job["ca"]
    return session


def sign_in(session, job):
    """Goes through a journey of Assent, whose cookie the session then has."""
    url = f"{job['server']}/json/realms/root/realms/{job['realm']}/authenticate"
    step = session.post(url, json={}).json()
    answers = {"NameCallback": job["username"], "PasswordCallback": job["password"]}
    for callback in step["callbacks"]:
        if callback["type"] in answers:
            callback["input"][0]["value"] = answers[callback["type"]]
    done = session.post(url, json=step)
    assert done.ok and "tokenId" in done.json(), (done.status_code, done.text[:300])


def at_hash(access_token):
    """OpenID Connect Core 3.1.3.6, for algorithms with SHA-256."""
    return b64u(hashlib.sha256(access_token.encode()).digest()[:16])


def reply(response):
    """What a test wants to know of an HTTP reply."""
    try:
        body = response.json()
    except ValueError:
        body = response.text
    return {
        "status": response.status_code,
        "body": body,
        "cache": response.headers.get("Cache-Control"),
        "type": response.headers.get("Content-Type"),
        "challenge": response.headers.get("WWW-Authenticate"),
    }
