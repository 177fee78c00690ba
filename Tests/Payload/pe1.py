#!/usr/bin/env python3
"""Payload encryption pe1, made from docs/payload-encryption.md alone: a second implementation to check ours against.

  pe1.py vectors                      prints the vectors of docs/payload-encryption-vectors.md
  pe1.py --check FILE                 compares them with that page
  pe1.py open < {...}                 opens a frame: JSON with kind, key, session, bound, frame (hexadecimal)
  pe1.py ask < {...}                  a client's handshake: JSON with key, static (hexadecimal) and its names
  pe1.py answer < {...}               the server's answer: JSON with body, static (private keys), key, session, origin
  pe1.py finish < {...}               what the client makes of it: JSON of ask with answer and origin
  pe1.py call --url … --key …         a client over HTTPS: one call, or a line of its input for each (pe1_call.py)
  pe1.py serve [--fault NAME]         a server on a free port, which answers each call with what it got

From open to finish, each reads a line for each case and writes one.
"""
import base64
import hashlib
import hmac
import json
import re
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

REQUEST, REPLY = 1, 2
HEAD, CHUNK, TAG = 41, 65536, 16


class Refused(Exception):
    """What arrived is not a message of this session, or is damaged."""


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text, count):
    """The bytes of a base64url text; each value has one text."""
    if not isinstance(text, str) or not re.fullmatch("[A-Za-z0-9_-]*", text) or len(text) % 4 == 1:
        raise Refused("not base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(data) != count or b64(data) != text:
        raise Refused("not base64url of %d bytes" % count)
    return data


def frame(label, *fields):
    out = label.encode() + b"\0"
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        out += struct.pack(">I", len(data)) + data
    return out


def sha256(data):
    return hashlib.sha256(data).digest()


def extract(salt, secret):
    return hmac.new(salt, secret, hashlib.sha256).digest()


def expand(key, info):
    return hmac.new(key, info + b"\x01", hashlib.sha256).digest()


def public(private):
    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def agree(private, peer):
    try:
        # The library refuses a result that is all zero.
        shared = private.exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError:
        raise Refused("the key is of small order") from None
    if shared == bytes(32):
        raise Refused("the key is of small order")
    return shared


def key_id(key):
    return b64(sha256(('{"crv":"X25519","kty":"OKP","x":"%s"}' % b64(key)).encode()))


class Keys:
    def __init__(self, role, origin, static, client_key, server_key, client, app, version, platform, session, shared):
        self.session = session
        self.transcript = sha256(
            frame("assent pe1", role, origin, key_id(static), static, client_key, server_key, client or "", app, version,
                  platform, session))
        root = extract(self.transcript, shared)
        self.request, self.reply, self.confirm = (
            expand(root, frame("assent pe1 " + name)) for name in ("request", "reply", "confirm"))


# The handshake

LIMIT, LIFETIME = 4096, 43200


def compact(members):
    return json.dumps(members, separators=(",", ":"))


def members(body, names, optional=()):
    """The members of a strict JSON object."""
    data = body.encode() if isinstance(body, str) else body
    if len(data) > LIMIT:
        raise Refused("too large")

    def once(pairs):
        if len(dict(pairs)) != len(pairs):
            raise Refused("a member is there twice")
        return dict(pairs)

    def no_constant(name):
        raise Refused(name)

    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=once, parse_constant=no_constant)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    if not isinstance(found, dict) or not set(names) <= set(found) <= set(names) | set(optional):
        raise Refused("a member is missing or not known")
    if type(found["v"]) is not int or found["v"] != 1:
        raise Refused("another version")
    return found


def printable(text):
    if not isinstance(text, str) or not re.fullmatch("[ -~]{1,128}", text):
        raise Refused("a text is not one of 1 to 128 printable characters")
    return text


def private(raw):
    return X25519PrivateKey.from_private_bytes(raw)


def handshake_request(key, static, role, app, version, platform, client=None):
    """The body of a client's handshake. `key` is its ephemeral private key, `static` the server's public key."""
    asked = {"v": 1, "kid": key_id(static), "e": b64(public(key)), "role": role, "app": app, "version": version,
             "platform": platform}
    return compact(asked if client is None else {**asked, "client": client})


def proof_claim(body):
    return b64(sha256(body.encode()))


