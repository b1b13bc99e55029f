# SPDX-License-Identifier: MIT
"""`skbench duet` over a small git tree that builds the fake binary, and the hash that tells equal code."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import compare_support as cs
import support
from skbench_lib import codehash, compare, revduet, table

CASES = cs.CASES_OF_TREE
ONE = ("--filter", "frags:2/")


class Duet(cs.GitTree):
    def duet(self, *args, **env):
        return self.tree.run("duet", *args, benches=False, **env)

    def report(self, *args):
        status, out, err = self.duet(*args, "--json", "-", "--seed", 2012)
        self.assertTrue(out, err)
        report = json.loads(out)
        self.assertEqual(report["exit_status"], status)
        for line in err.splitlines():
            self.assertLessEqual(table.width(line), 80, line)
        return report, err

    def verdicts(self, report):
        return {row["case"]: row["verdict"] for row in report["rows"]}

    def test_a_regression_is_confirmed(self):
        self.commit("slower", value=1080.0)
        report, text = self.report("base", "slower")
        self.assertEqual(self.verdicts(report), {case: "regression" for case in CASES})
        self.assertEqual(report["exit_status"], 1)
        for row in report["rows"]:
            self.assertTrue(row["fails"])
            self.assertTrue(row["lo"] <= 1.08 <= row["hi"])
            self.assertAlmostEqual(row["confirming"]["ratio"], 1.08, delta=0.003)
            self.assertGreaterEqual(row["confirming"]["confidence"], 0.975)
            self.assertEqual(row["pairs"], len(row["log_ratios"]))
        self.assertTrue(all(entry["held"] for entry in report["control"]))
        self.assertIn("measured again", text)
        worktrees = sorted(path.name for path in (self.tree.root / "build" / "worktrees").iterdir() if path.is_dir())
        self.assertEqual(len(worktrees), 2)
        self.assertRegex(worktrees[0], r"^[0-9a-f]{12}-gcc[0-9.]+$")
        # A second call takes them as they are.
        made = {name: (self.tree.root / "build" / "worktrees" / name / "CMakeLists.txt").stat().st_mtime_ns for name in worktrees}
        self.report("base", "slower", "--budget", "3", *ONE)
        self.assertEqual(made, {name: (self.tree.root / "build" / "worktrees" / name / "CMakeLists.txt").stat().st_mtime_ns
                                for name in worktrees})

    def test_a_regression_that_does_not_come_back(self):
        # Slower until the first 46 samples are taken: the first duets see it, the confirming ones do not.
        self.commit("once", value=1080.0, until=46)
        report, text = self.report("base", "once", *ONE)
        row, = report["rows"]
        self.assertEqual((row["verdict"], row["fails"], report["exit_status"]), ("inconclusive", False, 3), text)
        self.assertRegex(row["reason"], r"first \+8\.\d\d % .*measured again: [+-]?0\.\d\d %")

    def test_equal_revisions(self):
        self.commit("same")
        report, _ = self.report("base", "same", *ONE)
        self.assertEqual((self.verdicts(report), report["exit_status"]), ({CASES[0]: "equivalent"}, 0))

    def test_an_improvement_of_the_working_tree(self):
        self.write(value=900.0)
        report, _ = self.report("base", *ONE)
        self.assertEqual((self.verdicts(report), report["exit_status"]), ({CASES[0]: "improvement"}, 0))
        self.assertEqual((report["new"]["label"], report["new"]["dirty"]), ("working tree", True))

    def test_the_ledger_fails(self):
        self.commit("counts", rmw=1)
        report, _ = self.report("base", "counts", *ONE)
        self.assertEqual(report["exit_status"], 1)
        self.assertEqual({d["column"] for d in report["ledger"]["differences"]}, {"rmw"})

    def test_cases_that_come_and_go(self):
        self.commit("other", cases=[CASES[0], "skb/copy/frags:2"])
        report, _ = self.report("base", "other")
        self.assertEqual(self.verdicts(report), {CASES[0]: "equivalent", CASES[1]: "missing", "skb/copy/frags:2": "new"})

    def test_noise_fails_the_control(self):
        self.tree.plan(sigma=0.3)
        self.commit("same")
        report, text = self.report("base", "same", "--budget", "4")
        self.assertEqual(report["exit_status"], 3)
        self.assertIn("A/A control FAILED", text)
        self.assertFalse(any(row["fails"] for row in report["rows"]))

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two CPUs are needed")
    def test_parallel(self):
        self.commit("slower", value=1080.0)
        report, _ = self.report("base", "slower", "--parallel", *ONE)
        self.assertEqual((self.verdicts(report), report["exit_status"]), ({CASES[0]: "regression"}, 1))

    def test_a_crash(self):
        self.commit("crash", fail={"crash": "all"})
        status, _, err = self.duet("base", "crash")
        self.assertEqual(status, 5)
        self.assertIn("SIGABRT", err)

    def test_wrong_use(self):
        (self.tree.root / "benches" / "CMakeLists.txt").write_text('message(FATAL_ERROR "no")\n')
        self.commit("broken")
        for args, status, pattern in ((("nonsense",), 2, "nonsense: no such revision"),
                                      (("base", "nonsense"), 2, "nonsense: no such revision"),
                                      (("--upload-pack=x",), 2, "unrecognized|required"),
                                      (("base", "base", "--filter", "zzz"), 2, "no case matches --filter zzz"),
                                      (("broken",), 5, r"build of release failed; its log is .*/build/worktrees/.*\.log")):
            got, out, err = self.duet(*args)
            self.assertEqual((got, out), (status, ""), err)
            self.assertRegex(err.splitlines()[-1], f"^skbench: .*{pattern}")

    def test_layouts_need_a_link(self):
        self.commit("slower", value=1080.0)
        for layouts, status, pattern in (("5", 2, "--layouts 5: an integer is needed, 6 to 200"),
                                         ("6", 4, "benches/bench_skb is not linked by ninja in ")):
            got, out, err = self.duet("base", "slower", "--layouts", layouts)
            self.assertEqual((got, out), (status, ""), err)
            self.assertRegex(err.splitlines()[-1], f"^skbench: .*{pattern}")
        self.assertEqual(list((self.tree.root / "build").glob("layouts-*")), [])

    def test_a_changed_worktree_is_not_taken(self):
        self.report("base", "base", "--budget", "2", *ONE)
        place = next(path for path in (self.tree.root / "build" / "worktrees").iterdir() if path.is_dir())
        (place / "benches" / "bench.py").write_text("changed")
        status, _, err = self.duet("base", "base")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertIn("remove that directory", err)
        shutil.rmtree(place)
        self.report("base", "base", "--budget", "2", *ONE)

    def test_no_git_tree(self):
        shutil.rmtree(self.tree.root / ".git")
        status, _, err = self.duet("base")
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertIn("is no git tree", err)


class Instructions(unittest.TestCase):
    """The instructions of both sides, by counts that are given."""

    MADE = {"compiler": "gcc", "version": "12.2.0", "machine": "x86_64", "libc": "glibc 2.36", "flags": "-O2",
            "tunables": "t", "operations": 1000}

    def test_more_of_them_fail(self):
        class Nothing:
            label = commit = date = "x" * 40
            dirty = parallel = False
            layouts = None
            benches = pathlib.Path("build/release/benches")
            clear = say = staticmethod(lambda *args: None)

        comparison = revduet.Comparison(Nothing, Nothing, Nothing)
        comparison.binaries = {"bench_skb": ("base", "new")}
        comparison.pairs = {name: (name.replace("now", "old"), name, "bench_skb")
                            for name in ("skb/a", "skb/now", "skb/same", "skb/spins/threads:2", "skb/refused")}
        comparison.identical, comparison.refused = {"skb/same"}, {"skb/refused": "no"}
        asked = []

        def count(cases, directory, progress):
            asked.append(cases)
            rows = [{"case": name, "instructions": 90.0 + 10 * (binary == "new" and name == "skb/now")}
                    for name, binary in cases]
            return {"made_with": self.MADE, "rows": rows}

        with mock.patch.object(revduet.icounts, "count", count):
            comparison.count_instructions(Nothing)
        self.assertEqual(asked, [[("skb/a", "base"), ("skb/old", "base")], [("skb/a", "new"), ("skb/now", "new")]])
        report = comparison.report(set(compare.FAIL_ON_DEFAULT), 1)
        (found,) = report["instructions"]["sets"]
        self.assertEqual({entry["case"]: (entry["verdict"], entry["fails"]) for entry in found["rows"]},
                         {"skb/a": ("equivalent", False), "skb/now": ("regression", True)})
        self.assertEqual((report["exit_status"], report["decided_by"]), (1, "1 case with more instructions"))


@unittest.skipUnless(shutil.which("gcc") and shutil.which("objdump"), "gcc or objdump is not there")
class CodeHash(unittest.TestCase):
    SOURCE = """
    #include <stdio.h>
    static const int table[] = {{1, 2, {third}}};
    int before(int x) {{ {before} return x; }}
    int scale(int x) {{ return x * {factor} + table[x & 1]; }}
    int main(int argc, char **argv) {{ puts(__FILE__); {more} return scale(argc) + before(argc); }}
    """

    def build(self, directory, **parts):
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / directory
        place.mkdir(parents=True)
        values = {"third": 3, "before": "", "factor": 7, "more": "", **parts}
        (place / "x.c").write_text(self.SOURCE.format(**values))
        subprocess.run(["gcc", "-O2", "-fno-inline", "-o", place / "x", place / "x.c"], check=True)
        return codehash.of(place / "x", place)

    def test_equal_code_elsewhere_is_equal(self):
        first = self.build("a")
        self.assertRegex(first, "^[0-9a-f]{64}$")
        self.assertEqual(first, self.build("a/longer/path"))

    def test_any_change_is_seen(self):
        first = self.build("a")
        for parts in ({"factor": 9}, {"before": "x ^= 5;"}, {"more": 'puts("more");'}, {"third": 4},
                      {"more": "puts(__FILE__ + 1);"}):
            self.assertNotEqual(first, self.build("a", **parts), parts)

    def test_addresses_do_not_matter(self):
        listing = """
0000000000001140 <f>:
    1140:\tpush   %rbx
    1141:\tcall   {call} <g>
    1146:\tmov    {far}(%rip),%eax        # {data} <counter>
    114c:\tjne    {jump} <f+0x3>
    114e:\tret
    114f:\tnop
"""
        places = {"call": "1200", "far": "0x2ebd", "data": "4010", "jump": "1143"}
        nothing = codehash.Data()
        one = codehash.functions(listing.format(**places), nothing)
        other = listing.format(call="9200", far="-0x1f00", data="7777", jump="8843").replace("    114f:\tnop\n", "")
        self.assertEqual(one, codehash.functions(other, nothing))
        self.assertEqual(list(one), ["f"])
        for old, new in (("<g>", "<h>"), ("<f+0x3>", "<f+0x1>"), ("<counter>", "<other>"), ("%rbx", "%rcx")):
            self.assertNotEqual(one, codehash.functions(listing.format(**places).replace(old, new), nothing))

    def test_what_is_no_program(self):
        self.assertIsNone(codehash.of(support.FAKE, support.ROOT))
        self.assertIsNone(codehash.of("/nonexistent", support.ROOT))


if __name__ == "__main__":
    unittest.main()
