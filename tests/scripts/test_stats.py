# SPDX-License-Identifier: MIT
"""The statistics, tested as statistics: exact ranks against scipy, coverage, false alarms and power by simulation."""

import math
import random
import unittest

import support  # noqa: F401  (the path of the package)
from skbench_lib import duet, stats

SEED = 20121
print(f"test_stats: seed {SEED}")


def gauss(rng):
    return rng.gauss(0, 0.01)


def skewed(rng):
    """Mostly quiet, now and then a neighbour."""
    return abs(rng.gauss(0, 0.004)) + (rng.expovariate(10) if rng.random() < 0.1 else 0)


def clumped(rng):
    """Two modes, as a contended line gives on a virtual machine."""
    return (0.0 if rng.random() < 0.7 else 0.05) + rng.gauss(0, 0.002)


def heavy(rng):
    """Cauchy: no mean, no variance."""
    return 0.005 * math.tan(math.pi * (rng.random() - 0.5))


NOISES = (gauss, skewed, clumped, heavy)


def pair_noise(noise, rng):
    """The log ratio of two samples with the same noise: symmetric about 0 whatever the noise is."""
    return noise(rng) - noise(rng)


class Exact(unittest.TestCase):
    def test_rank_agrees_with_scipy(self):
        from scipy.stats import binom

        for confidence in (0.9, 0.95, 0.99, stats.family_confidence(50)):
            for n in list(range(1, 200)) + [500, 999, 1000, 1001, 2000]:
                rank = stats.sign_rank(n, confidence)
                if n < stats.MIN_PAIRS:
                    self.assertEqual(rank, 0)
                    continue
                # Largest rank with 2 P(X <= rank - 1) <= 1 - confidence.
                if rank:
                    self.assertLessEqual(2 * binom.cdf(rank - 1, n, 0.5), 1 - confidence + 1e-12, (n, confidence))
                self.assertGreater(2 * binom.cdf(rank, n, 0.5), 1 - confidence - 1e-12, (n, confidence))

    def test_coverage_agrees_with_scipy(self):
        from scipy.stats import binom

        for n in range(6, 120):
            rank = stats.sign_rank(n)
            self.assertAlmostEqual(stats.sign_coverage(n, rank), 1 - 2 * binom.cdf(rank - 1, n, 0.5), 12)

    def test_binomial_agrees_with_scipy(self):
        from scipy.stats import binom

        for n in (1, 7, 20, 200):
            for p in (0, 0.01, 0.5, 0.95, 1):
                for k in range(-1, n + 2):
                    self.assertAlmostEqual(stats.binomial_cdf(k, n, p), binom.cdf(k, n, p), 10, (k, n, p))

    def test_known_ranks(self):
        # From the binomial table: 6 values need the extremes (0.969), 10 the second (0.979), 60 the 22nd.
        self.assertEqual([stats.sign_rank(n) for n in (5, 6, 8, 9, 10, 60)], [0, 1, 1, 2, 2, 22])

    def test_no_interval_below_six(self):
        for n in range(6):
            self.assertIsNone(stats.sign_interval([1.0] * n, 0.5))
        self.assertEqual(stats.sign_interval([3, 1, 2, 6, 5, 4]), (1, 6))

    def test_family_needs_more(self):
        confidence = stats.family_confidence(50)
        self.assertAlmostEqual(confidence, 0.999)
        self.assertIsNone(stats.sign_interval(range(10), confidence))
        self.assertIsNotNone(stats.sign_interval(range(11), confidence))

    def test_median_and_hodges_lehmann(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertEqual(stats.median([4, 1, 2, 3]), 2.5)
        self.assertRaises(ValueError, stats.median, [])
        self.assertEqual(stats.hodges_lehmann([1, 2, 9]), 3.5)  # 1 1.5 2 5 5.5 9
        self.assertEqual(stats.hodges_lehmann([5]), 5)

    def test_swapping_sides_swaps_signs(self):
        rng = random.Random(SEED)
        values = [rng.gauss(0.02, 0.05) for _ in range(25)]
        lo, hi = stats.sign_interval(values)
        self.assertEqual(stats.sign_interval([-v for v in values]), (-hi, -lo))
        self.assertAlmostEqual(stats.hodges_lehmann(values), -stats.hodges_lehmann([-v for v in values]))


class Verdicts(unittest.TestCase):
    M = stats.log_margin(0.03)

    def test_words(self):
        m = self.M
        for lo, hi, word in ((m * 1.01, m * 2, stats.REGRESSION), (-m * 2, -m * 1.01, stats.IMPROVEMENT),
                             (-m, m, stats.EQUIVALENT), (0, m, stats.EQUIVALENT), (m / 10, m / 2, stats.SHIFTED),
                             (-m / 2, -m / 10, stats.SHIFTED), (m / 2, m * 2, stats.INCONCLUSIVE),
                             (-m * 2, m * 2, stats.INCONCLUSIVE), (m, m * 2, stats.INCONCLUSIVE)):
            self.assertEqual(stats.verdict(lo, hi, m), word, (lo, hi))
        self.assertEqual(stats.verdict(None, None, m), stats.INCONCLUSIVE)
        self.assertRaises(ValueError, stats.verdict, 1, 0, m)
        self.assertRaises(ValueError, stats.verdict, 0, math.nan, m)

    def test_floor_widens_the_margin(self):
        floor = stats.log_floor(0.3, 2.0)  # 0.3 ns of 2 ns
        self.assertEqual(stats.verdict(0.05, 0.06, self.M), stats.REGRESSION)
        self.assertEqual(stats.verdict(0.05, 0.06, self.M, floor), stats.SHIFTED)
        self.assertEqual(stats.verdict(0.05, 0.06, self.M, stats.log_floor(0.3, 2000.0)), stats.REGRESSION)

    def test_too_wide_is_inconclusive(self):
        # A small effect must be known to 0.3 %, a large one to a tenth of itself.
        for lo, hi in ((-0.004, 0.004), (-0.027, -0.020), (0.02, 0.0272), (-0.30, -0.20), (0.2, 0.25)):
            self.assertEqual(stats.verdict(lo, hi, 0.005, 0.0, 0.003), stats.INCONCLUSIVE, (lo, hi))
        for lo, hi in ((-0.026, -0.0201), (-0.056, -0.0501), (-0.26, -0.235)):
            self.assertEqual(stats.verdict(lo, hi, 0.005, 0.0, 0.003), stats.IMPROVEMENT, (lo, hi))
        self.assertEqual(stats.verdict(0.235, 0.26, 0.005, 0.0, 0.003), stats.REGRESSION)


class Simulated(unittest.TestCase):
    def test_coverage(self):
        """The interval holds the true median in at least its nominal share, and no more than the exact one promises."""
        runs = 2000
        for noise in NOISES:
            for n in (6, 10, 15, 30, 60):
                rng = random.Random(f"{SEED} {noise.__name__} {n}")
                held = 0
                for _ in range(runs):
                    lo, hi = stats.sign_interval([pair_noise(noise, rng) for _ in range(n)])
                    held += lo <= 0 <= hi
                exact = stats.sign_coverage(n, stats.sign_rank(n))
                # Four standard errors around the exact coverage.
                self.assertAlmostEqual(held / runs, exact, delta=4 * math.sqrt(exact * (1 - exact) / runs),
                                       msg=f"{noise.__name__} n={n}")

    def _duet(self, noise, shift, rng, margin=0.03, target=0.01):
        """A whole duet on invented samples, with the stopping rule at work."""
        def sampler(side, cell, pad):
            value = 1000 * math.exp(noise(rng) + (shift if side.label == "b" else 0))
            return {"busy": {"p33": value}}

        cell = duet.Cell("simulated", duet.Side(None, "case", "a"), duet.Side(None, "case", "b"), 1, margin=margin,
                         target=target)
        duet.Duet([cell], rng, sampler=sampler).run()
        return cell

    def test_false_alarms(self):
        """Equal sides: no gate falls, and the interval after stopping still misses 0 rarely."""
        runs = 300
        for noise in NOISES:
            rng = random.Random(f"{SEED} false {noise.__name__}")
            verdicts = [self._duet(noise, 0.0, rng).verdict() for _ in range(runs)]
            alarms = sum(word in (stats.REGRESSION, stats.IMPROVEMENT) for word in verdicts)
            shifted = verdicts.count(stats.SHIFTED)
            self.assertLessEqual(alarms, 0.01 * runs, noise.__name__)
            # Nominal 5 % for each look; the rule looks at width only, so the rate stays near it.
            self.assertLessEqual(shifted + alarms, 0.09 * runs, noise.__name__)

    def test_power(self):
        """+5 % is found, +10 % always, in noise of the size that uncontended cases have."""
        runs = 200
        for noise in (gauss, skewed, heavy):
            rng = random.Random(f"{SEED} power {noise.__name__}")
            found = sum(self._duet(noise, math.log(1.05), rng).verdict() == stats.REGRESSION for _ in range(runs))
            self.assertGreaterEqual(found, 0.95 * runs, noise.__name__)
            found = sum(self._duet(noise, math.log(1.10), rng).verdict() == stats.REGRESSION for _ in range(runs))
            self.assertEqual(found, runs, noise.__name__)

    def test_equal_sides_are_equivalent_in_the_end(self):
        rng = random.Random(SEED)
        cells = [self._duet(gauss, 0.0, rng) for _ in range(100)]
        self.assertGreaterEqual(sum(cell.verdict() in (stats.EQUIVALENT, stats.SHIFTED) for cell in cells), 99)
        self.assertTrue(all(len(cell.pairs) % 5 == 0 and 10 <= len(cell.pairs) <= 60 for cell in cells))

    def test_drift_is_cancelled(self):
        """The machine slows by 40 % during the run: pairs in random order see nothing of it."""
        rng = random.Random(SEED)
        taken = [0]

        def sampler(side, cell, pad):
            taken[0] += 1
            return {"busy": {"p33": 1000 * math.exp(rng.gauss(0, 0.003) + 0.003 * taken[0])}}

        cell = duet.Cell("drift", duet.Side(None, "c", "a"), duet.Side(None, "c", "b"), 1, target=1e-9, max_pairs=60)
        duet.Duet([cell], rng, sampler=sampler).run()
        self.assertEqual(len(cell.pairs), 60)
        self.assertLess(abs(stats.median(cell.log_ratios())), 0.004)
        self.assertNotIn(cell.verdict(), (stats.REGRESSION, stats.IMPROVEMENT))


if __name__ == "__main__":
    unittest.main()
