# SPDX-License-Identifier: MIT
"""How skbench test judges its steps: the steps themselves are played."""

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import kernelcost, oraclebudget, testcmd  # noqa: E402
from skbench_lib.children import Ended  # noqa: E402
from skbench_lib.errors import UserError  # noqa: E402
from skbench_lib.testcmd import DIFFERS, FAIL, PASSED, SKIPPED, Test  # noqa: E402


def raises(error):
    def step(run, title):
        yield Test("first", PASSED)
        raise error
    return step


def gives(*outcomes):
    return lambda run, title: [Test(f"t{n}", outcome, "a reason" if outcome != PASSED else "")
                               for n, outcome in enumerate(outcomes)]


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        patch = mock.patch.object(testcmd, "repo_root", lambda: self.root)
        patch.start()
        self.addCleanup(patch.stop)

    def run_it(self, *steps, words=()):
        """(status, lines of standard output) of a test made of STEPS."""
        parser = argparse.ArgumentParser()
        testcmd.add_parser(parser.add_subparsers())
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(testcmd, "plan", lambda args: [(f"step{n}", step) for n, step in enumerate(steps)]):
            args = parser.parse_args(["test", *words])
            status = args.func(args)
        return status, out.getvalue().splitlines()

    def test_last_line_and_status(self):
        for steps, status, last in (
                ([gives(PASSED, PASSED), gives(SKIPPED)], 0, "2 passed, 0 failed, 1 skipped"),
                ([gives(PASSED, DIFFERS)], 1, "1 passed, 1 failed, 0 skipped"),
                ([gives(PASSED, DIFFERS), gives(FAIL)], 5, "1 passed, 2 failed, 0 skipped"),
                ([raises(UserError("no tool", 4))], 0, "1 passed, 0 failed, 1 skipped"),
                ([raises(UserError("broken", 5)), gives(PASSED)], 5, "2 passed, 1 failed, 0 skipped"),
                ([raises(KeyboardInterrupt()), gives(PASSED)], 130, "1 passed, 0 failed, 0 skipped")):
            with self.subTest(last):
                got, lines = self.run_it(*steps)
                self.assertEqual((got, lines[-1]), (status, last))

    def test_failures_and_skips_say_why(self):
        _, lines = self.run_it(gives(FAIL, SKIPPED, SKIPPED), raises(UserError("valgrind is missing: install it", 4)))
        text = "\n".join(lines)
        self.assertIn("  failed   t0: a reason", text)
        self.assertIn("  skipped  2 tests: a reason", text)
        self.assertIn("  skipped  step1: valgrind is missing: install it", text)
        self.assertTrue(any(line.startswith(f"logs: {self.root}/out/test-") for line in lines))

    def test_json(self):
        status, lines = self.run_it(gives(PASSED, FAIL), words=["--json", "-"])
        report = json.loads("\n".join(lines))
        self.assertEqual([report[key] for key in ("passed", "failed", "skipped", "status", "partial")],
                         [1, 1, 0, 5, False])
        self.assertEqual(report["steps"][0]["tests"][1]["outcome"], "failed")

    def plan_of(self, *words):
        parser = argparse.ArgumentParser()
        testcmd.add_parser(parser.add_subparsers())
        return [step[0] for step in testcmd.plan(parser.parse_args(["test", *words]))]

    def test_plans(self):
        self.assertEqual(self.plan_of("--quick"), ["style", "build release", "ctest release", "python", "ledger",
                                                    "kernel"])
        sanitizers = [f"{what} {preset}" for preset in ("asan", "tsan", "tsan-gcc") for what in ("build", "ctest")]
        self.assertEqual(self.plan_of("--sanitize"), sanitizers)
        everything = self.plan_of()
        self.assertEqual(everything, self.plan_of("--nightly"))
        for title in [*self.plan_of("--quick"), *sanitizers, "ctest release-clang", "oracle", "guests", "instructions gcc",
                      "instructions clang", "aa", "ctest frags45", "ctest pages64k", "ctest arm64"]:
            self.assertIn(title, everything)


