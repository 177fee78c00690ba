"""The server on a socket, with calls for whoever tests: POST <iss>/control/<name> with the token that it printed."""
import datetime
import hmac
import http.server
import ipaddress
import json
import os
import secrets
import ssl
import threading
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .framing import Refused
from .server import Server

PATH = "/am/signing/realms/root"
TLS = "tls.pem"


def make_certificate(directory):
    """A certificate for 127.0.0.1 and localhost, and its key, in files that the caller removes."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.utcnow()
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
                   .not_valid_after(now + datetime.timedelta(days=30)).add_extension(names, False)
                   .add_extension(x509.BasicConstraints(True, 0), True).sign(key, hashes.SHA256()))
    public, private = (os.path.join(directory, file) for file in ("ca.pem", TLS))
    with open(public, "wb") as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
    with open(os.open(private, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return public, private


def control(server, name, content):
    """What a web page, a relying party and an administrator would ask for."""
    if name == "invite":
        return server.make_invite(**content)
    if name == "digits":
        return {"state": server.type_digits(content["pid"], content["digits"])}
    if name == "create":
        return server.create(**content)
    if name == "transaction":
        one = server.transactions[content["txn"]]
        expired = one["state"] == "PENDING" and not server.is_open(one)
        return {name: value for name, value in {
            "txn": one["txn"], "state": "EXPIRED" if expired else one["state"], "status": one.get("status"),
            "receipt": one.get("receipt")}.items() if value is not None}
    if name == "cancel":
        server.transactions[content["txn"]]["state"] = "CANCELED"
        return {}
    if name == "bundle":
        return server.bundle(content["txn"])
    if name == "container":
        container = server.containers[content["did"]]
        container.state = content.get("state", container.state)
        return {"did": container.did, "state": container.state, "user": container.user}
    if name == "unlock":
        server.containers[content["did"]].slots[content.get("slot", "signing")].unlock_by_user()
        return {}
    raise Refused("no such call")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 3600

    def log_message(self, *_):
        pass

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in {**fields, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.serve(b"")

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > 1 << 20:
            self.close_connection = True
            self.answer(413, {}, b"")
            return
        self.serve(self.rfile.read(int(length)))

    def serve(self, body):
        path = urlsplit(self.path).path
        if not path.startswith(f"{PATH}/"):
            self.answer(404, {}, b"")
        elif path.startswith(f"{PATH}/control/"):
            self.control(path[len(PATH) + 9:], body)
        else:
            self.answer(*self.server.tsp.handle(self.command, path[len(PATH):], dict(self.headers), body))

    def control(self, name, body):
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            self.answer(401, {}, b"")
            return
        with self.server.tsp.changed:
            try:
                status, result = 200, control(self.server.tsp, name, json.loads(body or b"{}"))
            except Refused as refused:
                status, result = 403, {"code": refused.code, "detail": refused.detail}
            except (KeyError, TypeError, ValueError) as error:
                status, result = 400, {"code": "invalid_request", "detail": repr(error)}
        self.answer(status, {"Content-Type": "application/json"}, json.dumps(result).encode())


def listen(directory=None, iss=None):
    """A listening server on a port of its own; without a directory for a certificate it speaks plain HTTP.

    `iss` always names https, since messages do; a device reaches a plain one by another URL.
    """
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    listener.ca = None
    if directory:
        listener.ca, private = make_certificate(directory)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(private)
        listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
    place = f"127.0.0.1:{listener.server_address[1]}"
    listener.url = f"{'https' if directory else 'http'}://{place}"
    listener.tsp = Server(iss or f"https://{place}{PATH}")
    listener.token = secrets.token_urlsafe(24)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    return listener


def in_process(server):
    """A transport that needs no socket."""
    def send(method, url, headers, body):
        status, fields, answer = server.handle(method, url[len(server.iss):], headers, body or b"")
        return status, {name.lower(): value for name, value in fields.items()}, answer
    return send
