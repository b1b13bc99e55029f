# SPDX-License-Identifier: MIT
"""Two sets of instruction counts: reading them, what they say of each other, and `compare` on them."""

import copy
import json
import pathlib
import tempfile
import unittest
from unittest import mock
from xml.etree import ElementTree

import compare_support as cs
import support
from skbench_lib import baseline, compare, compare_report, icounts, results, sides, table
from skbench_lib.errors import UserError

MADE = {"compiler": "gcc", "version": "12.2.0", "machine": "x86_64", "libc": "glibc 2.36", "flags": "-O2",
        "tunables": "glibc.cpu.hwcaps=-AVX2", "operations": 1000}
COUNTS = {"skb/a/x:1": 300.0, "skb/b#part": 5000.0, "skb/c": 40.0}


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="skbench-icounts-")
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def directory(self, name, counts, made_with=None, stem="gcc12"):
        """A directory as results/instructions."""
        place = self.path / name
        place.mkdir(exist_ok=True)
        lines = [f"{case},{count:.1f}" for case, count in counts.items()]
        (place / f"{stem}.csv").write_text("\n".join(["case,instructions", *lines]) + "\n")
        (place / f"{stem}.json").write_text(json.dumps(MADE if made_with is None else made_with))
        return place

    def judge(self, base, new, **how):
        report = compare.judge(sides.load(base), sides.load(new), **how)
        for everything in (False, True):
            for line in compare_report.text(report, everything):
                self.assertLessEqual(table.width(line), 80, line)
            compare_report.markdown(report, everything), compare_report.lkp(report, everything)
        results.text_of(report)
        return report

    def verdicts(self, report):
        return {entry["case"]: entry["verdict"] for one in report["instructions"]["sets"] for entry in one["rows"]}


class Verdicts(Case):
    def changed(self, **counts):
        base = self.directory("base", COUNTS)
        new = self.directory("new", {**COUNTS, **counts})
        return self.judge(base, new)

    def test_equal(self):
        report = self.changed()
        self.assertEqual((set(self.verdicts(report).values()), report["exit_status"]), ({"equivalent"}, 0))

    def test_one_instruction_is_told_and_more_than_the_margin_fails(self):
        for change, verdict, status in ((1, "shifted", 0), (-1, "shifted", 0), (2, "shifted", 0), (2.1, "regression", 1),
                                        (-2.1, "improvement", 0), (30, "regression", 1)):
            report = self.changed(**{"skb/a/x:1": 300.0 + change})
            self.assertEqual((self.verdicts(report)["skb/a/x:1"], report["exit_status"]), (verdict, status), change)
            self.assertIn(f"{change:+.1f} (", "\n".join(compare_report.text(report)))
        # Of many instructions 0.2 % are allowed.
        self.assertEqual(self.verdicts(self.changed(**{"skb/b#part": 5010.0}))["skb/b#part"], "shifted")
        self.assertEqual(self.verdicts(self.changed(**{"skb/b#part": 5010.2}))["skb/b#part"], "regression")

    def test_cases_come_and_go_and_are_renamed(self):
        base = self.directory("base", COUNTS)
        new = self.directory("new", {"skb/a/x:1": 300.0, "skb/new": 1.0, "skb/d": 40.0})
        report = self.judge(base, new, aliases={"skb/c": "skb/d"})
        self.assertEqual(self.verdicts(report), {"skb/a/x:1": "equivalent", "skb/b#part": "missing",
                                                 "skb/new": "new", "skb/d": "equivalent"})
        self.assertEqual(report["exit_status"], 0)
        self.assertEqual(self.judge(base, new, words={"missing"})["exit_status"], 1)

    def test_a_filter(self):
        base, new = self.directory("base", COUNTS), self.directory("new", {**COUNTS, "skb/c": 80.0})
        self.assertEqual(self.judge(base, new, pattern=icounts.instructions.re.compile("skb/a"))["exit_status"], 0)

    def test_what_it_was_made_with_must_be_the_same(self):
        base = self.directory("base", COUNTS)
        for key in icounts.IDENTITY:
            if key == "compiler":
                continue
            other = {**MADE, key: 10 if key == "operations" else "other"}
            report = self.judge(base, self.directory("new", {**COUNTS, "skb/c": 80.0}, other))
            self.assertEqual((report["exit_status"], self.verdicts(report)), (4, {}), key)
            self.assertRegex(" ".join("\n".join(compare_report.text(report)).split()),
                             f"gcc12: NOT COMPARABLE: they differ in {key} '.*' against '(other|10)'")

    def test_each_compiler_by_itself(self):
        base, new = self.directory("base", COUNTS), self.directory("new", {**COUNTS, "skb/c": 80.0})
        self.directory("base", COUNTS, {**MADE, "compiler": "clang", "version": "14.0.6"}, "clang14")
        report = self.judge(base, new)
        self.assertEqual([one["name"] for one in report["instructions"]["sets"]], ["gcc12"])
        self.assertEqual(report["instructions"]["only_base"], ["clang14"])
        self.assertEqual(report["exit_status"], 1)
        self.assertIn("instructions, clang14: only in base", compare_report.text(report))

    def test_one_file_and_what_the_command_writes(self):
        base = self.directory("base", COUNTS) / "gcc12.csv"
        written = self.path / "counts.json"
        rows = [{"case": case, "instructions": count} for case, count in {**COUNTS, "skb/c": 45.0}.items()]
        written.write_text(json.dumps({"command": "instructions", "revision": "c" * 40, "dirty": False,
                                       "made_with": MADE, "rows": rows}))
        report = self.judge(base, written)
        self.assertEqual((report["exit_status"], self.verdicts(report)["skb/c"]), (1, "regression"))
        self.assertEqual(report["headings"], ["gcc12.csv", "ccccccc"])

    def test_broken_files(self):
        good = self.directory("base", COUNTS)
        for text, pattern in (("{", "truncated"), ("[]", "expected an object"), ("{}", "'compiler': expected string"),
                              (json.dumps({**MADE, "operations": True}), "'operations': expected integer")):
            (good / "gcc12.json").write_text(text)
            with self.subTest(text), self.assertRaisesRegex(UserError, pattern):
                sides.load(good)
        (good / "gcc12.json").unlink()
        with self.assertRaisesRegex(UserError, "gcc12.json: No such file"):
            sides.load(good)
        rows = [{"case": "skb/a", "instructions": 1}]
        for value, pattern in (({"made_with": MADE, "rows": {}}, "rows: expected array"),
                               ({"made_with": MADE, "rows": [1]}, r"rows\[0\]: expected an object"),
                               ({"made_with": MADE, "rows": rows * 2}, "stands twice"),
                               ({"made_with": MADE, "rows": [{"case": "a", "instructions": 0}]}, "above 0"),
                               ({"rows": rows}, "made_with: expected an object"), ([], "made_with and rows")):
            with self.subTest(pattern), self.assertRaisesRegex(UserError, pattern):
                icounts.of_object(value, "f")


