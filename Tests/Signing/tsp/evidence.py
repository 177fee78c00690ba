"""The verifier of bundles: four lists, and an exit status. It needs no server and no clock."""
import hashlib

from . import framing, jose, messages, oprf, strict_json
from .framing import Refused, b64, unb64

LIMIT = 16 << 20
CLOCKS = 60  # By so many seconds the clocks of two nodes may differ.
ALWAYS = ["the person in front of the device", "that the key is the user's, and not one of the server's own",
          "what was to be seen on the screen",
          "the time, if a key of the server was ever stolen (no outside timestamp)"]
OUTCOME = {"approve": "APPROVED", "deny": "DENIED", "report": "REPORTED", "cancel": "CANCELED"}
BUNDLE = messages.members({
    "v": messages.version, "iss": messages.issuer, "identity": messages.array(messages.key, 1, 17),
    "next": messages.array(messages.compact, 0, 16), "previous": messages.array(messages.compact, 0, 16),
    "certs": messages.array(messages.compact, 1, 64),
    "enrolments": messages.array(messages.members({
        "record": messages.compact, "enrol": messages.compact, "offer": messages.compact,
        "endorsements": messages.array(messages.compact, 0, 2)}), 1, 1001),
    "transactions": messages.array(messages.members({
        "txd?": messages.compact, "request?": messages.pattern("[A-Za-z0-9_-]*"),
        "decision": messages.compact, "possession?": messages.compact, "receipt": messages.compact,
        "eval?": messages.compact, "confirm?": messages.compact}), 1, 100)})


def kid_of(compact):
    """Who claims to have signed; None if this is no message at all."""
    try:
        return jose.Unverified(compact).kid
    except Refused:
        return None


class Unreadable(Exception):
    """The file is no bundle: exit status 1."""


