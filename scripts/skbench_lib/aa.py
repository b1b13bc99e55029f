# SPDX-License-Identifier: MIT
"""`skbench aa`: how this machine's noise is judged. Duets of a case against itself, which must not alarm, and against
itself with a known share of extra work, which must be found. Rates are pooled over the cases; from the spread of equal
sides follows for each case the smallest change that can be found.

The campaign adds a third kind with little extra work, runs everything a second time beside a process that keeps one CPU
busy, and judges the same values as other tools would. Each finished duet is one line of its state file, from which it
goes on after an end of any kind.
"""

import contextlib
import json
import math
import os
import random
import sys
from pathlib import Path

from . import aacontend, benchbin, children, duet, files, fingerprint, peers, results, run, stats, table, tree
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, UserError

SCHEMA = "skbench-aa-2"
DUETS, CAMPAIGN_DUETS = 20, 200
BUDGET_S = 300.0
INJECT_PERCENT, SMALL_PERCENT = 5.0, 2.0
# What is asked of the method. A run fails when its count would be a 1-in-100 accident under them.
FALSE_RATE, FOUND_RATE, SIGNIFICANCE = 0.01, 0.95, 0.01
TOLD_RATE = 0.80      # of +2 %, as the machine is
COVERAGE_RATE = 0.93  # of intervals of equal sides hold 0, nominally 95 %
POWER = 0.95

PR_SET_PDEATHSIG = 1

AA, INJECTED, SMALL = "aa", "injected", "small"

# Of the campaign: what allocates, copies, walks and counts; two allocators; one case whose roles run on two CPUs.
SENTINELS = (
    "skb/alloc_skb_fclone/era:6.12/frags:16/alloc:slub",
    "skb/skb_clone/era:6.12/of:fclone/alloc:slub",
    "skb/pskb_expand_head/era:6.12/frags:16/cloned:1/head:320/list:0/uarg:0/alloc:slub",
    "skb/skb_copy/era:6.12/frags:16/list:0/alloc:slub",
    *(run.Trim.case(run.DEFAULT_ERA, run.Trim.baseline, {"frags": frags, "complete": complete, "alloc": alloc})
      for frags, complete, alloc in ((2, "same", "slub"), (16, "same", "slub"), (16, "same", "jemalloc"),
                                     (16, "other", "slub"))))


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "aa", help="false alarms and power of the timing on this machine",
        description="Runs each trim case against itself, and against itself with extra work, and counts verdicts.")
    parser.add_argument("--filter", metavar="RE", help="only cases whose name matches this regular expression")
    parser.add_argument("--duets", metavar="N", help=f"duets of each kind ({DUETS})")
    parser.add_argument("--inject", metavar="PCT", help=f"extra work in percent ({INJECT_PERCENT:g})")
    parser.add_argument("--budget", metavar="SECONDS", help=f"time for measuring ({BUDGET_S:g}; --campaign: none)")
    parser.add_argument("--campaign", action="store_true",
                        help=f"the nightly size: {CAMPAIGN_DUETS} duets of each kind over {len(SENTINELS)} cases, with "
                             f"{SMALL_PERCENT:g} %% too, as the machine is and with one CPU kept busy; resumable")
    parser.add_argument("--contended", action="store_true",
                        help=f"instead, each case with two roles or more: {aacontend.PROCESSES} processes as the machine is and "
                             f"as many with one CPU kept busy, and a duet with {aacontend.INJECT_PERCENT:g} %% more work")
    parser.add_argument("--state", metavar="FILE",
                        help="keep finished duets in FILE and go on from there (--campaign: out/<machine>/campaign.jsonl)")
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


# --- measuring ----------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def busy_cpu(cpu):
    """Keeps CPU busy with a process of ours, which it yields; None for no load. Nobody ends it if we are killed but the
    kernel, which is asked to."""
    if cpu is None:
        yield None
        return
    code = (f"import ctypes, os, signal\nctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, signal.SIGKILL)\n"
            f"os.sched_setaffinity(0, [{cpu}])\nwhile os.getppid() == {os.getpid()}: pass")
    with children.started([sys.executable, "-I", "-c", code]) as child:
        yield child
        children.kill_group(child)