def handshake_answer(body, statics, key, session, origin):
    """The answer's body and the server's keys. `statics` are its private keys, `key` is the ephemeral one."""
    asked = members(body, ("v", "kid", "e", "role", "app", "version", "platform"), ("client",))
    for name in ("app", "version", "platform"):
        printable(asked[name])
    if asked["role"] not in ("app", "device") or (asked["role"] == "device") != ("client" in asked):
        raise Refused("the role is not known, or does not fit the client")
    if "client" in asked:
        printable(asked["client"])
    unb64(asked["kid"], 32)
    client_key = unb64(asked["e"], 32)
    static = next((each for each in statics if key_id(public(each)) == asked["kid"]), None)
    if static is None:
        raise Refused("pe_unknown_key")
    keys = Keys(asked["role"], origin, public(static), client_key, public(key), asked.get("client"), asked["app"],
                asked["version"], asked["platform"], session, agree(static, client_key) + agree(key, client_key))
    reply = {"v": 1, "session": b64(session), "e": b64(public(key)), "confirm": b64(keys.confirm), "expires": LIFETIME}
    return compact(reply), keys


def handshake_finish(answer, key, static, origin, role, app, version, platform, client=None):
    """The client's keys, when the server has confirmed them."""
    got = members(answer, ("v", "session", "e", "confirm", "expires"))
    if type(got["expires"]) is not int or not 1 <= got["expires"] <= LIFETIME:
        raise Refused("expires is not a lifetime")
    server_key, session, confirm = unb64(got["e"], 32), unb64(got["session"], 16), unb64(got["confirm"], 32)
    keys = Keys(role, origin, static, public(key), server_key, client, app, version, platform, session,
                agree(key, static) + agree(key, server_key))
    if not hmac.compare_digest(keys.confirm, confirm):
        raise Refused("not confirmed")
    return keys


def head(kind, session, number, salt):
    return bytes([kind]) + session + struct.pack(">Q", number) + salt


def nonce(index, last):
    return bytes(7) + struct.pack(">I", index) + bytes([last])


def seal(key, top, bound, plain):
    message = AESGCM(expand(key, frame("assent pe1 message", top, bound)))
    out, aad = top, frame("assent pe1 frame", top, bound)
    parts = [plain[i:i + CHUNK] for i in range(0, len(plain), CHUNK)] or [b""]
    for index, part in enumerate(parts):
        last = int(index == len(parts) - 1)
        out += bytes([last]) + struct.pack(">I", len(part) + TAG) + message.encrypt(nonce(index, last), part, aad)
    return out


def open_frame(kind, key, session, bound, data):
    """The number and the plaintext of a frame."""
    if len(data) < HEAD or data[0] != kind or data[1:17] != session or not any(data[17:25]):
        raise Refused("not a frame of this session and direction")
    top = data[:HEAD]
    message = AESGCM(expand(key, frame("assent pe1 message", top, bound)))
    aad, at, index, plain = frame("assent pe1 frame", top, bound), HEAD, 0, b""
    while True:
        if len(data) < at + 5:
            raise Refused("cut off")
        last, length = data[at], struct.unpack(">I", data[at + 1:at + 5])[0]
        if last > 1 or not TAG <= length <= CHUNK + TAG or len(data) < at + 5 + length:
            raise Refused("a chunk's head is wrong")
        try:
            plain += message.decrypt(nonce(index, last), data[at + 5:at + 5 + length], aad)
        except InvalidTag:
            raise Refused("a chunk does not open") from None
        at, index = at + 5 + length, index + 1
        if last:
            if at != len(data):
                raise Refused("bytes behind the last chunk")
            return struct.unpack(">Q", top[17:25])[0], plain


# Binary HTTP (RFC 9292), known length

def varint(value):
    for bits, prefix, size in ((6, 0, 1), (14, 1, 2), (30, 2, 4), (62, 3, 8)):
        if value < 1 << bits:
            return (value | prefix << size * 8 - 2).to_bytes(size, "big")
    raise ValueError(value)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(len(data)) + data


def fields(pairs):
    section = b"".join(text(name) + text(value) for name, value in pairs)
    return text(section)


def request(method, scheme, authority, path, pairs=(), content=b""):
    return (varint(0) + text(method) + text(scheme) + text(authority) + text(path) + fields(pairs) + text(content)
            + fields(()))


def response(status, pairs=(), content=b""):
    return varint(1) + varint(status) + fields(pairs) + text(content) + fields(())


def padded_length(length):
    if length <= 256:
        return 256
    if length <= 65536:
        return 1 << (length - 1).bit_length()
    exponent = length.bit_length() - 1
    mask = (1 << exponent - (exponent.bit_length())) - 1
    return length + mask & ~mask


def pad(data):
    return data + bytes(padded_length(len(data)) - len(data))


# The page of vectors

