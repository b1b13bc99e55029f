# SPDX-License-Identifier: MIT
"""`skbench aa --contended`: what becomes of contended cases when somebody else wants a CPU. Each case of bench_contend whose
roles are two or more is measured as the machine is, then beside a process that keeps one CPU busy, and at last against
itself with extra work. A case that is disturbed may say that it was not measured; it may not say another number, least of
all the one of an operation that nobody contends for.
"""

import math
import random
import sys

from . import benchbin, duet, files, fingerprint, results, run, stats, table
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, UserError

SCHEMA = "skbench-aa-contended-1"
BINARY = "bench_contend"
PROCESSES = 20
INJECT_PERCENT = 10.0
# Shares of processes that must be measured, and of duets that must find the extra work.
MEASURED_IDLE, MEASURED_LOADED, FOUND = 0.90, 0.30, 0.90
LOW, HIGH = 0.10, 0.90


def quantile(values, q):
    """Between the two nearest of the sorted values."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def alone_name(case):
    """The case with one thread, or None for a case without threads or with one."""
    parts = case.split("/")
    if "threads:1" in parts:
        return None
    others = ["threads:1" if part.startswith("threads:") else part for part in parts]
    return "/".join(others) if others != parts else None


def survey(binary, cases, cpus, seed, known, progress):
    """PROCESSES samples of each case: {case: its cell}, and the engine. KNOWN: operations a batch, filled here."""
    cells = [duet.SurveyCell(duet.Side(binary, case, "single"), PROCESSES) for case in cases]

    def calibrate(cell):
        if cell.key not in known:
            known[cell.key] = binary.calibrate(cell.key, cpus)
        return known[cell.key]

    engine = duet.Survey(cells, random.Random(seed), calibrate, sampler=duet.process_sampler(cpus), progress=progress)
    engine.run()
    return {cell.key: cell for cell in cells}, engine


def contended(cell):
    """Whether two or more roles ran at once in the samples of CELL."""
    return any(len(answer.get("roles") or []) > 1 for answer, _ in cell.samples)


def side(cell):
    """What is told of one survey of a case."""
    values = cell.values()
    told = {"processes": cell.processes, "measured": cell.processes - cell.lost_processes,
            "status": cell.status, "reason": cell.reason, "p10": None, "median": None, "p90": None}
    if values:
        told.update(p10=quantile(values, LOW), median=stats.median(values), p90=quantile(values, HIGH))
    return told


def entry(case, idle, loaded, pairs, alone):
    """One case. inside: whether the loaded value lies among the idle ones, None where there is none to judge.
    as_if_alone: it lies outside and nearer to ALONE, the value of one thread, than to the idle one."""
    told = {"case": case, "idle": side(idle), "loaded": side(loaded), "alone": alone, "inside": None, "as_if_alone": False,
            "found": None, "duet": None}
    value = told["loaded"]["median"]
    if value is not None and told["idle"]["median"] is not None and loaded.status == duet.OK:
        told["inside"] = told["idle"]["p10"] <= value <= told["idle"]["p90"]
        if alone and not told["inside"]:
            told["as_if_alone"] = abs(math.log(value / alone)) < abs(math.log(value / told["idle"]["median"]))
    if pairs is not None and pairs.stopped in ("width", "pairs"):
        interval = pairs.interval()
        told["duet"] = {"pairs": len(pairs.pairs), "verdict": pairs.verdict(),
                        "lo": interval[0] if interval else None, "hi": interval[1] if interval else None}
        told["found"] = pairs.verdict() == stats.REGRESSION
    return told


def share(k, n):
    return k / n if n else 0.0


def totals(entries):
    def processes(which):
        return (sum(e[which]["measured"] for e in entries), sum(e[which]["processes"] for e in entries))

    judged = [e for e in entries if e["inside"] is not None]
    duets = [e for e in entries if e["found"] is not None]
    return {"idle": processes("idle"), "loaded": processes("loaded"),
            "inside": (sum(e["inside"] for e in judged), len(judged)),
            "unmeasured": sum(e["inside"] is None for e in entries),
            "as_if_alone": sum(e["as_if_alone"] for e in entries),
            "found": (sum(e["found"] for e in duets), len(duets))}


def problems(total):
    """Sentences on what misses what is asked."""
    found = []
    for name, least in (("idle", MEASURED_IDLE), ("loaded", MEASURED_LOADED), ("found", FOUND)):
        k, n = total[name]
        if n and share(k, n) < least:
            what = {"idle": "processes were measured as the machine was", "loaded": "processes were measured beside the load",
                    "found": f"duets found +{INJECT_PERCENT:g} %"}[name]
            found.append(f"{k} of {n} {what}, {least * 100:g} % are asked for")
    k, n = total["inside"]
    if k < n:
        found.append(f"{n - k} of {table.plural(n, 'case')} had another value beside the load"
                     + (f", {total['as_if_alone']} of them one nearer to that of one thread" if total["as_if_alone"] else ""))
    return found


def busy(taken):
    """What others used of the CPUs before the load, in words."""
    used = taken["condition"].get("other_cpu_share")
    return None if used is None else f"others used {used * 100:.0f} % of the CPUs"


# case; idle: measured, p10, median, p90; loaded: measured, median; inside; duet
WIDTHS = (-8, -9, -9, -9, -8, -9, 12, -11)


def ns(value):
    return "" if value is None else f"{value:.2f}"


def render(report):
    lines = table.both_ends(f"skbench aa --contended: {table.plural(len(report['cases']), 'case')}",
                            f"seed {report['seed']}")
    lines += table.wrapped(f"{PROCESSES} processes each, ns an operation, as the machine was"
                           + (f" ({report['busy']})" if report["busy"] else "")
                           + f", and beside a process that kept CPU {report['load_cpu']} busy")
    lines += [""] + table.row(["idle", "p10", "median", "p90", "loaded", "median", "", f"+{INJECT_PERCENT:g} %"], WIDTHS)
    for one in report["cases"]:
        idle, loaded = one["idle"], one["loaded"]
        lines += table.wrapped(one["case"], "  ")
        word = "unmeasured" if one["inside"] is None else "inside" if one["inside"] else "OUTSIDE"
        lines += table.row([f"{idle['measured']}/{idle['processes']}", ns(idle["p10"]), ns(idle["median"]), ns(idle["p90"]),
                            f"{loaded['measured']}/{loaded['processes']}", ns(loaded["median"]), f" {word}",
                            "" if one["found"] is None else one["duet"]["verdict"]], WIDTHS)
    total = report["totals"]
    lines += ["", f"measured: {total['idle'][0]} of {total['idle'][1]} processes, beside the load "
                  f"{total['loaded'][0]} of {total['loaded'][1]}",
              f"inside p10 to p90 beside the load: {total['inside'][0]} of {total['inside'][1]}; "
              f"{table.plural(total['unmeasured'], 'case')} unmeasured",
              f"+{INJECT_PERCENT:g} % found: {total['found'][0]} of {table.plural(total['found'][1], 'duet')}"]
    lines += [f"not possible here: {table.plural(len(report['refused']), 'case')}"] if report["refused"] else []
    for problem in report["problems"]:
        lines += table.wrapped(f"FAILED: {problem}")
    return lines


def chosen(binary, filter_):
    cases = [case for operation in binary.operations() for case in operation["cases"] if filter_.search(case)]
    if not cases:
        raise UserError(f"no contended case matches --filter {filter_.pattern}")
    return cases


def main(args, busy_cpu):
    """BUSY_CPU(cpu): the context manager that keeps one busy."""
    filter_ = run.expression(args.filter)
    seed, cpus = run.seed_from(args.seed), run.cpus_from(args.cpus)
    binary = run.need(run.bench_directory(), BINARY)
    load_cpu = (cpus or fingerprint.allowed_cpus())[-1]
    cases, known = chosen(binary, filter_), {}
    progress = run.Progress("aa --contended")
    load = fingerprint.Load()
    engines, loaded, cells = [], {}, []
    with run.stoppable():
        idle, engine = survey(binary, cases, cpus, f"{seed}/idle", known, progress.turns)
        engines.append(engine)
        mine = [case for case in cases if contended(idle[case])]
        if mine and not engine.interrupted and not engine.failure:
            taken = fingerprint.take(binary.context(), load, seed)
            with busy_cpu(load_cpu):
                loaded, engine = survey(binary, mine, cpus, f"{seed}/loaded", known, progress.turns)
            engines.append(engine)
        if loaded and not engine.interrupted and not engine.failure:
            cells = [duet.Cell(case, duet.Side(binary, case, "a"), duet.Side(binary, case, "b", INJECT_PERCENT), known[case])
                     for case in mine]
            engine = duet.Duet(cells, random.Random(f"{seed}/duets"), sampler=duet.process_sampler(cpus),
                               progress=progress.turns)
            engine.run()
            engines.append(engine)
    progress.clear()
    with run.uninterrupted():
        if not loaded:
            taken = fingerprint.take(binary.context(), load, seed)
        return deliver(args, seed, load_cpu, taken, engines, idle, loaded, {cell.key: cell for cell in cells})


def deliver(args, seed, load_cpu, taken, engines, idle, loaded, duets):
    def alone(case):
        cell = idle.get(alone_name(case))
        return stats.median(cell.values()) if cell is not None and cell.samples else None

    entries = [entry(case, idle[case], loaded[case], duets.get(case), alone(case)) for case in loaded]
    total = totals(entries)
    interrupted = any(engine.interrupted for engine in engines)
    failure = next((engine.failure for engine in engines if engine.failure), None)
    refused = {case: cell.reason for case, cell in idle.items() if cell.impossible}
    found = problems(total)
    if interrupted:
        status = INTERRUPTED
    elif failure:
        status = FAILED
    elif not entries:
        status = IMPOSSIBLE
        found = [next(iter(refused.values()), "no case has two roles, choose others with --filter")]
    else:
        status = INCONCLUSIVE if found else OK
    report = {"schema": SCHEMA, "fingerprint": taken, "seed": seed, "load_cpu": load_cpu, "busy": busy(taken),
              "processes": PROCESSES, "inject_percent": INJECT_PERCENT, "cases": entries, "refused": refused,
              "totals": total, "problems": found, "partial": interrupted or failure is not None, "exit_status": status}
    if failure:
        sys.stderr.write(f"skbench: {failure}\n")
    files.text_stream(args.json).write("\n".join(render(report)) + "\n")
    if args.json == "-":
        sys.stdout.write(results.text_of(report))
    elif args.json is not None:
        files.write_new(args.json, results.text_of(report))
    if interrupted:
        sys.stderr.write("skbench: interrupted\n")
    return status
