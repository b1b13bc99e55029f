# SPDX-License-Identifier: MIT
"""Instructions of one operation, counted by callgrind: deterministic for a compiler, on any machine.

results/instructions/cases.txt names the cases, COMPILER.csv (gcc12.csv) holds their counts and COMPILER.json what they
were counted with; relations.json says how counts must relate to each other, whatever the compiler.
"""

import csv
import io
import json
import os
import platform
import re
import subprocess
import tempfile
from pathlib import Path

from . import casefile, children
from .build import bench_binary, build_dir, ensure_built
from .errors import FAILED, IMPOSSIBLE, OK, USAGE, WORSE, UserError
from .files import read_csv, text_stream, write_json, write_text
from .table import plural
from .tree import repo_root, revision

COUNTED = "skb_bench_counted_span"
OPERATIONS = 1000
CASE_SECONDS = 180
MOST_INSTRUCTIONS = 1e15
MARGIN_SHARE = 0.002
MARGIN_INSTRUCTIONS = 2.0
COLUMNS = ["case", "instructions"]
PRESETS = {"gcc": "release", "clang": "release-clang"}
IDENTITY = ["compiler", "version", "machine", "libc", "flags"]

# glibc chooses its string functions by CPU and their thresholds by cache size; valgrind shows the program the host's
# CPU. This choice is one that every x86-64 has.
TUNABLES = ":".join([
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX_Fast_Unaligned_Load,-SSSE3,-ERMS,-FSRM",
    "glibc.cpu.x86_data_cache_size=0x8000",
    "glibc.cpu.x86_shared_cache_size=0x100000",
    "glibc.cpu.x86_non_temporal_threshold=0xc0000",
])
STRING_FUNCTION = re.compile(r"(?:__)?mem(?:cpy|move|set|cmp)\w*(?:@\S*)?$")
UNPINNED = re.compile(r"avx|evex|ssse3|erms")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "instructions", help="instructions of one operation, counted by callgrind",
        description="Counts the instructions of one operation under valgrind's callgrind.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true",
                      help="compare with results/instructions, and check the relations; a difference of more than "
                           "0.2 %% and 2 instructions exits with 1")
    what.add_argument("--write", action="store_true", help="store what is counted in results/instructions")
    parser.add_argument("--compiler", choices=sorted(PRESETS), default="gcc", help="which build (default: gcc)")
    parser.add_argument("--json", metavar="FILE", help="write one JSON object to FILE (- for standard output)")
    parser.set_defaults(func=main)


def main(args):
    directory = repo_root() / "results" / "instructions"
    names = casefile.read(directory / "cases.txt")
    if not names:
        raise UserError(f"{directory / 'cases.txt'} names no case")
    relations = read_relations(directory / "relations.json", names)
    preset = PRESETS[args.compiler]
    ensure_built(preset)
    made_with = toolchain(args.compiler, build_dir(preset))
    stem = made_with["compiler"] + made_with["version"].split(".")[0]
    stored = None
    if args.check:
        stored = read_stored(directory, stem)
        comparable(directory / f"{stem}.json", made_with)
    counted = count_all(names, preset)

    out = text_stream(args.json)
    rows = [{"case": name, "instructions": round(count, 1)} for name, count in counted.items()]
    differences, broken = [], []
    status = OK
    if args.check:
        differences = compare(stored, counted)
        broken = [text for relation in relations for text in violated(relation, counted)]
        status = WORSE if broken or any(d["fails"] for d in differences) else OK
        for difference in differences:
            print(sentence(difference), file=out)
        for text in broken:
            print(text, file=out)
        print(f"instructions, {stem}: {plural(len(counted), 'case')}, "
              f"{plural(sum(d['fails'] for d in differences), 'difference')}, "
              f"{plural(len(relations), 'relation')}, {len(broken)} broken", file=out)
    elif args.write:
        for path in write_stored(directory, stem, rows, made_with):
            print(f"wrote {path.relative_to(repo_root())}", file=out)
    else:
        print(f"instructions of one operation, {made_with['compiler']} {made_with['version']}", file=out)
        for row in rows:
            print(f"{row['instructions']:>12.1f}  {row['case']}", file=out)
    if args.json:
        commit, dirty = revision()
        write_json(args.json, {"command": "instructions", "revision": commit, "dirty": dirty, "made_with": made_with,
                               "rows": rows, "differences": differences,
                               "relations": [relation["name"] for relation in relations], "broken": broken,
                               "status": status})
    return status


