# SPDX-License-Identifier: MIT
"""`skbench profile`: reading what perf recorded, listings, flame graph, comparison, and whole sessions."""

import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from support import PYTHON, ROOT

from skbench_lib import annotate, benchbin, build, flame, libperf, perfscript, profdiff, profile
from skbench_lib.children import Ended
from skbench_lib.errors import UserError

PROF = ROOT / "build" / "prof" / "skb-prof"
SCRIPTED = ROOT / "build" / "prof" / "skb-prof-scripted"
SELFTEST = ROOT / "build" / "release" / "tests" / "benches" / "selftest_bench"

# Of one thread called sender and one called two words; the last has no chain.
SCRIPT = """sender 100     200 cpu-clock:
	           2c1b6 atomic_inc+0x6 (/x/bench_tcp)
	           2c200 span_send+0x10 (/x/bench_tcp)
	           2d000 run_role.constprop.0+0x50 (/x/bench_tcp)
	           2d100 crew_batch+0x9 (/x/bench_tcp)

two words 101     300 cpu-clock:u:
	    7ffff7a891f5 __memmove_avx_unaligned_erms+0x45 (/usr/lib/x86_64-linux-gnu/libc.so.6)
	           2d000 run_role+0x50 (/x/bench_tcp)

sender 100     400 cpu-clock:
	ffffffff81000010 asm_sysvec+0x10 ([kernel.kallsyms])
	           2c210 span_send+0x20 (/x/bench_tcp)
	           2d000 run_role+0x50 (/x/bench_tcp)

sender 100     500 cpu-clock:
	           2c200 span_send+0x0 (/x/bench_tcp)
	           2d100 crew_batch+0x9 (/x/bench_tcp)

sender 100     600 cpu-clock:
	    7fff00000999 __vdso_clock_gettime+0x9 ([vdso])
	           2d000 run_role+0x50 (/x/bench_tcp)

sender 100     700 cpu-clock:
	           2d010 run_role+0x60 (/x/bench_tcp)
	           2d100 crew_batch+0x9 (/x/bench_tcp)

sender 100     800 cpu-clock:
	           2e000 set_up+0x60 (/x/bench_tcp)
	           2e100 main+0x9 (/x/bench_tcp)

sender 100     900 cpu-clock:
	ffffffff81000020 irq+0x10 ([kernel.kallsyms])
	           2d010 run_role+0x60 (/x/bench_tcp)

sender 100     1000 cpu-clock:

"""


class Samples(unittest.TestCase):
    def setUp(self):
        self.samples = perfscript.parse(SCRIPT)
        self.profile = perfscript.Profile(self.samples)

    def test_parsing(self):
        self.assertEqual(len(self.samples), 9)
        self.assertEqual([sample.period for sample in self.samples], [200, 300, 400, 500, 600, 700, 800, 900, 1000])
        self.assertEqual((self.samples[1].role, self.samples[1].tid), ("two words", 101))
        self.assertEqual(self.samples[0].frames[0], perfscript.Frame("atomic_inc", 6, "/x/bench_tcp"))
        self.assertEqual(self.samples[8].frames, ())

    def test_only_what_the_spans_do_is_inside(self):
        self.assertEqual(perfscript.spans(self.samples), {"span_send", "__memmove_avx_unaligned_erms"})
        self.assertEqual((self.profile.samples, self.profile.inside, self.profile.weight), (9, 4, 1400))
        self.assertEqual(self.profile.outside, {"__vdso_clock_gettime": 1, "run_role": 1, "set_up": 1, "irq": 1,
                                                "[no chain]": 1})

    def test_symbols_and_places(self):
        hottest = self.profile.hottest()
        self.assertEqual([(key[0], entry[0], entry[1]) for key, entry in hottest],
                         [("span_send", 1, 500), ("asm_sysvec", 1, 400), ("__memmove_avx_unaligned_erms", 1, 300),
                          ("atomic_inc", 1, 200)])
        self.assertEqual(self.profile.places["atomic_inc", "/x/bench_tcp"], {6: [1, 200]})

    def test_folded(self):
        self.assertEqual(list(self.profile.folded()), [
            "sender;span_send 500", "sender;span_send;asm_sysvec_[k] 400", "sender;span_send;atomic_inc 200",
            "two words;__memmove_avx_unaligned_erms 300"])

    def test_hidden_kernel_names(self):
        sample, = perfscript.parse("x 1 5 cycles: \n\tffffffff81000000 [unknown] ([kernel.kallsyms])\n"
                                   "\t  0 [unknown] ([unknown])\n\n")
        self.assertEqual([frame.symbol for frame in sample.frames], ["[kernel]", "[unknown]"])

    def test_what_is_no_sample_is_said(self):
        for text in ("nonsense\n", "x 1 5 cycles: \n\tno frame\n"):
            with self.assertRaisesRegex(UserError, "no (sample|frame)"):
                perfscript.parse(text)
        self.assertEqual(perfscript.parse(""), [])
        self.assertIsNone(perfscript.Profile([]).share)


