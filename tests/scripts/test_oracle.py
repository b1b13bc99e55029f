# SPDX-License-Identifier: MIT
"""The oracle without a kernel: programs, shrinking, the initramfs, and a guest played by a stand-in for QEMU."""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from support import PYTHON, ROOT

from skbench_lib import oracle, oraclecover as cover, oracleguest, oraclenightly as nightly, oracleprog as prog
from skbench_lib.errors import FAILED, IMPOSSIBLE, USAGE, UserError

HOST = ROOT / "build" / "release" / "tests" / "oracle" / "oracle_host"

# Connects to the port as a guest does, then does what FAKE_QEMU says.
FAKE = """#!/usr/bin/python3
import os, re, socket, struct, sys, time
words = " ".join(sys.argv)
log = re.search(r"-serial file:(\\S+)", words)[1]
what = os.environ["FAKE_QEMU"]
if what == "refuses":
    sys.exit("qemu: could not open the kernel")
port = socket.socket(socket.AF_UNIX)
port.connect(re.search(r"path=(\\S+)", words)[1])
def console(text):
    open(log, "a").write(text + "\\r\\n")
def read(n):
    data = b""
    while len(data) < n:
        more = port.recv(n - len(data))
        if not more:
            sys.exit()
        data += more
    return data
if what == "mute":
    time.sleep(60)
if what == "no module":
    console("oracle guest: /virtio.ko: No such file or directory")
    sys.exit()
port.sendall(b"up\\n")
number = 0
while True:
    size = struct.unpack("=I", read(4))[0]
    flags, ops = struct.unpack("=2I", read(size)[:8])
    if what == "panics" and number == 2:
        console("[ 1.0] skb_oracle: loading out-of-tree module taints kernel.")
        console("[ 2.0] kernel BUG at net/core/skbuff.c:1!")
        sys.exit()
    if what == "falls silent" and number == 2:
        time.sleep(60)
    text = b"%d operations" % ops
    port.sendall(struct.pack("=I", len(text)) + text)
    number += 1
"""


def program(text):
    return prog.parse(text.replace("; ", "\n"))


class Programs(unittest.TestCase):
    def test_text_and_back(self):
        text = ("page p2 1\nalloc_fclone s0 320\nfrag s0 p2 1 100 1448\ntcp_fragment s1 s0 b2-1 1448\n"
                "split s3 s0 b0\ntrim s0 b255+127\npull_tail s0 7\nshift s0 s1 12\n")
        self.assertEqual(prog.text(prog.parse(text)), text)
        self.assertEqual(prog.text(prog.parse("# only\n\nalloc s0 1 # a word\n")), "alloc s0 1\n")

    def test_what_is_no_program(self):
        for text, word in (("explode s0", "'explode' is no operation"), ("alloc s0", "takes 2 operands, not 1"),
                           ("alloc s6 1", "'s6' is no register s0 to s5"), ("page s0 1", "'s0' is no register p0"),
                           ("alloc s0 -1", "'-1' is no number"), ("alloc s0 2147483648", "is no number below"),
                           ("alloc s0 b1", "'b1' is no number"), ("trim s0 b256", "out of range"),
                           ("trim s0 b1+128", "out of range")):
            with self.subTest(text):
                with self.assertRaises(UserError) as caught:
                    prog.parse("alloc s0 1\n" + text, "some.prog")
                self.assertEqual(caught.exception.status, USAGE)
                self.assertIn(word, str(caught.exception))
                self.assertTrue(str(caught.exception).startswith("some.prog:2: "))

    def test_every_operation_has_a_weight_and_is_drawn(self):
        self.assertEqual(set(prog.WEIGHTS) | set(prog.SOCK_WEIGHTS), set(prog.FORM))
        source = prog.Generator("w", 50)
        drawn = {op.name for i in range(200) for op in source.program(i)}
        self.assertEqual(drawn, set(prog.FORM))
        without = prog.Generator("w", 50, {"clone", "shift"})
        drawn = {op.name for i in range(200) for op in without.program(i)}
        self.assertEqual(drawn, set(prog.FORM) - {"clone", "shift"})

    def test_a_seed_replays(self):
        one, other = prog.Generator("a", 30), prog.Generator("a", 30)
        other.program(3)
        self.assertEqual(prog.text(one.program(7)), prog.text(other.program(7)))
        self.assertNotEqual(prog.text(one.program(7)), prog.text(prog.Generator("b", 30).program(7)))
        self.assertEqual(len(one.program(7)), 30)
        # What is printed is what ran.
        for i in range(50):
            self.assertEqual(prog.request(prog.parse(prog.text(one.program(i)))), prog.request(one.program(i)))

    def test_binary_form(self):
        self.assertEqual(prog.request(program("push s3 5 1"), prog.DUMP),
                         bytes([1, 0, 0, 0, 1, 0, 0, 0, prog.NUMBER["push"], 0, 3, 0,
                                5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]))

    def test_the_corpus_is_whole(self):
        names = oracle.corpus(set())
        self.assertGreater(len(names), 10)
        used = {op.name for _, one in names for op in one}
        self.assertTrue({"clone", "expand", "split", "shift", "tcp_trim_head", "tcp_fragment"} <= used)
        self.assertTrue({name for name in prog.NUMBER if name.startswith("sock_")} <= used)
        self.assertFalse([name for name, one in oracle.corpus({"shift"}) if "shift" in prog.text(one)])


