# SPDX-License-Identifier: MIT
"""`skbench duet BASE_REV [NEW_REV]`: two revisions, built and run as pairs of processes.

The ledger is counted first, and any difference fails. A case whose program is the same code and counts the same is not
timed. The others are timed as duets with an A/A control beside them; what regressed is measured once more with fresh
processes, and fails only if it regresses again at 0.05 over the number of all timed cases.
"""

import contextlib
import math
import pathlib
import random
import sys
import tempfile

from . import (benchbin, children, codehash, compare, compare_report, duet, fingerprint, icounts, layouts, run, sides,
               stats, table, tree, worktrees)
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, UserError

SCHEMA = "skbench-duet-1"
BUDGET_S = 180.0
SENTINELS = 3


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "duet", help="two revisions, built and run in pairs",
        description="Builds BASE_REV and NEW_REV (default: the working tree) and compares their cases in pairs of "
                    "processes; what regressed is measured a second time.")
    parser.add_argument("base", metavar="BASE_REV", help="the revision to compare with: a tag, a branch, a commit")
    parser.add_argument("new", metavar="NEW_REV", nargs="?", help="the revision to judge (default: the working tree)")
    parser.add_argument("--filter", metavar="RE", help="only cases whose name matches this regular expression")
    parser.add_argument("--budget", metavar="SECONDS",
                        help=f"time for measuring, and as long again at most for the confirming run ({BUDGET_S:g})")
    parser.add_argument("--parallel", action="store_true",
                        help="run both sides of a pair at the same time on two CPUs, which they swap from pair to pair")
    parser.add_argument("--layouts", metavar="K",
                        help=f"link each side K times with its objects in random order, so that where code lies is part "
                             f"of the noise (at least {stats.MIN_PAIRS})")
    parser.add_argument("--instructions", action="store_true",
                        help="count the instructions of each case with one role, too, about a second each; more fail")
    parser.add_argument("--cpus", metavar="LIST", help="CPUs for the roles, as in 0,1 or 2-3")
    parser.add_argument("--seed", metavar="N", help="of the order of pairs and the paddings (default: random)")
    compare.add_output(parser)
    parser.set_defaults(func=main)


class ConfirmCell(duet.Cell):
    """A cell that is narrow enough only at the confidence of a whole family."""

    confidence = stats.CONFIDENCE

    def half_width(self):
        return stats.half_width(self.interval(self.confidence))


class LaidOut(duet.Side):
    """A side with several links of its program; pair i runs link i, OFFSET further on, round and round."""

    def __init__(self, binaries, case, label, offset=0):
        super().__init__(binaries[0], case, label)
        self.binaries, self.offset = binaries, offset

    def binary_of(self, pair):
        return self.binaries[(pair + self.offset) % len(self.binaries)]


class LayoutCell(ConfirmCell):
    """A cell of such sides. Pairs of the same two links share what their layouts do, so that they are one sample: the
    median of their log ratios."""

    def __init__(self, key, a, b, n, **how):
        super().__init__(key, a, b, n, **how)
        self.layouts = len(a.binaries)

    def log_ratios(self):
        groups = [[pair.log_ratio for pair in self.pairs[index::self.layouts]] for index in range(self.layouts)]
        return [stats.median(group) for group in groups if group]


