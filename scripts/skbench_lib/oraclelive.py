# SPDX-License-Identifier: MIT
"""The running kernel as the oracle's: `skbench oracle --host` loads the module into it and takes it out again.

Its sockets are in a network namespace of their own, which ends with the process. A Live answers what a Guest does.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from . import oracleguest as guest
from .errors import FAILED, IMPOSSIBLE, UserError

NAME = "skb_oracle"
SECONDS = 60  # for insmod and rmmod
CLONE_NEWNET = 0x40000000
FOREIGN = 1 << 12 | 1 << 13  # /proc/sys/kernel/tainted: a module from outside the tree, an unsigned one


class Running(guest.Kernel):
    """The kernel that runs below ROOT; its headers are where its own packages put them."""

    def __init__(self, root=Path("/")):
        name = os.uname()
        super().__init__(root, name.release, hashlib.sha256(name.version.encode()).hexdigest()[:12])

    @property
    def headers(self):
        return self.root / "lib" / "modules" / self.release / "build"

    def check(self):
        """Refuses what cannot be, before anything is built or loaded."""
        if os.geteuid():
            raise UserError("--host loads a module into the running kernel, which only root may", IMPOSSIBLE)
        if not (self.root / "proc" / "modules").exists():
            raise UserError(f"the running kernel, Linux {self.release}, takes no modules: without --host the oracle boots "
                            "one that does", IMPOSSIBLE)
        if self.era not in guest.SOURCES:
            raise UserError(f"the library has no era of the running kernel, Linux {self.release}, only "
                            f"{' and '.join(guest.SOURCES)}: without --host the oracle boots such a one", IMPOSSIBLE)
        if not self.headers.is_dir():
            raise UserError(f"{self.headers} is missing: apt-get install linux-headers-{self.release}", IMPOSSIBLE)
        for tool in ("insmod", "rmmod"):
            if shutil.which(tool) is None:
                raise UserError(f"{tool} is not installed: apt-get install kmod", IMPOSSIBLE)
        if self.loaded():
            raise UserError(f"{NAME} is loaded already, by another run or one that was killed: rmmod {NAME}", IMPOSSIBLE)

    def loaded(self):
        text = (self.root / "proc" / "modules").read_text(encoding="ascii", errors="replace")
        return any(line.split(" ")[0] == NAME for line in text.splitlines())

    def tainted(self):
        """What the kernel says has gone wrong in it, as bits; that a module is foreign is no news."""
        text = (self.root / "proc" / "sys" / "kernel" / "tainted").read_text(encoding="ascii")
        return int(text) & ~FOREIGN


def leave_network():
    """This process, and what it loads, has a network of its own from now on."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise UserError(f"a network namespace is refused: {os.strerror(ctypes.get_errno())}", IMPOSSIBLE)


def _run(*command):
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{command[0]} does not end within {SECONDS} s"
    return (ended.stderr.strip().splitlines() or [f"{command[0]} exits with {ended.returncode}"])[-1] \
        if ended.returncode else None


class Live:
    """The module of WORK in KERNEL, a Running, from here to close()."""

    def __init__(self, kernel, work):
        self.kernel = kernel
        self.before = kernel.tainted()
        why = _run("insmod", str(work / f"{NAME}.ko"))
        if why:
            raise UserError(f"the running kernel does not take the module: {why}", IMPOSSIBLE)
        try:
            self.proc = os.open(kernel.root / "proc" / NAME, os.O_RDWR)
        except OSError as error:
            _run("rmmod", NAME)
            raise UserError(f"/proc/{NAME} cannot be opened: {error.strerror}", FAILED) from None

    def ask(self, requests, seconds=None):
        """The answers to REQUESTS, as texts; Died if the kernel refuses one, or complains. SECONDS: it answers at once."""
        answers = []
        for request in requests:
            try:
                os.write(self.proc, request)
                answers.append(os.pread(self.proc, 8 << 20, 0).decode())
            except OSError as error:
                raise guest.Died(f"the module answers {error.strerror}", len(answers)) from None
            if self.kernel.tainted() != self.before:
                raise guest.Died("the running kernel has complained: dmesg tells of what", len(answers))
        return answers

    def close(self):
        """Takes the module out; UserError if it stays."""
        os.close(self.proc)
        why = _run("rmmod", NAME)
        if why or self.kernel.loaded():
            raise UserError(f"{NAME} is still loaded{': ' + why if why else ''}; rmmod {NAME} takes it out", FAILED)
