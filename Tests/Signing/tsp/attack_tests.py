"""The relay at enrolment, and the thief with the device's file, each with a control that must succeed."""
import json
import random
import unittest

from . import framing, oprf, pin, relay, thief
from .device import Device
from .framing import b64, unb64
from .http_server import in_process
from .server import Server
from .slots import Slot

PIN = "2718"
SPACE = ["0000", "1357", "2717", PIN, "8281", "9753"]


class RelayTests(unittest.TestCase):
    def test_no_field_that_is_replaced_ends_active(self):
        outcomes = relay.run("device")
        self.assertGreater(len(outcomes), 250)
        messages = {target[1] for _, target, _ in outcomes}
        for name in ("configuration", "tsp-offer+jwt", "tsp-nonce+jwt", "tsp-enrolled+jwt", "tsp-status+jwt",
                     "tsp-start+jwt", "tsp-proof+jwt", "tsp-pop+jwt", "tsp-enrol+jwt", "body of provision/commit",
                     "body of provision/complete", "body of provision/confirm"):
            self.assertIn(name, messages)
        self.assertEqual([one for one in outcomes if one[2].startswith("BROKEN")], [])
        self.assertGreater(sum(one[2].startswith("digits differ") for one in outcomes), 20)

    def test_no_slot_policy_or_evaluation_that_is_replaced_ends_active(self):
        chosen = [one for one in relay.targets("assisted") if one[1] == "tsp-eval+jwt" or
                  one[1] == "tsp-offer+jwt" and one[2][0] in ("slots", "policies") and one[2][-1] in (
                      "pk", "mode", "gen", "kdf", "max", "cap", "type", "minLength")]
        self.assertGreater(len(chosen), 15)
        for target in chosen:
            outcome, _ = relay.enrol("server first", "assisted", target)
            self.assertFalse(outcome.startswith("BROKEN"), (target, outcome))

    def test_a_scanned_invite_lets_no_change_through(self):
        outcomes = relay.tamper_with_scanned(Server(relay.ISS))
        self.assertGreater(len(outcomes), 100)
        self.assertEqual([one for one in outcomes if not one[3].startswith("refused")], [])

    def test_control_the_weak_fingerprint_breaks(self):
        self.assertEqual(relay.run_weak(4), "BROKEN: ACTIVE")

    def test_control_a_relay_that_only_carries_ends_active(self):
        """So the harness would notice an enrolment that succeeds."""
        server = Server(relay.ISS)
        invited = server.make_invite()
        digits = Device(in_process(server)).enrol(code=invited["code"], iss=relay.ISS)
        self.assertEqual(server.type_digits(invited["pid"], digits), "ACTIVE")

    def test_grinding_helps_as_little_as_chance(self):
        """Twenty of two thousand are expected for two digits; sixty would be nine standard deviations."""
        for order in relay.ORDERS:
            self.assertLess(relay.simulate(order, count=2, rounds=2000, budget=40), 60)

    def test_control_without_the_commitment_grinding_wins(self):
        self.assertEqual(relay.simulate("server first", 1, 100, 1000, committed=False), 100)


class RatchetTests(unittest.TestCase):
    """The ratchet without the rest: what a device stores, sends and loses, and two nodes with clocks of their own."""

    def setUp(self):
        self.time, self.random = 1_000_000, random.Random(11)
        self.skew = (0, 60)
        self.counter = 0

    def clock(self):
        """The clock of whichever node answers."""
        return self.time + self.random.choice(self.skew)

    def fresh(self):
        self.counter += 1
        return b64(self.counter.to_bytes(32, "big"))

    def slot(self):
        made = Slot({"slot": "signing", "gen": 0, "mode": "assisted"}, {"max": 10, "cap": 100})
        made.unconfirmed = -10 ** 9
        return made

    def request(self, store):
        """What a device sends; it stores r' first. `made` is the time of its nonce."""
        store.setdefault("next", self.fresh())
        return {"slot": "signing", "gen": 0, "rid": self.fresh(), "blinded": self.fresh(), "r": store["r"],
                "next": framing.ratchet_hash(unb64(store["next"])), "made": self.clock()}

    def deliver(self, slot, request):
        """True, if the server evaluated; the count of tries is not what is tested here."""
        slot.floor = slot.n
        try:
            slot.unlock(request, None, request["made"], self.clock())
            return True
        except framing.Refused as refused:
            if refused.code == "container_suspect":
                raise
            return False

    def test_no_alarm_whatever_is_lost_delayed_or_repeated(self):
        slot, store, delayed = self.slot(), {"r": self.fresh()}, []
        evaluated = 0
        for _ in range(20_000):
            self.time += self.random.choice((0, 0, 0, 1, 2, 40))
            chance = self.random.random()
            if chance < 0.2 and delayed:
                old = self.random.choice(delayed)
                if self.time - old["made"] < 300:
                    self.deliver(slot, old)
                continue
            request = self.request(store)
            delayed = [*delayed[-20:], request]
            if chance < 0.4:
                continue  # Lost on the way there; perhaps it arrives later.
            for _ in range(3):
                if self.deliver(slot, request):
                    evaluated += 1
                    if self.random.random() < 0.8:
                        store["r"] = store.pop("next")
                    break
                request["made"] = self.clock()
                self.time += 31
        self.assertGreater(evaluated, 10_000)

    def test_every_fork_is_found_at_the_second_unlock(self):
        for at in range(300):
            slot, store = self.slot(), {"r": self.fresh()}
            for _ in range(at % 4):
                self.time += 70
                self.assertTrue(self.deliver(slot, self.request(store)))
                store["r"] = store.pop("next")
            if at % 2:
                self.request(store)
            copied = dict(store)
            users, found = [store, copied], False
            self.random.shuffle(users)
            for user in users * 2:
                self.time += 150
                try:
                    if self.deliver(slot, self.request(user)):
                        user["r"] = user.pop("next")
                except framing.Refused:
                    found = True
                    break
            self.assertTrue(found, at)


