"""TSP/1 in Python: `python3 Tests/Signing/tsp --help`."""
import argparse
import collections
import json
import os
import sys
import tempfile
import threading

if not __package__:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from tsp import elsewhere, evidence, http_server, invite, jose, relay, stolen, strict_json, thief  # noqa: E402
from tsp.device import Device, Problem  # noqa: E402
from tsp.framing import Refused  # noqa: E402
from tsp.server import Server  # noqa: E402
from tsp.transport import HTTPTransport  # noqa: E402


def show(value):
    print(json.dumps(value, indent=2, ensure_ascii=False))


def secret(argument):
    """A password comes from standard input or from a file, never from the command line."""
    if argument is None:
        return None
    with (sys.stdin if argument == "-" else open(argument, encoding="utf-8")) as file:
        return file.readline().rstrip("\n")


def run_device(options):
    device = Device(HTTPTransport(options.ca, options.connect), options.state)
    password = secret(getattr(options, "pin", None))
    verb = options.verb
    if verb == "configuration":
        show(device.configuration(options.iss))
    elif verb in ("enrol", "start"):
        invited = {"qr": options.qr} if options.qr else {"code": options.code, "iss": options.iss}
        if verb == "start":
            show(device.start(**invited))
        else:
            digits = device.enrol(password, options.name, **invited)
            show({"did": device.state["did"], "issuer": device.state["issuer_name"], "user": device.state["user"],
                  "digits": f"{digits[:4]} {digits[4:]}"})
    elif verb == "finish":
        device.prepare(password)
        show(device.commit())
        show(device.complete(options.name))
        show(device.confirm())
        digits = device.digits()
        show({"digits": f"{digits[:4]} {digits[4:]}"})
    elif verb == "confirm":
        show(device.confirm())
    elif verb == "status":
        show(device.status())
    elif verb == "list":
        show(device.list(options.wait))
    elif verb == "claim":
        show({"txn": device.claim(options.tds)})
    elif verb == "fetch":
        show(device.fetch(options.txn))
    elif verb == "create":
        show(device.create(options.message, options.label))
    elif verb == "update":
        show(device.update(options.name, options.push))
    elif verb == "decide":
        show(device.decide(options.txn, options.status, options.reason, options.number, password, options.blind))
    elif verb == "renew":
        digits = device.finish_renewal() if options.finish else device.renew(
            password, secret(options.new), options.code)
        show({"digits": digits and f"{digits[:4]} {digits[4:]}", "done": "renewing" not in device.state})
    elif verb == "change":
        show(device.change(password, secret(options.new)))
    elif verb == "delete":
        show(device.delete(options.reason))


def run_server(options):
    directory = None if options.plain else options.directory or tempfile.mkdtemp(prefix="tsp-")
    listener = http_server.listen(directory, options.iss)
    print(json.dumps({"iss": listener.tsp.iss, "url": listener.url, "ca": listener.ca, "token": listener.token,
                      "identity": listener.tsp.identity.kid, "control": f"{listener.url}{http_server.PATH}/control/"}),
          flush=True)
    try:
        threading.Event().wait(options.seconds)
    except KeyboardInterrupt:
        pass
    listener.shutdown()


def run_verify(options):
    trust = options.trust
    try:
        if trust and os.path.exists(trust):
            with open(trust, "rb") as file:
                jwk = strict_json.parse_object(file.read())
            jose.public_key(jwk)
            trust = jose.thumbprint(jwk)
        with open(options.bundle, "rb") as file:
            verifier = evidence.Verifier(file.read(evidence.LIMIT + 1), trust)
    except (OSError, Refused, evidence.Unreadable) as error:
        print(f"tsp: {options.bundle} cannot be read: {error}", file=sys.stderr)
        return 1
    print(verifier.report())
    return verifier.exit_status


