"""The one profile of JWS and JWE that the protocol has: ES256, and ECDH-ES with A256GCM."""
import hashlib
import hmac
import os

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import strict_json
from .framing import Refused, b64, unb64

JWS_LIMIT = 48 * 1024
JWE_LIMIT = 64 * 1024
ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551


def thumbprint(jwk):
    """RFC 7638: the members that are needed, in the order of their names."""
    members = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    return b64(hashlib.sha256(strict_json.write(members)).digest())


def public_key(jwk):
    """The key of a JWK that has exactly kty, crv, x and y, and is a point of P-256."""
    if not isinstance(jwk, dict) or set(jwk) != {"kty", "crv", "x", "y"}:
        raise Refused("a key that has not exactly kty, crv, x and y")
    if jwk["kty"] != "EC" or jwk["crv"] != "P-256":
        raise Refused("a key that is not on P-256")
    x, y = (int.from_bytes(unb64(jwk[name], 32), "big") for name in ("x", "y"))
    try:
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    except ValueError:
        raise Refused("a point that is not on P-256") from None


def jwk_of(public):
    numbers = public.public_numbers()
    x, y = (b64(one.to_bytes(32, "big")) for one in (numbers.x, numbers.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


class Key:
    """A key pair with its JWK and its thumbprint."""

    def __init__(self, scalar=None):
        if scalar is None:
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = ec.derive_private_key(scalar, ec.SECP256R1())
        self.jwk = jwk_of(self.private.public_key())
        self.kid = thumbprint(self.jwk)

    @property
    def scalar(self):
        return self.private.private_numbers().private_value

    def sign(self, data):
        r, s = decode_dss_signature(self.private.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def sign_deterministically(self, data):
        """RFC 6979, so that the bytes of the vectors come out again."""
        hashed = hashlib.sha256(data).digest()
        number = int.from_bytes(hashed, "big")
        seed = self.scalar.to_bytes(32, "big") + (number % ORDER).to_bytes(32, "big")

        def mac(key, *parts):
            return hmac.new(key, b"".join(parts), hashlib.sha256).digest()

        v, k = b"\1" * 32, b"\0" * 32
        for byte in (b"\0", b"\1"):
            k = mac(k, v, byte, seed)
            v = mac(k, v)
        while True:
            v = mac(k, v)
            nonce = int.from_bytes(v, "big")
            if 0 < nonce < ORDER:
                r = ec.derive_private_key(nonce, ec.SECP256R1()).public_key().public_numbers().x % ORDER
                s = pow(nonce, -1, ORDER) * (number + r * self.scalar) % ORDER
                if r and s:
                    return r.to_bytes(32, "big") + s.to_bytes(32, "big")
            k = mac(k, v, b"\0")
            v = mac(k, v)


class Unverified:
    """A JWS that was taken apart. Nothing in it is true yet."""

    def __init__(self, compact):
        if not isinstance(compact, str) or len(compact) > JWS_LIMIT or not compact.isascii():
            raise Refused("this is no JWS")
        parts = compact.split(".")
        if len(parts) != 3:
            raise Refused("a JWS has three parts")
        self.compact = compact
        self.header = strict_json.parse_object(unb64(parts[0]))
        if set(self.header) != {"alg", "typ", "kid"}:
            raise Refused("a JWS header that has not exactly alg, typ and kid")
        if self.header["alg"] != "ES256":
            raise Refused("an algorithm other than ES256")
        self.typ = self.header["typ"]
        if not isinstance(self.typ, str):
            raise Refused("typ is no text")
        self.kid = self.header["kid"]
        unb64(self.kid, 32)
        self.content = unb64(parts[1])
        self.signature = unb64(parts[2], 64)
        self.signed = f"{parts[0]}.{parts[1]}".encode("ascii")

    def verified(self, typ, jwk):
        """The payload, if this key signed it with this typ."""
        if self.typ != typ:
            raise Refused(f"{self.typ} where {typ} belongs")
        if self.kid != thumbprint(jwk):
            raise Refused("another key's kid")
        r, s = (int.from_bytes(self.signature[at:at + 32], "big") for at in (0, 32))
        try:
            public_key(jwk).verify(encode_dss_signature(r, s), self.signed, ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError):
            raise Refused("the signature is wrong") from None
        return strict_json.parse_object(self.content)

    def self_signed(self, typ, jwk_at=lambda payload: payload["jwk"]):
        """For the messages that bring their own key: the payload, which that key signed."""
        try:
            jwk = jwk_at(strict_json.parse_object(self.content))
            public_key(jwk)
        except (KeyError, IndexError, TypeError):
            raise Refused("the message has no key") from None
        return self.verified(typ, jwk)


def sign(typ, payload, key, deterministic=False, header=lambda header: header):
    """The compact JWS. A payload that is bytes is taken as it is; `header` may change the header."""
    header = strict_json.write(header({"alg": "ES256", "typ": typ, "kid": key.kid}))
    content = payload if isinstance(payload, bytes) else strict_json.write(payload)
    signed = f"{b64(header)}.{b64(content)}"
    signature = (key.sign_deterministically if deterministic else key.sign)(signed.encode("ascii"))
    return f"{signed}.{b64(signature)}"


def verify(compact, typ, jwk):
    return Unverified(compact).verified(typ, jwk)


def concat_kdf(shared, apu, apv):
    """RFC 7518 4.6.2 for A256GCM: one round of SHA-256 is enough for 256 bits."""
    def counted(data):
        return len(data).to_bytes(4, "big") + data

    info = counted(b"A256GCM") + counted(apu) + counted(apv) + (256).to_bytes(4, "big")
    return hashlib.sha256((1).to_bytes(4, "big") + shared + info).digest()


def encrypt(plaintext, recipient, cty, sender_name, recipient_name):
    """The compact JWE to the key `recipient` (a JWK)."""
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    apu, apv = sender_name.encode("ascii"), recipient_name.encode("ascii")
    header = b64(strict_json.write({
        "alg": "ECDH-ES", "enc": "A256GCM", "cty": cty, "kid": thumbprint(recipient), "apu": b64(apu), "apv": b64(apv),
        "epk": jwk_of(ephemeral.public_key())}))
    key = concat_kdf(ephemeral.exchange(ec.ECDH(), public_key(recipient)), apu, apv)
    nonce = os.urandom(12)
    sealed = AESGCM(key).encrypt(nonce, plaintext, header.encode("ascii"))
    return f"{header}..{b64(nonce)}.{b64(sealed[:-16])}.{b64(sealed[-16:])}"


class Sealed:
    """A JWE that was taken apart and not yet opened."""

    def __init__(self, compact):
        if not isinstance(compact, str) or len(compact) > JWE_LIMIT or not compact.isascii():
            raise Refused("this is no JWE")
        parts = compact.split(".")
        if len(parts) != 5:
            raise Refused("a JWE has five parts")
        self.header = strict_json.parse_object(unb64(parts[0]))
        if set(self.header) != {"alg", "enc", "cty", "kid", "apu", "apv", "epk"}:
            raise Refused("a JWE header with other members")
        if parts[1]:
            raise Refused("an encrypted key where there is none")
        self.aad = parts[0].encode("ascii")
        self.nonce = unb64(parts[2], 12)
        self.ciphertext = unb64(parts[3])
        self.tag = unb64(parts[4], 16)
        self.kid = self.header["kid"]

    @property
    def sender(self):
        try:
            return unb64(self.header["apu"]).decode("ascii")
        except UnicodeDecodeError:
            raise Refused("apu is no ASCII") from None

    def opened(self, key, cty, sender_name, recipient_name):
        """The plaintext. Everything that the header says is compared before anything is computed."""
        expected = {"alg": "ECDH-ES", "enc": "A256GCM", "cty": cty, "kid": key.kid,
                    "apu": b64(sender_name.encode("ascii")), "apv": b64(recipient_name.encode("ascii"))}
        for name, value in expected.items():
            if self.header[name] != value:
                raise Refused(f"{name} is another one")
        shared = key.private.exchange(ec.ECDH(), public_key(self.header["epk"]))
        secret = concat_kdf(shared, sender_name.encode("ascii"), recipient_name.encode("ascii"))
        try:
            return AESGCM(secret).decrypt(self.nonce, self.ciphertext + self.tag, self.aad)
        except InvalidTag:
            raise Refused("the JWE does not open") from None
