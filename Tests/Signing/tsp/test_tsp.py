"""All tests of this package: `python3 Tests/Signing/tsp/test_tsp.py [VectorTests]`."""
import os
import sys
import unittest

if not __package__:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from tsp.jose_tests import JoseTests, JoserfcTests, LatchsetTests  # noqa: E402,F401
from tsp.vector_tests import VectorTests  # noqa: E402,F401

if __name__ == "__main__":
    unittest.main()