class ParallelDuet(duet.Duet):
    """Both sides of a pair run at once, each on a CPU of its own; the CPUs are swapped from pair to pair."""

    def __init__(self, cells, rng, cpus, **how):
        super().__init__(cells, rng, **how)
        self.two = list(cpus[:2])
        self.swapped = False

    def _turn(self, cell):
        first = "a" if self.rng.random() < 0.5 else "b"
        order = (first, "b" if first == "a" else "a")
        cpus = dict(zip("ab", reversed(self.two) if self.swapped else self.two))
        self.swapped = not self.swapped
        pads = {which: self.rng.randrange(benchbin.PAD_LIMIT) for which in "ab"}

        def one(which):
            side = cell.a if which == "a" else cell.b
            try:
                return side.binary_of(len(cell.pairs)).sample(side.case, cell.n, pads[which], batches=cell.batches, cpus=[cpus[which]],
                                          inject=side.inject)
            except (benchbin.Unmeasured, benchbin.NotPossible) as error:
                return error

        answers = dict(zip(order, children.each(one, order)))
        cell.processes += 2
        for answer in answers.values():
            if isinstance(answer, benchbin.NotPossible):
                cell.refuse(answer)
                return
        lost = [answer for answer in answers.values() if isinstance(answer, benchbin.Unmeasured)]
        if lost:
            cell.lost_processes += len(lost)
            cell.last_loss = str(lost[0])
            cell.lost_in_row += 1
            cell.judge_losses()
            return
        cell.lost_in_row = 0
        cell.pairs.append(duet.Pair(first, answers, pads))
        if cell.looks() and cell.half_width() <= stats.log_margin(cell.target):
            cell.stopped = "width"
        elif len(cell.pairs) >= cell.max_pairs:
            cell.stopped = "pairs"
        cell.judge_losses()


