# SPDX-License-Identifier: MIT
"""`skbench run` and `skbench aa` as processes over the fake binary: results, table, exit statuses, Ctrl-C."""

import argparse
import contextlib
import copy
import csv
import io
import json
import math
import os
import pty
import random
import re
import select
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import support
from skbench_lib import aa, benchbin, results, run, stats, sweep, table
from skbench_lib.mptcp_experiment import FEW, Mptcp

SEED = 2012
QUICK = ("--filter", "frags:16.*complete:same.*slub", "--seed", "1")


def read(path):
    return results.read(path)


def ours(document):
    return document["context"]["skbench"]


slow = unittest.skipIf(os.environ.get("SKBENCH_TEST_QUICK"), "many processes: run scripts/skbench test without --quick")


class Case(unittest.TestCase):
    def fake(self, **plan):
        fake = support.FakeBench(**plan)
        self.addCleanup(fake.temporary.cleanup)
        self.out = fake.path / "r.json"
        return fake

    def narrow(self, text):
        for line in text.splitlines():
            self.assertLessEqual(table.width(line), 80, line)

    def one_line(self, err, pattern):
        self.assertTrue(err.startswith("skbench: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertRegex(err, pattern)


def flat(text):
    """TEXT without its line breaks."""
    return " ".join(text.split())


def quick_document():
    """The result of a run with QUICK, made once."""
    if not hasattr(quick_document, "kept"):
        with support.FakeBench() as fake:
            status, out, err = fake.run("run", *QUICK, "--out", fake.path / "r.json")
            assert status == 0, (out, err)
            quick_document.kept = read(fake.path / "r.json")
    return copy.deepcopy(quick_document.kept)


@slow
class Headline(Case):
    def test_whole(self):
        fake = self.fake(factor=0.95, sigma=0.001)
        # Each cell ends by its width, after ten pairs: the budget is for a machine that others use.
        status, out, err = fake.run("run", "--seed", 7, "--budget", 600, "--out", self.out)
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        document = read(self.out)
        self.assertNotIn("partial", out.lower().replace("partial ack", ""))
        experiments = ours(document)["experiments"]
        cells = 19 if len(os.sched_getaffinity(0)) > 1 else 17
        self.assertEqual(len(experiments), cells)
        for entry in experiments:
            self.assertTrue(entry["lo"] <= entry["ratio"] <= entry["hi"])
            if entry["variant"] in ("psh", "split"):
                self.assertAlmostEqual(entry["ratio"], 1, delta=0.003)
                continue
            self.assertEqual((entry["verdict"], entry["status"]), (stats.IMPROVEMENT, "ok"))
            self.assertAlmostEqual(entry["ratio"], 0.95, delta=0.003)
            payload = 65536 if entry["experiment"] == "mptcp" else 65160
            self.assertAlmostEqual(entry["baseline_value"]["median"], 1000 * 65536 / payload, delta=3)
            self.assertGreaterEqual(entry["pairs"], 10)
            self.assertEqual(ours(document)["plan"]["cases"][0]["n"], 200)
        self.assertTrue(ours(document)["control"]["held"])
        self.assertEqual(ours(document)["exit_status"], 0)
        self.assertFalse(ours(document)["partial"])
        # Those where MPTCP's data never ends have one baseline.
        self.assertEqual(len(ours(document)["ledger"]), 2 * cells - 5)
        # One row for each process that gave a value.
        self.assertEqual(len(document["benchmarks"]), fake.count())
        self.assertIn("A/A control: held", out)
        self.assertIn("16/16/1  51/0", out)
        self.assertIn("0/0/0  19/3", out)
        self.assertEqual(len({line.rindex("/") for line in out.splitlines() if re.match(" +[0-9]+ [eo]", line)}), 1)
        self.assertIn("improvement", out)
        self.assertIn(f"result  {self.out}", out)
        self.assertIn("none yet (skbench baseline save NAME)", out)
        for alloc in ("slub", "jemalloc"):
            self.assertIn(f"era 6.12, {alloc}", out)
        link = [entry for entry in experiments if entry["parameters"]["form"] == "link"]
        self.assertEqual([entry["parameters"]["point"] for entry in link], list(run.TrimLink.points))
        self.assertEqual(link[0]["metric"], "cpu_ns_per_64KB")
        self.assertEqual(out.count("110 us 100 % eager"), 4)
        self.assertEqual([benchbin.split_name(c["case"])[1]["from"] for c in ours(document)["cases"]], ["memory", "none"])
        # About 5 % of 1000 ns for 65160 bytes on each of three paths of equal length; that is 3 % of one of 1.7 us.
        self.assertRegex(flat(out), r"(49|5[01])\.\d ns saved at patch: (4\.[89]\d|5\.[01]\d) % of a path of 10\d\d ns "
                                    r"\(copy from cache\), (4\.[89]\d|5\.[01]\d) % of .* \(copy from memory\), .* \(no copy\)")
        self.assertIn("the claimed 3 % would need a path of 1.", flat(out))
        stream = [entry for entry in experiments if entry["experiment"] == "mptcp"]
        given = [entry for entry in stream if entry["parameters"]["form"] == "stream"]
        self.assertEqual([entry["parameters"]["backlog"] for entry in given], [0, 3, 15, 63])
        self.assertEqual({entry["variant_report"]["skb_bytes"] for entry in given}, {32768.0})
        # The parts stand beside it, with fewer pairs than it may have.
        parts = [entry for entry in stream if entry["parameters"]["form"] == "saturated"]
        self.assertEqual({entry["variant"] for entry in parts}, set(Mptcp.variants))
        self.assertTrue(all(10 <= entry["pairs"] <= FEW for entry in parts))
        for variant in ("before", *Mptcp.variants):
            self.assertRegex(out, rf"(?m)^{variant} +(16384|32768) +(25\.0|50\.1)% +(61\.0|30\.5) ")
        # 1000 ns for 4 sk_buffs in 64 KB, 950 for 2.
        self.assertIn("buffers and copies: 25.", flat(out))
        self.assertNotIn("\x1b", out)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "the experiment has two CPUs")
    def test_defer(self):
        """us a packet, page puts under the lock from the ledger, and what was freed there by site."""
        fake = self.fake(factor=0.95, sigma=0.001)
        status, out, err = fake.run("run", "--filter", "tcp/defer/.*shape:(header|mtu4096)/.*payload:llc", "--variant",
                                    "sk_llist", "--seed", 7, "--budget", 60, "--out", self.out)
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        entries = ours(read(self.out))["experiments"]
        self.assertEqual([entry["parameters"]["shape"] for entry in entries], ["header", "mtu4096"])
        self.assertEqual({entry["variant"] for entry in entries}, {"sk_llist"})
        self.assertEqual(entries[0]["metric"], "wall_ns_per_64KB")
        self.assertAlmostEqual(entries[0]["ratio"], 0.95, delta=0.003)
        rows = [line.split() for line in out.splitlines() if re.match(" *(header|mtu4096)? +(inline|sk_llist) ", line)]
        self.assertEqual([(row[-2], row[-1]) for row in rows], [("45", "0.25/0/1"), ("0", "0.25/0/0")] * 2)
        self.assertRegex(out, r"inline +1(\.00)? ")
        for entry in entries:
            for side in ("baseline", "variant"):
                values = [row["skb"]["value"] for row in read(self.out)["benchmarks"]
                          if row["skb"]["side"] == side and row["skb"]["cell"] == entry["case"]]
                self.assertAlmostEqual(entry[f"{side}_least"] / entry[f"{side}_value"]["median"],
                                       min(values) / stats.median(values), 9)
        self.assertEqual(len(re.findall(r"Gbit/s: inline [\d.]+ \[[\d.]+, [\d.]+\], best [\d.]+; sk_llist ", flat(out))), 2)

    def test_rows_tell_the_pairs(self):
        document = quick_document()
        cell = ours(document)["experiments"][0]
        values = {}
        for row in document["benchmarks"]:
            if row["skb"]["side"] in ("baseline", "variant"):
                values.setdefault(row["skb"]["pair"], {})[row["skb"]["side"]] = row["skb"]["value"]
        self.assertEqual(len(values), cell["pairs"])
        ratio = stats.median([pair["variant"] / pair["baseline"] for pair in values.values()])
        self.assertAlmostEqual(cell["ratio"], ratio, 4)
        by_name = {}
        for row in document["benchmarks"]:
            by_name.setdefault(row["name"], []).append(row)
        for rows in by_name.values():
            self.assertEqual([row["repetition_index"] for row in rows], list(range(len(rows))))
            self.assertEqual({row["repetitions"] for row in rows}, {len(rows)})
        firsts = [row["skb"]["side"] for row in document["benchmarks"] if row["skb"]["first"]]
        self.assertEqual(len(firsts) * 2, len(document["benchmarks"]))

    def test_seed_repeats_the_plan(self):
        plans = []
        for seed in (3, 3, 4):
            fake = self.fake(sigma=0)
            self.assertEqual(fake.run("run", *QUICK[:2], "--seed", seed, "--out", self.out)[0], 0)
            plans.append([(r["name"], r["skb"]["pad"], r["skb"]["first"]) for r in read(self.out)["benchmarks"]])
        self.assertEqual(plans[0], plans[1])
        self.assertNotEqual(plans[0], plans[2])

    def test_options_choose(self):
        fake = self.fake()
        status, out, _ = fake.run("run", "--era", "3.4", "--variant", "offset_ack", "--frags", "5", "--filter",
                                  "forced.*slub", "--cpus", "0", "--out", self.out)
        self.assertEqual(status, 0)
        document = read(self.out)
        self.assertEqual([e["case"] for e in ours(document)["experiments"]],
                         ["tcp/trim/form:forced/era:3.4/frags:5/partial:1/step:1/clone:alive/complete:same/alloc:slub"])
        self.assertEqual(ours(document)["plan"]["cases"][0]["cpus"], [0])
        self.assertIn("era 3.4, slub", out)

    def test_json_alone(self):
        fake = self.fake()
        status, out, err = fake.run("run", *QUICK, "--out", self.out, "--json", "-")
        self.assertEqual(status, 0)
        self.assertEqual(json.loads(out), read(self.out))
        self.assertIn("trim", err)
        status, out, _ = fake.run("run", *QUICK, "--out", fake.path / "b.json", "--json", fake.path / "c.json")
        self.assertEqual(read(fake.path / "b.json"), read(fake.path / "c.json"))
        self.assertIn("trim", out)

    def test_noise_is_inconclusive_and_fails_the_control(self):
        fake = self.fake(sigma=0.3)
        status, out, err = fake.run("run", *QUICK, "--budget", 4, "--out", self.out)
        self.assertEqual((status, err), (3, ""))
        self.narrow(out)
        document = read(self.out)
        self.assertEqual(ours(document)["experiments"][0]["verdict"], stats.INCONCLUSIVE)
        self.assertFalse(ours(document)["control"]["held"])
        self.assertIn("A/A control: FAILED (two equal sides cannot be told apart", flat(out))
        self.assertRegex(flat(out), r"half-width [0-9.]+ %, 0\.300 % needed")

    def test_budget_too_short_for_an_interval(self):
        fake = self.fake(sleep=0.1)
        status, out, _ = fake.run("run", *QUICK, "--budget", 0.8, "--out", self.out)
        self.assertEqual(status, 3)
        entry = ours(read(self.out))["experiments"][0]
        self.assertLess(entry["pairs"], 6)
        self.assertEqual((entry["lo"], entry["verdict"]), (None, stats.INCONCLUSIVE))
        self.assertIn("no interval below 6", flat(out))

    def test_unmeasured_cell(self):
        fake = self.fake(fail={"unmeasured": "all"}, only="frags:17")
        status, out, _ = fake.run("run", "--filter", "frags:1[67].*same.*slub", "--seed", 1, "--out", self.out)
        self.assertEqual(status, 3)
        self.narrow(out)
        lost = ours(read(self.out))["experiments"][1]
        self.assertEqual((lost["status"], lost["ratio"], lost["lost_processes"]), ("unmeasured", None, 15))
        self.assertIn("15 of 15 processes unmeasured, the last: 12 of 100 batches kept", flat(out))

    def test_impossible_everywhere(self):
        fake = self.fake(fail={"impossible": "all"})
        status, out, _ = fake.run("run", *QUICK, "--out", self.out)
        self.assertEqual(status, 4)
        self.assertIn("not possible here: two CPUs are needed, one is there", flat(out))

    def test_crash_writes_what_there_is(self):
        fake = self.fake(fail={"crash": [12]})
        status, out, err = fake.run("run", *QUICK, "--out", self.out)
        self.assertEqual(status, 5)
        self.one_line(err, r"tcp/trim/.*killed by SIGABRT; command: .*--skb_sample=tcp/trim/")
        document = read(self.out)
        self.assertTrue(ours(document)["partial"])
        self.assertIn("SIGABRT", ours(document)["partial_reason"])
        self.assertEqual(len(document["benchmarks"]), 12)
        self.assertIn("PARTIAL: tcp/trim/", flat(out))
        self.narrow(out)

    def test_crash_at_once_writes_nothing(self):
        fake = self.fake(fail={"crash": [0]})
        status, out, err = fake.run("run", *QUICK, "--out", self.out)
        self.assertEqual((status, out), (5, ""))
        self.one_line(err, "SIGABRT")
        self.assertFalse(self.out.exists())


@slow
class Interrupt(Case):
    def interrupted(self, number):
        fake = self.fake(sleep=0.02, sigma=0.5)
        process = fake.start("run", *QUICK, "--out", self.out)
        limit = time.monotonic() + 30
        while fake.count() < 30 and time.monotonic() < limit:
            time.sleep(0.01)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.one_line(err, "interrupted, what was measured is written and marked partial")
        document = read(self.out)
        self.assertEqual((ours(document)["partial"], ours(document)["partial_reason"]), (True, "interrupted"))
        self.assertEqual(ours(document)["exit_status"], 130)
        self.assertGreaterEqual(len(document["benchmarks"]), 20)
        self.assertIn("PARTIAL: interrupted", flat(out))
        self.narrow(out)
        self.assertEqual([entry.name for entry in self.out.parent.iterdir() if entry.name.endswith(".tmp")], [])

    def test_ctrl_c(self):
        self.interrupted(signal.SIGINT)

    def test_sigterm(self):
        self.interrupted(signal.SIGTERM)

    def test_before_the_first_sample(self):
        fake = self.fake(sleep=30)
        process = fake.start("run", *QUICK, "--out", self.out)
        limit = time.monotonic() + 30
        while fake.count() < 1 and time.monotonic() < limit:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out), (130, ""))
        self.one_line(err, "nothing is written")
        self.assertFalse(self.out.exists())

    def test_aa(self):
        fake = self.fake(sleep=0.02)
        process = fake.start("aa", "--duets", 50, "--json", self.out)
        limit = time.monotonic() + 60
        while fake.count() < 60 and time.monotonic() < limit:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        report = json.loads(self.out.read_text())
        self.assertTrue(report["partial"])
        self.assertGreaterEqual(report["pooled"]["aa"]["duets"], 1)


