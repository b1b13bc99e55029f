# SPDX-License-Identifier: MIT
"""`skbench compare` on results of its own: verdicts, refusals, reports, exit statuses, and how often it is wrong."""

import json
import math
import pathlib
import random
import re
import tempfile
import unittest
from xml.etree import ElementTree

import compare_support as cs
import support
from skbench_lib import compare, compare_report, ranks, results, sides, stats, table

SEED = 57


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="skbench-compare-")
        self.addCleanup(self.temporary.cleanup)
        self.path = pathlib.Path(self.temporary.name)
        self.count = 0

    def side(self, document):
        return sides.load(self.write(document))

    def write(self, document, name=None):
        self.count += 1
        return cs.write(self.path / (name or f"r{self.count}.json"), document)

    def judge(self, base, new, **how):
        report = compare.judge(self.side(base), self.side(new), **how)
        for everything in (False, True):
            for line in compare_report.text(report, everything):
                self.assertLessEqual(table.width(line), 80, line)
        results.text_of(report)
        return report

    def verdict(self, report, case="skb/a/x:1"):
        return next(entry["verdict"] for entry in report["rows"] if entry["case"] == case)

    def one(self, base, new, **how):
        """The report on one case of two samples."""
        return self.judge(cs.survey({"skb/a/x:1": base}), cs.survey({"skb/a/x:1": new}), **how)


class Verdicts(Case):
    def test_each(self):
        base = cs.noise(1, 100)
        for factor, expected, status in ((1.05, "regression", 1), (0.95, "improvement", 0), (1.0, "equivalent", 0),
                                         (1.02, "shifted", 0)):
            report = self.one(base, cs.noise(2, 100 * factor))
            self.assertEqual((self.verdict(report), report["exit_status"]), (expected, status), factor)
        report = self.one(cs.noise(1, 100, sigma=0.1), cs.noise(2, 103, sigma=0.1))
        self.assertEqual((self.verdict(report), report["exit_status"]), ("inconclusive", 3))
        self.assertEqual(report["rows"][0]["ratio"], stats.median(cs.noise(2, 103, sigma=0.1)) /
                         stats.median(cs.noise(1, 100, sigma=0.1)))

    def test_below_a_cycle_nothing_is_worse(self):
        report = self.one(cs.noise(1, 2.0), cs.noise(2, 2.2))
        self.assertEqual((self.verdict(report), report["exit_status"]), ("shifted", 0))

    def test_missing_new_renamed(self):
        base = cs.survey({"skb/a/x:1": cs.noise(1, 100), "skb/gone": cs.noise(2, 10), "skb/old": cs.noise(3, 50)})
        new = cs.survey({"skb/a/x:1": cs.noise(4, 100), "skb/fresh": cs.noise(5, 10), "skb/name": cs.noise(6, 60)})
        report = self.judge(base, new, aliases={"skb/old": "skb/name"})
        self.assertEqual([self.verdict(report, case) for case in ("skb/a/x:1", "skb/gone", "skb/fresh", "skb/name")],
                         ["equivalent", "missing", "new", "regression"])
        self.assertEqual(next(e for e in report["rows"] if e["case"] == "skb/name")["renamed_from"], "skb/old")
        self.assertEqual((report["geomean"]["used"], report["geomean"]["matched"]), (2, 2))
        self.assertIn("renamed from skb/old", "\n".join(compare_report.text(report)))
        report = self.judge(base, new, words={"missing"})
        self.assertEqual((report["exit_status"], report["decided_by"]), (1, "2 cases missing"))

    def test_unmeasured(self):
        report = self.one(cs.noise(1, 100), [])
        self.assertEqual((self.verdict(report), report["exit_status"]), ("unmeasured", 3))
        self.assertIn("unmeasured in new (12 of 100 kept)", report["rows"][0]["reason"])

    def test_failing_needs_the_whole_family(self):
        # 7 against 7 samples can show one regression among 80 cases, and not among 100.
        for count, fails in ((80, True), (100, False)):
            base = {f"skb/c{i:03}": cs.noise(i, 100, 7, 0.001) for i in range(count)}
            new = {name: cs.noise(1000 + i, 100, 7, 0.001) for i, name in enumerate(base)}
            new["skb/c000"] = cs.noise(5000, 110, 7, 0.001)
            report = self.judge(cs.survey(base), cs.survey(new))
            entry = report["rows"][0]
            self.assertEqual((entry["case"], entry["verdict"], entry["fails"]), ("skb/c000", "regression", fails))
            self.assertEqual(report["exit_status"], 1 if fails else 3)
        self.assertIn("7 and 7 samples cannot show it among 100 cases", entry["reason"])

    def test_the_ledger_is_exact(self):
        values = {"skb/a": cs.noise(1, 100)}
        base = cs.survey(values, {"skb/a": {"rmw": 3, "page_get": 1}})
        report = self.judge(base, cs.survey(values, {"skb/a": {"rmw": 4, "page_get": 1, "fresh": 2}}))
        self.assertEqual(report["ledger"]["differences"],
                         [{"case": "skb/a#op", "column": "rmw", "base": 3, "new": 4}])
        self.assertEqual(report["exit_status"], 1)
        self.assertEqual(self.judge(base, base)["exit_status"], 0)
        self.assertEqual(self.judge(base, cs.survey(values, {"skb/a": {"rmw": 4}}), words={"regression"})["exit_status"], 0)

    def test_ratios(self):
        base, new = cs.made("--filter", "frags:16.*complete:same.*slub"), cs.made("--filter", "frags:16.*complete:same.*slub")
        for row in new["benchmarks"]:
            if row["skb"]["side"] == "variant":
                row["skb"]["value"] *= 1.02
        report = self.judge(base, new)
        self.assertEqual(len(report["ratios"]), 1)
        entry = report["ratios"][0]
        self.assertEqual(entry["verdict"], "regression")
        self.assertTrue(entry["lo"] <= 1.02 <= entry["hi"])
        # A ratio is a comparison of variants: it fails only when asked to.
        self.assertEqual(report["exit_status"], 0)
        self.assertEqual(self.judge(base, new, words={"ratio"})["exit_status"], 1)


