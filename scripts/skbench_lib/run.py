# SPDX-License-Identifier: MIT
"""`skbench run`: builds, measures, prints the table, writes the result file."""

import contextlib
import datetime
import os
import random
import re
import signal
import socket
import sys
from pathlib import Path

from . import (benchbin, build, counters, defer, duet, files, fingerprint, icounts, placement, results, scaling, scaling_table, stats,
               stored, sweep, table)
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, WORSE, UserError
from .mptcp_experiment import SIZES, Mptcp
from .options import expression, integer, one_of, seconds

SUITES = ("headline", "quick", "full")
ERAS = ("3.4", "6.1", "6.12")
DEFAULT_ERA = "6.12"
BUDGET_S = {"headline": 150.0, "quick": 60.0, "full": 840.0}  # full: 15 minutes with all that comes before and after
ONLY_FULL = ("contend",)  # families that the minute of the suite quick has no time for, unless they are asked for
SURVEY = {"quick": {"wanted": 15, "batches": 40}, "full": {"wanted": 25, "batches": None}}
HEADLINE_MAX_PAIRS = 400
BENCH_DIR_VARIABLE = "SKBENCH_BENCH_DIR"  # where the bench binaries are, instead of a build of this tree
VALUE = ("33rd percentile over a process's batches of the roles' busy time, ns an operation; of a pipeline the CPU time "
         "of the whole run, or the wall time of all batches whose roles ran together")
PATH_PROCESSES = 9
PATH_SECONDS = 15.0


class Trim:
    """The trim experiment in its forced form: the life of one skb with partial ACKs while its clone lives."""

    id = "trim"
    form = "forced"
    binary = "bench_tcp"
    claim = "~3 % less CPU at 4660 Mbit/s; 16+16 page atomics per expansion"
    source = "tcp: avoid expensive pskb_expand_head() calls, patch posted in 2012"
    baseline = "eager"
    variants = ("offset_ack",)
    eras = ERAS
    frags = (2, 16, 17)
    allocators = ("slub", "jemalloc")
    metric = "busy_ns_per_64KB"
    unit = "ns/64KB"
    better = "lower"

    @staticmethod
    def case(era, variant, parameters):
        return (f"tcp/trim/form:forced/era:{era}/variant:{variant}/frags:{parameters['frags']}/partial:1/step:1/"
                f"clone:alive/complete:{parameters['complete']}/alloc:{parameters['alloc']}")

    @classmethod
    def grid(cls, frags, cpus, everything):
        """Parameters of the cells. CPUS: how many there are. EVERYTHING: not only what the default run has time for."""
        cells = [{"form": cls.form, "frags": count, "complete": complete, "alloc": alloc}
                 for complete in ("same", "other")[:cpus] for alloc in cls.allocators
                 for count in (cls.frags if frags is None else (frags,))]
        if everything:
            return cells
        return [cell for cell in cells if cell["complete"] == "same" and
                (cell["alloc"], cell["frags"]) in (("slub", 2), ("slub", 16), ("jemalloc", 16))]

    @staticmethod
    def wanted(variant, parameters, everything):
        """Whether VARIANT is compared at PARAMETERS."""
        return True

    @staticmethod
    def most_pairs(parameters, everything):
        """Pairs that a cell gets at most; None: as many as time allows."""
        return None


class TrimLink(Trim):
    """The same over a link in virtual time: whether an ACK beats the completion follows from the NIC's timing.

    The cost is that of the whole path with the copy from user memory that lies in the cache; PATHS are the same path
    with other copies, which the saving is set against.
    """

    form = "link"
    metric = "cpu_ns_per_64KB"
    rtt_us = 50
    points = ("patch", "gen1x4", "gen2x8", "fifo_full")
    paths = ("memory", "none")

    @classmethod
    def case(cls, era, variant, parameters, source=None):
        return (f"tcp/trim/form:link/era:{era}/variant:{variant}/point:{parameters['point']}/rtt:{cls.rtt_us}/"
                f"ack:every/k:2/frags:{parameters['frags']}/from:{source or parameters['from']}/reclaim:0/jitter:0/"
                f"alloc:{parameters['alloc']}")

    @classmethod
    def grid(cls, frags, cpus, everything):
        return [{"form": cls.form, "point": point, "from": source, "frags": 16 if frags is None else frags,
                 "complete": "same", "alloc": "slub"}
                for source in ("cache", *(cls.paths if everything else ())) for point in cls.points]