def toolchain(compiler, directory):
    """What the counts depend on: the compiler of the build in DIRECTORY with its flags, and libc."""
    version = _says([compiler, "-dumpfullversion" if compiler == "gcc" else "-dumpversion"])
    # The flags of one compiled file, without what names this tree.
    flags = "unknown"
    try:
        commands = json.loads((directory / "compile_commands.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        commands = []
    for entry in commands:
        if entry["file"].endswith(".c"):
            flags = " ".join(sorted({word for word in entry["command"].split() if re.match(r"-[OfmD]", word)
                                     and word not in ("-DSKB_TRACED",) and "/" not in word}))
            break
    return {"compiler": compiler, "version": version, "machine": platform.machine(),
            "libc": os.confstr("CS_GNU_LIBC_VERSION"), "flags": flags,
            "compiler_build": _says([compiler, "--version"]), "valgrind": _says(["valgrind", "--version"]),
            "tunables": TUNABLES, "operations": OPERATIONS}


def _says(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, IndexError, subprocess.CalledProcessError):
        raise UserError(f"{command[0]} is not there or does not work: scripts/install-packages test",
                        IMPOSSIBLE) from None


def comparable(path, made_with):
    """Raises UserError unless the counts beside PATH were made with what they would be compared with now."""
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is missing: skbench instructions --write makes it") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    for key in IDENTITY:
        if recorded.get(key) != made_with[key]:
            raise UserError(f"not comparable: the stored counts were made with {key} '{recorded.get(key)}', here it is "
                            f"'{made_with[key]}'; skbench instructions --write stores counts of this one", IMPOSSIBLE)


def count_all(names, preset):
    """{name: instructions of one operation}."""
    return dict(zip(names, children.each(lambda name: count(bench_binary(name, preset), name), names)))


def count(binary, name, operations=OPERATIONS):
    """Instructions that one operation of case NAME in BINARY takes, from OPERATIONS of them."""
    with tempfile.TemporaryDirectory(prefix="skbench-") as scratch:
        profile = Path(scratch) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={COUNTED}",
                   f"--callgrind-out-file={profile}", str(binary), f"--skb_instructions={name}",
                   f"--skb_n={operations}"]
        try:
            ended = children.run(command, CASE_SECONDS, env=environment(), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, errors="replace")
        except FileNotFoundError:
            raise UserError("valgrind is not installed: scripts/install-packages test", IMPOSSIBLE) from None
        if ended.timed_out or ended.status != 0:
            said = [line for line in (ended.err or "").splitlines() if line.strip() and not line.startswith("==")]
            raise UserError(f"{name}: {Path(binary).name} under valgrind {ended.why(CASE_SECONDS)}"
                            f"{': ' + said[-1] if said else ''}",
                            ended.status if ended.status in (USAGE, IMPOSSIBLE) else FAILED)
        try:
            text = profile.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            raise UserError(f"{name}: callgrind wrote no profile", FAILED) from None
    total = total_of(text)
    if total == 0:
        raise UserError(f"{name}: callgrind counted no instruction: {Path(binary).name} never calls {COUNTED}, or the "
                        "compiler has inlined it", FAILED)
    for function in string_functions(text):
        if UNPINNED.search(function):
            raise UserError(f"{name}: glibc chose {function} by this CPU, so that the count would not hold elsewhere: "
                            "its tunables no longer work as they did in glibc 2.36", FAILED)
    return total / operations


def environment():
    """A fixed environment: its size moves the stack, lazy binding would be counted, tunables pin glibc's choices."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "LD_BIND_NOW": "1", "GLIBC_TUNABLES": TUNABLES}


def total_of(profile):
    """Instructions in a callgrind PROFILE, over all its parts."""
    return sum(int(number) for number in re.findall(r"^totals: (\d+)$", profile, re.MULTILINE))


def string_functions(profile):
    """Names of glibc's memory functions among the functions of a callgrind PROFILE, sorted."""
    names = set(re.findall(r"^c?fn=\(\d+\) (\S+)$", profile, re.MULTILINE))
    return sorted(name for name in names if STRING_FUNCTION.match(name))


def read_stored(directory, stem):
    """{name: instructions} of DIRECTORY/STEM.csv."""
    path = Path(directory) / f"{stem}.csv"
    try:
        columns, rows = read_csv(path)
        if columns != COLUMNS:
            raise UserError(f"{path}: the columns are not {','.join(COLUMNS)}")
        stored = {}
        for line, row in rows:
            try:
                count = float(row["instructions"])
            except (TypeError, ValueError):
                count = 0.0
            if not 0 < count < MOST_INSTRUCTIONS or row["case"] in stored or None in row:
                raise UserError(f"{path}:{line}: no count of a case, or a second one")
            stored[row["case"]] = count
        return stored
    except FileNotFoundError:
        known = sorted(p.stem for p in Path(directory).glob("*.csv"))
        raise UserError(f"not comparable: no counts are stored for {stem} (stored: {', '.join(known) or 'none'}); "
                        "skbench instructions --write stores them", IMPOSSIBLE) from None


def write_stored(directory, stem, rows, made_with):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row["case"], f"{row['instructions']:.1f}"] for row in rows)
    for suffix, content in ((".csv", text.getvalue()), (".json", json.dumps(made_with, indent=1) + "\n")):
        path = Path(directory) / (stem + suffix)
        write_text(path, content)
        yield path


