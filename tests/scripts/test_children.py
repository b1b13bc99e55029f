# SPDX-License-Identifier: MIT
"""Children at work side by side: results in order, and an error that ends all of them."""

import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from skbench_lib import children  # noqa: E402


class Each(unittest.TestCase):
    def test_results_in_order(self):
        self.assertEqual(children.each(lambda n: n * n, range(20)), [n * n for n in range(20)])

    def test_an_error_ends_the_others_and_those_that_wait(self):
        def work(n):
            if n == 3:
                raise ValueError("three")
            children.run(["sleep", "60"] if n > 3 else ["true"], 100)

        begin = time.monotonic()
        with self.assertRaisesRegex(ValueError, "three"):
            children.each(work, range(200))
        self.assertLess(time.monotonic() - begin, 50)


if __name__ == "__main__":
    unittest.main()
