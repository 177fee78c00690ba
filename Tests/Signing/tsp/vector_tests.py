"""The vectors of docs/transaction-signing-vectors.md: read as they are, and made again where nothing is random."""
import hashlib
import os
import re
import unittest

from . import evidence, framing, invite, jose, messages, oprf, pin, strict_json
from .framing import Refused, b64, unb64

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs")
ISS = "https://am.bank.example/am/signing/realms/root/realms/alpha"


def page(name):
    with open(os.path.join(DOCS, name), encoding="utf-8") as file:
        return file.read()


class Vectors:
    """The page, taken apart."""

    def __init__(self):
        text = page("transaction-signing-vectors.md")
        self.keys = {name: jose.Key(int(scalar, 16)) for name, scalar in re.findall(
            r"^\| (\w+) \| `([0-9a-f]{64})` \|", text, re.M)}
        self.kids = dict(re.findall(r"^\| (\w+) \| `[0-9a-f]{64}` \| `([\w-]{43})` \|", text, re.M))
        values, rest = text.split("## Signed messages")
        signed, rest = rest.split("## Negative examples")
        negative, elements = rest.split("## Elements and proofs that are refused")
        self.values = self.items(values.split("## Values")[1])
        self.negative = self.items(negative)
        self.elements = self.items(elements)
        self.signed, self.signer = {}, {}
        for name, key, body in re.findall(
                r"^### ([^\n]+)\n\nSigned by the key \*(\w+)\*\.\n\n```text\n(.*?)```", signed, re.M | re.S):
            self.signed[name], self.signer[name] = body.replace("\n", ""), self.keys[key]

    @staticmethod
    def items(text):
        """`- name: value`, with the value beside the name or in the block below."""
        found = {}
        for name, short, block in re.findall(
                r"^- ([^\n]+):(?: `([^\n]*)`)?\n(?:\n```text\n(.*?)```)?", text, re.M | re.S):
            value = short or block.replace("\n", "")
            found[name] = value[1:-1] if value[:1] == '"' else value
        return found

    def bytes(self, name):
        return bytes.fromhex(self.values[name])

    def payload(self, name):
        return strict_json.parse_object(jose.Unverified(self.signed[name]).content)

    def typ(self, name):
        return f"tsp-{re.split('[. ]', name)[0]}+jwt"


V = Vectors()


def examples():
    """The JSON of the first page by its name."""
    return dict(re.findall(r"<!-- example: ([\w.]+) -->\n```json\n(.*?)```", page("transaction-signing.md"), re.S))


