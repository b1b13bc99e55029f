# SPDX-License-Identifier: MIT
"""The campaign of `skbench aa` on invented times: its columns, going on after an end, the smallest change, the peers."""

import argparse
import contextlib
import io
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import time
import unittest
from unittest import mock

import support
from skbench_lib import aa, benchbin, duet, peers, ranks, run, stats, table
from skbench_lib.errors import UserError

SEED = 2106

try:
    from scipy import stats as scipy_stats
except ImportError:
    scipy_stats = None


class Case(unittest.TestCase):
    def setUp(self):
        self.fake = support.FakeBench()
        self.addCleanup(self.fake.temporary.cleanup)
        for name in ("bench_skb", "bench_skb_traced"):
            (self.fake.bin / name).symlink_to(support.FAKE)
        self.state = self.fake.path / "state.jsonl"
        self.number = 0

    def campaign(self, *args, sigma=0.004, stop_after=None, keep=True):
        """`skbench aa --campaign` in this process, a Ctrl-C after STOP_AFTER samples: (status, table, report)."""
        taken = [0]

        def sample(binary, case, n, pad, batches=None, cpus=None, inject=0, oversubscribe=False):
            taken[0] += 1
            if stop_after is not None and taken[0] > stop_after:
                raise KeyboardInterrupt
            # The padding comes from the duet's own generator: the same duet has the same values, run when it may.
            rng = random.Random(f"{case} {pad} {inject}")
            roles = [{}] * (2 if "complete:other" in case else 1)
            return {"roles": roles, "busy": {"p33": 1000 * math.exp(rng.gauss(0, sigma)) * (1 + inject / 100)}}

        self.number += 1
        target = self.fake.path / f"{self.number}.json"
        parser = argparse.ArgumentParser()
        aa.add_parser(parser.add_subparsers())
        chosen = ["aa", "--campaign", "--seed", "2", "--json", str(target)]
        with mock.patch.dict(os.environ, self.fake.environment()), \
                mock.patch.object(benchbin.BenchBinary, "sample", sample), \
                mock.patch.object(aa, "busy_cpu", self.busy), \
                contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()) as out:
            status = aa.main(parser.parse_args([*chosen, *(["--state", str(self.state)] if keep else []), *args]))
        for line in out.getvalue().splitlines():
            self.assertLessEqual(table.width(line), 80, line)
        return status, out.getvalue(), json.loads(target.read_text())

    loads = ()

    @contextlib.contextmanager
    def busy(self, cpu):
        self.loads += (cpu,)
        yield


