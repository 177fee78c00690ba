"""Somebody who has a device's file, what went over the wire, and old blobs, and tries every PIN of a small space.

The file is that of a software provider without a passphrase, so nothing but the PIN is in the way. Every oracle that
these things could give is asked for each PIN; an oracle that answers for one PIN alone has found it.
"""
import hashlib
import json

from . import framing, jose, oprf, pin, strict_json
from .framing import Refused, unb64

SPACE = [f"{number:04}" for number in range(10_000)]


def values_of(transcripts):
    """Every piece of binary data in the messages that were captured; a JWS inside is taken apart, too."""
    found, waiting = set(), list(transcripts)
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            try:
                waiting.append(strict_json.parse(jose.Unverified(one).content))
            except Refused:
                try:
                    data = unb64(one)
                except Refused:
                    continue
                if 16 <= len(data) <= 96:
                    found.add(data)
    return found


class Thief:
    def __init__(self, state, transcripts=(), old_blobs=(), k=None):
        """`old_blobs`: (slot, kid, blob) from before a change. `k`: the server's private key, if it was stolen, too."""
        self.iss, self.did = state["iss"], state["did"]
        self.blobs = [(state["slots"][one["slot"]], one["kid"], unb64(one["blob"]), one["jwk"])
                      for one in state["keys"].values() if one.get("blob")]
        self.blobs += [(slot, kid, unb64(blob), None) for slot, kid, blob in old_blobs]
        self.captured = values_of([state, *transcripts])
        self.elements = self.points(self.captured)
        self.k = k
        self.hashed = {}

    @staticmethod
    def points(values):
        found = []
        for data in values:
            try:
                found.append(oprf.parse_element(data))
            except Refused:
                continue
        return found

    def answers(self, password):
        """The names of the oracles that this PIN satisfies."""
        found = set()
        for slot, kid, blob, jwk in self.blobs:
            key = (slot["salt"], slot["kdf"])
            if key not in self.hashed:
                self.hashed = {key: pin.scrypt(password, unb64(slot["salt"]), slot["kdf"])}
            s = self.hashed[key]
            for name, kek in self.candidates(slot, kid, s):
                where = (self.iss, self.did, slot["slot"], kid, slot["gen"])
                aad = pin.associated(slot["mode"], *where, slot["kdf"], unb64(slot["salt"]))
                try:
                    scalar = pin.unseal(kek, aad, blob)
                except Refused:
                    continue
                if jwk is None or jose.Key(scalar).jwk == jwk:
                    found.add(name)
            if s in self.captured or hashlib.sha256(s).digest() in self.captured:
                found.add("s or its hash is stored")
            message = framing.oprf_input(self.iss, self.did, slot["slot"], slot["gen"], s)
            if slot["mode"] == "assisted" and oprf.hash_to_curve(message) in self.elements:
                found.add("an element without a blind was sent")
        self.hashed = {}
        return found

    def candidates(self, slot, kid, s):
        """Every KEK that can be computed from the PIN and what was captured."""
        where = (self.iss, self.did, slot["slot"], kid, slot["gen"])
        salt = unb64(slot["salt"])
        yield "the local KEK opens the blob", framing.kek_local(*where, salt, s)
        if slot["mode"] != "assisted":
            return
        message = framing.oprf_input(self.iss, self.did, slot["slot"], slot["gen"], s)
        for data in [b"", *self.captured]:
            yield "a captured value takes the place of o", framing.kek_assisted(*where, salt, s, data)
        for point in self.elements:
            o = oprf.finalize(message, 1, point)
            yield "a captured element takes the place of the evaluation", framing.kek_assisted(*where, salt, s, o)
        if self.k:
            o = oprf.finalize(message, 1, oprf.multiply(self.k, oprf.hash_to_curve(message)))
            yield "the server's k", framing.kek_assisted(*where, salt, s, o)

    def search(self, space=SPACE):
        """{PIN: oracles} of every PIN that an oracle answered for."""
        found = {}
        for password in space:
            answers = self.answers(password)
            if answers:
                found[password] = sorted(answers)
        return found


def from_file(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