class VectorTests(unittest.TestCase):
    def test_thumbprints(self):
        self.assertEqual({name: key.kid for name, key in V.keys.items()}, V.kids)
        self.assertEqual(len(V.kids), 8)

    def test_every_typ_of_the_registry_has_a_vector(self):
        self.assertEqual({V.typ(name) for name in V.signed}, set(messages.REGISTRY))
        self.assertEqual(set(re.findall(r"^\| `(tsp-\w+\+jwt)` \|", page("transaction-signing.md"), re.M)),
                         set(messages.REGISTRY))

    def test_signed_messages_are_read(self):
        for name, compact in V.signed.items():
            with self.subTest(name):
                messages.read(compact, V.typ(name), V.signer[name].jwk)

    def test_signed_messages_are_made_again(self):
        for name, compact in V.signed.items():
            with self.subTest(name):
                self.assertEqual(jose.sign(V.typ(name), V.payload(name), V.signer[name], True), compact)

    def test_examples_are_the_signed_messages(self):
        compared = 0
        for name, text in examples().items():
            example = strict_json.parse_object(text.encode())
            if name in V.signed and "…" not in text and "(the " not in text:
                self.assertEqual(example, V.payload(name), name)
                compared += 1
        self.assertGreaterEqual(compared, 20)

    def test_other_members_are_refused(self):
        """Each member away, each member null, one member more, and each member of another type."""
        for name in V.signed:
            payload, typ = V.payload(name), V.typ(name)
            changes = [{**payload, "extra": 1}]
            for member in payload:
                changes += [{**payload, member: value} for value in (None, {}, -1, 2 ** 53, "\u0000", [[]], 1.5)]
                if member not in ("reason", "text", "match", "origin", "unlock", "txh", "warning", "unl", "claim", "h",
                                  "blind"):
                    changes.append({one: value for one, value in payload.items() if one != member})
            for changed in changes:
                if changed.get("info") == {}:
                    continue
                with self.subTest(name, changed=changed), self.assertRaises(Refused):
                    messages.check(typ, changed)

    def test_codes(self):
        secret = V.bytes("code's bytes")
        self.assertEqual(f"{invite.crc16(b'123456789'):04X}", "BB3D")
        self.assertEqual(f"{invite.crc16(secret):04x}", V.values["code's CRC"])
        code = V.values["code"]
        self.assertEqual(invite.encode(secret), code)
        self.assertEqual(invite.shown(code), V.values["code as it is shown"])
        self.assertEqual(invite.typed(" zfece-ulfqp 0bfte-pb2bq "), code)
        for wrong in ("", code[:-1], f"{code}A", code[:-1] + "R", "A" + code[1:], code[:5] + "9" + code[6:]):
            with self.subTest(wrong), self.assertRaises(Refused):
                invite.typed(wrong)

    def test_the_exchange(self):
        k, scalar = (int(V.values[name], 16) for name in ("OPRF private key k", "blind"))
        s = pin.scrypt("271828", V.bytes("salt"), "$scrypt$ln=15,r=8,p=1")
        self.assertEqual(s, V.bytes("s = scrypt(PIN)"))
        did = V.payload("offer")["did"]
        message = framing.oprf_input(ISS, did, "signing", 0, s)
        self.assertEqual(message, V.bytes("OPRF input"))
        _, blinded = oprf.blind(message, scalar)
        self.assertEqual(oprf.serialize(blinded), V.bytes("blinded element"))
        public = oprf.public_of(k)
        self.assertEqual(b64(oprf.serialize(public)), V.payload("offer")["slots"][0]["pk"])
        body = self.opened("evaluate body", did)
        self.assertEqual(unb64(body["blinded"]), V.bytes("blinded element"))
        answer = V.payload("eval.enrol")
        evaluated = oprf.parse_element(unb64(answer["evaluated"]))
        oprf.check_proof(public, blinded, evaluated, unb64(answer["proof"]))
        o = oprf.finalize(message, scalar, evaluated)
        self.assertEqual(o, V.bytes("o = OPRF output"))
        kid = V.keys["sign"].kid
        self.assertEqual(framing.frame("tsp/1 kek ikm", s, o), V.bytes("KEK's input key material"))
        self.assertEqual(framing.frame("tsp/1 kek", ISS, did, "signing", kid, 0), V.bytes("KEK's info"))
        kek = framing.kek_assisted(ISS, did, "signing", kid, 0, V.bytes("salt"), s, o)
        self.assertEqual(kek, V.bytes("KEK"))
        aad = pin.associated("assisted", ISS, did, "signing", kid, 0, "$scrypt$ln=15,r=8,p=1", V.bytes("salt"))
        blob = V.bytes("blob")
        self.assertEqual(pin.unseal(kek, aad, blob), V.keys["sign"].scalar)
        plain = pin.content(V.keys["sign"].scalar, V.payload("eval.enrol")["iat"])
        self.assertEqual(plain, V.bytes("blob's content"))
        self.assertEqual(pin.seal(kek, aad, plain, blob[len(aad):len(aad) + 12]), blob)
        unlock = V.payload("eval.unlock")
        body = self.opened("unlock body", did)
        oprf.check_proof(public, oprf.parse_element(unb64(body["blinded"])),
                         oprf.parse_element(unb64(unlock["evaluated"])), unb64(unlock["proof"]))
        for wrong in (public, blinded):
            proof = bytearray(unb64(unlock["proof"]))
            proof[95] ^= wrong is public
            with self.assertRaises(Refused):
                oprf.check_proof(wrong, oprf.parse_element(unb64(body["blinded"])),
                                 oprf.parse_element(unb64(unlock["evaluated"])), bytes(proof))
        for scalar in (bytes(48), oprf.N.to_bytes(48, "big"), b"\xff" * 48, bytes(47) + b"\1" * 2):
            with self.assertRaises(Refused):
                oprf.parse_scalar(scalar)
        self.assertEqual(body["r"], b64(V.bytes("ratchet r")))
        self.assertEqual(framing.ratchet_hash(V.bytes("ratchet r")), b64(V.bytes("H(r)")))
        self.assertEqual(body["next"], framing.ratchet_hash(V.bytes("ratchet r'")))
        self.assertEqual(body["next"], b64(V.bytes("H(r')")))
        self.assertEqual(V.payload("confirm")["eval"], framing.evaluation_hash(V.signed["eval.unlock"]))

    def test_rfc_9497(self):
        """Appendix A.4.2, vector 1."""
        k = int("051646b9e6e7a71ae27c1e1d0b87b4381db6d3595eeeb1adb41579adbf992f4278f9016eafc944edaa2b43183581779d", 16)
        scalar = int("504650f53df8f16f6861633388936ea23338fa65ec36e0290022b48eb562889d89dbfa691d1cde91517fa222ed7ad364",
                     16)
        random = int("803d955f0e073a04aa5d92b3fb739f56f9db001266677f62c095021db018cd8cbb55941d4073698ce45c405d1348b7b1",
                     16)
        _, blinded = oprf.blind(b"\0", scalar)
        self.assertEqual(oprf.serialize(blinded).hex(), "02d338c05cbecb82de13d6700f09cb61190543a7b7e2c6cd4fca56887e564"
                                                        "ea82653b27fdad383995ea6d02cf26d0e24d9")
        evaluated, proof = oprf.evaluate(k, blinded, random)
        self.assertEqual(oprf.serialize(evaluated).hex(), "02a7bba589b3e8672aa19e8fd258de2e6aae20101c8d761246de97a6b5e"
                                                          "e9cf105febce4327a326255a3c604f63f600ef6")
        self.assertEqual(proof.hex(), "bfc6cf3859127f5fe25548859856d6b7fa1c7459f0ba5712a806fc091a3000c42d8ba34ff45f32a5"
                                      "2e40533efd2a03bc87f3bf4f9f58028297ccb9ccb18ae7182bcd1ef239df77e3be65ef147f3acf8b"
                                      "c9cbfc5524b702263414f043e3b7ca2e")
        self.assertEqual(oprf.finalize(b"\0", scalar, evaluated).hex(), "3333230886b562ffb8329a8be08fea8025755372817e"
                                                                        "c969d114d1203d026b4a622beab60220bf19078bca35"
                                                                        "a529b35c")

    def test_the_digits(self):
        enrol, offer = V.payload("enrol"), V.signed["offer"]
        nonce_d, nonce_s = V.bytes("nonceD"), V.bytes("nonceS")
        self.assertEqual((enrol["nonceD"], enrol["nonceS"]), (b64(nonce_d), b64(nonce_s)))
        self.assertEqual(enrol["offer"], framing.offer_hash(offer))
        self.assertEqual(framing.key_list(enrol["keys"]), V.bytes("key list K"))
        self.assertEqual(framing.commitment(nonce_d, enrol["keys"]), b64(V.bytes("commitment")))
        data = framing.transcript(V.keys["identity"].kid, ISS, enrol["pid"], enrol["did"], enrol["sub"], offer, nonce_d,
                                  nonce_s, enrol["keys"])
        self.assertEqual(data, V.bytes("transcript"))
        self.assertEqual(hashlib.sha256(data).digest(), V.bytes("transcript's SHA-256"))
        self.assertEqual(framing.digits(data), V.values["digits"])
        record = V.payload("record")
        self.assertEqual(record["enrol"], framing.enrolment_hash(V.signed["enrol"]))
        self.assertEqual(V.payload("endorse")["enrol"], record["enrol"])
        self.assertEqual(V.payload("receipt")["record"], framing.record_hash(V.signed["record"]))

    def test_transactions(self):
        details = V.values["authorization_details"]
        self.assertEqual(framing.details_frame(details), V.bytes("frame of the details"))
        txd = V.payload("txd")
        self.assertEqual(txd["req"], framing.named("tsp/1 details", details))
        self.assertEqual(V.payload("tds")["h"], framing.handle(V.bytes("handle key"), ISS, txd["txn"]))
        self.assertEqual(framing.display_frame(txd, "Approve", "42"), V.bytes("frame of dsp"))
        decision = V.payload("decision")
        self.assertEqual(decision["txh"], framing.document_hash(V.signed["txd"]))
        self.assertEqual(decision["dsp"], framing.display_hash(txd, "Approve", "42"))
        dh = framing.decision_hash(V.signed["decision"])
        self.assertEqual(dh, V.values["decision hash dh"])
        self.assertEqual((V.payload("possession")["dh"], V.payload("receipt")["dh"]), (dh, dh))

    def test_the_gateways_request(self):
        """Fields in the page's order; the vectors give the frame, so it is taken apart and made again."""
        data = V.bytes("frame of a gateway's transaction")
        label, rest = data.split(b"\0", 1)
        fields = []
        while rest:
            size = int.from_bytes(rest[:4], "big")
            fields.append(rest[4:4 + size])
            rest = rest[4 + size:]
        self.assertEqual((label, len(fields)), (b"tsp/1 policy transaction", 16))
        names = ["id", "realm", "set", "policy", "revision", "strategy", "specifier", "resource", "query", "method",
                 "type", "body", "user", "session", "grant", "thumbprint"]
        request = {name: value.decode() for name, value in zip(names, fields)}
        for name in ("query", "method", "type", "body", "grant", "thumbprint"):
            request[name] = request[name][1:] if request[name][0] == "\1" else None
        self.assertEqual((request["method"], request["query"], request["grant"]), ("POST", None, None))
        self.assertEqual(framing.gateway_frame(request), data)
        self.assertEqual(b64(hashlib.sha256(data).digest()), V.values["req of a gateway's transaction"])

    def opened(self, name, sender):
        compact = V.values[name]
        return strict_json.parse_object(jose.Sealed(compact).opened(V.keys["encryption"], "json", sender, ISS))

    def test_bodies_and_proofs(self):
        calls = {"start": "provision/start", "evaluate": "provision/evaluate", "commit": "provision/commit",
                 "complete": "provision/complete", "confirm": "provision/confirm", "list": "transactions/list",
                 "fetch": "transactions/fetch", "unlock": "slots/unlock", "confirm slot": "slots/confirm",
                 "decide": "transactions/decide"}
        did, device = V.payload("offer")["did"], V.keys["device"]
        for name, path in calls.items():
            with self.subTest(name):
                body = self.opened(f"{name} body", device.kid if name == "start" else did)
                messages.REQUESTS[path](body, name)
                if name != "start":
                    proof = V.payload(f"proof.{name}")
                    self.assertEqual(proof["htu"], f"{ISS}/device/{path}")
                    self.assertEqual(proof["bh"], b64(hashlib.sha256(V.values[f"{name} body"].encode()).digest()))
        for name in ("enrolled", "list", "fetched"):
            plain = jose.Sealed(V.values[f"{name} reply"]).opened(V.keys["transport"], "JWT", ISS, did)
            self.assertEqual(plain.decode(), V.signed[name])

    def test_replies_answer_their_requests(self):
        asked = {"eval.enrol": "proof.evaluate", "nonce": "proof.commit", "enrolled": "proof.complete",
                 "list": "proof.list", "fetched": "proof.fetch", "eval.unlock": "proof.unlock", "offer": "start"}
        for reply, request in asked.items():
            self.assertEqual(V.payload(reply)["rqh"], framing.request_hash(V.signed[request]), reply)

    def test_negative_examples(self):
        jwk = V.keys["device"].jwk
        self.assertGreaterEqual(len(V.negative), 18)
        for name, compact in V.negative.items():
            with self.subTest(name), self.assertRaises(Refused):
                messages.read(compact, "tsp-possession+jwt", jwk)
        parts = V.signed["possession"].split(".")
        signature = unb64(parts[2])
        turned = (jose.ORDER - int.from_bytes(signature[32:], "big")).to_bytes(32, "big")
        other = f"{parts[0]}.{parts[1]}.{b64(signature[:32] + turned)}"
        self.assertEqual(messages.read(other, "tsp-possession+jwt", jwk), V.payload("possession"))

    def test_elements_and_proofs_that_are_refused(self):
        k = int(V.values["OPRF private key k"], 16)
        self.assertEqual(len(V.elements), 12)
        _, blinded = oprf.blind(b"any")
        evaluated = oprf.multiply(k, blinded)
        for name, value in V.elements.items():
            data = bytes.fromhex(value)
            with self.subTest(name), self.assertRaises(Refused):
                if "proof" in name or "c is" in name:
                    oprf.check_proof(oprf.public_of(k), blinded, evaluated, data)
                else:
                    oprf.parse_element(data)

    def bundle(self):
        return {"v": 1, "iss": ISS, "identity": [V.keys["identity"].jwk], "next": [], "previous": [],
                "certs": [V.signed["cert"]], "enrolments": [{
                    "record": V.signed["record"], "enrol": V.signed["enrol"], "offer": V.signed["offer"],
                    "endorsements": []}], "transactions": [{
                        "txd": V.signed["txd"], "request": b64(V.bytes("frame of the details")),
                        "decision": V.signed["decision"], "possession": V.signed["possession"],
                        "receipt": V.signed["receipt"], "eval": V.signed["eval.unlock"],
                        "confirm": V.signed["confirm"]}]}

    def test_the_bundle_verifies(self):
        data = strict_json.write(self.bundle())
        verifier = evidence.Verifier(data, V.keys["identity"].kid)
        self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0))

    def test_the_bundle_verifies_from_the_successor(self):
        bundle = self.bundle()
        bundle["identity"].append(V.keys["successor"].jwk)
        bundle.update(next=[V.signed["next"]], previous=[V.signed["previous"]])
        for name in ("identity", "successor"):
            verifier = evidence.Verifier(strict_json.write(bundle), V.keys[name].kid)
            self.assertEqual((verifier.contradicted, verifier.exit_status), ([], 0), name)
        bundle["previous"] = []
        verifier = evidence.Verifier(strict_json.write(bundle), V.keys["successor"].kid)
        self.assertEqual(verifier.exit_status, 2)
