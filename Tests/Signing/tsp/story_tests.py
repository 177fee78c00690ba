"""A device and a server, from the invite to the deleted container, and what either must refuse."""
import json
import os
import random
import ssl
import tempfile
import threading
import unittest
from unittest import mock
from urllib.request import Request, urlopen

from . import evidence, framing, http_server, jose, messages, oprf, strict_json, trust
from .device import Device, Problem, Renewal
from .framing import Refused, b64, unb64
from .http_server import in_process
from .server import Server
from .transport import HTTPTransport

ISS = "https://am.bank.example/am/signing/realms/root"
PIN = "2718"
FIELDS = [{"id": "amount", "label": "Amount", "type": "amount", "value": {"amount": "200.00", "currency": "EUR"},
           "display": "200.00 EUR"}]


class Clock:
    def __init__(self):
        self.time = 1_790_000_000

    def __call__(self):
        return self.time


class Wire:
    """A transport that remembers, and loses, changes or repeats what one asks it to."""

    def __init__(self, server):
        self.send = in_process(server)
        self.sent = []
        self.lose = None
        self.change = None

    def __call__(self, method, url, headers, body):
        if self.change:
            method, url, headers, body = self.change(method, url, headers, body)
        self.sent.append((method, url, headers, body))
        answer = self.send(method, url, headers, body)
        if self.lose and url.endswith(self.lose):
            self.lose = None
            raise ConnectionError("the answer was lost")
        return answer


