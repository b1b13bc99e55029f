# SPDX-License-Identifier: MIT
"""Instruction counts: real ones of a small program under callgrind, and the judgement of given ones."""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from skbench_lib import benchbin, children, icounts, instructions, stats  # noqa: E402
from skbench_lib.errors import UserError  # noqa: E402

# --skb_instructions=skb/x/frags:F --skb_n=N: N times F memory-to-memory additions, and a copy of 1448 bytes.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char from[4096], to[4096];
static volatile unsigned long sum;
__attribute__((noinline)) void SPAN(unsigned long frags, unsigned long n)
{
	volatile size_t bytes = 1448;
	while (n--) {
		EXTRA
		for (unsigned long i = 0; i < frags; i++)
			sum++;
		memcpy(to, from, bytes);
	}
}
int main(int argc, char **argv)
{
	char *frags = strstr(argv[1], "frags:");
	if (argc != 3 || strncmp(argv[2], "--skb_n=", 8) || getenv("HOME"))
		return 3;
	if (strstr(argv[1], "crash"))
		abort();
	SPAN(frags ? strtoul(frags + 6, NULL, 10) : 0, strtoul(argv[2] + 8, NULL, 10));
	return 0;
}
"""


def compiled(directory, span, extra=""):
    """PROGRAM with its counted function named SPAN, and EXTRA assembly in each operation."""
    source = Path(directory) / "bench.c"
    binary = Path(directory) / f"bench-{span}{len(extra)}"
    source.write_text(PROGRAM.replace("SPAN", span).replace("EXTRA", f'asm volatile("{extra}");' if extra else ""))
    subprocess.run(["gcc", "-O1", "-g", "-o", binary, source], check=True)
    return binary


class Callgrind(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = scratch.name
        cls.bench = compiled(scratch.name, instructions.COUNTED)
        cls.other = compiled(scratch.name, "renamed_span")

    def test_counts_are_repeatable_and_linear(self):
        count = {frags: instructions.count(self.bench, f"skb/x/frags:{frags}") for frags in (0, 10, 20)}
        self.assertEqual(count[10], instructions.count(self.bench, "skb/x/frags:10"))
        self.assertAlmostEqual(count[20] - count[10], count[10] - count[0], delta=1)
        self.assertGreaterEqual(count[10] - count[0], 20)
        self.assertLess(count[10] - count[0], 80)
        # Few operations or many: nothing that happens once is in it.
        self.assertAlmostEqual(count[10], instructions.count(self.bench, "skb/x/frags:10", operations=10), delta=2)

    def test_one_added_instruction_is_found(self):
        more = compiled(self.scratch, instructions.COUNTED, "nop")
        cases = [(f"skb/x/frags:{frags}", benchbin.BenchBinary(self.bench)) for frags in (1, 10)]
        base = icounts.of_object(icounts.count(cases, self.scratch), "base")
        new = icounts.of_object(icounts.count([(name, benchbin.BenchBinary(more)) for name, _ in cases], self.scratch),
                                "new")
        (found,) = icounts.judge(base, new)["sets"]
        self.assertEqual([(entry["verdict"], round(entry["new"] - entry["base"], 1)) for entry in found["rows"]],
                         [(stats.SHIFTED, 1.0)] * 2)
        (found,) = icounts.judge(base, base)["sets"]
        self.assertEqual([entry["verdict"] for entry in found["rows"]], [stats.EQUIVALENT] * 2)
        # Three are more than the margin.
        more = compiled(self.scratch, instructions.COUNTED, "nop; nop; nop")
        count = instructions.count(more, cases[0][0])
        self.assertTrue(icounts.row("x", base[next(iter(base))].counts[cases[0][0]], count)["fails"])

    def test_glibc_copies_as_on_any_cpu(self):
        with mock.patch.object(instructions, "UNPINNED", instructions.re.compile("mem")), \
                self.assertRaises(UserError) as raised:
            instructions.count(self.bench, "skb/x/frags:1")
        self.assertIn("glibc chose", str(raised.exception))  # so the copy is seen at all, and passes otherwise

    def test_no_instruction_is_an_error(self):
        with self.assertRaises(UserError) as raised:
            instructions.count(self.other, "skb/x/frags:1")
        self.assertEqual(raised.exception.status, 5)
        self.assertIn("counted no instruction", str(raised.exception))

    def test_a_crash_is_an_error(self):
        with self.assertRaises(UserError) as raised:
            instructions.count(self.bench, "skb/crash/frags:1")
        self.assertEqual(raised.exception.status, 5)

    def test_a_case_that_hangs_is_killed(self):
        with mock.patch.object(instructions, "CASE_SECONDS", 1.5), self.assertRaises(UserError) as raised:
            instructions.count(self.bench, "skb/x/frags:2000000000")
        self.assertIn("did not end within 1.5 s", str(raised.exception))


REAL = ["skb/skb_clone/era:6.12/of:fclone", "skb/pskb_expand_head/era:6.12/frags:16/cloned:1#expand",
        "tcp/trim/era:6.12/variant:eager/frags:16/alloc:jemalloc"]


class Repeatable(unittest.TestCase):
    """The bench binaries' counts: the same in three runs, in environments of three sizes, idle and loaded."""

    def setUp(self):
        self.binaries = {name: instructions.bench_binary(name, "release") for name in REAL}
        missing = [str(path) for path in self.binaries.values() if not path.is_file()]
        if missing:
            self.skipTest(f"{missing[0]} is not built: scripts/skbench instructions")

    def counts(self):
        return children.each(lambda name: instructions.count(self.binaries[name], name), REAL)

    def test_always_the_same(self):
        first, plain = self.counts(), instructions.environment()
        self.assertTrue(all(count > 50 for count in first), first)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            # What surrounds us is not passed on; and where it is, the place of the stack does not matter.
            with mock.patch.dict(os.environ, {"SKB_ANYTHING": "x" * 60000, "MALLOC_CONF": "narenas:7",
                                              "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}):
                self.assertEqual(self.counts(), first)
            for size in (1, 1500, 60000):
                with mock.patch.object(instructions, "environment", lambda size=size: {**plain, "PAD": "x" * size}):
                    self.assertEqual(self.counts(), first, size)
        finally:
            busy.kill()
            busy.wait()


class Judgement(unittest.TestCase):
    def fails(self, before, now):
        return [d["fails"] for d in instructions.compare({"a/b": before}, {"a/b": now})]

    def test_both_margins_must_be_passed(self):
        self.assertEqual(self.fails(100.0, 100.0), [])
        self.assertEqual(self.fails(100.0, 102.0), [False])   # 2 instructions, 2 %
        self.assertEqual(self.fails(100.0, 102.1), [True])
        self.assertEqual(self.fails(100.0, 97.8), [True])     # fewer is a difference too
        self.assertEqual(self.fails(10000.0, 10020.0), [False])  # 20 instructions, 0.2 %
        self.assertEqual(self.fails(10000.0, 10020.1), [True])

    def test_missing_and_new(self):
        found = instructions.compare({"a/old": 5.0}, {"a/new": 6.04})
        self.assertEqual([(d["case"], d["fails"]) for d in found], [("a/new", True), ("a/old", True)])
        self.assertEqual([instructions.sentence(d) for d in found],
                         ["a/new: new, not stored (counted 6.0)", "a/old: stored, but not counted any more"])

    def test_relations(self):
        counted = {"skb/x/frags:2": 100.0, "skb/x/frags:16": 310.0}
        slope = {"kind": "slope", "name": "s", "why": "w", "from": "skb/x/frags:2", "to": "skb/x/frags:16",
                 "key": "frags", "lo": 12, "hi": 24}
        ratio = {"kind": "ratio", "name": "r", "why": "w", "of": "skb/x/frags:16", "to": "skb/x/frags:2", "lo": 2.0,
                 "hi": 4.5}
        most = {"kind": "max", "name": "m", "why": "w", "of": "skb/x/frags:2", "hi": 100}
        least = {"kind": "min", "name": "l", "why": "w", "of": "skb/x/frags:2", "lo": 100}
        for relation in (slope, ratio, most, least):
            self.assertEqual(instructions.violated(relation, counted), [])
        self.assertEqual(instructions.violated({**slope, "hi": 14.9}, counted),
                         ["relation s: instructions per frags 15.00, expected 12 to 14.9 (w)"])
        self.assertEqual(instructions.violated({**ratio, "lo": 3.2}, counted),
                         ["relation r: ratio 3.10, expected 3.2 to 4.5 (w)"])
        self.assertEqual(instructions.violated({**most, "hi": 99}, counted),
                         ["relation m: instructions 100.00, expected at most 99 (w)"])
        self.assertEqual(instructions.violated({**least, "lo": 101}, counted),
                         ["relation l: instructions 100.00, expected at least 101 (w)"])

    def test_broken_relations(self):
        names = ["skb/x/frags:2", "skb/x/frags:16", "skb/y"]
        good = {"kind": "slope", "name": "s", "why": "w", "from": names[0], "to": names[1], "key": "frags", "lo": 1,
                "hi": 2}
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "relations.json"
            self.assertEqual(instructions.read_relations(path, names), [])
            path.write_text(json.dumps({"relations": [good]}))
            self.assertEqual(instructions.read_relations(path, names), [good])
            for bad in ([good, good], [{**good, "kind": "sum"}], [{**good, "lo": 3}], [{**good, "hi": "2"}],
                        [{**good, "from": "skb/z"}], [{**good, "from": "skb/y"}], [{**good, "to": names[0]}],
                        [{**good, "more": 1}], [1], "x"):
                path.write_text(json.dumps({"relations": bad}))
                with self.subTest(bad), self.assertRaises(UserError) as raised:
                    instructions.read_relations(path, names)
                self.assertEqual(raised.exception.status, 2)


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.directory = self.root / "results" / "instructions"
        self.directory.mkdir(parents=True)
        (self.directory / "cases.txt").write_text("skb/x/frags:{2,16}\n")
        self.counts = {"skb/x/frags:2": 100.0, "skb/x/frags:16": 310.04}
        for name, value in (("repo_root", lambda: self.root), ("ensure_built", lambda preset: None),
                            ("build_dir", lambda preset: self.root),
                            ("count_all", lambda names, preset: {name: self.counts[name] for name in names})):
            patch = mock.patch.object(instructions, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_it(self, *words):
        parser = argparse.ArgumentParser()
        instructions.add_parser(parser.add_subparsers())
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            args = parser.parse_args(["instructions", *words])
            status = args.func(args)
        return status, out.getvalue()

    def stem(self):
        (path,) = self.directory.glob("*.csv")
        return path.stem

    def test_write_then_check(self):
        self.run_it("--write")
        self.assertRegex(self.stem(), r"^gcc\d+$")
        self.assertEqual((self.directory / f"{self.stem()}.csv").read_text(),
                         "case,instructions\nskb/x/frags:2,100.0\nskb/x/frags:16,310.0\n")
        status, text = self.run_it("--check")
        self.assertEqual(status, 0, text)
        self.assertIn("2 cases, 0 differences, 0 relations, 0 broken", text)

    def test_a_difference(self):
        self.run_it("--write")
        self.counts["skb/x/frags:2"] = 103.0
        status, text = self.run_it("--check")
        self.assertEqual(status, 1)
        self.assertIn("skb/x/frags:2: stored 100.0, counted 103.0 (+3.00 %)\n", text)
        self.counts["skb/x/frags:2"] = 101.0
        status, text = self.run_it("--check")
        self.assertEqual(status, 0)
        self.assertIn("within the margin", text)

    def test_a_broken_relation(self):
        (self.directory / "relations.json").write_text(json.dumps({"relations": [
            {"kind": "max", "name": "cheap", "why": "w", "of": "skb/x/frags:2", "hi": 90}]}))
        self.run_it("--write")
        status, text = self.run_it("--check", "--json", "-")
        report = json.loads(text)
        self.assertEqual((status, report["status"], report["relations"]), (1, 1, ["cheap"]))
        self.assertEqual(len(report["broken"]), 1)

    def test_another_toolchain_is_not_comparable(self):
        self.run_it("--write")
        path = self.directory / f"{self.stem()}.json"
        made_with = json.loads(path.read_text())
        for key in ("version", "libc", "flags"):
            path.write_text(json.dumps({**made_with, key: "other"}))
            with self.subTest(key), self.assertRaises(UserError) as raised:
                self.run_it("--check")
            self.assertEqual(raised.exception.status, 4)
            self.assertIn("not comparable", str(raised.exception))

    def test_nothing_stored_is_not_comparable(self):
        with self.assertRaises(UserError) as raised:
            self.run_it("--check")
        self.assertEqual(raised.exception.status, 4)

    def test_broken_store(self):
        self.run_it("--write")
        path = self.directory / f"{self.stem()}.csv"
        for text in ("", "case\n", "case,instructions\na/b,x\n", "case,instructions\na/b,0\n",
                     "case,instructions\na/b,nan\n", "case,instructions\na/b,1\na/b,1\n"):
            path.write_text(text)
            with self.subTest(text), self.assertRaises(UserError) as raised:
                self.run_it("--check")
            self.assertEqual(raised.exception.status, 2)


if __name__ == "__main__":
    unittest.main()