class InResults(Case):
    """Counts that a result carries beside its times."""

    def document(self, centre, count):
        document = cs.survey({"skb/a/x:1": cs.noise(1, centre)})
        document["context"]["skbench"]["instructions"] = {
            "made_with": MADE, "rows": [{"case": "skb/a/x:1", "instructions": count}]}
        results.check(document)
        return document

    def test_they_gate_beside_equal_times(self):
        base, new = self.document(100, 300.0), self.document(100, 303.0)
        report = self.judge(cs.write(self.path / "a.json", base), cs.write(self.path / "b.json", new))
        self.assertEqual((report["exit_status"], report["decided_by"]), (1, "1 case with more instructions"))
        self.assertEqual(report["rows"][0]["verdict"], "equivalent")
        self.assertEqual(self.judge(self.path / "a.json", self.path / "b.json", words={"regression"})["exit_status"], 0)
        suite = ElementTree.fromstring(compare_report.junit(report))
        self.assertEqual([case.get("classname") for case in suite if case.find("failure") is not None],
                         ["instructions.gcc12"])

    def test_against_what_is_stored(self):
        stored = self.directory("base", {"skb/a/x:1": 300.0})
        report = self.judge(stored, cs.write(self.path / "b.json", self.document(100, 310.0)))
        self.assertEqual((report["exit_status"], report["rows"]), (1, []))

    def test_a_baseline_keeps_them(self):
        kept = baseline.reduced(self.document(100, 300.0), "first")
        self.assertEqual(sides.native(kept, "first").counted["gcc12"].counts, {"skb/a/x:1": 300.0})
        none = baseline.reduced(self.document(100, 300.0), "first", icounts.instructions.re.compile("zzz"))
        self.assertEqual(none["context"]["skbench"]["instructions"]["rows"], [])

    def test_files_of_one_side_must_agree(self):
        for number, count in enumerate((300.0, 301.0)):
            cs.write(self.path / "side" / f"{number}.json", self.document(100, count))
        with self.assertRaisesRegex(UserError, "not of one revision"):
            sides.load(self.path / "side")

    def test_the_schema_knows_them(self):
        document = self.document(100, 300.0)
        for value in (1, {"made_with": MADE}, {"made_with": MADE, "rows": [{"case": "a", "instructions": 0}]}):
            broken = copy.deepcopy(document)
            broken["context"]["skbench"]["instructions"] = value
            with self.assertRaises(results.Invalid):
                results.check(broken)


class CommandLine(Case):
    def test_two_directories(self):
        base, new = self.directory("base", COUNTS), self.directory("new", {**COUNTS, "skb/c": 80.0})
        with support.FakeBench() as fake:
            status, out, err = fake.run("compare", base, new)
            self.assertEqual((status, err), (1, ""))
            self.assertRegex(out, r"(?s)gcc12: 3 cases: 1 regression, 2 equivalent\n  skb/c\n    40.0 -> 80.0   \+40.0 ")
            self.assertEqual(fake.run("compare", base, base)[0], 0)
            status, _, err = fake.run("compare", base, new, "--filter", "zzz")
            self.assertEqual((status, err), (2, "skbench: no case matches --filter zzz\n"))

    def test_the_stored_ones_of_this_tree(self):
        place = support.ROOT / "results" / "instructions"
        report = self.judge(place, place)
        self.assertEqual(report["exit_status"], 0)
        self.assertGreater(sum(one["cases"] for one in report["instructions"]["sets"]), 100)

    def test_what_spins_is_not_counted(self):
        class Binary:
            path = "none"

        def count(path, name):
            if name == "skb/two":
                raise UserError("roles spin", 4)
            return 7.04

        with mock.patch.object(icounts.instructions, "count", count):
            found = icounts.count([("skb/one", Binary), ("skb/two", Binary)], self.path)
        self.assertEqual(found["rows"], [{"case": "skb/one", "instructions": 7.0}])
        self.assertFalse(icounts.countable("tcp/trim/complete:other/frags:2"))
        self.assertFalse(icounts.countable("skb/page/threads:2"))
        self.assertTrue(icounts.countable("skb/page/threads:1"))
        self.assertFalse(icounts.countable("contend/list/flushers:1/threads:1"))  # two roles


if __name__ == "__main__":
    unittest.main()
