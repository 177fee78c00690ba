"""What a device does with a password: rules, scrypt, and the sealed keys (the section "Sealed keys")."""
import hashlib
import os
import struct
import unicodedata

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .framing import Refused
from .messages import scrypt_cost

MAGIC = b"AssentB\n"
MODES = {"local": 1, "assisted": 2}
COMMON = {"123456", "000000", "111111", "123123", "654321", "1234", "0000", "2580", "1111", "5555", "password"}
ROWS = ("01234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm")


def scrypt(password, salt, kdf):
    n, r, p = scrypt_cost(kdf)
    data = unicodedata.normalize("NFC", password).encode("utf-8")
    if not 1 <= len(data) <= 128:
        raise Refused("a password has 1 to 128 bytes", "invalidPassword")
    return hashlib.scrypt(data, salt=salt, n=1 << n, r=r, p=p, maxmem=1 << 30, dklen=32)


def check_rules(password, rules):
    def refuse(rule):
        raise Refused(f"the password breaks {rule}", "invalidPassword")

    if not rules["minLength"] <= len(password) <= rules["maxLength"]:
        refuse("minLength or maxLength")
    counts = {"Upper": sum(map(str.isupper, password)), "Lower": sum(map(str.islower, password)),
              "Alpha": sum(map(str.isalpha, password)), "Numeric": sum(map(str.isdigit, password)),
              "NonAlpha": sum(not one.isalpha() for one in password)}
    for kind, number in counts.items():
        if not rules.get(f"min{kind}", 0) <= number <= rules.get(f"max{kind}", 128):
            refuse(f"min{kind} or max{kind}")
    lower = password.lower()
    if not rules["sequences"] and (len(set(lower)) == 1 or any(lower in row or lower in row[::-1] for row in ROWS)):
        refuse("sequences")
    if not rules["common"] and lower in COMMON:
        refuse("common")


def _counted(text):
    return struct.pack(">I", len(text.encode())) + text.encode()


def associated(mode, iss, did, slot, kid, generation, kdf, salt):
    n, r, p = scrypt_cost(kdf)
    return (MAGIC + struct.pack(">HB", 1, MODES[mode]) + _counted(iss) + _counted(did) + _counted(slot) + _counted(kid)
            + struct.pack(">IBBB", generation, n, r, p) + salt)


def content(scalar, when, history=()):
    return (scalar.to_bytes(32, "big") + struct.pack(">QB", when, len(history))
            + b"".join(salt + hashed for salt, hashed in history))


def seal(kek, aad, plain, nonce=None):
    nonce = nonce or os.urandom(12)
    return aad + nonce + AESGCM(kek).encrypt(nonce, plain, aad)


def unseal(kek, aad, blob):
    """The private scalar; Refused if this KEK does not open it."""
    if blob[:len(aad)] != aad:
        raise Refused("the blob is another key's", "secureData")
    rest = blob[len(aad):]
    try:
        plain = AESGCM(kek).decrypt(rest[:12], rest[12:], aad)
    except InvalidTag:
        raise Refused("the password is wrong", "wrongPassword") from None
    return int.from_bytes(plain[:32], "big")
