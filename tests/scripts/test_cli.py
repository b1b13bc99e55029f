# SPDX-License-Identifier: MIT
"""scripts/skbench as a user calls it."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
SKBENCH = ROOT / "scripts" / "skbench"
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import __main__ as cli, topology  # noqa: E402
from skbench_lib.errors import UserError  # noqa: E402
from skbench_lib.fingerprint import Reader  # noqa: E402


def skbench(*words, **more):
    return subprocess.run([SKBENCH, *words], capture_output=True, text=True, timeout=60, **more)


class Usage(unittest.TestCase):
    def test_help(self):
        done = skbench("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in cli.COMMANDS:
            with self.subTest(name):
                self.assertIn(f"    {name}", done.stdout)
                one = skbench(name, "--help")
                self.assertEqual((one.returncode, one.stderr), (0, ""))
                self.assertIn("--json", one.stdout)
                self.assertLessEqual(max(map(len, one.stdout.splitlines())), 80)

    def test_wrong_usage_is_one_line_and_2(self):
        for words in ([], ["bogus"], ["topology", "--bogus"], ["topology", "extra"], ["test", "--quick", "--sanitize"],
                      ["test", "--qui"], ["ledger", "--check", "--write"], ["instructions", "--compiler", "icc"],
                      ["ledger", "--json"], ["run", "--filter", "("], ["aa", "--duets", "none"]):
            with self.subTest(words):
                done = skbench(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("skbench: "))

    def test_version(self):
        self.assertRegex(skbench("--version").stdout, r"^skbench \d+\.\d+\.\d+\n$")


class Ends(unittest.TestCase):
    """How main() ends, with a command that raises."""

    def end(self, error):
        module = mock.Mock()
        module.add_parser = lambda subparsers: subparsers.add_parser("topology").set_defaults(
            func=mock.Mock(side_effect=error))
        err = io.StringIO()
        with mock.patch("importlib.import_module", return_value=module), contextlib.redirect_stderr(err):
            status = cli.main(["topology"])
        return status, err.getvalue()

    def test_user_error(self):
        self.assertEqual(self.end(UserError("no such thing", 4)), (4, "skbench: no such thing\n"))
        self.assertEqual(self.end(UserError("no such thing"))[0], 2)

    def test_interrupt(self):
        self.assertEqual(self.end(KeyboardInterrupt()), (130, "skbench: interrupted\n"))

    def test_ctrl_c_during_a_command(self):
        # A stand-in on PATH plays a build that never ends; its process must be gone afterwards.
        with tempfile.TemporaryDirectory() as scratch:
            pid = Path(scratch) / "pid"
            for tool in ("cmake", "ctest"):
                stand_in = Path(scratch) / tool
                stand_in.write_text(f"#!/bin/sh\necho $$ >{pid}\nexec sleep 60\n")
                stand_in.chmod(0o755)
            code = ("import sys; from pathlib import Path; from skbench_lib import build, __main__ as cli\n"
                    f"build.repo_root = lambda: Path({scratch!r})\n"
                    "class Module:\n"
                    "    def add_parser(s):\n"
                    "        s.add_parser('topology').set_defaults(func=lambda a: build.ensure_built('release'))\n"
                    "cli.importlib.import_module = lambda *a: Module\n"
                    "sys.exit(cli.main(['topology']))\n")
            (Path(scratch) / "CMakePresets.json").touch()
            # Whoever runs the tests may ignore SIGINT, as a shell makes its background jobs do.
            child = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True,
                                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                                     env={**os.environ, "PATH": f"{scratch}:{os.environ['PATH']}",
                                          "PYTHONPATH": str(ROOT / "scripts")})
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
            deadline = time.monotonic() + 20
            while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
                time.sleep(0.02)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=20)
            self.assertEqual((child.returncode, err), (130, "skbench: interrupted\n"))
            self.assertFalse((Path("/proc") / pid.read_text().strip()).exists())

    def test_reader_that_goes_away(self):
        reader, writer = os.pipe()
        os.close(reader)
        child = subprocess.run([SKBENCH, "topology"], stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        self.assertEqual((child.returncode, child.stderr), (128 + signal.SIGPIPE, ""))


class Topology(unittest.TestCase):
    def test_this_machine(self):
        done = skbench("topology", "--json", "-")
        machine = json.loads(done.stdout)
        self.assertEqual(machine["allowed"], sorted(os.sched_getaffinity(0)))
        self.assertIn("ledger", done.stderr)  # what people read goes there
        self.assertLessEqual(max(map(len, skbench("topology").stdout.splitlines()[1:])), 80)

    def test_matrix(self):
        pairs = [{"a": a, "b": b, "p50": 100.0 * a + b} for a in range(14) for b in range(a + 1, 14)]
        lines = list(topology.matrix(pairs))
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual(len(lines), 1 + 2 * 15)
        self.assertEqual(lines[2].split(), ["0", "-"] + [str(b) for b in range(1, 12)])
        self.assertEqual(lines[-1].split(), ["13", "1213", "-"])

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU: no pair to measure")
    def test_latency(self):
        done = skbench("topology", "--latency", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        for pair in json.loads(done.stdout)["latency"]:
            self.assertTrue(0 < pair["p10"] <= pair["p50"] <= pair["p90"])
        one = skbench("topology", "--latency", "--cpus", "0")
        self.assertEqual((one.returncode, one.stdout), (4, ""))
        self.assertIn("one CPU", one.stderr)
        self.assertEqual(skbench("topology", "--cpus", "0").returncode, 2)

    def test_numbers(self):
        self.assertEqual(topology.numbers("0-2,5\n"), [0, 1, 2, 5])
        self.assertEqual(topology.numbers("\n"), [])

    def machine(self, nodes, devices, siblings):
        """topology.read() of a machine with 4 CPUs on NODES nodes."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        root = Path(scratch.name)

        def put(name, text):
            path = root / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        put("/proc/cpuinfo", "model name\t: A CPU\nflags\t\t: fpu\n")
        put("/proc/sys/kernel/perf_event_paranoid", "2\n")
        put(f"{topology.CPU}/online", "0-3\n")
        for cpu in range(4):
            put(f"{topology.CPU}/cpu{cpu}/topology/thread_siblings_list", siblings[cpu])
            put(f"{topology.CPU}/cpu{cpu}/topology/core_id", siblings[cpu].split(",")[0])
            put(f"{topology.CPU}/cpu{cpu}/topology/physical_package_id", "0\n")
        for node in range(nodes):
            put(f"{topology.NODE}/node{node}/cpulist", f"{node * 4 // nodes}-{(node + 1) * 4 // nodes - 1}\n")
            put(f"{topology.NODE}/node{node}/meminfo", f"Node {node} MemTotal:       2097152 kB\n")
            put(f"{topology.NODE}/node{node}/distance", "10 21\n")
        for device in ["software", *devices]:
            put(f"/sys/bus/event_source/devices/{device}/type", "1\n")
        return topology.read(Reader(root), [0, 1, 2])

    def test_two_nodes_with_smt_and_a_pmu(self):
        machine = self.machine(2, ["cpu"], ["0,2", "1,3", "0,2", "1,3"])
        can = {ability["what"]: ability["can"] for ability in machine["abilities"]}
        self.assertTrue(can["numa"] and can["smt"] and can["pmu"] and can["contention"])
        text = "\n".join(topology.lines(machine))
        self.assertIn("CPUs    0-3, allowed 0-2: 1 package(s), 2 core(s)\n", text)
        self.assertIn("node    1: CPUs 2-3, 2.0 GB, distances 10 21", text)

    def test_what_cannot_be_done_names_its_remedy(self):
        machine = self.machine(1, [], ["0", "1", "2", "3"])
        text = {ability["what"]: ability["text"] for ability in machine["abilities"] if not ability["can"]}
        self.assertIn("2 nodes", text["numa"])
        self.assertIn("bare metal", text["pmu"])
        self.assertIn("firmware", text["smt"])


if __name__ == "__main__":
    unittest.main()