class State:
    """Finished duets in a file, one line of JSON each behind a line that says what was asked for; None keeps nothing."""

    def __init__(self, path, settings):
        self.path = None if path is None else Path(path)
        self.settings = settings
        self.kept = []
        if self.path is not None and self.path.exists():
            self._read()

    def _read(self):
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise UserError(f"{self.path}: {error.strerror}") from None
        # What a killed process left behind the last whole line was never finished.
        lines = data[:data.rfind(b"\n") + 1].splitlines()
        for number, line in enumerate(lines, 1):
            entry = results.parse(line, f"{self.path}:{number}")
            if number == 1:
                differing = [key for key in self.settings if not isinstance(entry, dict) or
                             entry.get(key) != self.settings[key]]
                if differing:
                    raise UserError(f"{self.path}: begun with another {', '.join(differing)}: name another --state, or "
                                    "remove it")
            elif not isinstance(entry, dict) or not isinstance(entry.get("done"), list) or "duet" not in entry:
                raise UserError(f"{self.path}:{number}: no finished duet: name another --state, or remove it")
            else:
                self.kept.append(entry)
        if len(data) > data.rfind(b"\n") + 1:
            os.truncate(self.path, data.rfind(b"\n") + 1)

    def add(self, entry):
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists() or self.path.stat().st_size == 0
            with open(self.path, "a", encoding="ascii") as out:
                for value in ([self.settings] if new else []) + [entry]:
                    out.write(json.dumps(value, allow_nan=False) + "\n")
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror}") from None


class Duets:
    """Runs the duets one after the other; each is a cell of every kind in turns.

    binaries  {case: its BenchBinary};  kinds  {word: percent of extra work};  loads  CPUs to keep busy, None for none
    """

    def __init__(self, binaries, count, kinds, cpus, seed, budget_s, loads=(None,), state=None, progress=None):
        self.binaries, self.cases, self.count = binaries, list(binaries), count
        self.kinds, self.cpus, self.seed, self.budget_s = kinds, cpus, seed, budget_s
        self.loads, self.state, self.progress = loads, state or State(None, {}), progress
        self.done = []  # finished duets: dicts
        self.cut = 0    # cells that the end of the budget left unfinished
        self.interrupted, self.failure = False, None
        self.elapsed_s = 0.0
        self.refusals = {}
        self.resumed = len(self.state.kept)

    def run(self):
        finished = {(entry["duet"], entry["loaded"]) for entry in self.state.kept}
        for entry in self.state.kept:
            self.done += entry["done"]
        operations = {}
        for index in range(self.count):
            case = self.cases[index % len(self.cases)]
            for load in self.loads:
                if case in self.refusals or (index, load is not None) in finished:
                    continue
                try:
                    if case not in operations:
                        n = self.binaries[case].calibrate(case, self.cpus)
                        operations[case] = duet.whole_extra(n, self.kinds.values())
                except benchbin.NotPossible as error:
                    self.refusals[case] = str(error)
                    continue
                if not self._one(index, case, operations[case], load):
                    return

    def _one(self, index, case, n, load):
        left = None if self.budget_s is None else self.budget_s - self.elapsed_s
        if left is not None and left <= 0:
            return False
        rng = random.Random(f"{self.seed}/{index}/{load is not None}")
        plain = duet.Side(self.binaries[case], case, "a")
        cells = [duet.Cell(kind, plain, duet.Side(self.binaries[case], case, "b", inject) if inject else plain, n)
                 for kind, inject in self.kinds.items()]
        engine = duet.Duet(cells, rng, budget_s=left, sampler=duet.process_sampler(self.cpus))
        with busy_cpu(load):
            engine.run()
        self.elapsed_s += engine.elapsed_s
        done = []
        for cell in cells:
            if cell.stopped not in ("width", "pairs", "unmeasured", "not possible"):
                self.cut += 1
                continue
            interval = cell.interval()
            done.append({
                "kind": cell.key, "duet": index, "case": case, "loaded": load is not None, "n": n,
                "roles": max((len(pair.a.get("roles") or ()) for pair in cell.pairs), default=0),
                "pairs": len(cell.pairs), "verdict": cell.verdict(), "stopped": cell.stopped, "status": cell.status,
                "reason": cell.reason, "median_log_ratio": stats.median(cell.log_ratios()) if cell.pairs else None,
                "lo": interval[0] if interval else None, "hi": interval[1] if interval else None,
                "values": [[round(pair.value_a, 4), round(pair.value_b, 4)] for pair in cell.pairs]})
        self.done += done
        self.interrupted, self.failure = engine.interrupted, engine.failure
        if len(done) == len(cells):
            self.state.add({"duet": index, "loaded": load is not None, "seconds": round(engine.elapsed_s, 1), "done": done})
        if self.progress:
            self.progress(self)
        return not self.interrupted and not self.failure