class Refusals(Case):
    def test_another_machine(self):
        base = cs.made("--filter", "frags:16.*complete:same.*slub")
        new = cs.made("--filter", "frags:16.*complete:same.*slub")
        new["context"]["skbench"]["fingerprint"]["identity"]["cpu_model"] = 99
        new["context"]["skbench"]["fingerprint"]["identity"]["build"]["flags"] = "-O3"
        report = self.judge(base, new)
        self.assertEqual(report["differing_identity"], ["build.flags", "cpu_model"])
        self.assertEqual(report["exit_status"], 4)
        self.assertEqual({entry["verdict"] for entry in report["rows"]}, {"not comparable"})
        self.assertTrue(all(entry["ratio"] is None for entry in report["rows"]))
        self.assertEqual([entry["verdict"] for entry in report["ratios"]], ["equivalent"])
        self.assertEqual(report["ledger"]["cases"], 2)
        text = " ".join(" ".join(compare_report.text(report)).split())
        self.assertIn("differ in build.flags, cpu_model", text)
        self.assertIn('build.flags: -O2 against -O3', text)
        new["context"]["skbench"]["ledger"][0]["rows"][0]["rmw"] += 1
        self.assertEqual(self.judge(base, new)["exit_status"], 1)
        forced = self.judge(base, new, force=True, words={"regression", "inconclusive", "not-comparable"})
        self.assertEqual(forced["exit_status"], 0)
        self.assertTrue(all(entry["reason"].startswith("differs in") and entry["ratio"] for entry in forced["rows"]))

    def test_conditions_are_marked(self):
        base, new = cs.survey({"skb/a": cs.noise(1, 100)}), cs.survey({"skb/a": cs.noise(2, 100)})
        new["context"]["skbench"]["fingerprint"]["condition"]["kernel"] = "6.99"
        report = self.judge(base, new)
        self.assertIn("kernel", report["conditions"])
        self.assertEqual(report["exit_status"], 0)

    def test_a_busy_machine_gets_no_verdict(self):
        base, new = cs.survey({"skb/a": cs.noise(1, 100)}), cs.survey({"skb/a": cs.noise(2, 110)})
        new["context"]["skbench"]["fingerprint"]["condition"]["other_cpu_share"] = 0.4
        report = self.judge(base, new)
        self.assertEqual((self.verdict(report, "skb/a"), report["exit_status"]), ("inconclusive", 3))
        self.assertEqual(report["rows"][0]["reason"], "would be regression on a quiet machine")
        self.assertIn("others used 40 % of the CPUs", " ".join(compare_report.text(report)))

    def test_a_failed_control_gets_no_verdict(self):
        base = cs.made("--filter", "frags:16.*complete:same.*slub")
        new = cs.made("--filter", "frags:16.*complete:same.*slub")
        new["context"]["skbench"]["control"].update(held=False, reason="two equal sides differ")
        report = self.judge(base, new)
        self.assertEqual({entry["verdict"] for entry in report["rows"]}, {"inconclusive"})
        self.assertEqual(report["exit_status"], 3)

    def test_contended_times_of_virtual_machines(self):
        documents = [cs.survey({"tcp/a": cs.noise(seed, 100), "tcp/b": cs.noise(seed, 100)}) for seed in (1, 2)]
        for document in documents:
            document["context"]["skbench"]["fingerprint"]["identity"]["virtual"] = True
            for row in document["benchmarks"]:
                row["threads"] = 2 if row["name"] == "tcp/a" else 1
        report = self.judge(*documents)
        self.assertEqual((self.verdict(report, "tcp/a"), self.verdict(report, "tcp/b")), ("not comparable", "equivalent"))
        self.assertEqual(report["exit_status"], 0)
        for document in documents:
            document["context"]["skbench"]["fingerprint"]["identity"]["virtual"] = False
        self.assertEqual(self.verdict(self.judge(*documents), "tcp/a"), "equivalent")

    def test_another_plan(self):
        base = cs.survey({"skb/a": cs.noise(1, 100)})
        for n, verdict in ((210, "equivalent"), (900, "not comparable")):
            self.assertEqual(self.verdict(self.judge(base, cs.survey({"skb/a": cs.noise(2, 100)}, n=n)), "skb/a"), verdict)
        other = cs.survey({"skb/a": cs.noise(2, 100)})
        for row in other["benchmarks"]:
            row["skb"]["batches"] = 100
        report = self.judge(base, other)
        self.assertEqual((report["rows"][0]["reason"], report["exit_status"]), ("another plan: batches 40 against 100", 4))

    def test_nothing_in_common(self):
        report = self.judge(cs.survey({"skb/a": cs.noise(1, 100)}), cs.survey({"skb/b": cs.noise(1, 100)}))
        self.assertEqual((report["exit_status"], report["decided_by"]), (4, "no case in common"))

    def test_aliases_are_read_strictly(self):
        path = self.path / "aliases.txt"
        self.assertEqual(sides.read_aliases(path), {})
        path.write_text("# c\n\na b\nb c\n")
        self.assertEqual(sides.read_aliases(path), {"a": "c", "b": "c"})
        for text, pattern in (("a\n", "1: the old and the new"), ("a b\na c\n", "2: a was renamed already"),
                              ("a b\nb a\n", "in a circle"), ("a a\n", "1: ")):
            path.write_text(text)
            with self.assertRaisesRegex(compare.UserError, pattern):
                sides.read_aliases(path)