EXPERIMENTS = (Trim, TrimLink, defer.Defer, Mptcp)


# --- the command line ---------------------------------------------------------------------------------------------

def add_parser(subparsers):
    parser = subparsers.add_parser(
        "run", help="measure, print the table, write the result file",
        description="Builds, measures, prints the table and writes the result to out/<machine>/<time>-<commit>.json.")
    parser.add_argument("--suite", default="headline", metavar="NAME",
                        help="headline: the published changes, before and after (default); quick: every case of one "
                             "or two CPUs' own, one minute; full: every case, contention too, 15 minutes")
    parser.add_argument("--filter", metavar="RE", help="only cases whose name matches this regular expression")
    parser.add_argument("--era", metavar="E", help=f"kernel whose rules hold: {', '.join(ERAS)} "
                                                   f"(headline: {DEFAULT_ERA})")
    parser.add_argument("--variant", metavar="V", help="only this variant, against its baseline")
    parser.add_argument("--frags", metavar="N", help="only this number of fragments")
    parser.add_argument("--sweep", metavar="KEY=A:B", help="instead of the default values, every one from A to B of this "
                                                           "key, on each selected operation that has it; also written "
                                                           "as CSV beside the result (with --suite full: more samples)")
    parser.add_argument("--oversubscribe", action="store_true",
                        help="cases with more roles than CPUs, too: they take turns, the values are marked and judge nothing "
                             "(quick, full)")
    parser.add_argument("--cpus", metavar="LIST", help="CPUs for the roles, as in 0,1 or 2-3")
    parser.add_argument("--placement", metavar="POLICY",
                        help="instead of --cpus, one CPU for all roles, in whose cases they run by turns (same-core), or CPUs whose "
                             "roles share a core (smt), a last-level cache (same-llc), or neither of them (cross-llc), or not "
                             "even a node (cross-node); memory is local to each")
    parser.add_argument("--nodes", metavar="LIST",
                        help="memory node of each role, as in 0,1; one is every role's (0). Or where each object lies, as in "
                             "shells=remote,pages=interleave: shells, heads, pages, pool, socket; local to the role's CPU "
                             "(default), remote, interleave, or a node's number")
    parser.add_argument("--huge", action="store_true", help="page memory in huge pages, or not at all (default: if enough are free)")
    parser.add_argument("--budget", metavar="SECONDS", help="time for measuring (150; quick 60; full 840)")
    parser.add_argument("--seed", metavar="N", help="of the order of pairs and the paddings (default: random)")
    parser.add_argument("--instructions", action="store_true",
                        help="count the instructions of each case with one role, too, about a second each (quick, full)")
    parser.add_argument("--counters", action="store_true", help="after the timing, count events of each case: cycles, misses, "
                                                                "faults, as far as this machine has them")
    parser.add_argument("--out", metavar="FILE", help="the result file (never overwritten)")
    parser.add_argument("--json", metavar="FILE", help="the result again, to another file; - for standard output")
    parser.set_defaults(func=main)


def cpus_from(text, allowed=None, reader=None):
    """The CPUs of a list as in 0,2-3, in the order given; None for None. All must be allowed to this process."""
    if text is None:
        return None
    allowed = fingerprint.allowed_cpus() if allowed is None else allowed
    cpus = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        lo = int(match.group(1)) if match else 0
        hi = int(match.group(2) or lo) if match else -1
        if hi < lo:
            raise UserError(f"--cpus {text}: a list as in 0,2-3 is needed")
        cpus += range(lo, hi + 1)
    wrong = [cpu for cpu in cpus if cpu not in allowed]
    refusal = placement.why_not(wrong[0], allowed, reader or fingerprint.Reader()) if wrong else None
    if refusal:
        raise UserError(f"--cpus {text}: {refusal}", IMPOSSIBLE)
    if wrong or len(set(cpus)) != len(cpus):
        raise UserError(f"--cpus {text}: {f'CPU {wrong[0]} is not' if wrong else 'no CPU may stand twice; all are'} "
                        f"among those allowed here: {fingerprint.cpu_list(allowed)}")
    return cpus


def seed_from(text):
    return random.SystemRandom().randrange(1 << 32) if text is None else integer(text, "--seed", 0, (1 << 64) - 1)


