# SPDX-License-Identifier: MIT
"""Which branches of the library the programs of the oracle reach: a measure of the generator.

clang counts both outcomes of every condition in the source, however often a function is instantiated. A condition that
an instance's constants decide counts where any instance goes that way.
"""

import json
import os
import re
import subprocess
import tempfile

from . import children
from . import oracleguest as guest
from .build import build_dir, ensure_built
from .errors import FAILED, IMPOSSIBLE, UserError
from .table import plural, wrapped
from .tree import repo_root

PRESET = "coverage"
TOOL_SECONDS = 120
WIDTH = 100
LIBRARY = ("skb/", "tcp/", "mptcp/")


class File:
    """One file of the library: {(line, column): [times true, times false]} and the functions that nothing called."""

    def __init__(self, name):
        self.name = name
        self.conditions = {}
        self.calls = {}  # (first line, name): times called
        self.spans = {}  # (first line, name): last line

    def uncalled(self):
        return [key for key, count in sorted(self.calls.items()) if not count]

    def in_called(self):
        """The conditions of functions that were called."""
        dead = [(line, self.spans[line, name]) for line, name in self.uncalled()]
        return {at: counts for at, counts in sorted(self.conditions.items())
                if not any(first <= at[0] <= last for first, last in dead)}

    def reached(self):
        return sum(bool(count) for counts in self.conditions.values() for count in counts)

    def within_reach(self):
        """The branches of the functions that were called."""
        return 2 * len(self.in_called())


def other_era(name, eras):
    """Whether the function NAME is an instance for an era that is none of ERAS."""
    suffixes = {f"_{era.replace('.', '_')}" for era in ("3.4", "6.1", "6.12")}
    mine = {f"_{era.replace('.', '_')}" for era in eras}
    return any(re.search(rf"{suffix}(_|$)", name) for suffix in suffixes - mine)


def measure(eras, requests):
    """[File] of the library's files that hold a condition, after the answers to REQUESTS in each of ERAS."""
    ensure_built(PRESET, targets=["oracle_host"])
    program = build_dir(PRESET) / "tests" / "oracle" / "oracle_host"
    with tempfile.TemporaryDirectory(dir=build_dir(PRESET)) as scratch:
        for era in eras:
            library = guest.Host(era, program, LLVM_PROFILE_FILE=os.path.join(scratch, f"{era}.profraw"))
            try:
                for answer in library.ask(requests):
                    if answer.startswith("died"):
                        raise UserError(f"the library {answer}: skbench oracle --library shows the program", FAILED)
                library.finish()
            finally:
                library.close()
        merged = os.path.join(scratch, "merged")
        _tool("llvm-profdata", "merge", "-o", merged, *(os.path.join(scratch, f"{era}.profraw") for era in eras))
        exported = json.loads(_tool("llvm-cov", "export", "--format=text", f"--instr-profile={merged}", str(program)))
    return read(exported, str(repo_root()), eras)


def _tool(name, *words):
    try:
        ended = children.run([name, *words], TOOL_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise UserError(f"{name} is not installed: scripts/install-packages test", IMPOSSIBLE) from None
    if ended.timed_out or ended.status != 0:
        last = (ended.err or "").strip().splitlines()[-1:]
        raise UserError(f"{name} {ended.why(TOOL_SECONDS)}{': ' + last[0] if last else ''}", FAILED)
    return ended.out


def read(exported, root, eras):
    """The Files below ROOT that llvm-cov's EXPORTED object tells of, without instances for other eras than ERAS."""
    files = {}
    for function in exported["data"][0]["functions"]:
        name = os.path.relpath(function["filenames"][0], root)
        if not name.startswith(LIBRARY) or other_era(function["name"], eras):
            continue
        file = files.setdefault(name, File(name))
        first, _, last = function["regions"][0][:3]
        # A static inline function has a copy in each source file that uses it.
        key = first, function["name"].rpartition(":")[2]
        file.calls[key] = file.calls.get(key, 0) + function["count"]
        file.spans[key] = max(last, file.spans.get(key, 0))
        for line, column, _, _, true, false, where, *_ in function.get("branches", []):
            if where:  # within a macro: its own file counts it
                continue
            counts = file.conditions.setdefault((line, column), [0, 0])
            counts[0] += true
            counts[1] += false
    return [file for _, file in sorted(files.items()) if file.conditions]


def total(files):
    """Branches that were reached, of all in functions that were called, of all."""
    return (sum(file.reached() for file in files), sum(file.within_reach() for file in files),
            sum(2 * len(file.conditions) for file in files))


def table(files):
    yield f"{'file':<32}{'branches':>10}{'in functions':>14}{'reached':>10}"
    yield f"{'':<32}{'':>10}{'called':>14}"
    for file in files:
        within, reached = file.within_reach(), file.reached()
        share = f"{100 * reached / within:>6.0f} %" if within else ""
        yield f"{file.name:<32}{2 * len(file.conditions):>10}{within:>14}{reached:>10}{share}"
    yield ""
    yield "never reached:"
    for file in files:
        yield from never(file)


def never(file):
    """A line for each condition that only ever went one way, and some for the functions that nothing calls."""
    source = (repo_root() / file.name).read_text(encoding="utf-8").splitlines()
    for (line, column), (true, false) in file.in_called().items():
        if not (true and false):
            what = "never decided" if not (true or false) else "never false" if true else "never true"
            yield f"  {file.name}:{line}:{column} {what}: {source[line - 1][column - 1:].strip()}"[:WIDTH]
    names = [name for _, name in file.uncalled()]
    if names:
        yield from wrapped(f"  {file.name}: {plural(len(names), 'function')} not called: {', '.join(names)}", "    ")


def as_json(file):
    return {"file": file.name, "branches": 2 * len(file.conditions), "within": file.within_reach(), "reached": file.reached(),
            "never": [{"line": line, "column": column, "true": true, "false": false}
                      for (line, column), (true, false) in file.in_called().items() if not (true and false)],
            "not_called": [name for _, name in file.uncalled()]}
