"""All tests of this package: `python3 Tests/Signing/tsp/test_tsp.py [VectorTests]`."""
import os
import sys
import unittest

if not __package__:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from tsp.attack_tests import RelayTests, ThiefTests  # noqa: E402,F401
from tsp.evidence_tests import EvidenceTests  # noqa: E402,F401
from tsp.jose_tests import JoseTests, JoserfcTests, LatchsetTests  # noqa: E402,F401
from tsp.story_tests import (  # noqa: E402,F401
    CallTests, EnrolmentTests, PinTests, SocketTests, TransactionTests)
from tsp.vector_tests import VectorTests  # noqa: E402,F401

if __name__ == "__main__":
    unittest.main()
