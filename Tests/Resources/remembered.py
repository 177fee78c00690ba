"""A user whom an installation remembers, written from docs/ alone (transaction-signing.md, resources.md): the user
signs in once, the installation enrols a container with that session, and from then on a PIN signs the user in, or they
are only remembered.

The container is one of the second implementation of transaction signing, `Tests/Signing/tsp`.
"""
import json
from urllib.parse import urlencode, urlsplit

from tsp import jose, messages
from tsp.device import Device, Problem, new_id
from tsp.framing import Refused

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Remembered:
    def __init__(self, mine, thief, client, metadata, job):
        self.mine, self.thief, self.client, self.job = mine, thief, client, job
        self.tokens, self.issuer = metadata["token_endpoint"], job["issuer"]
        self.signing, self.scope, self.pin = job["signing"], job["scope"], job["pin"]
        self.device = Device(mine.transport)
        self.implicit_token = self.pin_token = None

    # --- the container -----------------------------------------------------------------------------------------------

    def sign_in(self):
        """A session that a journey has made, and that belongs to the installation's key."""
        answers = {"NameCallback": self.job["user"], "PasswordCallback": self.job["password"]}
        reply = self.mine.send("POST", self.job["journey"])
        for _ in range(4):
            if "authId" not in reply.content:
                break
            page = reply.content
            for callback in page["callbacks"]:
                if callback["type"] in answers:
                    callback["input"][0]["value"] = answers[callback["type"]]
            reply = self.mine.send("POST", self.job["journey"].split("?")[0], JSON, json.dumps(page).encode())
        assert reply.status == 200 and reply.content["cnf"] == {"jkt": self.mine.key.kid}, (reply.status, reply.content)
        return reply.content["tokenId"]

    def ask(self, method, path, session, body=None):
        """A call of the signed-in user at the signing service."""
        data = None if body is None else json.dumps(body).encode()
        return self.mine.send(method, f"{self.signing}/{path}", JSON if data else {}, data, session=session)

    def enrol(self):
        """The app compares the identity key and types the digits itself: no person has."""
        session = self.sign_in()
        invite = self.ask("POST", "invites", session, {})
        assert invite.status == 201, (invite.status, invite.content)
        digits = self.device.enrol(self.pin, name="Python", qr=invite.content["qr"])
        place = f"invites/{invite.content['pid']}/digits"
        wrong = f"{(int(digits) + 1) % 10 ** 8:08}"
        refused = self.ask("POST", place, session, {"digits": wrong}).said
        state = self.ask("POST", place, session, {"digits": digits}).content["state"]
        return {"wrong_digits": refused, "state": state, "status": self.device.status()["state"],
                "key": self.entry["usage"], "sealed": "scalar" not in self.entry}

    @property
    def entry(self):
        """The key that a PIN guards and that signs logins."""
        return next(one for one in self.device.state["keys"].values() if one["usage"] == "auth")

    def guess(self, pin):
        try:
            self.device.open_key(self.entry, pin)
            return "opened"
        except Refused as refused:
            return refused.code
        except Problem as problem:
            return problem.code

    # --- logins ------------------------------------------------------------------------------------------------------

    def login(self, key, unl=None, by=None, **changed):
        """What the container signs, after a change."""
        by, now = by or self.mine, self.mine.now
        claims = {"v": 1, "iss": self.device.state["did"], "sub": self.device.state["sub"], "aud": self.issuer,
                  "jkt": by.key.kid, "nonce": by.nonces[urlsplit(self.tokens).netloc], **({"unl": unl} if unl else {}),
                  "jti": new_id(), "iat": now, "exp": now + 60}
        if not changed:
            messages.check("tsp-login+jwt", claims)
        return jose.sign("tsp-login+jwt", {**claims, **changed}, key)

    def form(self, login, by, client, scope):
        return urlencode({"grant_type": GRANT_TYPE, "assertion": login, "scope": scope or self.scope,
                          **by.assertion(client)}).encode()

    def send(self, login, scope=None, by=None, client=None):
        by = by or self.mine
        return by.send("POST", self.tokens, FORM, self.form(login, by, client or self.client, scope))

    def learn_nonce(self, by, client):
        """Each login names a nonce of the server, so a proof without one is answered with one."""
        place = urlsplit(self.tokens).netloc
        by.nonces[place] = "none"
        login = self.login(self.device.device_key, by=by)
        del by.nonces[place]
        proof = {"DPoP": by.proof("POST", self.tokens)}
        return by.bare("POST", self.tokens, {**FORM, **proof}, self.form(login, by, client, None)).said

    def wrong(self, key, unl=None):
        """Logins that are wrong in one place. None of them spends anything."""
        now = self.mine.now
        changes = {
            "other_user": {"sub": "somebody"}, "other_issuer": {"aud": self.issuer + "x"},
            "other_key": {"jkt": self.thief.key.kid}, "other_nonce": {"nonce": "another"},
            "other_container": {"iss": new_id()}, "early": {"iat": now + 600, "exp": now + 660},
            "late": {"iat": now - 600, "exp": now - 540}, "long": {"exp": now + 3600}, "more": {"admin": True}}
        said = {name: self.send(self.login(key, unl, **change)).said for name, change in changes.items()}
        said["foreign_signature"] = self.send(self.login(jose.Key(), unl)).said
        return said

    def given(self, reply):
        assert reply.status == 200, (reply.status, reply.content)
        return {"type": reply.content["token_type"], "scope": reply.content["scope"],
                "refresh": "refresh_token" in reply.content, "id": "id_token" in reply.content,
                "session": "assent_session" in reply.content}

    def calls(self, token):
        routes = self.job["routes"]
        return {kind: self.mine.send("GET", routes[kind], token=token).said
                for kind in ("device", "several", "user", "greeting")}

    # --- the story ---------------------------------------------------------------------------------------------------

    def implicit(self, foreign):
        """By the device key alone. `foreign` is the client of the thief, who has all that this device stores."""
        key, seen = self.device.device_key, {}
        seen["without_nonce"] = self.learn_nonce(self.mine, self.client)
        self.learn_nonce(self.thief, foreign)
        seen["wrong"] = self.wrong(key)
        seen["other_installation"] = self.send(self.login(key, by=self.thief), by=self.thief, client=foreign).said
        seen["more_than_implicit"] = self.send(self.login(key), scope="openid").said
        seen["with_evaluation"] = self.send(self.login(key, new_id())).said
        login = self.login(key)
        reply = self.send(login, scope=self.scope + " openid offline_access")
        seen["given"], self.implicit_token = self.given(reply), reply.content["access_token"]
        seen["again"] = self.send(login).said
        seen["calls"] = self.calls(self.implicit_token)
        seen["userinfo"] = self.mine.send("GET", self.job["userinfo"], token=self.implicit_token).said
        seen["account"] = self.mine.send("GET", self.job["account"], token=self.implicit_token).said
        seen["stolen"] = self.thief.send("GET", self.job["routes"]["greeting"], token=self.implicit_token).said
        return seen

    def by_pin(self):
        """By the key that the PIN has opened, with the evaluation that it was counted as."""
        seen = {"wrong_pin": self.guess(self.job["wrong_pin"])}
        key, unl = self.device.open_key(self.entry, self.pin)
        seen["wrong"] = self.wrong(key, unl)
        seen["without_evaluation"] = self.send(self.login(key)).said
        seen["device_key"] = self.send(self.login(self.device.device_key, unl)).said
        login = self.login(key, unl)
        reply = self.send(login)
        seen["given"], self.pin_token = self.given(reply), reply.content["access_token"]
        session = reply.content["assent_session"]
        seen["again"] = self.send(login).said
        seen["same_evaluation"] = self.send(self.login(key, unl)).said
        seen["calls"] = self.calls(self.pin_token)
        seen["stolen"] = self.thief.send("GET", self.job["routes"]["user"], token=self.pin_token).said
        seen["session"] = {
            "account": self.mine.send("GET", self.job["account"], session=session).status,
            "stolen": self.thief.send("GET", self.job["account"], session=session).status,
            # Nobody's device is enrolled by a PIN: that wants a sign-in.
            "invite": self.ask("POST", "invites", session, {}).said}
        seen["logout"] = self.mine.send("POST", self.job["logout"], session=session).status
        seen["after_logout"] = {
            "token": self.mine.send("GET", self.job["routes"]["user"], token=self.pin_token).said,
            "pin": self.again()}
        return seen, key

    def again(self):
        reply = self.send(self.login(*self.device.open_key(self.entry, self.pin)))
        self.pin_token = reply.content.get("access_token")
        return reply.said

    def guessed(self, key):
        """Somebody guesses until the server has counted enough; the key itself is worth nothing then."""
        return {"tries": [self.guess(self.job["wrong_pin"]) for _ in range(self.job["max"])] + [self.guess(self.pin)],
                "pin": self.send(self.login(key)).said,
                "implicit": self.send(self.login(self.device.device_key)).said}

    def story(self, foreign):
        """`foreign` is the thief's own client."""
        seen = {"enrolled": self.enrol(), "implicit": self.implicit(foreign)}
        seen["pin"], key = self.by_pin()
        seen["guessed"] = self.guessed(key)
        return seen

    def afterwards(self):
        """The installation has ended, and with it the container and all that its logins have made."""
        route = self.job["routes"]["greeting"]
        return {
            "implicit": self.send(self.login(self.device.device_key)).said,
            "opened": self.guess(self.pin) == "opened",
            "tokens": [self.mine.send("GET", route, token=one).said for one in (self.implicit_token, self.pin_token)]}