def matters(before, now):
    """True if two counts differ by more than both margins."""
    change = abs(now - before)
    return change > MARGIN_INSTRUCTIONS and change > MARGIN_SHARE * before


def compare(stored, counted):
    """What differs: dicts with case, stored, counted (None: not there) and fails."""
    found = []
    for case, count in counted.items():
        count = round(count, 1)
        before = stored.get(case)
        if before is None:
            found.append({"case": case, "stored": None, "counted": count, "fails": True})
        elif count != before:
            found.append({"case": case, "stored": before, "counted": count, "fails": matters(before, count)})
    found += [{"case": case, "stored": before, "counted": None, "fails": True} for case, before in stored.items()
              if case not in counted]
    return found


def sentence(difference):
    case, before, now = difference["case"], difference["stored"], difference["counted"]
    if before is None:
        return f"{case}: new, not stored (counted {now:.1f})"
    if now is None:
        return f"{case}: stored, but not counted any more"
    note = "" if difference["fails"] else ", within the margin"
    return f"{case}: stored {before:.1f}, counted {now:.1f} ({100 * (now - before) / before:+.2f} %){note}"


# Which fields a relation of each kind has besides kind, name and why.
KINDS = {"slope": ({"from", "to", "key"}, {"lo", "hi"}),  # (to - from) / (value of key in to - in from)
         "ratio": ({"of", "to"}, {"lo", "hi"}),           # of / to
         "max": ({"of"}, {"hi"}), "min": ({"of"}, {"lo"})}


def read_relations(path, names):
    """The relations of the file PATH, each checked for its fields; NAMES are the cases they may speak of."""
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    if not isinstance(text, dict) or not isinstance(text.get("relations"), list):
        raise UserError(f"{path}: not an object with a list of relations")
    seen = set()
    for relation in text["relations"]:
        problem = _problem(relation, names)
        if problem is None and relation["name"] in seen:
            problem = "a second relation of that name"
        if problem:
            label = relation.get("name") if isinstance(relation, dict) else relation
            raise UserError(f"{path}: relation {label!r}: {problem}")
        seen.add(relation["name"])
    return text["relations"]


def _problem(relation, names):
    """What is wrong with RELATION, or None."""
    if not isinstance(relation, dict) or relation.get("kind") not in KINDS:
        return f"its kind is none of {', '.join(KINDS)}"
    words, bounds = KINDS[relation["kind"]]
    expected = {"kind", "name", "why"} | words | bounds
    if set(relation) != expected:
        return f"its fields are not {', '.join(sorted(expected))}"
    for bound in bounds:
        if not isinstance(relation[bound], (int, float)) or isinstance(relation[bound], bool):
            return f"{bound} is no number"
    if bounds == {"lo", "hi"} and relation["lo"] > relation["hi"]:
        return "lo is above hi"
    for word in words - {"key"}:
        if relation[word] not in names:
            return f"{relation[word]} is not in cases.txt"
    if relation["kind"] == "slope":
        try:
            if int(casefile.value(relation["to"], relation["key"])) == int(casefile.value(relation["from"],
                                                                                          relation["key"])):
                return f"{relation['key']} is the same in both"
        except ValueError:
            return f"{relation['key']} is not an integer in both"
    return None


def violated(relation, counted):
    """A sentence if RELATION does not hold among COUNTED, in a list; an empty list if it does."""
    kind = relation["kind"]
    if kind == "slope":
        key = relation["key"]
        steps = int(casefile.value(relation["to"], key)) - int(casefile.value(relation["from"], key))
        got, what = (counted[relation["to"]] - counted[relation["from"]]) / steps, f"instructions per {key}"
    elif kind == "ratio":
        got, what = counted[relation["of"]] / counted[relation["to"]], "ratio"
    else:
        got, what = counted[relation["of"]], "instructions"
    low, high = relation.get("lo", float("-inf")), relation.get("hi", float("inf"))
    if low <= got <= high:
        return []
    bounds = {"max": f"at most {high:g}", "min": f"at least {low:g}"}.get(kind, f"{low:g} to {high:g}")
    return [f"relation {relation['name']}: {what} {got:.2f}, expected {bounds} ({relation['why']})"]