class Refusals(Case):
    def refused(self, pattern, *args, status=2, **plan):
        fake = self.fake(**plan)
        got, out, err = fake.run("run", *args)
        self.assertEqual((got, out), (status, ""), (args, err))
        self.one_line(err, pattern)
        self.assertEqual(fake.count(), 0)

    def test_words(self):
        self.refused("--suite x: one of headline, quick, full is needed", "--suite", "x")
        self.refused("--variant x: one of .*merged, .*offset_ack, .*sk_llist, .* is needed", "--variant", "x")
        self.refused(r"--era 4.4: one of 3.4, 6.1, 6.12 is needed", "--era", "4.4")

    def test_numbers(self):
        for text in ("0", "-1", "abc", "1.5", ""):
            self.refused(f"--frags {text}: an integer is needed, at least 1", f"--frags={text}")
        self.refused("--frags 5: 2, 16 is what there is a case for", "--frags", "5", frags=["2", "16"])
        self.refused("--frags 18: 1 to 17 fit, MAX_SKB_FRAGS of this build", "--frags", "18")
        for text in ("0", "-5", "nan", "inf", "1e9", "soon"):
            self.refused(f"--budget {text}: seconds are needed, more than 0", f"--budget={text}")
        self.refused("--seed -1: an integer is needed", "--seed=-1")

    def test_more_frags_in_a_larger_build(self):
        fake = self.fake(max_skb_frags=45)
        self.assertEqual(fake.run("run", "--frags", 45, "--filter", "same.*slub", "--out", self.out)[0], 0)

    def test_filters(self):
        self.refused("not a regular expression", "--filter", "(")
        self.refused("no case of suite headline matches --filter nothing", "--filter", "nothing")
        self.refused("no case of suite quick matches --filter nothing", "--suite", "quick", "--filter", "nothing")
        self.refused("no case of suite quick matches --era 3.4", "--suite", "quick", "--era", "3.4")

    def test_cpus(self):
        for text in ("", "x", "0-", "3-1", "0,,1", "-1"):
            self.refused("a list as in 0,2-3 is needed", f"--cpus={text}")
        self.refused("CPU 99999 is not among those allowed here: ", "--cpus", "99999")
        self.refused("no CPU may stand twice", "--cpus", "0,0")

    def test_files(self):
        self.refused("/dev/full exists and results are never overwritten", "--out", "/dev/full")
        self.refused("there is no directory /nowhere", "--out", "/nowhere/r.json")
        self.refused("there is no directory /nowhere", "--json", "/nowhere/r.json")
        with tempfile.TemporaryDirectory() as path:
            self.refused("that is --out already", "--out", f"{path}/r.json", "--json", f"{path}/./r.json")

    def test_no_binaries(self):
        fake = self.fake()
        (fake.bin / "bench_tcp_traced").unlink()
        (fake.bin / "bench_tcp").unlink()
        status, _, err = fake.run("run")
        self.assertEqual(status, 4)
        self.one_line(err, "bench_tcp is missing: build the tree again")
        for path in fake.bin.glob("bench_*"):
            path.unlink()
        status, _, err = fake.run("run")
        self.assertEqual(status, 4)
        self.one_line(err, "there is no bench binary")

    def test_aa(self):
        fake = self.fake()
        for args, pattern in ((("--duets", "0"), "--duets 0: an integer is needed, 1 to"),
                              (("--inject", "0"), "--inject 0: percent are needed"),
                              (("--inject", "nan"), "--inject nan: percent"), (("--filter", "zz"), "no case of aa")):
            status, out, err = fake.run("aa", *args)
            self.assertEqual((status, out), (2, ""))
            self.one_line(err, pattern)

    def test_disk_full(self):
        """A result that cannot be written is one line and status 2, and the table has been shown by then."""
        with tempfile.TemporaryDirectory() as path:
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", path], capture_output=True)
            if done.returncode != 0:
                self.skipTest(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
            try:
                fake = self.fake()
                status, out, err = fake.run("run", *QUICK, "--out", f"{path}/r.json")
                self.assertEqual(status, 2)
                self.one_line(err, r"cannot write \S+: the disk is full")
                self.assertIn("improvement", out)
                self.assertEqual(os.listdir(path), [])
            finally:
                subprocess.run(["umount", path], check=True)


class Survey(Case):
    def test_quick(self):
        fake = self.fake(sigma=0.01)
        status, out, err = fake.run("run", "--suite", "quick", "--seed", 1, "--out", self.out)
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        document = read(self.out)
        self.assertEqual([(c["case"], c["value"]["n"]) for c in ours(document)["cases"]],
                         [("skb/clone/frags:0/alloc:slub", 15), ("skb/clone/frags:16/alloc:slub", 15),
                          ("skb/copy/alloc:slub", 15)])
        self.assertIsNone(ours(document)["control"])
        self.assertEqual({row["skb"]["batches"] for row in document["benchmarks"]}, {40})
        self.assertRegex(out, r"frags:16 +\d+ ns/op \[\d+, \d+\] n=15")
        self.assertNotIn(" samples: ", out)
        # A few samples of a case that mostly could not be taken are no result.
        ours(document)["cases"][1].update(status="unmeasured", reason="13 of 25 processes")
        self.assertRegex("\n".join(table.render(document)), r"frags:16 +unmeasured: 13 of 25 processes")

    def test_keys_choose(self):
        fake = self.fake()
        fake.run("run", "--suite", "quick", "--frags", "16", "--out", self.out)
        self.assertEqual([c["case"] for c in ours(read(self.out))["cases"]], ["skb/clone/frags:16/alloc:slub"])

    def test_budget_ends_before_some(self):
        fake = self.fake(sleep=0.1, cases=[f"skb/x/k:{i}" for i in range(50)])
        status, out, _ = fake.run("run", "--suite", "quick", "--budget", 1, "--out", self.out)
        self.assertEqual(status, 3)
        self.narrow(out)
        values = [c["value"] for c in ours(read(self.out))["cases"]]
        self.assertEqual(len(values), 50)
        self.assertIn(None, values)
        self.assertIn("the run ended before it", out)
        self.assertRegex(flat(out), r"50 of 50 cases have 0 to \d of 15 samples: the budget of 1 s was over \(--budget, --f")


class Sweep(Case):
    def test_every_value_and_a_csv(self):
        fake = self.fake(sigma=0.01)
        status, out, err = fake.run("run", "--sweep", "frags=0:3", "--filter", "skb/clone", "--out", self.out)
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        names = [f"skb/clone/frags:{n}/alloc:slub" for n in range(4)]
        self.assertEqual([c["case"] for c in ours(read(self.out))["cases"]], names)
        with open(self.out.with_suffix(".csv"), encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        self.assertEqual(list(rows[0]), sweep.COLUMNS)
        self.assertEqual([(row["case"], row["key"], row["value"]) for row in rows],
                         [(name, "frags", str(n)) for n, name in enumerate(names)])
        self.assertTrue(all(float(row["lo"]) <= float(row["ns_per_op"]) <= float(row["hi"]) for row in rows))

    def test_every_row_has_every_field(self):
        """Also where nothing was measured, where there is no interval and where there is no payload."""
        value = {"median": 5.0, "lo": 4.0, "hi": 6.0, "n": 9}
        values = (value, {**value, "lo": None, "hi": None}, None)
        cases = [{"case": f"skb/clone/frags:{n}", "status": "ok" if v else "unmeasured", "unit": "ns",
                  "value": v} for n, v in enumerate(values)]
        text = sweep.Sweep("frags=0:2").table(cases, {"skb/clone/frags:0": 65160})
        rows = list(csv.reader(io.StringIO(text, newline="")))
        self.assertEqual([len(row) for row in rows], [len(sweep.COLUMNS)] * 4)

    def test_bad_input(self):
        fake = self.fake()
        for text, words in (("frags", "KEY=A:B is needed"), ("frags=3:1", "KEY=A:B is needed"),
                            ("frags=-1:3", "KEY=A:B is needed"), ("frags=0:5000", "at most 1000 values"),
                            ("frags=0:18", "takes frags from 0 to 17"), ("nope=0:3", "no case of suite quick matches")):
            with self.subTest(text=text):
                status, out, err = fake.run("run", "--sweep", text, "--out", self.out)
                self.assertEqual((status, out), (2, ""))
                self.one_line(err, words)
                self.assertFalse(self.out.exists())
        self.out.with_suffix(".csv").write_text("mine")
        status, _, err = fake.run("run", "--sweep", "frags=0:1", "--out", self.out)
        self.assertEqual(status, 2)
        self.one_line(err, "never overwritten")


class Threads(Case):
    """A sweep of threads on a machine of 5 CPUs, and what it says beyond them."""

    CASE = "skb/meet/threads:1/alloc:slub"

    def sweep(self, *args, last=7, **plan):
        fake = self.fake(cases=[self.CASE], cpus=5, **plan)
        return fake.run("run", "--sweep", f"threads=1:{last}", "--seed", 1, "--out", self.out, *args)

    def test_refused_threads_are_listed(self):
        status, out, err = self.sweep(sigma=0.01)
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        entry = ours(read(self.out))["scaling"][0]
        self.assertEqual([(point["threads"], point["ops_per_s"] is None) for point in entry["points"]],
                         [(n, n > 5) for n in range(1, 8)])
        self.assertEqual(entry["points"][6]["reason"], "not possible here: needs 7 CPUs and has 5")
        # The fake's time does not depend on threads: twice as many do twice as much.
        self.assertTrue(all(abs(point["efficiency"] - 1) < 0.05 for point in entry["points"][:5]))
        self.assertEqual(entry["fit"]["points"], 5)
        self.assertLess(entry["fit"]["sigma"]["value"], 0.05)
        self.assertIn("2 of 7 cases not possible here", flat(out))
        self.assertIn("scaling skb/meet alloc:slub", flat(out))

    def test_oversubscribed_is_marked_and_judges_nothing(self):
        status, out, _ = self.sweep("--oversubscribe", last=6, sigma=0.01)
        self.assertEqual(status, 0)
        document = read(self.out)
        last = ours(document)["cases"][-1]
        self.assertEqual((last["status"], last["value"], last["reason"]),
                         ("unmeasured", None, "oversubscribed: 6 roles took turns on 5 CPUs"))
        self.assertNotIn("skb/meet/threads:6/alloc:slub", {row["name"] for row in document["benchmarks"]})
        point = ours(document)["scaling"][0]["points"][-1]
        self.assertEqual((point["oversubscribed"], point["efficiency"]), (True, None))
        self.assertGreater(point["ops_per_s"]["median"], 0)
        self.assertEqual(ours(document)["scaling"][0]["fit"]["points"], 5)
        self.assertRegex(out, r"\n +6 +6 .* oversubscribed\n")

    def test_too_few_points(self):
        status, out, _ = self.sweep(last=3)
        self.assertEqual(status, 0)
        self.assertIsNone(ours(read(self.out))["scaling"][0]["fit"])
        self.assertIn("law none: 3 points with each role on a CPU of its own, at least 4 are needed", flat(out))

    def test_other_keys_have_no_scaling(self):
        fake = self.fake()
        fake.run("run", "--sweep", "frags=0:1", "--filter", "skb/clone", "--out", self.out)
        self.assertNotIn("scaling", ours(read(self.out)))

    def test_oversubscribe_is_for_surveys(self):
        status, out, err = self.fake().run("run", "--oversubscribe", "--out", self.out)
        self.assertEqual((status, out), (2, ""))
        self.one_line(err, "--oversubscribe: the suites quick and full take it")

    def test_contention_is_the_full_suite_s(self):
        cases = ["contend/meet/threads:1/alloc:slub"]
        for args, found in ((("--suite", "quick"), False), (("--suite", "full"), True),
                            (("--suite", "quick", "--filter", "meet"), True)):
            with self.subTest(args):
                fake = self.fake(cases=cases, ops="contend/meet")
                status, _, err = fake.run("run", *args, "--out", self.out)
                self.assertEqual(status, 0 if found else 2, err)
                self.out.unlink(missing_ok=True)


class AA(Case):
    def aa(self, sigma, *args):
        """`skbench aa ARGS` in this process on invented samples: (status, table, report)."""
        rng = random.Random(SEED)

        def sample(binary, case, n, pad, batches=None, cpus=None, inject=0, oversubscribe=False):
            return {"busy": {"p33": 1000 * math.exp(rng.gauss(0, sigma)) * (1 + inject / 100)}}

        fake = self.fake()
        parser = argparse.ArgumentParser()
        aa.add_parser(parser.add_subparsers())
        with mock.patch.dict(os.environ, fake.environment()), \
                mock.patch.object(benchbin.BenchBinary, "sample", sample), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            status = aa.main(parser.parse_args(["aa", "--seed", "2", "--json", str(self.out), *args]))
        self.narrow(out.getvalue())
        return status, out.getvalue(), json.loads(self.out.read_text())

    def test_holds(self):
        status, out, report = self.aa(0.005, "--duets", "40")
        self.assertEqual((status, report["exit_status"]), (0, 0))
        self.assertEqual((report["pooled"]["aa"]["duets"], report["pooled"]["aa"]["false"]), (40, 0))
        self.assertEqual(report["pooled"]["injected"]["found"], 40)
        self.assertEqual(len({duet["case"] for duet in report["duets"]}), 6)
        self.assertRegex(out, r"found +40/40 100\.0 %")

    def test_noise_is_seen(self):
        status, out, report = self.aa(0.3, "--duets", "10")
        self.assertEqual(status, 3)
        self.assertRegex(flat(out), r"FAILED: \+5 % was found in [012] of 10 duets")
        self.assertGreaterEqual(report["pooled"]["aa"]["verdicts"][stats.INCONCLUSIVE], 7)

    def test_small_steps(self):
        """+2 % is below the margin: found is what excludes 0, and nothing is demanded."""
        status, _, report = self.aa(0.004, "--duets", "20", "--inject", "2")
        self.assertEqual(status, 0)
        self.assertGreaterEqual(report["pooled"]["injected"]["found"], 18)
        self.assertGreaterEqual(report["pooled"]["injected"]["verdicts"][stats.SHIFTED], 10)

    def test_json_alone(self):
        fake = self.fake()
        status, out, err = fake.run("aa", "--duets", 1, "--seed", 2, "--json", "-")
        self.assertEqual((status, json.loads(out)["schema"]), (0, "skbench-aa-2"))
        self.assertIn("the method holds", err)

    def test_judge(self):
        def counts(k, n):
            return {"duets": n, "false": k, "found": k, "judged": n, "measured": n, "holds_zero": n - k}

        def problems(equal, injected, percent=5.0, small=None):
            whole = {"aa": counts(*equal), "injected": counts(*injected)}
            kinds = {"aa": 0, "injected": percent}
            if small:
                whole["small"] = counts(*small)
                kinds["small"] = 2.0
            return aa.judge(whole, whole, kinds)

        self.assertEqual(problems((0, 20), (20, 20)), [])
        self.assertEqual(problems((2, 20), (17, 20)), [])
        self.assertEqual(len(problems((3, 20), (14, 20))), 2)
        self.assertEqual(problems((0, 20), (0, 20), 2.0), [])
        self.assertEqual(len(problems((0, 0), (0, 0))), 1)
        self.assertEqual(problems((0, 200), (195, 200), small=(160, 200)), [])
        self.assertRegex(" ".join(problems((0, 200), (195, 200), small=(140, 200))), r"\+2 % was told in 140 of 200")
        self.assertRegex(" ".join(problems((24, 200), (195, 200), small=(160, 200))), "176 of 200 intervals of equal sides")


class Progress(Case):
    def test_terminal(self):
        """On a terminal there is a line written over and over, at most 79 columns, gone in the end."""
        fake = self.fake(sleep=0.02)
        master, slave = pty.openpty()
        process = fake.start("run", *QUICK, "--out", self.out, stderr=slave)
        os.close(slave)
        seen = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            try:
                chunk = os.read(master, 65536) if ready else b""
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        process.communicate(timeout=60)
        os.close(master)
        pieces = seen.decode().split("\r")
        self.assertGreater(len(pieces), 10)
        self.assertTrue(any("cells done" in piece for piece in pieces))
        self.assertTrue(all(len(piece) < 80 for piece in pieces))
        self.assertNotIn("\n", seen.decode())
        self.assertEqual(pieces[-1], "")


@slow
class Width(Case):
    """No line is wider than 80 columns, whatever the numbers and the names are."""

    def document(self):
        if not hasattr(Width, "kept"):
            fake = self.fake()
            fake.run("run", "--filter", "frags:16", "--seed", "1", "--out", self.out)
            headline = read(self.out)
            fake.run("run", "--suite", "quick", "--seed", "1", "--out", fake.path / "q.json")
            Width.kept = headline, read(fake.path / "q.json")
        return copy.deepcopy(Width.kept)

    def extreme(self, value, rng, path=()):
        if isinstance(value, dict):
            return {key: self.extreme(below, rng, path + (key,)) for key, below in value.items()}
        if isinstance(value, list):
            return [self.extreme(below, rng, path) for below in value]
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            choice = rng.choice([0, 1e-9, 0.05, 1, 99.9951, 123456.789, 9.999e11, 1.7e300, 2 ** 64])
            number = choice if rng.random() < 0.7 else -choice
            return int(number) if isinstance(value, int) and abs(number) < 1e30 else number
        if path[-1] in ("reason", "partial_reason", "cpu_name", "hypervisor", "claim"):
            return rng.choice(["", "x" * 200, "a long sentence " * 20, "\u5e45\u306e\u5e83\u3044" * 30, value])
        return value

    def test_numbers(self):
        rng = random.Random(SEED)
        for document in self.document():
            for _ in range(150):
                wild = self.extreme(document, rng)
                lines = table.render(wild)
                self.narrow("\n".join(lines))
                self.assertTrue(all(line == line.rstrip() and "\x1b" not in line for line in lines))

    def test_names(self):
        _, quick = self.document()
        long = "/".join(f"a_rather_long_key_{i}:value_{i}" for i in range(12))
        for entry in ours(quick)["cases"]:
            entry["case"] += "/" + long
        ours(quick)["cases"].append({**ours(quick)["cases"][0], "case": "skb/clone/" + "k" * 300 + ":1"})
        self.narrow("\n".join(table.render(quick)))

    def test_paths(self):
        for length in (1, 30, 60, 90, 400):
            lines = table.result_line("/" + "p" * length, "none yet for this machine")
            self.narrow("\n".join(lines))
            self.assertIn("/" + "p" * length, "".join(lines))

    def test_number(self):
        for value, text in ((0, "0"), (2104.3, "2104"), (104.4, "104"), (99.96, "100"), (10.44, "10.4"),
                            (9.996, "10.0"), (1.044, "1.04"), (0.99951, "1.00"), (0.1044, "0.104"),
                            (0.0004, "4.00e-04"), (1234567, "1.23e+06"), (-104.4, "-104"), (-0.5, "-0.500")):
            self.assertEqual(table.number(value), text)

    def test_percent(self):
        self.assertEqual(table.percent(1.0), "0.00")  # all equal: no sign
        self.assertEqual(table.percent(1.000001), "+0.00")
        self.assertEqual(table.percent(0.999999), "-0.00")
        self.assertEqual(table.percent(0.9548), "-4.52")
        self.assertEqual(table.percent(1e9), "+1.00e+11")

    def test_every_figure_comes_from_the_data(self):
        """Nothing in the table is typed in: with all numbers changed, no old figure is left."""
        document, _ = self.document()
        old = "\n".join(table.render(document))
        for entry in ours(document)["experiments"]:
            for key in ("baseline_value", "variant_value", "difference"):
                entry[key] = {"median": 7777.0, "lo": 7777.0, "hi": 7777.0, "n": 33}
            entry.update(ratio=1.77, lo=1.77, hi=1.77, pairs=33)
        for entry in ours(document)["ledger"]:
            for row in entry["rows"]:
                row.update({key: 7 for key in row if key != "phase"})
        new = "\n".join(table.render(document))
        rows = [line for line in new.splitlines() if re.match(r" *\d+ (eager|offset_ack)", line)]
        self.assertTrue(rows)
        for line in rows:
            self.assertIn("14/14/14 28/14", flat(line))
            self.assertIn("7777", line)
        self.assertNotEqual(old, new)
        self.assertIn("+77.00 % [+77.00, +77.00] of eager's busy time, 33 pairs", new)


if __name__ == "__main__":
    print(f"test_run: seed {SEED}")
    unittest.main()