def bench_directory(preset="release"):
    """The directory of PRESET's bench binaries, built if need be."""
    given = os.environ.get(BENCH_DIR_VARIABLE)
    if given:
        if not Path(given).is_dir():
            raise UserError(f"{BENCH_DIR_VARIABLE}={given}: there is no such directory")
        return Path(given)
    return build.ensure_built(preset) / "benches"


def bench_binaries(directory):
    """Every plain bench binary there, by name."""
    found = {path.name: benchbin.BenchBinary(path) for path in sorted(directory.glob("bench_*"))
             if re.fullmatch(r"bench_[a-z0-9]+", path.name) and os.access(path, os.X_OK) and path.is_file()}
    if not found:
        raise UserError(f"{directory}: there is no bench binary", IMPOSSIBLE)
    return found


# --- progress and interrupts --------------------------------------------------------------------------------------

class Progress:
    """One line on a terminal, written over and over; nothing in a pipe."""

    def __init__(self, what):
        self.what = what
        self.shown = 0
        self.enabled = sys.stderr.isatty()

    def say(self, text):
        if self.enabled:
            line = f"{self.what}: {text}"[:table.WIDTH - 1]
            sys.stderr.write("\r" + line.ljust(self.shown))
            sys.stderr.flush()
            self.shown = len(line)

    def clear(self):
        if self.shown:
            sys.stderr.write("\r" + " " * self.shown + "\r")
            sys.stderr.flush()
            self.shown = 0

    def turns(self, engine):
        waiting = sum(cell.stopped is None for cell in engine.cells)
        processes = sum(cell.processes for cell in engine.cells)
        limit = f" of at most {engine.budget_s:.0f}" if engine.budget_s is not None else ""
        self.say(f"{len(engine.cells) - waiting} of {len(engine.cells)} cells done, {processes} processes, "
                 f"{engine.elapsed_s:.0f}{limit} s")


def _interrupt(number, frame):
    raise KeyboardInterrupt


@contextlib.contextmanager
def stoppable():
    """SIGTERM and SIGHUP end a measurement as Ctrl-C does: what was measured is written."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
              if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def uninterrupted():
    """While the result is written, which is short, nothing stops us."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- plans --------------------------------------------------------------------------------------------------------

class Request:
    """The command line, checked as far as it can be without a binary."""

    def __init__(self, args):
        self.suite = one_of(args.suite, "--suite", SUITES)
        self.sweep = None if args.sweep is None else sweep.Sweep(args.sweep)
        if self.sweep and self.suite == "headline":
            self.suite = "quick"
        self.filter = expression(args.filter)
        self.filter_text = args.filter
        self.era = None if args.era is None else one_of(args.era, "--era", ERAS)
        variants = sorted({v for e in EXPERIMENTS for v in e.variants})
        self.variant = None if args.variant is None else one_of(args.variant, "--variant", variants)
        self.frags = None if args.frags is None else integer(args.frags, "--frags", 1)
        self.cpus = cpus_from(args.cpus)
        self.placement = placement.policy_from(args.placement)
        self.nodes = placement.nodes_from(args.nodes)
        self.huge = args.huge
        if self.placement and self.cpus is not None:
            raise UserError("--placement chooses the CPUs: give it or --cpus")
        self.budget_s = BUDGET_S[self.suite] if args.budget is None else seconds(args.budget)
        self.seed = seed_from(args.seed)
        self.instructions = args.instructions
        if self.instructions and self.suite == "headline":
            raise UserError("--instructions: the suites quick and full count them")
        self.oversubscribe = args.oversubscribe
        if self.oversubscribe and self.suite == "headline":
            raise UserError("--oversubscribe: the suites quick and full take it")
        self.out, self.json = args.out, args.json
        self.counters = args.counters
        if self.out is not None:
            files.refuse_existing(self.out)
            if self.sweep:
                files.refuse_existing(Path(self.out).with_suffix(".csv"))
            if self.json is not None and os.path.abspath(self.out) == os.path.abspath(self.json):
                raise UserError(f"--json {self.json}: that is --out already")

    def check_against(self, context):
        """Frags, against what the binary was built for."""
        most = context.get("max_skb_frags")
        if self.frags is not None and most is not None and self.frags > most:
            raise UserError(f"--frags {self.frags}: 1 to {most} fit, MAX_SKB_FRAGS of this build "
                            f"(cmake -DSKB_MAX_FRAGS=N raises it, to 45)")

    def check_key(self, operations):
        """Frags, against what the operations themselves allow."""
        if self.frags is None:
            return
        allowed = []
        for operation in operations:
            for key in operation.get("keys", []):
                if key["name"] == "frags" and "words" in key:
                    allowed += [word for word in key["words"] if word not in allowed]
                elif key["name"] == "frags":
                    allowed += [str(n) for n in range(key["lo"], key["hi"] + 1) if str(n) not in allowed]
        if str(self.frags) not in allowed:
            raise UserError(f"--frags {self.frags}: {', '.join(allowed) or 'no number'} is what there is a case for")

    def empty(self):
        given = [f"--filter {self.filter_text}" if self.filter_text else "",
                 f"--era {self.era}" if self.era else "", f"--variant {self.variant}" if self.variant else "",
                 f"--frags {self.frags}" if self.frags is not None else "",
                 f"--sweep {self.sweep.text}" if self.sweep else ""]
        return UserError(f"no case of suite {self.suite} matches {' '.join(filter(None, given)) or 'anything'}")


