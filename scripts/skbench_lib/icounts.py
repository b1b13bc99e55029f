# SPDX-License-Identifier: MIT
"""Sets of instruction counts: where they are stored, how they are counted, and what two of them say about each other.

A set belongs to one compiler. It lies in results/instructions as NAME.csv beside NAME.json, which says what it was made
with, in what `skbench instructions --json` writes, or in a result under context.skbench.instructions.
"""

from pathlib import Path

from . import benchbin, instructions, results, stats, table
from .errors import IMPOSSIBLE, UserError
from .results import Invalid, type_name

MISSING, NEW = "missing", "new"
# What has to be the same: with another of these the same code takes another number of instructions.
IDENTITY = (*instructions.IDENTITY, "tunables", "operations")
# In the order of the report.
ORDER = (stats.REGRESSION, stats.IMPROVEMENT, stats.SHIFTED, MISSING, NEW, stats.EQUIVALENT)


class Set:
    """counts: {case: instructions of one operation}; made_with: as instructions.toolchain() gives it."""

    def __init__(self, name, made_with, counts):
        self.name, self.made_with, self.counts = name, made_with, counts


def name_of(made_with):
    """"gcc12" of gcc 12.2.0."""
    return f"{made_with['compiler']}{made_with['version'].split('.')[0]}"


# --- reading ------------------------------------------------------------------------------------------------------

def stored(path):
    """{name: Set} of a directory of NAME.csv beside NAME.json, or of one such CSV file; None if that is not what it is."""
    path = Path(path)
    names = sorted(path.glob("*.csv")) if path.is_dir() else [path] if path.suffix == ".csv" else []
    if not names:
        return None
    found = {}
    for name in names:
        beside = name.with_suffix(".json")
        try:
            made_with = results.parse(beside.read_bytes(), beside)
        except OSError as error:
            raise Invalid(f"{beside}: {error.strerror}: it says what the counts of {name.name} were made with") from None
        checked(made_with, beside)
        found[name.stem] = Set(name.stem, made_with, instructions.read_stored(name.parent, name.stem))
    return found


def of_object(value, source):
    """{name: Set} of an object with made_with and rows, which a result and `skbench instructions --json` have."""
    if not isinstance(value, dict):
        raise Invalid(f"{source}: expected an object with made_with and rows, is {type_name(value)}")
    made_with, rows = value.get("made_with"), value.get("rows")
    checked(made_with, f"{source}: made_with")
    if not isinstance(rows, list):
        raise Invalid(f"{source}: rows: expected array, is {type_name(rows)}")
    counts = {}
    for index, row in enumerate(rows):
        where = f"{source}: rows[{index}]"
        if not isinstance(row, dict) or not isinstance(row.get("case"), str) or not row["case"]:
            raise Invalid(f"{where}: expected an object with the name of a case")
        count = row.get("instructions")
        if not isinstance(count, (int, float)) or isinstance(count, bool) or not 0 < count < instructions.MOST_INSTRUCTIONS:
            raise Invalid(f"{where}: instructions: expected a number above 0, is {results._shown(count)}")
        if row["case"] in counts:
            raise Invalid(f"{where}: {row['case']} stands twice")
        counts[row["case"]] = count
    return {name_of(made_with): Set(name_of(made_with), made_with, counts)}


def checked(made_with, source):
    """Raises Invalid unless MADE_WITH tells all of IDENTITY."""
    if not isinstance(made_with, dict):
        raise Invalid(f"{source}: expected an object, is {type_name(made_with)}")
    for key in IDENTITY:
        kind = int if key == "operations" else str
        if not isinstance(made_with.get(key), kind) or isinstance(made_with[key], bool):
            raise Invalid(f"{source}: '{key}': expected {'integer' if kind is int else 'string'}, is "
                          f"{type_name(made_with.get(key))}")


# --- counting -----------------------------------------------------------------------------------------------------