class Directories(Case):
    def test_files_are_one_side(self):
        for index in range(3):
            self.write(cs.survey({"skb/a": cs.noise(index, 100, 5)}), f"base/{index}.json")
        side = sides.load(self.path / "base")
        self.assertEqual((len(side.files), len(side.cases["skb/a"].values)), (3, 15))

    def test_many_sessions_are_the_samples(self):
        for index in range(8):
            self.write(cs.survey({"skb/a": [100.0 + index] * 5}), f"base/{index}.json")
        case = sides.load(self.path / "base").cases["skb/a"]
        self.assertEqual((case.values, case.sessions), ([100.0 + index for index in range(8)], 8))

    def test_machines_do_not_mix(self):
        other = cs.survey({"skb/a": cs.noise(1, 100)})
        other["context"]["skbench"]["fingerprint"]["identity"]["cpu_model"] = 99
        self.write(cs.survey({"skb/a": cs.noise(1, 100)}), "base/1.json")
        self.write(other, "base/2.json")
        with self.assertRaisesRegex(compare.UserError, "differ in cpu_model"):
            sides.load(self.path / "base")

    def test_empty(self):
        (self.path / "none").mkdir()
        with self.assertRaisesRegex(compare.UserError, "no result file"):
            sides.load(self.path / "none")