class Campaign(Case):
    def test_two_columns_and_three_kinds(self):
        status, out, report = self.campaign("--duets", "8")
        self.assertEqual((status, [column["loaded"] for column in report["columns"]]), (0, [False, True]))
        self.assertEqual(set(report["kinds"]), {"aa", "injected", "small"})
        self.assertEqual({entry["case"] for entry in report["duets"]}, set(aa.SENTINELS))
        self.assertEqual(self.loads[:2], (None, run.fingerprint.allowed_cpus()[-1]))
        for column in report["columns"]:
            self.assertEqual([column["pooled"][kind]["duets"] for kind in report["kinds"]], [8, 8, 8])
            self.assertEqual([column["pooled"]["injected"][key] for key in ("judged", "found", "apart", "found_apart")],
                             [7, 7, 1, 1])
            self.assertGreaterEqual(column["pooled"]["small"]["found"], 6)
            # No margin and no size: what is found is found.
            self.assertEqual(column["pooled"]["injected"]["peers"]["benchstat"]["interleaved"], 8)
        for text in ("as the machine was", "found, on two CPUs", "with one CPU kept busy", "compare.py, blocks", "+2 % injected"):
            self.assertIn(text, out)

    def test_it_goes_on_where_it_ended(self):
        whole = self.campaign("--duets", "6", keep=False)[2]
        status, _, part = self.campaign("--duets", "6", stop_after=200)
        self.assertEqual((status, part["partial"]), (130, True))
        kept = len(self.state.read_text().splitlines()) - 1
        self.assertTrue(0 < kept < 12, kept)
        # What a killed process leaves behind is no duet.
        with open(self.state, "a") as out:
            out.write('{"duet": 3, "loaded": fal')
        status, out, report = self.campaign("--duets", "6")
        self.assertEqual((status, report["resumed"]), (0, kept))
        self.assertIn(f"{kept} duets taken from", " ".join(out.split()))
        self.assertEqual(report["duets"], whole["duets"])
        self.assertEqual(len(self.state.read_text().splitlines()), 13)
        # Once more, and nothing is measured.
        again = self.campaign("--duets", "6", stop_after=0)[2]
        self.assertEqual((again["resumed"], again["duets"]), (12, whole["duets"]))

    def test_extra_work_is_whole_operations(self):
        """A sampler rounds it up: 2 % of 224 operations would be 2.23 %."""
        for n, percents, expected in ((224, (0, 5, 2), 200), (8016, (0, 5, 2), 8000), (93, (0, 5, 2), 100), (256, (0, 5), 260),
                                      (40, (0, 5, 2), 40), (1, (10,), 1), (151, (0, 2.5), 160), (7, (0,), 7)):
            with self.subTest(n=n, percents=percents):
                self.assertEqual(duet.whole_extra(n, percents), expected)

    def test_a_state_of_something_else_is_refused(self):
        self.campaign("--duets", "1")
        with self.assertRaisesRegex(UserError, "begun with another kinds: name another --state"):
            self.campaign("--duets", "1", "--inject", "7")
        with self.assertRaisesRegex(UserError, "begun with another cases"):
            self.campaign("--duets", "1", "--filter", "tcp")
        good = self.state.read_text().splitlines()
        for line in ("[]", "{}", '{"duet": 1, "loaded": false, "done": 1}', "nonsense"):
            self.state.write_text(f"{good[0]}\n{line}\n")
            with self.subTest(line), self.assertRaises(UserError) as caught:
                self.campaign("--duets", "1")
            self.assertEqual(caught.exception.status, 2)

    def test_the_load_is_real_and_ends(self):
        cpu = run.fingerprint.allowed_cpus()[-1]
        before = os.times()
        with aa.busy_cpu(cpu):
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and self.children_time() < 0.05:
                time.sleep(0.05)
            self.assertGreater(self.children_time(), 0.04)
        self.assertGreater(os.times().children_user, before.children_user)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_the_load_ends_with_us(self):
        """Killed, or it would be measured beside by everybody after us; stopped, too, as --contended keeps it."""
        for stop in (False, True):
            code = ("import os, signal, time\nfrom skbench_lib import aa\n"
                    "with aa.busy_cpu(sorted(os.sched_getaffinity(0))[-1]) as child:\n"
                    f" time.sleep(1)\n if {stop}: os.kill(child.pid, signal.SIGSTOP)\n"
                    " print(child.pid, flush=True)\n time.sleep(60)")
            with self.subTest(stop=stop), \
                    subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, "PYTHONPATH": str(support.ROOT / "scripts")}) as child:
                load = int(child.stdout.readline())
                child.kill()
                deadline = time.monotonic() + 20
                while self.runs(load) and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertFalse(self.runs(load))

    @staticmethod
    def runs(pid):
        try:
            return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    @staticmethod
    def children_time():
        """CPU seconds of our children that run."""
        total = 0
        for child in (pathlib.Path("/proc/self/task") / str(os.getpid()) / "children").read_text().split():
            fields = (pathlib.Path("/proc") / child / "stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")