class Story(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.server = Server(ISS, clock=self.clock)

    def enrolled(self, mode="device", user="ana"):
        wire = Wire(self.server)
        device = Device(wire)
        device.wire = wire
        invited = self.server.make_invite(user=user, mode=mode)
        digits = device.enrol(None if mode == "device" else PIN, "Ana's phone", qr=invited["qr"])
        self.assertEqual(self.server.type_digits(invited["pid"], f"{digits[:4]} {digits[4:]}"), "ACTIVE")
        return device

    def slot(self, device):
        return self.server.containers[device.state["did"]].slots["signing"]

    def asked(self, device, **options):
        made = self.server.create(fields=FIELDS, **options)
        device.fetch(made["txn"])
        return made

    def refused(self, expected, action, *arguments, **options):
        with self.assertRaises((Problem, Refused)) as caught:
            action(*arguments, **options)
        self.assertEqual(caught.exception.code, expected)

    def verified(self, txn):
        return evidence.Verifier(strict_json.write(self.server.bundle(txn)), self.server.identity.kid)


class EnrolmentTests(Story):
    def test_every_mode_with_code_and_with_qr(self):
        for mode in ("device", "local", "assisted"):
            self.enrolled(mode)
            invited = self.server.make_invite(mode=mode)
            device = Device(in_process(self.server))
            digits = device.enrol(PIN, code=invited["code"].lower().replace("-", " "), iss=ISS)
            self.assertEqual(device.status()["state"], "UNCONFIRMED")
            self.server.type_digits(invited["pid"], digits)
            self.assertEqual(device.status()["state"], "ACTIVE")

    def test_three_wrong_digits_end_it(self):
        invited = self.server.make_invite()
        device = Device(in_process(self.server))
        digits = device.enrol(qr=invited["qr"])
        for _ in range(3):
            self.refused("digits_wrong", self.server.type_digits, invited["pid"], "00000000")
        self.refused("enrolment_void", self.server.type_digits, invited["pid"], digits)
        self.assertEqual(device.status()["state"], "VOID")

    def test_no_activation_without_the_confirmation(self):
        invited = self.server.make_invite()
        device = Device(in_process(self.server))
        device.start(qr=invited["qr"])
        device.prepare()
        device.commit()
        device.complete()
        self.assertEqual(self.server.type_digits(invited["pid"], device.digits()), "UNCONFIRMED")
        self.assertEqual(device.confirm()["state"], "ACTIVE")
        self.assertEqual(device.confirm()["state"], "ACTIVE")

    def test_every_lost_answer_is_asked_for_again(self):
        for lost in ("start", "evaluate", "commit", "complete", "confirm"):
            invited = self.server.make_invite(mode="assisted")
            wire = Wire(self.server)
            device = Device(wire)
            steps = {"start": lambda: device.start(qr=invited["qr"]), "evaluate": lambda: device.prepare(PIN),
                     "commit": device.commit, "complete": device.complete, "confirm": device.confirm}
            for name, step in steps.items():
                if name == lost:
                    wire.lose = lost
                    with self.assertRaises(ConnectionError):
                        step()
                step()
            self.assertEqual(self.server.type_digits(invited["pid"], device.digits()), "ACTIVE", lost)

    def test_a_repeated_start_gets_the_same_offer(self):
        """The same text the same bytes; another text a new offer in the place of the first."""
        wire = Wire(self.server)
        device = Device(wire)
        device.start(qr=self.server.make_invite()["qr"])
        first = device.state["offer_text"]
        self.clock.time += 1
        _, _, again = in_process(self.server)(*wire.sent[-1])
        self.assertEqual(again.decode(), first)
        opened = self.server.open(wire.sent[-1][3])[0]["start"]
        content = strict_json.parse_object(jose.Unverified(opened).content)
        other = jose.sign("tsp-start+jwt", {**content, "info": {}}, device.device_key)
        body = jose.encrypt(strict_json.write({"start": other}), device.encryption_key(), "json",
                            device.device_key.kid, ISS).encode()
        _, _, second = in_process(self.server)("POST", wire.sent[-1][1], {"Content-Type": "application/jose"}, body)
        self.assertNotEqual(second.decode(), first)
        device.prepare()
        # It has accepted the first one: nothing is committed to, and so the invite may take the right one.
        for _ in range(2):
            self.refused("hash_mismatch", device.commit)
        container = self.server.containers[device.state["did"]]
        self.assertEqual((container.state, container.invite["committed"]), ("STARTED", None))
        device.state["offer_text"] = second.decode()
        device.commit()
        device.state["offer_text"] = first
        self.refused("hash_mismatch", device.commit)
        device.state["offer_text"] = second.decode()
        device.complete()

    def test_a_commitment_names_its_offer(self):
        for missing in (False, True):
            invited = self.server.make_invite()
            device = Device(in_process(self.server))
            device.start(qr=invited["qr"])
            device.prepare()

            def call(path, content):
                if path == "provision/commit":
                    flipped = b64(bytes([unb64(content["offer"])[0] ^ 1]) + unb64(content["offer"])[1:])
                    content = {**content, "offer": flipped}
                    if missing:
                        del content["offer"]
                return Device.call(device, path, content)

            device.call = call
            self.refused("invalid_request" if missing else "hash_mismatch", device.commit)
            del device.call
            device.commit()
            device.complete()
            device.confirm()
            self.assertEqual(self.server.type_digits(invited["pid"], device.digits()), "ACTIVE")

    def test_starts_of_somebody_else(self):
        wire = Wire(self.server)
        device = Device(wire)
        device.start(qr=self.server.make_invite()["qr"])
        url = wire.sent[-1][1]
        opened = self.server.open(wire.sent[-1][3])[0]["start"]
        content = strict_json.parse_object(jose.Unverified(opened).content)
        stranger = jose.Key()

        def code(message, sender):
            body = jose.encrypt(strict_json.write({"start": message}), device.encryption_key(), "json", sender, ISS)
            _, _, answer = in_process(self.server)("POST", url, {"Content-Type": "application/jose"}, body.encode())
            return json.loads(answer)["code"]

        self.assertEqual(code(opened, stranger.kid), "bad_proof")
        self.assertEqual(code(jose.sign("tsp-start+jwt", content, stranger), device.device_key.kid), "bad_proof")
        for change, expected in (({"nonce": "old"}, "use_nonce"), ({"aud": "https://x.example"}, "bad_proof"),
                                 ({"code": "AAAAAAAAAAAAAAAAAAAA"}, "invalid_code"), ({"v": 2}, "version_unsupported")):
            changed = jose.sign("tsp-start+jwt", {**content, **change}, device.device_key)
            self.assertEqual(code(changed, device.device_key.kid), expected)

    def test_one_commitment_for_each_invite(self):
        invited = self.server.make_invite()
        first, second = (Device(in_process(self.server)) for _ in range(2))
        for device in (first, second):
            device.start(qr=invited["qr"])
            device.prepare()
        first.commit()
        self.refused("commitment_changed", second.commit)
        first.state["nonceD"] = b64(os.urandom(32))
        self.refused("commitment_changed", first.commit)
        self.assertEqual(first.status()["state"], "VOID")

    def test_keys_that_were_not_committed_to_or_are_known(self):
        first = self.enrolled()
        for later in (True, False):
            device = Device(in_process(self.server))
            device.start(qr=self.server.make_invite()["qr"])
            device.prepare()
            key = jose.Key() if later else first.key("payments")
            changed = {"kid": key.kid, "jwk": key.jwk, "scalar": hex(key.scalar)}
            if later:
                device.commit()
                device.state["keys"]["payments"].update(changed)
            else:
                device.state["keys"]["payments"].update(changed)
                device.commit()
            self.refused("commitment_changed" if later else "invalid_request", device.complete)

    def test_invites_end(self):
        invited = self.server.make_invite()
        for _ in range(5):
            Device(in_process(self.server)).start(qr=invited["qr"])
        self.refused("invalid_code", Device(in_process(self.server)).start, qr=invited["qr"])
        expired = self.server.make_invite()
        self.clock.time += 901
        self.refused("invalid_code", Device(in_process(self.server)).start, qr=expired["qr"])
        self.refused("invalid_code", Device(in_process(self.server)).start, code="ZFECE-ULFQP-OBFTE-PB2BQ", iss=ISS)

    def test_an_unfinished_enrolment_becomes_void(self):
        invited = self.server.make_invite()
        device = Device(in_process(self.server))
        device.enrol(qr=invited["qr"])
        self.clock.time += 1501
        self.assertEqual(device.status()["state"], "VOID")

    def test_five_evaluations(self):
        invited = self.server.make_invite(mode="assisted")
        device = Device(in_process(self.server))
        device.start(qr=invited["qr"])
        for _ in range(5):
            device.prepare(PIN)
        self.refused("rate_limited", device.prepare, PIN)

    def test_passwords_that_break_the_rules(self):
        invited = self.server.make_invite(mode="local")
        device = Device(in_process(self.server))
        device.start(qr=invited["qr"])
        for wrong in ("271", "1234", "9876", "7777", "2580", "abcd", "2718281828459"):
            self.refused("invalidPassword", device.prepare, wrong)
        self.refused("passwordRequired", device.prepare)

    def test_offers_that_a_device_refuses(self):
        offer = strict_json.parse_object(jose.Unverified(self.offer("assisted")).content)
        pin, slot = offer["policies"][1], offer["slots"][0]
        session = {"slot": "session", "mode": "local", "gen": 0}
        local = {**pin, "id": "local", "mode": "local", "lock": {"type": "none"}}
        keys = offer["keys"]
        wrong = [
            {"slots": []}, {"policies": [offer["policies"][0]]}, {"slots": [{**slot, "mode": "silent"}]},
            {"slots": [{**slot, "mode": "local"}]}, {"slots": [slot, slot]}, {"keys": keys[1:]}, {"keys": keys[:1]},
            {"keys": keys + [keys[2]]}, {"keys": [keys[0], {**keys[1], "slot": "session", "policy": "local"}, keys[2]],
                                         "slots": [slot, session], "policies": offer["policies"] + [local]},
            {"keys": [keys[0], {**keys[1], "slot": "session", "policy": "pin"}, keys[2]],
             "slots": [slot, {**slot, "slot": "session"}]},
            {"policies": [offer["policies"][0], {**pin, "kdf": "$scrypt$ln=10,r=8,p=1"}]},
            {"policies": [offer["policies"][0], {**pin, "lock": {"type": "none"}}]},
            {"policies": [offer["policies"][0], {**pin, "lock": {**pin["lock"], "cap": 4}}]},
            {"policies": offer["policies"] + [{**pin, "id": "other"}],
             "keys": keys + [{**keys[2], "label": "other", "policy": "other"}]},
            {"keys": keys[:2] + [{**keys[2], "policy": "device"}]}, {"name": "two\nlines"}, {"commit": "none"}]
        messages.check("tsp-offer+jwt", offer)
        for change in wrong:
            with self.subTest(change), self.assertRaises(Refused):
                messages.check("tsp-offer+jwt", {**offer, **change})
        device = Device(None, state={"pin": self.server.identity.jwk, "qr": True})
        for change in ({"commit": "exchange"}, {"identity": jose.Key().kid}, {"slots": [{**slot, "gen": 1}]}):
            with self.subTest(change), self.assertRaises(Refused):
                device.accept({**offer, **change}, ("device", "assisted"))
        with self.assertRaises(Refused):
            device.accept(offer, ("device", "local"))

    def offer(self, mode):
        device = Device(in_process(self.server))
        device.start(qr=self.server.make_invite(mode=mode)["qr"])
        return device.state["offer_text"]

    def test_a_replaced_identity_is_refused(self):
        device = self.enrolled()
        stranger = Server(ISS, clock=self.clock)
        device.wire.send = in_process(stranger)
        device.nonce = None
        with self.assertRaises(Refused):
            device.configuration()
        with self.assertRaises(Refused):
            trust.walk(self.server.identity.jwk, {"next": [], "identity": stranger.identity.jwk}, ISS)
        invited = self.server.make_invite()
        with self.assertRaises(Refused):
            Device(in_process(stranger)).start(qr=invited["qr"])

    def test_a_device_follows_the_successor_and_keeps_the_highest_min(self):
        device = self.enrolled()
        old, now = self.server.identity, self.clock()
        self.server.identity, self.server.online = jose.Key(), jose.Key()
        successor = {"v": 1, "iss": ISS, "iat": now, "seq": 1, "jwk": self.server.identity.jwk}
        message = jose.sign("tsp-next+jwt", successor, old)
        withdrawn = self.server.certificate("sig", 3, jose.Key(), now)
        certs = [jose.sign("tsp-cert+jwt", {"v": 1, "iss": ISS, "iat": now, "exp": now + 86400, "use": use, "gen": gen,
                                            "min": 5, "jwk": key.jwk}, self.server.identity)
                 for use, gen, key in (("sig", 5, self.server.online), ("enc", 6, self.server.encryption))]
        self.server.certs = [withdrawn, *certs]
        content = self.server.configuration()
        self.server.configuration = lambda: {**content, "next": [message], "more": {"is": "allowed"}}
        self.assertEqual(device.status()["state"], "ACTIVE")
        self.assertEqual(device.state["pin"], self.server.identity.jwk)
        self.assertEqual((device.state["min"], len(device.state["certs"])), (5, 2))
        content["certs"] = [withdrawn]
        with self.assertRaises(Refused):
            device.configuration()


class CallTests(Story):
    def test_nonces_are_asked_for_once(self):
        device = self.enrolled()
        self.clock.time += 301
        before = len(device.wire.sent)
        device.status()
        self.assertEqual(len(device.wire.sent) - before, 2)
        self.server.check_nonce = lambda nonce: (_ for _ in ()).throw(Refused("never", "use_nonce"))
        self.refused("use_nonce", device.status)

    def test_an_unknown_encryption_key_is_looked_up_once(self):
        device = self.enrolled()
        self.server.encryption = jose.Key()
        self.server.certs.append(self.server.certificate("enc", 3, self.server.encryption, self.clock()))
        self.assertEqual(device.status()["state"], "ACTIVE")

    def test_calls_that_are_repeated_or_changed(self):
        device = self.enrolled()
        made = self.asked(device)
        device.decide(made["txn"], "deny")
        method, url, headers, body = device.wire.sent[-1]
        send = in_process(self.server)

        def code(**changes):
            fields = {**headers, **changes.pop("headers", {})}
            status, _, answer = send(changes.get("method", method), changes.get("url", url),
                                     {name: value for name, value in fields.items() if value},
                                     changes.get("body", body))
            return status, json.loads(answer)["code"] if answer else None

        self.assertEqual(code(), (401, "replay"))
        self.assertEqual(code(headers={"TSP-Proof": ""}), (401, "bad_proof"))
        self.assertEqual(code(headers={"TSP-Proof": headers["TSP-Proof"][:-2] + "AA"})[1], "bad_proof")
        self.assertEqual(code(body=body + b"A"), (401, "bad_proof"))
        self.assertEqual(code(url=f"{ISS}/device/transactions/fetch"), (401, "bad_proof"))
        self.assertEqual(code(headers={"Content-Type": "application/json"})[1], "invalid_request")
        self.assertEqual(code(body=b"a" * 65537), (413, "too_large"))
        self.assertEqual(code(method="GET")[0], 404)
        other = self.enrolled(user="bob")
        proof = jose.Unverified(headers["TSP-Proof"])
        content = strict_json.parse_object(proof.content)
        for changed, key, expected in (
                ({"did": other.state["did"]}, device.device_key, "bad_proof"), ({}, other.device_key, "bad_proof"),
                ({"did": b64(bytes(16))}, device.device_key, "unknown_container"),
                ({"aud": "https://x.example"}, device.device_key, "bad_proof"),
                ({"v": 2}, device.device_key, "version_unsupported"), ({"more": 1}, device.device_key, "bad_proof"),
                ({"nonce": "unknown"}, device.device_key, "use_nonce")):
            signed = jose.sign("tsp-proof+jwt", {**content, **changed}, key)
            self.assertEqual(code(headers={"TSP-Proof": signed})[1], expected, changed)

    def test_replies_that_are_not_the_answer(self):
        """Old answers, other devices' answers and other messages are dropped."""
        device, other = self.enrolled(), self.enrolled(user="bob")
        old, foreign = {}, {}

        def keep(store):
            def change(method, url, headers, body):
                answer = in_process(self.server)(method, url, headers, body)
                store["answer"] = answer
                return answer
            return change

        device.transport = keep(old)
        device.status()
        other.transport = keep(foreign)
        other.status()
        for answer in (old["answer"], foreign["answer"]):
            device.transport = lambda *_, given=answer: given
            with self.assertRaises(Refused):
                device.status()
        device.transport = in_process(self.server)
        good = self.server.signed
        self.server.signed = lambda typ, content: good(typ, {**content, "aud": other.state["did"]})
        with self.assertRaises(Refused):
            device.status()
        self.server.signed = good
        self.assertEqual(device.status()["state"], "ACTIVE")
        listed = {}
        other.transport = keep(listed)
        other.list()
        device.transport = lambda *_: listed["answer"]
        with self.assertRaises(Refused):
            device.list()


class TransactionTests(Story):
    def test_all_effects(self):
        device = self.enrolled()
        for status, reason, state in (("accept", None, "APPROVED"), ("deny", None, "DENIED"),
                                      ("report", "It was not me", "REPORTED")):
            made = self.asked(device, match=status == "accept")
            receipt = device.decide(made["txn"], status, reason, made.get("number"))
            self.assertEqual((receipt["state"], receipt["amr"]), (state, ["pop"]))
            self.assertEqual(self.verified(made["txn"]).exit_status, 0)

    def test_blind_refusals(self):
        device = self.enrolled()
        for status in ("deny", "report"):
            made = self.server.create()
            receipt = device.decide(made["txn"], status, "Never heard of it", blind=True)
            self.assertNotIn("txh", receipt)
            self.assertEqual(self.verified(made["txn"]).exit_status, 0)
        made = self.server.create()
        with self.assertRaises(Refused):
            device.decide(made["txn"], "accept", blind=True)
        self.refused("tx_not_fetched", device.decide, made["txn"], "accept")

    def test_a_repeated_decision_gets_the_same_receipt(self):
        device = self.enrolled()
        made = self.asked(device)
        device.wire.lose = "decide"
        with self.assertRaises(ConnectionError):
            device.decide(made["txn"], "accept")
        first = self.server.transactions[made["txn"]]["receipt"]
        self.refused("already_decided", device.decide, made["txn"], "deny")
        self.clock.time += 4000
        device.decide(made["txn"], "accept")
        self.assertEqual(device.state["receipts"][made["txn"]], first)
        self.refused("already_decided", device.decide, made["txn"], "deny")

    def test_the_first_device_wins(self):
        first, second = self.enrolled(), self.enrolled()
        made = self.asked(first)
        second.fetch(made["txn"])
        documents = self.server.transactions[made["txn"]]["documents"]
        self.assertEqual(len(set(documents.values())), 2)
        first.decide(made["txn"], "deny")
        self.refused("already_decided", second.decide, made["txn"], "accept")
        self.assertEqual(second.list(), [])

    def test_a_container_without_a_key_for_it_is_not_asked(self):
        device = self.enrolled()
        made = self.server.create(kind="authentication")
        self.assertEqual(device.list(), [])
        self.refused("tx_unknown", device.fetch, made["txn"])
        self.assertEqual(device.decide(made["txn"], "deny", blind=True)["state"], "DENIED")

    def test_scan_to_approve(self):
        ana, bob = self.enrolled(), self.enrolled(user="bob")
        made = self.server.create(claim=True, match=True, ttl=60, origin={"place": "Bonn", "address": "192.0.2.1"})
        self.assertEqual((ana.list(), bob.list()), ([], []))
        self.refused("tx_unknown", bob.fetch, made["txn"])
        self.assertEqual(ana.claim(made["tds"]), made["txn"])
        self.assertEqual(ana.claim(made["tds"]), made["txn"])
        self.refused("tx_unknown", bob.claim, made["tds"])
        second = self.enrolled()
        self.assertEqual((ana.list(), second.list()), ([made["txn"]], []))
        self.refused("tx_unknown", second.fetch, made["txn"])
        self.assertEqual(ana.fetch(made["txn"])["origin"]["place"], "Bonn")
        self.assertEqual(ana.decide(made["txn"], "accept", number=made["number"])["state"], "APPROVED")
        self.assertEqual(self.verified(made["txn"]).contradicted, [])
        late = self.server.create(claim=True, match=True, ttl=60, origin={"place": "Bonn", "address": "192.0.2.1"})
        self.clock.time += 60
        self.refused("tx_expired", ana.claim, late["tds"])

    def test_a_record_that_the_device_begins(self):
        device, other = self.enrolled(), self.enrolled()
        document = device.create("I have read the terms", "payments")
        self.assertEqual((document["rp"]["id"], other.list()), ("device", []))
        self.refused("tx_unknown", other.fetch, document["txn"])
        self.assertEqual(device.decide(document["txn"], "accept")["rp"], "device")
        self.assertEqual(self.verified(document["txn"]).contradicted, [])
        self.refused("invalid_request", device.create, "I have read the terms", "device")
        self.server.create = lambda *arguments, create=self.server.create, **options: create(
            arguments[0], "Another", arguments[2], "Another", **options)
        with self.assertRaises(Refused):
            device.create("I have read the terms", "payments")

    def test_a_container_that_is_renamed(self):
        device = self.enrolled()
        device.update("Ana's other phone", "push:1", {"colour": "blue"})
        container = self.server.containers[device.state["did"]]
        self.assertEqual((container.name, container.push, container.properties),
                         ("Ana's other phone", "push:1", {"colour": "blue"}))
        device.update(push="")
        self.assertEqual((container.name, container.push), ("Ana's other phone", ""))
        for wrong in ({"name": ""}, {"name": "two\nlines"}, {"properties": {"a": 1}},
                      {"properties": {f"p{at}": "" for at in range(17)}}):
            with self.assertRaises(Refused):
                device.update(**wrong)

    def test_other_peoples_transactions_are_unknown(self):
        ana, bob = self.enrolled(), self.enrolled(user="bob")
        made = self.asked(ana)
        self.assertEqual(bob.list(), [])
        self.refused("tx_unknown", bob.fetch, made["txn"])
        self.refused("tx_unknown", bob.decide, made["txn"], "deny", blind=True)
        self.refused("tx_unknown", ana.fetch, b64(bytes(16)))
        tds = self.server.tds(self.server.containers[ana.state["did"]], self.server.transactions[made["txn"]])
        self.assertEqual(ana.information(tds)["txn"], made["txn"])
        self.assertIsNone(bob.information(tds))

    def test_a_wrong_number_ends_it(self):
        device = self.enrolled()
        made = self.asked(device, match=True)
        wrong = f"{(int(made['number']) + 1) % 100:02}"
        self.refused("match_wrong", device.decide, made["txn"], "accept", number=wrong)
        device.state["decisions"].clear()
        self.refused("tx_failed", device.decide, made["txn"], "accept", number=made["number"])
        other = self.asked(device, match=True)
        self.server.transactions[other["txn"]]["match_by"] = "another decision"
        self.refused("match_used", device.decide, other["txn"], "accept", number=other["number"])
        self.refused("invalidArgument", device.decide, self.asked(device, match=True)["txn"], "accept")

    def test_transactions_expire_and_are_canceled(self):
        device = self.enrolled()
        made = self.asked(device, ttl=30)
        canceled = self.asked(device)
        self.server.transactions[canceled["txn"]]["state"] = "CANCELED"
        self.refused("tx_canceled", device.decide, canceled["txn"], "accept")
        self.clock.time += 30
        self.refused("tx_expired", device.decide, made["txn"], "accept")
        self.assertEqual(device.list(), [])

    def decided_with(self, device, asked, key=None, possession=None, **changes):
        """A decision that the device would not make."""
        content = strict_json.parse_object(jose.Unverified(device.decision(asked, "accept", None, None, PIN)[
            "decision"]).content)
        content = {name: value for name, value in {**content, **changes}.items() if value is not None}
        decision = jose.sign("tsp-decision+jwt", content, key or device.key("payments"))
        shown = {"v": 1, "aud": ISS, "did": device.state["did"], "txn": content["txn"],
                 "dh": framing.decision_hash(decision), **(possession or {})}
        body = {"decision": decision, "possession": jose.sign("tsp-possession+jwt", shown, device.device_key)}
        return device.call("transactions/decide", body)

    def test_decisions_that_are_refused(self):
        device, other = self.enrolled(), self.enrolled()
        elsewhere = self.asked(device)["txn"]
        there = strict_json.parse_object(jose.Unverified(device.state["documents"][elsewhere]).content)
        cases = [({"dsp": b64(bytes(32))}, "hash_mismatch"), ({"txh": b64(bytes(32))}, "hash_mismatch"),
                 ({"nonce": there["nonce"]}, "hash_mismatch"), ({"sub": "another"}, "hash_mismatch"),
                 ({"did": other.state["did"]}, "hash_mismatch"), ({"aud": "https://x.example"}, "hash_mismatch"),
                 ({"status": "maybe"}, "status_not_allowed"), ({"effect": "deny"}, "status_not_allowed"),
                 ({"status": "deny", "effect": "deny"}, "status_not_allowed"),
                 ({"reason": "because"}, "status_not_allowed"), ({"match": "42"}, "hash_mismatch"),
                 ({"unl": b64(bytes(16))}, "invalid_request"), ({"jti": None}, "invalid_request"),
                 ({"v": 2}, "version_unsupported"), ({"more": 1}, "invalid_request"),
                 ({"blind": True}, "invalid_request"),
                 ({"txn": b64(bytes(16))}, "tx_unknown")]
        for changes, code in cases:
            with self.subTest(changes):
                txn = self.asked(device)["txn"]
                self.refused(code, self.decided_with, device, txn, **changes)
                self.assertEqual(self.server.transactions[txn]["state"], "PENDING")
        for options, code in (({"key": other.key("payments")}, "status_not_allowed"),
                              ({"possession": {"dh": b64(bytes(32))}}, "bad_signature"),
                              ({"possession": {"txn": elsewhere}}, "bad_signature")):
            with self.subTest(options):
                self.refused(code, self.decided_with, device, self.asked(device)["txn"], **options)

    def test_a_wrong_signature_ends_it(self):
        device = self.enrolled()
        txn = self.asked(device)["txn"]
        decision = device.decision(txn, "accept", None, None, None)
        decision["decision"] = decision["decision"][:-4] + "AAAA"
        self.refused("bad_signature", device.call, "transactions/decide", decision)
        self.refused("tx_failed", device.decide, txn, "accept")

    def test_documents_that_a_device_refuses(self):
        device = self.enrolled()
        container = self.server.containers[device.state["did"]]
        good = self.server.document
        for change in ({"sub": "another"}, {"aud": b64(bytes(16))}, {"txn": b64(bytes(16))}, {"v": 2},
                       {"text": "two\nlines"}, {"text": "\u202eevil"}, {"fields": [{**FIELDS[0], "type": "other"}]},
                       {"iss": "https://x.example"}, {"kind": "authentication"}, {"more": 1}):
            def wrong(one, two, changed=change):
                content = strict_json.parse_object(jose.Unverified(good(one, two)).content)
                return jose.sign("tsp-txd+jwt", {**content, **changed}, self.server.online)
            self.server.document = wrong
            made = self.server.create(fields=FIELDS)
            with self.subTest(change), self.assertRaises(Refused):
                device.fetch(made["txn"])
        self.server.document = good
        document = strict_json.parse_object(jose.Unverified(good(container, self.server.transactions[made["txn"]]))
                                            .content)
        accept, deny, report = document["statuses"]
        for statuses in ([accept, report], [deny, report], [accept, deny, {**report, "name": "deny"}],
                         [accept, deny, {**report, "label": "Decline"}], [{**accept, "effect": "grant"}, deny],
                         [accept, {**deny, "effect": "cancel"}, {**report, "effect": "cancel"}, deny]):
            with self.subTest(statuses), self.assertRaises(Refused):
                messages.check("tsp-txd+jwt", {**document, "statuses": statuses})

    def test_a_container_that_may_not(self):
        device = self.enrolled()
        container = self.server.containers[device.state["did"]]
        txn = self.asked(device)["txn"]
        container.state = "SUSPECT"
        self.refused("container_suspect", device.decide, txn, "accept")
        self.refused("container_suspect", device.fetch, txn)
        device.state["decisions"].clear()
        self.assertEqual(device.decide(txn, "deny", blind=True)["state"], "DENIED")
        container.state = "BLOCKED"
        self.refused("container_blocked", device.list)
        self.assertEqual(device.status()["state"], "BLOCKED")
        container.state, container.approvals = "ACTIVE", self.clock() + 3600
        self.refused("approvals_not_yet", device.decide, self.asked(device)["txn"], "accept")
        self.assertEqual(device.delete("sold")["state"], "REVOKED")
        self.assertEqual(device.delete()["state"], "REVOKED")
        self.refused("container_revoked", device.list)


class PinTests(Story):
    def test_a_wrong_pin_is_counted_and_locks(self):
        device = self.enrolled("assisted")
        txn = self.asked(device)["txn"]
        for number in range(5):
            self.clock.time += 61
            device.state["documents"].clear()
            txn = self.asked(device)["txn"]
            self.refused("wrongPassword", device.decide, txn, "accept", password="3141")
            self.assertEqual(device.status()["slots"][0]["tries"], 4 - number)
        self.clock.time += 61
        txn = self.asked(device)["txn"]
        self.refused("locked", device.decide, txn, "accept", password=PIN)
        self.assertEqual(device.status()["slots"][0], {
            "slot": "signing", "gen": 0, "state": "LOCKED", "tries": 0, "spare": 15, "wait": 0})
        self.assertEqual(device.decide(txn, "deny")["state"], "DENIED")
        self.slot(device).unlock_by_user()
        txn = self.asked(device)["txn"]
        self.assertEqual(device.decide(txn, "accept", password=PIN)["state"], "APPROVED")
        self.assertEqual(device.status()["slots"][0]["spare"], 20)
        self.assertEqual(self.verified(txn).contradicted, [])

    def test_the_delay(self):
        device = self.enrolled("assisted")
        txn = self.asked(device)["txn"]
        for _ in range(3):
            self.refused("wrongPassword", device.decide, txn, "accept", password="3141")
        self.assertEqual(device.status()["slots"][0]["wait"], 30)
        self.refused("wait", device.decide, txn, "accept", password=PIN)
        self.clock.time += 30
        self.assertEqual(device.decide(txn, "accept", password=PIN)["amr"], ["pop", "pin"])

    def test_the_cap_destroys_k(self):
        device = self.enrolled("assisted")
        slot = self.slot(device)
        slot.unconfirmed = 12
        for _ in range(8):
            self.clock.time += 61
            if slot.n - slot.floor >= slot.max:
                slot.unlock_by_user()
            self.refused("wrongPassword", device.decide, self.asked(device)["txn"], "accept", password="3141")
        slot.unlock_by_user()
        self.clock.time += 61
        self.refused("locked", device.decide, self.asked(device)["txn"], "accept", password=PIN)
        self.refused("shredded", device.decide, self.asked(device)["txn"], "accept", password=PIN)
        self.assertEqual(device.status()["slots"][0]["state"], "SHREDDED")

    def test_the_right_pin_never_locks(self):
        """Whatever is lost on the way, and whether the user then approves or declines."""
        device = self.enrolled("assisted")
        entry, chance = device.state["keys"]["payments"], random.Random(7)
        for _ in range(25):
            self.clock.time += 400
            device.wire.lose = chance.choice([None, None, "slots/unlock", "slots/confirm"])
            for _ in range(3):
                try:
                    for slot in device.state["slots"].values():
                        device.flush(slot)
                    device.open_key(entry, PIN)
                    break
                except ConnectionError:
                    self.clock.time += 61
        self.assertEqual(self.server.containers[device.state["did"]].state, "ACTIVE")
        slot = device.status()["slots"][0]
        self.assertEqual((slot["state"], slot["tries"]), ("OPEN", 5))

    def test_evaluations_are_spent_once_and_grow_old(self):
        device = self.enrolled("assisted")
        entry = device.state["keys"]["payments"]
        key, unl = device.open_key(entry, PIN)
        first, second = self.asked(device)["txn"], self.asked(device)["txn"]
        device.open_key = lambda *_: (key, unl)
        device.decide(first, "accept")
        self.refused("unlock_required", device.decide, second, "accept")
        self.assertNotIn(second, device.state["decisions"])
        del device.open_key
        key, unl = device.open_key(entry, PIN)
        device.open_key = lambda *_: (key, unl)
        self.clock.time += 100
        third = self.asked(device, ttl=3600)["txn"]
        self.clock.time += 200
        self.refused("unlock_required", device.decide, third, "accept")
        del device.open_key
        self.assertEqual(device.decide(third, "accept", password=PIN)["state"], "APPROVED")

    def test_an_old_evaluation_costs_no_number(self):
        device = self.enrolled("assisted")
        made = self.asked(device, match=True, ttl=600)
        key, unl = device.open_key(device.state["keys"]["payments"], PIN)
        device.open_key = lambda *_: (key, unl)
        self.clock.time += 300
        self.refused("unlock_required", device.decide, made["txn"], "accept", number=made["number"])
        del device.open_key
        receipt = device.decide(made["txn"], "accept", number=made["number"], password=PIN)
        self.assertEqual((receipt["state"], receipt["match"]), ("APPROVED", True))

    def test_a_decision_without_an_evaluation(self):
        device = self.enrolled("assisted")
        key, _ = device.open_key(device.state["keys"]["payments"], PIN)
        device.open_key = lambda *_: (key, None)
        self.refused("unlock_required", device.decide, self.asked(device)["txn"], "accept")

    def test_a_copied_store_is_found(self):
        for original_first in (True, False):
            device = self.enrolled("assisted")
            entry = device.state["keys"]["payments"]
            device.open_key(entry, PIN)
            copied = Device(in_process(self.server), state=json.loads(json.dumps(device.state)))
            self.clock.time += 10
            one, two = (device, copied) if original_first else (copied, device)
            one.open_key(one.state["keys"]["payments"], PIN)
            self.clock.time += 10
            one.open_key(one.state["keys"]["payments"], PIN)
            self.clock.time += 61
            two.nonce = None
            self.refused("container_suspect", two.open_key, two.state["keys"]["payments"], PIN)
            self.assertEqual(two.status()["state"], "SUSPECT")

    def test_a_fork_is_found(self):
        device = self.enrolled("assisted")
        copied = Device(in_process(self.server), state=json.loads(json.dumps(device.state)))
        device.open_key(device.state["keys"]["payments"], PIN)
        self.clock.time += 60
        self.refused("use_nonce", copied.open_key, copied.state["keys"]["payments"], PIN)
        self.assertEqual(device.status()["state"], "ACTIVE")
        self.clock.time += 1
        copied.nonce = None
        self.refused("container_suspect", copied.open_key, copied.state["keys"]["payments"], PIN)

    def test_a_delayed_copy_is_no_alarm(self):
        device = self.enrolled("assisted")
        entry = device.state["keys"]["payments"]
        device.open_key(entry, PIN)
        delayed = next(one for one in device.wire.sent if one[1].endswith("slots/unlock"))
        for _ in range(2):
            self.clock.time += 20
            device.open_key(entry, PIN)
        status, _, answer = in_process(self.server)(*delayed)
        self.assertEqual((status, json.loads(answer)["code"]), (401, "use_nonce"))
        self.assertEqual(device.status()["state"], "ACTIVE")

    def test_a_server_that_went_back_is_no_alarm(self):
        device = self.enrolled("assisted")
        entry = device.state["keys"]["payments"]
        slot = self.slot(device)
        device.open_key(entry, PIN)
        old = {name: value for name, value in vars(slot).items()}
        device.open_key(entry, PIN)
        vars(slot).update(old)
        self.refused("server_rolled_back", device.open_key, entry, PIN)
        self.assertEqual(device.status()["state"], "ACTIVE")

    def test_a_repeated_request_is_counted_once(self):
        device = self.enrolled("assisted")
        _, blinded = oprf.blind(b"any")
        slot = device.state["slots"]["signing"]
        body = {"slot": "signing", "gen": 0, "rid": b64(bytes(16)), "blinded": b64(oprf.serialize(blinded)),
                "r": slot["r"], "next": framing.ratchet_hash(b"\1" * 32)}
        answers = [device.call("slots/unlock", body) for _ in range(3)]
        self.assertEqual({(one["n"], one["unl"], one["evaluated"]) for one in answers},
                         {(1, answers[0]["unl"], answers[0]["evaluated"])})
        self.refused("wrong_generation", device.call, "slots/unlock", {**body, "gen": 1})
        for wrong in (b"\2" + b"\xff" * 48, b"\5" + bytes(48), bytes(49)):
            self.refused("invalid_request", device.call, "slots/unlock", {**body, "blinded": b64(wrong)})

    def test_an_evaluation_by_another_key_is_refused(self):
        device = self.enrolled("assisted")
        slot = self.slot(device)
        good, slot.public = slot.public, b64(oprf.serialize(oprf.G))
        with self.assertRaises(Refused):
            device.open_key(device.state["keys"]["payments"], PIN)
        slot.public = good
        slot.k = oprf.random_scalar()
        with self.assertRaises(Refused):
            device.open_key(device.state["keys"]["payments"], PIN)
        slot.public = b64(oprf.serialize(oprf.public_of(slot.k)))
        with self.assertRaises(Refused):
            device.open_key(device.state["keys"]["payments"], PIN)

    def test_a_guess_in_parallel_is_not_forgiven(self):
        """A confirmation forgives what came before it, and nothing that came after."""
        device = self.enrolled("assisted")
        slot = self.slot(device)
        device.wire.lose = "slots/confirm"
        with self.assertRaises(ConnectionError):
            device.open_key(device.state["keys"]["payments"], PIN)
        confirmation = device.state["slots"]["signing"].pop("outbox")
        slot.confirms.clear()
        vars(slot).update(floor=0, unconfirmed=1)
        for _ in range(2):
            self.clock.time += 61
            self.refused("wrongPassword", device.open_key, device.state["keys"]["payments"], "3141")
        device.call("slots/confirm", confirmation)
        self.assertEqual((slot.n, slot.floor, slot.unconfirmed), (3, 1, 2))
        device.call("slots/confirm", confirmation)
        self.assertEqual((slot.n, slot.floor, slot.unconfirmed), (3, 1, 2))

    def test_confirmations_that_are_refused(self):
        device, other = self.enrolled("assisted"), self.enrolled("assisted")
        device.wire.lose = "slots/confirm"
        with self.assertRaises(ConnectionError):
            device.open_key(device.state["keys"]["payments"], PIN)
        good = device.state["slots"]["signing"]["outbox"]
        content = strict_json.parse_object(jose.Unverified(good["confirm"]).content)
        forged = jose.sign("tsp-eval+jwt", jose.Unverified(good["eval"]).content, jose.Key())
        for wrong in ({**good, "eval": forged},
                      {**good, "confirm": jose.sign("tsp-confirm+jwt", content, device.device_key)},
                      {**good, "confirm": good["confirm"][:-4] + "AAAA"}):
            with self.assertRaises(Problem):
                device.call("slots/confirm", wrong)
        with self.assertRaises(Problem):
            other.call("slots/confirm", good)

    def test_a_changed_pin(self):
        """With every answer lost on the way, and the old password useless afterwards."""
        for lost in (None, "slots/change-start", "slots/change-commit"):
            device = self.enrolled("assisted")
            old = self.slot(device).k
            device.wire.lose = lost
            if lost:
                with self.assertRaises(ConnectionError):
                    device.change(PIN, "3141")
            self.assertEqual(device.change(PIN, "3141")["slots"][0]["gen"], 1)
            self.assertNotEqual(self.slot(device).k, old)
            self.refused("wrongPassword", device.decide, self.asked(device)["txn"], "accept", password=PIN)
            txn = self.asked(device)["txn"]
            self.assertEqual(device.decide(txn, "accept", password="3141")["unlock"]["gen"], 1)
            self.assertEqual(self.verified(txn).contradicted, [])

    def test_changes_that_are_refused(self):
        device = self.enrolled("assisted")
        self.refused("invalidPassword", device.change, PIN, "1234")
        self.refused("wrongPassword", device.change, "3141", "2719")
        key, unl = device.open_key(device.state["keys"]["payments"], PIN)
        _, blinded = oprf.blind(b"any")
        base = {"v": 1, "aud": ISS, "did": device.state["did"], "slot": "signing", "from": 0, "to": 1, "step": "start",
                "unl": unl, "jti": b64(os.urandom(16))}
        slot = self.slot(device)

        def start(key=key, **changes):
            content = {name: value for name, value in {**base, **changes}.items() if value is not None}
            step = content["step"]
            return device.call(f"slots/change-{step}", {
                "change": jose.sign("tsp-change+jwt", content, key), **({} if step == "commit" else {
                    "rid": b64(bytes(16)), "blinded": b64(oprf.serialize(blinded))})})

        self.refused("wrong_generation", start, step="commit", unl=None, pk=slot.public)
        for changes, code in (({"key": device.device_key}, "bad_signature"), ({"did": b64(bytes(16))}, "bad_signature"),
                              ({"from": 1, "to": 2}, "wrong_generation"), ({"to": 2}, "bad_signature"),
                              ({"unl": b64(bytes(16))}, "unlock_required")):
            self.refused(code, start, **changes)
        self.assertIsNone(slot.pending)
        first, old = start()["pk"], slot.public
        second = start()["pk"]
        self.assertNotEqual(second, first)
        self.clock.time += 300
        self.refused("unlock_required", start)
        for other in (first, old):
            self.refused("wrong_generation", start, step="commit", unl=None, pk=other)
        self.assertEqual((slot.gen, slot.public), (0, old))
        start(step="commit", unl=None, pk=second)
        self.assertEqual(start(step="commit", unl=None, pk=second)["slots"][0]["gen"], 1)
        self.refused("wrong_generation", start, step="commit", unl=None, pk=first)

    def test_a_local_pin_locks_on_the_device(self):
        device = self.enrolled("local")
        txn = self.asked(device)["txn"]
        for _ in range(5):
            self.refused("wrongPassword", device.decide, txn, "accept", password="3141")
        self.assertEqual(device.state["keys"]["payments"]["blob"], "")


class RenewalTests(Story):
    def late(self, mode):
        device = self.enrolled(mode)
        self.clock.time += 340 * 86400
        self.server.certify(self.clock())
        return device

    def test_renewed_keys_in_every_mode(self):
        for mode in ("device", "local", "assisted"):
            device = self.late(mode)
            old = {one["kid"] for one in device.state["keys"].values()}
            old_key = device.device_key
            undecided = self.asked(device, ttl=3600)["txn"]
            document = device.state["documents"][undecided]
            self.assertIsNone(device.renew(PIN, "3141"))
            self.assertFalse(old & {one["kid"] for one in device.state["keys"].values()})
            self.assertNotIn("renewing", device.state)
            device.fetch(undecided)
            self.assertNotEqual(device.state["documents"][undecided], document)
            self.assertEqual(device.decide(undecided, "accept", password="3141")["state"], "APPROVED")
            verifier = self.verified(undecided)
            self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
            self.assertEqual(len(verifier.bundle["enrolments"]), 2)
            again = Device(in_process(self.server), state={**device.state, "keys": {"device": {
                "kid": old_key.kid, "jwk": old_key.jwk, "scalar": hex(old_key.scalar)}}, "device_label": "device"})
            self.refused("key_retired", again.status)
            if mode == "assisted":
                self.assertEqual(device.status()["slots"][0]["gen"], 1)
                self.refused("wrongPassword", device.decide, self.asked(device)["txn"], "accept", password=PIN)

    def test_a_lost_confirmation(self):
        device = self.late("assisted")
        device.wire.lose = "renew/confirm"
        with self.assertRaises(ConnectionError):
            device.renew(PIN)
        self.assertIn("renewing", device.state)
        device.finish_renewal()
        self.assertNotIn("renewing", device.state)
        self.assertEqual(device.decide(self.asked(device)["txn"], "accept", password=PIN)["state"], "APPROVED")

    def test_a_renewal_that_begins_again(self):
        device = self.late("device")
        first, second = Renewal(device, None), Renewal(device, None)
        self.assertEqual(first.begin(None)["pid"], second.begin(None)["pid"])
        second.prepare()
        second.commit()
        third = Renewal(device, None)
        self.assertNotEqual(third.begin(None)["pid"], second.state["offer"]["pid"])
        self.refused("invalid_request", second.complete)
        third.prepare()
        third.commit()
        third.complete()
        third.confirm()
        self.assertTrue(third.take_over())
        invited = self.server.make_invite(did=device.state["did"])
        code = invited["code"]
        fourth = Renewal(device, None)
        fourth.begin(code)
        fourth.prepare()
        fourth.commit()
        self.refused("invalid_code", Renewal(device, None).begin, code)

    def test_an_unfinished_renewal_changes_nothing(self):
        device = self.late("device")
        renewal = Renewal(device, None)
        renewal.begin(None)
        renewal.prepare()
        renewal.commit()
        self.clock.time += 1501
        self.refused("enrolment_void", renewal.complete)
        self.assertEqual(device.status()["state"], "ACTIVE")
        self.assertIsNone(device.renew())

    def test_the_old_keys_count_until_the_new_ones_are_confirmed(self):
        device = self.late("device")
        device.wire.lose = "renew/complete"
        with self.assertRaises(ConnectionError):
            device.renew()
        self.assertEqual(device.decide(self.asked(device)["txn"], "accept")["state"], "APPROVED")

    def test_a_reset_after_a_forgotten_pin(self):
        device = self.enrolled("assisted")
        self.server.containers[device.state["did"]].state = "SUSPECT"
        invited = self.server.make_invite(did=device.state["did"])
        stranger, other = Device(in_process(self.server)), self.enrolled("assisted", "bob")
        self.refused("invalid_code", stranger.start, code=invited["code"], iss=ISS)
        self.refused("invalid_code", other.renew, PIN, None, invited["code"])
        digits = device.renew(None, "3141", invited["code"])
        self.assertEqual(device.status()["state"], "SUSPECT")
        self.assertIn("renewing", device.state)
        self.refused("digits_wrong", self.server.type_digits, invited["pid"], "00000000")
        self.assertEqual(self.server.type_digits(invited["pid"], digits), "ACTIVE")
        device.finish_renewal()
        txn = self.asked(device)["txn"]
        device.decide(txn, "accept", password="3141")
        verifier = self.verified(txn)
        self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))
        self.assertTrue(any("a reset" in one for one in verifier.missing))

    def test_when_it_is_possible(self):
        device = self.enrolled()
        self.refused("fresh_authentication_required", device.renew)
        self.server.containers[device.state["did"]].state = "SUSPECT"
        self.refused("container_suspect", device.renew)
        self.server.containers[device.state["did"]].state = "ACTIVE"
        self.clock.time += 366 * 86400
        device.nonce = None
        self.server.certify(self.clock())
        self.refused("key_expired", device.renew)

    def test_endorsements_that_are_refused(self):
        device, other = self.late("device"), self.enrolled(user="bob")
        good = Renewal.endorsements
        for wrong in (lambda renewal: {"endorsements": good(renewal)["endorsements"][:1]},
                      lambda renewal: {"endorsements": good(renewal)["endorsements"][:1] * 2},
                      lambda renewal: {"endorsements": [jose.sign(
                          "tsp-endorse+jwt", jose.Unverified(one).content, key) for one, key in zip(
                              good(renewal)["endorsements"], (device.device_key, other.key("payments")))]}):
            with mock.patch.object(Renewal, "endorsements", wrong):
                self.refused("bad_signature", device.renew)

    def test_a_key_without_a_password_does_not_endorse_for_one_behind_it(self):
        device = self.late("mixed")
        good = Renewal.endorsements

        def bare(renewal):
            first, _ = good(renewal)["endorsements"]
            return {"endorsements": [first, jose.sign(
                "tsp-endorse+jwt", {**json.loads(jose.Unverified(first).content), "jti": b64(os.urandom(16))}, device.key("readings"))]}
        with mock.patch.object(Renewal, "endorsements", bare):
            self.refused("bad_signature", device.renew, PIN)
        self.assertIsNone(device.renew(PIN))
        self.assertEqual(device.status()["slots"][0]["gen"], 1)

    def test_a_renewal_takes_an_evaluation_of_the_last_minutes_that_nothing_has_taken(self):
        device = self.late("assisted")
        good = Renewal.endorsements

        def later(renewal):
            endorsements = good(renewal)
            self.clock.time += 301
            return endorsements
        with mock.patch.object(Renewal, "endorsements", later):
            self.refused("unlock_required", device.renew, PIN)

        def taken(renewal):
            endorsements = good(renewal)
            self.server.containers[device.state["did"]].slots["signing"].take_newest("a decision", self.clock())
            return endorsements
        with mock.patch.object(Renewal, "endorsements", taken):
            self.refused("unlock_required", device.renew, PIN)
        self.assertIsNone(device.renew(PIN))

    def test_where_the_keys_behind_a_password_were_destroyed_only_a_reset_helps(self):
        for mode in ("assisted", "mixed"):
            device = self.late(mode)
            self.server.containers[device.state["did"]].slots["signing"].k = None
            self.refused("fresh_authentication_required", device.renew, PIN)
            invited = self.server.make_invite(did=device.state["did"])
            digits = device.renew(None, "3141", invited["code"])
            self.assertEqual(self.server.type_digits(invited["pid"], digits), "ACTIVE")
            device.finish_renewal()
            self.assertEqual(device.status()["slots"][0]["state"], "OPEN")

    def test_offers_that_a_renewal_refuses(self):
        device = self.late("assisted")
        invited = self.server.containers[device.state["did"]].invite
        for mode in ("local", "device"):
            invited["mode"] = mode
            with self.assertRaises(Refused):
                device.renew(PIN)
            self.server.containers[device.state["did"]].renewing = None
        invited["mode"] = "assisted"
        device.renew(PIN)

    def test_a_late_start(self):
        """It replaces the offer of the renewal: the device asks for another one, twice at most."""
        for late in (1, 2, 3):
            device = self.enrolled("assisted")
            self.clock.time += 340 * 86400
            self.server.certify(self.clock())
            first, inner, left = device.device_key.kid, device.transport, [late]

            def transport(method, url, headers, body):
                answer = inner(method, url, headers, body)
                if url.endswith("/renew/evaluate") and left[0]:
                    left[0] -= 1
                    Renewal(device, PIN).begin(None)
                return answer

            device.transport = transport
            if late == 3:
                self.refused("hash_mismatch", device.renew, PIN)
            else:
                device.renew(PIN)
            self.assertEqual((device.device_key.kid == first, left), (late == 3, [0]))
            self.assertEqual(device.status()["state"], "ACTIVE")


