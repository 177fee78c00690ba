"""A client of payload encryption pe1, and a small server, over real sockets; both made from docs/payload-encryption.md alone.

`pe1.py call` makes one session and sends one call, or those of its standard input, a line of JSON each: method, path, and
perhaps fields (pairs), data (a text), fault, and at. For each it writes a line: `sealed` says whether what follows was sealed
for the call, then status, fields, and content as base64url; `session` is the number of handshakes so far.

The faults of a call, which a server must see: `flipped` (a byte of the first chunk, or the one that is `at` a place of the
frame), `again` (the frame a second time), `zero` (the number 0), `reply` (the frame of a reply), `headless` (40 bytes),
`unknown` (another session), `long` and `short` (the length of the first chunk), `beyond` (it is one more than there follows),
`overrun` (the content's length is more than there follows), `authority` (another origin), `inner` (a path below /assent-pe),
`padding` (one byte of it is not zero), `connection` (a field that no call may have), `upper` (a name of a field in upper
case), `host` (a field that names another origin), `userinfo` (a user before the authority), `scheme` (http), `trailers`,
`cut` (the content ends inside its head), `behind` (a byte behind the last chunk), `kind` (not known), `port` (another one in
the authority); of a call in three chunks `unended` (none is the last), `twice` (the last), `skipped` (without the second),
`swapped` (the first and the second), `repeated` (the first), `between` (the second is another message's). `wide` is no fault:
each number of the content is written in 8 bytes. Nor is `last`, the highest number that there is; but the session's later ones
are too far below it.

With `handshake` a call makes a session first, and something is wrong with that: `twice` (a member), `more` (a member that is
not known), `missing`, `huge`, `version`, `role` (not known), `client` (of an app), `short` and `long` (31 and 33 bytes of a
key), `zero` and `weak` (a key that agrees on nothing), `device` (without its proof).

With `device` (client, app, key, now: pe1_proof.py) the session that it makes is the installation's, by a proof of its key;
then the faults are the proof's: `otherkey`, `method`, `url`, `body` (of another one), `unclaimed`
(of none), `signature`, `spent` (the handshake with its proof a second time), `two` (proofs).

With --origin the client comes to a server behind a balancer: then --url is where one node is, and --other is where another
one is. A call with `node` 1 goes to that; handshakes go to the first. The fault `copied` sends the frame, once it has its
reply, byte for byte to the other node as well; `first` is what the first reply was.
"""
import argparse
import http.client
import itertools
import json
import os
import ssl
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import pe1
import pe1_proof

ROOT, TYPE = "/assent-pe/1", "application/assent-pe"
LIMIT = 64 << 20
NAMES = ("app", "pe1.py", "1.0", "linux")


# Binary HTTP, the way back

class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise pe1.Refused("the content is cut off")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self):
        first = self.take(1)[0]
        size = 1 << (first >> 6)
        return int.from_bytes(bytes([first & 0x3F]) + self.take(size - 1), "big")

    def text(self):
        return self.take(self.number())

    def fields(self, section):
        pairs, inner = [], Reader(section)
        while inner.at < len(section):
            pairs.append([inner.text().decode("ascii"), inner.text().decode("latin-1")])
        return pairs

    def all_fields(self, is_known):
        """The fields of a head, or trailers: of known length, or until a zero."""
        if is_known:
            return self.fields(self.text())
        pairs = []
        while True:
            name = self.text()
            if not name:
                return pairs
            pairs.append([name.decode("ascii"), self.text().decode("latin-1")])

    def content(self, is_known):
        if is_known:
            return self.text() if self.at < len(self.data) else b""
        out = b""
        while self.at < len(self.data):
            piece = self.text()
            if not piece:
                break
            out += piece
        return out

    def end(self):
        if any(self.data[self.at:]):
            raise pe1.Refused("the padding is not zero")


def read_response(plain):
    reader = Reader(plain)
    kind = reader.number()
    if kind not in (1, 3):
        raise pe1.Refused("it is not a reply")
    status = reader.number()
    if not 200 <= status <= 599:
        raise pe1.Refused("it is not a final status")
    fields = reader.all_fields(kind == 1)
    content = reader.content(kind == 1)
    reader.end()
    return status, fields, content


