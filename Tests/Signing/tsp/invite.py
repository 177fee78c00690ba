"""The code of an invite: ten bytes and their CRC-16/ARC in Base32, and what a person may make of it."""
import base64
import os

from .framing import Refused

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def crc16(data):
    """CRC-16/ARC: 123456789 gives BB3D."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


def encode(secret):
    return base64.b32encode(secret + crc16(secret).to_bytes(2, "big")).decode().rstrip("=")


def make():
    return encode(os.urandom(10))


def shown(code):
    return "-".join(code[at:at + 5] for at in range(0, 20, 5))


def canonical(code):
    """Whether the code is one, as messages carry it."""
    if not isinstance(code, str) or len(code) != 20 or any(letter not in LETTERS for letter in code):
        raise Refused("a code has twenty characters")
    data = base64.b32decode(code + "====")
    if encode(data[:10]) != code:
        raise Refused("the code was mistyped")
    return code


def typed(text):
    """The canonical form of what somebody typed. It is checked before the server is asked."""
    for character in " -":
        text = text.replace(character, "")
    return canonical(text.upper().translate(str.maketrans("018", "OIB")))
