#!/usr/bin/env python3
"""Trust files and device configurations, made from docs/trust-file.md and docs/device-configuration.md alone: a second
implementation to check ours against.

  trust.py check DIRECTORY      verifies the versions in a directory, and prints the newest
  trust.py chain < [...]        verifies chains: a line with a JSON array of files, the first one shipped
  trust.py sign < {...}         signs: a line with {"key": hexadecimal, "content": {...}}; "typ" for another document
  trust.py config < {...}       takes device configurations: a line with {"keys", "aud", "app_version", "now",
                                "reached", "document"}; reached is the highest version that was in force, or 0

The last three write a line of JSON for each line that they read.
"""
import base64
import hashlib
import json
import os
import re
import sys
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

LIMIT, TOP = 64 << 10, (1 << 53) - 1
TRUST, CONFIG, TOLERANCE, LEAD = "assent-trust+jwt", "assent-device-config+jwt", 600, 86_400
KINDS = ("user", "implicit", "device")
MEMBERS = {"v", "aud", "version", "iat", "keys", "hosts", "issuer", "identity", "config", "controls", "source"}
CONFIG_MEMBERS = {
    "v", "aud", "app_version", "version", "iat", "exp", "status", "payloadEncryption", "implicit", "stateless",
    "webLinks"}
OPTIONAL = {"exp", "payload", "development"}


class Refused(Exception):
    """It is not a trust file, or not the next one."""


