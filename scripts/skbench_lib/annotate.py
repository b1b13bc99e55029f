# SPDX-License-Identifier: MIT
"""A function's source and instructions with what was sampled on each: objdump's listing, our figures beside it."""

import re
import subprocess
from pathlib import Path

from .errors import IMPOSSIBLE, UserError
from .tree import repo_root

LIMIT_S = 60
_START = re.compile(r"([0-9a-f]+) <(.+)>:$")
_CODE = re.compile(r"\s*([0-9a-f]+):\t(.*)$")
_LINE = re.compile(r"(/.*|[^\s:]+\.[ch]+):(\d+)(?: \(discriminator \d+\))?$")


def disassemble(binary, symbol):
    """[("line", file, number) or ("code", offset, text)] of SYMBOL in BINARY. Raises UserError if it is not there."""
    command = ["objdump", "-d", "-l", "--no-show-raw-insn", f"--disassemble={symbol}", str(binary)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except FileNotFoundError:
        raise UserError("objdump is not installed: scripts/install-packages run", IMPOSSIBLE) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"objdump did not end within {LIMIT_S} s", IMPOSSIBLE) from None
    rows, start = [], None
    for line in done.stdout.splitlines():
        begin, code, place = _START.match(line), _CODE.match(line), _LINE.match(line.strip())
        if begin:
            if start is not None:
                break  # another function of this name: perf does not tell which
            if begin[2] == symbol:
                start = int(begin[1], 16)
        elif start is not None and code:
            rows.append(("code", int(code[1], 16) - start, re.sub(r"\s+", " ", code[2]).strip()))
        elif start is not None and place:
            rows.append(("line", place[1], int(place[2])))
    if not rows:
        raise UserError(f"{symbol}: {Path(binary).name} has no such function with instructions", IMPOSSIBLE)
    return rows


class Sources:
    """Lines of source files, below this tree if they are."""

    def __init__(self, root=None):
        self.root = Path(root or repo_root())
        self.files = {}

    def shown(self, path):
        try:
            return str(Path(path).resolve().relative_to(self.root))
        except ValueError:
            return Path(path).name

    def text(self, path, number):
        if path not in self.files:
            try:
                self.files[path] = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                self.files[path] = []
        lines = self.files[path]
        return lines[number - 1].expandtabs(8).strip() if 0 < number <= len(lines) else ""


def listing(rows, places, operations, unit, sources=None):
    """The lines of the annotated listing. PLACES: {offset: [samples, weight]} of the function; weights in UNIT."""
    sources = sources or Sources()
    total = sum(weight for _, weight in places.values()) or 1
    seen = set()
    yield f"{'samples':>8}{'%':>7}{unit + '/op':>11}"
    last = None
    for row in rows:
        if row[0] == "line":
            if row != last:
                text = sources.text(row[1], row[2])
                yield f"{'':26}  {sources.shown(row[1])}:{row[2]}  {text}".rstrip()
            last = row
            continue
        samples, weight = places.get(row[1], (0, 0))
        seen.add(row[1])
        figures = f"{samples:>8}{100 * weight / total:>7.1f}{weight / operations:>11.3f}" if samples else " " * 26
        yield f"{figures}      {row[1]:>5x}:  {row[2]}"
    missed = sum(samples for offset, (samples, _) in places.items() if offset not in seen)
    if missed:
        yield f"{missed:>8} samples lie on no instruction of this listing"


def by_line(rows, places):
    """[(file, line, samples, weight)] of the source lines that were sampled, the heaviest first."""
    sums, where = {}, None
    for row in rows:
        if row[0] == "line":
            where = row[1:]
        elif row[1] in places and where:
            entry = sums.setdefault(where, [0, 0])
            entry[0] += places[row[1]][0]
            entry[1] += places[row[1]][1]
    return sorted(((*key, *entry) for key, entry in sums.items()), key=lambda row: -row[3])
