# SPDX-License-Identifier: MIT
"""libperf, built from Debian's kernel sources, which is the only place where Debian 12 has it.

Its sources say GPL-2.0, so that only skb-prof is linked with it. What is built lies in the user's cache and outlives
the build tree: reading the archive takes 20 seconds, the build three.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .errors import IMPOSSIBLE, UserError

PACKAGE = "linux-source-6.1"
ARCHIVE = Path("/usr/src/linux-source-6.1.tar.xz")
CACHE_VARIABLE = "SKBENCH_CACHE"  # where what was built from packages is kept, instead of the user's cache
PARTS = ("lib", "include", "arch", "build", "scripts")  # of the kernel's tools/
LIMIT_S = 600


def cache_dir():
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "skbench"


def version():
    """The version of the installed package, or None."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f=${Version} ${db:Status-Status}", PACKAGE], capture_output=True,
                              text=True)
    except OSError:
        return None
    found, _, status = done.stdout.partition(" ")
    return found if done.returncode == 0 and status == "installed" else None


def ensure(quiet=False):
    """(directory, version) of a built libperf, with include/, libperf.a and libapi.a in it. Raises UserError."""
    found = version()
    if found is None or not ARCHIVE.is_file():
        raise UserError(f"{PACKAGE} is not installed, from which libperf is built: scripts/install-packages profile",
                        IMPOSSIBLE)
    directory = cache_dir() / f"libperf-{found}"
    if (directory / "libperf.a").is_file():
        return directory, found
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with open(directory.parent / ".libperf.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (directory / "libperf.a").is_file():
                if not quiet and sys.stderr.isatty():
                    sys.stderr.write("building libperf from the kernel's sources, once: half a minute\n")
                _build(directory)
    except OSError as error:
        raise UserError(f"{directory.parent}: libperf cannot be kept there ({error.strerror}): name another directory "
                        f"in {CACHE_VARIABLE}", IMPOSSIBLE) from None
    return directory, found


def _build(directory):
    with tempfile.TemporaryDirectory(prefix=".libperf-", dir=directory.parent) as scratch:
        tools = Path(scratch) / PACKAGE / "tools"
        _run(["tar", "-C", scratch, "-xf", str(ARCHIVE), *(f"{PACKAGE}/tools/{part}" for part in PARTS)])
        _run(["make", "-s", "-C", str(tools / "lib" / "perf"), "V=0"])
        made = Path(scratch) / "made"
        made.mkdir()
        for archive in (tools / "lib" / "perf" / "libperf.a", tools / "lib" / "api" / "libapi.a"):
            shutil.copy2(archive, made)
        shutil.copytree(tools / "lib" / "perf" / "include" / "perf", made / "include" / "perf")
        made.rename(directory)


def _run(command):
    # The caller's flags are not for these sources.
    environment = {key: value for key, value in os.environ.items() if key not in ("CFLAGS", "LDFLAGS", "MAKEFLAGS", "CC")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, env=environment)
    except FileNotFoundError:
        raise UserError(f"{command[0]} is not installed: scripts/install-packages profile", IMPOSSIBLE) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"libperf: {command[0]} did not end within {LIMIT_S} s", IMPOSSIBLE) from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise UserError(f"libperf cannot be built: {command[0]}: {said}", IMPOSSIBLE)