class Shrinking(unittest.TestCase):
    def test_only_what_is_needed_stays(self):
        # Differs where a clone is followed by an expansion with headroom.
        def differs(programs):
            return [bool(clones) and any(op.name == "expand" and op.operands[1] for op in one[clones[0]:])
                    for one in programs for clones in [[i for i, op in enumerate(one) if op.name == "clone"]]]

        source = prog.Generator("shrink", 60)
        one = next(p for p in map(source.program, range(100)) if differs([p])[0])
        small = prog.shrink(one, differs)
        self.assertEqual([op.name for op in small], ["clone", "expand"])
        self.assertEqual(small[1].operands[1:], (1, 0))

    def test_one_operation(self):
        one = program("alloc s0 100")
        self.assertEqual(prog.text(prog.shrink(one, lambda programs: [bool(p) for p in programs])), "alloc s0 0\n")


class Differences(unittest.TestCase):
    def test_only_the_first_and_only_what_differs(self):
        ours = "\nop 0 alloc skipped=0 ret=0\ns0 len=0 tail=0\npages\nop 1 put skipped=0 ret=0\ns0 len=5 tail=5\npages"
        lines = list(oracle.differing(ours, ours.replace("tail=5", "tail=6")))
        self.assertIn("after op 1 put", lines[0])
        self.assertEqual(lines[2].split(), ["s0", "tail", "5", "6"])
        self.assertEqual(len(lines), 3)

    def test_lines_are_found_by_name(self):
        ours = "\nop 0 x skipped=0 ret=0\nsent0 len=9\ntcp una=1"
        lines = list(oracle.differing(ours, ours.replace("tcp una=1", "waits0 len=1\ntcp una=2")))
        self.assertEqual([line.split() for line in lines[2:]],
                         [["tcp", "una", "1", "2"], ["only", "kernel", "has", "waits0"]])

    def test_a_member_of_a_list(self):
        ours = "\nop 0 trim skipped=0 ret=0\ns0 len=9\n   member len=4\npages"
        lines = list(oracle.differing(ours, ours.replace("=4", "=5")))
        self.assertEqual(lines[-1].split(), ["member", "len", "4", "5"])

    def test_the_library_died(self):
        lines = list(oracle.differing("died: BUG at skb.c:1", "\nop 0 alloc"))
        self.assertIn("BUG at skb.c:1", lines[0])

    def test_costs(self):
        self.assertEqual(oracle.parse_costs("get_page,0,5\nskb_copy,16,70\n"),
                         {("get_page", 0): 5, ("skb_copy", 16): 70})
        for text in ("get_page,0\n", "get_page,0,-3\n", "oops\n"):
            with self.assertRaises(UserError):
                oracle.parse_costs(text)