class HeadlineCell:
    """A cell of an experiment, and the duet that measures it."""

    def __init__(self, experiment, era, variant, parameters, most_pairs):
        self.experiment, self.era, self.variant, self.parameters = experiment, era, variant, parameters
        self.most_pairs = most_pairs or HEADLINE_MAX_PAIRS
        self.names = {"baseline": experiment.case(era, experiment.baseline, parameters),
                      "variant": experiment.case(era, variant, parameters)}
        self.key = re.sub(r"/variant:[^/]*", "", self.names["baseline"])
        self.cell = None


def headline_cells(request, cpus):
    """The cells that the request selects. CPUS: how many CPUs there are to use."""
    era = request.era or DEFAULT_ERA
    chosen = request.frags is not None or bool(request.filter_text)
    cells = [HeadlineCell(experiment, era, variant, parameters, experiment.most_pairs(parameters, chosen))
             for experiment in EXPERIMENTS if era in experiment.eras
             for variant in experiment.variants if request.variant in (None, variant)
             for parameters in experiment.grid(request.frags, cpus, chosen)
             if experiment.wanted(variant, parameters, chosen or request.variant == variant)]
    cells = [cell for cell in cells if any(request.filter.search(name) for name in cell.names.values())]
    if not cells:
        raise request.empty()
    return cells


def survey_cells(request, binaries):
    """Every case of the binaries' default grids, or of the sweep, that the request selects."""
    cells = []
    asked = request.suite == "full" or request.sweep or request.filter_text
    for binary in binaries.values():
        for operation in binary.operations():
            if operation["name"].split("/")[0] in ONLY_FULL and not asked:
                continue
            selected = [case for case in operation["cases"] if request.filter.search(case)]
            if request.sweep:
                selected = request.sweep.cases({**operation, "cases": selected}) if selected else []
            elif request.suite == "full":
                selected = [case for case in sweep.product(operation["cases"], SIZES.get(operation["name"], {}))
                            if request.filter.search(case)]
            for case in selected:
                keys = benchbin.split_name(case)[1]
                wanted = (("era", request.era), ("variant", request.variant), ("frags", request.frags))
                if all(value is None or keys.get(key) == str(value) for key, value in wanted):
                    cells.append(duet.SurveyCell(duet.Side(binary, case, "single"), **SURVEY[request.suite]))
    if not cells:
        raise request.empty()
    return cells


# --- the document -------------------------------------------------------------------------------------------------

class Rows:
    """Collects the rows of `benchmarks`: one for each process."""

    def __init__(self):
        self.rows = []
        self.families = {}
        self.instances = {}

    def add(self, case, cell, side, pair, first, pad, answer):
        operation = benchbin.split_name(case)[0]
        family = self.families.setdefault(operation, len(self.families))
        instances = self.instances.setdefault(operation, {})
        instance = instances.setdefault(case, len(instances))
        ours = {"cell": cell.key, "side": side, "pair": pair, "first": first, "pad": pad,
                "inject": answer.get("inject") or 0, "n": answer["n"], "batches": answer["batches"],
                "kept": answer["kept"], "value": benchbin.value_of(answer)}
        for key in ("bytes_per_op", "ops", "wall", "busy", "cpu", "whole", "kept_run", "report", "roles", "allocator", "backing", "bound", "placed", "cpus"):
            if key in answer:
                ours[key] = answer[key]
        self.rows.append({
            "name": case, "family_index": family, "per_family_instance_index": instance, "run_name": case,
            "run_type": "iteration", "repetitions": 0, "repetition_index": 0,
            "threads": max(1, len(answer.get("roles") or [])), "iterations": answer["n"] * answer["kept"],
            "real_time": answer["wall"]["p33"], "cpu_time": answer["cpu"]["p33"], "time_unit": "ns", "skb": ours})

    def finish(self):
        totals = {}
        for entry in self.rows:
            entry["repetition_index"] = totals.setdefault(entry["name"], 0)
            totals[entry["name"]] += 1
        for entry in self.rows:
            entry["repetitions"] = totals[entry["name"]]
        return self.rows


