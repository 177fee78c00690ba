"""A stranger's server: enrolment, fetching, deciding and the PIN's exchange, in memory and on one node.

One lock makes every call atomic. `Server.handle` needs no socket; http_server.py puts it on one.
"""
import hashlib
import hmac
import json
import os
import threading
import time
import uuid
from contextlib import contextmanager

from . import framing, invite, jose, messages, oprf, strict_json
from .framing import Refused, b64, unb64
from .slots import Slot

STATUS = {
    "invalid_request": 400, "version_unsupported": 400, "unknown_key": 400, "use_nonce": 401, "bad_proof": 401,
    "replay": 401, "unknown_container": 404, "container_blocked": 403, "container_suspect": 403,
    "container_revoked": 403, "approvals_not_yet": 403, "wrong_generation": 409, "invalid_code": 404,
    "commitment_changed": 409, "enrolment_void": 410, "digits_wrong": 403, "tx_unknown": 404, "tx_not_fetched": 409,
    "tx_expired": 410, "tx_canceled": 410, "tx_failed": 410, "already_decided": 409, "status_not_allowed": 403,
    "key_retired": 409, "key_expired": 403, "fresh_authentication_required": 403,
    "hash_mismatch": 409, "bad_signature": 403, "match_wrong": 403, "match_used": 409, "unlock_required": 403,
    "locked": 403, "wait": 429, "shredded": 410, "server_rolled_back": 409, "too_large": 413, "rate_limited": 429,
    "unavailable": 503}
UNSTORED = {"status", "transactions/list", "transactions/fetch", "provision/evaluate", "slots/unlock",
            "slots/confirm", "provision/confirm", "renew/evaluate", "renew/confirm"}
BODY_LIMIT = 64 * 1024
NONCE_LIFE = 300
OUTCOME = {"approve": "APPROVED", "deny": "DENIED", "report": "REPORTED", "cancel": "CANCELED"}


@contextmanager
def refusing_as(code):
    """Every refusal inside has this code."""
    try:
        yield
    except Refused as refused:
        raise Refused(refused.detail, refused.code if refused.code == "version_unsupported" else code) from None


def new_id():
    return b64(os.urandom(16))


def policies_for(mode):
    """The offer's keys, slots and policies: no password, a local one, an assisted one, or that and a key without."""
    keys = [{"usage": "device", "label": "device", "policy": "device"},
            {"usage": "transport", "label": "transport", "policy": "device"},
            {"usage": "sign", "label": "payments", "policy": "device"}]
    policies = [{"id": "device", "type": "device"}]
    if mode == "device":
        return keys, [], policies
    bare = [{**keys[2], "label": "readings"}] if mode == "mixed" else []
    mode = "assisted" if mode == "mixed" else mode
    keys[2:] = bare + [{"usage": "sign", "label": "payments", "slot": "signing", "policy": "pin"}]
    lock = {"type": "counter", "max": 5}
    if mode == "assisted":
        lock.update(cap=20, delays=[0, 0, 30, 60])
    policies.append({
        "id": "pin", "type": "password", "mode": mode, "kdf": "$scrypt$ln=14,r=8,p=1", "lock": lock, "password": {
            "minLength": 4, "maxLength": 12, "minNumeric": 4, "sequences": False, "common": False, "history": 0,
            "minAge": 0, "maxAge": 0, "cache": 0}})
    return keys, [{"slot": "signing", "mode": mode, "gen": 0}], policies


def guarded(container):
    """The slots of the keys that sign, as they were offered."""
    return [container.slots[one["slot"]] for one in container.offered
            if one["usage"] in ("sign", "auth") and "slot" in one]


class Container:
    """An enrolment, and the container that it becomes."""

    def __init__(self, invited, device_jwk):
        self.did = invited.get("did") or new_id()
        self.invite = invited
        self.device_jwk = device_jwk
        self.device = jose.thumbprint(device_jwk) if device_jwk else None
        self.state = "STARTED"
        self.keys = []
        self.slots = {}
        self.evaluations = {}
        self.commitment = self.enrol = self.record = self.record_text = None
        self.echo_at = self.digits_at = None
        self.approvals = self.since = self.sequence = 0
        self.retired, self.renewing = set(), None
        self.enrolments, self.endorsements, self.by = [], [], ["invite"]
        self.records, self.name, self.push, self.properties = {}, "Device", "", {}
        self.exp = invited["exp"]

    @property
    def user(self):
        return self.invite["user"]


