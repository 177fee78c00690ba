#!/usr/bin/env python3
"""Computes every example of docs/transaction-signing.md, from fixed keys and random values.

    vectors.py          writes docs/transaction-signing-vectors.md, and the examples into docs/transaction-signing.md
    vectors.py --check  exits with 1 if one of the two pages has other bytes than those that are computed

It needs the package `cryptography`. Its big-integer arithmetic is not constant-time: use none of it with real secrets.
"""
import base64
import hashlib
import hmac
import json
import os
import re
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "transaction-signing.md")
VECTORS = os.path.join(ROOT, "docs", "transaction-signing-vectors.md")

# --- bytes -----------------------------------------------------------------------------------------------------------


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert b64(data) == text
    return data


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def field(value):
    if isinstance(value, int):
        return value.to_bytes(8, "big")
    return value.encode() if isinstance(value, str) else value


def frame(label, *fields):
    """label, 00, and each field with its length in four bytes."""
    data = label.encode() + b"\0"
    for value in map(field, fields):
        data += len(value).to_bytes(4, "big") + value
    return data


def digest(label, *fields):
    return hashlib.sha256(frame(label, *fields)).digest()


def optional(value):
    return b"\0" if value is None else b"\1" + field(value)


def fixed(name, length=16):
    """What would be random, for the examples."""
    return hashlib.sha512(b"example " + name.encode()).digest()[:length]


# --- JOSE ------------------------------------------------------------------------------------------------------------

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class Key:
    """A P-256 key pair of the examples."""

    def __init__(self, name):
        self.name = name
        self.scalar = int.from_bytes(fixed("key " + name, 64), "big") % (P256_ORDER - 1) + 1
        self.private = ec.derive_private_key(self.scalar, ec.SECP256R1())
        numbers = self.private.public_key().public_numbers()
        x, y = (b64(coordinate.to_bytes(32, "big")) for coordinate in (numbers.x, numbers.y))
        self.jwk = {"crv": "P-256", "kty": "EC", "x": x, "y": y}
        self.kid = b64(hashlib.sha256(compact(self.jwk)).digest())

    def sign(self, typ, payload):
        """A compact JWS; ECDSA with the nonces of RFC 6979, so that the examples stay the same."""
        header = {"alg": "ES256", "typ": typ, "kid": self.kid}
        signed = b64(compact(header)) + "." + b64(compact(payload))
        der = self.private.sign(signed.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(der)
        return signed + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))

    def verify(self, jws, typ):
        header, payload, signature = jws.split(".")
        assert json.loads(unb64(header)) == {"alg": "ES256", "typ": typ, "kid": self.kid}
        raw = unb64(signature)
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        self.private.public_key().verify(der, (header + "." + payload).encode(), ec.ECDSA(hashes.SHA256()))
        return json.loads(unb64(payload))


def concat_kdf(shared, apu, apv):
    """RFC 7518 §4.6.2 for A256GCM: one round."""
    data = (1).to_bytes(4, "big") + shared
    for value in (b"A256GCM", apu, apv):
        data += len(value).to_bytes(4, "big") + value
    return hashlib.sha256(data + (256).to_bytes(4, "big")).digest()


def encrypt(plaintext, recipient, sender, receiver, cty, ephemeral, iv):
    apu, apv = sender.encode(), receiver.encode()
    header = b64(compact({
        "alg": "ECDH-ES", "enc": "A256GCM", "cty": cty, "kid": recipient.kid, "apu": b64(apu), "apv": b64(apv),
        "epk": ephemeral.jwk}))
    shared = ephemeral.private.exchange(ec.ECDH(), recipient.private.public_key())
    sealed = AESGCM(concat_kdf(shared, apu, apv)).encrypt(iv, plaintext, header.encode())
    return ".".join([header, "", b64(iv), b64(sealed[:-16]), b64(sealed[-16:])])


def decrypt(jwe, recipient):
    header, empty, iv, ciphertext, tag = jwe.split(".")
    assert empty == ""
    members = json.loads(unb64(header))
    x, y = (int.from_bytes(unb64(members["epk"][name]), "big") for name in "xy")
    peer = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    key = concat_kdf(recipient.private.exchange(ec.ECDH(), peer), unb64(members["apu"]), unb64(members["apv"]))
    return AESGCM(key).decrypt(unb64(iv), unb64(ciphertext) + unb64(tag), header.encode())


# --- VOPRF (RFC 9497, P384-SHA384) and hashing to P-384 (RFC 9380) ---------------------------------------------------

P = 2**384 - 2**128 - 2**96 + 2**32 - 1
A = P - 3
B = 0xB3312FA7E23EE7E4988E056BE3F82D19181D9C6EFE8141120314088F5013875AC656398D8A2ED19D2A85C8EDD3EC2AEF
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973
G = (0xAA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7,
     0x3617DE4A96262C6F5D9E98BF9292DC29F8F41DBD289A147CE9DA3113B5F0B8C00A60B1CE1D7E819D7A431D7C90EA0E5F)