class Smallest(Case):
    def test_it_is_found_as_often_as_it_says(self):
        """A shift of the size that is told lifts the interval's end above the bound 95 times of 100."""
        print(f"seed {SEED}", end=" ", flush=True)
        rng, runs = random.Random(SEED), 2000
        shapes = (lambda: rng.gauss(0, 0.01), lambda: 0.005 * math.tan(math.pi * (rng.random() - 0.5)),
                  lambda: rng.choice((-1, 1)) * rng.expovariate(100))
        for draw in shapes:
            spread = [draw() for _ in range(20000)]
            for n, bound in ((10, 0.0), (20, 0.03), (60, 0.03)):
                shift = stats.smallest_found(spread, n, bound)
                self.assertGreater(shift, bound)
                found = sum(stats.sign_interval([draw() + shift for _ in range(n)])[0] > bound for _ in range(runs))
                self.assertAlmostEqual(found / runs, 0.95, delta=0.02)

    def test_too_few_to_say(self):
        self.assertIsNone(stats.smallest_found([0.01] * 100, 5))
        self.assertIsNone(stats.smallest_found([0.01], 10))

    def test_more_pairs_find_less(self):
        spread = [random.Random(SEED).gauss(0, 0.01) for _ in range(1)] + [k / 1000 for k in range(-20, 21)]
        shifts = [stats.smallest_found(spread, n) for n in (10, 20, 40, 60)]
        self.assertEqual(shifts, sorted(shifts, reverse=True))

    def test_in_the_report(self):
        _, out, report = self.campaign("--duets", "16", "--filter", "skb/")
        self.assertIn("smallest change that is found 95 times of 100:", out)
        for column in report["columns"]:
            self.assertEqual([entry["case"] for entry in column["smallest"]], report["cases"])
            for entry in column["smallest"]:
                self.assertEqual(entry["at_most"]["pairs"], duet.MAX_PAIRS)
                self.assertTrue(0 < entry["at_most"]["told"] < 0.01)
                self.assertTrue(0.03 < entry["at_most"]["regression"] < 0.045)
                self.assertLess(entry["at_most"]["regression"], entry["at_pairs"]["regression"])

    def test_the_floor_of_short_operations(self):
        duets = [{"kind": "aa", "case": "c", "pairs": 20, "values": [[1.0, 1.0 + k / 1e4] for k in range(-10, 10)]}]
        self.assertGreater(aa.smallest(duets, "c")["at_most"]["regression"], 0.3)
        self.assertIsNone(aa.smallest(duets, "other")["at_pairs"])


class Peers(unittest.TestCase):
    @unittest.skipUnless(scipy_stats, "scipy is not there: scripts/install-packages test")
    def test_the_rank_sum_test_is_scipys(self):
        rng = random.Random(SEED)
        for n, m in ((4, 4), (5, 9), (8, 30), (10, 10), (20, 20), (60, 60)):
            for digits in (9, 1):  # without ties and with many
                for _ in range(20):
                    a = [round(rng.gauss(10, 1), digits) for _ in range(n)]
                    b = [round(rng.gauss(10.5, 1), digits) for _ in range(m)]
                    expected = scipy_stats.mannwhitneyu(a, b, alternative="two-sided").pvalue
                    self.assertEqual(peers.compare_py(a, b), expected < 0.05, (a, b))
                    normal = scipy_stats.mannwhitneyu(a, b, alternative="two-sided", method="asymptotic").pvalue
                    self.assertAlmostEqual(ranks.rank_sum(a, b, 0), normal, places=9)
                    if digits == 9 and n + m <= ranks.EXACT_TOTAL:
                        exact = scipy_stats.mannwhitneyu(a, b, alternative="two-sided", method="exact").pvalue
                        self.assertAlmostEqual(ranks.rank_sum(a, b), exact, places=9)
                        self.assertEqual(peers.benchstat(a, b), exact <= 0.05)

    def test_benchstat_needs_four(self):
        self.assertFalse(peers.benchstat([1, 2, 3], [7, 8, 9, 10, 11]))
        self.assertTrue(peers.benchstat([1, 2, 3, 4], [7, 8, 9, 10]))
        self.assertFalse(peers.benchstat([1.0] * 9, [1.0] * 9))

    def test_drift_is_a_difference_to_blocks_alone(self):
        """A machine that warms up: equal sides, one after the other, are taken for different ones; pairs are not."""
        rng = random.Random(SEED)
        values = []
        for pair in range(20):
            now = 100 * math.exp(0.002 * pair)
            values.append([now * rng.lognormvariate(0, 0.001), now * rng.lognormvariate(0, 0.001)])
        found = peers.judge(values)
        for method in peers.METHODS:
            self.assertEqual(found[method], {"interleaved": False, "blocks": True})
        lo, hi = stats.sign_interval([math.log(b / a) for a, b in values])
        self.assertTrue(lo <= 0 <= hi)

    def test_nothing_to_judge(self):
        self.assertEqual(peers.judge([[1.0, 1.0]])["compare.py"], {"interleaved": False, "blocks": False})


if __name__ == "__main__":
    unittest.main()