class Initramfs(unittest.TestCase):
    def test_modules_come_behind_what_they_need(self):
        def module(depends):
            return b"ELF\0license=GPL\0depends=" + depends + b"\0name=x\0"

        modules = {"c": module(b"a,b"), "b": module(b"a"), "a": module(b""), "own": b"ELF"}
        self.assertEqual(oracleguest._in_order(modules), ["a", "b", "c", "own"])

    @unittest.skipUnless(os.path.exists("/usr/bin/cpio"), "cpio is missing: apt-get install cpio")
    def test_cpio_reads_it(self):
        archive = oracleguest._cpio([("init", 0o100755, b"#!\n"), ("dev", 0o040755, b""),
                                     ("modules", 0o100644, b"12345")])
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(["cpio", "-i", "--quiet"], input=archive, cwd=scratch, check=True)
            self.assertEqual(pathlib.Path(scratch, "modules").read_bytes(), b"12345")
            self.assertTrue(os.access(pathlib.Path(scratch, "init"), os.X_OK))


class Guests(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name)
        fake = self.path / "qemu"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        self.patch(oracleguest, "QEMU", str(fake))
        self.patch(oracleguest, "GUEST_SECONDS", 2)

    def patch(self, *what):
        patched = mock.patch.object(*what)
        patched.start()
        self.addCleanup(patched.stop)

    def boot(self, what):
        with mock.patch.dict(os.environ, FAKE_QEMU=what):
            guest = oracleguest.Guest(oracleguest.Kernel(self.path, "6.1.0-1-amd64", "6.1.1-1"), self.path / "initrd",
                                      self.path / "guest.log")
        self.addCleanup(guest.close)
        return guest

    def test_many_answers_in_order(self):
        guest = self.boot("answers")
        requests = [prog.request(program("alloc s0 1") * (i % 7)) for i in range(500)]
        self.assertEqual(guest.ask(requests), [f"{i % 7} operations" for i in range(500)])
        self.assertEqual(guest.ask(requests[:1]), ["0 operations"])

    def test_it_cannot_start(self):
        for what, word, status in (("refuses", "qemu: could not open the kernel", IMPOSSIBLE),
                                   ("no module", "oracle guest: /virtio.ko", FAILED),
                                   ("mute", "not up after 2 s", FAILED)):
            with self.subTest(what):
                with self.assertRaises(UserError) as caught:
                    self.boot(what)
                self.assertIn(word, str(caught.exception))
                self.assertEqual(str(caught.exception).count("\n"), 0)
                self.assertIn("guest.log", str(caught.exception))
                self.assertEqual(caught.exception.status, status)

    def test_it_panics_in_a_program(self):
        guest = self.boot("panics")
        named = [(f"program {i}", program(f"alloc s0 {i}")) for i in range(5)]
        run = oracle.Run(argparse.Namespace(seed="s", json=None, host=False))
        run.logs = self.path
        with self.assertRaises(UserError) as caught:
            run.ask_kernel(guest, [prog.request(one) for _, one in named], named)
        said = str(caught.exception)
        self.assertIn("kernel BUG at net/core/skbuff.c:1!", said)
        self.assertIn("died in program 2", said)
        self.assertIn("guest.log", said)
        self.assertNotIn("\n", said)
        self.assertEqual((self.path / "died.prog").read_text(), "# program 2\nalloc s0 2\n")

    def test_it_falls_silent(self):
        guest = self.boot("falls silent")
        with self.assertRaises(oracleguest.Died) as caught:
            guest.ask([prog.request([])] * 5, 1)
        self.assertEqual(caught.exception.number, 2)
        self.assertIn("said nothing for 1 s", str(caught.exception))
        self.assertIn("guest.log", str(caught.exception))

    def test_no_qemu(self):
        self.patch(oracleguest, "QEMU", str(self.path / "missing"))
        with self.assertRaises(UserError) as caught:
            self.boot("answers")
        self.assertEqual(caught.exception.status, IMPOSSIBLE)
        self.assertIn("scripts/install-packages oracle", str(caught.exception))


