"""The message registry: for each signed message and each request body its members, their types and their bounds."""
import re

from . import jose
from .framing import Refused, unb64
from .texts import can_be_shown

LARGEST = 2 ** 53 - 1
GENERATIONS = 2 ** 31


def no(where, what):
    raise Refused(f"{where}: {what}")


# --- what a value may be ---------------------------------------------------------------------------------------------


def integer(low, high):
    def check(value, where):
        if type(value) is not int or not low <= value <= high:
            no(where, f"no integer from {low} to {high}")
    return check


def exactly(*values):
    def check(value, where):
        if not any(type(value) is type(other) and value == other for other in values):
            no(where, "another value is needed")
    return check


def pattern(expression, low=0, high=1 << 20):
    compiled = re.compile(expression)

    def check(value, where):
        if not isinstance(value, str) or not low <= len(value) <= high or not compiled.fullmatch(value):
            no(where, "a text of another form")
    return check


def data(size):
    def check(value, where):
        if not isinstance(value, str):
            no(where, "no text")
        unb64(value, size)
    return check


def text(low, high):
    def check(value, where):
        if not isinstance(value, str) or not low <= len(value) <= high:
            no(where, f"no text of {low} to {high} characters")
        if not can_be_shown(value):
            no(where, "a text that cannot be shown")
    return check


def array(item, low, high, unique=None):
    def check(value, where):
        if not isinstance(value, list) or not low <= len(value) <= high:
            no(where, f"no list of {low} to {high}")
        for at, one in enumerate(value):
            item(one, f"{where}[{at}]")
        if unique:
            names = [unique(one) for one in value]
            if len(set(names)) != len(names):
                no(where, "the same comes twice")
    return check


def members(known, *rules):
    """An object with exactly these members; a name that ends with ? may be absent."""
    needed = {name for name in known if not name.endswith("?")}
    checks = {name.rstrip("?"): check for name, check in known.items()}

    def check(value, where):
        if not isinstance(value, dict):
            no(where, "no object")
        for name in value:
            if name not in checks:
                no(f"{where}.{name}", "an unknown member")
        for name in needed:
            if name not in value:
                no(f"{where}.{name}", "is missing")
        for name, one in value.items():
            checks[name](one, f"{where}.{name}")
        for rule in rules:
            rule(value, where)
    return check


def either(choose):
    """`choose` looks at the value and names the check."""
    def check(value, where):
        if not isinstance(value, dict):
            no(where, "no object")
        try:
            chosen = choose(value)
        except TypeError:
            no(where, "a member of another type")
        chosen(value, where)
    return check


