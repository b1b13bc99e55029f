#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Throughput against threads and the law through it, on invented points whose truth is known."""

import json
import math
import random
import unittest

from support import ROOT
from skbench_lib import duet, results, scaling, scaling_table, stats
from skbench_lib.table import width

SEED = 20240607
TRUTH = (8e7, 0.12, 0.004)


def answer(threads, ops_per_s, ops=None, roles=None, status="ok"):
    ops = threads if ops is None else ops
    return {"ops": ops, "wall": {"p33": ops / ops_per_s * 1e9}, "roles": [{"name": "cpu"}] * (roles or threads),
            "status": status, "reason": "took turns" if status != "ok" else None}


def cell(threads, values, **how):
    made = duet.SurveyCell(duet.Side(None, f"contend/x/of:y/threads:{threads}/alloc:slub", "single"), 15)
    made.samples = [(answer(threads, value, **how), 0) for value in values]
    return made


def spread(truth, threads, rng, sigma=0.01, count=15):
    return [scaling.law(truth, threads) * math.exp(rng.gauss(0, sigma)) for _ in range(count)]


def refused(threads):
    made = cell(threads, [])
    made.refuse(f"needs {threads} CPUs and has 2")
    return made


def oversubscribed(threads, values):
    made = cell(threads, values, status="oversubscribed")
    made.oversubscribed, made.status, made.reason = True, duet.UNMEASURED, "oversubscribed: took turns"
    return made


class Law(unittest.TestCase):
    def test_exact_points_give_the_truth(self):
        for truth in (TRUTH, (1.0, 0.0, 0.0), (3e6, 0.5, 0.0), (2e9, 0.0, 0.01), (5e5, 0.9, 0.3)):
            with self.subTest(truth):
                found = scaling.usl([(n, scaling.law(truth, n)) for n in (1, 2, 3, 4, 6, 8, 16)])
                self.assertAlmostEqual(found[0] / truth[0], 1, 6)
                self.assertAlmostEqual(found[1], truth[1], 6)
                self.assertAlmostEqual(found[2], truth[2], 6)

    def test_by_hand(self):
        """One thread 100 a second; sigma 0.5 and no kappa: two do 200/1.5, three 300/2."""
        found = scaling.usl([(1, 100.0), (2, 200 / 1.5), (3, 150.0), (5, 500 / 3)])
        self.assertAlmostEqual(found[0], 100, 6)
        self.assertAlmostEqual(found[1], 0.5, 6)
        self.assertAlmostEqual(found[2], 0, 6)

    def test_nothing_below_zero(self):
        """More than linear: what the law cannot say is said with zeros, not with negative shares."""
        found = scaling.usl([(n, n ** 1.2) for n in (1, 2, 4, 8)])
        self.assertEqual(found[1:], (0.0, 0.0))
        self.assertGreater(found[0], 0)

    def test_undetermined(self):
        for pairs in ([], [(1, 5.0)], [(1, 5.0), (2, 6.0)], [(1, 5.0), (1, 5.1), (2, 6.0), (2, 7.0)],
                      [(1, 5.0), (2, 0.0), (3, 4.0), (4, 4.0)], [(1, 5.0), (2, float("nan")), (3, 4.0)]):
            with self.subTest(pairs):
                self.assertIsNone(scaling.usl(pairs))

    def test_peak(self):
        self.assertIsNone(scaling.peak((1, 0.2, 0)))
        self.assertAlmostEqual(scaling.peak((1, 0.19, 0.01)), 9)
        self.assertEqual(scaling.peak((1, 0.9, 0.5)), 1.0)
        self.assertEqual(scaling.peak((1, 1.5, 0.5)), 1.0)
        # The law is highest there.
        best = max(range(1, 200), key=lambda n: scaling.law(TRUTH, n))
        self.assertLessEqual(abs(best - scaling.peak(TRUTH)), 1)

    def test_solve_without_an_answer(self):
        self.assertIsNone(scaling.solve([[1, 2], [2, 4]], [1, 2]))
        self.assertEqual(scaling.solve([[0, 2], [3, 0]], [4, 6]), [2, 2])


class Points(unittest.TestCase):
    def test_throughput_and_cost(self):
        one = answer(4, 2e6, ops=3, roles=5)
        self.assertAlmostEqual(scaling.throughput(one), 2e6)
        self.assertAlmostEqual(scaling.cost(one), 5 / 2e6 * 1e9)

    def test_order_reasons_and_groups(self):
        other = duet.SurveyCell(duet.Side(None, "skb/copy/alloc:slub", "single"), 15)
        found = scaling.points([cell(4, [9.0]), refused(8), cell(1, [3.0, 4.0]), other])
        self.assertEqual(list(found), ["contend/x/of:y/alloc:slub"])
        points = found["contend/x/of:y/alloc:slub"]
        self.assertEqual([(p.threads, p.cpus, p.real()) for p in points], [(1, 1, True), (4, 4, True), (8, None, False)])
        self.assertEqual(points[2].reason, "not possible here: needs 8 CPUs and has 2")
        never = scaling.points([cell(2, [])])
        self.assertEqual(never["contend/x/of:y/alloc:slub"][0].reason, "the run ended before it")

    def test_a_cell_that_was_given_up_has_no_point(self):
        lost = cell(2, [5.0])
        lost.status, lost.reason = duet.UNMEASURED, "5 of 6 processes unmeasured"
        point = scaling.points([lost])["contend/x/of:y/alloc:slub"][0]
        self.assertEqual((point.samples, point.reason), ([], "5 of 6 processes unmeasured"))


