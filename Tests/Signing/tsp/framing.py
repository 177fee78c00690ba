"""Bytes: base64url, frames, and every hash of the table "Hashes and derived keys"."""
import base64
import binascii
import hashlib
import hmac
import re

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

ALPHABET = re.compile(r"[A-Za-z0-9_-]*\Z")


class Refused(Exception):
    """The message breaks the protocol. `code` is one of the table "Errors"."""

    def __init__(self, detail, code="invalid_request"):
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text, size=None):
    """Strict: no padding, no other characters, no spare bits."""
    if not isinstance(text, str) or not ALPHABET.match(text) or len(text) % 4 == 1:
        raise Refused("this is not base64url")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise Refused("this is not base64url") from None
    if b64(data) != text:
        raise Refused("base64url with spare bits")
    if size is not None and len(data) != size:
        raise Refused(f"{len(data)} bytes where {size} belong")
    return data


def frame(label, *fields):
    """F(label, ...): the label, 00, and each field after its length."""
    parts = [label.encode("ascii"), b"\0"]
    for value in fields:
        if isinstance(value, int):
            value = value.to_bytes(8, "big")
        elif isinstance(value, str):
            value = value.encode("utf-8")
        parts += [len(value).to_bytes(4, "big"), value]
    return b"".join(parts)


def optional(value):
    """O(x)."""
    if value is None:
        return b"\0"
    return b"\1" + (value.encode("utf-8") if isinstance(value, str) else value)


def digest(label, *fields):
    """H(label, ...)."""
    return hashlib.sha256(frame(label, *fields)).digest()


def named(label, *fields):
    """H(label, ...) as messages carry it."""
    return b64(digest(label, *fields))


def request_hash(proof):
    return named("tsp/1 request", proof)


def key_list(keys):
    """K, over the entries of `enrol` in the offer's order."""
    fields = [len(keys)]
    for key in keys:
        fields += [key["usage"], key["label"], key["kid"], key.get("slot", ""), key["policy"], key["keystore"]]
    return frame("tsp/1 keys", *fields)


def commitment(nonce_d, keys):
    return named("tsp/1 commitment", nonce_d, key_list(keys))


def offer_hash(offer):
    return named("tsp/1 offer", offer)


def transcript(identity, iss, pid, did, sub, offer, nonce_d, nonce_s, keys):
    """`offer` is the compact message; the nonces are bytes."""
    return frame("tsp/1 enrol", identity, iss, pid, did, sub, digest("tsp/1 offer", offer), nonce_d, nonce_s,
                 key_list(keys))


def digits(data, count=8):
    number = int.from_bytes(hashlib.sha256(data).digest()[:8], "big") % 10 ** count
    return str(number).zfill(count)


def weak_digits(device_key, server_key, did, count=8):
    """What a naive design would show: two public keys and the id. Only the relay harness uses it."""
    return digits(device_key.encode() + did.encode() + server_key.encode(), count)


def enrolment_hash(enrol):
    return named("tsp/1 enrolment", enrol)


def record_hash(record):
    return named("tsp/1 record", record)


def handle(key, iss, txn):
    return b64(hmac.new(key, frame("tsp/1 handle", iss, txn), hashlib.sha256).digest()[:16])


def details_frame(text):
    return frame("tsp/1 details", text)


def gateway_frame(request):
    """The fields of a policy transaction in the order of "What req binds"."""
    plain = ["id", "realm", "set", "policy", "revision", "strategy", "specifier", "resource"]
    maybe = ["query", "method", "type", "body"]
    return frame("tsp/1 policy transaction", *[request[name] for name in plain],
                 *[optional(request.get(name)) for name in maybe], request["user"], request["session"],
                 optional(request.get("grant")), optional(request.get("thumbprint")))


def document_hash(txd):
    return named("tsp/1 txd", txd)


def display_frame(document, label, number):
    """What the user saw, with the label of the chosen status and the number that was typed."""
    origin = document.get("origin", {})
    texts = [document["rp"]["name"], document["title"], document.get("text", ""), document.get("warning", ""),
             origin.get("place", ""), origin.get("address", "")]
    for entry in document["fields"]:
        texts += [entry["label"], entry["display"]]
    texts += [label, number or ""]
    return frame("tsp/1 dsp", len(texts), *texts)


def display_hash(document, label, number):
    return b64(hashlib.sha256(display_frame(document, label, number)).digest())


def decision_hash(decision):
    return named("tsp/1 decision", decision)


def evaluation_hash(evaluation):
    return named("tsp/1 evaluation", evaluation)


def ratchet_hash(r):
    return named("tsp/1 ratchet", r)


def oprf_input(iss, did, slot, generation, s):
    return frame("tsp/1 oprf", iss, did, slot, generation, s)


def hkdf(key, salt, info):
    return HKDF(hashes.SHA256(), 32, salt, info).derive(key)


def kek_assisted(iss, did, slot, kid, generation, salt, s, o):
    return hkdf(frame("tsp/1 kek ikm", s, o), salt, frame("tsp/1 kek", iss, did, slot, kid, generation))


def kek_local(iss, did, slot, kid, generation, salt, s):
    return hkdf(frame("tsp/1 kek local ikm", s), salt, frame("tsp/1 kek local", iss, did, slot, kid, generation))
