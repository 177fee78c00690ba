"""A machine in the middle of an enrolment that replaces each field of each message, in both directions.

The user typed the code, so the device knows no key of the server: the middle plays the server towards the device and
the device towards the server, and copies what it can. The harness succeeds against a weak fingerprint (two public
keys and the id), and must not against the digits of the protocol.
"""
import copy
import functools
import os

from . import framing, jose, oprf, strict_json
from .device import Device, Problem, new_id
from .framing import Refused, b64, unb64
from .http_server import in_process
from .server import Server

ISS = "https://am.bank.example/am/signing/realms/root/realms/alpha"
PIN = "2718"
ORDERS = ("server first", "device first")
BUDGET = 1 << 22


def paths(value, prefix=()):
    """Every leaf of a message, and every list."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from paths(one, prefix + (name,))
    elif isinstance(value, list):
        yield prefix
        for at, one in enumerate(value):
            yield from paths(one, prefix + (at,))
    else:
        yield prefix


OTHERS = {"device": "local", "assisted": "local", "digits": "exchange", "sign": "auth", "counter": "none",
          "password": "bioPassword", "UNCONFIRMED": "ACTIVE", "enrol": "unlock", "POST": "GET", "EC": "OKP",
          "P-256": "P-384"}


def another(value):
    """Something of the same form."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return value[:-1] if value else ["A"]
    if value in OTHERS:
        return OTHERS[value]
    for size in (16, 32, 49, 96):
        try:
            unb64(value, size)
        except Refused:
            continue
        return b64(oprf.serialize(oprf.multiply(oprf.random_scalar(), oprf.G))) if size == 49 else b64(os.urandom(size))
    return value[:-1] + ("b" if value[-1:] != "b" else "c")


def replace(content, path):
    changed = copy.deepcopy(content)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = another(place[path[-1]])
    return changed


class Front(Server):
    """What the device takes for the server."""

    def __init__(self, middle):
        super().__init__(middle.server.iss, fingerprint=middle.fingerprint)
        self.middle = middle

    def signed(self, typ, content, document=False):
        full = self.middle.passing("to device", typ, {"v": 1, "iss": self.iss, **content})
        return jose.sign(typ, full, self.online, header=self.middle.header("to device", typ))

    def configuration(self):
        return self.middle.passing("to device", "configuration", super().configuration())

    def start(self, opened):
        content = strict_json.parse_object(jose.Unverified(opened[0]["start"]).content)
        if not self.invites:
            offer = self.middle.begin(content["code"], jose.thumbprint(content["jwk"]))
            self.invites[offer["pid"]] = {
                "pid": offer["pid"], "code": content["code"], "user": "ana", "sub": "?", "exp": offer["exp"],
                "mode": self.middle.mode, "commit": offer["commit"], "state": "OPEN", "starts": {}, "committed": None,
                "tries": 0, "did": self.middle.did}
        return super().start(opened)

    def provision_commit(self, container, content, made):
        nonce = self.middle.committing()
        if nonce:
            container.invite.update(sub=nonce["sub"], user=nonce["user"])
        else:
            container.invite["sub"] = self.middle.guessed_sub
        request_hash = self.request_hash
        answer = super().provision_commit(container, content, made)
        if nonce:
            container.nonce_s = unb64(nonce["nonceS"])
            self.request_hash = request_hash
            answer = super().provision_commit(container, content, made)
        return answer

    def provision_complete(self, container, content, made):
        request_hash = self.request_hash
        self.middle.completing(strict_json.parse_object(jose.Unverified(content["enrol"]).content))
        self.request_hash = request_hash
        return super().provision_complete(container, content, made)


class Back(Device):
    """What the server takes for the device."""

    def __init__(self, middle, transport):
        super().__init__(transport, fingerprint=middle.fingerprint)
        self.middle = middle

    def sign(self, typ, content, key):
        full = self.middle.passing("to server", typ, content)
        return jose.sign(typ, full, key, header=self.middle.header("to server", typ))

    def call(self, path, content):
        return super().call(path, self.middle.passing("to server", f"body of {path}", content))


class Middle:
    """One enrolment with one replaced field. `target` is (direction, message, path), or None to replace nothing."""

    def __init__(self, server, mode, order, target=None, fingerprint=None, grind=None):
        self.server, self.mode, self.order, self.target = server, mode, order, target
        self.fingerprint, self.grind = fingerprint, grind
        self.seen = {}
        self.front = Front(self)
        self.back = server.back = Back(self, reach(server))
        self.guessed_sub = server.users.get("ana", "?")
        self.device_nonce = None

    def passing(self, direction, name, content):
        self.seen.setdefault((direction, name), content)
        if self.target and self.target[:2] == (direction, name):
            try:
                return replace(content, self.target[2])
            except (KeyError, IndexError):
                return content
        return content

    def header(self, direction, typ):
        """Its header passes, too."""
        return lambda header: self.passing(direction, f"header of {typ}", header)

    def begin(self, code, device_kid):
        offer = self.back.start(code=code, iss=self.server.iss)
        self.did = offer["did"]
        if self.grind:
            self.did = self.grind(device_kid, self.front.identity.kid, self.back.device_key.kid,
                                  jose.thumbprint(self.back.state["pin"]), offer["did"])
        self.back.prepare(None if self.mode == "device" else PIN)
        return offer

    def committing(self):
        """Server first: the server's nonce can be copied. Device first: it is not known yet."""
        return self.back.commit() if self.order == "server first" else None

    def completing(self, enrol):
        if self.order == "device first":
            self.back.state["nonceD"] = enrol["nonceD"]
            self.back.commit()
        self.back.complete("Ana's phone")
        self.back.confirm()


