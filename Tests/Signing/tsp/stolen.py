"""What somebody has who copied the database of Assent's server, perhaps with the master key beside it: a SQLite file,
or what `pg_dump` has written in SQL.

This is about Assent's own storage, and no part of the protocol.
"""
import base64
import re
import sqlite3

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .framing import b64

SQLITE = b"SQLite format 3\0"
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def master_key(path):
    with open(path, encoding="ascii") as file:
        return base64.b64decode(file.read().strip(), validate=True)


def tables(path):
    """{table: rows}, each row {column: value}."""
    with open(path, "rb") as file:
        is_sqlite = file.read(len(SQLITE)) == SQLITE
    return from_sqlite(path) if is_sqlite else from_dump(path)


def from_sqlite(path):
    with sqlite3.connect(path) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {}
        for name in names:
            rows = database.execute(f'SELECT * FROM "{name}"')
            columns = [one[0] for one in rows.description]
            found[name] = [dict(zip(columns, row)) for row in rows]
        return found


def from_dump(path):
    found, rows, columns = {}, None, []
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            line = line.rstrip("\n")
            if rows is None:
                begun = re.fullmatch(r"COPY (?:\w+\.)?(\w+) \((.*)\) FROM stdin;", line)
                if begun:
                    rows = found.setdefault(begun[1], [])
                    columns = [one.strip(' "') for one in begun[2].split(",")]
            elif line == "\\.":
                rows = None
            else:
                rows.append(dict(zip(columns, map(value, line.split("\t")))))
    if not found:
        raise ValueError("neither a SQLite file nor a dump with its data as COPY")
    return found


def value(text):
    """A value as COPY writes it; bytes are written as \\x and hexadecimal digits."""
    if text == "\\N":
        return None
    plain = re.sub(r"\\(.)", lambda one: ESCAPES.get(one[1], one[1]), text)
    if re.fullmatch(r"\\x(?:[0-9a-f]{2})*", plain):
        return bytes.fromhex(plain[2:])
    return plain


def values(path):
    """Everything that is stored, as texts; bytes as base64url."""
    return [b64(one) if isinstance(one, bytes) else str(one)
            for rows in tables(path).values() for row in rows for one in row.values() if one is not None]


def private_keys(path, key, did):
    """k of each slot and generation that the file still has: [(slot, generation, k)]."""
    opening = AESGCM(HKDF(hashes.SHA256(), 32, None, b"assent master key v1 signing-slot").derive(key))
    found = []
    stored = tables(path)
    # What an offer has, and nothing was sealed with yet, is kept apart.
    for row in stored["signing_slots"] + stored["signing_offered_slots"]:
        if row["did"] != did:
            continue
        pairs = [(row["generation"], row["sealed_k"]), (row.get("pending_generation"), row.get("pending_k"))]
        for number, one in pairs:
            if one is None:
                continue
            try:
                opened = opening.decrypt(one[:12], one[12:], f"k {did} {row['slot']} {number}".encode())
            except InvalidTag:
                continue
            found.append((row["slot"], int(number), int.from_bytes(opened, "big")))
    return found