class CommandLine(Case):
    def run_it(self, *args):
        with support.FakeBench() as fake:
            return fake.run("compare", *args)

    def setUp(self):
        super().setUp()
        self.base = self.write(cs.survey({"skb/a/x:1": cs.noise(1, 100), "skb/b": cs.noise(2, 50)}, {"skb/b": {"rmw": 1}}))
        self.new = self.write(cs.survey({"skb/a/x:1": cs.noise(3, 106), "skb/b": cs.noise(4, 50)}, {"skb/b": {"rmw": 1}},
                                        commit="b" * 40))

    def test_text(self):
        status, out, err = self.run_it(self.base, self.new)
        self.assertEqual((status, err), (1, ""))
        self.assertRegex(out, r"regression \(1\)\n  skb/a/x:1\n    \S+ ns -> \S+ ns   \+6\.\d\d % \[.*confirmed")
        self.assertIn("1 regression, 1 equivalent", out)
        self.assertNotIn("  skb/b\n", out)
        self.assertIn("  skb/b\n", self.run_it(self.base, self.new, "--all")[1])
        self.assertEqual(self.run_it(self.base, self.base)[0], 0)

    def test_json(self):
        status, out, err = self.run_it(self.base, self.new, "--json", "-")
        report = json.loads(out)
        self.assertEqual((status, report["exit_status"], report["schema"]), (1, 1, "skbench-compare-1"))
        self.assertIn("regression (1)", err)
        target = self.path / "out.json"
        self.run_it(self.base, self.new, "--json", target)
        self.assertEqual(json.loads(target.read_text()), report)
        status, _, err = self.run_it(self.base, self.new, "--json", target)
        self.assertEqual(status, 2)
        self.assertIn("never overwritten", err)

    def test_junit(self):
        target = self.path / "out.xml"
        self.run_it(self.base, self.new, "--junit", target)
        suite = ElementTree.parse(target).getroot()
        self.assertEqual([suite.get(key) for key in ("tests", "failures", "errors", "skipped")], ["3", "1", "0", "0"])
        failed = [case.get("name") for case in suite if case.find("failure") is not None]
        self.assertEqual(failed, ["skb/a/x:1"])

    def test_markdown(self):
        _, out, _ = self.run_it(self.base, self.new, "--markdown")
        lines = [line for line in out.splitlines() if line.startswith("|")]
        self.assertEqual({line.count("|") for line in lines}, {7})
        self.assertRegex(lines[2], r"^\| `skb/a/x:1` \| .* regression, confirmed \|$")

    def test_lkp(self):
        _, out, _ = self.run_it(self.base, self.new, "--lkp")
        self.assertRegex(out, r"(?m)^commit:\n  aaaaaaa .*\n  bbbbbbb ")
        self.assertIn("%stddev     %change", out)
        self.assertRegex(out, r"(?m)^ +\S+ ± +\d+% +\+6\.\d\d% +\S+ ± +\d+%  skb/a/x:1\.ns_per_op  \(regression, confirmed\)$")
        rows = re.findall(r"(?m)^.*ns_per_op", out)
        self.assertEqual(len(rows), 2)
        self.assertEqual(len({row.index("skb/") for row in rows}), 1)

    def test_wrong_use(self):
        for args, pattern in (((self.base, self.path / "no.json"), "no.json: No such file"),
                              ((self.base, self.new, "--fail-on", "luck"), "'luck' is none of regression"),
                              ((self.base, self.new, "--filter", "zzz"), "no case matches --filter zzz"),
                              ((self.base, self.new, "--filter", "("), "not a regular expression"),
                              ((self.base, self.new, "--json", "-", "--junit", "-"), "does not take both"),
                              ((self.base,), "required: NEW")):
            status, out, err = self.run_it(*args)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
            self.assertRegex(err, f"^skbench: .*{pattern}")

    def test_fail_on(self):
        self.assertEqual(self.run_it(self.base, self.new, "--fail-on", "ledger")[0], 0)
        self.assertEqual(self.run_it(self.base, self.new, "--fail-on", "regression,inconclusive")[0], 1)

    def test_a_foreign_file_against_ours(self):
        foreign = self.path / "gb.json"
        foreign.write_text('{"context": {}, "benchmarks": [{"name": "skb/b", "real_time": 5, "time_unit": "ns"}]}')
        status, out, _ = self.run_it(self.base, foreign)
        self.assertEqual(status, 4)
        self.assertIn("kind of file", out)