# --- judging ------------------------------------------------------------------------------------------------------

def pooled(duets, kind, inject):
    """Counts over all duets of one kind. What is found counts where the roles share a CPU: between two, what an operation
    costs depends on how many a batch has, so that more of them are not so much more work."""
    mine = [entry for entry in duets if entry["kind"] == kind]
    measured = [entry for entry in mine if entry["lo"] is not None]
    judged, apart = ([entry for entry in mine if (entry["roles"] > 1) == two] for two in (False, True))
    counts = {verdict: sum(entry["verdict"] == verdict for entry in mine) for verdict in stats.VERDICTS}
    others = [peers.judge(entry["values"]) for entry in measured]
    return {
        "duets": len(mine), "unmeasured": sum(entry["status"] != duet.OK for entry in mine), "verdicts": counts,
        "false": counts[stats.REGRESSION] + counts[stats.IMPROVEMENT] if kind == AA else None,
        "judged": len(judged), "apart": len(apart),
        "found": sum(is_found(entry["verdict"], inject) for entry in judged) if kind != AA else None,
        "found_apart": sum(is_found(entry["verdict"], inject) for entry in apart) if kind != AA else None,
        "holds_zero": sum(entry["lo"] <= 0 <= entry["hi"] for entry in measured), "measured": len(measured),
        "pairs_median": stats.median([entry["pairs"] for entry in mine]) if mine else None,
        "half_width_median": stats.median([(entry["hi"] - entry["lo"]) / 2 for entry in measured]) if measured else None,
        "peers": {name: {how: sum(one[name][how] for one in others) for how in ("interleaved", "blocks")}
                  for name in peers.METHODS}}


def smallest(duets, case):
    """What can be found of CASE with probability POWER, from its duets of equal sides.

    told: the shift that excludes 0; regression: the one beyond the margin; as ratios, at the pairs that the stopping
    rule took (median) and at the most. None where there are too few pairs to say.
    """
    mine = [entry for entry in duets if entry["kind"] == AA and entry["case"] == case and entry["values"]]
    logs = [math.log(b / a) for entry in mine for a, b in entry["values"]]
    if not logs:
        return {"case": case, "duets": 0, "pairs": None, "spread": None, "at_pairs": None, "at_most": None}
    base = stats.median([a for entry in mine for a, _ in entry["values"]])
    margin = max(stats.log_margin(stats.MARGIN), stats.log_floor(stats.FLOOR_NS, base))
    pairs = int(stats.median([entry["pairs"] for entry in mine]))

    def at(n):
        found = [stats.smallest_found(logs, n, bound, POWER) for bound in (0.0, margin)]
        return {"pairs": n, "told": None if found[0] is None else stats.relative(found[0]),
                "regression": None if found[1] is None else stats.relative(found[1])}

    return {"case": case, "duets": len(mine), "pairs": pairs, "spread": stats.median([abs(value) for value in logs]),
            "at_pairs": at(pairs), "at_most": at(duet.MAX_PAIRS)}