def need(condition, why):
    if not condition:
        raise Refused(why)


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text, count=None):
    need(isinstance(text, str) and re.fullmatch("[A-Za-z0-9_-]*", text) and len(text) % 4 != 1, "not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    need(b64(data) == text and count in (None, len(data)), "not base64url of that length")
    return data


def members(pairs):
    need(len({name for name, _ in pairs}) == len(pairs), "a member twice")
    return dict(pairs)


def strict(data):
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=members, parse_float=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise Refused("not JSON") from error
    plain(value)
    need(isinstance(value, dict), "no object")
    return value


def plain(value):
    """Whole numbers that every reader has, and nothing that is absent."""
    need(value is not None, "null, or a number that is not whole")
    if isinstance(value, int) and not isinstance(value, bool):
        need(0 <= value <= TOP, "a number out of bounds")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        plain(inner)


def has(value, names, optional=()):
    need(isinstance(value, dict) and set(names) <= set(value) <= set(names) | set(optional), "members")


def integer(value, low=0, high=TOP):
    need(isinstance(value, int) and not isinstance(value, bool) and low <= value <= high, "integer")
    return value


def array(value, low, high):
    need(isinstance(value, list) and low <= len(value) <= high, "array")
    return value


def distinct(values):
    need(len(set(values)) == len(values), "the same twice")


def thumbprint(jwk):
    text = json.dumps({name: jwk[name] for name in sorted(jwk)}, separators=(",", ":"))
    return b64(hashlib.sha256(text.encode()).digest())


def public(jwk):
    has(jwk, ("kty", "crv", "x", "y"))
    need(jwk["kty"] == "EC" and jwk["crv"] == "P-256", "key")
    numbers = [int.from_bytes(unb64(jwk[name], 32), "big") for name in "xy"]
    try:
        return ec.EllipticCurvePublicNumbers(*numbers, ec.SECP256R1()).public_key()
    except ValueError as error:
        raise Refused("not on the curve") from error


def url(text):
    need(isinstance(text, str) and re.fullmatch(r"https://[!-~]{1,504}", text), "url")
    need(not re.search(r'[?#@\\"<>^`{|}]', text) and not text.endswith("/"), "url")
    try:
        need(bool(urlsplit(text).hostname), "url")
    except ValueError as error:
        raise Refused("url") from error


def keys(value, low, high):
    for jwk in array(value, low, high):
        public(jwk)
    distinct([thumbprint(jwk) for jwk in value])


def host(value):
    has(value, ("host", "pins", "sends"))
    need(isinstance(value["host"], str) and re.fullmatch(r"[a-z0-9.-]{1,253}(:[1-9][0-9]{0,4})?", value["host"]), "host")
    for pin in array(value["pins"], 2, 16):
        has(pin, ("spki", "notAfter"))
        unb64(pin["spki"], 32)
        integer(pin["notAfter"])
    distinct([pin["spki"] for pin in value["pins"]])
    need(all(kind in KINDS for kind in array(value["sends"], 0, 3)), "sends")
    distinct(value["sends"])


def payload(value):
    has(value, ("suite", "mode", "keys", "origins"))
    need(value["suite"] == "pe1" and value["mode"] in ("server", "always"), "payload")
    for key in array(value["keys"], 2, 8):
        has(key, ("kid", "x", "notAfter"))
        unb64(key["x"], 32)
        integer(key["notAfter"])
        need(key["kid"] == thumbprint({"crv": "X25519", "kty": "OKP", "x": key["x"]}), "kid")
    distinct([key["kid"] for key in value["keys"]])
    for origin in array(value["origins"], 1, 64):
        need(isinstance(origin, str) and re.fullmatch(r"https://[a-z0-9.-]+(:[1-9][0-9]{0,4})?", origin), "origin")
    distinct(value["origins"])


def audience(text):
    need(isinstance(text, str) and re.fullmatch("([A-Za-z0-9._-]{1,64}/){2}[A-Za-z0-9._-]{1,64}", text), "aud")


def content(data):
    value = strict(data)
    has(value, MEMBERS, OPTIONAL)
    need(value["v"] == 1 and value["v"] is not True, "v")
    audience(value["aud"])
    integer(value["version"], 1, 1 << 31)
    integer(value["iat"])
    if "exp" in value:
        need(integer(value["exp"]) > value["iat"], "exp")
    keys(value["keys"], 2, 8)
    for entry in array(value["hosts"], 1, 64):
        host(entry)
    distinct([entry["host"] for entry in value["hosts"]])
    url(value["issuer"])
    unb64(value["identity"], 32)
    if "payload" in value:
        payload(value["payload"])
    keys(value["config"], 1, 4)
    has(value["controls"], ("debugger", "rooted", "preload"))
    need(all(control in ("refuse", "report", "off") for control in value["controls"].values()), "controls")
    for source in array(value["source"], 0, 3):
        url(source)
    distinct(value["source"])
    need(value.get("development", True) is True, "development")
    return value


def told(data):
    value = strict(data)
    has(value, CONFIG_MEMBERS, {"minimumVersion", "pin"})
    need(value["v"] == 1 and value["v"] is not True, "v")
    audience(value["aud"])
    need(isinstance(value["app_version"], str) and re.fullmatch("[!-~]{1,64}", value["app_version"]), "app_version")
    integer(value["version"], 1)
    need(1 <= integer(value["exp"]) - integer(value["iat"]) <= 300, "exp")
    need(value["status"] in ("enabled", "loginOnly", "disabled"), "status")
    minimum = value.get("minimumVersion", "0")
    need(isinstance(minimum, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}){0,7}", minimum), "minimumVersion")
    need(len(minimum) <= 64, "minimumVersion")
    need(value["payloadEncryption"] in ("on", "off"), "payloadEncryption")
    need(isinstance(value["implicit"], bool) and isinstance(value["stateless"], bool), "implicit, stateless")
    for link in array(value["webLinks"], 0, 32):
        need(isinstance(link, str) and re.fullmatch("[ -~]{1,2048}", link), "webLinks")
    distinct(value["webLinks"])
    if "pin" in value:
        pin(value["pin"])
    return value


def pin(rules):
    kinds = {prefix + kind for prefix in ("min", "max") for kind in ("Upper", "Lower", "Alpha", "Numeric", "NonAlpha")}
    has(rules, {"minLength", "maxLength", "sequences", "common", "history", "minAge", "maxAge", "cache"}, kinds)
    need(4 <= integer(rules["minLength"]) <= 64 and integer(rules["maxLength"]) <= 128, "lengths")
    need(rules["minLength"] <= rules["maxLength"], "lengths")
    need(isinstance(rules["sequences"], bool) and isinstance(rules["common"], bool), "sequences, common")
    for name, most in (("history", 24), ("minAge", 3650), ("maxAge", 3650), ("cache", 3600)):
        need(integer(rules[name]) <= most, name)
    need(all(integer(rules[kind]) <= 128 for kind in kinds & rules.keys()), "kinds")


def take(asked):
    """The document that is in force then, by rules 1 to 5 of "Update"."""
    kid, value, signed, signature = parts(asked["document"], CONFIG, told)
    signer = [jwk for jwk in asked["keys"] if thumbprint(jwk) == kid]
    need(signer, "unknown key")
    verify(signer[0], signed, signature)
    need(value["aud"] == asked["aud"] and value["app_version"] == asked["app_version"], "audience")
    need(value["iat"] - TOLERANCE <= asked["now"] < value["exp"] + TOLERANCE, "time")
    need(asked["reached"] <= value["version"] <= asked["now"] + LEAD, "version")
    return value


def parts(text, kind=TRUST, read_content=content):
    need(len(text) <= LIMIT and text.count(".") == 2, "form")
    head, body, signature = text.split(".")
    header = strict(unb64(head))
    need(header.get("alg") == "ES256" and header.get("typ") == kind, "type")
    has(header, ("alg", "typ", "kid"))
    unb64(header["kid"], 32)
    return header["kid"], read_content(unb64(body)), ("%s.%s" % (head, body)).encode(), unb64(signature, 64)


def verify(jwk, signed, signature):
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    try:
        public(jwk).verify(encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))
    except InvalidSignature as error:
        raise Refused("signature") from error