def built():
    """(kernel, initramfs) of a `skbench oracle` that has run here, or None."""
    for ready in sorted(oracleguest.directory().glob("linux-6.1.*/ready")):
        initrd = oracleguest.directory() / f"module-{ready.parent.name.removeprefix('linux-')}" / "initramfs.gz"
        if initrd.exists():
            return oracleguest._unpacked(ready.parent), initrd
    return None


@unittest.skipUnless(built() and not os.environ.get("SKBENCH_TEST_QUICK"),
                     "no kernel is there: scripts/skbench oracle brings it")
class RealGuests(unittest.TestCase):
    """Faults that are planted in a real guest."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name)
        self.kernel, self.initrd = built()

    def boot(self, initrd=None):
        guest = oracleguest.Guest(self.kernel, initrd or self.initrd, self.path / "guest.log")
        self.addCleanup(guest.close)
        return guest

    def one_line(self, error, *words):
        for word in (*words, "its log is", "guest.log"):
            self.assertIn(word, str(error))
        self.assertNotIn("\n", str(error))

    def test_it_hangs(self):
        guest = self.boot()
        with self.assertRaises(oracleguest.Died) as caught:
            guest.ask([prog.request([]), prog.request([], prog.HANG)], 5)
        self.assertEqual(caught.exception.number, 1)
        self.one_line(caught.exception, "it has said nothing for 5 s")

    def test_it_panics(self):
        guest = self.boot()
        with self.assertRaises(oracleguest.Died) as caught:
            guest.ask([prog.request([]), prog.request([], prog.PANIC)])
        self.assertEqual(caught.exception.number, 1)
        self.one_line(caught.exception, "Kernel panic", "asked to panic")

    def test_the_module_goes_and_comes_again(self):
        """Unloaded after a socket's programs, too, and loaded again it says the same."""
        guest = self.boot()
        corpus = [prog.request(parsed) for _, parsed in oracle.corpus(set())]
        first = guest.ask(corpus)
        for _ in range(2):
            self.assertEqual(guest.ask([b""]), ["unloaded"])
            self.assertEqual(guest.ask(corpus), first)

    def test_it_has_no_init(self):
        initrd = self.path / "empty.gz"
        initrd.write_bytes(gzip.compress(oracleguest._cpio([("dev", 0o040755, b"")])))
        with self.assertRaises(UserError) as caught:
            self.boot(initrd)
        self.one_line(caught.exception, "the guest ended before it was up: Kernel panic")
        self.assertEqual(caught.exception.status, FAILED)

    def test_its_module_is_none(self):
        initrd = self.path / "broken.gz"
        files = [("init", 0o100755, (self.initrd.parent / "oracle_init").read_bytes()), ("dev", 0o040755, b""),
                 ("dev/console", 0o020600, b"", (5, 1)), ("broken.ko", 0o100644, b"no module"),
                 ("modules", 0o100644, b"/broken.ko\n")]
        initrd.write_bytes(gzip.compress(oracleguest._cpio(files)))
        with self.assertRaises(UserError) as caught:
            self.boot(initrd)
        self.one_line(caught.exception, "the guest ended before it was up: oracle guest: /broken.ko: Exec format error")


