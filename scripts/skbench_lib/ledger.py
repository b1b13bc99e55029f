# SPDX-License-Identifier: MIT
"""The op ledger: what one operation counts (references, atomics, objects, bytes), exactly.

results/ledger/cases.txt names the cases, results/ledger/FAMILY.csv holds what each must count. The traced bench
binaries count; any difference is an error, on every machine.
"""

import csv
import io
from pathlib import Path

from . import casefile, children, kernelcost
from .benchbin import BenchBinary, NotPossible
from .build import bench_binary, ensure_built
from .errors import FAILED, IMPOSSIBLE, OK, WORSE, UserError
from .files import read_csv, text_stream, write_json, write_text
from .table import plural
from .tree import repo_root, revision

FIRST = ["case", "variant", "era", "frags"]
COUNTS = ["page_get", "page_put", "page_alloc", "page_free", "rmw", "obj_alloc", "obj_free", "bytes_copied", "lock",
          "rmw_page", "rmw_dataref", "rmw_fclone", "rmw_users", "rmw_wmem", "rmw_ext", "rmw_llist", "rmw_slab",
          "rmw_uarg", "rmw_mem", "lock_zone", "lock_pcp", "shared_stores"]
COLUMNS = FIRST + COUNTS
CASE_SECONDS = 60
# column, its heading in the table, its width there
SHOWN = [("page_get", "get", 6), ("page_put", "put", 6), ("page_alloc", "palloc", 8), ("page_free", "pfree", 7),
         ("rmw", "rmw", 6), ("obj_alloc", "alloc", 7), ("obj_free", "free", 6), ("bytes_copied", "copied", 8),
         ("lock", "lock", 6), ("shared_stores", "shared", 7)]


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "ledger", help="what each operation counts, exactly",
        description="Counts what one operation does: page references, atomic operations, objects, bytes, locks.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare with results/ledger; a difference exits with 1")
    what.add_argument("--write", action="store_true", help="store what is counted in results/ledger")
    parser.add_argument("--kernel", action="store_true",
                        help="instead: the model's instructions beside the kernel's, with the reason of every ratio "
                             "outside of 0.5 to 1.5; one without a reason exits with 1")
    parser.add_argument("--era", choices=kernelcost.ERAS, help="with --kernel: only this era")
    parser.add_argument("--json", metavar="FILE", help="write one JSON object to FILE (- for standard output)")
    parser.set_defaults(func=main)


def main(args):
    if args.kernel:
        return beside_kernel(args)
    if args.era:
        raise UserError("--era goes with --kernel only")
    directory = repo_root() / "results" / "ledger"
    names = casefile.read(directory / "cases.txt")
    if not names:
        raise UserError(f"{directory / 'cases.txt'} names no case")
    ensure_built("release")
    rows = count_all(names)
    out = text_stream(args.json)
    differences = []
    status = OK
    if args.check:
        differences = compare(read_stored(directory), rows)
        status = WORSE if differences else OK
        for difference in differences:
            print(sentence(difference), file=out)
        print(f"ledger: {plural(len(rows), 'row')} of {plural(len(names), 'case')}, "
              f"{plural(len(differences), 'difference')}", file=out)
    elif args.write:
        for path in write_stored(directory, rows):
            print(f"wrote {path.relative_to(repo_root())}", file=out)
    else:
        for line in table(rows):
            print(line, file=out)
    if args.json:
        commit, dirty = revision()
        write_json(args.json, {"command": "ledger", "revision": commit, "dirty": dirty, "cases": names,
                               "rows": list(rows.values()), "differences": differences, "status": status})
    return status


def beside_kernel(args):
    status, found = kernelcost.main(args, text_stream(args.json))
    if args.json:
        commit, dirty = revision()
        write_json(args.json, {"command": "ledger", "revision": commit, "dirty": dirty, **found, "status": status})
    return status


def count(name):
    """The rows of the case NAME, counted by its traced binary: dicts with every one of COLUMNS."""
    binary = BenchBinary(bench_binary(name, traced=True), CASE_SECONDS)
    try:
        answer = binary._ask(name, [f"--skb_ledger={name}"])
        return [row_of(answer["name"], phase) for phase in answer["rows"]]
    except NotPossible as reason:
        raise UserError(f"{name}: {reason}", IMPOSSIBLE) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{name}: {binary.name} printed something that is no ledger ({error})", FAILED) from None