def judge(whole, as_it_was, kinds):
    """Sentences about rates that miss what is asked of the method; none if all is well. WHOLE: pooled() of each kind over
    all duets, AS_IT_WAS: over those without a load of ours."""
    equal, injected = whole[AA], whole[INJECTED]
    if equal["duets"] == 0 or injected["judged"] == 0:
        return ["not one duet of each kind was finished"]
    problems = []
    if at_least(equal["false"], equal["duets"], FALSE_RATE) < SIGNIFICANCE:
        problems.append(f"{equal['false']} of {equal['duets']} equal sides got a false verdict, "
                        f"at most {FALSE_RATE * 100:g} % are allowed")
    campaign = SMALL in kinds
    if campaign and too_few(equal["holds_zero"], equal["measured"], COVERAGE_RATE):
        problems.append(f"{equal['holds_zero']} of {equal['measured']} intervals of equal sides hold 0, "
                        f"{COVERAGE_RATE * 100:g} % are asked for")
    if kinds[INJECTED] >= INJECT_PERCENT and too_few(injected["found"], injected["judged"], FOUND_RATE):
        problems.append(f"+{kinds[INJECTED]:g} % was found in {injected['found']} of {injected['judged']} duets, "
                        f"{FOUND_RATE * 100:g} % are asked for")
    small = as_it_was[SMALL] if campaign else None
    if campaign and too_few(small["found"], small["judged"], TOLD_RATE):
        problems.append(f"+{kinds[SMALL]:g} % was told in {small['found']} of {small['judged']} duets without a load, "
                        f"{TOLD_RATE * 100:g} % are asked for")
    return problems


def too_few(k, n, rate):
    """Whether K of N would be an accident if RATE held."""
    return n > 0 and stats.binomial_cdf(k, n, rate) < SIGNIFICANCE


# --- printing -----------------------------------------------------------------------------------------------------

def share(k, n):
    return f"{k}/{n} {k / n * 100:.1f} %" if n else "0/0"


def rates(column, kinds):
    """The lines of one column of the campaign, which is all there is of a plain run."""
    picked = [column["pooled"][kind] for kind in kinds]
    heads = ["equal sides" if kind == AA else f"+{inject:g} % injected" for kind, inject in kinds.items()]
    columns = (24, *(17 for _ in picked))
    lines = table.row(["", *heads], columns)
    methods = []
    if "campaign" in column:
        methods = [(f"{name}, {how}", lambda p, n=name, h=how: share(p["peers"][n][h], p["measured"]))
                   for name in peers.METHODS for how in ("blocks", "interleaved")]
    for label, pick in (
            ("duets finished", lambda p: str(p["duets"])),
            ("false verdicts", lambda p: share(p["false"], p["duets"]) if p["false"] is not None else ""),
            ("found", lambda p: share(p["found"], p["judged"]) if p["found"] is not None else ""),
            *([("found, on two CPUs", lambda p: share(p["found_apart"], p["apart"]) if p["found"] is not None else "")]
              if any(p["apart"] for p in picked) else []),
            *((verdict, lambda p, v=verdict: share(p["verdicts"][v], p["duets"])) for verdict in stats.VERDICTS),
            ("interval holds 0", lambda p: share(p["holds_zero"], p["measured"]) if p["found"] is None else ""),
            ("unmeasured", lambda p: str(p["unmeasured"])),
            ("pairs, median", lambda p: "" if p["pairs_median"] is None else f"{p['pairs_median']:g}"),
            ("half-width, median", lambda p: "" if p["half_width_median"] is None
             else f"{p['half_width_median'] * 100:.2f} %"), *methods):
        lines += table.row([label, *map(pick, picked)], columns)
    return lines


def change(value):
    return "too few pairs" if value is None else f"+{value * 100:.2f} %"


def smallest_lines(column):
    lines = ["", f"smallest change that is found {POWER * 100:g} times of 100:"]
    columns = (12, 14, 20, 22)
    lines += table.row(["", "pairs", "shifted or more", "regression"], columns)
    for entry in column["smallest"]:
        if not entry["duets"]:
            continue
        lines += table.wrapped(f"  {entry['case'].replace('/', ' ')}", "    ")
        for at in ("at_pairs", "at_most"):
            one = entry[at]
            lines += table.row(["", str(one["pairs"]), change(one["told"]), change(one["regression"])], columns)
    return lines


def render(report):
    """The table, as lines of at most 80 columns."""
    kinds = report["kinds"]
    lines = table.both_ends(f"skbench aa: {table.plural(report['duets_asked'], 'duet')} of each kind over "
                            f"{table.plural(len(report['cases']), 'case')}", f"seed {report['seed']}")
    lines += table.wrapped(f"margin {report['margin'] * 100:g} %, half-width {report['target_half_width'] * 100:g} % or "
                           f"{report['max_pairs']} pairs   {report['elapsed_s']:.0f} s")
    if report["resumed"]:
        lines += table.wrapped(f"{table.plural(report['resumed'], 'duet')} taken from {report['state']}")
    for column in report["columns"]:
        if len(report["columns"]) > 1:
            lines += [""] + table.wrapped("with one CPU kept busy" if column["loaded"] else
                                          "as the machine was" + (f": {report['busy']}" if report["busy"] else ""))
        lines += [""] + rates(column, kinds) + smallest_lines(column)
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