class Nightly(unittest.TestCase):
    """A campaign that goes on where it was stopped."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.kernel = oracleguest.Kernel(scratch.name, "6.1.0-1-amd64", "6.1.1-1")
        patch = mock.patch.object(oracleguest, "directory", lambda: pathlib.Path(scratch.name))
        patch.start()
        self.addCleanup(patch.stop)

    def test_it_goes_on(self):
        record = nightly.Record(None, "fresh", [self.kernel])
        self.assertEqual((record.seed, record.done), ("fresh", {}))
        record.note("6.1 plain 10x30", 500)
        record.note("6.1 plain 10x30", 1000)
        again = nightly.Record(None, "other", [self.kernel])
        self.assertEqual((again.seed, again.done), ("fresh", {"6.1 plain 10x30": 1000}))
        again.finish()
        self.assertEqual(nightly.Record(None, "other", [self.kernel]).seed, "other")

    def test_nothing_else_is_gone_on_with(self):
        nightly.Record(None, "fresh", [self.kernel]).note("6.1 plain 10x30", 500)
        self.assertEqual(nightly.Record("named", "x", [self.kernel]).done, {})
        newer = oracleguest.Kernel(self.kernel.root, "6.1.0-1-amd64", "6.1.1-2")
        self.assertEqual(nightly.Record(None, "x", [newer]).done, {})
        (oracleguest.directory() / "nightly.json").write_text("no json")
        self.assertEqual(nightly.Record(None, "x", [self.kernel]).seed, "x")

    def test_every_program_is_run_once(self):
        source = prog.Generator("s", 3)
        for first, programs in ((0, 1200), (7, 1200), (7, 3), (700, 10), (500, 500)):
            campaign = oracle.Campaign("6.1", "plain", [(f"c{i}", []) for i in range(first)], source, programs)
            names = [name for at in range(0, len(campaign), oracle.BATCH) for name, _ in campaign.part(at)]
            self.assertEqual(names, [f"c{i}" for i in range(first)]
                             + [f"--seed s --ops 3, program {i}" for i in range(programs)])


COVERED = """
static inline int half(int n) { return n > 5 ? n / 2 : n; }
int one_6_1(int n) { if (n > 2 && n < 9) return half(n); return 0; }
int one_3_4(int n) { return n ? 1 : 2; }
int never(int n) { return n ? 3 : 4; }
int main(int argc, char **argv) { (void)argv; return one_6_1(argc + 2) - 3 + one_6_1(argc) * one_3_4(argc); }
"""


@unittest.skipUnless(shutil.which("clang") and shutil.which("llvm-cov"), "llvm-cov is missing: apt-get install llvm")
class Coverage(unittest.TestCase):
    def test_a_program(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch)
            (path / "skb").mkdir()
            source = path / "skb" / "x.c"
            source.write_text(COVERED)
            subprocess.run(["clang", "-O1", "-fprofile-instr-generate", "-fcoverage-mapping", "-o", path / "x", source],
                           check=True)
            subprocess.run([path / "x"], check=True, env={"LLVM_PROFILE_FILE": str(path / "raw")})
            subprocess.run(["llvm-profdata", "merge", "-o", path / "merged", path / "raw"], check=True)
            said = subprocess.run(["llvm-cov", "export", f"--instr-profile={path / 'merged'}", path / "x"], check=True,
                                  capture_output=True, text=True).stdout
            with mock.patch.object(cover, "repo_root", lambda: path):
                files = cover.read(json.loads(said), scratch, ["6.1", "6.12"])
                lines = list(cover.table(files))
        # n > 2 both ways, n < 9 one way, n > 5 one way; the two of never() are there, those of one_3_4() are not.
        self.assertEqual(cover.total(files), (4, 6, 8))
        self.assertEqual(lines[-3:], ["  skb/x.c:2:40 never true: n > 5 ? n / 2 : n; }",
                                      "  skb/x.c:3:35 never false: n < 9) return half(n); return 0; }",
                                      "  skb/x.c: 1 function not called: never"])


class Commands(unittest.TestCase):
    def skbench(self, *words):
        return subprocess.run([PYTHON, "-m", "skbench_lib", "oracle", *words], cwd=ROOT / "scripts",
                              capture_output=True, text=True)

    def test_usage(self):
        for words, text in ((["--programs", "0"], "is no number from 1"), (["--ops", "x"], "is no number from 1"),
                            (["--era", "3.4"], "invalid choice"), (["--library", "--nightly"], "--library goes with"),
                            (["--program", "x", "--nightly"], "--program goes with"),
                            (["--kernel", "6.1"], "--kernel and --against go together"),
                            (["--kernel", "6.1", "--against", "6.12", "--era", "6.1"], "only"),
                            (["--kernel", "/nowhere", "--against", "6.1"], "'/nowhere' is no kernel"),
                            (["--host", "--era", "6.1"], "--era does not go with --host"),
                            (["--host", "--library"], "--host goes with"),
                            (["--host", "--nightly"], "--host goes with"),
                            (["--library", "--program", "/nowhere.prog"], "/nowhere.prog cannot be read")):
            with self.subTest(words):
                done = self.skbench(*words)
                self.assertEqual(done.returncode, USAGE, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertIn(text, done.stderr)


@unittest.skipUnless(HOST.exists(), "build/release is not built: scripts/skbench oracle --library builds it")
class Library(unittest.TestCase):
    """The interpreter over the library."""

    def setUp(self):
        self.library = oracleguest.Host("6.1", HOST)
        self.addCleanup(self.library.close)

    def states(self, text):
        return self.library.ask([prog.request(program(text), prog.DUMP)])[0]

    def test_operations_have_the_same_numbers(self):
        for name, form in prog.OPS:
            if name not in oracle.lacking():
                operands = [0 for _ in form]
                text = self.library.ask([prog.request([prog.Op(name, *operands)], prog.DUMP)])[0]
                self.assertIn(f"op 0 {name} ", text)

    def test_a_socket(self):
        state = self.states("sock_send 5000 0; sock_ack 0 1448; sock_complete 1; sock_ack 0 3552")
        ops = state.split("\nop ")
        self.assertIn(" dataref=2 ", ops[1])
        self.assertIn(" snd_una=1449 snd_nxt=5001 write_seq=5001 packets_out=3 ", ops[2])
        self.assertIn(" dataref=1 ", ops[3])
        self.assertNotIn("\nsent0", ops[4].split("\nend")[0])
        self.assertIn(" wmem_queued=0 ", ops[4].split("\ntcp")[1])

    def test_corpus_skips_nothing(self):
        for name, one in oracle.corpus(oracle.lacking()):
            with self.subTest(name):
                self.assertNotIn("skipped=1", self.library.ask([prog.request(one, prog.DUMP)])[0])

    def test_states_are_told_apart(self):
        texts = ["alloc s0 0", "alloc s0 385", "alloc_fclone s0 0", "alloc s0 0; put s0 1", "alloc s0 0; alloc s1 0",
                 "alloc s0 0; get s1 s0", "alloc s0 0; clone s1 s0", "page p0 0; alloc s0 0; frag s0 p0 0 0 8",
                 "page p0 0; alloc s0 0; frag s0 p0 0 1 8", "page p0 0; alloc s0 0; frag s0 p0 0 0 9",
                 "sock_send 2 0", "sock_send 2 1", "sock_send 2 2", "sock_send 2 0; sock_ack 0 2",
                 "sock_send 2 0; sock_complete 1", "sock_send 2 0; sock_lost 0", "page p0 0; sock_zerocopy p0 0 2 0",
                 "page p0 0; sock_zerocopy p0 0 2 1"]
        answers = self.library.ask([prog.request(program(text)) for text in texts])
        self.assertEqual(len(set(answers)), len(texts))
        self.assertEqual(answers, self.library.ask([prog.request(program(text)) for text in texts]))

    def test_everything_is_let_go_of(self):
        source = prog.Generator("end", 40, oracle.lacking())
        for text in self.library.ask([prog.request(source.program(i), prog.DUMP) for i in range(50)]):
            end = text[text.index("\nend"):]
            self.assertNotIn("\ns", end.replace("\nsock", ""))
            self.assertIn(" owned=0 ", end)
        self.library.finish()

    def test_an_unknown_operation_ends_it(self):
        good = prog.request(program("alloc s0 1"))
        broken = good[:8] + b"\xff" + good[9:]
        self.assertTrue(self.library.ask([broken])[0].startswith("died: oracle_host: "))
        self.assertIn("op 0 alloc", self.states("alloc s0 1"))


if __name__ == "__main__":
    sys.exit(unittest.main())