def duet_rows(rows, cell, sides):
    for index, pair in enumerate(cell.pairs):
        for which in (pair.first, "b" if pair.first == "a" else "a"):
            answer, pad = (pair.a, pair.pad_a) if which == "a" else (pair.b, pair.pad_b)
            rows.add(cell.a.case if which == "a" else cell.b.case, cell, sides[which], index, which == pair.first, pad,
                     answer)


def survey_rows(rows, cell):
    if cell.oversubscribed:  # kept as points of scaling, marked; no sample of a time
        return
    for index, (answer, pad) in enumerate(cell.samples):
        rows.add(cell.key, cell, "single", index, True, pad, answer)


def scaled(summary, scale):
    if summary is None:
        return None
    return {key: value if key == "n" or value is None else value * scale for key, value in summary.items()}


def ratio_fields(cell):
    """ratio, lo, hi and pairs of a duet's cell; null where there is none."""
    logs = cell.log_ratios()
    interval = cell.interval()
    return {"ratio": 1 + stats.relative(stats.median(logs)) if logs else None,
            "lo": 1 + stats.relative(interval[0]) if interval else None,
            "hi": 1 + stats.relative(interval[1]) if interval else None, "pairs": len(logs)}


def experiment_entry(planned):
    """The object of context.skbench.experiments for one cell."""
    cell, experiment = planned.cell, planned.experiment
    # Both sides stand for the same payload; without a sample there is nothing to scale.
    scale = benchbin.per_64kb(cell.pairs[0].a, 1.0) if cell.pairs else 1.0
    if scale is None:
        raise benchbin.BenchFailed(f"{planned.key}: the answer has no bytes_per_op, so no cost per 64 KB")
    logs = cell.log_ratios()
    return {
        "experiment": experiment.id, "case": planned.key, "parameters": planned.parameters, "cases": planned.names,
        "baseline": experiment.baseline, "variant": planned.variant, "era": planned.era, "metric": experiment.metric,
        "unit": experiment.unit, "better": experiment.better, **ratio_fields(cell),
        "hodges_lehmann": 1 + stats.relative(stats.hodges_lehmann(logs)) if logs else None,
        "verdict": cell.verdict(), "claim": experiment.claim, "claim_source": experiment.source,
        "status": cell.status, "reason": cell.reason, "stopped": cell.stopped, "processes": cell.processes,
        "lost_processes": cell.lost_processes, "margin": cell.margin, "target_half_width": cell.target,
        "baseline_value": scaled(cell.side("a"), scale), "variant_value": scaled(cell.side("b"), scale),
        "difference": scaled(cell.difference(), scale),
        **{f"{side}_least": min(values) * scale if values else None
           for side, values in (("baseline", [pair.value_a for pair in cell.pairs]),
                                ("variant", [pair.value_b for pair in cell.pairs]))},
        "report": defer.medians([pair.a for pair in cell.pairs]),
        "variant_report": defer.medians([pair.b for pair in cell.pairs])}


def case_entry(cell):
    """The object of context.skbench.cases for a case measured by itself."""
    value = cell.samples[0][0].get("value") if cell.samples else None
    metric = {"whole.cpu": "cpu_ns_per_op", "kept_run.wall": "wall_ns_per_op"}.get(value, "busy_ns_per_op")
    return {"case": cell.key, "metric": metric, "unit": "ns", "better": "lower", "status": cell.status,
            "reason": cell.reason, "value": None if cell.oversubscribed else duet.summary(cell.values()), "processes": cell.processes,
            "lost_processes": cell.lost_processes, "wanted": cell.wanted, "stopped": cell.stopped,
            "bytes_per_op": cell.samples[0][0].get("bytes_per_op") if cell.samples else None}