def read_request(plain):
    reader = Reader(plain)
    kind = reader.number()
    if kind not in (0, 2):
        raise pe1.Refused("it is not a request")
    method, scheme, authority, path = (reader.text().decode("ascii") for _ in range(4))
    fields = reader.all_fields(kind == 0)
    content = reader.content(kind == 0)
    reader.end()
    return method, scheme, authority, path, fields, content


# The client

def trusting(url, cafile):
    return ssl.create_default_context(cafile=cafile) if urlsplit(url).scheme == "https" else None


class Client:
    """One session after the other at one origin, whose nodes are pairs of a URL and a file with certificates to trust."""

    def __init__(self, nodes, static, origin=None):
        self.place = urlsplit(origin or nodes[0][0])
        self.origin = "%s://%s" % (self.place.scheme, self.place.netloc)
        self.nodes = [(urlsplit(url), trusting(url, cafile)) for url, cafile in nodes]
        self.static, self.keys, self.number, self.handshakes = static, None, 0, 0
        self.nonce = None

    def post(self, path, kind, body, proofs=(), node=0):
        way, context = self.nodes[node]
        if context:
            connection = http.client.HTTPSConnection(way.hostname, way.port, timeout=3600, context=context)
        else:
            connection = http.client.HTTPConnection(way.hostname, way.port, timeout=3600)
        try:
            data = body.encode() if isinstance(body, str) else body
            connection.putrequest("POST", ROOT + path, skip_host=True)
            own = [("Host", self.place.netloc), ("Content-Type", kind), ("Content-Length", str(len(data)))]
            for name, value in own + [("DPoP", proof) for proof in proofs]:
                connection.putheader(name, value)
            connection.endheaders(data)
            response = connection.getresponse()
            self.nonce = response.getheader("DPoP-Nonce", self.nonce)
            return response.status, response.getheader("Content-Type", ""), response.read(LIMIT)
        finally:
            connection.close()

    def handshake(self, fault=None):
        key = pe1.private(os.urandom(32))
        body = spoiled(pe1.handshake_request(key, self.static, *NAMES), fault)
        status, _, answer = self.post("/handshake", "application/json", body)
        if status != 200:
            raise pe1.Refused("handshake: %d %s" % (status, json.loads(answer).get("error")))
        self.keys = pe1.handshake_finish(answer, key, self.static, self.origin, *NAMES)
        self.number, self.handshakes = 0, self.handshakes + 1

    def prove(self, device, fault=None):
        """The handshake of an installation."""
        key = pe1.private(os.urandom(32))
        body = pe1.handshake_request(key, self.static, *device.names)
        proof = lambda: device.proof(self.origin + ROOT + "/handshake", body, self.nonce, fault)
        send = lambda proofs: self.post("/handshake", "application/json", body, proofs)
        proofs = [proof()] + ([proof()] if fault == "two" else [])
        status, _, answer = send(proofs)
        if status == 401 and json.loads(answer).get("error") == "use_dpop_nonce":
            proofs = [proof() for _ in proofs]
            status, _, answer = send(proofs)
        if status == 200 and fault == "spent":
            status, _, answer = send(proofs)
        if status != 200:
            raise pe1.Refused("handshake: %d %s" % (status, json.loads(answer).get("error")))
        self.keys = pe1.handshake_finish(answer, key, self.static, self.origin, *device.names)
        self.number, self.handshakes = 0, self.handshakes + 1

    def call(self, method, path, fields=(), data=None, fault=None, handshake=None, device=None, node=0, at=None):
        if self.keys is None or handshake or device:
            self.keys = None
            if device:
                self.prove(pe1_proof.Device(**device), handshake)
            else:
                self.handshake(handshake)
        self.number += 1
        sealed, top = self.sealed(method, path, fields, data, fault, at)
        send = lambda node: self.post("/message", TYPE, sealed, node=node)
        reply, told = send(node), {"session": self.handshakes}
        if fault == "again":
            reply = send(node)
        if fault == "copied":
            told["first"], reply = self.opened(top, *reply), send(1 - node)
        return {**told, **self.opened(top, *reply)}

    def opened(self, top, status, kind, answer):
        """What a reply says to the message with this head."""
        if status != 200 or kind != TYPE:
            return {"sealed": False, "status": status, "error": json.loads(answer).get("error")}
        number, plain = pe1.open_frame(pe1.REPLY, self.keys.reply, self.keys.session, pe1.sha256(top), answer)
        if number != struct.unpack(">Q", top[17:25])[0]:
            raise pe1.Refused("the reply is another call's")
        status, fields, content = read_response(plain)
        return {"sealed": True, "status": status, "fields": fields, "content": pe1.b64(content),
                "padded": len(plain) == pe1.padded_length(len(plain))}

    def sealed(self, method, path, fields, data, fault, at=None):
        """A message, and its head."""
        content = (data or "").encode()
        pairs = [(name.lower(), value) for name, value in fields]
        if data is not None:
            pairs.append(("content-length", str(len(content))))
        if fault == "connection":
            pairs.append(("transfer-encoding", "chunked"))
        if fault == "upper":
            pairs.append(("X-Upper", "1"))
        if fault == "host":
            pairs.append(("host", "other.example"))
        authority = {
            "authority": "other.example", "userinfo": "user@" + self.place.netloc, "port": self.place.hostname + ":1",
        }.get(fault, self.place.netloc)
        path = ROOT + "/message" if fault == "inner" else path
        scheme = "http" if fault == "scheme" else "https"
        plain = encoded(method, scheme, authority, path, pairs, content, fault)
        if fault == "padding":
            plain = plain[:-1] + b"\x01"
        session = os.urandom(16) if fault == "unknown" else self.keys.session
        kind = {"reply": pe1.REPLY, "kind": 3}.get(fault, pe1.REQUEST)
        number = {"zero": 0, "last": 2 ** 64 - 1}.get(fault, self.number)
        top = pe1.head(kind, session, number, os.urandom(16))
        message = pe1.seal(self.keys.request, top, b"", plain)
        if fault in ORDERS:
            message = top + b"".join(chunk(self.keys.request, top, plain, *each) for each in ORDERS[fault])
        if fault == "between":
            other = pe1.head(kind, session, number, os.urandom(16))
            message = top + b"".join(
                chunk(self.keys.request, other if part == 1 else top, plain, part, index, last) for part, index, last in PARTS)
        return damaged(message, fault, at), top


