"""A device: everything that it knows is in one JSON file, which is written before each step that needs it."""
import fcntl
import json
import os
import time

from . import framing, invite, jose, messages, oprf, pin, strict_json, trust
from .framing import Refused, b64, unb64

SEALED = {"provision/complete", "renew/complete", "transactions/list", "transactions/fetch",
          "transactions/create"}
REPLIES = {"provision/start": "offer", "provision/evaluate": "eval", "provision/commit": "nonce",
           "provision/complete": "enrolled", "transactions/list": "list", "transactions/fetch": "fetched",
           "transactions/decide": "receipt", "slots/unlock": "eval", "slots/change-start": "eval",
           "renew/start": "offer", "transactions/create": "fetched",
           "renew/evaluate": "eval", "renew/commit": "nonce", "renew/complete": "enrolled"}


class Problem(Exception):
    """The server's refusal. It is not signed, so it is only a hint."""

    def __init__(self, status, body):
        self.status = status
        self.body = body
        self.code = body.get("code", "")
        super().__init__(f"{status} {self.code}: {body.get('detail', '')}")


def new_id():
    return b64(os.urandom(16))


class Device:
    stage = "provision"

    def __init__(self, transport, path=None, state=None, fingerprint=None):
        self.transport = transport
        self.path = path
        self.fingerprint = fingerprint
        self.nonce = None
        self.state = state or {}
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.state = json.load(file)

    def save(self):
        if not self.path:
            return
        number = os.open(f"{self.path}.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with open(number, "w", encoding="utf-8") as file:
            json.dump(self.state, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{self.path}.new", self.path)

    # --- who is the server -------------------------------------------------------------------------------------------

    @property
    def iss(self):
        return self.state["iss"]

    def configuration(self, iss=None, idk=None):
        """Reads the configuration, and checks everything from the pinned key on. `idk` is that of a QR code."""
        iss = iss or self.iss
        status, headers, body = self.transport("GET", f"{iss}/configuration", {}, None)
        self.nonce = headers.get("tsp-nonce", self.nonce)
        if status != 200:
            raise Problem(status, {})
        content = messages.read_configuration(strict_json.parse_object(body))
        if content["iss"] != iss:
            raise Refused("the configuration is another issuer's")
        if idk is not None and jose.thumbprint(content["identity"]) != idk:
            raise Refused("the identity key is not the one of the QR code")
        if "pin" in self.state:
            identity = trust.walk(self.state["pin"], content, iss)
        else:
            identity = content["identity"]
        certs, least = trust.certificates(content, identity, iss, self.state.get("min", 1))
        if not {"sig", "enc"} <= {one["use"] for one in certs.values()}:
            raise Refused("the identity key certified no key to sign or to encrypt with")
        self.state.update(iss=iss, pin=identity, min=least, certs=certs)
        self.save()
        return content

    def encryption_key(self):
        keys = [one for one in self.state["certs"].values() if one["use"] == "enc"]
        return max(keys, key=lambda one: one["gen"])["jwk"]

    def from_server(self, compact, typ):
        """A message of the server. An unknown key, or a certificate of another time, makes the device read the
        configuration again, once."""
        unverified = jose.Unverified(compact)
        known = self.state["certs"].get(unverified.kid)
        when = strict_json.parse_object(unverified.content).get("iat")
        if known is None or (isinstance(when, int) and not known["iat"] <= when <= known["exp"]):
            self.configuration()
        return trust.read_server(self.state["certs"], compact, typ, self.iss)

    def sign(self, typ, content, key):
        return jose.sign(typ, content, key)

    @property
    def proof_key(self):
        return self.device_key

    # --- calls -------------------------------------------------------------------------------------------------------

    def key(self, label):
        return jose.Key(int(self.state["keys"][label]["scalar"], 16))

    @property
    def device_key(self):
        return self.key(self.state["device_label"])

    def exchange(self, path, request, proof_key):
        """One call, with what may be repeated once: another nonce, another key of the server."""
        repeated = set()
        while True:
            if self.nonce is None:
                self.configuration()
            url = f"{self.iss}/device/{path}"
            encryption = self.encryption_key()
            body, headers, proof = request(encryption, url, self.nonce, proof_key)
            status, answer, data = self.transport("POST", url, headers, body)
            self.nonce = answer.get("tsp-nonce", self.nonce)
            if status == 200:
                if answer.get("content-type") != "application/jose":
                    raise Refused("an answer of another type")
                return proof, data.decode("ascii", "replace")
            try:
                problem = Problem(status, json.loads(data))
            except (ValueError, AttributeError):
                problem = Problem(status, {})
            if problem.code not in ("use_nonce", "unknown_key") or problem.code in repeated:
                raise problem
            repeated.add(problem.code)
            if problem.code == "unknown_key":
                self.configuration()

    def call(self, path, content):
        messages.REQUESTS[path](content, path)
        did = self.state.get("did")
        if did is None:
            raise Refused("there is no container yet: enrol first", "invalidContainer")

        def request(encryption, url, nonce, key):
            body = jose.encrypt(strict_json.write(content), encryption, "json", did, self.iss).encode()
            proof = self.sign("tsp-proof+jwt", {
                "v": 1, "aud": self.iss, "did": did, "htm": "POST", "htu": url, "bh": b64(framing.hashlib.sha256(
                    body).digest()), "nonce": nonce, "jti": new_id()}, key)
            return body, {"Content-Type": "application/jose", "TSP-Proof": proof}, proof

        proof, answer = self.exchange(path, request, self.proof_key)
        if path in SEALED:
            key = self.key(self.state["transport_label"])
            answer = jose.Sealed(answer).opened(key, "JWT", self.iss, did).decode("ascii", "replace")
        aud = self.proof_key.kid if path == "renew/start" else did
        return self.reply(path, answer, framing.request_hash(proof), aud)

    def reply(self, path, answer, rqh, aud):
        typ = f"tsp-{REPLIES.get(path, 'status')}+jwt"
        content = self.from_server(answer, typ)
        if content["aud"] != aud:
            raise Refused("the reply is for another device")
        if typ != "tsp-receipt+jwt" and content["rqh"] != rqh:
            raise Refused("the reply is to another request")
        self.answer = answer
        return content

    # --- enrolment ---------------------------------------------------------------------------------------------------

    def start(self, code=None, iss=None, qr=None, modes=("device", "local", "assisted")):
        """With the text of a QR code, or with a typed code and the issuer's URL."""
        idk = None
        if qr is not None:
            unverified = jose.Unverified(qr)
            claimed = strict_json.parse_object(unverified.content)
            messages.check("tsp-invite+jwt", claimed)
            code, iss, idk = claimed["code"], claimed["iss"], claimed["idk"]
        code = invite.typed(code)
        self.configuration(iss, idk)
        if qr is not None:
            self.from_server(qr, "tsp-invite+jwt")
        device = jose.Key()
        self.state.update(device_label="device", qr=qr is not None, keys={"device": {
            "usage": "device", "kid": device.kid, "jwk": device.jwk, "scalar": hex(device.scalar)}})
        self.save()

        def request(encryption, _, nonce, key):
            message = self.sign("tsp-start+jwt", {
                "v": 1, "aud": self.iss, "code": code, "nonce": nonce, "jwk": key.jwk, "modes": list(modes),
                "info": {"brand": "Python", "os": "any", "sdk": "tsp.py", "keystore": "software"}}, key)
            body = jose.encrypt(strict_json.write({"start": message}), encryption, "json", key.kid, self.iss).encode()
            return body, {"Content-Type": "application/jose"}, message

        message, answer = self.exchange("provision/start", request, device)
        offer = self.reply("provision/start", answer, framing.request_hash(message), device.kid)
        self.accept(offer, modes)
        self.state.update(offer=offer, offer_text=self.answer, did=offer["did"], issuer_name=offer["name"])
        self.save()
        return offer

    def accept(self, offer, modes):
        """What a device checks of an offer besides its form."""
        if offer["identity"] != jose.thumbprint(self.state["pin"]):
            raise Refused("the offer names another identity key")
        if any(one["mode"] not in modes for one in offer["slots"]):
            raise Refused("a mode that this device does not have", "unsupportedOperation")
        if offer["commit"] == "exchange" and (not self.state["qr"] or any(
                one["usage"] in ("sign", "auth") for one in offer["keys"])):
            raise Refused("no digits, where digits are needed")
        for one in offer["slots"]:
            if one["gen"] != 0:
                raise Refused("a first enrolment begins with generation 0")
            if "pk" in one:
                oprf.parse_element(unb64(one["pk"]))

    def prepare(self, password=None):
        """Makes the keys, and seals those that the password guards."""
        offer = self.state["offer"]
        policies = {one["id"]: one for one in offer["policies"]}
        slots = {one["slot"]: {**one, "salt": b64(os.urandom(16))} for one in offer["slots"]}
        keys, labels = {}, {}
        for one in offer["keys"]:
            if one["usage"] == "otp":
                continue
            if one["usage"] == "device" and "device_label" in self.state:
                entry = {**self.state["keys"][self.state["device_label"]], **one}
            else:
                made = jose.Key()
                entry = {**one, "kid": made.kid, "jwk": made.jwk, "scalar": hex(made.scalar)}
            labels[f"{one['usage']}_label"] = one["label"]
            keys[one["label"]] = entry
        for slot in slots.values():
            rules = next(policies[one["policy"]] for one in offer["keys"] if one.get("slot") == slot["slot"])
            if password is None:
                raise Refused("a password is needed", "passwordRequired")
            pin.check_rules(password, rules["password"])
            slot.update(kdf=rules["kdf"], r=b64(os.urandom(32)))
            self.seal_slot(slot, keys, password)
        self.state.update(keys=keys, slots=slots, device_label=labels["device_label"],
                          transport_label=labels["transport_label"])
        self.save()

    def seal_slot(self, slot, keys, password):
        salt = unb64(slot["salt"])
        s = pin.scrypt(password, salt, slot["kdf"])
        o = self.evaluate(slot, s)
        for one in keys.values():
            if one.get("slot") == slot["slot"]:
                kek, aad = self.kek(slot, one["kid"], s, o)
                scalar = int(one.pop("scalar"), 16)
                blob = pin.seal(kek, aad, pin.content(scalar, self.state["offer"]["iat"]))
                if pin.unseal(kek, aad, blob) != scalar:
                    raise Refused("a sealed key does not open", "secureData")
                one["blob"] = b64(blob)
                self.fresh = {**getattr(self, "fresh", {}), one["kid"]: scalar}

    def kek(self, slot, kid, s, o):
        salt = unb64(slot["salt"])
        where = (self.iss, self.state["did"], slot["slot"], kid, slot["gen"])
        aad = pin.associated(slot["mode"], *where, slot["kdf"], salt)
        if slot["mode"] == "local":
            return framing.kek_local(*where, salt, s), aad
        return framing.kek_assisted(*where, salt, s, o), aad

    def evaluate(self, slot, s):
        """o, for a slot that has no sealed key yet."""
        if slot["mode"] != "assisted":
            return None
        message = framing.oprf_input(self.iss, self.state["did"], slot["slot"], slot["gen"], s)
        scalar, blinded = oprf.blind(message)
        answer = self.call(f"{self.stage}/evaluate", {
            "slot": slot["slot"], "gen": slot["gen"], "rid": new_id(), "blinded": b64(oprf.serialize(blinded))})
        return self.finish(slot, "enrol", answer, message, scalar, blinded)

    def finish(self, slot, purpose, answer, message, scalar, blinded):
        if (answer["purpose"], answer["slot"], answer["gen"]) != (purpose, slot["slot"], slot["gen"]):
            raise Refused("an evaluation for something else")
        if answer["pk"] != slot["pk"]:
            raise Refused("the evaluation is by another key than the pinned one")
        evaluated = oprf.parse_element(unb64(answer["evaluated"]))
        oprf.check_proof(oprf.parse_element(unb64(slot["pk"])), blinded, evaluated, unb64(answer["proof"]))
        return oprf.finalize(message, scalar, evaluated)

    def key_entries(self):
        """The list of `enrol`, without the proofs of possession."""
        entries = []
        for one in self.state["offer"]["keys"]:
            if one["usage"] != "otp":
                made = self.state["keys"][one["label"]]
                entries.append({
                    "usage": one["usage"], "label": one["label"], "kid": made["kid"], "jwk": made["jwk"],
                    "policy": one["policy"], "keystore": "software+software" if "blob" in made else "software",
                    **({"slot": one["slot"]} if "slot" in one else {})})
        return entries

    def commit(self):
        if "nonceD" not in self.state:
            self.state["nonceD"] = b64(os.urandom(32))
            self.save()
        answer = self.call(f"{self.stage}/commit", {
            "commitment": framing.commitment(unb64(self.state["nonceD"]), self.key_entries()),
            "offer": framing.offer_hash(self.state["offer_text"])})
        if self.state.get("nonceS", answer["nonceS"]) != answer["nonceS"]:
            raise Refused("the server changed its nonce")
        self.state.update(nonceS=answer["nonceS"], sub=answer["sub"], user=answer["user"])
        self.save()
        return answer

    def complete(self, name=None, push=None):
        state = self.state
        if "enrol" not in state:
            entries = self.key_entries()
            for one in entries:
                if one["usage"] in ("sign", "auth"):
                    made = state["keys"][one["label"]]
                    key = jose.Key(int(made["scalar"], 16) if "scalar" in made else self.fresh[one["kid"]])
                    one["pop"] = self.sign("tsp-pop+jwt", {
                        "v": 1, "aud": self.iss, "did": state["did"], "nonceS": state["nonceS"],
                        "device": self.device_key.kid, "usage": one["usage"], "label": one["label"],
                        "kid": one["kid"]}, key)
            state["enrol"] = self.sign("tsp-enrol+jwt", {
                "v": 1, "aud": self.iss, "pid": state["offer"]["pid"], "did": state["did"], "sub": state["sub"],
                "offer": framing.offer_hash(state["offer_text"]), "nonceD": state["nonceD"],
                "nonceS": state["nonceS"], "keys": entries}, self.device_key)
            self.save()
        body = {"enrol": state["enrol"], **({"name": name} if name else {}), **({"pushId": push} if push else {})}
        answer = self.call(f"{self.stage}/complete", {**body, **self.endorsements()})
        for one in ("echo", "handle", "serial", "name", "exp", "renew"):
            state[one] = answer[one]
        self.save()
        return answer

    def endorsements(self):
        """Only a renewal has some."""
        return {}

    def confirm(self):
        return self.call(f"{self.stage}/confirm", {"echo": self.state["echo"]})

    def digits(self):
        """What the user types into the page."""
        state = self.state
        if self.fingerprint:
            return self.fingerprint(self.device_key.kid, jose.thumbprint(state["pin"]), state["did"])
        return framing.digits(framing.transcript(
            jose.thumbprint(state["pin"]), self.iss, state["offer"]["pid"], state["did"], state["sub"],
            state["offer_text"], unb64(state["nonceD"]), unb64(state["nonceS"]), self.key_entries()))

    def enrol(self, password=None, name=None, **invited):
        """All of it; the digits are what remains for the user."""
        self.start(**invited)
        self.prepare(password)
        self.commit()
        self.complete(name)
        self.confirm()
        return self.digits()

    # --- transactions ------------------------------------------------------------------------------------------------

    def status(self):
        answer = self.call("status", {})
        self.state["last_status"] = answer
        self.save()
        return answer

    def list(self, wait=0):
        """The ids of the open transactions that are meant for this container."""
        known = self.state.get("notices", [])
        answer = self.call("transactions/list", {"wait": wait, **({"seen": known} if known else {})})
        self.state["notices"] = [one["id"] for one in answer.get("notices", [])]
        self.save()
        found = []
        for compact in answer["ids"]:
            content = self.information(compact)
            if content is not None:
                found.append(content["txn"])
        return found

    def information(self, compact):
        """What a push message or a QR code says: `tds`, or None if it is meant for somebody else."""
        content = self.from_server(compact, "tsp-tds+jwt")
        if "claim" in content:
            return content
        mine = framing.handle(unb64(self.state["handle"]), self.iss, content["txn"])
        return content if content["h"] == mine else None

    def claim(self, tds):
        content = self.information(tds)
        if content is None or "claim" not in content:
            raise Refused("this id is not to be claimed")
        self.call("transactions/claim", {"tds": tds})
        return content["txn"]

    def create(self, message, label):
        """A record of this message, which the device begins by itself."""
        answer = self.call("transactions/create", {"message": message, "label": label, "rid": new_id()})
        document = self.accept_document(answer, None)
        asked = framing.named("tsp/1 details", message)
        if (document["kind"], document.get("text"), document["req"]) != ("record", message, asked):
            raise Refused("the document is not about this message")
        return document

    def fetch(self, txn):
        return self.accept_document(self.call("transactions/fetch", {"txn": txn}), txn)

    def accept_document(self, answer, txn):
        document = self.from_server(answer["txd"], "tsp-txd+jwt")
        own = {one["kid"]: one["usage"] for one in self.state["keys"].values()}
        approving = "auth" if document["kind"] == "authentication" else "sign"
        txn = txn or document["txn"]
        if (document["txn"], document["aud"], document["sub"]) != (txn, self.state["did"], self.state["sub"]):
            raise Refused("the document is another one")
        for status in document["statuses"]:
            if not set(status["kids"]) <= set(own):
                raise Refused("the document names a key that is not ours")
            if status["effect"] == "approve" and any(own[kid] != approving for kid in status["kids"]):
                raise Refused("an approval by a key that may not approve")
        self.state.setdefault("documents", {})[txn] = answer["txd"]
        self.save()
        return document

    def decide(self, txn, status, reason=None, number=None, password=None, blind=False):
        """Signs, stores what it signed, and sends it; a repetition sends the same bytes."""
        decided = self.state.setdefault("decisions", {})
        if txn not in decided:
            decided[txn] = self.blind_decision(txn, status, reason) if blind else self.decision(
                txn, status, reason, number, password)
            self.save()
        elif strict_json.parse_object(jose.Unverified(decided[txn]["decision"]).content)["status"] != status:
            raise Refused("another decision of this transaction waits for its answer", "already_decided")
        try:
            receipt = self.call("transactions/decide", decided[txn])
        except Problem as problem:
            if problem.code == "unlock_required":
                del decided[txn]
                self.save()
            raise
        if (receipt["txn"], receipt["dh"]) != (txn, framing.decision_hash(decided[txn]["decision"])):
            raise Refused("the receipt is for another decision")
        self.state.setdefault("receipts", {})[txn] = self.answer
        del decided[txn]
        self.save()
        return receipt

    def base_decision(self, txn):
        return {"v": 1, "aud": self.iss, "did": self.state["did"], "sub": self.state["sub"], "txn": txn}

    def blind_decision(self, txn, status, reason):
        content = {**self.base_decision(txn), "blind": True, "status": status, "effect": status,
                   **({"reason": reason} if reason else {}), "jti": new_id()}
        messages.check("tsp-decision+jwt", content)
        return {"decision": self.sign("tsp-decision+jwt", content, self.device_key)}

    def decision(self, txn, name, reason, number, password):
        compact = self.state.get("documents", {}).get(txn)
        if compact is None:
            raise Refused("fetch it first", "tx_not_fetched")
        document = strict_json.parse_object(jose.Unverified(compact).content)
        status = next((one for one in document["statuses"] if one["name"] == name), None)
        if status is None:
            raise Refused("the document has no such status", "status_not_allowed")
        if (reason is None and status["reason"] == "required") or (reason and status["reason"] == "none"):
            raise Refused("a reason is needed, or none is asked for", "status_not_allowed")
        if status["effect"] != "approve" or "match" not in document:
            number = None
        elif number is None:
            raise Refused("a number is needed", "invalidArgument")
        entry = next(one for one in self.state["keys"].values() if one["kid"] in status["kids"])
        key, unl = self.open_key(entry, password)
        content = {**self.base_decision(txn), "nonce": document["nonce"], "txh": framing.document_hash(compact),
                   "dsp": framing.display_hash(document, status["label"], number), "status": name,
                   "effect": status["effect"], **({"reason": reason} if reason else {}),
                   **({"match": number} if number else {}), **({"unl": unl} if unl else {}), "jti": new_id()}
        messages.check("tsp-decision+jwt", content)
        decision = {"decision": self.sign("tsp-decision+jwt", content, key)}
        if key.kid != self.device_key.kid:
            decision["possession"] = self.sign("tsp-possession+jwt", {
                "v": 1, "aud": self.iss, "did": self.state["did"], "txn": txn,
                "dh": framing.decision_hash(decision["decision"])}, self.device_key)
        return decision

    # --- keys behind a password --------------------------------------------------------------------------------------

    def open_key(self, entry, password):
        """The key, and for `assisted` the evaluation that a decision carries."""
        if "blob" not in entry:
            return jose.Key(int(entry["scalar"], 16)), None
        if password is None:
            raise Refused("a password is needed", "passwordRequired")
        slot = self.state["slots"][entry["slot"]]
        s = pin.scrypt(password, unb64(slot["salt"]), slot["kdf"])
        if slot["mode"] == "local":
            return self.open_local(entry, slot, s), None
        return self.unlock(entry, slot, s)

    def open_local(self, entry, slot, s):
        kek, aad = self.kek(slot, entry["kid"], s, None)
        policies = {one["id"]: one for one in self.state["offer"]["policies"]}
        lock = policies[entry["policy"]]["lock"]
        tries = slot.get("tries", 0) + 1
        slot["tries"] = tries
        self.save()
        try:
            key = jose.Key(pin.unseal(kek, aad, unb64(entry["blob"])))
        except Refused:
            if lock["type"] == "counter" and tries >= lock["max"]:
                entry["blob"] = ""
                self.save()
            raise
        slot["tries"] = 0
        self.save()
        return key

    def unlock(self, entry, slot, s):
        """The exchange: the next r is written before anything is sent, and becomes r with a signed answer."""
        if "changing" in slot:
            raise Refused("finish the change of the password first", "unsupportedOperation")
        message = framing.oprf_input(self.iss, self.state["did"], slot["slot"], slot["gen"], s)
        scalar, blinded = oprf.blind(message)
        with self.exclusive():
            if "next" not in slot:
                slot["next"] = b64(os.urandom(32))
                self.save()
            answer = self.call("slots/unlock", {
                "slot": slot["slot"], "gen": slot["gen"], "rid": new_id(), "blinded": b64(oprf.serialize(blinded)),
                "r": slot["r"], "next": framing.ratchet_hash(unb64(slot["next"])),
                **({"last": slot["last"]} if "last" in slot else {})})
            slot["r"], slot["last"] = slot.pop("next"), self.answer
            self.save()
        o = self.finish(slot, "unlock", answer, message, scalar, blinded)
        kek, aad = self.kek(slot, entry["kid"], s, o)
        key = jose.Key(pin.unseal(kek, aad, unb64(entry["blob"])))
        self.opened = s, o
        confirm = self.sign("tsp-confirm+jwt", {
            "v": 1, "aud": self.iss, "did": self.state["did"], "slot": slot["slot"], "gen": slot["gen"],
            "n": answer["n"], "unl": answer["unl"], "eval": framing.evaluation_hash(slot["last"])}, key)
        slot["outbox"] = {"confirm": confirm, "eval": slot["last"]}
        self.save()
        self.flush(slot)
        return key, answer["unl"]

    def flush(self, slot):
        """Sends a stored confirmation; it stays in the file until it is acknowledged."""
        if "outbox" in slot:
            self.call("slots/confirm", slot["outbox"])
            del slot["outbox"]
            self.save()

    def change(self, old, new):
        """Another password for the slot `signing`: the old keys stay until the server has said that they are old."""
        slot = self.state["slots"]["signing"]
        if "changing" not in slot:
            self.begin_change(slot, old, new)
        return self.commit_change(slot)

    def begin_change(self, slot, old, new):
        policies = {one["id"]: one for one in self.state["offer"]["policies"]}
        entries = [one for one in self.state["keys"].values() if one.get("slot") == slot["slot"]]
        pin.check_rules(new, policies[entries[0]["policy"]]["password"])
        key, unl = self.open_key(entries[0], old)
        s, o = self.opened
        scalars = {one["kid"]: pin.unseal(*self.kek(slot, one["kid"], s, o), unb64(one["blob"])) for one in entries}
        base = {"v": 1, "aud": self.iss, "did": self.state["did"], "slot": slot["slot"], "from": slot["gen"],
                "to": slot["gen"] + 1}
        start = self.sign("tsp-change+jwt", {**base, "step": "start", "unl": unl, "jti": new_id()}, key)
        fresh = {**slot, "gen": base["to"], "salt": b64(os.urandom(16))}
        s = pin.scrypt(new, unb64(fresh["salt"]), fresh["kdf"])
        message = framing.oprf_input(self.iss, self.state["did"], slot["slot"], fresh["gen"], s)
        scalar, blinded = oprf.blind(message)
        answer = self.call("slots/change-start", {
            "change": start, "rid": new_id(), "blinded": b64(oprf.serialize(blinded))})
        fresh["pk"] = answer["pk"]
        o = self.finish(fresh, "change", answer, message, scalar, blinded)
        blobs = {}
        for one in entries:
            kek, aad = self.kek(fresh, one["kid"], s, o)
            blob = pin.seal(kek, aad, pin.content(scalars[one["kid"]], answer["iat"]))
            if pin.unseal(kek, aad, blob) != scalars[one["kid"]]:
                raise Refused("a sealed key does not open", "secureData")
            blobs[one["label"]] = b64(blob)
        commit = self.sign("tsp-change+jwt", {**base, "step": "commit", "pk": fresh["pk"], "jti": new_id()}, key)
        slot["changing"] = {"gen": fresh["gen"], "salt": fresh["salt"], "pk": fresh["pk"], "blobs": blobs,
                            "commit": commit}
        self.save()

    def commit_change(self, slot):
        """May be repeated after a crash; the signed answer says which generation counts."""
        try:
            status = self.call("slots/change-commit", {"change": slot["changing"]["commit"]})
        except Problem as problem:
            if problem.code != "wrong_generation":
                raise
            status = self.status()
        changing = slot.pop("changing")
        generation = next(one["gen"] for one in status["slots"] if one["slot"] == slot["slot"])
        if generation == changing["gen"]:
            slot.update(gen=generation, salt=changing["salt"], pk=changing["pk"])
            for label, blob in changing["blobs"].items():
                self.state["keys"][label]["blob"] = blob
        self.save()
        if generation != changing["gen"]:
            raise Refused("the server has not taken the new password: try again", "wrong_generation")
        return status

    def exclusive(self):
        return _Lock(self.path)

    # --- new keys ----------------------------------------------------------------------------------------------------

    def renew(self, old=None, new=None, code=None):
        """New keys for the same container. With the code of a reset the digits, otherwise None."""
        for left in (2, 1, 0):
            renewal = Renewal(self, old)
            offer = renewal.begin(code)
            renewal.prepare(new or old)
            try:
                renewal.commit()
                break
            except Problem as problem:
                # A delayed request has replaced the offer: nothing was committed to.
                if problem.code != "hash_mismatch" or not left:
                    raise
        renewal.complete()
        return self.finish_renewal(renewal, offer["commit"] == "digits")

    def finish_renewal(self, renewal=None, digits=False):
        """Again after a crash, or after the digits of a reset were typed."""
        if renewal is None:
            renewal = Renewal(self, None)
            renewal.state = self.state["renewing"]
        renewal.confirm()
        renewal.take_over()
        return renewal.digits() if digits else None

    # --- the end -----------------------------------------------------------------------------------------------------

    def update(self, name=None, push=None, properties=None):
        given = {"name": name, "pushId": push, "properties": properties}
        return self.call("update", {one: value for one, value in given.items() if value is not None})

    def delete(self, reason=None):
        """The other keys go first. Repeat it until the answer says REVOKED."""
        for one in self.state["keys"].values():
            if one["usage"] != "device":
                one.pop("scalar", None)
                one.pop("blob", None)
        self.state["deleted"] = int(time.time())
        self.save()
        return self.call("delete", {"reason": reason} if reason else {})


class Renewal(Device):
    """The keys that are to take the place of a container's. Until `confirm` the old device key signs the proofs."""

    stage = "renew"

    def __init__(self, device, password):
        kept = {one: device.state[one] for one in ("iss", "pin", "min", "certs", "did")}
        super().__init__(device.transport, state={**kept, "keys": {}, "qr": False}, fingerprint=device.fingerprint)
        self.old, self.password, self.confirming = device, password, False
        self.nonce = device.nonce

    def save(self):
        """In the file of the container, beside what still counts."""
        self.old.state["renewing"] = self.state
        self.old.save()

    @property
    def proof_key(self):
        return self.device_key if self.confirming else self.old.device_key

    def begin(self, code):
        self.state["reset"] = code is not None
        offer = self.call("renew/start", {"code": invite.typed(code)} if code else {})
        before = {one["slot"]: one for one in self.old.state["slots"].values()}
        guarded = {one["label"] for one in self.old.state["offer"]["keys"] if "slot" in one}
        if offer["did"] != self.state["did"] or offer["identity"] != jose.thumbprint(self.state["pin"]):
            raise Refused("the offer is for another container, or by another identity key")
        if (offer["commit"] == "exchange") == self.state["reset"]:
            raise Refused("digits belong to a reset, and to nothing else")
        for one in offer["slots"]:
            was = before.get(one["slot"])
            if was and (one["gen"] != was["gen"] + 1 or (was["mode"], one["mode"]) == ("assisted", "local")):
                raise Refused("a slot that is weaker, or of another generation")
        if any(one["label"] in guarded and "slot" not in one for one in offer["keys"]):
            raise Refused("the offer takes the password from a key")
        self.state.update(offer=offer, offer_text=self.answer)
        self.save()
        return offer

    def endorsements(self):
        """By the old device key, and by an old key, if this is no reset: where one is behind a password, by that."""
        keys = [self.old.device_key]
        old = [one for one in self.old.state["keys"].values() if one["usage"] in ("sign", "auth")]
        old.sort(key=lambda one: "blob" not in one)
        if old and not self.state["reset"]:
            keys.append(self.old.open_key(old[0], self.password)[0])
        self.old.nonce, self.nonce = self.nonce, None
        return {"endorsements": [self.sign("tsp-endorse+jwt", {
            "v": 1, "aud": self.iss, "did": self.state["did"], "enrol": framing.enrolment_hash(self.state["enrol"]),
            "jti": new_id()}, key) for key in keys]}

    def confirm(self):
        self.confirming = True
        return super().confirm()

    def take_over(self):
        """When the new keys count; after a reset that is when the digits were typed."""
        status = self.status()
        mine = {one["kid"] for one in self.state["keys"].values()}
        if not {one.get("kid") for one in status["keys"] if one["state"] == "ACTIVE"} <= mine:
            return False
        for one in ("keys", "slots", "device_label", "transport_label", "offer", "offer_text", "handle", "exp",
                    "renew"):
            self.old.state[one] = self.state[one]
        self.old.state.pop("renewing", None)
        self.old.state.pop("documents", None)
        self.old.nonce = None
        self.old.save()
        return True


class _Lock:
    """Between processes that use one file."""

    def __init__(self, path):
        self.path = path
        self.file = None

    def __enter__(self):
        if self.path:
            self.file = open(f"{self.path}.lock", "w", encoding="utf-8")
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        if self.file:
            self.file.close()