def run_relay(options):
    if options.elsewhere:
        # The session of a user is no argument of a program.
        place = json.load(sys.stdin)
        show(elsewhere.report(place, options.modes[-1], relay.ORDERS[:options.orders], options.every))
        return 0
    if options.old_fingerprint:
        outcome = relay.run_weak(options.digits)
        print(f"the weak fingerprint, {options.digits} digits: {outcome}")
        return 0 if outcome.startswith("BROKEN") else 1
    broken = 0
    for mode in options.modes:
        for order, target, outcome in relay.run(mode):
            broken += outcome.startswith("BROKEN")
            if options.verbose or outcome.startswith("BROKEN"):
                print(f"{mode}, {order}: {target[0]}, {target[1]}, {'.'.join(map(str, target[2]))}: {outcome}")
        print(f"{mode}: every field was replaced in both orders")
    scanned = relay.tamper_with_scanned(Server(relay.ISS))
    broken += sum(one[3].startswith("BROKEN") for one in scanned)
    print(f"scanned invites: {collections.Counter(one[3].split(':')[0] for one in scanned)}")
    for order in relay.ORDERS:
        print(f"grinding, {order}, 2 digits: {relay.simulate(order)} of 2000 equal; 20 are expected by chance")
    print(f"relayed enrolments that ended with an active container: {broken}")
    return 1 if broken else 0


def run_thief(options):
    state = thief.from_file(options.state)
    transcripts = [line.strip() for line in open(options.transcripts, encoding="utf-8")] if options.transcripts else []
    k = int(open(options.k, encoding="utf-8").read().strip(), 16) if options.k else None
    if options.database:
        transcripts += stolen.values(options.database)
    if options.master_key:
        keys = stolen.private_keys(options.database, stolen.master_key(options.master_key), state["did"])
        k = next((one for slot, generation, one in keys if generation == state["slots"][slot]["gen"]), None)
    space = thief.SPACE[:options.space]
    found = thief.Thief(state, transcripts, k=k).search(space)
    show({"tried": len(space), "k": k is not None, "found": found})