def spoiled(body, fault):
    """The body of a handshake, with what is wrong about it."""
    asked = json.loads(body)
    if fault == "twice":
        return body[:-1] + ',"v":1}'
    if fault == "huge":
        return body + " " * pe1.LIMIT
    if fault == "missing":
        del asked["platform"]
    # A point of order 8.
    weak = bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")
    changes = {
        "more": {"x": 1}, "version": {"v": 2}, "role": {"role": "server"}, "client": {"client": "pay~1"},
        "short": {"e": pe1.b64(bytes(31))}, "long": {"e": pe1.b64(bytes(33))}, "zero": {"e": pe1.b64(bytes(32))},
        "weak": {"e": pe1.b64(weak)}, "device": {"role": "device", "client": "pay~1"},
    }
    return pe1.compact({**asked, **changes.get(fault, {})})


# The chunks of a call: which part of three, sealed with which index, and whether it is the last.
PARTS = [(0, 0, 0), (1, 1, 0), (2, 2, 1)]
ORDERS = {
    "unended": [(0, 0, 0), (1, 1, 0), (2, 2, 0)],
    "twice": PARTS + [PARTS[2]],
    "skipped": [PARTS[0], PARTS[2]],
    "swapped": [PARTS[1], PARTS[0], PARTS[2]],
    "repeated": [PARTS[0], PARTS[0], PARTS[1], PARTS[2]],
}


def chunk(key, top, plain, part, index, last):
    third = len(plain) // 3 + 1
    message = AESGCM(pe1.expand(key, pe1.frame("assent pe1 message", top, b"")))
    sealed = message.encrypt(
        pe1.nonce(index, last), plain[part * third:(part + 1) * third], pe1.frame("assent pe1 frame", top, b""))
    return bytes([last]) + struct.pack(">I", len(sealed)) + sealed


