"""What the strict profile refuses, and that other people's libraries read our messages and we theirs."""
import json
import os
import shutil
import subprocess
import tempfile
import tracemalloc
import unittest

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import jose, messages, strict_json
from .framing import Refused, b64, unb64
from .texts import can_be_shown
from .vector_tests import ISS, V

try:
    from joserfc import jwe as other_jwe
    from joserfc import jws as other_jws
    from joserfc.jwk import ECKey
except ImportError:
    other_jwe = None


def private_jwk(key):
    return {**key.jwk, "d": b64(key.scalar.to_bytes(32, "big"))}


def encrypted(header, recipient, plaintext=b"{}", nonce_size=12, cut=16, encrypted_key=""):
    """A JWE with this header, good in all that is not asked for otherwise."""
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    full = {"epk": jose.jwk_of(ephemeral.public_key()), **header}
    encoded = b64(strict_json.write({name: value for name, value in full.items() if value is not None}))
    names = [unb64(full[name]) if isinstance(full.get(name), str) else b"" for name in ("apu", "apv")]
    key = jose.concat_kdf(ephemeral.exchange(ec.ECDH(), jose.public_key(recipient.jwk)), *names)
    nonce = os.urandom(nonce_size)
    sealed = AESGCM(key).encrypt(nonce, plaintext, encoded.encode())
    return f"{encoded}.{encrypted_key}.{b64(nonce)}.{b64(sealed[:-16])}.{b64(sealed[-16:][:cut])}"


class JoseTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.key = jose.Key()
        cls.header = {"alg": "ECDH-ES", "enc": "A256GCM", "cty": "json", "kid": cls.key.kid, "apu": b64(b"sender"),
                      "apv": b64(b"recipient")}

    def opened(self, compact):
        return jose.Sealed(compact).opened(self.key, "json", "sender", "recipient")

    # --- signatures --------------------------------------------------------------------------------------------------

    def test_a_flipped_bit_anywhere_is_refused(self):
        """Each character of one message, and some of every other."""
        for name, compact in V.signed.items():
            for at in range(0, len(compact), 1 if name == "possession" else 61):
                for bit in (0, 3):
                    flipped = compact[:at] + chr(ord(compact[at]) ^ 1 << bit) + compact[at + 1:]
                    with self.subTest(name, at=at), self.assertRaises(Refused):
                        messages.read(flipped, V.typ(name), V.signer[name].jwk)

    def test_no_message_is_taken_for_another(self):
        for name, compact in V.signed.items():
            for typ in messages.REGISTRY:
                if typ != V.typ(name):
                    with self.assertRaises(Refused):
                        messages.read(compact, typ, V.signer[name].jwk)

    def test_no_key_verifies_for_another(self):
        for name, compact in V.signed.items():
            with self.assertRaises(Refused):
                messages.read(compact, V.typ(name), self.key.jwk)

    def test_other_shapes_of_a_signature_are_refused(self):
        compact = V.signed["possession"]
        header, payload, signature = compact.split(".")
        r = unb64(signature)[:32]
        shapes = ["", ".", "..", f"{compact}.", f".{compact}", f"{header}.{payload}", f" {compact}", f"{compact}\n",
                  f"{header}..{signature}", f"{header}.{payload}.", f"{header}.{payload}.{b64(bytes(64))}",
                  f"{header}.{payload}.{b64(r + bytes(32))}", f"{header}.{payload}.{b64(bytes(32) + r)}",
                  f"{header}.{payload}.{b64(unb64(signature)[:63])}", f"{header}.{payload}.{b64(unb64(signature) * 2)}",
                  f"{header}.{payload}.{b64(r + jose.ORDER.to_bytes(32, 'big'))}", "a" * (48 * 1024 + 1),
                  json.dumps({"payload": payload, "protected": header, "signature": signature})]
        for shape in shapes:
            with self.subTest(shape[:40]), self.assertRaises(Refused):
                messages.read(shape, "tsp-possession+jwt", V.keys["device"].jwk)

    def test_keys_that_are_none_are_refused(self):
        good = self.key.jwk
        zero = b64(bytes(32))
        for wrong in ({**good, "x": zero}, {**good, "x": zero, "y": zero}, {**good, "kty": "OKP"}, {**good, "d": zero},
                      {**good, "crv": "P-384"}, {**good, "crv": "secp256k1"}, {**good, "x": good["x"][:-1]},
                      {**good, "x": f"{good['x']}="}, {**good, "y": good["x"]}, {**good, "alg": "ES256"},
                      {**good, "x": b64(b"\0" + unb64(good["x"]))}, {"kty": "EC"}, {}, [], None):
            with self.subTest(wrong), self.assertRaises(Refused):
                jose.public_key(wrong)

    # --- encryption --------------------------------------------------------------------------------------------------

    def test_the_good_one_opens(self):
        self.assertEqual(self.opened(encrypted(self.header, self.key, b"text")), b"text")
        ours = jose.encrypt(b"text", self.key.jwk, "json", "sender", "recipient")
        self.assertEqual(self.opened(ours), b"text")

    def test_other_headers_are_refused_before_anything_is_computed(self):
        off_curve = {**self.key.jwk, "x": b64(bytes(31) + b"\5")}
        changes = [
            {"alg": "ECDH-ES+A256KW"}, {"alg": "dir"}, {"alg": "RSA-OAEP"}, {"alg": "none"}, {"enc": "A128GCM"},
            {"enc": "A256CBC-HS512"}, {"cty": "JWT"}, {"cty": None}, {"kid": jose.Key().kid}, {"kid": None}, {"kid": 1},
            {"apu": b64(b"another")}, {"apu": None}, {"apv": b64(b"another")}, {"apv": None}, {"epk": None},
            {"epk": off_curve}, {"epk": {**self.key.jwk, "d": "AA"}}, {"epk": {"kty": "EC", "crv": "P-256"}},
            {"epk": "AA"}, {"zip": "DEF"}, {"crit": ["exp"], "exp": 1}, {"typ": "JWT"}, {"jku": "https://x.example"},
            {"apu": f"{b64(b'sender')}="}, {"alg": ["ECDH-ES"]}]
        for change in changes:
            with self.subTest(change), self.assertRaises(Refused):
                self.opened(encrypted({**self.header, **change}, self.key))

    def test_other_parts_are_refused(self):
        for options in ({"nonce_size": 16}, {"nonce_size": 8}, {"cut": 12}, {"cut": 15}, {"encrypted_key": "AAAA"}):
            with self.subTest(options), self.assertRaises(Refused):
                self.opened(encrypted(self.header, self.key, **options))
        compact = encrypted(self.header, self.key, b"some plaintext")
        for at in range(len(compact)):
            flipped = compact[:at] + chr(ord(compact[at]) ^ 1) + compact[at + 1:]
            with self.subTest(at=at), self.assertRaises(Refused):
                self.opened(flipped)
        for shape in ("", "....", compact + ".", compact[:-1], f" {compact}", f"{compact}=", "a" * (64 * 1024 + 1)):
            with self.subTest(shape[:20]), self.assertRaises(Refused):
                self.opened(shape)
        with self.assertRaises(Refused):
            jose.Sealed(compact).opened(jose.Key(), "json", "sender", "recipient")

    # --- JSON, base64url and texts -----------------------------------------------------------------------------------

    def test_json_that_is_refused(self):
        deep = b'{"a":' + b"[" * 15 + b"1" + b"]" * 15 + b"}"
        self.assertEqual(list(strict_json.parse_object(deep)), ["a"])
        self.assertEqual(strict_json.parse(b' \t\r\n{"a":9007199254740991}\n'), {"a": 2 ** 53 - 1})
        self.assertEqual(len(strict_json.parse(b"[" + b"1," * 9_998 + b"1]")), 9_999)
        refused = [b"", b"{", b"{}{}", b"{},", b"\xef\xbb\xbf{}", b'{"a":1,"a":1}', b'{"a":1,"\\u0061":1}', b"[null]",
                   b"[-1]", b"[-0]", b"[1.0]", b"[1e2]", b"[1E2]", b"[01]", b"[+1]", b"[9007199254740992]", b"[NaN]",
                   b"[Infinity]", b"[1,]", b'{"a":1,}', b"{'a':1}", b"[\x0b1]", b'["\xff"]', b'["\\ud800"]',
                   b'["\\udc00\\ud800"]', b'{"\\ud800":1}', b'["\x01"]', b'["\\x"]', b"[1]\x00", b"[True]", b"// \n[]",
                   b"[" + b"1," * 9_999 + b"1]", deep.replace(b"[1]", b"[[1]]"), b"[" * 100_000, b"9" * 5_000,
                   '["\u00a0"]'.encode("utf-16"), b'["\xed\xa0\x80"]', b'["\xc0\xaf"]', b"\xc2\xa0[]"]
        for data in refused:
            with self.subTest(data[:30]), self.assertRaises(Refused):
                strict_json.parse(data)

    def test_json_of_too_many_values_is_refused_before_any_is_made(self):
        for unit in (b"[],", b"{},", b"1,", b'"",', b'"\\"",', b'{"a":[]},', b'"a"'):
            data = b"[" + unit * (2_000_000 // len(unit)) + b"1]"
            tracemalloc.start()
            try:
                with self.subTest(unit), self.assertRaises(Refused):
                    strict_json.parse(data)
                self.assertLess(tracemalloc.get_traced_memory()[1], 4 * len(data), unit)
            finally:
                tracemalloc.stop()
        for text in (",[{" * 20_000, '\\",' * 30_000, '\\\\' * 30_000 + "," * 30_000):
            value = {"a": [text, 1], text: "b"}
            self.assertEqual(strict_json.parse(strict_json.write(value)), value)

    def test_base64url_that_is_refused(self):
        self.assertEqual(unb64("-_8"), b"\xfb\xff")
        for text in ("A", "AAAAA", "AA=", "AA==", "A A", "AA\n", "AA\r\n", "+/8", "-_9", "AB", "AAB", "\u0410A", "AA.",
                     "A\0A"):
            with self.subTest(text), self.assertRaises(Refused):
                unb64(text)

    def test_texts_that_cannot_be_shown(self):
        for text in ("", "Pay 200.00 EUR to Bob", "Zürich – 東京", "e\u0301", "\u05d0\u05d1", "\U0001f600"):
            self.assertTrue(can_be_shown(text), text)
        for text in ("\n", "a\tb", "\u200b", "\u202e", "\u2066", "\u00ad", "\ufeff", "\u2028", "\u2029", "\ue000",
                     "\ufff9", "\u0378", "\u2800", "\u3164", "\uffa0", "\u034f", "\ufe0f", "\U000e0041", "\u0301a",
                     "\x7f", "a\u0301\u0301\u0301\u0301", "\ud800", "\u061c", "\u180e", "1\u2003", "1\u205f",
                     "\u1680", "\ufffc", "\U0001d159", "\U00013441", "\U00013442", "1\u0336", "1\u20e0"):
            self.assertFalse(can_be_shown(text), ascii(text))


@unittest.skipUnless(other_jwe or "CI" in os.environ, "joserfc is not installed")
class JoserfcTests(unittest.TestCase):
    def test_signatures_both_ways(self):
        for name, compact in V.signed.items():
            theirs = other_jws.deserialize_compact(compact, ECKey.import_key(V.signer[name].jwk), algorithms=["ES256"])
            self.assertEqual(theirs.payload, jose.Unverified(compact).content)
        key = V.keys["device"]
        header = {"alg": "ES256", "typ": "tsp-possession+jwt", "kid": key.kid}
        content = strict_json.write(V.payload("possession"))
        compact = other_jws.serialize_compact(header, content, ECKey.import_key(private_jwk(key)), algorithms=["ES256"])
        self.assertEqual(messages.read(compact, "tsp-possession+jwt", key.jwk), V.payload("possession"))

    def test_encryption_both_ways(self):
        key = V.keys["transport"]
        ours = jose.encrypt(b"plaintext", key.jwk, "JWT", ISS, "did")
        opened = other_jwe.decrypt_compact(ours, ECKey.import_key(private_jwk(key)), algorithms=["ECDH-ES", "A256GCM"])
        self.assertEqual(opened.plaintext, b"plaintext")
        theirs = other_jwe.encrypt_compact(
            {"alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT", "kid": key.kid, "apu": b64(ISS.encode()),
             "apv": b64(b"did")}, b"plaintext", ECKey.import_key(key.jwk), algorithms=["ECDH-ES", "A256GCM"])
        self.assertEqual(jose.Sealed(theirs).opened(key, "JWT", ISS, "did"), b"plaintext")


@unittest.skipUnless(shutil.which("jose") or "CI" in os.environ, "the command jose is not installed")
class LatchsetTests(unittest.TestCase):
    def run_jose(self, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            line = []
            for at, one in enumerate(arguments):
                if isinstance(one, bytes):
                    path = os.path.join(directory, str(at))
                    with open(path, "wb") as file:
                        file.write(one)
                    one = path
                line.append(one)
            return subprocess.run(["jose", *line], check=True, capture_output=True, timeout=3600).stdout

    def test_signatures_both_ways(self):
        for name in ("decision", "receipt"):
            compact = V.signed[name]
            shown = self.run_jose("jws", "ver", "-i", compact.encode(), "-k", strict_json.write(V.signer[name].jwk),
                                  "-O", "-")
            self.assertEqual(shown, jose.Unverified(compact).content)
        key = V.keys["device"]
        template = strict_json.write({"protected": {"alg": "ES256", "typ": "tsp-possession+jwt", "kid": key.kid}})
        compact = self.run_jose("jws", "sig", "-s", template, "-I", strict_json.write(V.payload("possession")), "-k",
                                strict_json.write(private_jwk(key)), "-c").decode().strip()
        self.assertEqual(messages.read(compact, "tsp-possession+jwt", key.jwk), V.payload("possession"))

    def test_encryption_both_ways(self):
        key = V.keys["transport"]
        ours = jose.encrypt(b"plaintext", key.jwk, "JWT", ISS, "did")
        shown = self.run_jose("jwe", "dec", "-i", ours.encode(), "-k", strict_json.write(private_jwk(key)), "-O", "-")
        self.assertEqual(shown, b"plaintext")
        template = strict_json.write({"protected": {
            "alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT", "kid": key.kid, "apu": b64(ISS.encode()),
            "apv": b64(b"did")}})
        compact = self.run_jose("jwe", "enc", "-i", template, "-I", b"plaintext", "-k", strict_json.write(key.jwk),
                                "-c").decode().strip()
        self.assertEqual(jose.Sealed(compact).opened(key, "JWT", ISS, "did"), b"plaintext")
