# SPDX-License-Identifier: MIT
"""The op ledger's command, on a bench program made of a few lines."""

import argparse
import contextlib
import csv
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from skbench_lib import casefile, ledger  # noqa: E402
from skbench_lib.errors import UserError  # noqa: E402

# Counts 2 gets a frag; SPOIL in the environment makes one count differ, adds a phase, or dies.
FAKE = """#!/usr/bin/python3
import json, os, sys
name = sys.argv[1].removeprefix("--skb_ledger=")
spoil = os.environ.get("SPOIL", "")
if spoil == "crash":
    os.abort()
if spoil == "check":
    print("the check failed", file=sys.stderr)
    sys.exit(5)
if spoil == "machine":
    print("needs two nodes", file=sys.stderr)
    sys.exit(4)
if spoil == "text":
    print("no JSON")
    sys.exit(0)
frags = int(name.split("frags:")[1].split("/")[0])
columns = %r
row = dict.fromkeys(columns, 0)
row.update(page_get=2 * frags, rmw=2 * frags, rmw_page=2 * frags)
rows = [{"phase": "life", **row}, {"phase": "partial_ack", **row}]
if spoil == "count" and frags == 2:
    rows[0]["page_get"] += 1
if spoil == "phase" and frags == 2:
    rows[0]["phase"] = "live"
if spoil == "column":
    del rows[0]["lock"]
if spoil == "unknown":
    rows[0]["locks"] = 1
print(json.dumps({"name": name + "/alloc:slub", "rows": rows}))
"""