def vectors():
    fill = lambda byte, count=32: bytes([byte]) * count
    static, client, server = (X25519PrivateKey.from_private_bytes(fill(byte)) for byte in (0x11, 0x22, 0x33))
    session = fill(0x44, 16)
    shared = agree(client, public(static)) + agree(client, public(server))
    keys = Keys("device", "https://api.bank.example", public(static), public(client), public(server), "i-1", "bank",
                "3.2.0", "linux", session, shared)
    yield "S", public(static).hex()
    yield "e_c", public(client).hex()
    yield "e_s", public(server).hex()
    yield "kid", key_id(public(static))
    yield "th", keys.transcript.hex()
    yield "request", keys.request.hex()
    yield "reply", keys.reply.hex()
    yield "confirm", keys.confirm.hex()
    names = ("device", "bank", "3.2.0", "linux", "i-1")
    body = handshake_request(client, public(static), *names)
    yield "handshake", body
    yield "pe", proof_claim(body)
    answer, agreed = handshake_answer(body, [static], server, session, "https://api.bank.example")
    yield "handshake's answer", answer
    assert agreed.confirm == keys.confirm
    assert handshake_finish(answer, client, public(static), "https://api.bank.example", *names).reply == keys.reply
    yield "handshake of an app", handshake_request(client, public(static), "app", "bank", "3.2.0", "linux")
    top = head(REQUEST, session, 1, fill(0x55, 16))
    plain = request("GET", "https", "api.bank.example", "/accounts?x=1", [("accept", "application/json")])
    yield "request content", plain.hex()
    sealed = seal(keys.request, top, b"", pad(plain))
    yield "request frame", sealed.hex()
    yield "SHA-256 of the request frame", sha256(sealed).hex()
    assert open_frame(REQUEST, keys.request, session, b"", sealed) == (1, pad(plain))
    bound = sha256(top)
    plain = response(200, [("content-type", "application/json")], b'{"a":1}')
    yield "reply content", plain.hex()
    sealed = seal(keys.reply, head(REPLY, session, 1, fill(0x66, 16)), bound, pad(plain))
    yield "reply frame", sealed.hex()
    yield "SHA-256 of the reply frame", sha256(sealed).hex()
    assert open_frame(REPLY, keys.reply, session, bound, sealed) == (1, pad(plain))
    sealed = seal(keys.request, head(REQUEST, session, 2, fill(0x55, 16)), b"", fill(0xAA, 65537))
    yield "length of the frame of two chunks", str(len(sealed))
    yield "SHA-256 of the frame of two chunks", sha256(sealed).hex()
    for length in (0, 256, 257, 5000, 65536, 65537, 100000, 16777216):
        yield "padded length of %d" % length, str(padded_length(length))


# What our tests ask

def command_open(ask):
    raw = {name: bytes.fromhex(ask[name]) for name in ("key", "session", "bound", "frame")}
    number, plain = open_frame(ask["kind"], raw["key"], raw["session"], raw["bound"], raw["frame"])
    return {"number": number, "plain": plain.hex()}


def told(keys):
    return {"session": keys.session.hex(), "request": keys.request.hex(), "reply": keys.reply.hex()}


def names_of(ask):
    return {name: ask[name] for name in ("role", "app", "version", "platform", "client") if name in ask}


def command_ask(ask):
    body = handshake_request(private(bytes.fromhex(ask["key"])), bytes.fromhex(ask["static"]), **names_of(ask))
    return {"body": body, "pe": proof_claim(body)}


def command_answer(ask):
    """`body` is in hexadecimal: not every body is a text."""
    answer, keys = handshake_answer(
        bytes.fromhex(ask["body"]), [private(bytes.fromhex(each)) for each in ask["static"]],
        private(bytes.fromhex(ask["key"])), bytes.fromhex(ask["session"]), ask["origin"])
    return {"answer": answer, **told(keys)}


def command_finish(ask):
    keys = handshake_finish(bytes.fromhex(ask["answer"]), private(bytes.fromhex(ask["key"])),
                            bytes.fromhex(ask["static"]), ask["origin"], **names_of(ask))
    return told(keys)


def main(arguments):
    if arguments == ["vectors"]:
        for name, value in vectors():
            print("| %s | `%s` |" % (name, value))
        return 0
    if len(arguments) == 2 and arguments[0] == "--check":
        page = open(arguments[1], encoding="utf-8").read()
        missing = [name for name, value in vectors() if "| %s | `%s` |" % (name, value) not in page]
        for name in missing:
            print("pe1: the page has no row, or another value, for: " + name, file=sys.stderr)
        return 1 if missing else 0
    commands = {"open": command_open, "ask": command_ask, "answer": command_answer, "finish": command_finish}
    if len(arguments) == 1 and arguments[0] in commands:
        for line in sys.stdin:
            try:
                print(json.dumps(commands[arguments[0]](json.loads(line))), flush=True)
            except Refused as error:
                print(json.dumps({"refused": str(error)}), flush=True)
        return 0
    if arguments and arguments[0] in ("call", "serve"):
        import pe1_call
        return getattr(pe1_call, arguments[0])(arguments[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