def chain(texts):
    """The content of the newest of these files, of which the first one is shipped."""
    before = None
    for text in texts:
        kid, value, signed, signature = parts(text)
        signer = [jwk for jwk in (before or value)["keys"] if thumbprint(jwk) == kid]
        if before is not None:
            need(signer, "unknown key")
            need(value["aud"] == before["aud"], "audience")
            need(value["version"] == before["version"] + 1, "version")
            need(value["iat"] >= before["iat"], "time")
        if signer:
            verify(signer[0], signed, signature)
        before = value
    need(before is not None, "nothing")
    return before


def sign(secret, value, kind=TRUST):
    key = ec.derive_private_key(int(secret, 16), ec.SECP256R1())
    numbers = key.public_key().public_numbers()
    x, y = (b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    kid = thumbprint({"crv": "P-256", "kty": "EC", "x": x, "y": y})
    header = {"alg": "ES256", "typ": kind, "kid": kid}
    signed = ".".join(b64(json.dumps(part, separators=(",", ":")).encode()) for part in (header, value))
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return "%s.%s" % (signed, b64(r.to_bytes(32, "big") + s.to_bytes(32, "big")))


def read(directory):
    names = sorted(int(name) for name in os.listdir(directory) if re.fullmatch("[1-9][0-9]*", name))
    texts = []
    for name in names:
        with open(os.path.join(directory, str(name)), encoding="ascii") as file:
            texts.append(file.read(LIMIT + 1))
    return texts


def answer(line, command):
    try:
        asked = json.loads(line)
        if command == "sign":
            return {"file": sign(asked["key"], asked["content"], asked.get("typ", TRUST))}
        if command == "config":
            return {"version": take(asked)["version"]}
        return {"version": chain(asked)["version"]}
    except Refused as refusal:
        return {"refused": str(refusal)}


def main(arguments):
    if arguments[:1] == ["check"] and len(arguments) == 2:
        try:
            print(json.dumps(chain(read(arguments[1])), indent=2))
        except Refused as refusal:
            print("refused: %s" % refusal)
            return 1
        return 0
    if arguments in (["chain"], ["sign"], ["config"]):
        for line in sys.stdin:
            print(json.dumps(answer(line, arguments[0]), separators=(",", ":")))
        return 0
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