def row_of(name, counted):
    """A row of the ledger from COUNTED, one phase as the binary tells it."""
    unknown = counted.keys() - {"phase", *COUNTS}
    if unknown:
        raise ValueError(f"unknown column {min(unknown)}")
    row = {"case": f"{name}#{counted['phase']}"}
    row.update((key, casefile.value(name, key)) for key in FIRST[1:])
    for column in COUNTS:
        number = counted[column]
        if type(number) is not int or number < 0:
            raise ValueError(f"{column} is {number!r}")
        row[column] = number
    return row


def count_all(names):
    """{case#phase: row} of all NAMES, in their order."""
    rows = {}
    for name, counted in zip(names, children.each(count, names)):
        for row in counted:
            if row["case"] in rows:
                raise UserError(f"{name}: counts {row['case']} a second time; results/ledger/cases.txt may name one "
                                "case in two ways")
            rows[row["case"]] = row
    return rows


def read_stored(directory):
    """{case#phase: row} of every CSV file in DIRECTORY."""
    rows = {}
    for path in sorted(Path(directory).glob("*.csv")):
        columns, found = read_csv(path)
        if columns != COLUMNS:
            raise UserError(f"{path}: the columns are not those of the ledger; skbench ledger --write makes them so")
        for line, row in found:
            where = f"{path}:{line}"
            try:
                row.update((column, int(row[column])) for column in COUNTS)
            except (TypeError, ValueError):
                raise UserError(f"{where}: a count is no integer") from None
            if None in row:
                raise UserError(f"{where}: more fields than columns")
            if row["case"] in rows:
                raise UserError(f"{where}: {row['case']} stands there a second time")
            rows[row["case"]] = row
    return rows


def compare(stored, counted):
    """What differs: dicts with case, column, stored, counted. A row on one side only has None for column and a side."""
    found = []
    for case, row in counted.items():
        if case not in stored:
            found.append({"case": case, "column": None, "stored": None, "counted": "row"})
            continue
        found += [{"case": case, "column": column, "stored": stored[case][column], "counted": row[column]}
                  for column in COLUMNS[1:] if stored[case][column] != row[column]]
    found += [{"case": case, "column": None, "stored": "row", "counted": None} for case in stored
              if case not in counted]
    return found


def sentence(difference):
    case, column = difference["case"], difference["column"]
    if column is not None:
        return f"{case}: {column} stored {difference['stored']}, counted {difference['counted']}"
    if difference["stored"] is None:
        return f"{case}: new, not stored"
    return f"{case}: stored, but not counted any more"


def write_stored(directory, rows):
    """Writes ROWS to DIRECTORY, one file for each family, and removes those of families that have no row left."""
    families = {}
    for case, row in rows.items():
        families.setdefault(case.split("/")[0], []).append(row)
    for path in sorted(Path(directory).glob("*.csv")):
        if path.stem not in families:
            path.unlink()
    for family, members in families.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(members)
        path = Path(directory) / f"{family}.csv"
        write_text(path, text.getvalue())
        yield path


def table(rows):
    """Lines of at most 80 columns: a line for each case, one below it for each of its phases."""
    yield "counts of one operation; rmw and lock by class: --json FILE"
    yield f"{'  phase':<13}" + "".join(f"{heading:>{width}}" for _, heading, width in SHOWN)
    last = None
    for row in rows.values():
        case, phase = row["case"].split("#")
        if case != last:
            yield from wrap(case)
            last = case
        yield f"{'  ' + phase:<13}" + "".join(f"{row[column]:>{width}}" for column, _, width in SHOWN)


def wrap(case, width=80):
    """CASE on as many lines as it takes, broken after a slash."""
    line = ""
    for part in case.split("/"):
        if line and len(line) + 1 + len(part) >= width:
            yield line + "/"
            line = "    " + part
        else:
            line = f"{line}/{part}" if line else part
    yield line
