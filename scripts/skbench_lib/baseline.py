# SPDX-License-Identifier: MIT
"""`skbench baseline`: times and counts kept in results/baselines/<machine>/<NAME>.json, and checked against.

A baseline is a result file without its rows: each case keeps its values, so that any interval can be formed from them.
It holds for one machine and build; elsewhere there is none, and that is no error.
"""

import argparse
import random
import re

from . import (benchbin, compare, compare_report, duet, files, fingerprint, ledger, results, run, sides, stats, table,
               tree)
from .errors import OK, UserError

CONFIRM_SAMPLES = 25
CONFIRM_BUDGET_S = 60.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def add_parser(subparsers):
    parser = subparsers.add_parser("baseline", help="stored baselines: save, list, show, check",
                                   description="Keeps the times and counts of this machine under a name, and checks "
                                               "against them.",
                                   epilog="Every action takes --json FILE, and --help.")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="store a result under NAME")
    check = actions.add_parser("check", help="measure, and compare with what is stored under NAME; for a CI")
    for action in (save, check):
        action.add_argument("name", metavar="NAME", help="name of the baseline")
        action.add_argument("--run", metavar="FILE", help="this result (default: run --suite quick now)")
        action.add_argument("--filter", metavar="RE", help="only cases whose name matches this regular expression")
        action.add_argument("--cpus", metavar="LIST", help="CPUs for the roles, as in 0,1 or 2-3")
        action.add_argument("--budget", metavar="SECONDS", help=f"time for measuring ({run.BUDGET_S['quick']:g})")
        action.add_argument("--seed", metavar="N", help="of the order and the paddings (default: random)")
    save.add_argument("--instructions", action="store_true",
                      help="store the instructions of each case with one role, too; check then counts them")
    save.add_argument("--replace", action="store_true", help="take the place of a stored baseline of that name")
    save.add_argument("--json", metavar="FILE", help="the baseline again, to another file; - for standard output")
    save.set_defaults(func=main_save)
    compare.add_output(check)
    check.set_defaults(func=main_check)
    list_ = actions.add_parser("list", help="what is stored")
    show = actions.add_parser("show", help="the cases of NAME")
    show.add_argument("name", metavar="NAME", help="name of the baseline")
    show.add_argument("--machine", metavar="FP8", help="of this machine, where several have the name")
    for action, function in ((list_, main_list), (show, main_show)):
        action.add_argument("--json", metavar="FILE", help="one JSON object to FILE; - for standard output")
        action.set_defaults(func=function)


def checked_name(name):
    if not NAME.fullmatch(name):
        raise UserError(f"baseline '{name}': letters, digits, dots, dashes and underscores make a name")
    return name


def directory():
    return tree.repo_root() / "results" / "baselines"


def path_of(fp8, name):
    return directory() / fp8 / f"{name}.json"


def shown(path):
    return path.relative_to(tree.repo_root())


# --- measuring ----------------------------------------------------------------------------------------------------

def measure(args, instructions):
    """(document, engine, request) of a fresh run of the suite `quick`, with the ledger of its cases, and with their
    instructions if so asked."""
    parser = argparse.ArgumentParser()
    run.add_parser(parser.add_subparsers())
    chosen = [f"--{key}={getattr(args, key)}" for key in ("filter", "cpus", "budget", "seed")
              if getattr(args, key) is not None]
    chosen += ["--instructions"] if instructions else []
    request = run.Request(parser.parse_args(["run", "--suite=quick", *chosen]))
    where = run.bench_directory()
    binaries = run.bench_binaries(where)
    with run.stoppable():
        engine, document = run.run_survey(request, binaries)
        if engine.failure:
            raise engine.failure
        if engine.interrupted:
            raise KeyboardInterrupt
        document["context"]["skbench"]["ledger"] = count(where, engine.cells)
    return document, engine, request


def count(where, cells):
    """The ledger of the cases of CELLS, as far as this machine can run them."""
    found = []
    for cell in cells:
        if cell.impossible:
            continue
        traced = run.need(where, f"{cell.side.binary.name}_traced")
        try:
            found.append({"case": cell.key, "rows": traced.ledger(cell.key)})
        except benchbin.NotPossible:
            continue
    return found


def from_file(name):
    """(document, Side) of a result of ours."""
    side = sides.load(name)
    if side.foreign() or len(side.files) != 1:
        raise UserError(f"{name}: a baseline is one result file of skbench")
    return results.read(side.files[0]), side


def fp8_here():
    """The machine's and build's short fingerprint."""
    binary = next(iter(run.bench_binaries(run.bench_directory()).values()))
    return fingerprint.take(binary.context())["fp8"]


# --- save ---------------------------------------------------------------------------------------------------------

