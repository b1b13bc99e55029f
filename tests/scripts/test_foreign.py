# SPDX-License-Identifier: MIT
"""Result files of Google Benchmark as other people's tools have met them, each with the answer that is right."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import support
from skbench_lib import compare, compare_report, foreign, results, sides, table

CONTEXT = {"date": "2026-01-02T03:04:05+00:00", "num_cpus": 4, "mhz_per_cpu": 2800, "library_build_type": "release"}


def rows(name, values, unit="ns", **more):
    return [{"name": name, "run_name": name, "run_type": "iteration", "repetitions": len(values),
             "repetition_index": index, "threads": 1, "iterations": 1000, "real_time": value, "cpu_time": value,
             "time_unit": unit, **more} for index, value in enumerate(values)]


def error(name, index=0, **more):
    return {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": index,
            "threads": 1, "error_occurred": True, "error_message": "no device", "iterations": 0, "real_time": 0,
            "cpu_time": 0, "time_unit": "ns", **more}


def aggregate(name, kind, value, unit="ns"):
    return {"name": f"{name}_{kind}", "run_name": name, "run_type": "aggregate", "aggregate_name": kind,
            "aggregate_unit": "percentage" if kind == "cv" else "time", "iterations": 9, "real_time": value,
            "cpu_time": value, "time_unit": unit}


class Foreign(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="skbench-foreign-")
        self.addCleanup(self.temporary.cleanup)
        self.path = pathlib.Path(self.temporary.name)
        self.count = 0

    def file(self, *lists, context=None, data=None):
        """A file with the rows of all LISTS, or with DATA (bytes, or text)."""
        self.count += 1
        path = self.path / f"r{self.count}.json"
        if data is None:
            data = json.dumps({"context": CONTEXT if context is None else context,
                               "benchmarks": [row for part in lists for row in part]})
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return path

    def report(self, base, new, **how):
        report = compare.judge(sides.load(base), sides.load(new), **how)
        for line in compare_report.text(report, True):
            self.assertLessEqual(table.width(line), 80, line)
        results.text_of(report)  # no NaN in it
        return report

    def row(self, report, name):
        return next(entry for entry in report["rows"] if entry["case"] == name)

    def text(self, report):
        return " ".join(" ".join(compare_report.text(report, True)).split())

    def refused(self, data, pattern, status=2):
        """DATA is broken input, in one sentence with the file's name, from the command line too."""
        path = self.file(data=data)
        with self.assertRaisesRegex(results.Invalid, pattern) as caught:
            sides.load(path)
        self.assertTrue(str(caught.exception).startswith(str(path)))
        self.assertEqual(caught.exception.status, status)
        return str(caught.exception)

    def entries(self, *entries):
        return json.dumps({"context": {}, "benchmarks": list(entries)})

    # 57
    def test_failed_rows_have_no_ratio(self):
        good, bad = rows("A", [10.0]) + rows("B", [20.0]), [error("A")] + rows("B", [20.0])
        for base, new, where in ((good, bad, "failed in new"), (bad, good, "failed in baseline"),
                                 (bad, bad, "failed in both")):
            report = self.report(self.file(base), self.file(new))
            entry = self.row(report, "A")
            self.assertEqual(entry["verdict"], "failed")
            self.assertIn(where, entry["reason"])
            self.assertIsNone(entry["ratio"])
            self.assertEqual((report["geomean"]["used"], report["geomean"]["matched"], report["exit_status"]), (1, 2, 5))
            self.assertIn("1 of 2 matched cases used", self.text(report))

    # 58
    def test_failed_repetitions_are_left_out(self):
        good = rows("A", [float(v) for v in range(10, 19)])
        part = [error("A", 0)] + rows("A", [float(v) for v in range(11, 19)])
        report = self.report(self.file(good), self.file(part))
        entry = self.row(report, "A")
        self.assertEqual((entry["base"]["n"], entry["new"]["n"]), (9, 8))
        self.assertIn("new: repetition 0 failed: no device", entry["warnings"])
        self.assertLess(entry["p"], 1)
        report = self.report(self.file(good), self.file([error("A", index) for index in range(9)]))
        self.assertIn("no data: 9 of 9 repetitions failed", self.row(report, "A")["reason"])

    def test_a_skipped_case_is_no_failure(self):
        skipped = [{"name": "A", "run_type": "iteration", "skipped": True, "skip_message": "no PMU"}]
        report = self.report(self.file(rows("A", [1.0] * 9)), self.file(skipped))
        self.assertEqual((self.row(report, "A")["verdict"], report["exit_status"]), ("skipped", 0))

    # 59
    def test_rows_without_a_time(self):
        more = [{"name": "A_BigO", "run_name": "A", "run_type": "aggregate", "aggregate_name": "BigO",
                 "cpu_coefficient": 1.5, "real_coefficient": 1.5, "big_o": "N", "time_unit": "ns"},
                {"name": "A_RMS", "run_name": "A", "run_type": "aggregate", "aggregate_name": "RMS", "rms": 0.1},
                {"name": "C", "run_type": "iteration", "error_occurred": True}]
        for base, new in ((more, []), ([], more), (more, more)):
            report = self.report(self.file(rows("A", [10.0] * 9), base), self.file(rows("A", [10.0] * 9), new))
            self.assertEqual(self.row(report, "A")["verdict"], "equivalent")
            for side, part in (("base", base), ("new", new)):
                self.assertEqual(len(report[side]["rejected"]), len(part))
                self.assertTrue(all("not comparable: no time" in text for text in report[side]["rejected"]))

    # 60
    def test_units_are_converted(self):
        report = self.report(self.file(rows("A", [10.0] * 9)), self.file(rows("A", [0.012] * 9, "us")))
        self.assertAlmostEqual(self.row(report, "A")["ratio"], 1.2)
        mixed = self.file(rows("A", [10.0]), rows("A", [0.012], "us"))
        self.assertEqual([round(v, 9) for v in sides.load(mixed).cases["A"].values], [10.0, 12.0])
        for unit in ("min", "NS", "", None, 3):
            self.refused(self.entries(*rows("A", [10.0], unit)), r"benchmarks\[0\]: 'time_unit': expected .* for A, is ")
        lacking = rows("A", [10.0])[0]
        del lacking["time_unit"]
        self.refused(self.entries(lacking), r"'time_unit'.* for A, is missing")

    # 63
    def test_unequal_repetitions(self):
        few, many = self.file(rows("A", [10.0, 11, 12])), self.file(rows("A", [float(v) for v in range(10, 19)]))
        entry = self.row(self.report(few, many), "A")
        self.assertEqual((entry["base"]["median"], entry["new"]["median"]), (11, 14))
        self.assertEqual((entry["base"]["n"], entry["new"]["n"], entry["verdict"]), (3, 9, "inconclusive"))
        self.assertIn("few repetitions: 3 against 9", entry["reason"])
        entry = self.row(self.report(self.file(rows("A", [10.0])), few), "A")
        self.assertIsNone(entry["lo"])
        self.assertIn("no interval", entry["reason"])
        one = self.entries(*rows("A", [10.0]))
        self.refused(one + one, f"more than one JSON document, second starts at byte {len(one)}$")

    # 64
    def test_p_of_zero_is_significant(self):
        base = self.file(rows("A", [10 + i / 1000 for i in range(40)]))
        report = self.report(base, self.file(rows("A", [20 + i / 1000 for i in range(40)])))
        self.assertIn("p <1e-6", self.text(report))
        self.assertEqual((report["exit_status"], self.row(report, "A")["fails"]), (1, True))
        report = self.report(self.file(rows("A", [7.0] * 9)), self.file(rows("A", [7.0] * 9)))
        self.assertEqual((self.row(report, "A")["p"], self.row(report, "A")["verdict"]), (1.0, "equivalent"))

    # 66
    def test_what_is_not_finite(self):
        for token in ("nan", "-nan", "inf", "-inf"):
            self.refused('{"benchmarks": [\n{"name": "A", "real_time": %s}]}' % token, r"not JSON at line 2, column \d+")
        text = json.dumps({"context": {}, "benchmarks": rows("A", [float(v) for v in range(1, 10)]) + rows("B", [5.0] * 9)})
        for token in ("NaN", "Infinity", "-Infinity", "1e400"):
            path = self.file(data=text.replace('"real_time": 1.0', f'"real_time": {token}'))
            side = sides.load(path)
            self.assertEqual((len(side.cases["A"].values), len(side.cases["B"].values)), (8, 9))
            self.assertEqual(side.rejected, ["A: non-finite real_time"])
            self.assertNotIn("NaN", compare_report.junit(self.report(path, path)))
        path = self.file(data=self.entries(*rows("A", [1.0])).replace('"real_time": 1.0', '"real_time": NaN'))
        self.assertEqual(self.row(self.report(path, path), "A")["verdict"], "no time")
        extra = rows("A", [5.0] * 9, min=9223372036854776.0, count=10)
        self.assertEqual(self.row(self.report(self.file(extra), self.file(extra)), "A")["verdict"], "equivalent")

    # 67
    def test_numbers_of_a_locale(self):
        text = self.entries(*rows("A", [10.0]))
        for good, bad in (('"iterations": 1000', '"iterations": 1,000,000'), ('"real_time": 10.0', '"real_time": 10,0')):
            self.assertIn(good, text)
            self.refused(text.replace(good, bad), r"not JSON at line 1, column \d+.*locale")

    # 69
    def test_cut_and_empty_files(self):
        self.refused(b"", "file is empty")
        text = json.dumps({"context": {}, "benchmarks": rows("A", [10.25]) + rows("B", [20.5])})
        for cut in (text.index("10.25") + 3, text.index('"run_name"') + 4, text.index("}, {") + 2, len(text) - 1):
            self.refused(text[:cut], f"truncated at byte {cut}$")

    # 70
    def test_aggregates_only(self):
        base = [aggregate("A", "mean", 10), aggregate("A", "median", 10), aggregate("A", "stddev", 0), aggregate("A", "cv", 0)]
        new = [aggregate("A", "mean", 11), aggregate("A", "median", 11), aggregate("A", "stddev", 1), aggregate("A", "cv", 0.09)]
        report = self.report(self.file(base), self.file(new))
        self.assertEqual(len(report["rows"]), 1)
        entry = self.row(report, "A")
        self.assertAlmostEqual(entry["ratio"], 1.1)
        self.assertEqual(entry["verdict"], "inconclusive")
        self.assertIn("aggregates only: no test possible", entry["reason"])
        self.assertIn("mean +10.00 %", entry["reason"])
        self.assertEqual((entry["base"]["stddev_percent"], entry["new"]["stddev_percent"]), (0, 9))
        self.assertNotIn("+200", self.text(report))

    def test_old_aggregates_do_not_say_what_they_are(self):
        old = [{"name": f"A_{kind}", "iterations": 1000000, "real_time": value, "time_unit": "ns"}
               for kind, value in (("mean", 10), ("median", 10), ("stddev", 1))]
        alone = [{"name": "B_mean", "iterations": 10, "real_time": 3, "time_unit": "ns"}]
        side = sides.load(self.file(old, alone))
        self.assertEqual(set(side.cases), {"A", "B_mean"})
        self.assertEqual((side.cases["A"].aggregates["median"], side.cases["B_mean"].values), (10, [3]))

    # 71
    def test_thread_times_changed_their_meaning(self):
        name = "sleep/real_time/threads:4"
        base = self.file(rows(name, [250033026.0 + i for i in range(9)], threads=4), rows("one", [5.0] * 9),
                         context={**CONTEXT, "library_version": "v1.8.4", "json_schema_version": 1})
        new = self.file(rows(name, [1000130917.0 + i for i in range(9)], threads=4), rows("one", [5.0] * 9),
                        context={**CONTEXT, "library_version": "v1.9.0", "json_schema_version": 1})
        report = self.report(base, new)
        entry = self.row(report, name)
        self.assertEqual((entry["verdict"], report["exit_status"]), ("not comparable", 0))
        self.assertRegex(entry["reason"], r"definition changed.*ratio 4\.00, 4 threads")
        self.assertEqual(self.row(report, "one")["verdict"], "equivalent")
        self.assertEqual(self.row(self.report(new, new), name)["verdict"], "equivalent")
        report = self.report(self.file(rows("a/threads:4", [1.0] * 9)), self.file(rows("a/real_time/threads:4", [1.0] * 9)))
        self.assertEqual({entry["verdict"] for entry in report["rows"]}, {"missing", "new"})
        self.assertEqual(foreign.time_rule(None), foreign.OLD_RULE)

    # 73
    def test_schema_versions(self):
        good = rows("A", [7.0] * 9, extra={"x": [1]})
        for context in ({**CONTEXT, "json_schema_version": 1, "more": None}, CONTEXT):
            self.assertEqual(len(sides.load(self.file(good, context=context)).cases["A"].values), 9)
        self.refused(json.dumps({"context": {"json_schema_version": 2}, "benchmarks": []}),
                     "json_schema_version 2, this skbench reads 1")
        for wrong in ("1", 1.5, True):
            self.refused(json.dumps({"context": {"json_schema_version": wrong}, "benchmarks": []}), "expected integer, is")
        bare = [{"name": "A", "real_time": 5, "time_unit": "ns", "iterations": 3}]
        self.assertEqual(sides.load(self.file(bare)).cases["A"].values, [5])

    # 74
    def test_names_in_any_script(self):
        name = "copy/\u00b5s/\u00e9/\u65e5\u672c"
        document = {"context": CONTEXT, "benchmarks": rows(name, [7.0] * 9)}
        plain = self.file(data=json.dumps(document, ensure_ascii=False))
        escaped = self.file(data=json.dumps(document))
        marked = self.file(data=b"\xef\xbb\xbf" + json.dumps(document).encode())
        self.assertEqual(len(self.report(plain, escaped)["rows"]), 1)
        self.assertEqual(self.row(self.report(marked, plain), name)["verdict"], "equivalent")
        latin = json.dumps({"context": {}, "benchmarks": rows("\u00e9", [7.0])}, ensure_ascii=False).encode("latin-1")
        self.refused(latin, f"not UTF-8 at byte {latin.index(0xe9)}$")
        said = set()
        for locale in ("C", "C.UTF-8", "POSIX"):
            done = subprocess.run([support.PYTHON, "-m", "skbench_lib", "compare", "--all", plain, escaped],
                                  cwd=support.ROOT / "scripts", env={**os.environ, "LC_ALL": locale}, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            said.add(done.stdout)
        self.assertEqual(len(said), 1)
        self.assertIn(name, said.pop().decode())

    # 75
    def test_iterations_are_exact(self):
        reader = foreign.Reader.iterations
        for good in (4294967296, 48000000000, 2 ** 63, 2 ** 64 - 1, 1e9, (1 << 53) + 1, 0):
            self.assertIsNone(reader({"iterations": good}), good)
        for bad in (1.5, -1, 2 ** 64, "10", True, float("nan")):
            self.assertIn("iterations", reader({"iterations": bad}))
        text = self.entries(*rows("A", [5.0, 6.0]))
        path = self.file(data=text.replace('"iterations": 1000', '"iterations": 1.5', 1))
        side = sides.load(path)
        self.assertEqual(side.cases["A"].values, [6.0])
        self.assertRegex(side.rejected[0], "A: iterations: expected an integer, is 1.5")
        self.assertEqual(foreign.parse(b"[9007199254740993]", "x"), [9007199254740993])

    # 76
    def test_shapes(self):
        self.refused('{"context": {}}', "'benchmarks' is missing, expected array")
        self.refused("[1, 2]", "expected an object with 'benchmarks', is array")
        self.refused('{"benchmarks": {}}', "'benchmarks': expected array, is object")
        self.refused('{"context": 3, "benchmarks": []}', "'context': expected object")
        self.refused('{"benchmarks": [7]}', r"benchmarks\[0\]: expected object, is integer")
        first, second = rows("A", [1.0])[0], rows("B", [1.0])[0]
        nameless = dict(second)
        del nameless["name"]
        self.refused(self.entries(first, nameless), r"benchmarks\[1\]: 'name': expected .*, is missing")
        for value, kind in (("10", "string"), (None, "null"), (True, "boolean"), (-0.001, "number"), ([], "array")):
            self.refused(self.entries(first, {**second, "real_time": value}),
                         rf"benchmarks\[1\]: 'real_time': expected a number.*, is {kind}")
        self.assertEqual(sides.load(self.file([{**first, "real_time": -0.0}])).cases["A"].values, [0.0])
        self.refused(self.entries(first).replace('"real_time": 1.0', '"real_time": 1.0, "real_time": 9.9'),
                     r"benchmarks\[0\]: key 'real_time' stands twice")

    # 77
    def test_iterations_of_aggregates_are_no_weight(self):
        old = [{**aggregate("A", "mean", 10), "iterations": 1000000}, aggregate("A", "median", 10)]
        new = [aggregate("A", "mean", 10), aggregate("A", "median", 10)]
        entry = self.row(self.report(self.file(old), self.file(new)), "A")
        self.assertEqual((entry["base"], entry["ratio"]), (entry["new"], 1.0))
        self.assertIsNone(entry["base"]["n"])

    # 78
    def test_figures(self):
        hundred = self.file(rows("A", [100.0] * 9))
        self.assertIn("0.00 % [0.00, 0.00] (all equal)", self.text(self.report(hundred, hundred)))
        text = self.text(self.report(hundred, self.file(rows("A", [100.0001] * 9))))
        self.assertIn(" +0.00 % ", text)
        self.assertNotIn("all equal", text)
        self.assertEqual([compare_report.time_text(t) for t in (1464, 1164383, 0.5, 999.9, 2e9, 0)],
                         ["1.46 us", "1.16 ms", "0.500 ns", "1.00 us", "2.00 s", "0 ns"])

    # 79
    def test_no_mean_where_there_is_none(self):
        base, new = rows("A", [0.0] * 9) + rows("B", [5.0] * 9), rows("A", [1.0] * 9) + rows("B", [5.0] * 9)
        for one, other in ((base, new), (new, base)):
            report = self.report(self.file(one), self.file(other))
            self.assertEqual((report["geomean"]["ratio"], report["exit_status"]), (None, 0))
            self.assertIn("geometric mean: none, A took 0", self.text(report))
        report = self.report(self.file(rows("B", [5.0] * 9)), self.file(rows("B", [5.0] * 9), rows("C", [5.0] * 9)))
        self.assertEqual((self.row(report, "C")["verdict"], report["exit_status"]), ("new", 0))
        self.assertEqual(report["geomean"]["matched"], 1)
        with self.assertRaisesRegex(compare.UserError, "nothing.json: No such file"):
            sides.load(self.path / "nothing.json")

    # 80
    def test_other_formats_are_refused_in_a_line(self):
        self.refused("BenchmarkFoo\nBenchmarkFoo-8  100  12 ns/op\n", r"not JSON at line 1, column 1")

    # 84
    def test_machines_differ(self):
        steps = {"base": rows("A", [100.0 + i / 5 for i in range(10)]), "step": rows("A", [110.0 + i / 5 for i in range(10)]),
                 "outlier": rows("A", [100.0 + i / 5 for i in range(9)] + [250.0])}
        base = self.file(steps["base"])
        other = self.file(steps["step"], context={**CONTEXT, "num_cpus": 2, "mhz_per_cpu": 3600})
        report = self.report(base, other)
        self.assertEqual((report["differing_identity"], report["exit_status"]), (["num_cpus", "mhz_per_cpu"], 4))
        self.assertIn("not the same machine", self.text(report))
        self.assertEqual({entry["verdict"] for entry in report["rows"]}, {"not comparable"})
        self.assertIsNone(self.row(report, "A")["ratio"])
        forced = self.report(base, other, force=True)
        self.assertEqual((self.row(forced, "A")["verdict"], forced["exit_status"]), ("not comparable", 0))
        self.assertIn("differs in num_cpus", self.row(forced, "A")["reason"])
        self.assertAlmostEqual(self.row(forced, "A")["ratio"], 1.1, 2)
        report = self.report(base, self.file(steps["step"], context={**CONTEXT, "mhz_per_cpu": 2803}))
        self.assertEqual((self.row(report, "A")["verdict"], report["exit_status"]), ("regression", 1))
        report = self.report(base, self.file(steps["outlier"]))
        self.assertNotIn(self.row(report, "A")["verdict"], ("regression", "improvement"))

    def test_what_the_files_lack_is_said(self):
        report = self.report(self.file(rows("A", [7.0] * 9)), self.file(rows("A", [7.0] * 9)))
        for text in ("no fingerprint", "no op ledger", "repetitions are no processes"):
            self.assertIn(text, self.text(report))

    def test_values_threads_and_units(self):
        side = sides.load(self.file(rows("A", [7.0, 8.0]), rows("B/threads:2", [9.0], "ms", threads=2)))
        self.assertEqual({name: case.values for name, case in side.cases.items()}, {"A": [7, 8], "B/threads:2": [9e6]})
        self.assertEqual(side.cases["B/threads:2"].threads, 2)


if __name__ == "__main__":
    unittest.main()
