# SPDX-License-Identifier: MIT
"""`skbench profile --diff A B`: two profile sessions side by side, for each function and operation.

Eras and variants are functions of their own, with names of their own: what a case name says of them is taken off a
function's name, so that tcp_ack_6_12_eager stands beside tcp_ack_6_12_offset_ack.
"""

import re
from pathlib import Path

from . import benchbin, files, results, table
from .errors import IMPOSSIBLE, OK, UserError
from .ledger import wrap

SCHEMA = "skbench-profile-diff-1"
SHOWN = 20


def load(path):
    """The session in the folder PATH."""
    file = Path(path) / "session.json"
    try:
        session = results.parse(file.read_bytes(), file)
    except OSError as error:
        raise UserError(f"{path}: no profile session there ({file.name}: {error.strerror})") from None
    if not isinstance(session, dict) or session.get("schema") != "skbench-profile-1":
        raise UserError(f"{file}: no session of skbench profile")
    return session


def plain_name(symbol, case):
    """SYMBOL without the era and the variant that CASE names."""
    keys = benchbin.split_name(case)[1]
    words = [keys[key].replace(".", "_") for key in ("era", "variant") if key in keys]
    for word in words:
        symbol = re.sub(rf"_{re.escape(word)}(?=_|\.|$)", "", symbol, count=1)
    return symbol


def by_function(session):
    """{(function, object): weight per operation}."""
    sums = {}
    for entry in session["symbols"]:
        dso = entry["dso"]
        key = plain_name(entry["symbol"], session["case"]), "" if dso.startswith("bench_") else dso
        sums[key] = sums.get(key, 0) + entry["per_op"]
    return sums


def counters_of(session):
    return {event["label"]: event["value"] / session["operations"] for event in session["counters"]["events"]
            if event["value"] is not None}


def compare(a, b):
    """The difference of two sessions, a JSON object. Raises UserError if they do not count in one unit."""
    one, other = a["sampling"], b["sampling"]
    for name, side in (("A", one), ("B", other)):
        if side["event"] is None:
            raise UserError(f"not comparable: {name} has no samples ({side['reason']})", IMPOSSIBLE)
    if one["unit"] != other["unit"]:
        raise UserError(f"not comparable: A was sampled in {one['unit']} ({one['event']}), B in {other['unit']} "
                        f"({other['event']})", IMPOSSIBLE)
    left, right = by_function(a), by_function(b)
    rows = [{"function": key[0], "object": key[1] or None, "a": left.get(key, 0), "b": right.get(key, 0),
             "difference": right.get(key, 0) - left.get(key, 0)} for key in {**left, **right}]
    rows.sort(key=lambda row: (-abs(row["difference"]), row["function"]))
    counted = counters_of(a), counters_of(b)
    return {
        "schema": SCHEMA, "command": "profile", "unit": one["unit"],
        "a": about(a), "b": about(b), "notes": list(notes(a, b)), "rows": rows,
        "total": {"a": one["per_op"], "b": other["per_op"], "difference": other["per_op"] - one["per_op"]},
        "instructions": {"a": a["instructions"]["value"], "b": b["instructions"]["value"]},
        "counters": [{"label": label, "a": counted[0].get(label), "b": counted[1].get(label)}
                     for label in dict.fromkeys([*counted[0], *counted[1]])], "exit_status": OK}


def about(session):
    return {"case": session["case"], "commit": session["revision"]["commit"], "operations": session["operations"],
            "samples": session["sampling"]["samples"], "event": session["sampling"]["event"]}


def notes(a, b):
    yield "two profiles are no measurement: whether a difference is real, skbench run and skbench duet say"
    if a["sampling"]["event"] != b["sampling"]["event"]:
        yield f"A was sampled with {a['sampling']['event']}, B with {b['sampling']['event']}"
    if a["build"] != b["build"]:
        yield "the two programs were built differently"
    for name, session in (("A", a), ("B", b)):
        if session["exit_status"]:
            yield f"{name}: too few of its samples lie in the timed region"


def cell(value, width):
    return f"{'-' if value is None else f'{value:.2f}' if value < 1e6 else f'{value:.3g}':>{width}}"


def text(found):
    """The lines of the comparison, 80 columns but for long names."""
    yield f"skbench profile --diff   {found['unit']} an operation, all roles"
    for name in ("a", "b"):
        side = found[name]
        yield f"{name.upper()}   rev {side['commit'][:7]}, {side['samples']} samples of {side['event']}"
        yield from (f"    {line}" for line in wrap(side["case"], table.WIDTH - 4))
    yield ""
    yield f"{'A':>10}{'B':>10}{'B - A':>10}  function"
    for row in found["rows"][:SHOWN]:
        where = f"  ({row['object']})" if row["object"] else ""
        yield f"{cell(row['a'], 10)}{cell(row['b'], 10)}{row['difference']:>+10.2f}  {row['function']}{where}"
    rest = found["rows"][SHOWN:]
    if rest:
        yield (f"{cell(sum(row['a'] for row in rest), 10)}{cell(sum(row['b'] for row in rest), 10)}"
               f"{sum(row['difference'] for row in rest):>+10.2f}  {len(rest)} more")
    total = found["total"]
    yield f"{cell(total['a'], 10)}{cell(total['b'], 10)}{total['difference']:>+10.2f}  all"
    yield ""
    yield f"{'A':>14}{'B':>14}  counted, an operation"
    counted = [("instructions (callgrind)", found["instructions"]["a"], found["instructions"]["b"])]
    counted += [(entry["label"], entry["a"], entry["b"]) for entry in found["counters"]]
    for label, one, other in counted:
        if one is not None or other is not None:
            yield f"{'-' if one is None else f'{one:.5g}':>14}{'-' if other is None else f'{other:.5g}':>14}  {label}"
    for note in found["notes"]:
        yield from table.wrapped(f"note: {note}")


def main(folders, json_target):
    found = compare(*map(load, folders))
    files.text_stream(json_target).write("\n".join(text(found)) + "\n")
    if json_target:
        files.write_json(json_target, found)
    return OK
