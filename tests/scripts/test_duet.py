# SPDX-License-Identifier: MIT
"""Duets: the stopping rule and the losses on invented samples, and the fake binary as real processes."""

import math
import os
import random
import signal
import time
import unittest
from unittest import mock

import support
from skbench_lib import benchbin, duet, stats


class Scripted:
    """A sampler: time of a side in ns, or an exception, by label and number of the process."""

    def __init__(self, time_of):
        self.time_of, self.log = time_of, []

    def __call__(self, side, cell, pad):
        self.log.append((cell.key, side.label, pad, cell.n))
        value = self.time_of(side.label, len(self.log) - 1)
        if isinstance(value, BaseException):
            raise value
        return {"busy": {"p33": value}}


def cell(key="c", **how):
    return duet.Cell(key, duet.Side(None, "case", "a"), duet.Side(None, "case", "b"), 100, **how)


def run(cells, time_of, seed=1, **how):
    sampler = Scripted(time_of)
    engine = duet.Duet(cells, random.Random(seed), sampler=sampler, **how)
    engine.run()
    return engine, sampler


class Clock:
    """Seconds that pass only when a sample is taken."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        return self.now

    def tick(self, label, number):
        self.now += self.step
        return 1000.0


class Rules(unittest.TestCase):
    def test_narrow_at_once(self):
        c = cell()
        run([c], lambda label, number: 1000.0 if label == "a" else 1020.0)
        self.assertEqual((len(c.pairs), c.stopped, c.verdict()), (10, "width", stats.SHIFTED))
        self.assertAlmostEqual(c.log_ratios()[0], math.log(1.02))
        self.assertEqual(c.side("a"), {"median": 1000.0, "lo": 1000.0, "hi": 1000.0, "n": 10})
        self.assertEqual(c.difference(2.0)["median"], 40.0)

    def test_never_narrow(self):
        rng = random.Random(3)
        c = cell(max_pairs=37)
        run([c], lambda label, number: 1000 * math.exp(rng.gauss(0, 0.3)))
        self.assertEqual((len(c.pairs), c.stopped), (37, "pairs"))
        self.assertEqual(c.verdict(), stats.INCONCLUSIVE)

    def test_looks_only_every_five_pairs_and_only_at_width(self):
        """The same noise with and without a shift takes the same number of pairs."""
        for sigma in (0.003, 0.01, 0.02, 0.03):
            counts = []
            for shift in (1.0, 1.5):
                rng = random.Random(7)
                c = cell()
                run([c], lambda label, number: 1000 * math.exp(rng.gauss(0, sigma)) * (shift if label == "b" else 1))
                counts.append(len(c.pairs))
                self.assertEqual(len(c.pairs) % 5, 0)
            self.assertEqual(counts[0], counts[1], sigma)

    def test_strict_width(self):
        """Beyond the margin, but too wide: inconclusive where width is asked for, clear where it is not."""
        for strict, word in ((True, stats.INCONCLUSIVE), (False, stats.IMPROVEMENT)):
            rng = random.Random(5)
            c = cell(margin=0.005, target=0.003, strict=strict, max_pairs=15)
            run([c], lambda label, number: 1000 * math.exp(rng.gauss(0, 0.02)) * (0.95 if label == "b" else 1))
            self.assertEqual(c.verdict(), word)

    def test_below_six_pairs_nothing_is_said(self):
        c = cell(max_pairs=5)
        run([c], lambda label, number: 1000.0)
        self.assertIsNone(c.interval())
        self.assertEqual(c.verdict(), stats.INCONCLUSIVE)
        self.assertIsNone(c.side("a")["lo"])

    def test_turns(self):
        """Cells alternate pair by pair, and one that is done leaves its time to the others."""
        rng = random.Random(2)
        quiet, loud = cell("quiet"), cell("loud", max_pairs=30)
        _, sampler = run([quiet, loud], lambda label, number: 1000 * math.exp(rng.gauss(0, 1e-5)))
        keys = [key for key, _, _, _ in sampler.log]
        self.assertEqual(keys, (["quiet"] * 2 + ["loud"] * 2) * 10)
        both, sampler = run([cell("one", max_pairs=12, target=1e-9), cell("two", max_pairs=20, target=1e-9)],
                            lambda label, number: 1000 * math.exp(rng.gauss(0, 0.1)))
        keys = [key for key, _, _, _ in sampler.log]
        self.assertEqual(keys, (["one"] * 2 + ["two"] * 2) * 12 + ["two"] * 16)

    def test_budget_is_shared(self):
        clock = Clock(0.5)
        rng = random.Random(1)
        cells = [cell(str(i), target=1e-9) for i in range(4)]
        engine, _ = run(cells, lambda label, number: clock.tick(label, number) * math.exp(rng.gauss(0, 0.1)),
                        budget_s=20, clock=clock)
        self.assertEqual([len(c.pairs) for c in cells], [5, 5, 5, 5])
        self.assertEqual({c.stopped for c in cells}, {"budget"})
        self.assertEqual(engine.elapsed_s, 20)

    def test_coin_and_padding(self):
        """Order and padding come from the seed: repeatable, fair, spread over the page."""
        logs = []
        for seed in (1, 1, 2):
            c = cell(target=1e-12, max_pairs=400)
            rng = random.Random(9)
            _, sampler = run([c], lambda label, number: 1000 * math.exp(rng.gauss(0, 0.1)), seed=seed)
            logs.append(sampler.log)
        self.assertEqual(logs[0], logs[1])
        self.assertNotEqual(logs[0], logs[2])
        firsts = [label for _, label, _, _ in logs[0][::2]]
        self.assertTrue(160 < firsts.count("a") < 240, firsts.count("a"))
        for pair in zip(logs[0][::2], logs[0][1::2]):
            self.assertEqual({pair[0][1], pair[1][1]}, {"a", "b"})
        pads = [pad for _, _, pad, _ in logs[0]]
        self.assertTrue(min(pads) < 100 and max(pads) > 3995 and max(pads) <= 4095 and min(pads) >= 0)
        self.assertEqual({n for _, _, _, n in logs[0]}, {100})

    def test_some_losses_are_retried(self):
        c = cell()
        run([c], lambda label, number: benchmark_lost() if number % 5 == 0 else 1000.0)
        self.assertEqual((c.status, len(c.pairs)), (duet.OK, 10))
        self.assertEqual(c.lost_processes, c.processes - 20)
        self.assertGreater(c.lost_processes, 2)
        self.assertIsNone(c.reason)

    def test_many_losses_end_the_cell(self):
        c, other = cell("lossy"), cell("fine")
        run([c, other], lambda label, number: 1000.0)
        c = cell("lossy")
        engine, sampler = run([c], lambda label, number: benchmark_lost() if number % 3 else 1000.0)
        self.assertEqual((c.status, c.stopped, c.verdict()), (duet.UNMEASURED, "unmeasured", stats.INCONCLUSIVE))
        self.assertRegex(c.reason, r"^\d+ of \d+ processes unmeasured, the last: 12 of 100 batches kept$")
        self.assertLessEqual(c.processes, 40)
        c = cell("none")
        run([c], lambda label, number: benchmark_lost())
        self.assertEqual((c.status, len(c.pairs), c.processes), (duet.UNMEASURED, 0, 15))

    def test_impossible(self):
        c, other = cell("no"), cell("yes")
        sampler = Scripted(lambda label, number: 1000.0)

        def sample(side, of, pad):
            if of is c:
                raise benchbin.NotPossible("two CPUs are needed")
            return sampler(side, of, pad)

        engine = duet.Duet([c, other], random.Random(1), sampler=sample)
        engine.run()
        self.assertEqual((c.status, c.impossible, c.processes), (duet.UNMEASURED, True, 1))
        self.assertEqual(c.reason, "not possible here: two CPUs are needed")
        self.assertEqual((other.status, len(other.pairs)), (duet.OK, 10))

    def test_interrupt_keeps_pairs(self):
        c = cell(target=1e-12)
        engine, _ = run([c], lambda label, number: KeyboardInterrupt() if number == 13 else 1000.0 + number)
        self.assertTrue(engine.interrupted)
        self.assertEqual((len(c.pairs), c.stopped), (6, "interrupted"))

    def test_failure_keeps_pairs(self):
        c = cell(target=1e-12)
        engine, _ = run([c], lambda label, number: benchbin.BenchFailed("boom") if number == 13 else 1000.0 + number)
        self.assertEqual((str(engine.failure), engine.failure.status), ("boom", 5))
        self.assertEqual((len(c.pairs), c.stopped), (6, "failure"))

    def test_control(self):
        def judged(sigma, shift, pairs=60, margin=0.005):
            rng = random.Random(4)
            c = cell(margin=margin, target=1e-9, max_pairs=pairs)
            run([c], lambda label, number: 1000 * math.exp(rng.gauss(0, sigma)) * (1 + shift if label == "b" else 1))
            return duet.judge_control(c)

        self.assertEqual(judged(0.002, 0.0), (True, None))
        self.assertEqual(judged(0.002, 0.002), (True, None))  # excludes 0, but not beyond the margin
        self.assertRegex(judged(0.002, 0.02)[1], "differ by more than the margin")
        self.assertRegex(judged(0.1, 0.0)[1], "cannot be told apart")
        self.assertRegex(judged(0.002, 0.0, pairs=5)[1], "5 pairs, at least 6 needed")
        lost = cell()
        run([lost], lambda label, number: benchmark_lost())
        self.assertRegex(duet.judge_control(lost)[1], "^unmeasured: 15 of 15")

    def test_survey_measures_beside_what_is_no_case(self):
        cells = [duet.SurveyCell(duet.Side(None, f"s/c{i}", "single"), 7) for i in range(2)]

        def calibrate(c):
            if c.key == "s/c0":
                raise benchbin.Refused("bench: s/c0: no frag is left for the head: ask for one less")
            return 10

        engine = duet.Survey(cells, random.Random(1), calibrate, sampler=Scripted(lambda label, number: 1000.0))
        engine.run()
        self.assertIsNone(engine.failure)
        self.assertEqual([(len(c.samples), c.stopped, c.status) for c in cells],
                         [(0, "not possible", duet.UNMEASURED), (7, "samples", duet.OK)])
        self.assertEqual(cells[0].reason, "no such case: no frag is left for the head: ask for one less")

    def test_survey(self):
        cells = [duet.SurveyCell(duet.Side(None, f"s/c{i}", "single"), 7) for i in range(3)]
        sampler = Scripted(lambda label, number: 1000.0)
        asked = []

        def calibrate(c):
            asked.append(c.key)
            if c.key == "s/c1":
                raise benchbin.NotPossible("no")
            return 10

        engine = duet.Survey(cells, random.Random(1), calibrate, sampler=sampler)
        engine.run()
        self.assertEqual(sorted(asked), ["s/c0", "s/c1", "s/c2"])
        self.assertEqual([len(c.samples) for c in cells], [7, 0, 7])
        self.assertEqual([c.stopped for c in cells], ["samples", "not possible", "samples"])


def benchmark_lost():
    return benchbin.Unmeasured("12 of 100 batches kept")


CASE = "tcp/trim/variant:eager/frags:16"


class Processes(unittest.TestCase):
    def fake(self, **plan):
        fake = support.FakeBench(**plan)
        self.addCleanup(fake.temporary.cleanup)
        patch = mock.patch.dict(os.environ, fake.environment())
        patch.start()
        self.addCleanup(patch.stop)
        self.binary = benchbin.BenchBinary(fake.bin / "bench_tcp", time_limit_s=1.0)
        return fake

    def sample(self, **how):
        return self.binary.sample(CASE, 200, 17, **how)

    def test_sample(self):
        self.fake(sigma=0)
        with mock.patch.dict(os.environ, {"MALLOC_CONF": "x", "GLIBC_TUNABLES": "y", "LC_ALL": "de_DE.UTF-8"}):
            answer = self.sample()
            env = benchbin.environment(17)
        self.assertEqual((answer["env_pad"], answer["n"]), (17, 200))
        self.assertEqual(env["LC_ALL"], "C")
        self.assertFalse({"MALLOC_CONF", "GLIBC_TUNABLES"} & set(env))
        self.assertEqual(benchbin.value_of(answer), 1000.0)
        self.assertAlmostEqual(benchbin.per_64kb(answer, 1000.0), 1000 * 65536 / 65160)
        self.assertAlmostEqual(benchbin.value_of(self.sample(inject=5)), 1050.0)
        self.assertEqual(self.sample(batches=40)["batches"], 40)

    def failed(self, pattern, **plan):
        self.fake(**plan)
        with self.assertRaises(benchbin.BenchFailed) as caught:
            self.sample()
        text = str(caught.exception)
        self.assertEqual(caught.exception.status, 5)
        self.assertRegex(text, pattern)
        self.assertTrue(text.startswith(CASE), text)
        self.assertNotIn("\n", text)
        return text

    def test_crash_names_case_and_command(self):
        text = self.failed("killed by SIGABRT", fail={"crash": "all"})
        self.assertRegex(text, r"command: \S*bench_tcp --skb_sample=tcp/trim/variant:eager/frags:16 --skb_n=200$")

    def test_hang_is_killed(self):
        begin = time.monotonic()
        self.failed("did not end within 1 s; command: ", fail={"hang": "all"})
        self.assertLess(time.monotonic() - begin, 10)

    def test_nonsense(self):
        self.failed("not one JSON object", fail={"garbage": "all"})
        self.failed("NaN is not a number", fail={"nan": "all"})
        self.failed("no time at all", fail={"zero": "all"})
        self.failed("'name' is \"tcp/other/case\"", fail={"other_name": "all"})

    def test_failed_check(self):
        self.failed("status 5: check: 15 page references where 16 were expected; command", fail={"check": "all"})

    def test_unmeasured(self):
        self.fake(fail={"unmeasured": "all"})
        with self.assertRaisesRegex(benchbin.Unmeasured, "^12 of 100 batches kept$"):
            self.sample()

    def test_impossible(self):
        self.fake(fail={"impossible": "all"})
        with self.assertRaisesRegex(benchbin.NotPossible, "^two CPUs are needed, one is there$"):
            self.sample()

    def test_no_binary(self):
        with self.assertRaisesRegex(Exception, "cannot run /nowhere/bench: No such file"):
            benchbin.BenchBinary("/nowhere/bench").context()

    def test_duet(self):
        fake = self.fake(factor=0.9, sigma=0.002, seed=8, fail={"unmeasured": [3, 11]})
        c = duet.Cell("c", duet.Side(self.binary, CASE, "eager"),
                      duet.Side(self.binary, CASE.replace("eager", "offset_ack"), "offset_ack"), 200)
        duet.Duet([c], random.Random(1)).run()
        self.assertEqual((c.verdict(), c.lost_processes, fake.count()), (stats.IMPROVEMENT, 2, 22))
        for pair in c.pairs:
            self.assertEqual((pair.a["env_pad"], pair.b["env_pad"]), (pair.pad_a, pair.pad_b))

    def test_interrupt_kills_the_process(self):
        self.fake(fail={"hang": "all"})
        self.binary.time_limit_s = 30
        before = signal.signal(signal.SIGALRM, lambda number, frame: (_ for _ in ()).throw(KeyboardInterrupt()))
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        begin = time.monotonic()
        c = duet.Cell("c", duet.Side(self.binary, CASE, "a"), duet.Side(self.binary, CASE, "b"), 200)
        engine = duet.Duet([c], random.Random(1))
        try:
            engine.run()
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assertTrue(engine.interrupted)
        self.assertLess(time.monotonic() - begin, 10)
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


class Names(unittest.TestCase):
    def test_split(self):
        self.assertEqual(benchbin.split_name("tcp/trim/form:forced/frags:16"),
                         ("tcp/trim", {"form": "forced", "frags": "16"}))

    def test_same_case(self):
        self.assertTrue(benchbin.same_case("a/b/x:1", "a/b/x:1/y:2"))
        self.assertTrue(benchbin.same_case("a/b/x:1/y:2", "a/b/y:2/x:1"))
        self.assertFalse(benchbin.same_case("a/b/x:1", "a/b/x:2"))


if __name__ == "__main__":
    unittest.main()