class ThiefTests(unittest.TestCase):
    def stolen(self, mode):
        """The file, everything that passed, and the server."""
        server = Server(relay.ISS)
        inner, passed = in_process(server), []

        def send(method, url, headers, body):
            answer = inner(method, url, headers, body)
            passed.extend([headers.get("TSP-Proof", ""), (body or b"").decode(), answer[2].decode()])
            return answer

        device = Device(send)
        invited = server.make_invite(mode=mode)
        server.type_digits(invited["pid"], device.enrol(PIN, qr=invited["qr"]))
        for password in (PIN, "3141"):
            txn = server.create()["txn"]
            device.fetch(txn)
            try:
                device.decide(txn, "accept", password=password)
            except framing.Refused:
                continue
        opened = [json.dumps(device.state)] + passed
        for one in passed:
            try:
                opened.append(server.open(one.encode(), device.state["did"]))
            except framing.Refused:
                continue
        return json.loads(json.dumps(device.state)), opened, server, device

    def test_control_a_local_pin_is_found(self):
        state, passed, _, _ = self.stolen("local")
        self.assertEqual(thief.Thief(state, passed).search(SPACE), {PIN: ["the local KEK opens the blob"]})

    def test_an_assisted_pin_is_not_found_without_k(self):
        state, passed, server, device = self.stolen("assisted")
        found = thief.Thief(state, passed)
        self.assertGreater(len(found.captured), 30)
        self.assertGreaterEqual(len(found.elements), 5)
        self.assertEqual(found.search(SPACE), {})
        k = server.containers[device.state["did"]].slots["signing"].k
        self.assertEqual(thief.Thief(state, passed, k=k).search(SPACE), {PIN: ["the server's k"]})

    def test_old_blobs_need_the_old_k(self):
        """A change keeps the key and makes another k; the thief has the blobs of both generations."""
        state, passed, server, device = self.stolen("assisted")
        slots = server.containers[device.state["did"]].slots
        old_k, entry = slots["signing"].k, state["keys"]["payments"]
        old_slot, old_blob = dict(state["slots"]["signing"]), entry["blob"]
        scalar, _ = device.open_key(device.state["keys"]["payments"], PIN)
        fresh = Slot({"slot": "signing", "gen": 1, "mode": "assisted"}, {"max": 5, "cap": 20})
        slot = {**old_slot, "gen": 1, "salt": b64(bytes(range(16))), "pk": fresh.public}
        s = pin.scrypt(PIN, unb64(slot["salt"]), slot["kdf"])
        message = framing.oprf_input(state["iss"], state["did"], "signing", 1, s)

        o = oprf.finalize(message, 1, oprf.multiply(fresh.k, oprf.hash_to_curve(message)))
        kek, aad = device.kek(slot, entry["kid"], s, o)
        entry["blob"] = b64(pin.seal(kek, aad, pin.content(scalar.scalar, 0)))
        state["slots"]["signing"] = slot
        old = [(old_slot, entry["kid"], old_blob)]
        self.assertEqual(thief.Thief(state, passed, old).search(SPACE[2:5]), {})
        for k in (old_k, fresh.k):
            self.assertEqual(thief.Thief(state, passed, old, k=k).search(SPACE[2:5]), {PIN: ["the server's k"]})