class Statistics(unittest.TestCase):
    """Rates on synthetic noise, over seeds that follow from one. The bounds are 1-in-1000 accidents at the nominal rate."""

    def rng(self):
        print(f"seed {SEED}", end=" ", flush=True)
        return random.Random(SEED)

    def shapes(self, rng):
        """Noise of a shared machine: a body, a tail to the right, now and then a clump."""
        return lambda: math.exp(rng.gauss(0, 0.01) + (rng.expovariate(20) if rng.random() < 0.2 else 0))

    def test_the_joined_interval_covers(self):
        rng = self.rng()
        draw = self.shapes(rng)
        truth, hits, total = math.log(1.04), 0, 1000
        for _ in range(total):
            lo, hi = ranks.interval_of_ratio([draw() for _ in range(15)], [1.04 * draw() for _ in range(15)])
            hits += lo <= truth <= hi
        self.assertGreaterEqual(hits, 0.95 * total - 3.1 * math.sqrt(0.95 * 0.05 * total))

    def test_false_alarms_of_a_family(self):
        # 60 equal cases a family: at most 5 % of families may hold a failure. The margin makes it far fewer.
        rng = self.rng()
        draw = self.shapes(rng)
        failing = 0
        for _ in range(40):
            rows = []
            for case in range(60):
                b, n = sides.Case("x"), sides.Case("x")
                b.values, n.values = [100 * draw() for _ in range(15)], [100 * draw() for _ in range(15)]
                entry = compare.row(f"c{case}", None, None, b.describe(), n.describe())
                side = sides.Side("s")
                side.context = {}
                compare.decide(entry, side, side, b, n, [], False)
                rows.append(entry)
            compare.family(rows)
            failing += any(entry["fails"] for entry in rows)
        self.assertLessEqual(failing, 2)

    def test_power(self):
        rng = self.rng()
        draw = self.shapes(rng)
        found, total = 0, 200
        for _ in range(total):
            b, n = sides.Case("x"), sides.Case("x")
            b.values, n.values = [100 * draw() for _ in range(25)], [107 * draw() for _ in range(25)]
            entry = compare.row("c", None, None, b.describe(), n.describe())
            side = sides.Side("s")
            side.context = {}
            compare.decide(entry, side, side, b, n, [], False)
            found += entry["verdict"] == stats.REGRESSION
        self.assertGreaterEqual(found, 0.95 * total - 3.1 * math.sqrt(0.95 * 0.05 * total))

    def test_the_rank_sum_test_is_exact(self):
        try:
            from scipy.stats import mannwhitneyu
        except ImportError:
            self.skipTest("python3-scipy is not installed")
        rng = self.rng()
        for n, m in ((3, 4), (7, 7), (9, 5), (12, 20), (30, 37)):
            a, b = [rng.random() for _ in range(n)], [rng.random() + 0.3 for _ in range(m)]
            method = "exact" if n + m <= ranks.EXACT_TOTAL else "asymptotic"
            self.assertAlmostEqual(ranks.rank_sum(a, b), mannwhitneyu(a, b, method=method).pvalue, 12)
            self.assertAlmostEqual(ranks.rank_sum(a, b), ranks.rank_sum(b, a), 12)
        ties = [1, 2, 2, 3, 3, 3] * 8
        others = [2, 3, 3, 4, 4, 4] * 8
        self.assertAlmostEqual(ranks.rank_sum(ties, others), mannwhitneyu(ties, others, method="asymptotic").pvalue, 12)

    def test_the_rank_sum_test_counts_ties_out(self):
        # All 20 ways to choose 3 of {1, 1, 2, 2, 3, 3}: the least sum of midranks, 1.5 + 1.5 + 3.5, comes in 2 of them.
        self.assertEqual(ranks.rank_sum([1, 1, 2], [2, 3, 3]), 4 / 20)
        self.assertEqual(ranks.rank_sum([1, 2, 3], [4, 5, 6]), 2 / 20)
        self.assertEqual(ranks.smallest_p(7, 7), ranks.rank_sum(range(7), range(7, 14)))


if __name__ == "__main__":
    unittest.main()