class Verifier:
    def __init__(self, data, trust=None):
        """`trust` is a thumbprint, or None."""
        self.established, self.attested, self.contradicted = [], [], []
        self.missing = list(ALWAYS)
        self.trust = trust
        self.root = False
        if len(data) > LIMIT:
            raise Unreadable("more than 16 MiB")
        try:
            self.bundle = strict_json.parse_object(data)
            BUNDLE(self.bundle, "bundle")
        except Refused as refused:
            raise Unreadable(str(refused)) from None
        self.iss = self.bundle["iss"]
        self.verify()

    @property
    def exit_status(self):
        if self.contradicted or (self.trust and not self.root):
            return 2
        return 0 if self.trust else 64

    def expect(self, holds, what):
        if not holds:
            self.contradicted.append(what)
        return holds

    def attempt(self, what, action):
        """The value of `action`; None, and a contradiction, if it is refused."""
        try:
            return action()
        except Refused as refused:
            self.contradicted.append(f"{what}: {refused.detail}")
            return None

    # --- identity keys and certificates ------------------------------------------------------------------------------

    def verify(self):
        keys = self.bundle["identity"]
        kids = [jose.thumbprint(one) for one in keys]
        self.keys = dict(zip(kids, keys))
        self.root = self.trust in kids
        if self.trust and not self.root:
            self.contradicted.append("identity: the trusted key is not in the bundle")
        self.until = self.chain(kids, kids.index(self.trust) if self.root else 0)
        self.certs = {}
        for at, compact in enumerate(self.bundle["certs"]):
            self.attempt(f"certs[{at}]", lambda text=compact: self.certificate(text))
        self.newest = self.device = None
        self.sets = {}
        for at, entry in enumerate(self.bundle["enrolments"]):
            self.enrolment(f"enrolments[{at}]", at, entry)
        for at, entry in enumerate(self.bundle["transactions"]):
            Decision(self, f"transactions[{at}]", entry).verify()
        if self.newest:
            self.attested.insert(0, f"the keys belonged to {self.newest['sub']} ({self.newest['user']})")

    def chain(self, kids, root):
        """For each identity key until when what it certified counts: None for ever, 0 not at all."""
        until = {kids[root]: None}
        forward = {}
        for kind in ("next", "previous"):
            for at, compact in enumerate(self.bundle[kind]):
                self.attempt(f"{kind}[{at}]", lambda one=kind, text=compact: self.readable(one, text, forward))
        for at in range(len(kids) - 1):
            if at >= root:
                self.attempt(f"next[{at}]", lambda one=at: self.link("next", one, kids, until))
        for at in range(root - 1, -1, -1):
            self.attempt(f"previous[{at}]", lambda one=at: self.link("previous", one, kids, until))
        for kid in kids:
            if kid not in until:
                self.expect(False, f"identity: nothing leads to {kid}")
                until[kid] = 0
        return until

    def readable(self, kind, compact, forward):
        """Each link is a good one, also where nothing depends on it."""
        unverified = jose.Unverified(compact)
        if unverified.kid not in self.keys:
            raise Refused("signed by no identity key of the bundle")
        content = messages.read(unverified, f"tsp-{kind}+jwt", self.keys[unverified.kid])
        if content["iss"] != self.iss:
            raise Refused("iss: another issuer's")
        other = jose.thumbprint(content["jwk"])
        if kind == "next":
            forward[unverified.kid, other] = content["seq"]
        elif forward.get((other, unverified.kid), content["seq"]) != content["seq"]:
            raise Refused("seq: not that of the next message that led here")

    def link(self, kind, at, kids, until):
        """identity[at + 1] succeeded identity[at]."""
        signer, other = (kids[at], kids[at + 1]) if kind == "next" else (kids[at + 1], kids[at])
        for compact in self.bundle[kind]:
            unverified = jose.Unverified(compact)
            if unverified.kid != signer:
                continue
            content = messages.read(unverified, f"tsp-{kind}+jwt", self.keys[signer])
            if content["iss"] == self.iss and jose.thumbprint(content["jwk"]) == other:
                if signer in until and kind == "next":
                    until[other] = None
                elif signer in until:
                    bounds = [one for one in (content["until"], until[signer]) if one is not None]
                    until[other] = min(bounds)
                return
        raise Refused(f"no {kind} leads from {signer} to {other}")

    def certificate(self, compact):
        unverified = jose.Unverified(compact)
        if unverified.kid not in self.keys:
            raise Refused("signed by no identity key of the bundle")
        content = messages.read(unverified, "tsp-cert+jwt", self.keys[unverified.kid])
        if content["iss"] != self.iss:
            raise Refused("another issuer's")
        self.certs.setdefault(jose.thumbprint(content["jwk"]), []).append((content, unverified.kid))

    def by_server(self, compact, typ):
        """A message that a certified key signed, at a time when one of the key's certificates counted."""
        unverified = jose.Unverified(compact)
        found = [one for one in self.certs.get(unverified.kid, []) if one[0]["use"] == "sig"]
        if not found:
            raise Refused("signed by a key that nobody certified")
        content = messages.read(unverified, typ, found[0][0]["jwk"])
        if content["iss"] != self.iss:
            raise Refused("iss: another issuer's")
        found = [identity for one, identity in found if one["iat"] <= content["iat"] <= one["exp"]]
        if not found:
            raise Refused("iat: outside of the certificate's time")
        if all(self.until[one] is not None and content["iat"] > self.until[one] for one in found):
            raise Refused("iat: after the identity key was replaced")
        return content

    # --- enrolments --------------------------------------------------------------------------------------------------

    def enrolment(self, where, at, entry):
        record = self.attempt(f"{where}.record", lambda: self.by_server(entry["record"], "tsp-record+jwt"))
        offer = self.attempt(f"{where}.offer", lambda: self.by_server(entry["offer"], "tsp-offer+jwt"))
        enrol = self.attempt(f"{where}.enrol", lambda: messages.read_self_signed(
            entry["enrol"], "tsp-enrol+jwt",
            lambda content: next((one["jwk"] for one in content["keys"] if one["usage"] == "device"), None)))
        if None in (record, offer, enrol):
            self.newest = None
            return
        previous, self.previous_keys = getattr(self, "last_record", None), getattr(self, "keys_of_record", {})
        self.expect(record["seq"] == at, f"{where}.record: seq")
        if at:
            self.expect(previous == record.get("prev"), f"{where}.record: prev")
        self.expect(record["enrol"] == framing.enrolment_hash(entry["enrol"]), f"{where}.record: enrol")
        self.expect(record["identity"] in self.keys, f"{where}.record: identity")
        self.expect(record["identity"] == offer["identity"], f"{where}.offer: identity")
        self.expect(enrol["offer"] == framing.offer_hash(entry["offer"]), f"{where}.enrol: offer")
        self.expect(enrol["aud"] == self.iss, f"{where}.enrol: aud")
        for member in ("pid", "sub"):
            self.expect(record[member] == enrol[member], f"{where}.enrol: {member}")
        self.expect(record["aud"] == enrol["did"] == offer["did"], f"{where}.enrol: did")
        self.expect(offer["aud"] == (self.device if at else kid_of(entry["enrol"])), f"{where}.offer: aud")
        for member in ("pid", "commit"):
            self.expect(record[member] == offer[member], f"{where}.offer: {member}")
        self.expect(record["keys"] == [one["kid"] for one in enrol["keys"]], f"{where}.record: keys")
        self.key_list(where, offer, enrol)
        transcript = framing.transcript(
            record["identity"], self.iss, enrol["pid"], enrol["did"], enrol["sub"], entry["offer"],
            unb64(enrol["nonceD"]), unb64(enrol["nonceS"]), enrol["keys"])
        self.expect(record["transcript"] == b64(hashlib.sha256(transcript).digest()), f"{where}.record: transcript")
        if at:
            self.endorsements(where, entry, record)
        self.newest, self.last_record = record, framing.record_hash(entry["record"])
        self.offer, self.enrol = offer, enrol
        self.keys_of_record = {one["kid"]: one for one in enrol["keys"]}
        self.device = next(one["kid"] for one in enrol["keys"] if one["usage"] == "device")
        self.sets[self.last_record] = KeySet(record, offer, self.keys_of_record, self.device)
        self.established.append(f"the key {self.device} signed the key list of enrolment {at}")

    def key_list(self, where, offer, enrol):
        offered = [one for one in offer["keys"] if one["usage"] != "otp"]
        if not self.expect(len(offered) == len(enrol["keys"]), f"{where}.enrol: keys"):
            return
        device = next(one["kid"] for one in enrol["keys"] if one["usage"] == "device")
        for at, (wanted, one) in enumerate(zip(offered, enrol["keys"])):
            same = all(wanted.get(name) == one.get(name) for name in ("usage", "label", "slot", "policy"))
            self.expect(same, f"{where}.enrol: keys[{at}] is not as offered")
            if "pop" in one:
                pop = self.attempt(f"{where}.enrol.keys[{at}].pop", lambda entry=one: messages.read(
                    entry["pop"], "tsp-pop+jwt", entry["jwk"]))
                self.expect(pop is None or pop == {
                    "v": 1, "aud": self.iss, "did": enrol["did"], "nonceS": enrol["nonceS"], "device": device,
                    "usage": one["usage"], "label": one["label"], "kid": one["kid"]}, f"{where}.enrol: keys[{at}].pop")

    def endorsements(self, where, entry, record):
        """Those that the record claims, each by an old key."""
        found = set()
        for at, compact in enumerate(entry["endorsements"]):
            key = self.previous_keys.get(kid_of(compact))
            if not self.expect(key is not None, f"{where}.endorsements[{at}]: not by an old key"):
                continue
            content = self.attempt(f"{where}.endorsements[{at}]", lambda text=compact, by=key: messages.read(
                text, "tsp-endorse+jwt", by["jwk"]))
            if content and self.expect((content["aud"], content["did"], content["enrol"]) == (
                    self.iss, record["aud"], record["enrol"]), f"{where}.endorsements[{at}]: another enrolment's"):
                found.add({"device": "device", "sign": "sign", "auth": "sign"}.get(key["usage"]))
        self.expect(found == set(record["by"]) & {"device", "sign"}, f"{where}.record: by")
        if "sign" not in found:
            self.missing.append("that the new keys belong to the same person (a reset, without an old signature)")

    def report(self):
        """The four lists."""
        lists = [("Established by cryptography", self.established),
                 (f"Attested only by the server {self.trust or '(no key is trusted)'}", self.attested),
                 ("Not established", list(dict.fromkeys(self.missing))), ("Contradicted", self.contradicted)]
        lines = []
        for title, rows in lists:
            lines += [f"{title}:"] + [f"  - {row}" for row in rows or ["nothing"]]
        return "\n".join(lines)


