"""Another implementation's server at the far end of the relay, over HTTP, with what its user's page asks.

The relay goes through every field of an enrolment that it sees, so a field that is new is covered by itself.
"""
import collections
import concurrent.futures
import hashlib
import itertools
import json
import os
import re

from . import pin, relay
from .framing import Refused
from .messages import scrypt_cost
from .transport import HTTPTransport

# What would refuse everybody, and would say nothing about the field.
DEAF = re.compile(r"harness:|refused: 5|rate_limited|device_limit|unauthorized|forbidden|fresh_authentication")


class Elsewhere:
    """`place` has `iss`, `ca`, `connect` if the server is reached by another URL, and `fields`: the header fields of a
    user's session."""

    # A server counts bad calls by their address; each enrolment comes from one of its own.
    addresses = (f"127.{a}.{b}.{c}" for a, b, c in itertools.product(range(1, 255), range(256), range(1, 255)))

    def __init__(self, place, fingerprint=None):
        self.iss, self.ca, self.fields = place["iss"], place["ca"], place["fields"]
        self.connect = place.get("connect")
        self.fingerprint = fingerprint
        self.users, self.back, self.pid, self.source = {}, None, None, None

    def transport(self):
        return HTTPTransport(self.ca, connect=self.connect, source=self.source)

    def ask(self, method, path, content=None):
        body = None if content is None else json.dumps(content).encode()
        headers = {**self.fields, **({"Content-Type": "application/json"} if body else {})}
        status, _, answer = self.transport()(method, f"{self.iss}/{path}", headers, body)
        answer = json.loads(answer) if answer else {}
        if status >= 400:
            raise Refused(answer.get("detail", ""), answer.get("code", str(status)))
        return answer

    def make_invite(self, mode=None):
        """The server's own policies say with which mode."""
        self.source = next(self.addresses)
        made = self.ask("POST", "invites", {})
        self.pid = made["pid"]
        return made

    def type_digits(self, pid, digits):
        if self.fingerprint:
            # A server with the weak fingerprint would compare these; then it would go on as with the right digits.
            if digits != self.back.digits():
                raise Refused("other digits", "digits_wrong")
            self.back.fingerprint = None
            digits = self.back.digits()
        return self.ask("POST", f"invites/{pid}/digits", {"digits": digits})["state"]

    def end(self):
        """A user may have a few containers only."""
        if self.pid is None:
            return
        self.ask("DELETE", f"invites/{self.pid}")
        for one in self.ask("GET", "containers")["containers"]:
            if one["state"] == "ACTIVE":
                self.ask("POST", f"containers/{one['did']}", {"action": "revoke"})


def once(place, order, mode, target=None, told=False):
    server = Elsewhere(place)
    try:
        return relay.enrol(order, mode, target, server=server, told=told)[0]
    except (Refused, OSError) as error:
        return f"harness: {error}"
    finally:
        server.end()


def _replaced(work):
    place, order, mode, target = work
    return order, target, once(place, order, mode, target)


def _stretched(password, salt, kdf):
    """In scrypt's place, and at no cost: what a device makes of its password by itself is not what is tried here."""
    return hashlib.sha256(json.dumps([password, *scrypt_cost(kdf)]).encode() + salt).digest()


def _apart():
    """Each process has addresses of its own."""
    pin.scrypt = _stretched
    net = os.getpid() % 250 + 2
    Elsewhere.addresses = (f"127.{net}.{b}.{c}" for b, c in itertools.product(range(256), range(1, 255)))


def run(place, mode, orders, every=1, workers=2):
    """Every field, or only every third or so and one of each message; [(order, target, outcome)]."""
    server = Elsewhere(place)
    seen = collections.Counter()
    targets = []
    for number, target in enumerate(relay.targets(mode, server)):
        seen[target[:2]] += 1
        if number % every == 0 or seen[target[:2]] == 1:
            targets.append(target)
    server.end()
    work = [(place, order, mode, target) for order in orders for target in targets]
    with concurrent.futures.ProcessPoolExecutor(workers, initializer=_apart) as pool:
        return list(pool.map(_replaced, work))


def report(place, mode, orders, every=1, digits=3):
    """What a test reads: how many fields, what became of them, and the controls."""
    pin.scrypt = _stretched
    outcomes = run(place, mode, orders, every)
    server, scanned = Elsewhere(place, fingerprint=True), Elsewhere(place)
    weak = relay.run_weak(digits, server, mode)
    server.end()
    scans = relay.tamper_with_scanned(scanned, mode, every)
    return {
        "fields": len(outcomes), "messages": sorted({target[1] for _, target, _ in outcomes}),
        "outcomes": collections.Counter(outcome.split(":")[0] for _, _, outcome in outcomes),
        "broken": [one for one in outcomes if one[2].startswith("BROKEN")],
        "deaf": [one for one in outcomes if DEAF.search(one[2])],
        "nothing": [once(place, order, mode) for order in orders],
        "told": [once(place, order, mode, told=True) for order in orders], "weak": weak,
        "scanned": len(scans), "accepted": [one for one in scans if not one[3].startswith("refused")]}