def reach(server):
    """A transport to the server at the far end; one over HTTP has its own."""
    return server.transport() if hasattr(server, "transport") else in_process(server)


def enrol(order, mode, target=None, fingerprint=None, grind=None, server=None, told=False):
    """The outcome of one relayed enrolment, and the messages that passed.

    With `told` the user types what the relay says, instead of what the device shows.
    """
    server = server or Server(ISS, fingerprint=fingerprint)
    invited = server.make_invite(mode=mode)
    middle = Middle(server, mode, order, target, fingerprint, grind)
    device = Device(in_process(middle.front), fingerprint=fingerprint)
    try:
        shown = device.enrol(None if mode == "device" else PIN, code=invited["code"], iss=server.iss)
    except (Refused, Problem) as refused:
        return f"refused: {refused}", middle.seen
    try:
        state = server.type_digits(invited["pid"], middle.back.digits() if told else shown)
    except Refused as refused:
        return f"digits differ: {refused.code}", middle.seen
    return f"BROKEN: {state}", middle.seen


def targets(mode, server=None):
    """Every field of every message that passes when nothing is replaced."""
    outcome, seen = enrol("server first", mode, server=server)
    if not outcome.startswith("digits differ"):
        raise AssertionError(f"the relay itself does not work: {outcome}")
    for (direction, name), content in seen.items():
        for path in paths(content):
            yield direction, name, path


def run(mode="device", orders=ORDERS):
    """[(order, target, outcome)] over every field."""
    return [(order, target, enrol(order, mode, target)[0]) for order in orders for target in targets(mode)]


# --- the weak fingerprint, as positive control -----------------------------------------------------------------------


def grind_did(count, device_kid, front_identity, back_kid, real_identity, real_did):
    """An id for the device's side whose weak digits are those of the server's side."""
    wanted = framing.weak_digits(back_kid, real_identity, real_did, count)
    for _ in range(BUDGET):
        did = new_id()
        if framing.weak_digits(device_kid, front_identity, did, count) == wanted:
            return did
    raise Refused("the budget is spent")


def run_weak(count=4, server=None, mode="device"):
    """The same harness against the weak fingerprint, with fewer digits to save time."""
    weak = functools.partial(framing.weak_digits, count=count)
    return enrol("server first", mode, None, weak, functools.partial(grind_did, count), server)[0]


# --- how often grinding helps ----------------------------------------------------------------------------------------


def simulate(order, count=2, rounds=2000, budget=50, committed=True):
    """How many of `rounds` relays end with the same digits, when the middle tries `budget` values at its last choice.

    With `committed=False` the device shows nonceD before it gets nonceS, which is what the commitment prevents.
    """
    def side(nonce_d, nonce_s, fixed):
        return framing.digits(framing.frame("tsp/1 enrol", fixed, nonce_d, nonce_s), count)

    equal = 0
    for _ in range(rounds):
        nonce_d, nonce_s = os.urandom(32), os.urandom(32)
        if order == "server first":
            ours = os.urandom(32)
            wanted = side(ours, nonce_s, "server's side")
            known = nonce_d if not committed else os.urandom(32)
            chosen = _search(budget, lambda guess: side(known, guess, "device's side") == wanted)
            equal += side(nonce_d, chosen, "device's side") == wanted
        else:
            ours = os.urandom(32)
            wanted = side(nonce_d, ours, "device's side")
            known = os.urandom(32)
            chosen = _search(budget, lambda guess: side(guess, known, "server's side") == wanted)
            equal += side(chosen, nonce_s, "server's side") == wanted
    return equal


def _search(budget, good):
    for _ in range(budget):
        guess = os.urandom(32)
        if good(guess):
            return guess
    return os.urandom(32)


# --- a relay without the user's typed code: it knows neither the code nor a key that the device accepts --------------


def tamper_with_scanned(server, mode="device", every=1):
    """A scanned invite pins the identity key. Every answer is changed, once under the old signature, once re-signed."""
    outcomes = []
    thief = jose.Key()
    sample = {}

    def changing(name, path, resign):
        inner = reach(server)

        def send(method, url, headers, body):
            status, fields, answer = inner(method, url, headers, body)
            which = url[len(server.iss):]
            parts = answer.split(b".")
            if status == 200 and len(parts) == 3:
                content = strict_json.parse_object(unb64(parts[1].decode()))
                sample.setdefault(which, content)
                if which == name:
                    header = strict_json.parse_object(unb64(parts[0].decode()))
                    changed = strict_json.write(replace(content, path))
                    answer = jose.sign(header["typ"], changed, thief).encode() if resign else (
                        parts[0] + b"." + b64(changed).encode() + b"." + parts[2])
            elif status == 200 and which == "/configuration":
                content = strict_json.parse_object(answer)
                sample.setdefault(which, content)
                if which == name:
                    answer = strict_json.write(replace(content, path))
            return status, fields, answer
        return send

    def once(name, path, resign):
        invited = server.make_invite(mode=mode)
        device = Device(changing(name, path, resign))
        try:
            shown = device.enrol(None if mode == "device" else PIN, qr=invited["qr"])
            return f"BROKEN: {server.type_digits(invited['pid'], shown)}"
        except (Refused, Problem) as refused:
            return f"refused: {refused}"
        finally:
            if hasattr(server, "end"):
                server.end()

    once(None, None, False)
    for name, content in list(sample.items()):
        for path in list(paths(content))[::every]:
            if (name, path) == ("/configuration", ("name",)):
                continue  # Nobody signs it; a device shows the offer's name.
            for resign in (False, True) if name != "/configuration" else (False,):
                outcomes.append((name, path, resign, once(name, path, resign)))
    return outcomes
