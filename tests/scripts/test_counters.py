# SPDX-License-Identifier: MIT
"""`run --counters` with a counting program that a test plays, and what compare makes of its counts."""

import copy
import json
import tempfile
import unittest
from pathlib import Path

import compare_support as support
from support import FakeBench

from skbench_lib import compare, compare_report, counters, results, sides

# skb-prof as a script: answers the JSON of COUNTS, then runs the command; its calls are logged.
PLAYED = """#!/usr/bin/python3
import json, subprocess, sys
out = next(word[7:] for word in sys.argv if word.startswith("--json="))
command = sys.argv[sys.argv.index("--") + 1:]
with open({log!r}, "a") as log:
    log.write(" ".join(command) + "\\n")
with open(out, "w") as file:
    json.dump({answer}, file)
sys.exit({status} or subprocess.run(command).returncode)
"""


def event(label, value, **more):
    refused = value is None
    return {"name": label, "label": label, "status": "refused" if refused else "ok", "value": value,
            "reason": "not on this machine" if refused else None, **({} if refused else {
                "raw": int(value), "enabled_ns": 4, "running_ns": 4, "threads": []}), **more}


class Counters(unittest.TestCase):
    def run_it(self, *arguments, status=0, events=None):
        """(document, what was printed, commands) of a run of the fake bench."""
        with FakeBench() as fake:
            log, prof = fake.path / "log", fake.path / "prof"
            answer = {"user_only": False, "events": events if events is not None else [
                event("task-clock", 4000000.0), event("cycles", 300.0, status="scaled", raw=100), event("hitm", None)]}
            prof.write_text(PLAYED.format(log=str(log), answer=repr(answer), status=status))
            prof.chmod(0o755)
            environment = fake.environment
            fake.environment = lambda: {**environment(), "SKBENCH_PROF": str(prof)}
            out = fake.path / "r.json"
            ended, said, errors = fake.run("run", "--suite", "quick", "--filter", "skb/clone", "--seed", "1", "--out", out,
                                         *arguments)
            self.assertIn(ended, (0, 3), errors)
            return results.read(out), said, log.read_text().splitlines() if log.exists() else []

    def test_each_case_is_counted_after_the_timing(self):
        document, said, commands = self.run_it("--counters")
        found = document["context"]["skbench"]["counters"]
        cases = sorted({row["name"] for row in document["benchmarks"]})
        self.assertEqual([entry["case"] for entry in found], cases)
        self.assertEqual(len(commands), len(cases))
        entry = found[0]
        self.assertEqual([one["label"] for one in entry["events"]], ["task-clock", "cycles", "hitm"])
        clock, cycles, hitm = entry["events"]
        self.assertAlmostEqual(clock["per_op"], 4000000 / entry["operations"])
        self.assertEqual((cycles["status"], cycles["raw"], cycles["enabled_ns"], cycles["running_ns"]), ("scaled", 100, 4, 4))
        self.assertEqual((hitm["per_op"], hitm["reason"], hitm["raw"]), (None, "not on this machine", None))
        self.assertIn("counters of one operation", said)
        self.assertIn("(scaled)", said)
        self.assertIn("not counted: hitm: not on this machine", said)
        self.assertLessEqual(max(map(len, said.splitlines()[:-4])), 80)
        for command in commands:
            self.assertIn("--skb_control=", command)
            self.assertNotIn("--skb_control", " ".join(row["name"] for row in document["benchmarks"]))

    def test_without_the_flag_nothing_is_counted(self):
        document, said, commands = self.run_it()
        self.assertNotIn("counters", document["context"]["skbench"])
        self.assertEqual(commands, [])
        self.assertNotIn("counters", said)

    def test_nothing_can_be_counted(self):
        document, said, _ = self.run_it("--counters", events=[event("cycles", None)])
        self.assertEqual(document["context"]["skbench"]["counters"][0]["events"][0]["status"], "refused")
        self.assertIn("not counted: cycles: not on this machine", said)

    def test_a_program_that_fails_is_a_reason_and_no_failure(self):
        document, _, _ = self.run_it("--counters", status=9)
        entry = document["context"]["skbench"]["counters"][0]
        self.assertEqual((entry["events"], entry["operations"]), ([], None))
        self.assertIn("exited with status 9", entry["reason"])