def reduced(document, name, pattern=None):
    """The baseline made of a result: without rows, each case with its values, interval and plan."""
    side = sides.native(document, name)
    ours = dict(document["context"]["skbench"])
    cases = []
    for case in side.cases.values():
        if (pattern and not pattern.search(case.name)) or not case.values:
            continue
        cases.append({"case": case.name, "metric": "busy_ns_per_op", "unit": "ns", "better": "lower", "status": "ok",
                      "reason": None, "value": duet.summary(case.values), "processes": len(case.values),
                      "lost_processes": 0, "values": [round(value, 4) for value in case.values],
                      "threads": case.threads, "plan": case.plan})
    kept = [entry for entry in ours["ledger"] if not pattern or pattern.search(entry["case"])]
    if ours.get("instructions"):
        rows = [row for row in ours["instructions"]["rows"] if not pattern or pattern.search(row["case"])]
        ours["instructions"] = {**ours["instructions"], "rows": rows}
    ours.update(cases=cases, ledger=kept, baseline=None, stored=name,
                experiments=[entry for entry in ours["experiments"] if not pattern or pattern.search(entry["case"])])
    return {"context": {**document["context"], "skbench": ours}, "benchmarks": []}


def main_save(args):
    name, pattern = checked_name(args.name), run.expression(args.filter)
    if args.run:
        document, _ = from_file(args.run)
    else:
        refuse_stored(path_of(fp8_here(), name), args)
        document, _, _ = measure(args, args.instructions)
    ours = document["context"]["skbench"]
    if ours["partial"]:
        raise UserError(f"{args.run or 'this run'}: partial ({ours['partial_reason']}), no baseline is made of it")
    path = path_of(ours["fingerprint"]["fp8"], name)
    refuse_stored(path, args)
    made = reduced(document, name, pattern)
    counted = made["context"]["skbench"]
    if not counted["cases"] and not counted["ledger"]:
        raise UserError(f"no case matches --filter {args.filter}" if args.filter else "there is no case to store")
    results.check(made, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_text(path, results.text_of(made))
    out = files.text_stream(args.json)
    more = f", the instructions of {len(counted['instructions']['rows'])}" if counted.get("instructions") else ""
    out.write(f"stored {table.plural(len(counted['cases']), 'case')} and the ledger of {len(counted['ledger'])}{more} in "
              f"{shown(path)}\n")
    busy = sides.busy(counted["fingerprint"]["condition"])
    if busy:
        out.write(f"note: {busy}: its times will not be judged; save it again on a quiet machine\n")
    if args.json:
        files.write_json(args.json, made)
    return OK


def refuse_stored(path, args):
    if path.exists() and not args.replace:
        raise UserError(f"{shown(path)} is there already: --replace takes its place, or choose another name")


# --- list, show ---------------------------------------------------------------------------------------------------

def stored(name="*"):
    """[(fp8, name, document)], sorted."""
    return [(path.parent.name, path.stem, results.read(path)) for path in sorted(directory().glob(f"*/{name}.json"))]


def describe(fp8, name, document):
    ours = document["context"]["skbench"]
    identity = ours["fingerprint"]["identity"]
    return {"name": name, "fp8": fp8, "date": document["context"]["date"], "revision": ours["revision"]["commit"],
            "dirty": ours["revision"]["dirty"], "cases": len(ours["cases"]), "ledger": len(ours["ledger"]),
            "cpu": identity.get("cpu_name"), "compiler": identity["build"].get("compiler_version")}


def main_list(args):
    found = [describe(*entry) for entry in stored()]
    out = files.text_stream(args.json)
    for entry in found:
        out.write("\n".join(table.wrapped(
            f"{entry['name']}   {entry['fp8']}   {entry['date'][:10]}   {entry['revision'][:7]}"
            f"{'+' if entry['dirty'] else ''}   {table.plural(entry['cases'], 'case')}   {entry['cpu']}, compiler "
            f"{entry['compiler']}")) + "\n")
    if not found:
        out.write("no baseline is stored: skbench baseline save NAME\n")
    if args.json:
        files.write_json(args.json, {"command": "baseline list", "baselines": found})
    return OK


def main_show(args):
    found = [entry for entry in stored(checked_name(args.name)) if args.machine in (None, entry[0])]
    if not found:
        raise UserError(f"no baseline '{args.name}'{f' of {args.machine}' if args.machine else ''} is stored: "
                        "skbench baseline list")
    if len(found) > 1:
        raise UserError(f"'{args.name}' is stored for {', '.join(entry[0] for entry in found)}: choose one with --machine")
    fp8, name, document = found[0]
    out = files.text_stream(args.json)
    entry = describe(fp8, name, document)
    out.write("\n".join(table.wrapped(f"{name}   {fp8}   {entry['date']}   {entry['revision'][:7]}   "
                                      f"{entry['cpu']}")) + "\n")
    for case in document["context"]["skbench"]["cases"]:
        out.write("\n".join(ledger.wrap(case["case"])) + "\n")
        value = case["value"]
        span = f" [{compare_report.time_text(value['lo'])}, {compare_report.time_text(value['hi'])}]" \
            if value["lo"] is not None else ""
        out.write(f"    {compare_report.time_text(value['median'])}{span} n={value['n']}\n")
    out.write(f"ledger of {table.plural(entry['ledger'], 'case')}\n")
    if args.json:
        files.write_json(args.json, document)
    return OK


# --- check --------------------------------------------------------------------------------------------------------

def main_check(args):
    name, words, pattern = checked_name(args.name), compare.fail_on(args.fail_on), run.expression(args.filter)
    compare.check_output(args)
    engine = None
    if args.run:
        new = sides.load(args.run)
        if new.foreign():
            raise UserError(f"{args.run}: not a result of skbench, so that no machine's baseline is its")
        fp8 = new.fingerprint["fp8"]
    else:
        fp8 = fp8_here()
    path = path_of(fp8, name)
    if not path.exists():
        return no_baseline(args, fp8, name)
    base = sides.load_file(path)
    if pattern:
        for name_ in [case for case in base.cases if not pattern.search(case)]:
            del base.cases[name_]
    if not args.run:
        document, engine, request = measure(args, bool(base.counted))
        new = sides.native(document, "a fresh run")
    report = compare.judge(base, new, sides.read_aliases(), words, pattern=pattern)
    report["command"] = f"baseline check {name}"
    for entry in report["rows"]:
        if entry["verdict"] == compare.NEW:
            entry["verdict"] = compare.NO_BASELINE
    report["rows"] = compare.sort(report["rows"])
    if engine:
        confirm(report, base, engine, request)
    compare.finish(report, words)
    compare.deliver(report, args)
    return report["exit_status"]


def no_baseline(args, fp8, name):
    """Says that there is none: no error."""
    others = [path.parent.name for path in sorted(directory().glob(f"*/{name}.json"))]
    note = f"no baseline '{name}' for this machine and build ({fp8})"
    note += f"; there is one for {', '.join(others)}" if others else ""
    out = files.text_stream(args.json)
    out.write("\n".join(table.wrapped(f"{compare.NO_BASELINE}: {note}; skbench baseline save {name} stores one")) + "\n")
    if args.json:
        files.write_json(args.json, {"schema": compare.SCHEMA, "command": f"baseline check {name}", "rows": [],
                                     "verdict": compare.NO_BASELINE, "note": note, "exit_status": OK})
    if args.junit not in (None, "-"):
        files.write_new(args.junit, compare_report.junit({"command": f"baseline check {name}", "rows": [],
                                                          "ledger": {"differences": []}}))
    return OK


def confirm(report, base, engine, request):
    """Measures what regressed once more with fresh processes. It fails only if it regresses again, by a test at 0.05
    over the number of all cases that were compared."""
    suspects = {entry["case"]: entry for entry in report["rows"] if entry["verdict"] == stats.REGRESSION}
    if not suspects:
        return
    family = sum(entry["p"] is not None for entry in report["rows"])
    cells = []
    for cell in engine.cells:
        if cell.key in suspects:
            fresh = duet.SurveyCell(cell.side, CONFIRM_SAMPLES, cell.batches)
            fresh.n = cell.n
            cells.append(fresh)
    progress = run.Progress("confirming")
    again = duet.Survey(cells, random.Random(request.seed + 1), None, budget_s=CONFIRM_BUDGET_S,
                        sampler=duet.process_sampler(request.cpus), progress=progress.turns)
    with run.stoppable():
        again.run()
    progress.clear()
    if again.interrupted:
        raise KeyboardInterrupt
    if again.failure:
        raise again.failure
    for cell in cells:
        entry, first = suspects[cell.key], compare_report.change_text(suspects[cell.key])
        case = sides.Case(cell.key)
        case.values = cell.values()
        judged = compare.row(cell.key, None, None, entry["base"], case.describe())
        if not case.values:
            entry["fails"], entry["verdict"] = False, stats.INCONCLUSIVE
            entry["reason"] = f"first {first}; the confirming run gave no value ({cell.reason or cell.stopped})"
            continue
        judged["ratio"] = judged["new"]["median"] / judged["base"]["median"]
        compare.confirm_row(judged, base.cases[cell.key], case, family)
        second = compare_report.change_text(judged)
        entry.update({key: judged[key] for key in ("new", "ratio", "lo", "hi", "p", "verdict", "fails")})
        entry["reason"] = f"first {first}, confirming run {second}"
        if judged["verdict"] != stats.REGRESSION:
            entry["verdict"] = stats.INCONCLUSIVE
