# SPDX-License-Identifier: MIT
"""That nothing in the analysis is quadratic: eight times as much may take no more than four times eight as long, where the
square would take 64. bench_compare.py has the times.
"""

import math
import random
import subprocess
import time
import unittest

import compare_support as cs
import support
from skbench_lib import changepoint, compare, ranks, results, sides

FACTOR, MOST = 8, 32
SEED = 1965


def seconds(function, argument):
    """CPU time, the least of three."""
    def once():
        begin = time.process_time()
        function(argument)
        return time.process_time() - begin
    return min(once() for _ in range(3))


class Growth(unittest.TestCase):
    def grows(self, function, make, size):
        small, large = make(size), make(size * FACTOR)
        self.assertLess(seconds(function, large), MOST * max(seconds(function, small), 1e-4))

    def noise(self, size):
        rng = random.Random(SEED)
        return [math.exp(rng.gauss(5, 0.02)) for _ in range(size)]

    def test_change_points(self):
        self.grows(changepoint.statistics, self.noise, 1000)

    def test_the_rank_sum_test(self):
        self.grows(lambda values: ranks.rank_sum(values[::2], values[1::2]), self.noise, 4000)

    def test_judging_cases(self):
        def make(size):
            document = cs.survey({f"skb/k:{index}": self.noise(15) for index in range(size)})
            return [sides.native(document, "x") for _ in range(2)]

        self.grows(lambda pair: compare.judge(*pair), make, 50)

    def test_reading_cases(self):
        def make(size):
            return results.text_of(cs.survey({f"skb/k:{index}": self.noise(5) for index in range(size)})).encode()

        self.grows(lambda data: results.check(results.parse(data, "x"), finite=True), make, 40)


class Start(unittest.TestCase):
    HEAVY = {"urllib.request", "http.client", "email", "ssl", "sqlite3", "concurrent.futures", "xml", "asyncio", "numpy",
             "unittest", "multiprocessing", "ctypes"}

    def test_compare_imports_nothing_heavy(self):
        code = "import sys; from skbench_lib import compare; print(' '.join(sys.modules))"
        said = subprocess.run([support.PYTHON, "-S", "-c", code], cwd=support.ROOT / "scripts", check=True, text=True,
                              capture_output=True).stdout.split()
        self.assertEqual(self.HEAVY & set(said), set())
        self.assertIn("skbench_lib.compare", said)


if __name__ == "__main__":
    unittest.main()