def control_entry(cell):
    held, reason = duet.judge_control(cell)
    return {"case": cell.a.case, "held": held, "reason": reason, **ratio_fields(cell), "margin": cell.margin}


def document(request, engine, context, calibration, rows, executable, load, **parts):
    """The whole result. PARTS: control, experiments, cases, ledger, instructions. conclude() adds the rest."""
    taken = fingerprint.take(context, load, request.seed)
    record, condition = taken["record"], taken["condition"]
    reason = None
    if engine.interrupted:
        reason = "interrupted"
    elif engine.failure:
        reason = str(engine.failure)
    now = datetime.datetime.now(datetime.timezone.utc)
    plan = [{"cell": cell.key, "n": cell.n, "batches": cell.batches, "cpus": request.cpus}
            for cell in engine.cells if cell.n is not None]
    ours = {
        "schema": results.SCHEMA_VERSION, "suite": request.suite, "partial": reason is not None,
        "partial_reason": reason, "revision": {"commit": record["commit"], "dirty": record["dirty"]},
        "fingerprint": taken, "build": context, "calibration": calibration, "control": parts["control"],
        "plan": {"seed": request.seed, "budget_s": request.budget_s, "elapsed_s": round(engine.elapsed_s, 3),
                 "value": VALUE, "cases": plan, **placement.plan(request.cpus)},
        "baseline": None, "experiments": parts["experiments"], "cases": parts["cases"],
        "ledger": parts["ledger"], "instructions": parts.get("instructions"), "exit_status": OK}
    if parts.get("scaling"):
        ours["scaling"] = parts["scaling"]
    return {
        "context": {
            "date": now.strftime("%Y-%m-%dT%H:%M:%S+00:00"), "host_name": socket.gethostname(),
            "executable": executable, "num_cpus": os.cpu_count() or 1, "mhz_per_cpu": record["mhz"] or 0,
            "cpu_scaling_enabled": condition["governor"] not in (None, "performance"),
            "caches": fingerprint.caches(), "load_avg": condition["load_avg"] or [],
            "library_build_type": "release" if context.get("preset", "").startswith("release") else "debug",
            "json_schema_version": 1, "skbench": ours},
        "benchmarks": rows.finish()}


# --- the run ------------------------------------------------------------------------------------------------------

def exit_status(engine, cells, control, worse):
    """Variant against variant never sets it; WORSE says that the stored baseline does."""
    if engine.interrupted:
        return INTERRUPTED
    if engine.failure:
        return FAILED
    if worse:
        return WORSE
    if cells and all(cell.impossible for cell in cells):
        return IMPOSSIBLE
    if control is not None and not control["held"]:
        return INCONCLUSIVE
    if any((cell.status != duet.OK or nothing(cell)) and not left_out(cell) for cell in cells):
        return INCONCLUSIVE
    return OK


def left_out(cell):
    """A case measured by itself that this machine cannot run, or whose roles were told to take turns: listed, no more."""
    return isinstance(cell, duet.SurveyCell) and (cell.impossible or cell.oversubscribed)


def conclude(result, baselines, engine, cells, control=None):
    """Puts into RESULT what the stored baselines say of it, and the exit status."""
    ours = result["context"]["skbench"]
    ours["baseline"], worse = stored.against(baselines, result)
    ours["exit_status"] = exit_status(engine, cells, control, worse)
    return engine, result


def nothing(cell):
    return not (cell.pairs if isinstance(cell, duet.Cell) else cell.samples)


def main(args):
    request = Request(args)
    directory = bench_directory("frags45" if request.sweep and request.sweep.beyond_default() else "release")
    binaries = bench_binaries(directory)
    prof = build.ensure_prof() if request.counters else None
    placement.resolve(request, directory / "skb_place", next(iter(binaries.values())))
    with stoppable():
        if request.suite == "headline":
            measured = run_headline(request, directory, binaries)
        else:
            measured = run_survey(request, binaries)
        if prof:
            add_counters(request, binaries, prof, *measured)
        with uninterrupted():
            return deliver(request, *measured)


