"""VOPRF(P-384, SHA-384) of RFC 9497 over P384_XMD:SHA-384_SSWU_RO_ of RFC 9380, for a batch of one.

Points are (x, y), infinity is None.
"""
import hashlib
import os

from .framing import Refused

P = 2 ** 384 - 2 ** 128 - 2 ** 96 + 2 ** 32 - 1
N = 0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973
A = P - 3
B = 0xb3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef
G = (0xaa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7,
     0x3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f)
Z = P - 12
CONTEXT = b"OPRFV1-\x01-P384-SHA384"
LENGTH = 72


# --- the curve -------------------------------------------------------------------------------------------------------


def _double(point):
    """Jacobian coordinates, for a = -3."""
    x, y, z = point
    if not z or not y:
        return (1, 1, 0)
    square = z * z % P
    twice = y * y % P
    s = 4 * x * twice % P
    m = 3 * (x - square) * (x + square) % P
    x3 = (m * m - 2 * s) % P
    return (x3, (m * (s - x3) - 8 * twice * twice) % P, 2 * y * z % P)


def _add(left, right):
    x1, y1, z1 = left
    x2, y2, z2 = right
    if not z1:
        return right
    if not z2:
        return left
    zz1, zz2 = z1 * z1 % P, z2 * z2 % P
    u1, u2 = x1 * zz2 % P, x2 * zz1 % P
    s1, s2 = y1 * z2 * zz2 % P, y2 * z1 * zz1 % P
    if u1 == u2:
        return _double(left) if s1 == s2 else (1, 1, 0)
    h, r = u2 - u1, s2 - s1
    hh = h * h % P
    hhh, v = h * hh % P, u1 * hh % P
    x3 = (r * r - hhh - 2 * v) % P
    return (x3, (r * (v - x3) - s1 * hhh) % P, z1 * z2 * h % P)


def _affine(point):
    x, y, z = point
    if not z:
        return None
    inverse = pow(z, -1, P)
    return (x * inverse * inverse % P, y * pow(inverse, 3, P) % P)


def _jacobian(point):
    return (1, 1, 0) if point is None else (point[0], point[1], 1)


def add(left, right):
    return _affine(_add(_jacobian(left), _jacobian(right)))


def multiply(scalar, point):
    table = [(1, 1, 0), _jacobian(point)]
    for _ in range(14):
        table.append(_add(table[-1], table[1]))
    result = (1, 1, 0)
    for shift in range(380, -4, -4):
        for _ in range(4):
            result = _double(result)
        result = _add(result, table[scalar % N >> shift & 15])
    return _affine(result)


def _right_side(x):
    return (x * x * x + A * x + B) % P


def _root(square):
    """A square root, or None; p is 3 modulo 4."""
    root = pow(square, (P + 1) // 4, P)
    return root if root * root % P == square else None


def serialize(point):
    if point is None:
        raise Refused("infinity has no encoding")
    return bytes([2 + (point[1] & 1)]) + point[0].to_bytes(48, "big")


def parse_element(data):
    """49 bytes, 02 or 03, x below p, on the curve."""
    if len(data) != 49 or data[0] not in (2, 3):
        raise Refused("this is no element")
    x = int.from_bytes(data[1:], "big")
    y = _root(_right_side(x)) if x < P else None
    if y is None:
        raise Refused("this is no point of the curve")
    return (x, y if y & 1 == data[0] & 1 else P - y)


def parse_scalar(data):
    number = int.from_bytes(data, "big")
    if len(data) != 48 or not 0 < number < N:
        raise Refused("this is no scalar")
    return number


def random_scalar():
    return 1 + int.from_bytes(os.urandom(64), "big") % (N - 1)


# --- hashing (RFC 9380) ----------------------------------------------------------------------------------------------


def expand(message, dst, length):
    """expand_message_xmd with SHA-384, whose block has 128 bytes."""
    suffix = dst + bytes([len(dst)])
    first = hashlib.sha384(bytes(128) + message + length.to_bytes(2, "big") + b"\0" + suffix).digest()
    block = hashlib.sha384(first + b"\1" + suffix).digest()
    result = block
    for index in range(2, -(-length // 48) + 1):
        block = hashlib.sha384(bytes(x ^ y for x, y in zip(first, block)) + bytes([index]) + suffix).digest()
        result += block
    return result[:length]


def _field(message, dst, count, modulus):
    data = expand(message, dst, count * LENGTH)
    return [int.from_bytes(data[at * LENGTH:(at + 1) * LENGTH], "big") % modulus for at in range(count)]


def _map(u):
    """The simplified SWU map, RFC 9380 6.6.2."""
    square = Z * u * u % P
    t = (square * square + square) % P
    x = -B * pow(A, -1, P) * (1 + pow(t, -1, P)) % P if t else B * pow(Z * A, -1, P) % P
    y = _root(_right_side(x))
    if y is None:
        x = square * x % P
        y = _root(_right_side(x))
    return (x, y if y & 1 == u & 1 else P - y)


def hash_to_curve(message, dst=b"HashToGroup-" + CONTEXT):
    first, second = _field(message, dst, 2, P)
    return add(_map(first), _map(second))


def hash_to_scalar(message, dst=b"HashToScalar-" + CONTEXT):
    return _field(message, dst, 1, N)[0]


# --- the exchange (RFC 9497) -----------------------------------------------------------------------------------------


def _counted(*parts):
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)


def _composite(public, blinded, evaluated):
    seed_dst = b"Seed-" + CONTEXT
    seed = hashlib.sha384(_counted(serialize(public), seed_dst)).digest()
    return hash_to_scalar(_counted(seed) + bytes(2) + _counted(serialize(blinded), serialize(evaluated)) + b"Composite")


def _challenge(public, *points):
    return hash_to_scalar(_counted(serialize(public), *map(serialize, points)) + b"Challenge")


def blind(message, scalar=None):
    """The scalar and the blinded element."""
    element = hash_to_curve(message)
    if element is None:
        raise Refused("the input has no element")
    scalar = scalar or random_scalar()
    return scalar, multiply(scalar, element)


def public_of(k):
    return multiply(k, G)


def evaluate(k, blinded, random=None):
    """What a server answers: the evaluated element and the proof."""
    public, evaluated = public_of(k), multiply(k, blinded)
    m = multiply(_composite(public, blinded, evaluated), blinded)
    r = random or random_scalar()
    c = _challenge(public, m, multiply(k, m), multiply(r, G), multiply(r, m))
    return evaluated, c.to_bytes(48, "big") + ((r - c * k) % N).to_bytes(48, "big")


def check_proof(public, blinded, evaluated, proof):
    """Refused, unless the key of `public` evaluated this element."""
    if len(proof) != 96:
        raise Refused("a proof has 96 bytes")
    c, s = parse_scalar(proof[:48]), parse_scalar(proof[48:])
    d = _composite(public, blinded, evaluated)
    m, z = multiply(d, blinded), multiply(d, evaluated)
    t2 = add(multiply(s, G), multiply(c, public))
    t3 = add(multiply(s, m), multiply(c, z))
    if None in (m, z, t2, t3) or _challenge(public, m, z, t2, t3) != c:
        raise Refused("the evaluation's proof is wrong")


def finalize(message, scalar, evaluated):
    element = serialize(multiply(pow(scalar, -1, N), evaluated))
    return hashlib.sha384(_counted(message, element) + b"Finalize").digest()