class SocketTests(unittest.TestCase):
    """Over TLS, with a state file, and with the calls of whoever tests."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.listener = http_server.listen(cls.directory.name)

    @classmethod
    def tearDownClass(cls):
        cls.listener.shutdown()
        cls.listener.server_close()
        cls.directory.cleanup()

    def control(self, name, **content):
        request = Request(f"{self.listener.tsp.iss}/control/{name}", json.dumps(content).encode(), {
            "Authorization": f"Bearer {self.listener.token}"})
        with urlopen(request, timeout=3600, context=ssl.create_default_context(cafile=self.listener.ca)) as answer:
            return json.loads(answer.read())

    def test_the_whole_story(self):
        path = os.path.join(self.directory.name, "device.json")
        transport = HTTPTransport(self.listener.ca)
        invited = self.control("invite", mode="assisted")
        digits = Device(transport, path).enrol(PIN, qr=invited["qr"])
        self.assertEqual(self.control("digits", pid=invited["pid"], digits=digits), {"state": "ACTIVE"})
        found = []
        waiting = threading.Thread(target=lambda: found.extend(Device(transport, path).list(10)))
        changed = self.listener.tsp.changed
        # However long it takes, only the transaction ends it.
        with mock.patch.object(
                changed, "wait_for", lambda predicate, timeout: type(changed).wait_for(changed, predicate)):
            waiting.start()
            made = self.control("create", match=True, fields=FIELDS)
            waiting.join(3600)
        self.assertEqual(found, [made["txn"]])
        device = Device(transport, path)
        device.fetch(made["txn"])
        device.decide(made["txn"], "accept", number=made["number"], password=PIN)
        self.assertEqual(self.control("transaction", txn=made["txn"])["state"], "APPROVED")
        data = strict_json.write(self.control("bundle", txn=made["txn"]))
        self.assertEqual(evidence.Verifier(data, self.listener.tsp.identity.kid).exit_status, 0)
        self.assertEqual(Device(transport, path).delete()["state"], "REVOKED")
        self.assertTrue(unb64(device.state["handle"], 32))

    def test_plain_http_by_another_url(self):
        listener = http_server.listen(iss=ISS)
        try:
            device = Device(HTTPTransport(connect=listener.url))
            invited = listener.tsp.make_invite()
            with self.assertRaises(Problem):
                device.configuration(ISS + "/other")
            digits = device.enrol(qr=invited["qr"])
            self.assertEqual(listener.tsp.type_digits(invited["pid"], digits), "ACTIVE")
        finally:
            listener.shutdown()
            listener.server_close()