def add_counters(request, binaries, prof, engine, result):
    """Counts events of each case that has a time, and puts them into RESULT."""
    if engine.interrupted or engine.failure:
        return
    ours = result["context"]["skbench"]
    sides = {}
    for cell in engine.cells:
        for side in (cell.a, cell.b) if isinstance(cell, duet.Cell) else (cell.side,):
            sides[side.case] = side.binary
    for name in sorted({row["name"] for row in result["benchmarks"]} - set(sides)):
        sides[name] = binaries[f"bench_{name.split('/')[0]}"]
    timed = {row["name"] for row in result["benchmarks"]}
    ours["counters"] = counters.take({name: sides[name] for name in sorted(timed)}, prof, request.cpus,
                                     Progress(request.suite))


def calibrate_machine(binary, request):
    """context.skbench.calibration: medians where the binary gives quantiles, null with a reason where it gives none."""
    try:
        answer = binary.machine(request.cpus)
    except benchbin.NotPossible as error:
        return {"core_to_core_ns": None, "copy_gbs": None, "reason": str(error), "machine": None}
    speeds = {}
    for key in ("cache", "memory"):
        quantiles = answer.get(f"copy_{key}_gb_per_s")
        speeds[key] = quantiles["p50"] if quantiles else None
    reasons = [str(value) for key, value in answer.items() if key.endswith("_reason")]
    return {"core_to_core_ns": answer.get("core_to_core_ns"), "copy_gbs": speeds,
            "reason": "; ".join(reasons) or None, "machine": answer}


def need(directory, name):
    path = directory / name
    if not path.is_file():
        raise UserError(f"{path} is missing: build the tree again", IMPOSSIBLE)
    return benchbin.BenchBinary(path)


def run_headline(request, directory, binaries):
    cpus = len(request.cpus or fingerprint.allowed_cpus())
    planned = headline_cells(request, cpus)
    names = sorted({entry.experiment.binary for entry in planned})
    plain = {name: need(directory, name) for name in names}
    traced = {name: need(directory, f"{name}_traced") for name in names}
    context = plain[names[0]].context()
    request.check_against(context)
    if request.frags is not None:
        request.check_key([op for name in names for op in plain[name].operations()
                           if any(op["name"] == benchbin.split_name(entry.key)[0] for entry in planned)])
    baselines = stored.baselines(fingerprint.take(context)["fp8"])

    progress = Progress("headline")
    calibration = calibrate_machine(plain[names[0]], request)
    ledger = {}
    for number, entry in enumerate(planned, 1):
        progress.say(f"ledger and calibration, cell {number} of {len(planned)}")
        binary = plain[entry.experiment.binary]
        entry.cell = duet.Cell(entry.key, duet.Side(binary, entry.names["baseline"], entry.experiment.baseline),
                               duet.Side(binary, entry.names["variant"], entry.variant), None,
                               margin=stats.HEADLINE_MARGIN, target=stats.HEADLINE_HALF_WIDTH, strict=True,
                               max_pairs=entry.most_pairs)
        try:
            for name in entry.names.values():
                if name not in ledger:
                    ledger[name] = traced[entry.experiment.binary].ledger(name)
            entry.cell.n = binary.calibrate(entry.names["baseline"], request.cpus)
        except benchbin.NotPossible as error:
            entry.cell.refuse(error)
    ledger = [{"case": name, "rows": rows} for name, rows in ledger.items()]

    cells = [entry.cell for entry in planned]
    able = [entry for entry in planned if not entry.cell.impossible]
    control_cell = None
    if able:
        sentinel = able[0]
        for entry in able:
            if entry.parameters.get("frags") == 16:
                sentinel = entry
                break
        side = sentinel.cell.a
        control_cell = duet.Cell("control", side, side, sentinel.cell.n, margin=stats.HEADLINE_MARGIN,
                                 target=stats.HEADLINE_HALF_WIDTH, max_pairs=HEADLINE_MAX_PAIRS)
    load = fingerprint.Load()
    engine = duet.Duet(cells + ([control_cell] if control_cell else []), random.Random(request.seed),
                       budget_s=request.budget_s, sampler=duet.process_sampler(request.cpus), progress=progress.turns)
    engine.run()
    paths = path_cells(planned, plain)
    if paths and not engine.interrupted and not engine.failure:
        survey = duet.Survey(paths, random.Random(request.seed),
                             lambda cell: cell.side.binary.calibrate(cell.side.case, request.cpus),
                             budget_s=PATH_SECONDS, sampler=duet.process_sampler(request.cpus), progress=progress.turns)
        survey.run()
        engine.interrupted, engine.failure = survey.interrupted, survey.failure
    progress.clear()

    with uninterrupted():
        rows = Rows()
        for cell in cells:
            duet_rows(rows, cell, {"a": "baseline", "b": "variant"})
        for cell in paths:
            survey_rows(rows, cell)
        if control_cell:
            duet_rows(rows, control_cell, {"a": "control_a", "b": "control_b"})
        control = control_entry(control_cell) if control_cell else None
        result = document(request, engine, context, calibration, rows, names[0], load, control=control,
                          experiments=[experiment_entry(entry) for entry in planned],
                          cases=[case_entry(cell) for cell in paths], ledger=ledger)
        return conclude(result, baselines, engine, cells, control)