# --- the command --------------------------------------------------------------------------------------------------

def chosen_cases(args, filter_):
    if args.campaign:
        names = SENTINELS
    else:
        names = [run.Trim.case(run.DEFAULT_ERA, run.Trim.baseline, cell) for cell in run.Trim.grid(None, 1, True)]
    cases = [case for case in names if filter_.search(case)]
    if not cases:
        raise UserError(f"no case of aa matches --filter {args.filter}")
    return cases


def main(args):
    if args.contended:
        for name in ("duets", "inject", "budget", "campaign", "state"):
            if getattr(args, name):
                raise UserError(f"--contended has its own plan: --{name} does not go with it")
        return aacontend.main(args, busy_cpu)
    filter_ = run.expression(args.filter)
    count = run.integer(args.duets, "--duets", 1, 100000) if args.duets is not None else \
        CAMPAIGN_DUETS if args.campaign else DUETS
    inject = INJECT_PERCENT if args.inject is None else percent(args.inject)
    budget = run.seconds(args.budget) if args.budget is not None else None if args.campaign else BUDGET_S
    seed, cpus = run.seed_from(args.seed), run.cpus_from(args.cpus)
    cases = chosen_cases(args, filter_)
    directory = run.bench_directory()
    binaries = {case: run.need(directory, f"bench_{case.split('/')[0]}") for case in cases}
    kinds = {AA: 0, INJECTED: inject, **({SMALL: SMALL_PERCENT} if args.campaign else {})}
    context = binaries[cases[0]].context()
    fp8 = fingerprint.take(context)["fp8"]
    path = args.state or (tree.repo_root() / "out" / fp8 / "campaign.jsonl" if args.campaign else None)
    state = State(path, {"schema": SCHEMA, "fp8": fp8, "cases": cases, "kinds": kinds, "campaign": args.campaign})
    loads = (None, (cpus or fingerprint.allowed_cpus())[-1]) if args.campaign else (None,)
    progress = run.Progress("aa")
    whole = len(kinds) * len(loads) * count
    duets = Duets(binaries, count, kinds, cpus, seed, budget, loads, state,
                  lambda d: progress.say(f"{len(d.done)} of {whole} duets, {d.elapsed_s:.0f} s"))
    load = fingerprint.Load()
    with run.stoppable():
        duets.run()
    progress.clear()
    with run.uninterrupted():
        return deliver(args, duets, fingerprint.take(context, load, seed))


def deliver(args, duets, taken):
    columns = []
    for loaded in sorted({load is not None for load in duets.loads}):
        mine = [entry for entry in duets.done if entry["loaded"] == loaded]
        columns.append({"loaded": loaded, "pooled": {kind: pooled(mine, kind, share_) for kind, share_ in
                                                     duets.kinds.items()},
                        "smallest": [smallest(mine, case) for case in duets.cases],
                        **({"campaign": True} if args.campaign else {})})
    whole = {kind: pooled(duets.done, kind, share_) for kind, share_ in duets.kinds.items()}
    problems = judge(whole, columns[0]["pooled"], duets.kinds)
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
        "inject_percent": duets.kinds[INJECTED], "kinds": duets.kinds, "margin": stats.MARGIN, "target_half_width": stats.HALF_WIDTH,
        "max_pairs": duet.MAX_PAIRS, "elapsed_s": round(duets.elapsed_s, 3), "cases": duets.cases,
        "refused": duets.refusals, "partial": duets.interrupted or duets.failure is not None, "cut": duets.cut,
        "resumed": duets.resumed, "state": None if duets.state.path is None else str(duets.state.path),
        "busy": others_share(taken), "power": POWER, "pooled": whole, "columns": columns, "problems": problems,
        "duets": duets.done, "exit_status": status}
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


def others_share(taken):
    """What others used of the CPUs while it ran, in words; our own load is counted with it."""
    share_ = taken["condition"].get("other_cpu_share")
    return None if share_ is None else f"others used {share_ * 100:.0f} % of the CPUs, our load included"