CONTEXT = b"OPRFV1-\x01-P384-SHA384"


def add(p, q):
    if p is None or q is None:
        return p or q
    if p[0] == q[0]:
        if (p[1] + q[1]) % P == 0:
            return None
        slope = (3 * p[0] * p[0] + A) * pow(2 * p[1], -1, P) % P
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, P) % P
    x = (slope * slope - p[0] - q[0]) % P
    return x, (slope * (p[0] - x) - p[1]) % P


def multiply(k, p):
    result = None
    for bit in bin(k)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, p)
    return result


def encode_point(p):
    return bytes([2 + (p[1] & 1)]) + p[0].to_bytes(48, "big")


def decode_point(data):
    assert len(data) == 49 and data[0] in (2, 3)
    x = int.from_bytes(data[1:], "big")
    square = (x * x * x + A * x + B) % P
    y = pow(square, (P + 1) // 4, P)
    assert x < P and y * y % P == square
    return x, y if y & 1 == data[0] & 1 else P - y


def expand_message(message, dst, length):
    dst += bytes([len(dst)])
    first = hashlib.sha384(bytes(128) + message + length.to_bytes(2, "big") + b"\0" + dst).digest()
    block = hashlib.sha384(first + b"\1" + dst).digest()
    data = block
    for i in range(2, -(-length // 48) + 1):
        block = hashlib.sha384(bytes(a ^ b for a, b in zip(first, block)) + bytes([i]) + dst).digest()
        data += block
    return data[:length]


def map_to_curve(u):
    """Simplified SWU with Z = -12 (RFC 9380 §6.6.2, §8.3)."""
    z = P - 12
    denominator = (z * z * pow(u, 4, P) + z * u * u) % P
    if denominator == 0:
        x = B * pow(z * A, -1, P) % P
    else:
        x = (-B * pow(A, -1, P)) * (1 + pow(denominator, -1, P)) % P
    square = (x * x * x + A * x + B) % P
    if pow(square, (P - 1) // 2, P) not in (0, 1):
        x = z * u * u * x % P
        square = (x * x * x + A * x + B) % P
    y = pow(square, (P + 1) // 4, P)
    return x, y if y & 1 == u & 1 else P - y


def hash_to_group(message):
    data = expand_message(message, b"HashToGroup-" + CONTEXT, 144)
    u = [int.from_bytes(data[i:i + 72], "big") % P for i in (0, 72)]
    return add(map_to_curve(u[0]), map_to_curve(u[1]))


def hash_to_scalar(message):
    return int.from_bytes(expand_message(message, b"HashToScalar-" + CONTEXT, 72), "big") % N


def counted(data):
    return len(data).to_bytes(2, "big") + data


def composites(public, blinded, evaluated):
    seed = hashlib.sha384(counted(encode_point(public)) + counted(b"Seed-" + CONTEXT)).digest()
    d = hash_to_scalar(counted(seed) + bytes(2) + counted(encode_point(blinded)) + counted(encode_point(evaluated))
                       + b"Composite")
    return multiply(d, blinded), multiply(d, evaluated)


def challenge(public, m, z, t2, t3):
    return hash_to_scalar(b"".join(counted(encode_point(p)) for p in (public, m, z, t2, t3)) + b"Challenge")


def evaluate(k, blinded, r):
    """BlindEvaluate: the evaluated element and the proof c ‖ s."""
    public, evaluated = multiply(k, G), multiply(k, blinded)
    m, z = composites(public, blinded, evaluated)
    c = challenge(public, m, z, multiply(r, G), multiply(r, m))
    return evaluated, c.to_bytes(48, "big") + ((r - c * k) % N).to_bytes(48, "big")


def finalize(message, blind, public, blinded, evaluated, proof):
    c, s = int.from_bytes(proof[:48], "big"), int.from_bytes(proof[48:], "big")
    assert len(proof) == 96 and 0 < c < N and 0 < s < N
    m, z = composites(public, blinded, evaluated)
    t2, t3 = add(multiply(s, G), multiply(c, public)), add(multiply(s, m), multiply(c, z))
    assert t2 is not None and t3 is not None and c == challenge(public, m, z, t2, t3)
    unblinded = multiply(pow(blind, -1, N), evaluated)
    return hashlib.sha384(counted(message) + counted(encode_point(unblinded)) + b"Finalize").digest()


def check_rfc9497():
    """RFC 9497 A.4.2, test vector 1."""
    number = lambda text: int(text, 16)
    k = number("051646b9e6e7a71ae27c1e1d0b87b4381db6d3595eeeb1adb41579adbf992f4278f9016eafc944edaa2b43183581779d")
    blind = number("504650f53df8f16f6861633388936ea23338fa65ec36e0290022b48eb562889d89dbfa691d1cde91517fa222ed7ad364")
    r = number("803d955f0e073a04aa5d92b3fb739f56f9db001266677f62c095021db018cd8cbb55941d4073698ce45c405d1348b7b1")
    blinded = multiply(blind, hash_to_group(b"\0"))
    evaluated, proof = evaluate(k, blinded, r)
    assert encode_point(blinded).hex().startswith("02d338c05cbecb82de13d6700f09cb61190543a7")
    assert proof.hex().startswith("bfc6cf3859127f5fe25548859856d6b7fa1c7459") and proof.hex().endswith("f043e3b7ca2e")
    output = finalize(b"\0", blind, multiply(k, G), blinded, decode_point(encode_point(evaluated)), proof)
    assert output.hex() == ("3333230886b562ffb8329a8be08fea8025755372817ec969"
                            "d114d1203d026b4a622beab60220bf19078bca35a529b35c")


# --- the typed code --------------------------------------------------------------------------------------------------


def crc16(data):
    """CRC-16/ARC: of "123456789" it is BB3D."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def typed_code(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, "big")).decode().rstrip("=")


# --- the examples ----------------------------------------------------------------------------------------------------

T = 1_790_000_000
ISS = "https://am.bank.example/am/signing/realms/root/realms/alpha"
SUB = "7d1f3c52-5a0e-4b57-9d0e-0c7f3c1f9a11"

identity, successor, online, encryption = map(Key, ["identity", "successor", "online", "encryption"])
device, transport, sign, auth = map(Key, ["device", "transport", "sign", "auth"])

values = {}     # named bytes and texts, shown in the vectors page
messages = {}   # name: (signer's name, compact JWS)
payloads = {}   # name: JSON as the first page shows it


def say(name, value):
    values[name] = value
    return value


def message(name, key, payload):
    typ = f"tsp-{name.split('.')[0]}+jwt"
    jws = key.sign(typ, payload)
    assert key.verify(jws, typ) == payload
    messages[name] = (key.name, jws)
    payloads[name] = payload
    return jws


def sealed(name, plaintext, recipient, sender, receiver, cty):
    jwe = encrypt(plaintext, recipient, sender, receiver, cty, Key("ephemeral " + name), fixed("iv " + name, 12))
    assert decrypt(jwe, recipient) == plaintext
    return say(name, jwe)


def request(name, path, body, jti):
    """A sealed body and its proof; returns the proof's hash, which the reply repeats."""
    payloads[name + " body"] = body
    jwe = sealed(name + " body", compact(body), encryption, DID, ISS, "json")
    proof = message("proof." + name, device, {
        "v": 1, "aud": ISS, "did": DID, "htm": "POST", "htu": ISS + path,
        "bh": b64(hashlib.sha256(jwe.encode()).digest()), "nonce": NONCE, "jti": b64(fixed(jti))})
    return b64(digest("tsp/1 request", proof))


def reply(at, rqh, **members):
    return {"v": 1, "iss": ISS, "aud": DID, "iat": T + at, "rqh": rqh, **members}


DID = b64(fixed("did"))
PID = b64(fixed("pid"))
TXN = b64(fixed("txn"))
NONCE = b64(fixed("server nonce", 24))
CODE = typed_code(fixed("code", 10))


def build_server():
    certs = [
        message(name, identity, {
            "v": 1, "iss": ISS, "iat": T - 86400, "exp": T + 90 * 86400, "use": use, "gen": gen, "min": 6,
            "jwk": key.jwk})
        for name, use, gen, key in [("cert", "sig", 7, online), ("cert.encryption", "enc", 8, encryption)]]
    message("next", identity, {"v": 1, "iss": ISS, "iat": T + 10**7, "seq": 1, "jwk": successor.jwk})
    message("previous", successor, {
        "v": 1, "iss": ISS, "iat": T + 10**7, "seq": 1, "jwk": identity.jwk, "until": T + 10**7})
    payloads["configuration"] = {
        "v": [1], "iss": ISS, "name": "Bank of Example", "identity": identity.jwk, "next": [], "certs": certs}


def build_enrolment():
    say("code's bytes", fixed("code", 10))
    say("code's CRC", crc16(fixed("code", 10)).to_bytes(2, "big"))
    say("code", CODE)
    say("code as it is shown", "-".join(CODE[i:i + 5] for i in range(0, 20, 5)))
    message("invite", online, {
        "v": 1, "iss": ISS, "pid": PID, "code": CODE, "idk": identity.kid, "iat": T, "exp": T + 900})
    start = message("start", device, {
        "v": 1, "aud": ISS, "code": CODE, "nonce": NONCE, "jwk": device.jwk, "modes": ["device", "local", "assisted"],
        "info": {"brand": "Debian", "model": "laptop", "os": "Linux 6.1", "sdk": "assent 0.9", "keystore": "software"}})
    payloads["start body"] = {"start": start}
    sealed("start body", compact(payloads["start body"]), encryption, device.kid, ISS, "json")

    k = int.from_bytes(fixed("oprf key", 64), "big") % (N - 1) + 1
    public = multiply(k, G)
    say("OPRF private key k", k.to_bytes(48, "big"))
    offer = message("offer", online, {
        "v": 1, "iss": ISS, "aud": device.kid, "iat": T + 60, "rqh": b64(digest("tsp/1 request", start)), "pid": PID,
        "did": DID, "identity": identity.kid, "name": "Bank of Example", "commit": "digits", "exp": T + 900,
        "keys": [
            {"usage": "device", "label": "device", "policy": "device"},
            {"usage": "transport", "label": "transport", "policy": "device"},
            {"usage": "sign", "label": "payments", "slot": "signing", "policy": "pin"}],
        "slots": [{"slot": "signing", "mode": "assisted", "gen": 0, "pk": b64(encode_point(public))}],
        "policies": [
            {"id": "device", "type": "device"},
            {"id": "pin", "type": "password", "mode": "assisted", "kdf": "$scrypt$ln=15,r=8,p=1",
             "password": {"minLength": 6, "maxLength": 12, "minNumeric": 6, "sequences": False, "common": False,
                          "history": 3, "minAge": 0, "maxAge": 0, "cache": 0},
             "lock": {"type": "counter", "max": 5, "cap": 20, "delays": [0, 0, 30, 60]}}]})

    # The PIN, before any key is stored.
    salt = say("salt", fixed("salt"))
    pin = b"271828"
    s = say("s = scrypt(PIN)", Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(pin))
    oprf_input = say("OPRF input", frame("tsp/1 oprf", ISS, DID, "signing", 0, s))
    blind = int.from_bytes(fixed("blind", 64), "big") % (N - 1) + 1
    blinded = multiply(blind, hash_to_group(oprf_input))
    say("blind", blind.to_bytes(48, "big"))
    say("blinded element", encode_point(blinded))
    rqh = request("evaluate", "/device/provision/evaluate", {
        "slot": "signing", "gen": 0, "rid": b64(fixed("rid evaluate")), "blinded": b64(encode_point(blinded))}, "jti 1")
    evaluated, proof = evaluate(k, blinded, int.from_bytes(fixed("proof scalar", 64), "big") % (N - 1) + 1)
    message("eval.enrol", online, reply(
        62, rqh, purpose="enrol", slot="signing", gen=0, pk=b64(encode_point(public)),
        evaluated=b64(encode_point(evaluated)), proof=b64(proof), left=4))
    o = say("o = OPRF output", finalize(oprf_input, blind, public, blinded, evaluated, proof))
    kek_ikm = say("KEK's input key material", frame("tsp/1 kek ikm", s, o))
    kek_info = say("KEK's info", frame("tsp/1 kek", ISS, DID, "signing", sign.kid, 0))
    kek = say("KEK", HKDF(hashes.SHA256(), 32, salt, kek_info).derive(kek_ikm))
    head = b"AssentB\n" + bytes([0, 1, 2]) + b"".join(
        len(x.encode()).to_bytes(4, "big") + x.encode() for x in (ISS, DID, "signing", sign.kid)) \
        + (0).to_bytes(4, "big") + bytes([15, 8, 1]) + salt
    body = sign.scalar.to_bytes(32, "big") + (T + 62).to_bytes(8, "big") + bytes([0])
    say("blob's content", body)
    say("blob", head + fixed("blob iv", 12) + AESGCM(kek).encrypt(fixed("blob iv", 12), body, head))

    nonce_d = say("nonceD", fixed("nonceD", 32))
    nonce_s = say("nonceS", fixed("nonceS", 32))
    keys = [("device", "device", device.kid, "", "device", "software"),
            ("transport", "transport", transport.kid, "", "device", "software"),
            ("sign", "payments", sign.kid, "signing", "pin", "software+software")]
    listed = say("key list K", frame("tsp/1 keys", len(keys), *[text for key in keys for text in key]))
    commitment = say("commitment", digest("tsp/1 commitment", nonce_d, listed))
    offer_hash = digest("tsp/1 offer", offer)
    rqh = request("commit", "/device/provision/commit", {
        "commitment": b64(commitment), "offer": b64(offer_hash)}, "jti 2")
    message("nonce", online, reply(63, rqh, nonceS=b64(nonce_s), sub=SUB, user="ana"))

    entries = []
    for (usage, label, kid, slot, policy, keystore), key in zip(keys, [device, transport, sign]):
        entry = {"usage": usage, "label": label, "kid": kid, "jwk": key.jwk, "policy": policy, "keystore": keystore}
        if slot:
            entry["slot"] = slot
        if usage == "sign":
            entry["pop"] = message("pop", key, {
                "v": 1, "aud": ISS, "did": DID, "nonceS": b64(nonce_s), "device": device.kid, "usage": usage,
                "label": label, "kid": kid})
        entries.append(entry)
    enrol = message("enrol", device, {
        "v": 1, "aud": ISS, "pid": PID, "did": DID, "sub": SUB, "offer": b64(offer_hash), "nonceD": b64(nonce_d),
        "nonceS": b64(nonce_s), "keys": entries})
    transcript = say("transcript", frame(
        "tsp/1 enrol", identity.kid, ISS, PID, DID, SUB, offer_hash, nonce_d, nonce_s, listed))
    hashed = say("transcript's SHA-256", hashlib.sha256(transcript).digest())
    digits = f"{int.from_bytes(hashed[:8], 'big') % 10**8:08}"
    say("digits", digits)
    rqh = request("complete", "/device/provision/complete", {"enrol": enrol, "name": "Ana's laptop"}, "jti 3")
    echo, handle = fixed("echo", 32), say("handle key", fixed("handle", 32))
    enrolled = message("enrolled", online, reply(
        64, rqh, state="UNCONFIRMED", serial="10023", name="Ana's laptop", exp=T + 365 * 86400,
        renew=T + 335 * 86400, echo=b64(echo), handle=b64(handle), otp=[]))
    sealed("enrolled reply", enrolled.encode(), transport, ISS, DID, "JWT")
    rqh = request("confirm", "/device/provision/confirm", {"echo": b64(echo)}, "jti 4")
    message("status", online, reply(
        66, rqh, did=DID, state="ACTIVE", approvals=T + 66, exp=T + 365 * 86400,
        keys=[{"kid": kid, "usage": usage, "label": label, "state": "ACTIVE"} for usage, label, kid, *_ in keys],
        slots=[{"slot": "signing", "gen": 0, "state": "OPEN", "tries": 5, "spare": 20, "wait": 0}], pending=0))
    record = message("record", online, {
        "v": 1, "iss": ISS, "aud": DID, "iat": T + 65, "pid": PID, "sub": SUB, "seq": 0, "user": "ana",
        "identity": identity.kid, "enrol": b64(digest("tsp/1 enrolment", enrol)), "transcript": b64(hashed),
        "commit": "digits", "by": ["invite"], "approvals": T + 66, "keys": [kid for _, _, kid, *_ in keys]})
    return k, public, record, enrol, s


def build_transaction(k, public, record, enrol, s):
    details = compact([{
        "type": "payment_initiation", "instructedAmount": {"currency": "EUR", "amount": "200.00"},
        "creditorName": "Bob", "creditorAccount": {"iban": "DE02120300000000202051"}}])
    say("authorization_details", details.decode())
    req = digest("tsp/1 details", details)
    gateway = [
        "3b8c1b2b-0f6e-4d0c-9b1f-2f6a5d1f7e10", "/alpha", "bank", "pay", "r1", "journey", "ConfirmTransfer",
        "https://api.bank.example:443/transfers", optional(None), optional("POST"), optional("application/json"),
        optional(b64(hashlib.sha256(b'{"to":"Bob","amount":"200.00","currency":"EUR"}').digest())), SUB,
        "a2d7c9b0-7c7e-4d1a-8f43-5f0d9a6f0c11", optional(None), optional(None)]
    say("frame of a gateway's transaction", frame("tsp/1 policy transaction", *gateway))
    say("frame of the details", frame("tsp/1 details", details))
    say("req of a gateway's transaction", b64(digest("tsp/1 policy transaction", *gateway)))

    handle = hmac.new(fixed("handle", 32), frame("tsp/1 handle", ISS, TXN), hashlib.sha256).digest()[:16]
    tds = message("tds", online, {"v": 1, "iss": ISS, "txn": TXN, "exp": T + 1180, "h": b64(handle)})
    message("tds.claim", online, {"v": 1, "iss": ISS, "txn": b64(fixed("txn 2")), "exp": T + 1120, "claim": True})

    txd = message("txd", online, {
        "v": 1, "iss": ISS, "aud": DID, "iat": T + 1000, "exp": T + 1180, "txn": TXN, "sub": SUB,
        "kind": "transaction", "rp": {"id": "shop", "name": "Example Shop"}, "locale": "en",
        "title": "Confirm payment", "text": "Pay 200.00 EUR to Bob",
        "fields": [
            {"id": "amount", "label": "Amount", "type": "amount", "value": {"amount": "200.00", "currency": "EUR"},
             "display": "200.00 EUR"},
            {"id": "to", "label": "To", "type": "party", "value": "Bob", "display": "Bob"},
            {"id": "account", "label": "Account", "type": "account", "value": {"iban": "DE02120300000000202051"},
             "display": "DE02 1203 0000 0000 2020 51"}],
        "statuses": [
            {"name": "accept", "label": "Approve", "effect": "approve", "kids": [sign.kid], "reason": "none"},
            {"name": "deny", "label": "Decline", "effect": "deny", "kids": [device.kid], "reason": "none"},
            {"name": "report", "label": "That was not me", "effect": "report", "kids": [device.kid],
             "reason": "optional"}],
        "req": b64(req), "nonce": b64(fixed("txd nonce")), "match": {"mode": "number", "digits": 2}})
    rqh = request("list", "/device/transactions/list", {"wait": 25}, "jti 5")
    listed = message("list", online, reply(1000, rqh, ids=[tds], more=False))
    sealed("list reply", listed.encode(), transport, ISS, DID, "JWT")
    rqh = request("fetch", "/device/transactions/fetch", {"txn": TXN}, "jti 6")
    fetched = message("fetched", online, reply(1003, rqh, txd=txd))
    sealed("fetched reply", fetched.encode(), transport, ISS, DID, "JWT")
    txh = digest("tsp/1 txd", txd)

    # Unlock: another blind, a ratchet step, then the confirmation.
    oprf_input = frame("tsp/1 oprf", ISS, DID, "signing", 0, s)
    blind = int.from_bytes(fixed("blind unlock", 64), "big") % (N - 1) + 1
    blinded = multiply(blind, hash_to_group(oprf_input))
    r0, r1 = say("ratchet r", fixed("r0", 32)), say("ratchet r'", fixed("r1", 32))
    say("H(r)", digest("tsp/1 ratchet", r0))
    say("H(r')", digest("tsp/1 ratchet", r1))
    rqh = request("unlock", "/device/slots/unlock", {
        "slot": "signing", "gen": 0, "rid": b64(fixed("rid unlock")), "blinded": b64(encode_point(blinded)),
        "r": b64(r0), "next": b64(digest("tsp/1 ratchet", r1))}, "jti 7")
    evaluated, proof = evaluate(k, blinded, int.from_bytes(fixed("proof scalar 2", 64), "big") % (N - 1) + 1)
    unl = b64(fixed("unl"))
    eval_jws = message("eval.unlock", online, reply(
        1020, rqh, purpose="unlock", slot="signing", gen=0, pk=b64(encode_point(public)),
        evaluated=b64(encode_point(evaluated)), proof=b64(proof), unl=unl, n=1, tries=4, spare=19, wait=0))
    assert finalize(oprf_input, blind, public, blinded, evaluated, proof) == values["o = OPRF output"]
    eval_hash = b64(digest("tsp/1 evaluation", eval_jws))
    confirm = message("confirm", sign, {
        "v": 1, "aud": ISS, "did": DID, "slot": "signing", "gen": 0, "n": 1, "unl": unl, "eval": eval_hash})
    request("confirm slot", "/device/slots/confirm", {"confirm": confirm, "eval": eval_jws}, "jti 8")

    shown = ["Example Shop", "Confirm payment", "Pay 200.00 EUR to Bob", "", "", "", "Amount", "200.00 EUR", "To",
             "Bob", "Account", "DE02 1203 0000 0000 2020 51", "Approve", "42"]
    say("frame of dsp", frame("tsp/1 dsp", len(shown), *shown))
    dsp = digest("tsp/1 dsp", len(shown), *shown)
    decision = message("decision", sign, {
        "v": 1, "aud": ISS, "did": DID, "sub": SUB, "txn": TXN, "nonce": b64(fixed("txd nonce")), "txh": b64(txh),
        "dsp": b64(dsp), "status": "accept", "effect": "approve", "match": "42", "unl": unl,
        "jti": b64(fixed("decision jti"))})
    dh = b64(digest("tsp/1 decision", decision))
    say("decision hash dh", dh)
    possession = message("possession", device, {"v": 1, "aud": ISS, "did": DID, "txn": TXN, "dh": dh})
    message("decision.blind", device, {
        "v": 1, "aud": ISS, "did": DID, "sub": SUB, "txn": TXN, "blind": True, "status": "report", "effect": "report",
        "jti": b64(fixed("decision jti 2"))})
    request("decide", "/device/transactions/decide", {"decision": decision, "possession": possession}, "jti 9")
    receipt = message("receipt", online, {
        "v": 1, "iss": ISS, "aud": DID, "iat": T + 1024, "txn": TXN, "sub": SUB, "rp": "shop", "req": b64(req),
        "txh": b64(txh), "dh": dh, "status": "accept", "effect": "approve", "state": "APPROVED", "kid": sign.kid,
        "device": device.kid, "keyState": "ACTIVE", "since": T + 66, "record": b64(digest("tsp/1 record", record)),
        "amr": ["pop", "pin"], "match": True,
        "unlock": {"slot": "signing", "gen": 0, "n": 1, "evaluated": T + 1020, "confirmed": T + 1022},
        "audit": "5e6a0e2c-5a44-4c2e-8a63-0b2ac0b1f3f2"})
    message("change", sign, {
        "v": 1, "aud": ISS, "did": DID, "slot": "signing", "from": 0, "to": 1, "step": "start",
        "unl": unl, "jti": b64(fixed("change jti"))})
    pending = multiply(int.from_bytes(fixed("pending oprf key", 64), "big") % (N - 1) + 1, G)
    message("change.commit", sign, {
        "v": 1, "aud": ISS, "did": DID, "slot": "signing", "from": 0, "to": 1, "step": "commit",
        "pk": b64(encode_point(pending)), "jti": b64(fixed("change jti 2"))})
    message("endorse", device, {
        "v": 1, "aud": ISS, "did": DID, "enrol": b64(digest("tsp/1 enrolment", enrol)), "jti": b64(fixed("endorse"))})
    login = {
        "v": 1, "iss": DID, "sub": SUB, "aud": "https://am.bank.example/am/oauth2/realms/root/realms/alpha",
        "jkt": b64(fixed("installation key", 32)), "nonce": NONCE}
    ends = {"iat": T + 1030, "exp": T + 1090}
    message("login", auth, {**login, "unl": unl, "jti": b64(fixed("login jti")), **ends})
    message("login.implicit", device, {**login, "jti": b64(fixed("login jti 2")), **ends})
    payloads["bundle"] = {
        "v": 1, "iss": ISS, "identity": [identity.jwk], "next": [], "previous": [], "certs": [messages["cert"][1]],
        "enrolments": [{"record": record, "enrol": enrol, "offer": messages["offer"][1], "endorsements": []}],
        "transactions": [{
            "txd": txd, "request": b64(frame("tsp/1 details", details)), "decision": decision,
            "possession": possession, "receipt": receipt, "eval": eval_jws, "confirm": confirm}]}
    # A reader needs to see the shape, not every byte again.
    payloads["list"]["ids"] = ["(the id above)"]
    payloads["fetched"]["txd"] = "(the document below)"


def negatives():
    """What every reader must refuse: what is wrong, and the text."""
    header, payload, signature = messages["possession"][1].split(".")
    content = payloads["possession"]
    right = {"alg": "ES256", "typ": "tsp-possession+jwt", "kid": device.kid}

    def signed(head, body):
        """A good signature under any header and payload."""
        text = b64(head) + "." + b64(body)
        r, s = decode_dss_signature(device.private.sign(
            text.encode(), ec.ECDSA(hashes.SHA256(), deterministic_signing=True)))
        return text + "." + b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))

    body, raw = compact(content), bytearray(unb64(signature))
    raw[0] ^= 1
    code = hmac.new(device.kid.encode(), (header + "." + payload).encode(), hashlib.sha256).digest()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    spare = signature[:-1] + alphabet[alphabet.index(signature[-1]) ^ 1]
    return [
        ("one bit of the signature", f"{header}.{payload}.{b64(bytes(raw))}"),
        ("another message's `typ`", signed(compact({**right, "typ": "tsp-endorse+jwt"}), body)),
        ("`typ` in another case", signed(compact({**right, "typ": "TSP-possession+jwt"}), body)),
        ("`typ` with `application/`", signed(compact({**right, "typ": "application/tsp-possession+jwt"}), body)),
        ("`alg: none`", b64(compact({**right, "alg": "none"})) + "." + payload + "."),
        ("`alg: HS256`", b64(compact({**right, "alg": "HS256"})) + "." + payload + "." + b64(code)),
        ("a key in the header", signed(compact({**right, "jwk": device.jwk}), body)),
        ("`crit`", signed(compact({**right, "crit": ["exp"], "exp": 0}), body)),
        ("another key's `kid`", signed(compact({**right, "kid": sign.kid}), body)),
        ("no `kid`", signed(compact({"alg": "ES256", "typ": "tsp-possession+jwt"}), body)),
        ("a member twice", signed(compact(right), body[:-1] + b',"did":"AAAAAAAAAAAAAAAAAAAAAA"}')),
        ("a member too many", signed(compact(right), compact({**content, "extra": 1}))),
        ("a member too few", signed(compact(right), compact({n: v for n, v in content.items() if n != "txn"}))),
        ("`v` is 2", signed(compact(right), compact({**content, "v": 2}))),
        ("a number with a fraction", signed(compact(right), body.replace(b'"v":1,', b'"v":1.0,'))),
        ("a byte order mark", signed(compact(right), b"\xef\xbb\xbf" + body)),
        ("padding", f"{header}.{payload}.{signature}=="),
        ("spare bits that are not zero", f"{header}.{payload}.{spare}"),
    ]


def bad_elements():
    """Encodings of elements and proofs that both sides of the VOPRF refuse."""
    oprf_key = int.from_bytes(values["OPRF private key k"], "big")
    x = next(x for x in range(2, 100) if pow((x**3 + A * x + B) % P, (P - 1) // 2, P) == P - 1)
    return [
        ("48 bytes", encode_point(G)[:-1]), ("uncompressed", b"\4" + b"".join(c.to_bytes(48, "big") for c in G)),
        ("infinity, as one byte 00", b"\0"), ("49 bytes 00", bytes(49)), ("first byte 05", b"\5" + encode_point(G)[1:]),
        ("x is p", b"\2" + P.to_bytes(48, "big")), ("x is p + 2, not reduced", b"\2" + (P + 2).to_bytes(48, "big")),
        (f"x is {x}, not on the curve", b"\2" + x.to_bytes(48, "big")),
        ("a proof of zeros", bytes(96)), ("a proof whose c is n", N.to_bytes(48, "big") + (1).to_bytes(48, "big")),
        ("a proof of 95 bytes", bytes(95)),
        ("c is 1, s is n − k", (1).to_bytes(48, "big") + (N - oprf_key).to_bytes(48, "big")),
    ]


NEGATIVE = """## Negative examples

All of these are refused.
They are variants of *possession*, and the same changes refuse every other message.
Where header or payload were changed, the signature over them is good, so that nothing but the change refuses them.

(The signature with *n* − *s* in the place of *s* is valid, and makes another message with another hash.)
"""

ELEMENTS = """## Elements and proofs that are refused

Before anything is computed with them: a server refuses the elements, a device all of them.
The last proof makes *s*·G + *c*·pk infinity, with the *k* of this page.
"""

# --- the pages -------------------------------------------------------------------------------------------------------


def shortened(value):
    """Long texts are cut in the first page; the second has them whole."""
    if isinstance(value, dict):
        return {name: shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value) > 96:
        return value[:40] + "…"
    return value


def pretty(value, indent=0):
    """JSON with as much on a line as fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= 114 or not isinstance(value, (dict, list)):
        return line
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {pretty(item, indent + 2)}" for name, item in value.items()]
    else:
        items = [pretty(item, indent + 2) for item in value]
    pad = "\n" + " " * (indent + 2)
    lines = [""]
    for item in items:
        joined = f"{lines[-1]}, {item}" if lines[-1] else item
        if lines[-1] and ("\n" in joined or len(joined) + indent > 112):
            lines.append(item)
        else:
            lines[-1] = joined
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + pad + ("," + pad).join(lines) + "\n" + " " * indent + closing


def folded(text):
    return "\n".join(text[i:i + 100] for i in range(0, len(text), 100))


def vectors_page():
    with open(VECTORS, encoding="utf-8") as file:
        lead = file.read().split("<!-- computed from here on -->")[0]
    out = [lead + "<!-- computed from here on -->\n", "## Keys\n",
           "| key | private scalar (hexadecimal) | thumbprint (`kid`) |", "|---|---|---|"]
    for key in [identity, successor, online, encryption, device, transport, sign, auth]:
        out.append(f"| {key.name} | `{key.scalar:064x}` | `{key.kid}` |")
    out.append("\n## Values\n\nBytes are in hexadecimal, texts in quotation marks.\n")
    for name, value in values.items():
        text = value.hex() if isinstance(value, bytes) else f'"{value}"'
        if len(text) < 90:
            out.append(f"- {name}: `{text}`")
        else:
            out.append(f"- {name}:\n\n```text\n{folded(text)}\n```\n")
    out.append("\n## Signed messages\n\nEach is one line; here it is folded after 100 characters.\n")
    for name, (signer, jws) in messages.items():
        out.append(f"### {name}\n\nSigned by the key *{signer}*.\n\n```text\n{folded(jws)}\n```\n")
    out.append(NEGATIVE)
    for name, text in negatives():
        out.append(f"- {name}:\n\n```text\n{folded(text)}\n```\n")
    out.append(ELEMENTS)
    for name, data in bad_elements():
        out.append(f"- {name}:\n\n```text\n{folded(data.hex())}\n```\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


def first_page(text):
    def example(match):
        name = match.group(1)
        return f"<!-- example: {name} -->\n```json\n{pretty(shortened(payloads[name]))}\n```"

    def value(match):
        shown = values[match.group(1)]
        return f"<!-- value: {match.group(1)} -->`{shown.hex() if isinstance(shown, bytes) else shown}`"

    text = re.sub(r"<!-- example: ([^>]*?) -->\n```json\n.*?```", example, text, flags=re.DOTALL)
    return re.sub(r"<!-- value: ([^>]*?) -->`[^`]*`", value, text)


def main():
    check_rfc9497()
    assert crc16(b"123456789") == 0xBB3D
    build_server()
    k, public, record, enrol, s = build_enrolment()
    build_transaction(k, public, record, enrol, s)
    wrong = []
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    with open(VECTORS, encoding="utf-8") as file:
        vectors = file.read()
    for path, old, new in [(PAGE, page, first_page(page)), (VECTORS, vectors, vectors_page())]:
        if old == new:
            continue
        wrong.append(path)
        if "--check" not in sys.argv:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
    if "--check" in sys.argv and wrong:
        sys.exit("other bytes than computed: " + ", ".join(map(os.path.normpath, wrong)))


if __name__ == "__main__":
    main()