class Flame(unittest.TestCase):
    def svg(self, stacks, title="a <case> & more"):
        text = flame.svg(stacks, title, "below", lambda weight, share: f"{weight} of it, {100 * share:.0f} %")
        return text, ElementTree.fromstring(text)

    def test_widths_are_shares(self):
        text, root = self.svg({("sender", ("outer", False), ("inner", False)): 75, ("sender", ("outer", False)): 15,
                               ("sender", ("other", True)): 10})
        space = "{http://www.w3.org/2000/svg}"
        frames = {}
        for group in root.iter(f"{space}g"):
            rect = group.find(f"{space}rect")
            frames[group.find(f"{space}title").text] = float(rect.get("width")), float(rect.get("x")), float(rect.get("y"))
        whole = flame.WIDTH - 2 * flame.MARGIN
        self.assertEqual(set(frames), {"all\n100 of it, 100 %", "sender\n100 of it, 100 %", "outer\n90 of it, 90 %",
                                       "inner\n75 of it, 75 %", "other [k]\n10 of it, 10 %"})
        self.assertAlmostEqual(frames["outer\n90 of it, 90 %"][0], 0.9 * whole, 1)
        # What is called stands above its caller and inside its width.
        self.assertLess(frames["inner\n75 of it, 75 %"][2], frames["outer\n90 of it, 90 %"][2])
        self.assertGreaterEqual(frames["inner\n75 of it, 75 %"][1], frames["outer\n90 of it, 90 %"][1])
        self.assertNotIn("<script", text)

    def test_narrow_frames(self):
        text, _ = self.svg({("r", ("wide", False)): 1000000, ("r", ("tiny_function", False)): 1})
        self.assertNotIn("tiny_function", text)
        # What is not drawn takes no row.
        self.assertEqual(text, self.svg({("r", ("wide", False)): 1000000, ("r",): 1})[0])
        self.assertEqual(flame.cut("a_long_function", 50), "a_lo..")
        self.assertEqual(flame.cut("a_long_function", 20), "")

    def test_empty(self):
        self.svg({})


class Annotate(unittest.TestCase):
    def test_a_function(self):
        with tempfile.TemporaryDirectory() as scratch:
            source, program = Path(scratch) / "x.c", Path(scratch) / "x"
            source.write_text("__attribute__((noinline)) int twice(int v)\n{\n\treturn v *\n\t       v;\n}\n"
                              "int main(int c, char **v)\n{\n\t(void)v;\n\treturn twice(c);\n}\n")
            subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
            rows = annotate.disassemble(program, "twice")
            with self.assertRaisesRegex(UserError, "nowhere: x has no such function"):
                annotate.disassemble(program, "nowhere")
            lines = list(annotate.listing(rows, {0: [30, 600], 9999: [1, 20]}, 100, "ns", annotate.Sources(scratch)))
            spots = annotate.by_line(rows, {0: [30, 600]})
        self.assertIn(("code", 0), [row[:2] for row in rows])
        self.assertTrue(any("imul" in row[2] for row in rows if row[0] == "code"))
        self.assertTrue(any(re.match(r" +30 +96.8 +6.000 +0:", line) for line in lines), lines)
        self.assertTrue(any("x.c:3  return v *" in line or "x.c:4  v;" in line for line in lines), lines)
        self.assertEqual(lines[-1].split(None, 1), ["1", "samples lie on no instruction of this listing"])
        self.assertEqual(spots[0][2:], (30, 600))


def session(case, symbols, unit="ns", event="cpu-clock", **more):
    return {"schema": "skbench-profile-1", "case": case, "operations": 100, "revision": {"commit": "0123456789"},
            "build": {}, "exit_status": 0, "instructions": {"value": 50.0}, "sampling": {
                "event": event, "unit": unit, "samples": 9, "per_op": sum(symbols.values()), "reason": "none taken"},
            "symbols": [{"symbol": name, "dso": "bench_tcp", "per_op": value} for name, value in symbols.items()],
            "counters": {"events": [{"label": "task-clock", "value": 700.0}, {"label": "cycles", "value": None}]}, **more}