class Server:
    def __init__(self, iss, name="Bank of Example", clock=time.time, fingerprint=None):
        self.iss = iss
        self.name = name
        self.clock = clock
        self.fingerprint = fingerprint
        self.identity, self.online, self.encryption = jose.Key(), jose.Key(), jose.Key()
        self.nonce_key, self.k_key = os.urandom(32), os.urandom(32)
        self.users = {}
        self.invites = {}
        self.containers = {}
        self.transactions = {}
        self.proofs = set()
        self.changed = threading.Condition(threading.RLock())
        now = self.now()
        self.certified = []
        self.certify(now)

    def now(self):
        return int(self.clock())

    def certify(self, now):
        """Certificates from now on; evidence keeps the earlier ones of the key that signs."""
        self.certs = [self.certificate("sig", 1, self.online, now), self.certificate("enc", 2, self.encryption, now)]
        self.certified.append(self.certs[0])

    def certificate(self, use, gen, key, now):
        return jose.sign("tsp-cert+jwt", {
            "v": 1, "iss": self.iss, "iat": now - 60, "exp": now + 399 * 86400, "use": use, "gen": gen, "min": 1,
            "jwk": key.jwk}, self.identity)

    def configuration(self):
        return {"v": [1], "iss": self.iss, "name": self.name, "identity": self.identity.jwk, "next": [],
                "certs": self.certs}

    def signed(self, typ, content, document=False):
        full = {"v": 1, "iss": self.iss, **content}
        messages.check(typ, full)
        return jose.sign(typ, full, self.online)

    # --- nonces and proofs -------------------------------------------------------------------------------------------

    def new_nonce(self):
        seed = self.now().to_bytes(8, "big") + os.urandom(8)
        return b64(seed + self._nonce_tag(seed))

    def _nonce_tag(self, seed):
        framed = framing.frame("tsp/1 nonce", self.iss, seed[:8], seed[8:])
        return hmac.new(self.nonce_key, framed, hashlib.sha256).digest()[:16]

    def check_nonce(self, nonce):
        """When the nonce was made."""
        with refusing_as("use_nonce"):
            data = unb64(nonce, 32)
            made = int.from_bytes(data[:8], "big")
            if not hmac.compare_digest(self._nonce_tag(data[:16]), data[16:]) or made + NONCE_LIFE < self.now():
                raise Refused("an old or unknown nonce")
        return made

    def check_proof(self, proof, path, body):
        if proof is None:
            raise Refused("there is no TSP-Proof", "bad_proof")
        with refusing_as("bad_proof"):
            unverified = jose.Unverified(proof)
            claimed = strict_json.parse_object(unverified.content)
            did = claimed.get("did")
        container = self.containers.get(did) if isinstance(did, str) else None
        if container is None:
            raise Refused("no such container", "unknown_container")
        if unverified.kid in container.retired:
            raise Refused("a renewal has replaced this key", "key_retired")
        key = container.device_jwk
        renewing = container.renewing
        if renewing and renewing.enrol and path in ("renew/confirm", "status") and unverified.kid == renewing.device:
            key = renewing.device_jwk
        with refusing_as("bad_proof"):
            content = messages.read(unverified, "tsp-proof+jwt", key)
            if content["aud"] != self.iss or content["htu"] != f"{self.iss}/device/{path}":
                raise Refused("the proof is for another call")
            if content["bh"] != b64(hashlib.sha256(body).digest()):
                raise Refused("the proof is for another body")
        made = self.check_nonce(content["nonce"])
        if content["jti"] in self.proofs:
            raise Refused("the jti was seen", "replay")
        return container, content, made

    # --- one call ----------------------------------------------------------------------------------------------------

    def handle(self, method, path, headers, body):
        """`path` is below the issuer. Gives status, header fields and body."""
        headers = {name.lower(): value for name, value in headers.items()}
        with self.changed:
            fields = {"TSP-Nonce": self.new_nonce(), "Cache-Control": "no-store"}
            try:
                if (method, path) == ("GET", "/configuration"):
                    return 200, {**fields, "Content-Type": "application/json"}, strict_json.write(self.configuration())
                if method != "POST" or not path.startswith("/device/"):
                    return 404, fields, b""
                answer = self.device_call(path[len("/device/"):], headers, body)
                return 200, {**fields, "Content-Type": "application/jose"}, answer.encode("ascii")
            except Refused as refused:
                status = STATUS.get(refused.code, 400)
                problem = {"type": "about:blank", "title": refused.code.replace("_", " "), "status": status,
                           "detail": refused.detail, "code": refused.code}
                return status, {**fields, "Content-Type": "application/problem+json"}, json.dumps(problem).encode()

    def device_call(self, path, headers, body):
        if path not in messages.REQUESTS:
            raise Refused("no such call")
        if len(body) > BODY_LIMIT:
            raise Refused("the body is too large", "too_large")
        if headers.get("content-type") != "application/jose":
            raise Refused("the body is no application/jose")
        if path == "provision/start":
            return self.start(self.open(body))
        container, proof, made = self.check_proof(headers.get("tsp-proof"), path, body)
        content = self.open(body, container.did)
        messages.REQUESTS[path](content, path)
        self.request_hash = framing.request_hash(headers["tsp-proof"])
        self.allowed(container, path)
        if path.startswith("renew/"):
            answer = self.renew(container, path[6:], content, made)
        else:
            answer = getattr(self, path.replace("/", "_").replace("-", "_"))(container, content, made)
        if path not in UNSTORED:
            self.proofs.add(proof["jti"])
        return answer

    def open(self, body, sender=None):
        """For `start` the sender is known only afterwards: its name is given back beside the plaintext."""
        sealed = jose.Sealed(body.decode("ascii", "replace"))
        if sealed.kid != self.encryption.kid:
            raise Refused("encrypted to a key that is not used any more", "unknown_key")
        name = sender or sealed.sender
        content = strict_json.parse_object(sealed.opened(self.encryption, "json", name, self.iss))
        return content if sender else (content, name)

    def allowed(self, container, path):
        self.expire(container)
        state = container.state
        if path == "status" or path == "provision/confirm" and state != "VOID":
            return
        if path.startswith("provision/"):
            if state == "VOID":
                raise Refused("the enrolment is over", "enrolment_void")
            return
        if state in ("BLOCKED", "REVOKED", "SUSPECT"):
            suspect = path == "transactions/decide" or path.startswith("renew/")
            if path != "delete" and not (state == "SUSPECT" and suspect):
                raise Refused("see status", f"container_{state.lower()}")
        elif state != "ACTIVE" and path != "delete":
            raise Refused("the container is not active: see status", "unknown_container")

    def expire(self, container):
        if container.state in ("STARTED", "COMMITTED", "UNCONFIRMED") and self.now() > container.invite["exp"] + 600:
            container.state = "VOID"

    def reply(self, typ, container, content, sealed=False):
        message = self.signed(typ, {"aud": container.did, "iat": self.now(), "rqh": self.request_hash, **content})
        if not sealed:
            return message
        key = next(one for one in container.keys if one["usage"] == "transport")["jwk"]
        return jose.encrypt(message.encode(), key, "JWT", self.iss, container.did)

    def status(self, container, _content=None, _made=None):
        unfinished = container.state in ("STARTED", "COMMITTED")
        ended = container.state in ("REVOKED", "VOID")
        return self.reply("tsp-status+jwt", container, {
            "did": container.did, "state": "UNCONFIRMED" if unfinished else container.state,
            "approvals": container.approvals, "exp": container.exp,
            "keys": [{"kid": one["kid"], "usage": one["usage"], "label": one["label"],
                      "state": "RETIRED" if ended else "ACTIVE"} for one in container.keys],
            "slots": [] if unfinished else [
                one.status(self.now()) for one in container.slots.values() if one.assisted],
            "pending": min(1000, len(self.open_for(container)))})

    # --- enrolment ---------------------------------------------------------------------------------------------------

    def make_invite(self, user="ana", mode="device", commit="digits", did=None):
        """With `did` it is one for a reset: only that container can use it."""
        now = self.now()
        if did is not None:
            user, mode = self.containers[did].user, self.containers[did].invite["mode"]
        sub = self.users.setdefault(user, str(uuid.uuid4()))
        pid, code = new_id(), invite.make()
        qr = self.signed("tsp-invite+jwt", {"pid": pid, "code": code, "idk": self.identity.kid, "iat": now,
                                            "exp": now + 900})
        self.invites[pid] = {"pid": pid, "code": code, "user": user, "sub": sub, "exp": now + 900, "mode": mode,
                             "commit": commit, "state": "OPEN", "starts": {}, "committed": None, "tries": 0,
                             "did": did, "reset": did is not None}
        return {"pid": pid, "code": invite.shown(code), "qr": qr, "exp": now + 900}

    def start(self, opened):
        body, sender = opened
        messages.REQUESTS["provision/start"](body, "start")
        with refusing_as("bad_proof"):
            content = messages.read_self_signed(body["start"], "tsp-start+jwt")
            kid = jose.thumbprint(content["jwk"])
            if content["aud"] != self.iss or sender != kid:
                raise Refused("another server's, or another sender's")
        self.check_nonce(content["nonce"])
        found = next((one for one in self.invites.values() if hmac.compare_digest(one["code"], content["code"])), None)
        if found is None or found["exp"] < self.now() or found["state"] != "OPEN" or found.get("reset"):
            raise Refused("unknown, used or expired", "invalid_code")
        container = found["starts"].get(kid)
        if container is None:
            if len(found["starts"]) >= 5:
                raise Refused("unknown, used or expired", "invalid_code")
            container = found["starts"][kid] = Container(found, content["jwk"])
            self.plan(container)
            self.containers[container.did] = container
        if getattr(container, "started", None) == body["start"]:
            return container.offer_text
        if container.state != "STARTED":
            raise Refused("the enrolment has gone on", "invalid_code")
        container.started = body["start"]
        return self.offer(container, kid, framing.request_hash(body["start"]))

    @staticmethod
    def plan(container, before=None):
        """Which keys, slots and policies are offered; a renewal counts the generations on."""
        keys, slots, container.policies = policies_for(container.invite["mode"])
        for one in slots:
            old = before.slots[one["slot"]] if before else None
            one["gen"] = old.gen + 1 if old else 0
            made = Slot(one, container.policies[1]["lock"])
            if old:
                made.n = made.floor = made.cleared = old.n
            container.slots[made.slot] = made
            if made.public:
                one["pk"] = made.public
        container.offered, container.offered_slots = keys, slots

    def offer(self, container, kid, rqh):
        found = container.invite
        container.offer_text = self.signed("tsp-offer+jwt", {
            "aud": kid, "iat": self.now(), "rqh": rqh, "pid": found["pid"], "did": container.did,
            "identity": self.identity.kid, "name": self.name, "commit": found["commit"], "exp": found["exp"],
            "keys": container.offered, "slots": container.offered_slots, "policies": container.policies})
        return container.offer_text

    def provision_evaluate(self, container, content, _made):
        slot = container.slots.get(content["slot"])
        if slot is None or not slot.k or container.state != "STARTED":
            raise Refused("there is nothing to evaluate now", "invalid_request")
        if content["gen"] != slot.gen:
            raise Refused("another generation", "wrong_generation")
        blinded = oprf.parse_element(unb64(content["blinded"]))
        count, last = container.evaluations.get(slot.slot, (0, None))
        if last != (content["rid"], content["blinded"]):
            count += 1
            if count > 5:
                raise Refused("five evaluations are enough", "rate_limited")
            container.evaluations[slot.slot] = (count, (content["rid"], content["blinded"]))
        return self.reply("tsp-eval+jwt", container, {
            "purpose": "enrol", **slot.evaluation(blinded), "left": 5 - count})

    def provision_commit(self, container, content, _made):
        found = container.invite
        if container.state != "VOID" and content["offer"] != framing.offer_hash(container.offer_text):
            raise Refused("another offer than the last one: ask for an offer again", "hash_mismatch")
        if container.state == "STARTED" and found["state"] == "OPEN" and found["committed"] is None:
            if found["exp"] < self.now():
                raise Refused("too late", "enrolment_void")
            found["committed"] = container.did
            container.state, container.commitment = "COMMITTED", content["commitment"]
            container.nonce_s = os.urandom(32)
        elif found["committed"] != container.did:
            raise Refused("another device has committed", "commitment_changed")
        elif container.commitment != content["commitment"]:
            if container.state == "COMMITTED":
                container.state = found["state"] = "VOID"
            raise Refused("begin again with a new invite", "commitment_changed")
        return self.reply("tsp-nonce+jwt", container, {
            "nonceS": b64(container.nonce_s), "sub": found["sub"], "user": found["user"]})

    def provision_complete(self, container, content, _made):
        if container.enrol is not None:
            if container.enrol != content["enrol"]:
                raise Refused("another key list was completed", "commitment_changed")
            return self.enrolled(container)
        if container.state != "COMMITTED":
            raise Refused("commit first")
        if container.device_jwk is None:
            enrol = messages.read_self_signed(content["enrol"], "tsp-enrol+jwt", lambda claimed: next(
                (one["jwk"] for one in claimed["keys"] if one["usage"] == "device"), None))
            container.device_jwk = next(one["jwk"] for one in enrol["keys"] if one["usage"] == "device")
            container.device = jose.thumbprint(container.device_jwk)
        else:
            enrol = messages.read(content["enrol"], "tsp-enrol+jwt", container.device_jwk)
        self.check_enrolment(container, enrol)
        container.enrol = content["enrol"]
        container.keys = enrol["keys"]
        container.invite["state"], container.state = "USED", "UNCONFIRMED"
        container.name, container.push = content.get("name", container.name), content.get("pushId", "")
        container.echo, container.handle = os.urandom(32), os.urandom(32)
        container.exp = self.now() + 365 * 86400
        container.transcript = framing.transcript(
            self.identity.kid, self.iss, enrol["pid"], container.did, enrol["sub"], container.offer_text,
            unb64(enrol["nonceD"]), container.nonce_s, enrol["keys"])
        return self.enrolled(container)

    def check_enrolment(self, container, enrol):
        found = container.invite
        if (enrol["aud"], enrol["pid"], enrol["did"], enrol["sub"], enrol["nonceS"]) != (
                self.iss, found["pid"], container.did, found["sub"], b64(container.nonce_s)):
            raise Refused("this is another enrolment's")
        if enrol["offer"] != framing.offer_hash(container.offer_text):
            raise Refused("another offer than the one that was made")
        if framing.commitment(unb64(enrol["nonceD"]), enrol["keys"]) != container.commitment:
            raise Refused("these keys were not committed to", "commitment_changed")
        offered = [one for one in container.offered if one["usage"] != "otp"]
        if len(offered) != len(enrol["keys"]):
            raise Refused("other keys than offered")
        known = {one["kid"] for other in self.containers.values() for one in other.keys}
        for wanted, entry in zip(offered, enrol["keys"]):
            if any(wanted.get(one) != entry.get(one) for one in ("usage", "label", "slot", "policy")):
                raise Refused("another key than offered")
            if ("slot" in entry) != entry["keystore"].startswith("software+"):
                raise Refused("keystore does not fit the policy")
            if entry["kid"] in known:
                raise Refused("the key is known already")
            if entry["usage"] == "device" and entry["kid"] != container.device:
                raise Refused("another device key")
            if "pop" in entry:
                self.check_possession(container, entry)

    def check_possession(self, container, entry):
        pop = messages.read(entry["pop"], "tsp-pop+jwt", entry["jwk"])
        if pop != {"v": 1, "aud": self.iss, "did": container.did, "nonceS": b64(container.nonce_s),
                   "device": container.device, "usage": entry["usage"], "label": entry["label"], "kid": entry["kid"]}:
            raise Refused("a proof of possession for something else")

    def enrolled(self, container):
        return self.reply("tsp-enrolled+jwt", container, {
            "state": "UNCONFIRMED", "serial": str(10000 + list(self.containers).index(container.did)),
            "name": container.name, "exp": container.exp, "renew": container.exp - 30 * 86400,
            "echo": b64(container.echo), "handle": b64(container.handle), "otp": []}, sealed=True)

    def provision_confirm(self, container, content, _made):
        if container.enrol is None or not hmac.compare_digest(unb64(content["echo"]), container.echo):
            raise Refused("another echo")
        container.echo_at = container.echo_at or self.now()
        self.activate(container)
        return self.status(container)

    def expected_digits(self, container):
        if self.fingerprint:
            return self.fingerprint(container.device, self.identity.kid, container.did)
        return framing.digits(container.transcript)

    def type_digits(self, pid, text):
        """What the user typed into the page that made the invite."""
        found = self.invites[pid]
        container = self.containers.get(found["committed"])
        if container and container.renewing and container.renewing.invite is found:
            container = container.renewing
        if found["state"] != "USED" or found["tries"] >= 3 or container.state != "UNCONFIRMED":
            raise Refused("there are no digits to type", "enrolment_void")
        found["tries"] += 1
        typed = text.replace(" ", "").replace("-", "")
        if not hmac.compare_digest(typed.encode(), self.expected_digits(container).encode()):
            if found["tries"] >= 3:
                found["state"] = container.state = "VOID"
            raise Refused(f"{3 - found['tries']} tries are left", "digits_wrong")
        container.digits_at = self.now()
        self.activate(container)
        return container.state

    def activate(self, container):
        if container.state != "UNCONFIRMED" or container.echo_at is None:
            return
        if container.digits_at is None and container.invite["commit"] == "digits":
            return
        now = self.now()
        container.state, container.approvals, container.since = "ACTIVE", now, now
        before = self.containers[container.did]
        renewed = before is not container
        if renewed:
            container.sequence = before.sequence + 1
            container.retired = before.retired | {before.device}
            container.enrolments = before.enrolments
        container.record_text = self.signed("tsp-record+jwt", {
            "aud": container.did, "iat": now, "pid": container.invite["pid"], "sub": container.invite["sub"],
            "seq": container.sequence, **({"prev": framing.record_hash(before.record_text)} if renewed else {}),
            "user": container.user, "identity": self.identity.kid, "enrol": framing.enrolment_hash(container.enrol),
            "transcript": b64(hashlib.sha256(container.transcript).digest()), "commit": container.invite["commit"],
            "by": container.by, "approvals": now, "keys": [one["kid"] for one in container.keys]})
        container.enrolments = container.enrolments + [{
            "record": container.record_text, "enrol": container.enrol, "offer": container.offer_text,
            "endorsements": container.endorsements}]
        self.containers[container.did] = container
        for one in self.transactions.values() if renewed else ():
            if one["state"] == "PENDING":
                one["documents"].pop(container.did, None)

    # --- renewal -----------------------------------------------------------------------------------------------------

    def renew(self, container, step, content, made):
        """An enrolment beside the container, which takes its place when it is confirmed."""
        if step == "start":
            return self.renew_start(container, content)
        renewing = container.renewing
        if renewing is None:
            if step == "confirm":
                return self.provision_confirm(container, content, made)
            raise Refused("no renewal has begun")
        self.expire(renewing)
        if renewing.state == "VOID":
            raise Refused("the renewal is over", "enrolment_void")
        if step == "complete" and renewing.enrol is None:
            renewing.endorsements = content["endorsements"]
            renewing.by = self.check_endorsements(container, renewing, content)
        answer = getattr(self, f"provision_{step}")(renewing, content, made)
        return self.status(self.containers[container.did]) if step == "confirm" else answer

    def renew_start(self, container, content):
        now, found = self.now(), None
        if container.exp < now:
            raise Refused("the keys have expired: enrol again", "key_expired")
        if "code" in content:
            found = next((one for one in self.invites.values() if one.get("reset") and one["did"] == container.did and
                          one["state"] == "OPEN" and one["exp"] >= now and one["code"] == content["code"]), None)
            begun = container.renewing and container.renewing.invite is found and container.renewing.state != "STARTED"
            if found is None or begun:
                raise Refused("unknown, used or expired", "invalid_code")
        elif container.state != "ACTIVE":
            raise Refused("only after a fresh authentication", "container_suspect")
        elif container.exp - 30 * 86400 > now:
            raise Refused("too early, but for a reset", "fresh_authentication_required")
        elif any(one.assisted and one.k is None for one in guarded(container)):
            raise Refused("only a reset: the keys behind a password were destroyed", "fresh_authentication_required")
        renewing = container.renewing
        if found is None and renewing and renewing.state == "STARTED" and not renewing.invite["reset"]:
            found = renewing.invite
            found["exp"] = now + 900
        elif found is None:
            found = {**container.invite, "pid": new_id(), "exp": now + 900, "commit": "exchange", "state": "OPEN",
                     "committed": None, "tries": 0, "did": container.did, "reset": False}
        if container.renewing is None or container.renewing.invite is not found:
            container.renewing = Container(found, None)
            self.plan(container.renewing, container)
        return self.offer(container.renewing, container.device, self.request_hash)

    def check_endorsements(self, container, renewing, content):
        """What the record says that the server relied on."""
        by, slot = ["invite"] if renewing.invite.get("reset") else [], None
        wanted = {"v": 1, "aud": self.iss, "did": container.did, "enrol": framing.enrolment_hash(content["enrol"])}
        for text in content["endorsements"]:
            unverified = jose.Unverified(text)
            key = next((one for one in container.keys if one["kid"] == unverified.kid and one["usage"] != "transport"),
                       None)
            if key is None:
                raise Refused("an endorsement by no old key", "bad_signature")
            with refusing_as("bad_signature"):
                shown = messages.read(unverified, "tsp-endorse+jwt", key["jwk"])
                if {name: value for name, value in shown.items() if name != "jti"} != wanted:
                    raise Refused("an endorsement of something else")
            by.append("device" if key["usage"] == "device" else "sign")
            slot = key.get("slot", slot)
        reset = renewing.invite.get("reset")
        if by not in ([["invite", "device"], ["invite", "device", "sign"]] if reset else [["device", "sign"]]):
            raise Refused("an endorsement too many or too few", "bad_signature")
        if "sign" in by and guarded(container) and slot is None:
            raise Refused("a key without a password is not enough", "bad_signature")
        if slot is not None and container.slots[slot].assisted:
            container.slots[slot].take_newest(f"renewal:{renewing.invite['pid']}", self.now())
        return by + (["reset"] if reset and "sign" not in by else [])

    # --- transactions ------------------------------------------------------------------------------------------------

    def create(self, user="ana", details='{"amount":"200.00"}', title="Confirm payment", text="Pay 200.00 EUR to Bob",
               fields=(), match=False, ttl=180, kind="transaction", rp=("shop", "Example Shop"), report=True,
               claim=False, origin=None):
        """With `claim` nobody is asked yet: the first container that claims the id is."""
        txn, now = new_id(), self.now()
        if claim and (not match or not origin or ttl > 120):
            raise Refused("a claim needs a number, an origin, and a life of at most 120 seconds")
        sub = None if claim else self.users.setdefault(user, str(uuid.uuid4()))
        self.transactions[txn] = {
            "txn": txn, "sub": sub, "state": "PENDING", "made": now, "claimed_by": None, "origin": origin,
            "exp": now + ttl, "kind": kind, "title": title, "text": text, "fields": list(fields), "rp": rp,
            "frame": framing.details_frame(details), "match": f"{int.from_bytes(os.urandom(4), 'big') % 100:02}"
            if match else None, "match_by": None, "documents": {}, "report": report}
        with self.changed:
            self.changed.notify_all()
        return {"txn": txn, "exp": now + ttl, **({"number": self.transactions[txn]["match"]} if match else {}),
                **({"tds": self.signed("tsp-tds+jwt", {"txn": txn, "exp": now + ttl, "claim": True})} if claim else {})}

    def is_open(self, one):
        return one["state"] == "PENDING" and one["exp"] > self.now()

    def open_for(self, container):
        sub = container.invite["sub"]
        found = [one for one in self.transactions.values()
                 if one["sub"] == sub and self.is_open(one) and self.approving(container, one) and
                 one["claimed_by"] in (None, container.did)]
        return sorted(found, key=lambda one: one["made"])

    def transactions_list(self, container, content, _made):
        request_hash = self.request_hash
        self.changed.wait_for(lambda: self.open_for(container), timeout=content["wait"])
        self.request_hash = request_hash
        found = self.open_for(container)
        return self.reply("tsp-list+jwt", container, {
            "ids": [self.tds(container, one) for one in found[:20]], "more": len(found) > 20}, sealed=True)

    def tds(self, container, one):
        return self.signed("tsp-tds+jwt", {"txn": one["txn"], "exp": one["exp"], "h": framing.handle(
            container.handle, self.iss, one["txn"])})

    def known(self, container, txn):
        one = self.transactions.get(txn)
        if one is None or one["sub"] != container.invite["sub"]:
            raise Refused("unknown", "tx_unknown")
        return one

    def require_open(self, one):
        if one["state"] == "PENDING" and not self.is_open(one):
            raise Refused("it has expired", "tx_expired")
        if one["state"] != "PENDING":
            raise Refused("it is over", {"CANCELED": "tx_canceled", "FAILED": "tx_failed"}.get(
                one["state"], "already_decided"))

    @staticmethod
    def approving(container, one):
        """The keys that may approve this."""
        usage = "auth" if one["kind"] == "authentication" else "sign"
        return [key["kid"] for key in container.keys
                if key["usage"] == usage and one.get("label") in (None, key["label"])]

    def transactions_claim(self, container, content, _made):
        claimed = messages.read(content["tds"], "tsp-tds+jwt", self.online.jwk)
        one = self.transactions.get(claimed["txn"])
        if one is None or "claim" not in claimed or one["claimed_by"] not in (None, container.did):
            raise Refused("unknown, or another container's", "tx_unknown")
        self.require_open(one)
        one.update(sub=container.invite["sub"], claimed_by=container.did)
        return self.status(container)

    def transactions_create(self, container, content, _made):
        """A record that the device begins by itself, for this container alone."""
        if not any(one["usage"] == "sign" and one["label"] == content["label"] for one in container.keys):
            raise Refused("no sign key has this label")
        known = container.records.get(content["rid"])
        if known is None:
            known = self.create(container.user, content["message"], "Record", content["message"], kind="record",
                                rp=("device", self.name), report=False)["txn"]
            container.records[content["rid"]] = known
            self.transactions[known].update(claimed_by=container.did, label=content["label"])
        return self.transactions_fetch(container, {"txn": known}, _made)

    def transactions_fetch(self, container, content, _made):
        one = self.known(container, content["txn"])
        self.require_open(one)
        if one["claimed_by"] not in (None, container.did):
            raise Refused("another container has claimed it", "tx_unknown")
        if not self.approving(container, one):
            raise Refused("this container has no key for it", "tx_unknown")
        if container.did not in one["documents"]:
            one["documents"][container.did] = self.document(container, one)
        return self.reply("tsp-fetched+jwt", container, {"txd": one["documents"][container.did]}, sealed=True)

    def document(self, container, one):
        statuses = [("accept", "Approve", "approve", self.approving(container, one), "none"),
                    ("deny", "Decline", "deny", [container.device], "none")]
        if one["report"]:
            statuses.append(("report", "That was not me", "report", [container.device], "optional"))
        return self.signed("tsp-txd+jwt", {
            "aud": container.did, "iat": self.now(), "exp": one["exp"], "txn": one["txn"], "sub": one["sub"],
            "kind": one["kind"], "rp": {"id": one["rp"][0], "name": one["rp"][1]}, "locale": "en",
            "title": one["title"], "text": one["text"], "fields": one["fields"],
            **({"origin": one["origin"]} if one["origin"] else {}),
            "statuses": [dict(zip(("name", "label", "effect", "kids", "reason"), row)) for row in statuses],
            "req": b64(hashlib.sha256(one["frame"]).digest()), "nonce": new_id(),
            **({"match": {"mode": "number", "digits": 2}} if one["match"] else {})})

    def transactions_decide(self, container, content, _made):
        """The steps of "What the server does, in this order", from 3 on."""
        unverified = jose.Unverified(content["decision"])
        claimed = strict_json.parse_object(unverified.content)
        messages.check("tsp-decision+jwt", claimed)
        dh = framing.decision_hash(content["decision"])
        one = self.known(container, claimed["txn"])
        if "receipt" in one:
            if (one["dh"], one["did"]) == (dh, container.did):
                return one["receipt"]
            raise Refused("it is decided", "already_decided")
        self.require_open(one)
        blind = "blind" in claimed
        if not blind and container.did not in one["documents"]:
            raise Refused("fetch it first", "tx_not_fetched")
        key = self.check_signatures(container, one, content, unverified, dh)
        checked = self.check_decision(container, one, claimed, key, blind)
        if claimed["effect"] == "approve" and (container.state != "ACTIVE" or container.approvals > self.now()):
            raise Refused("this container may not approve", "container_suspect" if container.state == "SUSPECT"
                          else "approvals_not_yet")
        slot = self.find_evaluation(container, key, claimed)
        self.check_number(one, claimed, dh)
        unlocked = slot.take(claimed["unl"], dh, self.now()) if slot else None
        return self.store_decision(container, one, content, claimed, key, dh, checked, unlocked)

    def check_signatures(self, container, one, content, unverified, dh):
        key = next((entry for entry in container.keys if entry["kid"] == unverified.kid), None)
        if key is None:
            raise Refused("not a key of this container", "status_not_allowed")
        try:
            with refusing_as("bad_signature"):
                messages.read(unverified, "tsp-decision+jwt", key["jwk"])
                if ("possession" in content) != (key["kid"] != container.device):
                    raise Refused("possession belongs to every other key than the device key")
                if "possession" in content:
                    shown = messages.read(content["possession"], "tsp-possession+jwt", container.device_jwk)
                    if shown != {"v": 1, "aud": self.iss, "did": container.did, "txn": one["txn"], "dh": dh}:
                        raise Refused("possession of something else")
        except Refused:
            one["state"] = "FAILED"
            raise
        return key

    def check_decision(self, container, one, claimed, key, blind):
        """The members; gives the document's hash, or None for a blind refusal."""
        if (claimed["aud"], claimed["did"], claimed["sub"]) != (self.iss, container.did, one["sub"]):
            raise Refused("another container's", "hash_mismatch")
        if blind:
            if key["kid"] != container.device:
                raise Refused("a blind refusal is the device key's", "status_not_allowed")
            return None
        text = one["documents"][container.did]
        document = strict_json.parse_object(jose.Unverified(text).content)
        status = next((each for each in document["statuses"] if each["name"] == claimed["status"]), None)
        if status is None or status["effect"] != claimed["effect"] or key["kid"] not in status["kids"]:
            raise Refused("not a status of the document", "status_not_allowed")
        if {"none": "reason" in claimed, "required": "reason" not in claimed}.get(status["reason"]):
            raise Refused("a reason too many or too few", "status_not_allowed")
        if ("match" in claimed) != ("match" in document and claimed["effect"] == "approve"):
            raise Refused("a number too many or too few", "hash_mismatch")
        if (claimed["nonce"], claimed["txh"]) != (document["nonce"], framing.document_hash(text)):
            raise Refused("another document", "hash_mismatch")
        if claimed["dsp"] != framing.display_hash(document, status["label"], claimed.get("match")):
            raise Refused("another display", "hash_mismatch")
        return claimed["txh"]

    def check_number(self, one, claimed, dh):
        if "match" not in claimed:
            return
        if one["match_by"] not in (None, dh):
            raise Refused("another decision used it", "match_used")
        one["match_by"] = dh
        if not hmac.compare_digest(one["match"], claimed["match"]):
            one["state"] = "FAILED"
            raise Refused("the number is wrong", "match_wrong")

    def find_evaluation(self, container, key, claimed):
        """The slot whose evaluation the decision takes. It is looked for first: a number is claimed only once."""
        slot = container.slots.get(key.get("slot"))
        assisted = slot is not None and slot.assisted
        if assisted != ("unl" in claimed):
            raise Refused("an evaluation too many or too few", "unlock_required" if assisted else "invalid_request")
        if not assisted:
            return None
        slot.find(claimed["unl"], self.now())
        return slot

    def store_decision(self, container, one, content, claimed, key, dh, txh, unlocked):
        receipt = self.signed("tsp-receipt+jwt", {
            "aud": container.did, "iat": self.now(), "txn": one["txn"], "sub": one["sub"], "rp": one["rp"][0],
            "req": b64(hashlib.sha256(one["frame"]).digest()), **({"txh": txh} if txh else {}), "dh": dh,
            "status": claimed["status"], "effect": claimed["effect"], "state": OUTCOME[claimed["effect"]],
            "kid": key["kid"], "device": container.device, "keyState": "ACTIVE", "since": container.since,
            "record": framing.record_hash(container.record_text), "amr": ["pop"] + (["pin"] if unlocked else []),
            **({"match": True} if "match" in claimed else {}),
            **({"unlock": unlocked["unlock"]} if unlocked else {}), "audit": str(uuid.uuid4())})
        evidence = {"request": b64(one["frame"]), **content, "receipt": receipt}
        if txh:
            evidence["txd"] = one["documents"][container.did]
        if unlocked:
            evidence.update(eval=unlocked["eval"], confirm=unlocked["confirm"])
        one.update(state=OUTCOME[claimed["effect"]], dh=dh, did=container.did, receipt=receipt,
                   status=claimed["status"], evidence=evidence, enrolments=container.enrolments)
        self.changed.notify_all()
        return receipt

    def bundle(self, txn):
        one = self.transactions[txn]
        return {"v": 1, "iss": self.iss, "identity": [self.identity.jwk], "next": [], "previous": [],
                "certs": self.certified, "enrolments": one["enrolments"], "transactions": [one["evidence"]]}

    # --- slots and the end -------------------------------------------------------------------------------------------

    def slots_unlock(self, container, content, made):
        slot = container.slots.get(content["slot"])
        if slot is None or container.state != "ACTIVE":
            raise Refused("no such slot", "invalid_request")
        blinded = oprf.parse_element(unb64(content["blinded"]))
        last = self.read_evaluation(container, content["last"]) if "last" in content else None
        try:
            numbers = slot.unlock(content, last, made, self.now())
        except Refused as refused:
            if refused.code == "container_suspect":
                container.state = "SUSPECT"
            raise
        return self.reply("tsp-eval+jwt", container, {"purpose": "unlock", **slot.evaluation(blinded), **numbers})

    def read_evaluation(self, container, text):
        content = messages.read(text, "tsp-eval+jwt", self.online.jwk)
        if (content["aud"], content["purpose"]) != (container.did, "unlock"):
            raise Refused("another container's evaluation")
        return content

    def slots_confirm(self, container, content, _made):
        evaluation = self.read_evaluation(container, content["eval"])
        unverified = jose.Unverified(content["confirm"])
        key = next((one for one in container.keys if one["kid"] == unverified.kid and
                    one.get("slot") == evaluation["slot"]), None)
        if key is None:
            raise Refused("not a key of the slot", "bad_signature")
        with refusing_as("bad_signature"):
            confirm = messages.read(unverified, "tsp-confirm+jwt", key["jwk"])
            if confirm != {"v": 1, "aud": self.iss, "did": container.did, "eval": framing.evaluation_hash(
                    content["eval"]), **{one: evaluation[one] for one in ("slot", "gen", "n", "unl")}}:
                raise Refused("a confirmation of something else")
        container.slots[evaluation["slot"]].confirm(evaluation, content, self.now())
        return self.status(container)

    def read_change(self, container, content, step):
        unverified = jose.Unverified(content["change"])
        key = next((one for one in container.keys if one["kid"] == unverified.kid and "slot" in one), None)
        if key is None:
            raise Refused("not a key of a slot", "bad_signature")
        with refusing_as("bad_signature"):
            change = messages.read(unverified, "tsp-change+jwt", key["jwk"])
            if (change["aud"], change["did"], change["slot"], change["step"]) != (
                    self.iss, container.did, key["slot"], step):
                raise Refused("a change of something else")
        return change, container.slots[key["slot"]]

    def slots_change_start(self, container, content, _made):
        change, slot = self.read_change(container, content, "start")
        blinded = oprf.parse_element(unb64(content["blinded"]))
        slot.begin_change(change, self.now())
        return self.reply("tsp-eval+jwt", container, {"purpose": "change", **slot.evaluation(blinded, True)})

    def slots_change_commit(self, container, content, _made):
        change, slot = self.read_change(container, content, "commit")
        slot.finish_change(change)
        return self.status(container)

    def update(self, container, content, _made):
        container.name = content.get("name", container.name)
        container.push = content.get("pushId", container.push)
        container.properties = content.get("properties", container.properties)
        return self.status(container)

    def delete(self, container, _content, _made):
        if container.state != "VOID":
            container.state = "REVOKED"
            for slot in container.slots.values():
                slot.k = None
        return self.status(container)
