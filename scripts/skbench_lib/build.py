# SPDX-License-Identifier: MIT
"""Builds of this tree: one directory build/PRESET for each preset of CMakePresets.json."""

import collections
import fcntl
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

from .children import started
from .errors import FAILED, IMPOSSIBLE, UserError
from .tree import repo_root

__all__ = ["repo_root", "build_dir", "bench_binary", "ensure_built", "ensure_prof"]

LOG = "skbench-build.log"
PROF_VARIABLE = "SKBENCH_PROF"  # the program skb-prof, instead of a build of it
TAIL_LINES = 30


def build_dir(preset="release", root=None):
    """The build directory of PRESET in the source tree ROOT (default: this one)."""
    return (root or repo_root()) / "build" / preset


def bench_binary(case, preset="release", traced=False):
    """The program that holds the case named CASE (`tcp/trim/...`: bench_tcp, or bench_tcp_traced)."""
    return build_dir(preset) / "benches" / f"bench_{case.split('/')[0]}{'_traced' if traced else ''}"


def ensure_built(preset="release", quiet=False, targets=None, root=None):
    """Configures and builds PRESET (only TARGETS, if given) of the source tree ROOT and returns its directory.

    Two calls at once, from two processes too, wait for each other. Shows progress on a terminal unless QUIET; says
    nothing in a pipe. Raises UserError with the end of the log if the build fails.
    """
    root = root or repo_root()
    directory = build_dir(preset, root)
    directory.parent.mkdir(exist_ok=True)
    show = _Progress(preset, enabled=not quiet and sys.stderr.isatty())
    with _locked(directory.parent / f".{preset}.lock", show):
        directory.mkdir(exist_ok=True)
        log_path = directory / LOG
        with open(log_path, "w", encoding="utf-8") as log:
            for command in _commands(preset, directory, targets, root):
                _run(command, log, log_path, show, root)
        show.done()
    return directory


def ensure_prof(quiet=False):
    """Builds skb-prof, a project of its own (prof/CMakeLists.txt), with the libperf that it needs; returns its path.

    Raises UserError with IMPOSSIBLE where libperf is not to be had.
    """
    from . import libperf

    given = os.environ.get(PROF_VARIABLE)
    if given:
        return given
    library, package = libperf.ensure(quiet)
    root = repo_root()
    directory = build_dir("prof")
    directory.parent.mkdir(exist_ok=True)
    show = _Progress("skb-prof", enabled=not quiet and sys.stderr.isatty())
    with _locked(directory.parent / ".prof.lock", show):
        directory.mkdir(exist_ok=True)
        log_path = directory / LOG
        with open(log_path, "w", encoding="utf-8") as log:
            for command in _prof_commands(directory, library, package, root):
                _run(command, log, log_path, show, root)
        show.done()
    return directory / "skb-prof"


def _prof_commands(directory, library, package, root):
    cache = directory / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8", errors="replace") if cache.exists() else ""
    fresh = f"CMAKE_HOME_DIRECTORY:INTERNAL={root}/prof\n" not in text
    if fresh or f"PROF_LIBPERF:PATH={library}\n" not in text or not (directory / "build.ninja").exists():
        yield ["cmake", *(["--fresh"] if fresh and text else []), "-G", "Ninja", "-S", str(root / "prof"), "-B",
               str(directory), f"-DPROF_LIBPERF={library}", f"-DPROF_LIBPERF_VERSION={libperf_name(package)}"]
    yield ["cmake", "--build", str(directory)]


def libperf_name(package):
    from . import libperf

    return f"{libperf.PACKAGE} {package}"


def _commands(preset, directory, targets, root):
    presets = root / "CMakePresets.json"
    cache = directory / "CMakeCache.txt"
    try:
        text = cache.read_text(encoding="utf-8", errors="replace")
        # A cache that came along with a copied tree still names the old one.
        fresh = f"CMAKE_HOME_DIRECTORY:INTERNAL={root}\n" not in text
        configured = (directory / "build.ninja").exists() and cache.stat().st_mtime >= presets.stat().st_mtime
    except FileNotFoundError:
        fresh, configured = False, False
    if fresh or not configured:
        yield ["cmake", *(["--fresh"] if fresh else []), "--preset", preset, "-B", str(directory)]
        if cache.exists():
            os.utime(cache)
    yield ["cmake", "--build", str(directory), *(["--target", *targets] if targets else [])]


def _run(command, log, log_path, show, root):
    log.write(f"$ {' '.join(command)}\n")
    last = collections.deque(maxlen=TAIL_LINES)
    environment = {**os.environ, "NINJA_STATUS": "[%f/%t] "}
    try:
        with started(command, cwd=root, env=environment, text=True, errors="replace", stdout=subprocess.PIPE,
                     stderr=subprocess.STDOUT) as child:
            for line in child.stdout:
                log.write(line)
                last.append(line)
                show.line(line)
            child.communicate()
    except FileNotFoundError:
        raise UserError(f"{command[0]} is not installed: scripts/install-packages run", IMPOSSIBLE) from None
    if child.returncode != 0:
        show.done()
        log.flush()
        sys.stderr.write("".join(last))
        raise UserError(f"the build of {show.preset} failed; its log is {log_path}", FAILED)


@contextmanager
def _locked(path, show):
    with open(path, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            show.line("[another build of it is running: waiting]")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Progress:
    """One line on the terminal that is written over and over."""

    def __init__(self, preset, enabled):
        self.preset = preset
        self.enabled = enabled
        self.shown = False
        self.last = 0.0

    def line(self, text):
        bracket = re.match(r"\[[^]]*\]", text)
        if not self.enabled or not bracket or time.monotonic() - self.last < 0.05:
            return
        self.last = time.monotonic()
        self.shown = True
        sys.stderr.write(f"\r\x1b[Kbuilding {self.preset} {bracket.group()}")
        sys.stderr.flush()

    def done(self):
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.shown = False
