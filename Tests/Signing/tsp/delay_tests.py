"""One message of a ceremony comes late, or twice: any one, at any later point."""
import copy
import os

from .device import Device, Problem
from .framing import Refused
from .http_server import in_process
from .story_tests import FIELDS, PIN, Story

NEW = "3141"
# Otherwise, of messages that come twice, each third combination.
SOAK = os.environ.get("ASSENT_SOAK") == "1"


class Postman:
    """A transport that keeps one call, and delivers it just before a later one.

    `held` does not arrive until then; `unanswered` arrives, but its answer is lost; `repeated` is answered."""

    def __init__(self, server, fate="repeated", kept=None, release=None):
        self.send = in_process(server)
        self.fate, self.kept, self.release = fate, kept, release
        self.calls = 0
        self.waiting = None

    def __call__(self, method, url, headers, body):
        if "/device/" not in url:
            return self.send(method, url, headers, body)
        number, self.calls = self.calls, self.calls + 1
        if number == self.release:
            self.deliver()
        if number == self.kept:
            self.waiting = method, url, headers, body
            if self.fate == "held":
                raise ConnectionError("nothing arrived")
        answer = self.send(method, url, headers, body)
        if number == self.kept and self.fate == "unanswered":
            raise ConnectionError("the answer was lost")
        return answer

    def deliver(self):
        if self.waiting:
            self.send(*self.waiting)
            self.waiting = None


class DelayTests(Story):
    def setUp(self):
        super().setUp()
        # Enrolled once: most of the time would go into that.
        state, self.begin = self.enrolled("assisted").state, self.clock.time
        self.before = copy.deepcopy((state, {name: getattr(self.server, name) for name in (
            "containers", "invites", "transactions", "proofs")}))

    def with_postman(self, *arguments):
        """A device that is enrolled, and a network that keeps a call of it from now on."""
        state, tables = copy.deepcopy(self.before)
        vars(self.server).update(tables)
        self.clock.time = self.begin
        self.server.certify(self.begin)
        return Device(Postman(self.server, *arguments), state=state)

    def patiently(self, step, *arguments, **options):
        """As a user does it: again, until it is done, and after the delays of the lock."""
        for _ in range(4):
            try:
                return step(*arguments, **options)
            except (ConnectionError, Problem, Refused) as error:
                last = error
                self.clock.time += 60 if getattr(error, "code", "") == "wait" else 0
        raise last

    def enrol(self, *arguments):
        device = Device(Postman(self.server, *arguments))
        invited = self.server.make_invite(mode="assisted")
        self.patiently(device.start, qr=invited["qr"])
        for step, options in ((device.prepare, (PIN,)), (device.commit, ()), (device.complete, ()),
                              (device.confirm, ())):
            self.patiently(step, *options)
        self.assertEqual(self.server.type_digits(invited["pid"], device.digits()), "ACTIVE")
        return device, PIN

    def approve(self, *arguments):
        device = self.with_postman(*arguments)
        txn = self.server.create(fields=FIELDS)["txn"]
        self.patiently(device.list)
        self.patiently(device.fetch, txn)
        self.assertEqual(self.patiently(device.decide, txn, "accept", password=PIN)["state"], "APPROVED")
        return device, PIN

    def change(self, *arguments):
        device = self.with_postman(*arguments)
        self.assertEqual(self.patiently(device.change, PIN, NEW)["slots"][0]["gen"], 1)
        return device, NEW

    def renew(self, *arguments):
        device = self.with_postman(*arguments)
        self.clock.time += 340 * 86400
        self.server.certify(self.clock())
        first = device.device_key.kid

        def again():
            if "echo" in device.state.get("renewing", {}):
                try:
                    device.finish_renewal()
                except (Problem, Refused):
                    # It is over: nothing of it counts.
                    del device.state["renewing"]
            if device.device_key.kid == first:
                device.renew(PIN, PIN)

        self.patiently(again)
        self.assertNotEqual(device.device_key.kid, first)
        return device, PIN

    def test_any_message_of_a_ceremony_late_or_twice(self):
        for ceremony in (self.enrol, self.approve, self.change, self.renew):
            count = ceremony()[0].transport.calls
            self.assertGreaterEqual(count, 4)
            for number, fate in enumerate(("held", "unanswered", "repeated")):
                for kept in range(count):
                    for release in range(kept + 1, 2 * count + 1):
                        if fate != "held" and not SOAK and (number + kept + release) % 3:
                            continue
                        with self.subTest(ceremony=ceremony.__name__, fate=fate, kept=kept, release=release):
                            device, password = ceremony(fate, kept, release)
                            over = device.transport.calls <= release
                            device.transport.deliver()
                            self.assertEqual(device.status()["state"], "ACTIVE")
                            txn = self.server.create(fields=FIELDS)["txn"]
                            device.fetch(txn)
                            self.clock.time += 60
                            self.assertEqual(device.decide(txn, "accept", password=password)["state"], "APPROVED")
                        if over:
                            break

    def test_a_start_that_comes_late(self):
        """It makes another pending key. The commit names the one before: it is refused, and nothing has changed."""
        # Unlock, confirm and start, which does not arrive; then the same again, and the commit.
        device = self.with_postman("held", 2, 6)
        with self.assertRaises(ConnectionError):
            device.change(PIN, NEW)
        self.refused("wrong_generation", device.change, PIN, NEW)
        status = device.status()["slots"][0]
        self.assertEqual((status["gen"], status["state"], status["tries"]), (0, "OPEN", 5))
        self.assertEqual(device.decide(self.asked(device)["txn"], "accept", password=PIN)["state"], "APPROVED")
        self.assertEqual(device.change(PIN, NEW)["slots"][0]["gen"], 1)
        self.assertEqual(device.decide(self.asked(device)["txn"], "accept", password=NEW)["state"], "APPROVED")