def encoded(method, scheme, authority, path, pairs, content, fault):
    """The plaintext of a call, with what is wrong about it."""
    plain = pe1.request(method, scheme, authority, path, pairs, content)
    if fault == "cut":
        return plain[:20]
    if fault == "trailers":
        plain = plain[:-1] + pe1.fields([("x-behind", "1")])
    if fault == "overrun":
        # Also behind the padding, which is all that there could be of it.
        plain = plain[:-len(pe1.text(content) + pe1.fields(()))] + pe1.varint(1 << 20) + content
    if fault == "wide":
        wide = lambda value: (value | 3 << 62).to_bytes(8, "big")
        text = lambda value: wide(len(value)) + value
        section = b"".join(text(each.encode()) for pair in pairs for each in pair)
        texts = [each.encode() for each in (method, scheme, authority, path)] + [section, content]
        plain = wide(0) + b"".join(text(each) for each in texts)
    return pe1.pad(plain)


def damaged(message, fault, at=None):
    head, chunks = message[:pe1.HEAD], message[pe1.HEAD:]
    if fault == "headless":
        return head[:-1]
    if fault == "flipped" and at is not None:
        return message[:at] + bytes([message[at] ^ 1]) + message[at + 1:]
    if fault == "flipped":
        return head + chunks[:9] + bytes([chunks[9] ^ 1]) + chunks[10:]
    if fault in ("long", "short"):
        length = pe1.CHUNK + pe1.TAG + 1 if fault == "long" else pe1.TAG - 1
        return head + chunks[:1] + struct.pack(">I", length) + chunks[5:]
    if fault == "beyond":
        return head + chunks[:1] + struct.pack(">I", len(chunks) - 5 + 1) + chunks[5:]
    return message + b"\0" if fault == "behind" else message


def call(arguments):
    parser = argparse.ArgumentParser(prog="pe1.py call", description=__doc__.split("\n")[0])
    parser.add_argument("--url", required=True, help="the origin, or where a node of it is")
    parser.add_argument("--cafile", help="the certificates to trust")
    parser.add_argument("--origin", help="the origin, when that is not where its nodes are")
    parser.add_argument("--other", help="where another node is")
    parser.add_argument("--other-cafile", help="the certificates to trust there")
    parser.add_argument("--key", required=True, help="the server's static key as base64url")
    parser.add_argument("--data")
    parser.add_argument("--fault")
    parser.add_argument("method", nargs="?")
    parser.add_argument("path", nargs="?")
    options = parser.parse_args(arguments)
    nodes = [(options.url, options.cafile)] + ([(options.other, options.other_cafile)] if options.other else [])
    client = Client(nodes, pe1.unb64(options.key, 32), options.origin)
    one = {"method": options.method, "path": options.path, "data": options.data, "fault": options.fault}
    failed = False
    for asked in [one] if options.method else map(json.loads, sys.stdin):
        try:
            answer = client.call(**asked)
        except pe1.Refused as error:
            answer, failed = {"refused": str(error)}, True
        print(json.dumps(answer), flush=True)
    return 1 if failed and options.method else 0


# The server

