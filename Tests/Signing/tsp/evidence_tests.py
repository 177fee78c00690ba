"""Bundles that are judged: good ones, changed ones, and what a server can make up."""
import contextlib
import copy
import hashlib
import io
import json
import os
import sys
import tempfile
from unittest import mock

from . import evidence, framing, jose, relay, strict_json
from . import __main__ as program
from .framing import b64, unb64
from .story_tests import FIELDS, ISS, PIN, Story


class EvidenceTests(Story):
    def bundle(self, mode="assisted", status="accept", match=True, **options):
        self.device = self.enrolled(mode)
        made = self.asked(self.device, match=match)
        self.device.decide(made["txn"], status, number=made.get("number"), password=PIN, **options)
        return self.server.bundle(made["txn"])

    def judged(self, bundle, trust="identity"):
        trust = self.server.identity.kid if trust == "identity" else trust
        return evidence.Verifier(strict_json.write(bundle), trust)

    def contradicts(self, bundle, what):
        verifier = self.judged(bundle)
        self.assertEqual(verifier.exit_status, 2, what)
        self.assertTrue(any(what in one for one in verifier.contradicted), (what, verifier.contradicted))

    def changed(self, bundle, place, typ, key, **changes):
        """The bundle with one message that is signed again, with other members."""
        copied = copy.deepcopy(bundle)
        entry = copied["transactions"][0] if place in copied["transactions"][0] else copied["enrolments"][0]
        content = strict_json.parse_object(jose.Unverified(entry[place]).content)
        content = {name: value for name, value in {**content, **changes}.items() if value is not None}
        entry[place] = jose.sign(typ, content, key)
        return copied

    def test_a_good_bundle_and_the_exit_status(self):
        bundle = self.bundle()
        verifier = self.judged(bundle)
        self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
        for wanted in evidence.ALWAYS:
            self.assertIn(wanted, verifier.report())
        self.assertIn("that the number was right", verifier.attested)
        self.assertIn("that the PIN was counted", verifier.attested)
        self.assertEqual(self.judged(bundle, None).exit_status, 64)
        self.assertEqual(self.judged(bundle, jose.Key().kid).exit_status, 2)
        for wrong in (b"", b"{}", b"[]", strict_json.write({**bundle, "more": 1}), b" " * evidence.LIMIT + b"{}",
                      strict_json.write({**bundle, "transactions": []}), strict_json.write({**bundle, "v": 2})):
            with self.assertRaises(evidence.Unreadable):
                evidence.Verifier(wrong, "x")

    def test_the_command(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = [os.path.join(directory, name) for name in ("bundle.json", "key.json", "broken.json")]
            bundle = self.bundle()
            for path, content in zip(paths, (bundle, self.server.identity.jwk, {})):
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(content, file)
            for line, status in (([paths[0], "--trust", paths[1]], 0), ([paths[0]], 64), ([paths[2]], 1),
                                 ([paths[0], "--trust", self.server.identity.kid], 0),
                                 ([paths[0], "--trust", jose.Key().kid], 2), ([directory], 1),
                                 ([paths[0], "--trust", f"-{jose.Key().kid[1:]}"], 2)):
                with mock.patch.object(sys, "argv", ["tsp", "verify", *line]):
                    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                        self.assertEqual(program.main(), status, line)

    def test_what_is_missing_is_said(self):
        self.assertIn("that the PIN was known (local)", self.judged(self.bundle("local")).missing)
        self.assertIn("what was shown (a blind refusal)",
                      self.judged(self.bundle("device", "deny", blind=True)).missing)
        bundle = self.bundle("device")
        del bundle["transactions"][0]["request"]
        verifier = self.judged(bundle)
        self.assertEqual(verifier.exit_status, 0)
        self.assertIn("what was asked (no request)", verifier.missing)

    def test_a_flipped_bit_anywhere_is_found(self):
        bundle = self.bundle()
        for part, names in (("transactions", bundle["transactions"][0]), ("enrolments", ("record", "enrol", "offer"))):
            for name in names:
                text = bundle[part][0][name]
                for at in range(0, len(text), len(text) // 4 - 1):
                    if text[at] == ".":
                        continue
                    flipped = copy.deepcopy(bundle)
                    flipped[part][0][name] = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1:]
                    try:
                        self.assertEqual(self.judged(flipped).exit_status, 2, (name, at))
                    except evidence.Unreadable:
                        pass

    def test_every_field_that_is_changed_and_signed_again(self):
        """By whoever signed it first. Only what the receipt alone says can be changed: list 2 has it."""
        bundle = self.bundle("device")
        keys = {one["kid"]: self.device.key(label) for label, one in self.device.state["keys"].items()}
        keys[self.server.online.kid] = self.server.online
        for name in ("txd", "receipt", "record", "possession", "decision", "offer", "enrol"):
            part = "enrolments" if name in ("record", "offer", "enrol") else "transactions"
            message = jose.Unverified(bundle[part][0][name])
            content = strict_json.parse_object(message.content)
            for path in relay.paths(content):
                if name == "enrol" and path[-1] in ("x", "y"):
                    continue
                changed = copy.deepcopy(bundle)
                changed[part][0][name] = jose.sign(message.typ, relay.replace(content, path), keys[message.kid])
                status, where = self.judged(changed).exit_status, ".".join(map(str, path))
                attested = name == "receipt" and where in ("iat", "since", "audit")
                self.assertEqual(status, 0 if attested else 2, (name, where))

    def test_missing_parts_are_found(self):
        bundle = self.bundle()
        for name in ("txd", "possession", "eval", "confirm"):
            copied = copy.deepcopy(bundle)
            del copied["transactions"][0][name]
            self.assertEqual(self.judged(copied).exit_status, 2, name)

    def test_another_request(self):
        bundle = self.bundle()
        bundle["transactions"][0]["request"] = b64(framing.details_frame('{"amount":"2.00"}'))
        self.contradicts(bundle, "request")

    def test_receipts_that_do_not_agree(self):
        bundle = self.bundle()
        other = b64(hashlib.sha256(b"other").digest())
        unlock = strict_json.parse_object(jose.Unverified(bundle["transactions"][0]["receipt"]).content)["unlock"]
        for changes in ({"txn": b64(bytes(16))}, {"sub": "another"}, {"rp": "other"}, {"req": other}, {"txh": other},
                        {"txh": None}, {"dh": other}, {"status": "deny"}, {"effect": "deny"}, {"state": "DENIED"},
                        {"kid": other}, {"device": other}, {"record": other}, {"amr": ["pop"]},
                        {"amr": ["pop", "user"]}, {"match": None}, {"unlock": None}, {"unlock": {**unlock, "n": 2}},
                        {"unlock": {**unlock, "confirmed": unlock["evaluated"] - 61}},
                        {"unlock": {**unlock, "confirmed": unlock["evaluated"] + 61}},
                        {"aud": b64(bytes(16))},
                        {"iat": self.clock() + 500}, {"iat": self.clock() - 3600}, {"iss": "https://x.example"}):
            with self.subTest(changes):
                changed = self.changed(bundle, "receipt", "tsp-receipt+jwt", self.server.online, **changes)
                self.assertEqual(self.judged(changed).exit_status, 2)

    def test_documents_that_were_not_signed(self):
        """The server may sign another document later: the decision carries the first one's hash."""
        bundle = self.bundle()
        for changes in ({"text": "Pay 1.00 EUR to Bob"}, {"fields": []}, {"title": "Another"}, {"match": None},
                        {"nonce": b64(bytes(16))}):
            changed = self.changed(bundle, "txd", "tsp-txd+jwt", self.server.online, **changes)
            self.contradicts(changed, "txh")

    def test_records_and_offers_that_do_not_agree(self):
        bundle = self.bundle()
        other = b64(hashlib.sha256(b"other").digest())
        for changes in ({"sub": "another"}, {"pid": b64(bytes(16))}, {"enrol": other}, {"transcript": other},
                        {"identity": other}, {"commit": "exchange"}, {"seq": 1, "prev": other}, {"aud": b64(bytes(16))},
                        {"keys": [other, b64(bytes(32))]}, {"approvals": self.clock() + 60}):
            with self.subTest(changes):
                changed = self.changed(bundle, "record", "tsp-record+jwt", self.server.online, **changes)
                verifier = self.judged(changed)
                self.assertEqual(verifier.exit_status, 2)
                if "transcript" in changes:
                    self.assertIn("enrolments[0].record: transcript", verifier.contradicted)
        changed = self.changed(bundle, "offer", "tsp-offer+jwt", self.server.online, name="Other Bank")
        self.contradicts(changed, "enrol: offer")

    def test_keys_that_nobody_certified(self):
        bundle = self.bundle()
        stranger = jose.Key()
        self.contradicts(self.changed(bundle, "receipt", "tsp-receipt+jwt", stranger), "nobody certified")
        self.contradicts(self.changed(bundle, "receipt", "tsp-receipt+jwt", self.server.encryption), "nobody certified")
        changed = copy.deepcopy(bundle)
        changed["certs"] = self.server.certs
        self.assertEqual(self.judged(changed).exit_status, 0)
        misused = self.changed(changed, "receipt", "tsp-receipt+jwt", self.server.encryption)
        self.contradicts(misused, "nobody certified")
        changed["certs"] = [jose.sign("tsp-cert+jwt", jose.Unverified(bundle["certs"][0]).content, stranger)]
        self.contradicts(changed, "certs[0]")

    def test_a_decision_that_another_key_signed(self):
        bundle = self.bundle("device")
        content = strict_json.parse_object(jose.Unverified(bundle["transactions"][0]["decision"]).content)
        for key in (jose.Key(), self.device.device_key):
            changed = copy.deepcopy(bundle)
            changed["transactions"][0]["decision"] = jose.sign("tsp-decision+jwt", content, key)
            self.contradicts(changed, "decision: ki")

    # --- rotation and renewal ----------------------------------------------------------------------------------------

    def rotated(self, bundle, until):
        old, new, now = self.server.identity, jose.Key(), self.clock()
        link = {"v": 1, "iss": ISS, "iat": now, "seq": 1}
        copied = copy.deepcopy(bundle)
        copied["identity"].append(new.jwk)
        copied["next"] = [jose.sign("tsp-next+jwt", {**link, "jwk": new.jwk}, old)]
        copied["previous"] = [jose.sign("tsp-previous+jwt", {**link, "jwk": old.jwk, "until": until}, new)]
        return copied, new

    def test_a_rotated_identity_key(self):
        bundle = self.bundle()
        rotated, new = self.rotated(bundle, self.clock())
        for trust in (self.server.identity.kid, new.kid):
            verifier = self.judged(rotated, trust)
            self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
        early, new = self.rotated(bundle, self.clock() - 1)
        self.assertEqual(self.judged(early).exit_status, 0)
        verifier = self.judged(early, new.kid)
        self.assertEqual(verifier.exit_status, 2)
        self.assertTrue(any("after the identity key was replaced" in one for one in verifier.contradicted))
        for name in ("next", "previous"):
            cut, new = self.rotated(bundle, self.clock())
            cut[name] = []
            trust = {"next": self.server.identity.kid, "previous": new.kid}[name]
            self.assertEqual(self.judged(cut, trust).exit_status, 2, name)

    def test_links_on_which_nothing_depends(self):
        """With the old key trusted, nothing needs the way back, and with the new one nothing the way on."""
        rotated, new = self.rotated(self.bundle(), self.clock())
        for name, trust, key in (("previous", self.server.identity.kid, new),
                                 ("next", new.kid, self.server.identity)):
            content = strict_json.parse_object(jose.Unverified(rotated[name][0]).content)
            broken = rotated[name][0][:-8] + "AAAAAAAA"
            for text in (broken, jose.sign(f"tsp-{name}+jwt", content, jose.Key()), jose.sign(
                    f"tsp-{name}+jwt", {**content, "iss": f"{ISS}/other"}, key), jose.sign(
                    f"tsp-{name}+jwt", {**content, "seq": 2}, key)):
                verifier = self.judged({**rotated, name: [text]}, trust)
                self.assertEqual(verifier.exit_status, 2)
                # Another number of `next` is seen at the `previous` that leads back.
                self.assertTrue(any(one.startswith(("previous[0]", f"{name}[0]")) for one in verifier.contradicted),
                                verifier.contradicted)

    def test_decisions_of_several_key_sets(self):
        """Each is judged by the keys that were the container's when it was made."""
        device, bundles = self.enrolled("assisted"), []
        for renewed in (False, True):
            if renewed:
                self.clock.time += 340 * 86400
                self.server.certify(self.clock())
                device.renew(PIN, "3141")
            made = self.asked(device)
            device.decide(made["txn"], "accept", password="3141" if renewed else PIN)
            bundles.append(self.server.bundle(made["txn"]))
        both = {**bundles[1], "transactions": [one["transactions"][0] for one in bundles]}
        verifier = self.judged(both)
        self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
        self.assertEqual(sum('signed "accept"' in one for one in verifier.established), 2)
        # A receipt that names the other record, or none of the bundle.
        receipt = strict_json.parse_object(jose.Unverified(both["transactions"][0]["receipt"]).content)
        last = framing.record_hash(both["enrolments"][1]["record"])
        for record, what in ((last, "decision: kid"), (b64(bytes(32)), "receipt: record")):
            changed = copy.deepcopy(both)
            changed["transactions"][0]["receipt"] = jose.sign(
                "tsp-receipt+jwt", {**receipt, "record": record}, self.server.online)
            self.contradicts(changed, f"transactions[0].{what}")

    def renewed(self, by, signers):
        """The bundle of a container with a second key set, which the old keys endorsed."""
        bundle = self.bundle("device", match=False)
        container = self.server.containers[self.device.state["did"]]
        first, device = bundle["enrolments"][0], self.device
        old_keys = {"device": device.device_key, "sign": device.key("payments")}
        old_record = strict_json.parse_object(jose.Unverified(first["record"]).content)
        offer = {**device.state["offer"], "pid": b64(os.urandom(16)), "aud": old_keys["device"].kid}
        offer_text = jose.sign("tsp-offer+jwt", offer, self.server.online)
        keys = {one["label"]: jose.Key() for one in offer["keys"]}
        entries = [{**one, "kid": keys[one["label"]].kid, "jwk": keys[one["label"]].jwk}
                   for one in device.key_entries()]
        nonce_s = os.urandom(32)
        entries[2]["pop"] = jose.sign("tsp-pop+jwt", {
            "v": 1, "aud": ISS, "did": container.did, "nonceS": b64(nonce_s), "device": keys["device"].kid,
            "usage": "sign", "label": "payments", "kid": keys["payments"].kid}, keys["payments"])
        enrol = jose.sign("tsp-enrol+jwt", {
            "v": 1, "aud": ISS, "pid": offer["pid"], "did": container.did, "sub": container.invite["sub"],
            "offer": framing.offer_hash(offer_text), "nonceD": b64(bytes(32)), "nonceS": b64(nonce_s),
            "keys": entries}, keys["device"])
        endorsements = [jose.sign("tsp-endorse+jwt", {
            "v": 1, "aud": ISS, "did": container.did, "enrol": framing.enrolment_hash(enrol),
            "jti": b64(os.urandom(16))}, old_keys[one]) for one in signers]
        transcript = framing.transcript(self.server.identity.kid, ISS, offer["pid"], container.did,
                                        container.invite["sub"], offer_text, bytes(32), nonce_s, entries)
        record = jose.sign("tsp-record+jwt", {
            **old_record, "pid": offer["pid"], "seq": 1, "prev": framing.record_hash(first["record"]), "by": by,
            "enrol": framing.enrolment_hash(enrol), "transcript": b64(hashlib.sha256(transcript).digest()),
            "keys": [one["kid"] for one in entries]}, self.server.online)
        container.keys, container.device, container.record_text = entries, keys["device"].kid, record
        container.device_jwk = keys["device"].jwk
        for label, key in keys.items():
            device.state["keys"][label].update(kid=key.kid, jwk=key.jwk, scalar=hex(key.scalar))
        made = self.server.create(fields=FIELDS)
        device.fetch(made["txn"])
        device.decide(made["txn"], "accept")
        second = {"record": record, "enrol": enrol, "offer": offer_text, "endorsements": endorsements}
        return {**self.server.bundle(made["txn"]), "enrolments": [first, second]}

    def test_renewed_keys(self):
        bundle = self.renewed(["device", "sign"], ["device", "sign"])
        verifier = self.judged(bundle)
        self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
        swapped = {**bundle, "enrolments": bundle["enrolments"][::-1]}
        self.assertEqual(self.judged(swapped).exit_status, 2)
        cut = copy.deepcopy(bundle)
        cut["enrolments"][1]["endorsements"].pop()
        self.contradicts(cut, "record: by")
        only = {**bundle, "enrolments": bundle["enrolments"][1:]}
        self.assertEqual(self.judged(only).exit_status, 2)

    def test_a_reset_says_that_no_old_signature_vouched(self):
        verifier = self.judged(self.renewed(["invite", "device", "reset"], ["device"]))
        self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
        self.assertTrue(any("a reset" in one for one in verifier.missing))
        self.assertEqual(self.judged(self.renewed(["device", "sign"], ["device"])).exit_status, 2)
        self.assertTrue(unb64(self.device.state["handle"], 32))