class Diff(unittest.TestCase):
    A = "tcp/trim/era:6.12/variant:eager/frags:16"
    B = "tcp/trim/era:6.12/variant:offset_ack/frags:16"

    def test_variants_stand_side_by_side(self):
        found = profdiff.compare(session(self.A, {"tcp_ack_6_12_eager": 10.0, "pskb_expand_head_6_12": 5.0}),
                                 session(self.B, {"tcp_ack_6_12_offset_ack": 4.0, "skb_clone_6_12": 1.0}))
        self.assertEqual([(row["function"], row["a"], row["b"], row["difference"]) for row in found["rows"]],
                         [("tcp_ack", 10, 4, -6), ("pskb_expand_head", 5, 0, -5), ("skb_clone", 0, 1, 1)])
        self.assertEqual(found["total"], {"a": 15, "b": 5, "difference": -10})
        self.assertEqual(found["counters"], [{"label": "task-clock", "a": 7, "b": 7}])
        lines = list(profdiff.text(found))
        self.assertIn("     10.00      4.00     -6.00  tcp_ack", lines)
        self.assertTrue(any(line.startswith("note: two profiles are no measurement") for line in lines))

    def test_names(self):
        for symbol, plain in (("tcp_ack_6_12_eager", "tcp_ack"), ("f_6_12", "f"), ("f_6_12.constprop.0", "f.constprop.0"),
                              ("eager", "eager"), ("x_6_125", "x_6_125")):
            self.assertEqual(profdiff.plain_name(symbol, self.A), plain)

    def test_refusals(self):
        good = session(self.A, {"f": 1.0})
        for other, says in ((session(self.A, {}, unit="cycles", event="cycles:pp"), "A was sampled in ns .* B in cycles"),
                            (session(self.A, {}, event=None), "B has no samples")):
            with self.assertRaisesRegex(UserError, says) as raised:
                profdiff.compare(good, other)
            self.assertEqual(raised.exception.status, 4)

    def test_folders(self):
        with tempfile.TemporaryDirectory() as scratch:
            for name, case in (("a", self.A), ("b", self.B)):
                (Path(scratch) / name).mkdir()
                (Path(scratch) / name / "session.json").write_text(json.dumps(session(case, {"f": 1.0})))
            (Path(scratch) / "bad").mkdir()
            (Path(scratch) / "bad" / "session.json").write_text("{}")
            out = io.StringIO()
            with redirect_stdout(out):
                self.assertEqual(profdiff.main([f"{scratch}/a", f"{scratch}/b"], None), 0)
                self.assertEqual(profdiff.main([f"{scratch}/a", f"{scratch}/b"], f"{scratch}/diff.json"), 0)
            self.assertIn("1.00      1.00     +0.00  f\n", out.getvalue())
            self.assertEqual(json.loads(Path(f"{scratch}/diff.json").read_text())["schema"], profdiff.SCHEMA)
            for name, says in (("none", "no profile session there"), ("bad", "no session of skbench profile")):
                with self.assertRaisesRegex(UserError, says):
                    profdiff.load(f"{scratch}/{name}")


class Libperf(unittest.TestCase):
    def test_without_its_package(self):
        for version, archive in ((None, "/"), ("1", "/no/such/file")):
            with mock.patch.object(libperf, "version", lambda v=version: v), \
                    mock.patch.object(libperf, "ARCHIVE", Path(archive)), self.assertRaises(UserError) as raised:
                libperf.ensure()
            self.assertEqual(raised.exception.status, 4)
            self.assertIn("scripts/install-packages profile", str(raised.exception))

    def test_it_is_built_once(self):
        runs = []

        def play(command):
            runs.append(command[0])
            if command[0] != "make":
                return
            tools = Path(command[3]).parents[1]
            (tools / "lib" / "perf" / "include" / "perf").mkdir(parents=True)
            (tools / "lib" / "api").mkdir()
            (tools / "lib" / "perf" / "libperf.a").write_text("x")
            (tools / "lib" / "api" / "libapi.a").write_text("x")

        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(libperf, "version", lambda: "9"), \
                mock.patch.object(libperf, "ARCHIVE", Path(PYTHON)), mock.patch.object(libperf, "_run", play), \
                mock.patch.dict(os.environ, {"SKBENCH_CACHE": scratch}):
            for _ in range(2):
                self.assertEqual(libperf.ensure(), (Path(scratch) / "libperf-9", "9"))
            self.assertEqual(runs, ["tar", "make"])
            self.assertEqual(sorted(path.name for path in (Path(scratch) / "libperf-9").iterdir()),
                             ["include", "libapi.a", "libperf.a"])
            self.assertEqual([path.name for path in Path(scratch).glob(".libperf-*")], [])

    def test_a_program_of_ones_own(self):
        with mock.patch.dict(os.environ, {"SKBENCH_PROF": "/x/skb-prof"}):
            self.assertEqual(build.ensure_prof(), "/x/skb-prof")