class Expansion(unittest.TestCase):
    def test_alternatives(self):
        self.assertEqual(casefile.expand("tcp/trim/era:{3.4,6.12}/frags:{2,16}"),
                         ["tcp/trim/era:3.4/frags:2", "tcp/trim/era:3.4/frags:16",
                          "tcp/trim/era:6.12/frags:2", "tcp/trim/era:6.12/frags:16"])
        self.assertEqual(casefile.expand("skb/clone"), ["skb/clone"])

    def test_bad_braces(self):
        for name in ("a/{b", "a/b}", "a/{b,}", "a/{}", "a/{b,{c,d}"):
            with self.subTest(name), self.assertRaises(UserError):
                casefile.expand(name)

    def test_value(self):
        self.assertEqual(casefile.value("tcp/trim/era:3.4/frags:16#life", "frags"), "16")
        self.assertEqual(casefile.value("tcp/trim/era:3.4#life", "era"), "3.4")
        self.assertEqual(casefile.value("tcp/trim/xera:3.4", "era"), "-")


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.directory = self.root / "results" / "ledger"
        self.directory.mkdir(parents=True)
        self.cases("tcp/trim/era:6.12/variant:eager/frags:{2,16}  # two\n\nskb/clone/frags:1\n")
        self.bench = self.root / "bench"
        self.bench.write_text(FAKE % ledger.COUNTS)
        self.bench.chmod(0o755)
        for name, value in (("repo_root", lambda: self.root), ("ensure_built", lambda preset: None),
                            ("bench_binary", lambda name, traced: self.bench)):
            patch = mock.patch.object(ledger, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def cases(self, text):
        (self.directory / "cases.txt").write_text("# SPDX-License-Identifier: MIT\n" + text)

    def run_it(self, *words, spoil=""):
        """(status, standard output) of `skbench ledger WORDS`."""
        parser = argparse.ArgumentParser()
        ledger.add_parser(parser.add_subparsers())
        out = io.StringIO()
        with contextlib.redirect_stdout(out), mock.patch.dict(os.environ, {"SPOIL": spoil}):
            args = parser.parse_args(["ledger", *words])
            status = args.func(args)
        return status, out.getvalue()

    def test_write_then_check(self):
        status, _ = self.run_it("--write")
        self.assertEqual(status, 0)
        with open(self.directory / "tcp.csv", newline="") as source:
            rows = list(csv.reader(source))
        self.assertEqual(rows[0], "case variant era frags page_get page_put page_alloc page_free rmw obj_alloc obj_free "
                         "bytes_copied lock rmw_page rmw_dataref rmw_fclone rmw_users rmw_wmem rmw_ext rmw_llist "
                         "rmw_slab rmw_uarg rmw_mem lock_zone lock_pcp shared_stores".split())
        self.assertEqual(rows[1][:5], ["tcp/trim/era:6.12/variant:eager/frags:2/alloc:slub#life", "eager", "6.12", "2",
                                       "4"])
        self.assertEqual(len(rows), 1 + 2 * 2)
        with open(self.directory / "skb.csv", newline="") as source:
            self.assertEqual(list(csv.reader(source))[1][1:4], ["-", "-", "1"])
        status, text = self.run_it("--check")
        self.assertEqual((status, text), (0, "ledger: 6 rows of 3 cases, 0 differences\n"))
        self.assertEqual([p.name for p in self.directory.iterdir() if p.name.startswith(".")], [])

    def test_a_difference_names_case_column_and_both_counts(self):
        self.run_it("--write")
        status, text = self.run_it("--check", spoil="count")
        self.assertEqual(status, 1)
        self.assertIn("tcp/trim/era:6.12/variant:eager/frags:2/alloc:slub#life: page_get stored 4, counted 5\n", text)
        self.assertIn("6 rows of 3 cases, 1 difference\n", text)

    def test_missing_and_new_rows_are_named(self):
        self.run_it("--write")
        status, text = self.run_it("--check", spoil="phase")
        self.assertEqual(status, 1)
        self.assertIn("frags:2/alloc:slub#live: new, not stored", text)
        self.assertIn("frags:2/alloc:slub#life: stored, but not counted any more", text)

    def test_nothing_stored_is_a_difference(self):
        status, text = self.run_it("--check")
        self.assertEqual(status, 1)
        self.assertEqual(text.count("new, not stored"), 6)

    def test_a_family_that_is_gone_loses_its_file(self):
        self.run_it("--write")
        self.cases("skb/clone/frags:1\n")
        self.run_it("--write")
        self.assertEqual(sorted(p.name for p in self.directory.glob("*.csv")), ["skb.csv"])

    def test_json(self):
        self.run_it("--write")
        with contextlib.redirect_stderr(io.StringIO()):
            status, text = self.run_it("--check", "--json", "-", spoil="count")
        report = json.loads(text)
        self.assertEqual((status, report["status"]), (1, 1))
        self.assertEqual(len(report["rows"]), 6)
        self.assertEqual(report["differences"], [
            {"case": "tcp/trim/era:6.12/variant:eager/frags:2/alloc:slub#life", "column": "page_get", "stored": 4,
             "counted": 5}])

    def test_the_table_fits_80_columns(self):
        self.cases("tcp/trim/" + "/".join(f"keyword{n}:value" for n in range(9)) + "/frags:16\n")
        status, text = self.run_it()
        self.assertEqual(status, 0)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn("partial_ack", text)

    def test_a_case_that_does_not_count(self):
        for spoil, status, words in (("crash", 5, "SIGABRT"), ("check", 5, "the check failed"),
                                     ("machine", 4, "needs two nodes"), ("text", 5, "JSON"), ("column", 5, "lock"),
                                     ("unknown", 5, "unknown column locks")):
            with self.subTest(spoil), self.assertRaises(UserError) as raised:
                self.run_it(spoil=spoil)
            self.assertEqual(raised.exception.status, status)
            self.assertIn(words, str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))

    def test_broken_input(self):
        for text in ("", "no-slash\n", "a b/c\n", "skb/x/frags:1\nskb/x/frags:{1,2}\n", "skb/{x\n"):
            self.cases(text)
            with self.subTest(text), self.assertRaises(UserError) as raised:
                self.run_it()
            self.assertEqual(raised.exception.status, 2)

    def test_broken_store(self):
        self.run_it("--write")
        good = (self.directory / "tcp.csv").read_text()
        head, first, rest = good.split("\n", 2)
        for text in ("", "case,x\n", good.replace(",4,", ",four,", 1), good + first + "\n", f"{head}\n{first},9\n{rest}"):
            (self.directory / "tcp.csv").write_text(text)
            with self.subTest(text[:40]), self.assertRaises(UserError) as raised:
                self.run_it("--check")
            self.assertEqual(raised.exception.status, 2)


if __name__ == "__main__":
    unittest.main()