class Fit(unittest.TestCase):
    def cells(self, threads, rng):
        return [cell(n, spread(TRUTH, n, rng)) for n in threads]

    def test_intervals_hold_the_truth(self):
        """Of 30 sweeps with 1 % of noise, the middle 95 % hold each parameter in nearly all."""
        held = [0, 0, 0]
        for seed in range(SEED, SEED + 30):
            rng = random.Random(seed)
            fitted = scaling.entries(self.cells((1, 2, 3, 4, 6, 8), rng), seed)[0]["fit"]
            for i, name in enumerate(("lambda_ops_per_s", "sigma", "kappa")):
                held[i] += fitted[name]["lo"] <= TRUTH[i] <= fitted[name]["hi"]
            self.assertLess(fitted["worst_error"], 0.03)
        for count in held:
            self.assertGreaterEqual(count, 23, f"seed {SEED}")

    def test_same_seed_same_figures(self):
        one = scaling.entries(self.cells((1, 2, 4, 8), random.Random(SEED)), 7)
        self.assertEqual(one, scaling.entries(self.cells((1, 2, 4, 8), random.Random(SEED)), 7))

    def test_too_few_points(self):
        rng = random.Random(SEED)
        entry = scaling.entries([*self.cells((1, 2, 3), rng), refused(4)], 1)[0]
        self.assertIsNone(entry["fit"])
        self.assertEqual(entry["fit_reason"], "3 points with each role on a CPU of its own, at least 4 are needed")

    def test_oversubscribed_points_never_enter(self):
        rng = random.Random(SEED)
        real = self.cells((1, 2, 3, 4), rng)
        taken = [oversubscribed(n, [1.0, 1e15]) for n in (5, 6, 7)]
        without, with_them = scaling.entries(real, 1)[0], scaling.entries(real + taken, 1)[0]
        self.assertEqual(without["fit"], with_them["fit"])
        self.assertEqual([point["oversubscribed"] for point in with_them["points"]], [False] * 4 + [True] * 3)
        self.assertTrue(all(point["efficiency"] is None and point["ops_per_s"] for point in with_them["points"][4:]))
        entry = scaling.entries(self.cells((1, 2, 3), random.Random(SEED)) + taken, 1)[0]
        self.assertIsNone(entry["fit"])

    def test_efficiency(self):
        entry = scaling.entries([cell(2, [100.0]), cell(4, [100.0]), cell(8, [800.0])], 1)[0]
        self.assertEqual([point["efficiency"] for point in entry["points"]], [1.0, 0.5, 2.0])
        self.assertEqual(entry["efficiency_of"], 2)
        self.assertEqual(stats.median([entry["points"][0]["ops_per_s"]["median"]]), 100.0)


class Shown(unittest.TestCase):
    def entries(self):
        rng = random.Random(SEED)
        full = [cell(n, spread(TRUTH, n, rng)) for n in (1, 2, 3, 4)]
        return scaling.entries([*full, oversubscribed(5, [1e6]), refused(64)], 1) + scaling.entries([refused(2)], 1)

    def test_table(self):
        lines = scaling_table.lines(self.entries())
        text = "\n".join(lines)
        self.assertTrue(all(width(line) <= 80 for line in lines), text)
        self.assertIn("oversubscribed", text)
        self.assertIn("not possible here: needs 64 CPUs and has 2", " ".join(text.split()))
        self.assertRegex(" ".join(text.split()), r"law sigma 0\.1\d+ \[0\.\d+, 0\.\d+\] kappa 0[.\d]* \[[.\d]+, [.\d]+\] 4 points, ")
        self.assertRegex(text, "law none: 0 points")
        self.assertEqual(scaling_table.lines([]), [])

    def test_the_schema_takes_it(self):
        with open(ROOT / "results" / "schema.json", encoding="utf-8") as source:
            schema = json.load(source)
        part = schema["$defs"]["skbench"]["properties"]["scaling"]
        self.assertEqual(list(results.violations(self.entries(), part, schema)), [])
        wrong = self.entries()
        wrong[0]["points"][0]["threads"] = 0
        self.assertTrue(list(results.violations(wrong, part, schema)))


if __name__ == "__main__":
    unittest.main()
