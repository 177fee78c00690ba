"""What somebody has who copied the SQLite file of Assent's server, perhaps with the master key beside it.

This is about Assent's own storage, and no part of the protocol.
"""
import base64
import sqlite3

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .framing import b64


def master_key(path):
    with open(path, encoding="ascii") as file:
        return base64.b64decode(file.read().strip(), validate=True)


def values(path):
    """Everything that is stored, as texts; bytes as base64url."""
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = []
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                found += [b64(one) if isinstance(one, bytes) else str(one) for one in row if one is not None]
        return found


def private_keys(path, key, did):
    """k of each slot and generation that the file still has: [(slot, generation, k)]."""
    opening = AESGCM(HKDF(hashes.SHA256(), 32, None, b"assent master key v1 signing-slot").derive(key))
    found = []
    with sqlite3.connect(path) as database:
        for slot, generation, sealed, later, pending in database.execute(
                "SELECT slot, generation, sealed_k, pending_generation, pending_k FROM signing_slots WHERE did = ?",
                (did,)):
            for number, one in ((generation, sealed), (later, pending)):
                if one is None:
                    continue
                try:
                    opened = opening.decrypt(one[:12], one[12:], f"k {did} {slot} {number}".encode())
                except InvalidTag:
                    continue
                found.append((slot, number, int.from_bytes(opened, "big")))
    return found