class KeySet:
    """The keys of one record, with the offer that says how they are protected."""

    def __init__(self, record, offer, keys, device):
        self.record, self.offer, self.keys, self.device = record, offer, keys, device


class Decision:
    """One transaction of the bundle, judged by the key set whose record the receipt names."""

    def __init__(self, verifier, where, entry):
        self.all, self.where, self.entry = verifier, where, entry

    def expect(self, holds, what):
        return self.all.expect(holds, f"{self.where}.{what}")

    def attempt(self, member, action):
        return self.all.attempt(f"{self.where}.{member}", action)

    def verify(self):
        entry = self.entry
        receipt = self.attempt("receipt", lambda: self.all.by_server(entry["receipt"], "tsp-receipt+jwt"))
        self.set = receipt and self.all.sets.get(receipt["record"])
        if not receipt or not self.expect(self.set is not None, "receipt: record"):
            return
        record = self.set.record
        document = "txd" in entry and self.attempt("txd", lambda: self.all.by_server(entry["txd"], "tsp-txd+jwt"))
        key = self.set.keys.get(kid_of(entry["decision"]))
        self.expect(key is not None, "decision: kid")
        decision = key and self.attempt("decision", lambda: messages.read(
            entry["decision"], "tsp-decision+jwt", key["jwk"]))
        if None in (receipt, document, decision, key):
            return
        dh = framing.decision_hash(entry["decision"])
        label = self.blind(decision, key) if "blind" in decision else self.shown(document, decision, key)
        self.request(receipt, document)
        for name, value in (("aud", self.all.iss), ("did", record["aud"]), ("sub", record["sub"]),
                            ("txn", receipt["txn"])):
            self.expect(decision[name] == value, f"decision: {name}")
        self.possession(decision, key, dh)
        self.evaluation(decision, key, receipt)
        self.receipt(receipt, document, decision, key, dh)
        self.all.established.append(f"the key {key['kid']} signed \"{decision['status']}\" (\"{label}\")")
        self.all.attested += [
            f"the decision was made at {receipt['iat']}", f"the key was active since {receipt['since']}",
            f"the audit record {receipt['audit']}"]

    def blind(self, decision, key):
        self.expect("txd" not in self.entry, "txd: beside a blind refusal")
        self.expect(key["kid"] == self.set.device, "decision: a blind refusal by another key than the device key")
        self.all.missing.append("what was shown (a blind refusal)")
        return decision["status"]

    def shown(self, document, decision, key):
        if not self.expect(bool(document), "txd: is missing"):
            return "?"
        usages = {kid: one["usage"] for kid, one in self.set.keys.items()}
        approving = "auth" if document["kind"] == "authentication" else "sign"
        for status in document["statuses"]:
            self.expect(set(status["kids"]) <= set(usages), "txd: kids")
            if status["effect"] == "approve":
                may = all(usages.get(kid) == approving for kid in status["kids"])
                self.expect(may, "txd: kids that may not approve")
        self.expect(document["aud"] == decision["did"] and document["sub"] == decision["sub"], "txd: aud, sub")
        self.expect(document["txn"] == decision["txn"], "txd: txn")
        self.expect(decision["nonce"] == document["nonce"], "decision: nonce")
        self.expect(decision["txh"] == framing.document_hash(self.entry["txd"]), "decision: txh")
        status = next((one for one in document["statuses"] if one["name"] == decision["status"]), None)
        if not self.expect(status is not None, "decision: status"):
            return "?"
        self.expect(status["effect"] == decision["effect"], "decision: effect")
        self.expect(key["kid"] in status["kids"], "decision: kids")
        wrong = {"none": "reason" in decision, "required": "reason" not in decision}.get(status["reason"])
        self.expect(not wrong, "decision: reason")
        needed = "match" in document and decision["effect"] == "approve"
        self.expect(("match" in decision) == needed, "decision: match")
        self.expect(decision["dsp"] == framing.display_hash(document, status["label"], decision.get("match")),
                    "decision: dsp")
        texts = [document["title"]] + [f"{one['label']}: {one['display']}" for one in document["fields"]]
        self.all.established.append(f"the document was signed by a certified key, with these texts: {texts}")
        return status["label"]

    def request(self, receipt, document):
        self.expect(not document or document["req"] == receipt["req"], "receipt: req")
        if "request" not in self.entry:
            self.all.missing.append("what was asked (no request)")
            return
        framed = self.attempt("request", lambda: unb64(self.entry["request"]))
        if framed is not None and self.expect(b64(hashlib.sha256(framed).digest()) == receipt["req"], "request"):
            self.all.established.append(f"the request is the one with {len(framed)} framed bytes in the bundle")

    def possession(self, decision, key, dh):
        if not self.expect(("possession" in self.entry) == (key["kid"] != self.set.device), "possession"):
            return
        if "possession" in self.entry:
            jwk = self.set.keys[self.set.device]["jwk"]
            shown = self.attempt("possession", lambda: messages.read(
                self.entry["possession"], "tsp-possession+jwt", jwk))
            if shown and self.expect(shown == {"v": 1, "aud": self.all.iss, "did": decision["did"],
                                               "txn": decision["txn"], "dh": dh}, "possession: another decision's"):
                self.all.established.append(f"the key {self.set.device} signed the same decision")

    def evaluation(self, decision, key, receipt):
        slots = {one["slot"]: one for one in self.set.offer["slots"]}
        slot = slots.get(key.get("slot"), {"mode": None})
        assisted = slot["mode"] == "assisted"
        if slot["mode"] == "local":
            self.all.missing.append("that the PIN was known (local)")
        there = {"eval" in self.entry, "confirm" in self.entry, "unl" in decision, "unlock" in receipt}
        if not self.expect(there == {assisted}, "eval, confirm, unl, unlock") or not assisted:
            return
        evaluation = self.attempt("eval", lambda: self.all.by_server(self.entry["eval"], "tsp-eval+jwt"))
        by = self.set.keys.get(kid_of(self.entry["confirm"]), {})
        self.expect(by.get("slot") == slot["slot"], "confirm: kid")
        confirm = by and self.attempt("confirm", lambda: messages.read(
            self.entry["confirm"], "tsp-confirm+jwt", by["jwk"]))
        if not evaluation or not confirm:
            return
        self.expect((evaluation["aud"], evaluation["purpose"], evaluation["slot"]) == (
            decision["did"], "unlock", slot["slot"]), "eval: aud, purpose, slot")
        if evaluation["gen"] == slot["gen"]:
            self.expect(evaluation["pk"] == slot["pk"], "eval: pk")
        same = {one: evaluation.get(one) for one in ("slot", "gen", "n", "unl")}
        self.expect(confirm == {"v": 1, "aud": self.all.iss, "did": decision["did"], **same,
                                "eval": framing.evaluation_hash(self.entry["eval"])}, "confirm: another evaluation's")
        self.expect(decision["unl"] == evaluation.get("unl"), "decision: unl")
        unlock = receipt["unlock"]
        self.expect({one: unlock[one] for one in ("slot", "gen", "n")} == {
            one: evaluation.get(one) for one in ("slot", "gen", "n")}, "receipt: unlock")
        self.expect(unlock["evaluated"] == evaluation["iat"] and receipt["iat"] < evaluation["iat"] + 300,
                    "receipt: unlock's evaluated")
        self.expect(unlock["evaluated"] - CLOCKS <= unlock["confirmed"] <= receipt["iat"] + CLOCKS,
                    "receipt: unlock's confirmed")
        self.attempt("eval", lambda: oprf.parse_element(unb64(evaluation["evaluated"])))
        self.all.established.append(f"the key {by['kid']} confirmed evaluation {evaluation['n']}")
        self.all.attested.append("that the PIN was counted")

    def receipt(self, receipt, document, decision, key, dh):
        record = self.set.record
        wanted = {"aud": decision["did"], "txn": decision["txn"], "sub": record["sub"], "dh": dh,
                  "status": decision["status"], "effect": decision["effect"], "state": OUTCOME[decision["effect"]],
                  "kid": key["kid"], "device": self.set.device,
                  "txh": decision.get("txh"), "match": True if "match" in decision else None}
        for name, value in wanted.items():
            self.expect(receipt.get(name) == value, f"receipt: {name}")
        policies = {one["id"]: one for one in self.set.offer["policies"]}
        kind = policies.get(key["policy"], {})
        knowledge = {"password": ["pin"], "bioPassword": ["user"]}[kind["type"]] if kind.get(
            "mode") == "assisted" else []
        self.expect(receipt["amr"] == ["pop"] + knowledge, "receipt: amr")
        if document:
            self.expect(receipt["rp"] == document["rp"]["id"], "receipt: rp")
            self.expect(document["iat"] - CLOCKS <= receipt["iat"] < document["exp"], "receipt: iat")
        if receipt.get("match"):
            self.all.attested.append("that the number was right")
        if decision["effect"] == "approve":
            self.expect(record["approvals"] <= receipt["iat"], "receipt: before the container might approve")
