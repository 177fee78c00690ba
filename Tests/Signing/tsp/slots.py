"""A password slot of the server: the statements of the section "Password slot", one method each."""
import hashlib
import hmac

from . import framing, oprf
from .framing import Refused, b64, unb64

CLOCKS = 60  # By so many seconds the clocks of two nodes may differ.


class Slot:
    def __init__(self, offered, lock):
        self.slot = offered["slot"]
        self.gen = offered["gen"]
        self.assisted = offered["mode"] == "assisted"
        self.k = oprf.random_scalar() if self.assisted else None
        self.public = b64(oprf.serialize(oprf.public_of(self.k))) if self.k else None
        self.seed = (self.k or 0).to_bytes(48, "big")
        self.max, self.cap, self.delays = lock["max"], lock.get("cap", lock["max"]), lock.get("delays", [])
        self.n = self.floor = self.unconfirmed = self.cleared = self.next_at = self.at = 0
        self.forgive_after = self.request = self.blinded = self.cur = self.next = None
        self.confirms = {}
        self.pending = None

    def evaluation(self, blinded, pending=False):
        """By k, or by the k' of a change that has begun."""
        k, generation = (self.pending, self.gen + 1) if pending else (self.k, self.gen)
        evaluated, proof = oprf.evaluate(k, blinded)
        public = b64(oprf.serialize(oprf.public_of(k))) if pending else self.public
        return {"slot": self.slot, "gen": generation, "pk": public, "evaluated": b64(oprf.serialize(evaluated)),
                "proof": b64(proof)}

    def status(self, now):
        state = "SHREDDED" if self.k is None else "LOCKED" if self.n - self.floor >= self.max else "OPEN"
        return {"slot": self.slot, "gen": self.gen, "state": state, "tries": max(0, self.max - self.n + self.floor),
                "spare": max(0, self.cap - self.unconfirmed), "wait": max(0, self.next_at - now)}

    def unl(self):
        """The same for each answer to the same n."""
        framed = framing.frame("unl", self.slot, self.gen, self.n)
        return b64(hmac.new(self.seed, framed, hashlib.sha256).digest()[:16])

    def unlock(self, content, last, made, now):
        """Counts, or says why not; `made` is when the proof's nonce was made."""
        hashed = framing.ratchet_hash(unb64(content["r"]))
        same = (self.request, self.blinded) == (content["rid"], content["blinded"])
        if self.k is None:
            raise Refused("k was destroyed", "shredded")
        if content["gen"] != self.gen:
            raise Refused("another generation: see status", "wrong_generation")
        if last is not None and last["slot"] == self.slot and last["gen"] == self.gen and last["n"] > self.n:
            raise Refused("the server was restored from a backup", "server_rolled_back")
        if self.cur is not None and hashed != self.next and not (
                hashed == self.cur and self.next in (None, content["next"])):
            if made <= self.at + CLOCKS:
                raise Refused("perhaps a delayed copy of an older request", "use_nonce")
            raise Refused("fork" if hashed == self.cur else "stale", "container_suspect")
        if not same:
            if self.unconfirmed >= self.cap:
                self.k = None
                raise Refused("too many evaluations were never confirmed", "locked")
            if self.n - self.floor >= self.max:
                raise Refused("locked until the user authenticates", "locked")
            if self.next_at > now:
                raise Refused(f"{self.next_at - now} seconds", "wait")
            self.n += 1
            self.unconfirmed += 1
            tried = self.n - self.floor
            self.next_at = now + (self.delays[min(tried, len(self.delays)) - 1] if self.delays else 0)
        self.at, self.request, self.blinded = now, content["rid"], content["blinded"]
        self.cur, self.next = hashed, content["next"]
        return {"unl": self.unl(), "n": self.n, "tries": self.max - self.n + self.floor,
                "spare": self.cap - self.unconfirmed, "wait": max(0, self.next_at - now)}

    def confirm(self, evaluation, messages, now):
        n = evaluation["n"]
        if n in self.confirms:
            return
        if n > self.n:
            raise Refused("an evaluation that this row does not know", "server_rolled_back")
        self.confirms[n] = {"unl": evaluation["unl"], "evaluated": evaluation["iat"], "confirmed": now, "taken": None,
                            "gen": evaluation["gen"], **messages}
        if self.forgive_after is not None and n > self.forgive_after:
            self.unconfirmed, self.cleared, self.forgive_after = self.n - n, n, None
        elif n > self.cleared:
            self.unconfirmed -= 1
        self.floor = max(self.floor, n)
        if self.n == n:
            self.next_at = 0

    def find(self, unl, now):
        """A confirmed evaluation that a decision may take."""
        for n, one in self.confirms.items():
            if hmac.compare_digest(one["unl"], unl) and one["taken"] is None and one["evaluated"] > now - 300:
                return n, one
        raise Refused("no confirmed evaluation of the last five minutes", "unlock_required")

    def take(self, unl, dh, now):
        """Spends it for one decision."""
        n, one = self.find(unl, now)
        one["taken"] = dh
        return {**one, "unlock": {"slot": self.slot, "gen": one["gen"], "n": n, "evaluated": one["evaluated"],
                                  "confirmed": one["confirmed"]}}

    def take_newest(self, by, now):
        """Spends the newest confirmed evaluation for a renewal, which does not name one."""
        newest = self.confirms.get(max(self.confirms, default=None))
        if newest is None or newest["taken"] is not None or newest["evaluated"] <= now - 300:
            raise Refused("no confirmed evaluation of the last five minutes", "unlock_required")
        newest["taken"] = by

    def begin_change(self, change, now):
        """Takes the evaluation that the change names, which a repetition names again, and makes k'."""
        if self.k is None:
            raise Refused("k was destroyed", "shredded")
        if change["from"] != self.gen:
            raise Refused("another generation: see status", "wrong_generation")
        taken = f"change:{self.gen}"
        for one in self.confirms.values():
            if hmac.compare_digest(one["unl"], change["unl"]) and one["taken"] in (None, taken) and (
                    one["evaluated"] > now - 300):
                one["taken"] = taken
                self.pending = oprf.random_scalar()
                return
        raise Refused("no confirmed evaluation of the last five minutes", "unlock_required")

    def finish_change(self, change):
        """The k' that the change names takes the place of k. A repetition finds it there."""
        if (change["to"], change["pk"]) == (self.gen, self.public) and self.pending is None:
            return
        if change["from"] != self.gen or self.pending is None:
            raise Refused("another generation: see status", "wrong_generation")
        public = b64(oprf.serialize(oprf.public_of(self.pending)))
        if change["pk"] != public:
            raise Refused("another pending key than the one that the password was evaluated by", "wrong_generation")
        self.k, self.pending, self.gen, self.public = self.pending, None, change["to"], public

    def unlock_by_user(self):
        """After a fresh authentication: the next confirmed evaluation clears `unconfirmed`."""
        self.floor = self.forgive_after = self.n
        self.next_at = 0