def count(cases, directory, progress=None):
    """The object that of_object() reads: instructions of each of CASES, [(name, binary)], as far as they can be counted.

    DIRECTORY is the build that the binaries lie in. What has several roles spins and is left out.
    """
    from . import children  # starts threads; only who counts needs it

    made_with = instructions.toolchain("gcc", Path(directory))

    def one(case):
        try:
            return instructions.count(case[1].path, case[0])
        except UserError as error:
            if error.status == IMPOSSIBLE and "valgrind is not installed" not in str(error):
                return None
            raise
        finally:
            if progress:
                progress(case[0])

    counted = children.each(one, list(cases))
    return {"made_with": made_with, "rows": [{"case": name, "instructions": round(number, 1)}
                                             for (name, _), number in zip(cases, counted) if number is not None]}


def countable(name):
    """False for a case whose name says that several roles take part."""
    keys = benchbin.split_name(name)[1]
    return not name.startswith("contend/") and keys.get("complete") != "other" and keys.get("threads", "1") == "1"


# --- judging ------------------------------------------------------------------------------------------------------

def rename(found, aliases, other):
    """Gives the cases of the sets FOUND the newest names that the sets OTHER use."""
    for name, one in found.items():
        names = other[name].counts if name in other else {}
        for old, new in aliases.items():
            if old in one.counts and new in names and new not in one.counts:
                one.counts[new] = one.counts.pop(old)


def judge(base, new, pattern=None):
    """What two {name: Set} say about each other, for a report.

    sets  one object for each compiler that both have: name, differing (fields of IDENTITY that are not the same; then
          there are no rows), rows of case, base, new, verdict, fails. only_base, only_new: the other compilers.
    """
    found = []
    for name in base:
        if name not in new:
            continue
        one, other = base[name], new[name]
        differing = {key: [one.made_with[key], other.made_with[key]] for key in IDENTITY
                     if one.made_with[key] != other.made_with[key]}
        cases = [case for case in dict.fromkeys([*one.counts, *other.counts]) if not pattern or pattern.search(case)]
        rows = [] if differing else [row(case, one.counts.get(case), other.counts.get(case)) for case in cases]
        rows.sort(key=lambda entry: (ORDER.index(entry["verdict"]), entry["case"]))
        found.append({"name": name, "differing": differing, "cases": len(cases), "rows": rows})
    return {"sets": found, "only_base": [name for name in base if name not in new],
            "only_new": [name for name in new if name not in base]}


def row(case, before, now):
    entry = {"case": case, "base": before, "new": now, "verdict": stats.EQUIVALENT, "fails": False}
    if before is None or now is None:
        entry["verdict"] = NEW if before is None else MISSING
        return entry
    change = round(now, 1) - round(before, 1)
    if instructions.matters(before, now):
        entry["verdict"] = stats.REGRESSION if change > 0 else stats.IMPROVEMENT
    elif change:
        entry["verdict"] = stats.SHIFTED
    entry["fails"] = entry["verdict"] == stats.REGRESSION
    return entry


def row_text(entry):
    """ "899.0 -> 950.0   +51.0 (+5.67 %)   regression"."""
    before, now = entry["base"], entry["new"]
    if before is None or now is None:
        return f"{now if before is None else before:.1f}   {entry['verdict']}"
    return (f"{before:.1f} -> {now:.1f}   {now - before:+.1f} ({table.percent(now / before)} %)   {entry['verdict']}")


def set_text(entry):
    """One sentence about a compiler's set."""
    if entry["differing"]:
        parts = [f"{key} '{one}' against '{other}'" for key, (one, other) in entry["differing"].items()]
        return f"instructions, {entry['name']}: NOT COMPARABLE: they differ in {'; '.join(parts)}"
    counts = [f"{number} {verdict}" for verdict in ORDER
              if (number := sum(one["verdict"] == verdict for one in entry["rows"]))]
    return f"instructions, {entry['name']}: {table.plural(entry['cases'], 'case')}: {', '.join(counts) or 'none'}"
