# SPDX-License-Identifier: MIT
"""`skbench aa --contended` on invented times: what counts as another number, and what is said of it."""

import argparse
import contextlib
import io
import json
import math
import os
import random
import time
import unittest
from unittest import mock

import support
from skbench_lib import aa, aacontend, benchbin, table
from skbench_lib.errors import UserError

TWO, ONE, MANY = ("contend/get_page/pages:same/threads:2/alloc:slub", "contend/get_page/pages:same/threads:1/alloc:slub",
                  "contend/list/list:llist/flushers:2/threads:2/alloc:slub")
IDLE, ALONE = 80.0, 6.0


class Case(unittest.TestCase):
    def setUp(self):
        self.fake = support.FakeBench()
        self.addCleanup(self.fake.temporary.cleanup)
        (self.fake.bin / "bench_contend").symlink_to(support.FAKE)
        self.loaded = False
        self.under_load = lambda value: value
        self.gain = 1.0

    @contextlib.contextmanager
    def busy(self, cpu):
        self.assertEqual(cpu, aa.fingerprint.allowed_cpus()[-1])
        yield self

    def load(self, child):
        """Stands for the class Load: the samples are to know."""
        return mock.Mock(on=lambda: setattr(self, "loaded", True), off=lambda: setattr(self, "loaded", False))

    def sample(self, binary, case, n, pad, batches=None, cpus=None, inject=0, oversubscribe=False):
        if case == MANY:
            raise benchbin.NotPossible("needs 4 CPUs and has 2")
        rng = random.Random(f"{case} {pad} {inject}")
        value = (ALONE if case == ONE else IDLE) * math.exp(rng.gauss(0, 0.01)) * (1 + self.gain * inject / 100)
        if self.loaded:
            value = self.under_load(value)
        if value is None:
            raise benchbin.Unmeasured("the roles ran together in 3 of 100 batches")
        return {"busy": {"p33": value}, "roles": [{}] * (1 if case == ONE else 2)}

    def run_it(self, *args):
        """(status, table, report)."""
        target = self.fake.path / "report.json"
        parser = argparse.ArgumentParser()
        aa.add_parser(parser.add_subparsers())
        ops = [{"name": "contend/get_page", "cases": [ONE, TWO]}, {"name": "contend/list", "cases": [MANY]}]
        with mock.patch.dict(os.environ, self.fake.environment()), \
                mock.patch.object(benchbin.BenchBinary, "sample", lambda *a, **k: self.sample(*a, **k)), \
                mock.patch.object(benchbin.BenchBinary, "operations", lambda binary: ops), \
                mock.patch.object(benchbin.BenchBinary, "calibrate", lambda *a: 100), \
                mock.patch.object(aa, "busy_cpu", self.busy), mock.patch.object(aacontend, "Load", self.load), \
                contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()) as out:
            status = aa.main(parser.parse_args(["aa", "--contended", "--seed", "3", "--json", str(target), *args]))
        for line in out.getvalue().splitlines():
            self.assertLessEqual(table.width(line), 80, line)
        return status, out.getvalue(), json.loads(target.read_text())

    def test_all_is_well(self):
        status, out, report = self.run_it()
        self.assertEqual((status, report["problems"]), (0, []), out)
        (case,) = report["cases"]
        self.assertEqual((case["case"], case["inside"], case["found"]), (TWO, True, True))
        self.assertEqual((case["idle"]["measured"], case["loaded"]["measured"]), (20, 20))
        self.assertEqual(set(report["refused"]), {MANY})
        self.assertAlmostEqual(case["alone"], ALONE, delta=0.1)

    def test_unmeasured_is_no_other_number(self):
        self.under_load = lambda value: None
        status, out, report = self.run_it()
        self.assertEqual((report["cases"][0]["inside"], report["totals"]["unmeasured"]), (None, 1))
        self.assertEqual(status, 3)  # none of the loaded was measured, 30 % are asked for
        self.assertIn("beside the load, 30 % are asked for", " ".join(out.split()))

    def test_the_number_of_one_thread(self):
        self.under_load = lambda value: ALONE
        status, out, report = self.run_it()
        self.assertEqual((status, report["cases"][0]["inside"], report["cases"][0]["as_if_alone"]), (3, False, True))
        self.assertIn("OUTSIDE", out)
        self.assertIn("nearer to that of one thread", " ".join(out.split()))

    def test_another_number(self):
        self.under_load = lambda value: value * 1.5
        report = self.run_it()[2]
        self.assertEqual((report["cases"][0]["inside"], report["cases"][0]["as_if_alone"]), (False, False))

    def test_extra_work_that_does_not_show(self):
        self.gain = 0.1
        status, out, report = self.run_it()
        self.assertEqual((status, report["totals"]["found"]), (3, [0, 1]))

    def test_one_cpu(self):
        status, out, report = self.run_it("--filter", "list")
        self.assertEqual((status, report["cases"]), (4, []))
        self.assertIn("needs 4 CPUs", out)

    def test_misuse(self):
        for more in (["--duets", "3"], ["--campaign"], ["--state", "x"], ["--filter", "nothing"]):
            with self.subTest(more), self.assertRaises(UserError):
                self.run_it(*more)
        self.assertFalse((self.fake.path / "report.json").exists())


class Busy(unittest.TestCase):
    def test_on_and_off(self):
        """CPU time of the process that keeps a CPU busy: none while it is off."""
        def used(pid):
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))

        with aa.busy_cpu(aa.fingerprint.allowed_cpus()[-1]) as child:
            load = aacontend.Load(child)
            before = used(child.pid)
            time.sleep(0.2)
            self.assertLessEqual(used(child.pid) - before, 1)  # the tick in which it was stopped
            load.on()
            end = time.monotonic() + 30
            while used(child.pid) <= before + 1 and time.monotonic() < end:
                time.sleep(0.02)
            self.assertGreater(used(child.pid), before + 1)
            load.off()


class Numbers(unittest.TestCase):
    def test_quantile(self):
        self.assertEqual(aacontend.quantile([4, 1, 3, 2, 5], 0.5), 3)
        self.assertAlmostEqual(aacontend.quantile([0, 10], 0.9), 9)

    def test_the_case_with_one_thread(self):
        self.assertEqual(aacontend.alone_name(TWO), ONE)
        self.assertIsNone(aacontend.alone_name(ONE))
        self.assertIsNone(aacontend.alone_name("contend/unclone/completers:1"))


if __name__ == "__main__":
    unittest.main()
