# SPDX-License-Identifier: MIT
"""`skbench history`: the index, the series of each metric, windows, and what is told of a change."""

import datetime
import json
import pathlib
import random
import sqlite3
import tempfile
import unittest

import compare_support as cs
from skbench_lib import errors, history, table

SEED = 82
A, B = "skb/a/x:1", "skb/b"


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="skbench-history-")
        self.addCleanup(self.temporary.cleanup)
        self.path = pathlib.Path(self.temporary.name)
        self.rng = random.Random(SEED)
        self.day = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)

    def add(self, values, day, change=None, name=None):
        """A result of that day with one value of each case; CHANGE(document) edits it."""
        document = cs.survey({case: [value] for case, value in values.items()}, commit=f"{day:040x}",
                             date=(self.day + datetime.timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%S+00:00"))
        if change:
            change(document)
        return cs.write(self.path / "m" / (name or f"{day:04}.json"), document)

    def level(self, level):
        return level * self.rng.lognormvariate(0, 0.002)

    def examine(self, **how):
        index = history.Index(self.path, ":memory:")
        report = history.examine(index, **how)
        index.close()
        for line in history.text(report, True):
            self.assertLessEqual(table.width(line), 80, line)
        json.dumps(report, allow_nan=False)
        return report

    def series(self, report, case=A):
        return next(entry for entry in report["series"] if entry["case"] == case)

    def steps(self, gaps=(), other=True):
        """20 days, a step of A by 6 % on day 12; B is steady, and has no point on the days in GAPS."""
        for day in range(20):
            values = {A: self.level(100 if day < 12 else 106)}
            if other and day not in gaps:
                values[B] = self.level(50)
            self.add(values, day, lambda document, day=day: document["context"]["skbench"]["fingerprint"]["condition"]
                     .update(kernel="6.1" if day < 12 else "6.2"))


class Series(Case):
    def test_a_step_with_its_range_and_environment(self):
        self.steps()
        report = self.examine()
        change, = self.series(report)["changes"]
        self.assertEqual((change["kind"], change["direction"]), ("step", "worse"))
        self.assertEqual((int(change["last_before"]["revision"], 16), int(change["first_after"]["revision"], 16)), (11, 12))
        self.assertEqual(change["environment"], ["kernel: 6.1 to 6.2"])
        self.assertAlmostEqual(change["ratio"], 1.06, delta=0.005)
        self.assertEqual(self.series(report, B)["changes"], [])
        text = " ".join(" ".join(history.text(report)).split())
        self.assertIn("step, worse: 100 ns -> 106 ns", text)
        self.assertIn("after 0000000 (2024-01-12), up to 0000000 (2024-01-13)", text)
        self.assertIn("there changed kernel: 6.1 to 6.2", text)
        self.assertNotIn(B, text)

    def test_gaps_are_per_metric(self):
        self.steps(other=False)
        alone = self.series(self.examine())
        for path in (self.path / "m").iterdir():
            path.unlink()
        self.rng = random.Random(SEED)
        # The same A, and B with gaps; B's values come from another generator so that A's stay.
        level, own = self.level, random.Random(1)
        for day in range(20):
            values = {A: level(100 if day < 12 else 106)}
            if day % 3:
                values[B] = 50 * own.lognormvariate(0, 0.002)
            self.add(values, day)
        both = self.series(self.examine())
        for change in alone["changes"] + both["changes"]:
            change["environment"] = None
        self.assertEqual([{key: change[key] for key in ("ratio", "p", "old", "new")} for change in alone["changes"]],
                         [{key: change[key] for key in ("ratio", "p", "old", "new")} for change in both["changes"]])
        self.assertEqual(len(self.series(self.examine(), B)["points"]), 13)

    def test_machines_are_apart_and_ratios_are_not(self):
        def moved(document):
            document["context"]["skbench"]["fingerprint"].update(fp8="0" * 8)
        for day in range(6):
            self.add({A: 100.0}, day, moved if day % 2 else None)
        self.assertEqual(sorted(len(entry["points"]) for entry in self.examine()["series"]), [3, 3])
        for path in (self.path / "m").iterdir():
            path.unlink()
        for day in range(4):
            document = cs.made("--filter", "frags:16.*complete:same.*slub")
            document["context"]["date"] = f"2024-02-0{day + 1}T00:00:00+00:00"
            if day % 2:
                moved(document)
            cs.write(self.path / "m" / f"{day}.json", document)
        ratios = [entry for entry in self.examine()["series"] if entry["metric"] == "ratio"]
        self.assertEqual([(entry["machine"], len(entry["points"])) for entry in ratios], [("all machines", 4)])

    def test_busy_sessions_are_left_out(self):
        def busy(document):
            document["context"]["skbench"]["fingerprint"]["condition"]["other_cpu_share"] = 0.5
        for day in range(6):
            self.add({A: 100.0}, day, busy if day < 4 else None)
        report = self.examine()
        self.assertEqual((report["points_chosen"], report["points_busy"]), (2, 4))
        self.assertEqual(self.examine(busy=True)["points_chosen"], 6)

    def test_too_few_points_are_said(self):
        for day in range(5):
            self.add({A: self.level(100)}, day)
        self.assertIn("1 of 1 series have fewer than 14 points", " ".join(" ".join(history.text(self.examine())).split()))

    def test_pending(self):
        for day in range(18):
            self.add({A: self.level(100 if day < 15 else 110)}, day)
        report = self.examine()
        self.assertEqual((self.series(report)["changes"], self.series(report)["pending"]), ([], 3))
        self.assertIn("pending: the last 3 points lie beyond 3 %", "\n".join(history.text(report)))

    def test_what_cannot_be_read_is_told(self):
        self.add({A: 100.0}, 0)
        (self.path / "m" / "cut.json").write_text('{"context": {')
        (self.path / "m" / "report.json").write_text('[{"name": "a test"}]')
        report = self.examine()
        self.assertEqual((report["runs"], list(report["unreadable"])), (1, ["m/cut.json"]))
        self.assertIn("truncated at byte 13", "\n".join(history.text(report)))


class TheIndex(Case):
    def open(self):
        return history.Index(self.path, self.path / history.INDEX)

    def points(self, index):
        return list(index.points())

    def test_it_follows_the_files(self):
        first = self.add({A: 100.0}, 0)
        self.add({A: 101.0}, 1)
        index = self.open()
        self.assertEqual((index.changed, len(self.points(index))), (2, 2))
        index.close()
        self.add({A: 102.0}, 2)
        first.unlink()
        index = self.open()
        self.assertEqual((index.changed, [point[3] for point in self.points(index)]), (1, [101.0, 102.0]))
        index.close()
        self.assertEqual(self.open().changed, 0)

    def test_it_can_be_made_anew_at_any_time(self):
        for day in range(3):
            self.add({A: 100.0 + day}, day)
        index = self.open()
        before = self.points(index)
        index.close()
        database = self.path / history.INDEX
        for broken in (None, b"this is no database, but long enough to look like one" * 30):
            if broken is None:
                database.unlink()
            else:
                database.write_bytes(broken)
            index = self.open()
            self.assertEqual(self.points(index), before)
            index.close()
        with sqlite3.connect(database) as db:
            db.execute("PRAGMA user_version = 99")
        db.close()
        index = self.open()
        self.assertEqual((index.changed, self.points(index)), (3, before))
        index.close()


class CommandLine(Case):
    def setUp(self):
        super().setUp()
        self.tree = cs.Tree()
        self.addCleanup(self.tree.close)

    def test_window_and_selection(self):
        for day in range(12):
            self.add({A: 100.0}, day)
        status, out, err = self.tree.run("history", self.path, "--since", "2026-01-01")
        self.assertEqual((status, out, err), (2, "", "skbench: 0 of 12 points in the window, newest is 2024-01-12\n"))
        status, out, _ = self.tree.run("history", self.path, "--since", "2024-01-05", "--all")
        self.assertEqual(status, 0)
        self.assertIn("8 of 12 points in the window", out)
        self.assertEqual(self.tree.run("history", self.path)[0], 0)
        for args, pattern in ((("--case", "zzz"), "no case matches --case zzz"), (("--since", "soon"), "a day as in"),
                              (("--case", "("), "not a regular expression")):
            status, _, err = self.tree.run("history", self.path, *args)
            self.assertEqual((status, err.count("\n")), (2, 1))
            self.assertIn(pattern, err)
        self.assertFalse((self.path / "history.db").exists())

    def test_no_results(self):
        status, _, err = self.tree.run("history")
        self.assertEqual(status, 2)
        self.assertIn("there is no such directory", err)
        status, _, err = self.tree.run("history", self.path)
        self.assertIn("there is no result file in it", err)

    def test_the_default_directory_has_the_index(self):
        self.steps()
        (self.path / "m").rename(self.tree.root / "out")
        status, out, err = self.tree.run("history", "--json", "-")
        report = json.loads(out)
        self.assertEqual((status, report["schema"], report["runs"]), (0, "skbench-history-1", 20))
        self.assertIn("step, worse", err)
        self.assertTrue((self.tree.root / "out" / "history.db").is_file())
        (self.tree.root / "results" / "aliases.txt").write_text(f"{A} skb/renamed/x:1\n")
        self.assertIn("skb/renamed/x:1", self.tree.run("history", "--case", "renamed")[1])


class Dates(unittest.TestCase):
    def test_utc(self):
        self.assertEqual(history.utc("2024-01-01T01:30:00+02:00"), "2023-12-31T23:30:00Z")
        self.assertEqual(history.utc("2024-01-01T01:30:00"), "2024-01-01T01:30:00Z")
        for wrong in ("yesterday", None, ""):
            with self.assertRaises(errors.UserError):
                history.utc(wrong)


if __name__ == "__main__":
    unittest.main()
