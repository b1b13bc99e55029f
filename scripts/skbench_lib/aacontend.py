# SPDX-License-Identifier: MIT
"""`skbench aa --contended`: what becomes of contended cases when somebody else wants a CPU. Each case of bench_contend whose
roles are two or more is measured with and without a process that keeps one CPU busy, in the same rounds, since what a
cache line costs between two CPUs changes with the minute where a hypervisor moves them; and then against itself with extra
work. A case that is disturbed may say that it was not measured; it may not say another number, least of all the one of an
operation that nobody contends for.
"""

import contextlib
import math
import os
import random
import signal
import sys

from . import benchbin, duet, files, fingerprint, results, run, stats, table
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, UserError

SCHEMA = "skbench-aa-contended-1"
BINARY = "bench_contend"
PROCESSES, LOOKS = 20, 3  # of each side; to see which cases have two roles, and what one thread makes of them
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


IDLE, LOADED = "idle", "loaded"


class Load:
    """A process that keeps CPU busy from on() to off(); BUSY_CPU starts it, yields it and ends it."""

    def __init__(self, child):
        self.child = child
        self.off()

    def on(self):
        os.kill(self.child.pid, signal.SIGCONT)

    def off(self):
        os.kill(self.child.pid, signal.SIGSTOP)


def sampler_beside(load, cpus):
    """Samples the sides that are called LOADED beside LOAD, a Load, and the others without."""
    plain = duet.process_sampler(cpus)

    def sample(side, cell, pad):
        if side.label != LOADED:
            return plain(side, cell, pad)
        load.on()
        try:
            return plain(side, cell, pad)
        finally:
            load.off()
    return sample


def survey(binary, cases, labels, wanted, known, **how):
    """WANTED samples of each case under each of LABELS, in rounds of random order: {(case, label): cell}, and the engine.
    KNOWN: operations a batch, filled here."""
    cells = {(case, label): duet.SurveyCell(duet.Side(binary, case, label), wanted) for case in cases for label in labels}

    def calibrate(cell):
        if cell.key not in known:
            known[cell.key] = duet.whole_extra(binary.calibrate(cell.key, how["cpus"]), [INJECT_PERCENT])
        return known[cell.key]

    engine = duet.Survey(list(cells.values()), random.Random(f"{how['seed']}/{wanted}"), calibrate, sampler=how["sampler"],
                         progress=how["progress"])
    engine.run()
    return cells, engine


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
    """What others used of the CPUs, in words."""
    used = taken["condition"].get("other_cpu_share")
    return None if used is None else f"others used {used * 100:.0f} % of the CPUs"


# case; idle: measured, p10, median, p90; loaded: measured, median; inside; duet
WIDTHS = (-7, -9, -9, -9, -7, -9, 10, -12)


def ns(value):
    return "" if value is None else f"{value:.2f}"


def render(report):
    lines = table.both_ends(f"skbench aa --contended: {table.plural(len(report['cases']), 'case')}",
                            f"seed {report['seed']}")
    lines += table.wrapped(f"{PROCESSES} processes each, ns an operation, as the machine was"
                           + (f" ({report['busy']})" if report["busy"] else "")
                           + f", and in the same rounds beside a process that kept CPU {report['load_cpu']} busy")
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
    """BUSY_CPU(cpu): the context manager that keeps one busy and yields the process."""
    filter_ = run.expression(args.filter)
    seed, cpus = run.seed_from(args.seed), run.cpus_from(args.cpus)
    binary = run.need(run.bench_directory(), BINARY)
    load_cpu = (cpus or fingerprint.allowed_cpus())[-1]
    cases, known = chosen(binary, filter_), {}
    progress = run.Progress("aa --contended")
    others = fingerprint.Load()
    engines, both, cells = [], {}, []
    how = {"cpus": cpus, "seed": seed, "progress": progress.turns}

    def good():
        return not engines[-1].interrupted and not engines[-1].failure

    with run.stoppable(), contextlib.ExitStack() as stack:
        looks, engine = survey(binary, cases, ("single",), LOOKS, known, sampler=duet.process_sampler(cpus), **how)
        engines.append(engine)
        taken = fingerprint.take(binary.context(), others, seed)
        mine = [case for case in cases if contended(looks[case, "single"])]
        if mine and good():
            beside = sampler_beside(Load(stack.enter_context(busy_cpu(load_cpu))), cpus)
            both, engine = survey(binary, mine, (IDLE, LOADED), PROCESSES, known, sampler=beside, **how)
            engines.append(engine)
        if both and good():
            cells = [duet.Cell(case, duet.Side(binary, case, "a"), duet.Side(binary, case, "b", INJECT_PERCENT), known[case])
                     for case in mine]
            engine = duet.Duet(cells, random.Random(f"{seed}/duets"), sampler=duet.process_sampler(cpus),
                               progress=progress.turns)
            engine.run()
            engines.append(engine)
    progress.clear()
    with run.uninterrupted():
        return deliver(args, seed, load_cpu, taken, engines, {case: looks[case, "single"] for case in cases}, both,
                       {cell.key: cell for cell in cells})


def deliver(args, seed, load_cpu, taken, engines, looks, both, duets):
    def alone(case):
        cell = looks.get(alone_name(case))
        return stats.median(cell.values()) if cell is not None and cell.samples else None

    entries = [entry(case, cell, both[case, LOADED], duets.get(case), alone(case))
               for (case, label), cell in both.items() if label == IDLE]
    total = totals(entries)
    interrupted = any(engine.interrupted for engine in engines)
    failure = next((engine.failure for engine in engines if engine.failure), None)
    refused = {case: cell.reason for case, cell in looks.items() if cell.impossible}
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