class Compared(unittest.TestCase):
    def side(self, seed, centre, cycles):
        document = support.survey({"skb/clone": support.noise(seed, centre)})
        document["context"]["skbench"]["counters"] = [{
            "case": "skb/clone", "operations": 100, "user_only": False, "reason": None, "events": [
                {"label": label, "status": "ok" if value is not None else "refused", "reason": None, "per_op": value,
                 "raw": None, "enabled_ns": None, "running_ns": None} for label, value in cycles.items()]}]
        results.check(document)
        return sides.native(document, "x.json")

    def test_counts_explain(self):
        base = self.side(1, 1000, {"cycles": 300.0, "faults": 0.0001, "hitm": None, "same": 5.0})
        new = self.side(2, 1200, {"cycles": 360.0, "faults": 0.0002, "hitm": 1.0, "same": 5.02})
        report = compare.judge(base, new)
        self.assertEqual([entry["label"] for entry in report["counters"]], ["cycles", "faults", "same"])
        text = "\n".join(compare_report.text(report))
        self.assertIn("counters, which judge nothing: cycles 300 -> 360\n", text)
        self.assertIn("cycles 300 -> 360", "\n".join(compare_report.markdown(report)))
        json.dumps(report, allow_nan=False)

    def test_they_never_judge(self):
        base = self.side(1, 1000, {"cycles": 300.0})
        for value in (1.0, 300.0, 900000.0):
            new = copy.deepcopy(base)
            new.counters["skb/clone"]["events"][0]["per_op"] = value
            with self.subTest(value):
                report = compare.judge(base, new)
                self.assertEqual(report["rows"][0]["verdict"], "equivalent")
                self.assertEqual(report["exit_status"], 0)

    def test_a_directory_of_results(self):
        with tempfile.TemporaryDirectory() as scratch:
            for number in range(2):
                document = support.survey({"skb/clone": support.noise(number, 1000)})
                document["context"]["skbench"]["counters"] = [{"case": "skb/clone", "operations": None, "user_only": None,
                                                               "reason": "no", "events": []}][:number]
                (Path(scratch) / f"{number}.json").write_text(json.dumps(document))
            self.assertEqual(list(sides.load(scratch).counters), ["skb/clone"])

    def test_both_checkers_agree(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("jsonschema is missing: scripts/install-packages test")
        reference = jsonschema.Draft202012Validator(results.schema())
        document = support.survey({"skb/clone": support.noise(1, 1000)})
        good = {"case": "skb/clone", "operations": 100, "user_only": False, "reason": None, "events": [
            {"label": "cycles", "status": "ok", "reason": None, "per_op": 3.0, "raw": 300, "enabled_ns": 1, "running_ns": 1}]}
        for path, value in (([], None), (["operations"], 0), (["user_only"], 1), (["case"], ""), (["events"], None),
                            (["events", 0, "status"], "fine"), (["events", 0, "per_op"], -1), (["events", 0, "raw"], 1.5),
                            (["events", 0, "label"], None)):
            entry = copy.deepcopy(good)
            target = entry
            for key in path[:-1]:
                target = target[key]
            if path:
                target[path[-1]] = value
            document["context"]["skbench"]["counters"] = [entry]
            with self.subTest(path):
                self.assertEqual(list(results.violations(document, results.schema())) == [], reference.is_valid(document))
                self.assertEqual(reference.is_valid(document), not path)

    def test_small_changes_are_not_shown(self):
        self.assertFalse(counters.changed({"base": 100.0, "new": 101.0}))
        self.assertFalse(counters.changed({"base": 0.001, "new": 0.004}))
        self.assertTrue(counters.changed({"base": 0.0, "new": 1.0}))


if __name__ == "__main__":
    unittest.main()
