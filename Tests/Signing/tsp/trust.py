"""From the pinned identity key to the keys that may sign: the section "The server's keys"."""
from . import jose, messages
from .framing import Refused


def walk(pin, configuration, iss):
    """The last identity key (a JWK) that the `next` messages lead to from `pin`, and the messages that led there."""
    current, sequence = pin, None
    for compact in configuration["next"]:
        unverified = jose.Unverified(compact)
        if unverified.kid != jose.thumbprint(current):
            continue
        content = messages.read(unverified, "tsp-next+jwt", current)
        if content["iss"] != iss or (sequence is not None and content["seq"] != sequence + 1):
            raise Refused("a successor that does not belong here")
        current, sequence = content["jwk"], content["seq"]
    if jose.thumbprint(current) != jose.thumbprint(configuration["identity"]):
        raise Refused("the identity key is not the pinned one, nor its successor")
    return current


def certificates(configuration, identity, iss, least=1):
    """The certified online keys by kid, as `cert` contents; and the highest `min`."""
    found = []
    for compact in configuration["certs"]:
        try:
            content = messages.read(compact, "tsp-cert+jwt", identity)
        except Refused:
            continue
        if content["iss"] == iss:
            found.append(content)
    least = max([least] + [one["min"] for one in found])
    return {jose.thumbprint(one["jwk"]): one for one in found if one["gen"] >= least}, least


def signer(certs, kid):
    """The certificate of a key with use `sig`."""
    one = certs.get(kid)
    if one is None or one["use"] != "sig":
        raise Refused("nobody certified the key that signed")
    return one


def read_server(certs, compact, typ, iss):
    """A message of the server, whose key is certified and whose time lies within the certificate."""
    unverified = jose.Unverified(compact)
    certificate = signer(certs, unverified.kid)
    content = messages.read(unverified, typ, certificate["jwk"])
    if content["iss"] != iss:
        raise Refused("another issuer")
    if "iat" in content and not certificate["iat"] <= content["iat"] <= certificate["exp"]:
        raise Refused("signed outside of the certificate's time")
    return content
