# SPDX-License-Identifier: MIT
"""The same program linked many times with its objects in random order and gaps between them.

Where code lies moves a time by as much as the change that is looked for, and a binary is one sample of it. Relinked
copies make it part of the noise. The objects are those that the build's own link took, from archives of ours too; other
libraries stay as they are. Everything follows from the seed.
"""

import random
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from .errors import FAILED, IMPOSSIBLE, UserError

ALIGNMENT = 64   # as -falign-functions: a gap moves code by whole cache lines
GAPS = 64        # of 0 to 63 of them: every place in a page
MEMBER = re.compile(r"^\(([^()]+\.a)\)(\S+)$")  # how GNU ld writes a member that it took, asked twice to --trace


def relink(program, directory, count, seed, target):
    """COUNT copies of PROGRAM, which ninja linked in the build directory DIRECTORY, as paths below TARGET.

    Raises UserError if there is no such link or it fails.
    """
    directory, target = Path(directory), Path(target)
    words = link_command(program, directory)
    with tempfile.TemporaryDirectory(prefix="skbench-layouts-") as scratch:
        scratch = Path(scratch)
        objects, rest = parts(words, directory, scratch)
        gaps = assembled(words[0], scratch)
        made = []
        for index in range(count):
            rng = random.Random(f"{seed}/{Path(program).name}/{index}")
            path = target / str(index) / Path(program).name
            path.parent.mkdir(parents=True, exist_ok=True)
            order = objects[:]
            rng.shuffle(order)
            mixed = [word for name in order for word in (gaps[rng.randrange(GAPS)], name)]
            _run([words[0], *mixed, *rest, "-o", str(path)], directory, program)
            made.append(path)
    return made


def link_command(program, directory):
    """The words of the command with which ninja links PROGRAM."""
    relative = Path(program).resolve().relative_to(directory.resolve())
    try:
        done = subprocess.run(["ninja", "-C", str(directory), "-t", "commands", "-s", str(relative)], capture_output=True,
                              text=True)
    except OSError:
        raise UserError("ninja is not installed: scripts/install-packages run", IMPOSSIBLE) from None
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    words = shlex.split(lines[-1].removeprefix(": && ").removesuffix(" && :")) if lines else []
    if "-o" not in words or "-c" in words or not any(word.endswith(".o") for word in words):
        raise UserError(f"{relative} is not linked by ninja in {directory}: it cannot be linked anew", IMPOSSIBLE)
    return words


def parts(words, directory, scratch):
    """(objects, other words) of a link: each object that it takes, members of the build's archives as files in SCRATCH."""
    at = words.index("-o")
    inputs = words[1:at] + words[at + 2:]
    own = [word for word in inputs if word.endswith(".o")]
    archives = [word for word in inputs if word.endswith(".a") and (directory / word).resolve().is_relative_to(
        directory.resolve())]
    said = _run([words[0], *inputs, "-o", str(scratch / "probe"), *["-Wl,--trace"] * 2], directory, words[at + 1])
    members = {}
    for line in said.splitlines():
        found = MEMBER.match(line.strip())
        if found and found.group(1) in archives:
            members.setdefault(found.group(1), []).append(found.group(2))
    objects = list(own)
    for number, archive in enumerate(archives):
        place = scratch / str(number)
        place.mkdir()
        wanted = members.get(archive, [])
        if wanted:
            _run(["ar", "x", str((directory / archive).resolve()), *wanted], place, archive)
        objects += [str(place / member) for member in wanted]
    return objects, [word for word in inputs if word not in own and word not in archives]


def assembled(compiler, scratch):
    """Objects of nothing but a gap in the code, of 0 to GAPS - 1 cache lines."""
    made = []
    for lines in range(GAPS):
        source = scratch / f"gap{lines}.s"
        source.write_text(f"\t.section .note.GNU-stack,\"\",@progbits\n\t.text\n\t.balign {ALIGNMENT}\n"
                          f"\t.skip {lines * ALIGNMENT}, 0xcc\n")
        made.append(str(source.with_suffix(".o")))
    _run([compiler, "-c", *(f"gap{lines}.s" for lines in range(GAPS))], scratch, "the gaps")
    return made


def _run(command, directory, what):
    """Standard output of a command that must work."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}: {what} cannot be linked anew", IMPOSSIBLE) from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise UserError(f"{what} cannot be linked anew: {lines[0]}", FAILED)
    return done.stdout
