# SPDX-License-Identifier: MIT
"""`skbench aa`: how this machine's noise is judged. Duets of a case against itself, which must not alarm, and against
itself with a known share of extra work, which must be found. Rates are pooled over the cases.
"""

import random
import sys

from . import benchbin, duet, files, fingerprint, results, run, stats, table
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, UserError

SCHEMA = "skbench-aa-1"
DUETS, CAMPAIGN_DUETS = 20, 200
BUDGET_S = 300.0
INJECT_PERCENT = 5.0
# What is asked of the method. A run fails when its count would be a 1-in-100 accident under them.
FALSE_RATE, FOUND_RATE, SIGNIFICANCE = 0.01, 0.95, 0.01


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "aa", help="false alarms and power of the timing on this machine",
        description="Runs each trim case against itself, and against itself with extra work, and counts verdicts.")
    parser.add_argument("--filter", metavar="RE", help="only cases whose name matches this regular expression")
    parser.add_argument("--duets", metavar="N", help=f"duets of each kind ({DUETS})")
    parser.add_argument("--inject", metavar="PCT", help=f"extra work in percent ({INJECT_PERCENT:g})")
    parser.add_argument("--budget", metavar="SECONDS", help=f"time for measuring ({BUDGET_S:g}; --campaign: none)")
    parser.add_argument("--campaign", action="store_true", help=f"the nightly size: {CAMPAIGN_DUETS} duets of each kind")
    parser.add_argument("--cpus", metavar="LIST", help="CPUs for the roles, as in 0,1 or 2-3")
    parser.add_argument("--seed", metavar="N", help="of the order of pairs and the paddings (default: random)")
    parser.add_argument("--json", metavar="FILE", help="the counts as JSON; - for standard output")
    parser.set_defaults(func=main)


def percent(text):
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is None or not 0 < value <= 100:
        raise UserError(f"--inject {text}: percent are needed, more than 0, at most 100")
    return value


def is_found(verdict, inject):
    """Whether a duet with INJECT percent of extra work was seen: a step below 5 % need not clear the 3 % margin."""
    return verdict == stats.REGRESSION or (inject < INJECT_PERCENT and verdict == stats.SHIFTED)


def at_least(k, n, p):
    """P(X >= k) for X binomial(n, p)."""
    return 1 - stats.binomial_cdf(k - 1, n, p)


class Duets:
    """Runs the duets one after the other; each is an A/A cell and an injected cell in turns."""

    def __init__(self, binary, cases, count, inject, cpus, seed, budget_s, progress=None):
        self.binary, self.cases, self.count = binary, cases, count
        self.inject, self.cpus, self.seed, self.budget_s = inject, cpus, seed, budget_s
        self.progress = progress
        self.done = []  # finished duets: dicts
        self.cut = 0    # cells that the end of the budget left unfinished
        self.interrupted, self.failure = False, None
        self.elapsed_s = 0.0
        self.refusals = {}

    def run(self):
        rng = random.Random(self.seed)
        operations = {}
        for index in range(self.count):
            case = self.cases[index % len(self.cases)]
            if case in self.refusals:
                continue
            try:
                if case not in operations:
                    operations[case] = self.binary.calibrate(case, self.cpus)
            except benchbin.NotPossible as error:
                self.refusals[case] = str(error)
                continue
            if not self._one(index, case, operations[case], rng):
                break

    def _one(self, index, case, n, rng):
        left = None if self.budget_s is None else self.budget_s - self.elapsed_s
        if left is not None and left <= 0:
            return False
        plain = duet.Side(self.binary, case, "a")
        loaded = duet.Side(self.binary, case, "b", self.inject)
        cells = [duet.Cell("aa", plain, plain, n), duet.Cell("injected", plain, loaded, n)]
        engine = duet.Duet(cells, rng, budget_s=left, sampler=duet.process_sampler(self.cpus))
        engine.run()
        self.elapsed_s += engine.elapsed_s
        for cell in cells:
            if cell.stopped not in ("width", "pairs", "unmeasured", "not possible"):
                self.cut += 1
                continue
            interval = cell.interval()
            self.done.append({
                "kind": cell.key, "duet": index, "case": case, "n": n, "pairs": len(cell.pairs),
                "verdict": cell.verdict(), "stopped": cell.stopped, "status": cell.status, "reason": cell.reason,
                "median_log_ratio": stats.median(cell.log_ratios()) if cell.pairs else None,
                "lo": interval[0] if interval else None, "hi": interval[1] if interval else None})
        self.interrupted, self.failure = engine.interrupted, engine.failure
        if self.progress:
            self.progress(self)
        return not self.interrupted and not self.failure


def pooled(duets, kind, inject):
    """Counts over all duets of one kind."""
    mine = [entry for entry in duets if entry["kind"] == kind]
    measured = [entry for entry in mine if entry["lo"] is not None]
    counts = {verdict: sum(entry["verdict"] == verdict for entry in mine) for verdict in stats.VERDICTS}
    return {
        "duets": len(mine), "unmeasured": sum(entry["status"] != duet.OK for entry in mine), "verdicts": counts,
        "false": counts[stats.REGRESSION] + counts[stats.IMPROVEMENT] if kind == "aa" else None,
        "found": sum(is_found(entry["verdict"], inject) for entry in mine) if kind == "injected" else None,
        "holds_zero": sum(entry["lo"] <= 0 <= entry["hi"] for entry in measured),
        "pairs_median": stats.median([entry["pairs"] for entry in mine]) if mine else None,
        "half_width_median": stats.median([(entry["hi"] - entry["lo"]) / 2 for entry in measured]) if measured else None}