class C2c(unittest.TestCase):
    """perf c2c, played by a script in front of PATH."""

    def play(self, body):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        perf = Path(scratch.name) / "perf"
        perf.write_text(f"#!/bin/sh\n{body}\n")
        perf.chmod(0o755)
        bench = mock.Mock()
        bench.under = lambda before, where: (None, Ended(0, False, "", ""))
        with mock.patch.dict(os.environ, {"PATH": f"{scratch.name}:{os.environ['PATH']}"}):
            return profile.record_c2c(bench, Path(scratch.name)), Path(scratch.name) / "c2c.txt"

    def test_where_it_works(self):
        reason, file = self.play('[ "$2" = report ] && echo "Shared Data Cache Line Table"; exit 0')
        self.assertIsNone(reason)
        self.assertEqual(file.read_text(), "Shared Data Cache Line Table\n")

    def test_where_it_does_not(self):
        reason, file = self.play('echo "failed: memory events not supported" >&2; exit 1')
        self.assertRegex(reason, r"perf c2c does not work here \(failed: memory events not supported\): it needs")
        self.assertFalse(file.exists())


@unittest.skipUnless(PROF.exists() and shutil.which("perf"),
                     "skb-prof is not built or perf is missing: scripts/install-packages profile, then skbench profile")
@unittest.skipUnless(SELFTEST.exists(), "the test programs are not built: skbench test")
class Session(unittest.TestCase):
    """Whole sessions of the self-test's program."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.path = Path(scratch.name)
        (cls.path / "bin").mkdir()
        for name in ("", "_traced"):
            (cls.path / "bin" / f"bench_self{name}").symlink_to(f"{SELFTEST}{name}")

    def profile(self, *arguments, prof=PROF, **environment):
        return subprocess.run([PYTHON, "-m", "skbench_lib", "profile", *arguments], cwd=ROOT / "scripts", text=True,
                              capture_output=True, timeout=300, env={
                                  **os.environ, "SKBENCH_BENCH_DIR": str(self.path / "bin"), "SKBENCH_PROF": str(prof),
                                  **environment})

    def test_the_timed_region_alone(self):
        folder = self.path / "one"
        done = self.profile("self/setup", "--seconds", "0.4", "--out", str(folder), "--annotate", "self_light_step")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((folder / "session.json").read_text())
        self.assertGreaterEqual(found["sampling"]["inside_share"], 0.95)
        self.assertGreater(found["sampling"]["inside"], 100)
        names = {entry["symbol"] for entry in found["symbols"]}
        self.assertIn("self_light_step", names)
        self.assertNotIn("self_heavy_setup", names | set(found["sampling"]["outside"]))
        hottest = found["symbols"][0]
        self.assertEqual(hottest["symbol"], "self_light_step")
        self.assertAlmostEqual(hottest["samples_per_op"], hottest["samples"] / found["operations"])
        # Times of a busy machine: only that one step costs more than nothing and less than a microsecond.
        self.assertTrue(0.1 < hottest["per_op"] < 1000, hottest)
        self.assertEqual(found["control"]["pairs"], found["batches"])
        self.assertEqual({path.name for path in folder.iterdir()}, {
            "session.json", "report.txt", "folded.txt", "flame.svg", "perf.data", "annotate-self_light_step.txt"})
        listing = (folder / "annotate-self_light_step.txt").read_text()
        self.assertRegex(listing, r"tests/benches/selftest_bench.c:\d+  v = v \* 6364136223846793005u")
        self.assertRegex(listing, r"\d+ +\d+\.\d +\d+\.\d{3} +[0-9a-f]+:  \w+")
        ElementTree.parse(folder / "flame.svg")
        self.assertIn("self_light_step", (folder / "flame.svg").read_text())
        self.assertEqual(done.stdout.split("\n\nsession  ")[0] + "\n", (folder / "report.txt").read_text())
        self.assertLessEqual(max(map(len, done.stdout.splitlines()[1:-1])), 80)
        # A folder is never overwritten.
        again = self.profile("self/setup", "--out", str(folder))
        self.assertEqual(again.returncode, 2)
        self.assertIn("never overwritten", again.stderr)

    def scripted(self, *rules, **how):
        """A program that is skb-prof on a scripted kernel and machine."""
        root = tempfile.mkdtemp(dir=self.path)
        (Path(root) / "script").write_text("".join(f"open {rule}\n" for rule in rules))
        kernel = Path(root) / "proc" / "sys" / "kernel"
        kernel.mkdir(parents=True)
        for name, value in {"perf_event_paranoid": 2, "perf_event_mlock_kb": 516, "kptr_restrict": 1, **how}.items():
            (kernel / name).write_text(f"{value}\n")
        program = Path(root) / "skb-prof"
        program.write_text(f"#!/bin/sh\nSKB_PROF_SCRIPT={root}/script exec {SCRIPTED} --root={root} \"$@\"\n")
        program.chmod(0o755)
        return program

    def test_counting_goes_on_where_sampling_cannot(self):
        prof = self.scripted("type=1 config=1 value=500000", "value=7 mmaperrno=1")
        folder = self.path / "two"
        done = self.profile("self/setup", "--seconds", "0.1", "--out", str(folder), "--json", "-", prof=prof)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertIn("not sampled: a buffer of 32 KB", " ".join(done.stderr.split()))
        self.assertIn("perf_event_mlock_kb is 516 KB", found["sampling"]["reason"])
        self.assertEqual(found["counters"]["events"][0]["value"], 500000)
        self.assertEqual({path.name for path in folder.iterdir()}, {"session.json", "report.txt"})

    def test_an_event_that_nobody_could_count(self):
        prof = self.scripted("value=1", "value=1")
        for given, says in (("cycles,cycels", "--events cycels: no such event; the nearest names are cycles, "),
                            ("cycles:x", "--events cycles:x: its modifier is neither :u nor :k"),
                            ("nopmu/", "--events nopmu/: PMU/TERMS/ is needed"), (",", "--events ',': names no event")):
            with self.subTest(given):
                done = self.profile("self/setup", "--events", given, "--out", str(self.path / "none"), prof=prof)
                self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
                self.assertIn(says, done.stderr)
                self.assertFalse((self.path / "none").exists())

    def test_lines_by_the_traced_build(self):
        bench = mock.Mock(case="self/falsely")
        traced = benchbin.BenchBinary(self.path / "bin" / "bench_self_traced")
        roles = {"roles": [{"name": "first"}, {"name": "second"}]}
        with tempfile.TemporaryDirectory() as scratch, mock.patch.object(profile, "record_c2c", lambda *_: "no c2c here"):
            found = profile.sharing(bench, traced, roles, Path(scratch))
            text = (Path(scratch) / "lines.txt").read_text()
        self.assertEqual((found["kind"], found["reason"]), ("traced build", "no c2c here"))
        self.assertIn("no c2c here", text)
        self.assertRegex(" ".join(text.split()), r"2.00 1 false sharing: \+8 dataref by first; \+24 users by second; "
                                                 r"\+28 sk_wmem_alloc by nobody, read by first\+second")
        self.assertIn("one role", profile.sharing(bench, traced, {"roles": [{}]}, None)["reason"])

    def test_nothing_is_allowed(self):
        done = self.profile("self/setup", "--seconds", "0.1", "--out", str(self.path / "three"),
                            prof=self.scripted("errno=13", perf_event_paranoid=4))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("kernel.perf_event_paranoid is 4", " ".join(done.stdout.split()))

    def test_wrong_use(self):
        for arguments, says in (([], "the name of a case is needed"), (["nope/x"], "no program has such a case: bench_self "),
                                (["self/nope"], "no operation"), (["self/setup", "--annotate", "nowhere", "--seconds", "0.1"],
                                                                  "no sample lies in it; there are"),
                                (["self/setup", "--seconds", "x"], "seconds are needed"),
                                (["self/setup", "--diff", "a", "b"], "two folders and nothing else")):
            with self.subTest(arguments):
                done = self.profile(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)
        # What was begun is taken away again.
        self.assertEqual([path.name for path in (ROOT / "out").glob("profile-*-self-*")], [])

    def test_a_case_that_fails(self):
        done = self.profile("self/fail/when:before", "--out", str(self.path / "four"))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("fails its check", done.stderr)
        self.assertFalse((self.path / "four").exists())


if __name__ == "__main__":
    unittest.main()
