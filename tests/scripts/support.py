# SPDX-License-Identifier: MIT
"""Shared by the script tests: the package's path, the fake bench binary, and the command line as a process."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

FAKE = ROOT / "tests" / "scripts" / "fake_bench.py"
PYTHON = "/usr/bin/python3"


class FakeBench:
    """A directory with the fake binary under the names of the real ones; PLAN as in fake_bench.py."""

    def __init__(self, **plan):
        self.temporary = tempfile.TemporaryDirectory(prefix="skbench-fake-")
        self.path = pathlib.Path(self.temporary.name)
        self.bin = self.path / "bin"
        self.bin.mkdir()
        for name in ("bench_mptcp", "bench_mptcp_traced", "bench_tcp", "bench_tcp_traced"):
            (self.bin / name).symlink_to(FAKE)
        self.state = self.path / "state"
        self.plan = plan

    def environment(self):
        return {**os.environ, "SKBENCH_BENCH_DIR": str(self.bin), "FAKE_STATE": str(self.state),
                "FAKE_BENCH": json.dumps(self.plan)}

    def count(self):
        """How many samples were taken."""
        return self.state.stat().st_size if self.state.exists() else 0

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.temporary.cleanup()

    def start(self, *args, **how):
        """`skbench ARGS` as a process, with pipes, and with SIGINT at its default even under nohup."""
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([PYTHON, "-m", "skbench_lib", *map(str, args)], cwd=ROOT / "scripts", text=True,
                                env=self.environment(), start_new_session=True,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **how)

    def run(self, *args, **how):
        """The same to its end: (status, standard output, standard error)."""
        process = self.start(*args, **how)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err