def parser():
    main = argparse.ArgumentParser(prog="tsp", description="TSP/1 in Python: a device, a server, a verifier, attacks.")
    kinds = main.add_subparsers(dest="kind", required=True)

    device = kinds.add_parser("device", help="be a device; everything that it knows is in one file")
    device.add_argument("--state", required=True, help="the file; it is made if it is not there")
    device.add_argument("--ca", help="certificates to trust for TLS, instead of the system's")
    device.add_argument("--connect", help="send to this URL's host and port instead of the issuer's")
    device.set_defaults(run=run_device)
    verbs = device.add_subparsers(dest="verb", required=True)
    verbs.add_parser("configuration", help="read and check the configuration").add_argument("--iss")
    for name, text in (("enrol", "all calls of an enrolment; prints the digits to type"),
                       ("start", "only the first call of an enrolment")):
        one = verbs.add_parser(name, help=text)
        one.add_argument("--qr", help="the text of the QR code")
        one.add_argument("--code", help="the typed code; needs --iss")
        one.add_argument("--iss", help="the issuer's URL")
        if name == "enrol":
            one.add_argument("--name", help="the container's name")
            one.add_argument("--pin", help="a file whose first line is the password; - for standard input")
    one = verbs.add_parser("finish", help="the calls after start")
    one.add_argument("--name")
    one.add_argument("--pin")
    verbs.add_parser("confirm", help="the last call of an enrolment, again")
    verbs.add_parser("status", help="what the server says about the container")
    verbs.add_parser("list", help="open transactions").add_argument("--wait", type=int, default=0)
    verbs.add_parser("claim", help="claim a transaction of a QR code").add_argument("tds")
    verbs.add_parser("fetch", help="the document of a transaction").add_argument("txn", type=plain)
    one = verbs.add_parser("create", help="begin a record of a message, to be decided like a transaction")
    one.add_argument("message")
    one.add_argument("label", help="of the sign key")
    one = verbs.add_parser("update", help="another name, another push address")
    one.add_argument("--name")
    one.add_argument("--push")
    one = verbs.add_parser("decide", help="sign a status of a document, or refuse blindly")
    one.add_argument("txn", type=plain)
    one.add_argument("status", help="the name of a status; deny or report with --blind")
    one.add_argument("--reason")
    one.add_argument("--number", help="the number that the page shows")
    one.add_argument("--pin", help="a file whose first line is the password; - for standard input")
    one.add_argument("--blind", action="store_true", help="without having opened the document")
    one = verbs.add_parser("renew", help="new keys; prints digits only after a reset")
    one.add_argument("--pin", help="a file whose first line is the password; - for standard input")
    one.add_argument("--new", help="a file whose first line is the new one, if it is another")
    one.add_argument("--code", help="the code of an invite for this container (a reset)")
    one.add_argument("--finish", action="store_true", help="after a crash, or after the digits of a reset were typed")
    one = verbs.add_parser("change", help="another password for the slot signing")
    one.add_argument("--pin", required=True, help="a file whose first line is the old password; - for standard input")
    one.add_argument("--new", required=True, help="a file whose first line is the new one")
    verbs.add_parser("delete", help="end the container").add_argument("--reason")

    server = kinds.add_parser("serve", help="be a server on a free port; prints one line of JSON")
    server.add_argument("--directory", help="where its certificate and its key are written")
    server.add_argument("--plain", action="store_true", help="without TLS")
    server.add_argument("--iss", help="the issuer's URL, if it is reached by another one")
    server.add_argument("--seconds", type=float, default=600, help="end after so many seconds (600)")
    server.set_defaults(run=run_server)

    verify = kinds.add_parser("verify", help="judge a bundle; exit status 0, 2, 1 or 64")
    verify.add_argument("bundle")
    verify.add_argument("--trust", type=plain, help="the thumbprint of an identity key, or a file with its JWK")
    verify.set_defaults(run=run_verify)

    middle = kinds.add_parser("relay", help="relay enrolments and replace each field of each message")
    middle.add_argument("--old-fingerprint", action="store_true", help="break the weak fingerprint instead")
    middle.add_argument("--digits", type=int, default=4, help="digits of the weak fingerprint (4)")
    middle.add_argument("--modes", nargs="+", default=["device", "assisted"], choices=["device", "local", "assisted"])
    middle.add_argument("--elsewhere", action="store_true", help="the server is the one that standard input names, in "
                        "JSON: iss, ca, and the header fields of a user's session; prints what became of each field")
    middle.add_argument("--orders", type=int, default=2, choices=[1, 2], help="with --elsewhere: server first, or both")
    middle.add_argument("--every", type=int, default=1, help="with --elsewhere: every so many fields (1)")
    middle.add_argument("--verbose", action="store_true", help="print every outcome")
    middle.set_defaults(run=run_relay)

    robber = kinds.add_parser("thief", help="try PINs with a device's file")
    robber.add_argument("--state", required=True)
    robber.add_argument("--transcripts", help="a file with captured messages, one a line")
    robber.add_argument("--k", help="a file with the server's k in hexadecimal")
    robber.add_argument("--database", help="a copy of the SQLite file of Assent's server, or a dump by pg_dump")
    robber.add_argument("--master-key", help="the file of its master key; needs --database")
    robber.add_argument("--space", type=int, default=10_000, help="try 0000 and so many (10000)")
    robber.set_defaults(run=run_thief)

    code = kinds.add_parser("code", help="check a code as somebody typed it")
    code.add_argument("text")
    code.set_defaults(run=lambda options: show({"code": invite.shown(invite.typed(options.text))}))
    return main


def guarded(argument):
    """An id or a thumbprint may begin with a hyphen, which would make an option of it."""
    return f" {argument}" if argument.startswith("-") and len(argument) in (22, 43) else argument


def plain(argument):
    return argument.strip()


def main():
    options = parser().parse_args([guarded(one) for one in sys.argv[1:]])
    try:
        return options.run(options) or 0
    except (Refused, Problem, OSError) as error:
        print(f"tsp: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