identifier = data(16)
digest = data(32)
element = data(49)
time = integer(0, LARGEST)
yes = exactly(True)
boolean = exactly(True, False)
name = pattern(r"[a-z0-9-]+", 1, 32)
user_id = pattern(r"[ -~]+", 1, 64)
issuer = pattern(r"https://[!-~]+[!-.0-~]", 1, 512)
compact = pattern(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", 1, jose.JWS_LIMIT)
generation = integer(0, GENERATIONS)
usage = exactly("device", "transport", "sign", "auth", "otp")
slot_name = exactly("session", "signing", "otp")
keystore = pattern(r"(software\+)?[a-z0-9-]{1,32}")
effect = exactly("approve", "deny", "report", "cancel")


def key(value, where):
    jose.public_key(value)


def version(value, where):
    if value != 1 or type(value) is not int:
        raise Refused(f"{where}: not version 1", "version_unsupported")


# --- the pieces ------------------------------------------------------------------------------------------------------

count = integer(0, 128)
password = members(
    {"minLength": integer(4, 64), "maxLength": integer(4, 128), "sequences": boolean, "common": boolean,
     "history": integer(0, 24), "minAge": integer(0, 3650), "maxAge": integer(0, 3650), "cache": integer(0, 3600),
     **{f"{side}{kind}?": count for side in ("min", "max")
        for kind in ("Upper", "Lower", "Alpha", "Numeric", "NonAlpha")}})


def kdf(value, where):
    pattern(r"\$scrypt\$ln=[0-9]{1,2},r=[0-9]{1,2},p=[0-9]")(value, where)
    n, r, p = scrypt_cost(value)
    if not (14 <= n <= 18 and 8 <= r <= 16 and 1 <= p <= 4) or value != f"$scrypt$ln={n},r={r},p={p}":
        no(where, "a cost out of bounds")


def scrypt_cost(value):
    return tuple(int(part) for part in re.findall(r"=([0-9]+)", value))


lock_local = either(lambda value: {
    "none": members({"type": exactly("none")}),
    "delay": members({"type": exactly("delay"), "delay": integer(1, 3600), "counter": integer(1, 16)}),
}.get(value.get("type"), members({"type": exactly("counter"), "max": integer(1, 10)})))


def _cap(value, where):
    if value["cap"] < value["max"]:
        no(where, "cap is below max")


lock_assisted = members({"type": exactly("counter"), "max": integer(1, 10), "cap": integer(1, 100),
                         "delays": array(integer(0, 86400), 0, 16)}, _cap)
policy = either(lambda value: members({"id": name, "type": exactly("device")}) if value.get("type") == "device" else
                members({"id": name, "type": exactly("password", "bioPassword"), "mode": exactly("local", "assisted"),
                         "kdf": kdf, "password": password,
                         "lock": lock_assisted if value.get("mode") == "assisted" else lock_local}))
offered_slot = either(lambda value: members({
    "slot": slot_name, "mode": exactly("local", "assisted"), "gen": generation,
    **({"pk": element} if value.get("mode") == "assisted" else {})}))
offered_key = members({"usage": usage, "label": name, "slot?": slot_name, "policy": name})
SLOT_OF = {"transport": "session", "sign": "signing", "auth": "signing", "otp": "otp"}
MOST = {"device": 1, "transport": 1, "sign": 4, "auth": 2, "otp": 4}


def check_offer(value, where):
    """The rules on modes, and that the pieces of an offer fit each other."""
    policies = {one["id"]: one for one in value["policies"]}
    slots = {one["slot"]: one for one in value["slots"]}
    usages = [one["usage"] for one in value["keys"]]
    if usages.count("device") != 1 or usages.count("transport") != 1:
        no(where, "not exactly one device key and one transport key")
    if any(usages.count(one) > most for one, most in MOST.items()):
        no(where, "too many keys of one usage")
    for one in value["keys"]:
        chosen = policies.get(one["policy"])
        if chosen is None:
            no(where, "a policy that is not there")
        if "slot" not in one:
            if chosen["type"] != "device":
                no(where, "a password for a key without a slot")
        elif one["slot"] != SLOT_OF.get(one["usage"]) or one["slot"] not in slots:
            no(where, "a slot that is not this key's")
        elif chosen["type"] == "device" or chosen["mode"] != slots[one["slot"]]["mode"]:
            no(where, "a slot of another mode")
    if {one.get("slot") for one in value["keys"]} - {None} != set(slots):
        no(where, "a slot without keys")
    if any(len({one["policy"] for one in value["keys"] if one.get("slot") == slot}) > 1 for slot in slots):
        no(where, "keys of several policies in one slot")
    modes = {one["mode"] for one in value["slots"]}
    if modes == {"local", "assisted"}:
        no(where, "local beside assisted")
    if any(one["mode"] == "assisted" and one["slot"] != "signing" for one in value["slots"]):
        no(where, "assisted for another slot than signing")


pop_usage = exactly("sign", "auth")
enrolled_key = either(lambda value: members({
    "usage": exactly("device", "transport", "sign", "auth"), "label": name, "kid": digest, "jwk": key, "policy": name,
    "keystore": keystore, "slot?": slot_name, **({"pop": compact} if value.get("usage") in ("sign", "auth") else {})},
    lambda entry, where: entry["kid"] == jose.thumbprint(entry["jwk"]) or no(where, "kid is not the key's")))

amount = members({"amount": pattern(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,6})?"), "currency": pattern(r"[A-Z]{3}")})
FIELD_VALUES = {
    "text": text(1, 200), "amount": amount, "maxAmount": amount, "party": text(1, 200),
    "account": either(lambda value: members({"iban" if "iban" in value else "other": text(4, 34)})),
    "date": pattern(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"), "list": array(text(1, 200), 1, 100),
}


def rendering(kind, value):
    """The only text that may be shown of a value."""
    if kind in ("amount", "maxAmount"):
        return f"{value['amount']} {value['currency']}"
    if kind == "account":
        iban = value.get("iban")
        return value["other"] if iban is None else " ".join(iban[i:i + 4] for i in range(0, len(iban), 4))
    return ", ".join(value) if kind == "list" else value


def _field(value):
    known = value.get("type")
    return members({"id": name, "label": text(1, 40), "type": exactly(*FIELD_VALUES), "display": text(1, 2000),
                    "value": FIELD_VALUES.get(known if isinstance(known, str) else "", text(1, 200))},
                   lambda field, where: field["display"] == rendering(field["type"], field["value"])
                   or no(f"{where}.display", "is not what the value reads as"))


status_entry = members({"name": name, "label": text(1, 40), "effect": effect, "reason":
                        exactly("none", "optional", "required"), "kids": array(digest, 1, 5, str)})


def check_statuses(value, where):
    effects = [one["effect"] for one in value["statuses"]]
    if "approve" not in effects or "deny" not in effects or effects.count("cancel") > 1:
        no(where, "statuses need an approve and a deny, and at most one cancel")
    for member in ("name", "label"):
        if len({one[member] for one in value["statuses"]}) != len(effects):
            no(where, f"the same {member} comes twice")
    if not 0 < value["exp"] - value["iat"] <= 3600:
        no(where, "a life of more than an hour, or none")


def _lifetime(most):
    def rule(value, where):
        if not 0 < value["exp"] - value["iat"] <= most:
            no(where, "a life out of bounds")
    return rule


def _min(value, where):
    if value["min"] > value["gen"]:
        no(where, "min is above gen")


def _eval(value):
    base = {"purpose": exactly("enrol", "unlock", "change"), "slot": slot_name, "gen": generation, "pk": element,
            "evaluated": element, "proof": data(96)}
    more = {"enrol": {"left": integer(0, 4)},
            "unlock": {"unl": identifier, "n": integer(1, LARGEST), "tries": integer(0, 10), "spare": integer(0, 100),
                       "wait": integer(0, 86400)}}
    purpose = value.get("purpose")
    return reply({**base, **more.get(purpose if isinstance(purpose, str) else "", {})})


def _decision(value):
    base = {"v": version, "aud": issuer, "did": identifier, "sub": user_id, "txn": identifier, "jti": identifier}
    if "blind" in value:
        return members({**base, "blind": yes, "status": exactly("deny", "report"), "effect": exactly("deny", "report"),
                        "reason?": text(1, 200)},
                       lambda one, where: one["status"] == one["effect"] or no(where, "status and effect differ"))
    return members({**base, "nonce": identifier, "txh": digest, "dsp": digest, "status": name, "effect": effect,
                    "reason?": text(1, 200), "match?": pattern("[0-9]{2}"), "unl?": identifier})


def reply(known, *rules):
    return members({"v": version, "iss": issuer, "aud": pattern("[A-Za-z0-9_-]+", 22, 43), "iat": time, "rqh": digest,
                    **known}, *rules)


def document(known, *rules):
    return members({"v": version, "iss": issuer, "aud": identifier, "iat": time, **known}, *rules)


def from_device(known, *rules):
    return members({"v": version, "aud": issuer, "did": identifier, **known}, *rules)


REGISTRY = {
    "tsp-cert+jwt": members(
        {"v": version, "iss": issuer, "iat": time, "exp": time, "use": exactly("sig", "enc"),
         "gen": integer(1, GENERATIONS), "min": integer(1, GENERATIONS), "jwk": key}, _lifetime(400 * 86400), _min),
    "tsp-next+jwt": members({"v": version, "iss": issuer, "iat": time, "seq": integer(1, 16), "jwk": key}),
    "tsp-previous+jwt": members(
        {"v": version, "iss": issuer, "iat": time, "seq": integer(1, 16), "jwk": key, "until": time}),
    "tsp-invite+jwt": members(
        {"v": version, "iss": issuer, "pid": identifier, "code": pattern("[A-Z2-7]{20}"), "idk": digest, "iat": time,
         "exp": time}, _lifetime(900)),
    "tsp-start+jwt": members(
        {"v": version, "aud": issuer, "code": pattern("[A-Z2-7]{20}"), "nonce": pattern("[!-~]+", 1, 64), "jwk": key,
         "modes": array(exactly("device", "local", "assisted"), 1, 3, str),
         "info": members({f"{one}?": text(1, 64) for one in (
             "brand", "model", "os", "sdk", "locale", "keystore")})}),
    "tsp-offer+jwt": reply(
        {"pid": identifier, "did": identifier, "identity": digest, "name": text(1, 64),
         "commit": exactly("digits", "exchange"), "exp": time,
         "keys": array(offered_key, 2, 8, lambda one: one["label"]),
         "slots": array(offered_slot, 0, 3, lambda one: one["slot"]),
         "policies": array(policy, 1, 8, lambda one: one["id"])}, check_offer),
    "tsp-proof+jwt": from_device(
        {"htm": exactly("POST"), "htu": issuer, "bh": digest, "nonce": pattern("[!-~]+", 1, 64), "jti": identifier}),
    "tsp-eval+jwt": either(_eval),
    "tsp-nonce+jwt": reply({"nonceS": data(32), "sub": user_id, "user": text(1, 64)}),
    "tsp-pop+jwt": from_device(
        {"nonceS": data(32), "device": digest, "usage": pop_usage, "label": name, "kid": digest}),
    "tsp-enrol+jwt": from_device(
        {"pid": identifier, "sub": user_id, "offer": digest, "nonceD": data(32), "nonceS": data(32),
         "keys": array(enrolled_key, 2, 8, lambda one: one["label"])}),
    "tsp-enrolled+jwt": reply(
        {"state": exactly("UNCONFIRMED"), "serial": pattern("[0-9]{1,20}"), "name": text(1, 128), "exp": time,
         "renew": time, "echo": data(32), "handle": data(32),
         "otp": array(members({"label": name, "slot?": slot_name, "policy": name,
                               "uri": pattern(r"otpauth://[!-~]+", 1, 1024)}), 0, 4)}),
    "tsp-record+jwt": document(
        {"pid": identifier, "sub": user_id, "seq": integer(0, 1000), "prev?": digest, "user": text(1, 64),
         "identity": digest, "enrol": digest, "transcript": digest, "commit": exactly("digits", "exchange"),
         "by": array(exactly("invite", "administrator", "device", "sign", "reset"), 1, 3, str), "approvals": time,
         "keys": array(digest, 2, 8, str)},
        lambda one, where: ("prev" in one) == (one["seq"] > 0) or no(where, "prev is in every record but the first")),
    "tsp-status+jwt": reply(
        {"did": identifier, "state": exactly("UNCONFIRMED", "ACTIVE", "SUSPECT", "BLOCKED", "REVOKED", "VOID"),
         "approvals": time, "exp": time, "pending": integer(0, 1000),
         "keys": array(members({"kid?": digest, "usage": usage, "label": name, "state": exactly("ACTIVE", "RETIRED")}),
                       0, 12),
         "slots": array(members({
             "slot": slot_name, "gen": generation, "state": exactly("OPEN", "LOCKED", "SHREDDED"),
             "tries": integer(0, 10), "spare": integer(0, 100), "wait": integer(0, 86400)}), 0, 3)}),
    "tsp-tds+jwt": either(lambda value: members(
        {"v": version, "iss": issuer, "txn": identifier, "exp": time,
         **({"claim": yes} if "claim" in value else {"h": identifier})})),
    "tsp-list+jwt": reply(
        {"ids": array(compact, 0, 20), "more": boolean, "notices?": array(members(
            {"id": identifier, "at": time, "event": exactly("enrolled", "reset", "suspect", "removed"),
             "did": identifier, "name": text(1, 128)}), 1, 16)}),
    "tsp-fetched+jwt": reply({"txd": compact}),
    "tsp-txd+jwt": document(
        {"exp": time, "txn": identifier, "sub": user_id, "kind": exactly("transaction", "authentication", "record"),
         "rp": members({"id": pattern("[!-~]+", 1, 64), "name": text(1, 64)}),
         "locale": pattern("[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", 2, 35), "title": text(1, 100), "text?": text(1, 1000),
         "warning?": text(1, 200), "origin?": members({"place?": text(1, 64), "address": text(1, 64)}),
         "fields": array(either(_field), 0, 16, lambda one: one["id"]), "statuses": array(status_entry, 2, 8),
         "req": digest, "nonce": identifier,
         "match?": members({"mode": exactly("number"), "digits": exactly(2)})}, check_statuses),
    "tsp-decision+jwt": either(_decision),
    "tsp-possession+jwt": from_device({"txn": identifier, "dh": digest}),
    "tsp-receipt+jwt": document(
        {"txn": identifier, "sub": user_id, "rp": pattern("[!-~]+", 1, 64), "req": digest, "txh?": digest, "dh": digest,
         "status": name, "effect": effect, "state": exactly("APPROVED", "DENIED", "REPORTED", "CANCELED"),
         "kid": digest, "device": digest, "keyState": exactly("ACTIVE"), "since": time, "record": digest,
         "amr": array(exactly("pop", "pin", "user"), 1, 2, str), "match?": yes,
         "unlock?": members({"slot": slot_name, "gen": generation, "n": integer(1, LARGEST), "evaluated": time,
                             "confirmed": time}),
         "audit": pattern("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")},
        lambda one, where: one["amr"][0] == "pop" or no(where, "amr without pop")),
    "tsp-confirm+jwt": from_device(
        {"slot": slot_name, "gen": generation, "n": integer(1, LARGEST), "unl": identifier, "eval": digest}),
    "tsp-change+jwt": either(lambda value: from_device(
        {"slot": slot_name, "from": generation, "to": integer(1, GENERATIONS), "step": exactly("start", "commit"),
         "jti": identifier, **({"unl": identifier} if value.get("step") == "start" else {"pk": element})},
        lambda one, where: one["to"] == one["from"] + 1 or no(where, "to is not from + 1"))),
    "tsp-endorse+jwt": from_device({"enrol": digest, "jti": identifier}),
    "tsp-login+jwt": members(
        {"v": version, "iss": identifier, "sub": user_id, "aud": pattern("[ -~]+", 1, 512), "jkt": digest,
         "nonce": pattern("[!-~]+", 1, 64), "unl?": identifier, "jti": identifier, "iat": time, "exp": time},
        lambda one, where: one["exp"] == one["iat"] + 60 or no(where, "exp is not iat + 60")),
}



def properties(value, where):
    if not isinstance(value, dict) or len(value) > 16:
        no(where, "no object of at most 16 texts")
    for one, content in value.items():
        text(1, 32)(one, where)
        text(0, 256)(content, f"{where}.{one}")


REQUESTS = {
    "provision/start": members({"start": compact}),
    "provision/evaluate": members({"slot": slot_name, "gen": generation, "rid": identifier, "blinded": element}),
    "provision/commit": members({"commitment": digest, "offer": digest}),
    "provision/complete": members({"enrol": compact, "name?": text(1, 128), "pushId?": pattern("[!-~]*", 0, 1024)}),
    "provision/confirm": members({"echo": data(32)}),
    "renew/start": members({"code?": pattern("[A-Z2-7]{20}")}),
    "status": members({}),
    "transactions/list": members({"wait": integer(0, 25), "seen?": array(identifier, 1, 16)}),
    "transactions/claim": members({"tds": compact}),
    "transactions/fetch": members({"txn": identifier}),
    "transactions/create": members({"message": text(1, 1000), "label": name, "rid": identifier}),
    "transactions/decide": members({"decision": compact, "possession?": compact}),
    "slots/unlock": members({"slot": slot_name, "gen": generation, "rid": identifier, "blinded": element,
                             "r": data(32), "next": digest, "last?": compact}),
    "slots/confirm": members({"confirm": compact, "eval": compact}),
    "slots/change-start": members({"change": compact, "rid": identifier, "blinded": element}),
    "slots/change-commit": members({"change": compact}),
    "update": members({
        "name?": text(1, 128), "pushId?": pattern("[!-~]*", 0, 1024), "properties?": properties}),
    "delete": members({"reason?": text(1, 1000)}),
}
for _step in ("evaluate", "commit", "complete", "confirm"):
    REQUESTS[f"renew/{_step}"] = REQUESTS[f"provision/{_step}"]
REQUESTS["renew/complete"] = members(
    {"enrol": compact, "endorsements": array(compact, 1, 2), "name?": text(1, 128),
     "pushId?": pattern("[!-~]*", 0, 1024)})
CONFIGURATION = ("v", "iss", "name", "identity", "next", "certs")
SMALL = {"tsp-tds+jwt": 800, "tsp-invite+jwt": 800, "tsp-proof+jwt": 2048, "tsp-login+jwt": 2048}
DOCUMENT_LIMIT = 16 * 1024


def check(typ, payload):
    REGISTRY[typ](payload, typ[4:-4])
    return payload


def read(message, typ, jwk):
    """The payload of a message that this key signed, with the members that the registry gives it."""
    unverified = message if isinstance(message, jose.Unverified) else jose.Unverified(message)
    check_size(unverified, typ)
    return check(typ, unverified.verified(typ, jwk))


def read_self_signed(message, typ, jwk_at=lambda payload: payload["jwk"]):
    unverified = jose.Unverified(message)
    check_size(unverified, typ)
    return check(typ, unverified.self_signed(typ, jwk_at))


def check_size(unverified, typ):
    if len(unverified.compact) > SMALL.get(typ, jose.JWS_LIMIT):
        raise Refused(f"{typ} is too large")
    if typ == "tsp-txd+jwt" and len(unverified.content) > DOCUMENT_LIMIT:
        raise Refused("the document is too large")


def read_configuration(value):
    """The configuration's own members; it may have more."""
    for one in CONFIGURATION:
        if one not in value:
            no(one, "is missing")
    if not isinstance(value["v"], list) or 1 not in value["v"]:
        raise Refused("configuration: not version 1", "version_unsupported")
    issuer(value["iss"], "iss")
    text(1, 64)(value["name"], "name")
    key(value["identity"], "identity")
    array(compact, 0, 16)(value["next"], "next")
    array(compact, 1, 64)(value["certs"], "certs")
    return value
