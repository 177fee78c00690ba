"""JSON as the protocol reads it: no duplicates, no signs, fractions or exponents, no null, bounded."""
import json

from .framing import Refused

LEVELS = 16
VALUES = 10_000
LARGEST = 2 ** 53 - 1


def _pairs(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Refused("a member comes twice")
    return value


def _integer(text):
    if text[0] == "-" or len(text) > 16 or int(text) > LARGEST:
        raise Refused("a number that is no integer from 0 to 2^53-1")
    return int(text)


def _no_number(_):
    raise Refused("a number that is no integer")


def _check_count(data):
    """Refuses what has too many values before any is made: in memory each takes many times its bytes.

    Each value but the first has a comma, or the beginning of a list or an object, in front of it.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) <= 2 * VALUES:
        return
    # Without escapes each quotation mark begins or ends a text.
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    at = marks = 0
    for _ in range(2 * VALUES):
        begin = plain.find(b'"', at)
        stop = len(plain) if begin < 0 else begin
        marks += sum(plain.count(mark, at, stop) for mark in (b",", b"[", b"{"))
        end = plain.find(b'"', begin + 1)
        if marks > 2 * VALUES:
            break
        if begin < 0 or end < 0:
            return
        at = end + 1
    raise Refused("more than 10,000 values")


def _check(value, level, counter):
    counter[0] += 1
    if counter[0] > VALUES:
        raise Refused("more than 10,000 values")
    if value is None:
        raise Refused("null is never used")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, (dict, list)):
        if level > LEVELS:
            raise Refused("more than 16 levels")
        for name in value if isinstance(value, dict) else ():
            _check_text(name)
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, level + 1, counter)


def _check_text(text):
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("a lone surrogate") from None


def parse(data):
    """The value of these bytes, or Refused."""
    _check_count(data)
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_pairs, parse_int=_integer, parse_float=_no_number,
                           parse_constant=_no_number)
    except Refused:
        raise
    except (ValueError, RecursionError):
        raise Refused("this is not JSON") from None
    _check(value, 1, [0])
    return value


def parse_object(data):
    value = parse(data)
    if not isinstance(value, dict):
        raise Refused("this is no JSON object")
    return value


def write(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