class Handler(BaseHTTPRequestHandler):
    """Answers each sealed call with what it got: method and path as fields, and its content."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            if self.path == ROOT + "/handshake":
                self.reply(200, "application/json", self.server.handshake(body))
            elif self.path == ROOT + "/message":
                self.reply(200, TYPE, self.server.message(body))
            else:
                self.reply(404, "application/json", b"{}")
        except Refusal as refusal:
            self.reply(refusal.status, "application/json", pe1.compact({"error": refusal.name}).encode())
        except pe1.Refused:
            self.reply(400, "application/json", b'{"error":"pe_malformed"}')

    def reply(self, status, kind, body):
        """The body is bytes, or pieces that end with the connection."""
        is_whole = isinstance(body, bytes)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if is_whole:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        try:
            for piece in [body] if is_whole else body:
                self.wfile.write(piece)
        except OSError:
            self.close_connection = True


class Refusal(Exception):
    def __init__(self, status, name):
        super().__init__(name)
        self.status, self.name = status, name


class Server(ThreadingHTTPServer):
    """Keys and sessions. Its faults: `confirm` (another one), `flipped`, `number` (of the next call), `bound` (to another
    request), `plain` (the reply is not sealed), `session` (of another), `cut` (without its last byte), `reflected` (the
    request as its reply), `requestkey` (sealed with the key of requests), `forgets` (each session after its first call),
    `interim` (the reply's status is 103), `endless` (its padding, until the client has gone)."""

    def __init__(self, origin, statics, fault=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.statics, self.fault, self.sessions = statics, fault, {}
        self.origin = origin or "http://127.0.0.1:%d" % self.server_port

    def handshake(self, body):
        session, key = os.urandom(16), pe1.private(os.urandom(32))
        try:
            answer, keys = pe1.handshake_answer(body, self.statics, key, session, self.origin)
        except pe1.Refused as error:
            if str(error) == "pe_unknown_key":
                raise Refusal(400, "pe_unknown_key") from None
            raise
        self.sessions[session] = (keys, set())
        if self.fault == "confirm":
            answer = pe1.compact({**json.loads(answer), "confirm": pe1.b64(bytes(32))})
        return answer.encode()

    def message(self, body):
        keys, seen = self.sessions.get(body[1:17], (None, None))
        if keys is None:
            raise Refusal(404, "pe_unknown_session")
        number, plain = pe1.open_frame(pe1.REQUEST, keys.request, keys.session, b"", body)
        if number in seen:
            raise Refusal(409, "pe_repeated")
        seen.add(number)
        if self.fault == "forgets":
            del self.sessions[keys.session]
        if self.fault == "reflected":
            return body
        method, _, _, path, _, content = read_request(plain)
        return self.answer(keys, body[:pe1.HEAD], number, method, path, content)

    def answer(self, keys, top, number, method, path, content):
        pairs = [("x-method", method), ("x-path", path), ("content-length", str(len(content)))]
        plain = pe1.pad(pe1.response(103 if self.fault == "interim" else 200, pairs, content))
        if self.fault == "plain":
            return plain
        session = os.urandom(16) if self.fault == "session" else keys.session
        head = pe1.head(pe1.REPLY, session, number + 1 if self.fault == "number" else number, os.urandom(16))
        bound = pe1.sha256(b"another" if self.fault == "bound" else top)
        key = keys.request if self.fault == "requestkey" else keys.reply
        if self.fault == "endless":
            return endless(key, head, bound, plain)
        sealed = pe1.seal(key, head, bound, plain)
        if self.fault == "cut":
            return sealed[:-1]
        return sealed[:-1] + bytes([sealed[-1] ^ 1]) if self.fault == "flipped" else sealed


def endless(key, top, bound, plain):
    """The pieces of a reply of less than a chunk, behind which zeros follow without an end."""
    message = AESGCM(pe1.expand(key, pe1.frame("assent pe1 message", top, bound)))
    yield top
    part = plain + bytes(pe1.CHUNK - len(plain))
    for index in itertools.count():
        sealed = message.encrypt(pe1.nonce(index, 0), part, pe1.frame("assent pe1 frame", top, bound))
        yield bytes([0]) + struct.pack(">I", len(sealed)) + sealed
        part = bytes(pe1.CHUNK)


def serve(arguments):
    parser = argparse.ArgumentParser(prog="pe1.py serve", description="Says its port and its keys, and ends with its input.")
    parser.add_argument("--origin", help="the one in the keys; otherwise its own address")
    parser.add_argument("--certificate", help="a PEM file, with the key of --private-key: then it speaks TLS")
    parser.add_argument("--private-key")
    parser.add_argument("--fault")
    options = parser.parse_args(arguments)
    statics = [pe1.private(os.urandom(32)) for _ in range(2)]
    server = Server(options.origin, statics, options.fault)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.private_key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told = {"port": server.server_port, "keys": [pe1.b64(pe1.public(each)) for each in statics]}
    print(json.dumps(told), flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()
    return 0