class Comparison:
    """Two built revisions and what has been measured of them."""

    def __init__(self, base, new, request):
        self.base, self.new, self.request = base, new, request
        self.binaries = {}   # name: (base's, new's)
        self.pairs = {}      # the case's name now: (its name in base, its name in new, the binary's name)
        self.only = {compare.MISSING: [], compare.NEW: []}
        self.ledgers = sides.Side("base"), sides.Side("new")
        self.counted = {}, {}  # {name: icounts.Set} of both
        self.links = {}  # name of a binary: (base's links, new's)
        self.identical = set()
        self.notes = []
        self.refused = {}
        self.cells, self.controls, self.confirming = [], [], {}
        self.interrupted, self.failure = False, None

    def list_cases(self):
        """Pairs the cases of both sides by name, through the list of renamed ones."""
        found = [run.bench_binaries(side.benches) for side in (self.base, self.new)]
        for name in sorted(set(found[0]) | set(found[1])):
            if name not in found[0] or name not in found[1]:
                self.notes.append(f"{name} is only in {'new' if name in found[1] else 'base'}")
        cases = [{case: name for name, binary in binaries.items() for op in binary.operations() for case in op["cases"]}
                 for binaries in found]
        aliases = sides.read_aliases()
        renamed = {new: old for old, new in aliases.items() if old in cases[0] and old not in cases[1]}
        for case, name in cases[1].items():
            old = case if case in cases[0] else renamed.get(case)
            if not self.request.filter.search(case):
                continue
            if old is None or cases[0][old] != name:
                self.only[compare.NEW].append(case)
            else:
                self.pairs[case] = (old, case, name)
        taken = {old for old, _, _ in self.pairs.values()}
        self.only[compare.MISSING] = [case for case in cases[0] if case not in taken and self.request.filter.search(case)]
        names = {name for _, _, name in self.pairs.values()}
        self.binaries = {name: (found[0][name], found[1][name]) for name in sorted(names)}
        if not self.pairs and not any(self.only.values()):
            raise UserError(f"no case matches --filter {self.request.filter_text}" if self.request.filter_text
                            else "the two revisions have no case")

    def count(self, progress):
        """The ledgers of both sides, and the cases that are the same code."""
        same = {}
        for name, (base, new) in self.binaries.items():
            hashes = [codehash.of(binary.path, side.benches.parents[2])
                      for binary, side in ((base, self.base), (new, self.new))]
            same[name] = hashes[0] is not None and hashes[0] == hashes[1]
            contexts = base.context(), new.context()
            differing = [key for key in fingerprint.BUILD_FIELDS if contexts[0].get(key) != contexts[1].get(key)]
            if differing:
                self.notes.append(f"{name}: built with another {', '.join(differing)}")
                same[name] = False
        for number, (case, (old, now, name)) in enumerate(self.pairs.items(), 1):
            progress.say(f"ledger of case {number} of {len(self.pairs)}")
            try:
                for side, wanted, ledger in ((self.base, old, self.ledgers[0]), (self.new, now, self.ledgers[1])):
                    ledger.ledger[case] = run.need(side.benches, f"{name}_traced").ledger(wanted)
            except benchbin.NotPossible as error:
                self.refused[case] = str(error)
                continue
            if same[name] and self.ledgers[0].ledger[case] == self.ledgers[1].ledger[case]:
                self.identical.add(case)

    def count_instructions(self, progress):
        """The instructions of both sides, of what is not the same code and does not wait for another role."""
        cases = [(case, *self.pairs[case]) for case in self.pairs if case not in self.identical and
                 case not in self.refused and icounts.countable(case)]
        for number, side in enumerate((self.base, self.new)):
            wanted = [((old, now)[number], self.binaries[name][number]) for _, old, now, name in cases]
            found = icounts.count(wanted, side.benches.parent,
                                  lambda name: progress.say(f"instructions of {name}"))
            now = {entry[number + 1]: entry[0] for entry in cases}
            for row in found["rows"]:
                row["case"] = now[row["case"]]
            self.counted[number].update(icounts.of_object(found, str(side.benches)))

    def lay_out(self, directory, progress):
        """Links the programs of what is to be timed anew, below DIRECTORY. The sides have seeds of their own, so that
        equal code lies in other places on both."""
        names = {name for case, (_, _, name) in self.pairs.items() if case not in self.identical | set(self.refused)}
        for name in sorted(names):
            self.links[name] = []
            for side, binary, where in zip((self.base, self.new), self.binaries[name], ("base", "new")):
                progress.say(f"{self.request.layouts} links of {name}, {where}")
                paths = layouts.relink(binary.path, side.benches.parent, self.request.layouts,
                                       f"{self.request.seed}/{where}", directory / where)
                self.links[name].append([benchbin.BenchBinary(path) for path in paths])

    def cell(self, case, old, now, name):
        base, new = self.binaries[name]
        if not self.links:
            return duet.Cell(case, duet.Side(base, old, "base"), duet.Side(new, now, "new"), None)
        links = self.links[name]
        return LayoutCell(case, LaidOut(links[0], old, "base"), LaidOut(links[1], now, "new"), None)

    def control(self, cell):
        """The base against itself, and against its next link where there are several."""
        key, a = f"control {cell.key}", cell.a
        if not self.links:
            return duet.Cell(key, a, a, cell.n)
        return LayoutCell(key, a, LaidOut(a.binaries, a.case, "base", 1), cell.n)

    def plan(self, progress):
        """The cells to be timed."""
        for case, (old, now, name) in self.pairs.items():
            if case in self.identical or case in self.refused:
                continue
            progress.say(f"calibration, case {len(self.cells) + 1}")
            cell = self.cell(case, old, now, name)
            try:
                cpus = self.request.cpus
                cell.n = cell.a.binary.calibrate(old, cpus[:1] if self.request.parallel else cpus)
            except benchbin.NotPossible as error:
                self.refused[case] = str(error)
                continue
            self.cells.append(cell)
        plain = [cell for cell in self.cells if not _contended(cell.key)] or self.cells
        step = max(1, len(plain) // SENTINELS)
        self.controls = [self.control(cell) for cell in plain[::step][:SENTINELS]]

    def engine(self, cells, rng, progress):
        how = {"budget_s": self.request.budget_s, "progress": lambda engine: self.watch(engine, progress)}
        if self.request.parallel:
            return ParallelDuet(cells, rng, self.request.cpus, **how)
        return duet.Duet(cells, rng, sampler=duet.process_sampler(self.request.cpus), **how)

    @staticmethod
    def watch(engine, progress):
        """Contended cases need not be known as narrowly; how many roles a case has is seen in its first pair."""
        for cell in engine.cells:
            if len(cell.pairs) == 1 and len(cell.pairs[0].a.get("roles") or []) > 1:
                cell.target = stats.HALF_WIDTH_CONTENDED
        progress.turns(engine)

    def measure(self, progress):
        rng = random.Random(self.request.seed)
        first = self.engine(self.cells + self.controls, rng, progress)
        first.run()
        self.interrupted, self.failure = first.interrupted, first.failure
        suspects = [cell for cell in self.cells if cell.verdict() == stats.REGRESSION]
        if self.interrupted or self.failure or not suspects:
            return
        again = []
        for cell in suspects:
            fresh = (LayoutCell if self.links else ConfirmCell)(cell.key, cell.a, cell.b, cell.n, target=cell.target)
            fresh.confidence = stats.family_confidence(len(self.cells))
            again.append(fresh)
        progress.what = "confirming"
        second = self.engine(again, rng, progress)
        second.run()
        self.interrupted, self.failure = second.interrupted, second.failure
        self.confirming = {cell.key: cell for cell in again}

    # --- the report

    def rows(self):
        found = [compare.row(case, verdict) for verdict, cases in self.only.items() for case in cases]
        found += [compare.row(case, compare.IDENTICAL) for case in self.pairs if case in self.identical]
        found += [compare.row(case, compare.UNMEASURED, f"not possible here: {reason}")
                  for case, reason in self.refused.items()]
        found += [self.cell_row(cell) for cell in self.cells]
        for entry in found:
            old = self.pairs.get(entry["case"], (entry["case"],))[0]
            entry["renamed_from"] = old if old != entry["case"] else None
        return compare.sort(found)

    def cell_row(self, cell):
        described = []
        for which in "ab":
            case = sides.Case(cell.key)
            case.values = [pair.value_a if which == "a" else pair.value_b for pair in cell.pairs]
            described.append(case.describe())
        entry = compare.row(cell.key, cell.verdict(), None, *described)
        entry["pairs"], entry["stopped"] = len(cell.pairs), cell.stopped
        entry["log_ratios"] = cell.log_ratios()
        if cell.status != duet.OK:
            entry["verdict"], entry["reason"] = compare.UNMEASURED, cell.reason
            return entry
        self.fill(entry, cell, stats.CONFIDENCE)
        if entry["lo"] is None:
            entry["reason"] = (f"{table.plural(len(cell.pairs), 'pair')} before the run ended, no interval below "
                               f"{stats.MIN_PAIRS}")
        again = self.confirming.get(cell.key)
        if entry["verdict"] == stats.REGRESSION and again is not None:
            self.confirm(entry, cell, again)
        elif entry["verdict"] == stats.REGRESSION:
            entry["reason"] = "not confirmed: the run ended before its second measurement"
        return entry

    @staticmethod
    def fill(entry, cell, confidence):
        logs, interval = cell.log_ratios(), cell.interval(confidence)
        entry["ratio"] = math.exp(stats.median(logs)) if logs else None
        entry["lo"], entry["hi"] = (math.exp(end) for end in interval) if interval else (None, None)

    def confirm(self, entry, cell, again):
        """Judges a regression by its second measurement, at the confidence of the family."""
        first, fresh = compare_report.change_text(entry), dict(entry)
        verdict = again.verdict(again.confidence)
        self.fill(fresh, again, again.confidence)
        second = compare_report.change_text(fresh) or "no pair"
        entry["confirming"] = {"pairs": len(again.pairs), "verdict": verdict, "confidence": again.confidence,
                               **{key: fresh[key] for key in ("ratio", "lo", "hi")}}
        entry["fails"] = verdict == stats.REGRESSION
        entry["reason"] = f"measured again: {second}, {table.plural(len(again.pairs), 'pair')}"
        if not entry["fails"]:
            entry["verdict"] = stats.INCONCLUSIVE
            entry["reason"] = f"first {first}, " + entry["reason"]

    def report(self, words, seed):
        held = [duet.judge_control(cell) for cell in self.controls]
        control = [{"case": cell.a.case, "held": ok, "reason": reason, **run.ratio_fields(cell)}
                   for cell, (ok, reason) in zip(self.controls, held)]
        failed = [entry for entry in control if not entry["held"]]
        rows = self.rows()
        if failed:
            for entry in rows:
                entry["fails"] = False
        report = {
            "schema": SCHEMA, "command": "duet", "base": self.about(self.base), "new": self.about(self.new),
            "headings": [self.heading(self.base), self.heading(self.new)], "margin": stats.MARGIN,
            "confidence": stats.CONFIDENCE, "seed": seed, "parallel": self.request.parallel,
            "layouts": self.request.layouts,
            "method": "pairs of processes in random order, median log ratio with its sign interval; regressions measured "
                      "twice", "control": control, "differing_identity": [], "identity_values": {}, "forced": False,
            "conditions": {}, "rows": rows, "ratios": [], "ledger": compare.judge_ledger(*self.ledgers),
            "instructions": icounts.judge(*self.counted),
            "partial": self.interrupted or self.failure is not None}
        report["new"]["notes"] += self.notes
        if self.links:
            report["base"]["notes"].append(
                f"code placement is part of the noise: {self.request.layouts} links of each side, objects in random order "
                f"with gaps, seed {seed}; pairs of the same two links are one sample")
        for entry in control:
            figures = compare_report.change_text(entry) if entry["ratio"] else ""
            report["base"]["notes"].append(f"A/A control {'held' if entry['held'] else 'FAILED'}: {figures}"
                                           f"{f' ({reason})' if (reason := entry['reason']) else ''}, {entry['case']}")
        if report["partial"]:
            report["base"]["notes"].append(f"partial: {'interrupted' if self.interrupted else self.failure}")
        compare.finish(report, words)
        status = report["exit_status"]
        if self.interrupted:
            status, report["decided_by"] = INTERRUPTED, "interrupted"
        elif self.failure:
            status, report["decided_by"] = FAILED, str(self.failure)
        elif status == OK and failed and "inconclusive" in words:
            status, report["decided_by"] = INCONCLUSIVE, "the A/A control failed: times are only a hint"
        elif status == INCONCLUSIVE and self.pairs and len(self.refused) == len(self.pairs):
            status, report["decided_by"] = IMPOSSIBLE, "no case can be run here"
        report["exit_status"] = status
        return report

    @staticmethod
    def heading(side):
        return side.commit[:7] + ("+" if side.dirty else "")

    @staticmethod
    def about(side):
        return {"label": side.label, "files": [], "commit": side.commit, "dirty": side.dirty, "date": side.date,
                "notes": [], "lacks": [], "rejected": [], "untrusted": []}


def _contended(case):
    keys = benchbin.split_name(case)[1]
    return case.startswith("contend/") or keys.get("complete") == "other" or keys.get("threads", "1") != "1"


class Request:
    """The command line, checked before anything is built."""

    def __init__(self, args):
        self.filter, self.filter_text = run.expression(args.filter), args.filter
        self.budget_s = BUDGET_S if args.budget is None else run.seconds(args.budget)
        self.cpus = run.cpus_from(args.cpus)
        self.seed = run.seed_from(args.seed)
        self.parallel, self.instructions = args.parallel, args.instructions
        self.layouts = None if args.layouts is None else run.integer(args.layouts, "--layouts", stats.MIN_PAIRS, 200)
        if self.parallel:
            self.cpus = self.cpus or fingerprint.allowed_cpus()
            if len(self.cpus) < 2:
                raise UserError("--parallel: two CPUs are needed, one is there", IMPOSSIBLE)


def main(args):
    words = compare.fail_on(args.fail_on)
    compare.check_output(args)
    request = Request(args)
    for name in filter(None, (args.base, args.new)):
        worktrees.commit_of(name)
    base = worktrees.build_revision(args.base)
    new = worktrees.build_revision(args.new) if args.new else worktrees.build_working_tree()
    comparison = Comparison(base, new, request)
    progress = run.Progress("duet")
    with contextlib.ExitStack() as stack:
        stack.enter_context(run.stoppable())
        comparison.list_cases()
        comparison.count(progress)
        if request.instructions:
            comparison.count_instructions(progress)
        if request.layouts:
            place = tree.repo_root() / "build"
            place.mkdir(exist_ok=True)
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="layouts-", dir=place))
            comparison.lay_out(pathlib.Path(directory), progress)
        comparison.plan(progress)
        comparison.measure(progress)
    progress.clear()
    with run.uninterrupted():
        report = comparison.report(words, request.seed)
        if comparison.failure:
            sys.stderr.write(f"skbench: {comparison.failure}\n")
        compare.deliver(report, args)
        if comparison.interrupted:
            sys.stderr.write("skbench: interrupted\n")
    return report["exit_status"]