def path_cells(planned, binaries):
    """The baseline's path of the link form with other copies than the compared one, measured by themselves."""
    able = [entry for entry in planned if entry.experiment is TrimLink and not entry.cell.impossible]
    if not able:
        return []
    first = able[0]
    return [duet.SurveyCell(duet.Side(binaries[TrimLink.binary], TrimLink.case(
        first.era, TrimLink.baseline, first.parameters, source), "single"), PATH_PROCESSES)
        for source in ("cache", *TrimLink.paths) if source != first.parameters["from"]]


def count_instructions(cells, directory, progress):
    """context.skbench.instructions: what the cases of CELLS take whose roles do not wait for each other."""
    cases = [(cell.key, cell.side.binary) for cell in cells if icounts.countable(cell.key)]
    return icounts.count(cases, directory, lambda name: progress.say(f"instructions of {name}"))


def run_survey(request, binaries):
    first = next(iter(binaries.values()))
    context = first.context()
    request.check_against(context)
    cells = survey_cells(request, binaries)
    progress = Progress(request.suite)
    calibration = calibrate_machine(first, request)
    baselines = stored.baselines(fingerprint.take(context)["fp8"])
    counted = count_instructions(cells, first.path.parent.parent, progress) if request.instructions else None
    load = fingerprint.Load()
    engine = duet.Survey(cells, random.Random(request.seed),
                         lambda cell: cell.side.binary.calibrate(cell.side.case, request.cpus, request.oversubscribe),
                         budget_s=request.budget_s,
                         sampler=duet.process_sampler(request.cpus, request.oversubscribe), progress=progress.turns)
    engine.run()
    progress.clear()
    with uninterrupted():
        rows = Rows()
        for cell in cells:
            survey_rows(rows, cell)
        result = document(request, engine, context, calibration, rows, ",".join(binaries), load, control=None,
                          experiments=[], cases=[case_entry(cell) for cell in cells], ledger=[], instructions=counted,
                          scaling=scaling.entries(cells, request.seed) if request.sweep and
                          request.sweep.key == scaling.KEY else None)
        return conclude(result, baselines, engine, cells)


def deliver(request, engine, result):
    """Prints the table, writes the files; returns the exit status. Without one sample there is nothing to write."""
    ours = result["context"]["skbench"]
    status = ours["exit_status"]
    if engine.failure:
        sys.stderr.write(f"skbench: {engine.failure}\n")
    if not result["benchmarks"] and (engine.interrupted or engine.failure):
        if engine.interrupted:
            sys.stderr.write("skbench: interrupted before the first sample, nothing is written\n")
        return status
    results.check(result)
    out = files.text_stream(request.json)
    out.write("\n".join([*table.render(result), *scaling_table.lines(ours.get("scaling") or []), *counters.lines(ours.get("counters"))]) + "\n")
    if request.json == "-":
        sys.stdout.write(results.text_of(result))
        sys.stdout.flush()
    path = Path(request.out) if request.out else results.default_path(
        ours["fingerprint"]["fp8"], ours["revision"]["commit"])
    results.write(path, result)
    if request.json not in (None, "-"):
        results.write(request.json, result)
    if request.sweep:
        files.write_new(path.with_suffix(".csv"), request.sweep.table(ours["cases"], {
            row["name"]: row["skb"].get("bytes_per_op") for row in result["benchmarks"]}))
    with contextlib.suppress(ValueError):
        path = path.relative_to(Path.cwd())
    lines = table.result_line(path, ours["baseline"])
    if request.sweep:
        lines += table.broken(f"sweep   {path.with_suffix('.csv')}")
    out.write("\n".join([""] + lines) + "\n")
    if engine.interrupted:
        sys.stderr.write("skbench: interrupted, what was measured is written and marked partial\n")
    return status