class Steps(Command):
    """Single steps on a Run whose commands are played."""

    def setUp(self):
        super().setUp()
        args = argparse.Namespace(quick=False, nightly=False, json=None)
        self.state = testcmd.Run(args)

    def step(self, function, *arguments):
        return [(test.name, test.outcome, test.text) for test in function(self.state, "title", *arguments)]

    def played(self, status, report=None, log="", timed_out=False):
        def skbench(title, arguments, seconds):
            self.state.log(title).write_text(log)
            return Ended(status, timed_out), report
        return mock.patch.object(self.state, "skbench", skbench)

    def test_counts(self):
        rows = [{"case": "a/b#x"}, {"case": "a/c#x"}]
        differences = [{"case": "a/c#x", "column": "rmw", "stored": 1, "counted": 2},
                       {"case": "a/gone#x", "column": None, "stored": "row", "counted": None}]
        with self.played(1, {"rows": rows, "differences": differences}):
            self.assertEqual(self.step(testcmd.counts, ["ledger"]), [
                ("a/b#x", PASSED, ""), ("a/c#x", DIFFERS, "rmw stored 1, counted 2"),
                ("a/gone#x", DIFFERS, "stored row, counted None")])
        small = [{"case": "a/b", "stored": 1.0, "counted": 1.1, "fails": False}]
        with self.played(1, {"rows": [{"case": "a/b"}], "differences": small, "relations": ["r", "s"],
                             "broken": ["relation s: ratio 9"]}):
            self.assertEqual(self.step(testcmd.counts, ["instructions"]), [
                ("a/b", PASSED, ""), ("relation r", PASSED, ""), ("relation s", DIFFERS, "relation s: ratio 9")])
        with self.played(4, log="skbench: not comparable: another libc\n"):
            self.assertEqual(self.step(testcmd.counts, ["instructions"]),
                             [("title", SKIPPED, "not comparable: another libc")])
        for played in (self.played(5, log="x\nskbench: a/b: died\n"), self.played(2, log="skbench: a/b: died\n")):
            with played:
                self.assertEqual(self.step(testcmd.counts, ["ledger"]), [("title", FAIL, "a/b: died")])
        with self.played(0):  # success without a report is none
            self.assertEqual(self.step(testcmd.counts, ["ledger"])[0][1], FAIL)
        with self.played(-9, timed_out=True):
            self.assertIn("did not end", self.step(testcmd.counts, ["ledger"])[0][2])

    def test_kernel_costs(self):
        pair = kernelcost.Pair("x", 2, "skb/x#y")
        pair.kernel, pair.model = 100, 160
        name = "era 6.1: x with 2 frags"
        with mock.patch.object(kernelcost, "stored_pairs", lambda stem: {"6.1": [pair]}), \
                mock.patch.object(oraclebudget, "stored_problems", lambda era: []):
            with mock.patch.object(kernelcost, "read_reasons", lambda: {}):
                self.assertEqual(self.step(testcmd.kernel_costs)[0], (
                    name, DIFFERS, "1.60 of the kernel's, and results/kernel/reasons.txt does not say why"))
            with mock.patch.object(kernelcost, "read_reasons", lambda: {"x": "a reason", "z": "another"}):
                self.assertEqual(self.step(testcmd.kernel_costs), [
                    (name, PASSED, ""),
                    ("reason of z", DIFFERS, "results/kernel/reasons.txt explains what needs no reason"),
                    ("era 6.1: budget", PASSED, "")])
        with mock.patch.object(kernelcost, "stored_pairs", lambda stem: {"6.1": []}), \
                mock.patch.object(kernelcost, "read_reasons", lambda: {}), \
                mock.patch.object(oraclebudget, "stored_problems", lambda era: ["no budget", "no residual"]):
            self.assertEqual(self.step(testcmd.kernel_costs), [("era 6.1: budget", DIFFERS, "no budget; no residual")])

    def test_oracle(self):
        kernels = [{"era": "6.1", "release": "6.1.0-1"}, {"era": "6.12", "release": "6.12.1"}]
        agreed = {"kernels": kernels, "differences": []}
        differed = {"kernels": kernels, "differences": [{"era": "6.12", "name": "program 7"}]}

        def command(installed, mistakes):
            def run(title, words, seconds, **environment):
                if "oracle" in words:
                    self.state.log(title).write_text("skbench: Debian packages are missing\n")
                    return Ended(installed, False)
                words[words.index("--json") + 1].write_text(json.dumps({"seen": mistakes}))
                return Ended(0, False)
            return mock.patch.object(self.state, "command", run)

        with command(0, {"a lost get": 3, "a lost put": 0}):
            with self.played(0, agreed):
                self.assertEqual(self.step(testcmd.oracle), [
                    ("era 6.1 against Linux 6.1.0-1", PASSED, ""), ("era 6.12 against Linux 6.12.1", PASSED, ""),
                    ("mistake: a lost get", PASSED, ""),
                    ("mistake: a lost put", FAIL, "the oracle does not see it")])
            with self.played(5, differed):
                self.assertEqual(self.step(testcmd.oracle)[1],
                                 ("era 6.12 against Linux 6.12.1", FAIL, "differs in 'program 7'"))
            with self.played(5, log="skbench: the guest died: BUG; its log is x\n"):
                self.assertEqual(self.step(testcmd.oracle), [("title", FAIL, "the guest died: BUG; its log is x")])
            with self.played(4, log="skbench: the kernel's packages cannot be downloaded\n"):
                with self.assertRaises(UserError) as caught:
                    self.step(testcmd.oracle)
                self.assertEqual((caught.exception.status, str(caught.exception)),
                                 (4, "the kernel's packages cannot be downloaded"))
            with self.played(-9, timed_out=True):
                self.assertIn("did not end", self.step(testcmd.oracle)[0][2])
        with command(0, {}), self.played(0, agreed):
            self.assertEqual(self.step(testcmd.oracle)[-1][1], FAIL)
        with command(4, {}):
            with self.assertRaises(UserError) as caught:
                self.step(testcmd.oracle)
            self.assertEqual((caught.exception.status, str(caught.exception)), (4, "Debian packages are missing"))

    def test_guests(self):
        ends = [Ended(0, False), Ended(4, False), Ended(1, False), Ended(0, False), Ended(0, False), Ended(1, False),
                Ended(-9, True)]

        def run(title, words, seconds, **environment):
            self.state.log(title).write_text("vfio_guest.py: qemu-system-x86 is not installed\n")
            return ends.pop(0)

        with mock.patch.object(self.state, "command", run):
            self.assertEqual(self.step(testcmd.guests), [
                ("VFIO, Intel's IOMMU", PASSED, ""),
                ("VFIO, AMD's IOMMU", SKIPPED, "qemu-system-x86 is not installed"),
                ("descriptors through QEMU's 82576", FAIL, "tests/hw/igb.py exited with status 1"),
                ("Linux's ixgbe on the model", PASSED, ""),
                ("placement on two nodes", PASSED, ""),
                ("placement on four nodes", FAIL, "tests/place/numa_guest.py exited with status 1"),
                ("placement beside a node without memory", FAIL, "tests/place/numa_guest.py did not end within 500 s")])

    def test_control(self):
        for status, problems, outcome in ((0, [], PASSED), (3, ["3 of 20 equal sides got a false verdict"], FAIL),
                                          (3, ["+5 % was found in 4 of 20 duets"], SKIPPED), (4, [], SKIPPED),
                                          (5, [], FAIL)):
            with self.subTest(problems), self.played(status, {"problems": problems}):
                self.assertEqual(self.step(testcmd.control)[0][1], outcome)

    def test_python_tests(self):
        tests = self.root / "tests" / "scripts"
        tests.mkdir(parents=True)
        (tests / "test_x.py").write_text(
            "import unittest\n\n\nclass X(unittest.TestCase):\n"
            "    def test_good(self):\n        pass\n\n"
            "    def test_bad(self):\n        self.assertEqual(1, 2)\n\n"
            "    def test_sub(self):\n        for n in (1, 2):\n            with self.subTest(n):\n"
            "                self.assertEqual(n, 2)\n\n"
            "    @unittest.skip('no time')\n    def test_skipped(self):\n        pass\n")
        with mock.patch.dict("os.environ", {"PYTHONPATH": str(ROOT / "scripts")}):
            found = {name.split(".")[-1]: (outcome, text) for name, outcome, text in self.step(testcmd.python_tests)}
        self.assertEqual(found["test_good"], (PASSED, ""))
        self.assertEqual(found["test_bad"], (FAIL, "1 != 2"))
        self.assertEqual(found["test_sub"][0], FAIL)
        self.assertEqual(found["test_skipped"], (SKIPPED, "no time"))
        self.assertEqual(len(found), 4)

    def test_python_tests_that_are_none(self):
        (self.root / "tests" / "scripts").mkdir(parents=True)
        self.assertEqual(self.step(testcmd.python_tests)[0][1], FAIL)

    def test_ctest(self):
        source = self.root / "source"
        source.mkdir()
        (source / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME bad COMMAND sh -c "echo fine$<SEMICOLON> echo 'x.c:3: ERROR: 1 != 2'$<SEMICOLON> echo more$<SEMICOLON> exit 1")