def judge(aa, injected, inject):
    """Sentences about rates that miss what is asked of the method; none if all is well."""
    problems = []
    if aa["duets"] == 0 or injected["duets"] == 0:
        return ["not one duet of each kind was finished"]
    if at_least(aa["false"], aa["duets"], FALSE_RATE) < SIGNIFICANCE:
        problems.append(f"{aa['false']} of {aa['duets']} equal sides got a false verdict, "
                        f"at most {FALSE_RATE * 100:g} % are allowed")
    if inject >= INJECT_PERCENT and stats.binomial_cdf(injected["found"], injected["duets"], FOUND_RATE) < SIGNIFICANCE:
        problems.append(f"+{inject:g} % was found in {injected['found']} of {injected['duets']} duets, "
                        f"{FOUND_RATE * 100:g} % are asked for")
    return problems


def share(k, n):
    return f"{k} of {n} ({k / n * 100:.1f} %)" if n else "0 of 0"


def render(report):
    """The table, as lines of at most 80 columns."""
    aa, injected, inject = report["pooled"]["aa"], report["pooled"]["injected"], report["inject_percent"]
    lines = table.both_ends(f"skbench aa: {table.plural(report['duets_asked'], 'duet')} of each kind over "
                            f"{table.plural(len(report['cases']), 'case')}", f"seed {report['seed']}")
    lines += table.wrapped(f"margin {report['margin'] * 100:g} %, half-width {report['target_half_width'] * 100:g} % or "
                           f"{report['max_pairs']} pairs   {report['elapsed_s']:.0f} s")
    columns = (22, 18, 18)
    lines += [""] + table.row(["", "equal sides", f"+{inject:g} % injected"], columns)
    for label, pick in (
            ("duets finished", lambda p: str(p["duets"])),
            ("false verdicts", lambda p: share(p["false"], p["duets"]) if p["false"] is not None else ""),
            ("found", lambda p: share(p["found"], p["duets"]) if p["found"] is not None else ""),
            *((verdict, lambda p, v=verdict: share(p["verdicts"][v], p["duets"])) for verdict in stats.VERDICTS),
            ("interval holds 0", lambda p: share(p["holds_zero"], p["duets"])),
            ("unmeasured", lambda p: str(p["unmeasured"])),
            ("pairs, median", lambda p: "" if p["pairs_median"] is None else f"{p['pairs_median']:g}"),
            ("half-width, median", lambda p: "" if p["half_width_median"] is None
             else f"{p['half_width_median'] * 100:.2f} %")):
        lines += table.row([label, pick(aa), pick(injected)], columns)
    if report["cut"]:
        lines += table.wrapped(f"{table.plural(report['cut'], 'cell')} unfinished when the run ended, not counted")
    for case, reason in report["refused"].items():
        lines += table.wrapped(f"not possible here: {reason} ({case})")
    lines += [""]
    for problem in report["problems"]:
        lines += table.wrapped(f"FAILED: {problem}")
    if not report["problems"]:
        lines.append("the method holds on this machine")
    return lines


def main(args):
    filter_ = run.expression(args.filter)
    count = run.integer(args.duets, "--duets", 1, 100000) if args.duets is not None else \
        CAMPAIGN_DUETS if args.campaign else DUETS
    inject = INJECT_PERCENT if args.inject is None else percent(args.inject)
    budget = run.seconds(args.budget) if args.budget is not None else None if args.campaign else BUDGET_S
    seed, cpus = run.seed_from(args.seed), run.cpus_from(args.cpus)
    grid = run.Trim.grid(None, 1, True)
    cases = [case for case in (run.Trim.case(run.DEFAULT_ERA, run.Trim.baseline, cell) for cell in grid)
             if filter_.search(case)]
    if not cases:
        raise UserError(f"no case of aa matches --filter {args.filter}")
    binary = run.need(run.bench_directory(), run.Trim.binary)
    progress = run.Progress("aa")
    duets = Duets(binary, cases, count, inject, cpus, seed, budget,
                  lambda d: progress.say(f"{len(d.done)} of {2 * count} duets, {d.elapsed_s:.0f} s"))
    load = fingerprint.Load()
    with run.stoppable():
        context = binary.context()
        duets.run()
    progress.clear()
    with run.uninterrupted():
        return deliver(args, duets, fingerprint.take(context, load, seed))


def deliver(args, duets, taken):
    aa, injected = pooled(duets.done, "aa", duets.inject), pooled(duets.done, "injected", duets.inject)
    problems = judge(aa, injected, duets.inject)
    if duets.interrupted:
        status = INTERRUPTED
    elif duets.failure:
        status = FAILED
    elif len(duets.refusals) == len(duets.cases):
        status = IMPOSSIBLE
    else:
        status = INCONCLUSIVE if problems else OK
    report = {
        "schema": SCHEMA, "fingerprint": taken, "seed": duets.seed, "duets_asked": duets.count,
        "inject_percent": duets.inject, "margin": stats.MARGIN, "target_half_width": stats.HALF_WIDTH,
        "max_pairs": duet.MAX_PAIRS, "elapsed_s": round(duets.elapsed_s, 3), "cases": duets.cases,
        "refused": duets.refusals, "partial": duets.interrupted or duets.failure is not None, "cut": duets.cut,
        "pooled": {"aa": aa, "injected": injected}, "problems": problems, "duets": duets.done, "exit_status": status}
    if duets.failure:
        sys.stderr.write(f"skbench: {duets.failure}\n")
    files.text_stream(args.json).write("\n".join(render(report)) + "\n")
    if args.json == "-":
        sys.stdout.write(results.text_of(report))
    elif args.json is not None:
        files.write_new(args.json, results.text_of(report))
    if duets.interrupted:
        sys.stderr.write("skbench: interrupted\n")
    return status
