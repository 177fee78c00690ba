"""All tests of this package: `python3 Tests/Signing/tsp/test_tsp.py [VectorTests]`."""
import functools
import os
import sys
import unittest

if not __package__:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from tsp import pin  # noqa: E402
from tsp.attack_tests import RatchetTests, RelayTests, ThiefTests  # noqa: E402,F401
from tsp.delay_tests import DelayTests  # noqa: E402,F401
from tsp.evidence_tests import EvidenceTests  # noqa: E402,F401
from tsp.jose_tests import JoseTests, JoserfcTests, LatchsetTests  # noqa: E402,F401
from tsp.story_tests import (  # noqa: E402,F401
    CallTests, EnrolmentTests, PinTests, RenewalTests, SocketTests, TransactionTests)
from tsp.vector_tests import VectorTests  # noqa: E402,F401

# Most of the time would be spent on hashing the same password with the same salt again.
pin.scrypt = functools.lru_cache(maxsize=4096)(pin.scrypt)

if __name__ == "__main__":
    unittest.main()
