"""DPoP proofs (RFC 9449) of an installation's handshakes, right ones and wrong ones."""
import base64
import json
import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key

import pe1


class Device:
    """An installation of an app: its client id, the private key that it has registered (P-256, PKCS#8 as base64url), and
    the time at which its proofs are made, which is the server's."""

    def __init__(self, client, app, key, now):
        self.names = ("device", app, "1.0", "linux", client)
        self.key = load_der_private_key(base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)), None)
        self.now = now

    def proof(self, url, body, nonce, fault=None):
        """A proof of the key for a handshake with this body."""
        key = ec.generate_private_key(ec.SECP256R1()) if fault == "otherkey" else self.key
        point = key.public_key().public_numbers()
        jwk = {"kty": "EC", "crv": "P-256", "x": number(point.x), "y": number(point.y)}
        claims = {
            "jti": pe1.b64(os.urandom(16)), "htm": "GET" if fault == "method" else "POST",
            "htu": url + "/other" if fault == "url" else url, "iat": self.now,
            "pe": pe1.proof_claim(body + " " if fault == "body" else body),
        }
        if fault == "unclaimed":
            del claims["pe"]
        if nonce:
            claims["nonce"] = nonce
        parts = [pe1.b64(json.dumps(each).encode()) for each in ({"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk}, claims)]
        signed = ".".join(parts)
        r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
        signature = bytearray(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
        if fault == "signature":
            signature[9] ^= 1
        return signed + "." + pe1.b64(bytes(signature))


def number(value):
    return pe1.b64(value.to_bytes(32, "big"))