add_test(NAME dead COMMAND sh -c "kill -SEGV $$")
add_test(NAME long COMMAND sleep 30)
add_test(NAME absent COMMAND no-such-program)
add_test(NAME skips COMMAND sh -c "echo needs two nodes$<SEMICOLON> exit 77")
add_test(NAME later COMMAND false)
set_tests_properties(long PROPERTIES TIMEOUT 1)
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(later PROPERTIES LABELS nightly)
""")
        subprocess.run(["cmake", "-S", source, "-B", self.root / "build" / "small"], check=True, capture_output=True)
        with mock.patch.object(testcmd, "build_dir", lambda preset: self.root / "build" / preset):
            found = {name: (outcome, text) for name, outcome, text in self.step(testcmd.ctest, "small")}
            self.assertEqual({name: outcome for name, (outcome, _) in found.items()}, {
                "good": PASSED, "bad": FAIL, "dead": FAIL, "long": FAIL, "absent": FAIL, "skips": SKIPPED})
            self.assertIn("needs two nodes", found["skips"][1])
            self.assertEqual(found["bad"][1], "x.c:3: ERROR: 1 != 2")
            self.state.nightly = True
            self.assertIn(("later", FAIL), [test[:2] for test in self.step(testcmd.ctest, "small")])
            # A directory without tests has not passed them.
            self.assertEqual([test[1] for test in self.step(testcmd.ctest, "none")], [FAIL])
        self.state.broken_builds["small"] = "small does not build"
        self.assertEqual(self.step(testcmd.ctest, "small"), [("title", SKIPPED, "small does not build")])

    def test_no_fixed_addresses(self):
        with mock.patch.object(self.state, "command", lambda *words, **more: Ended(1, False)), \
                self.assertRaises(UserError) as raised:
            self.step(testcmd.build, "tsan")
        self.assertEqual(raised.exception.status, 4)
        self.assertIn("seccomp=unconfined", str(raised.exception))
        self.assertIn("tsan", self.state.broken_builds)


if __name__ == "__main__":
    unittest.main()
