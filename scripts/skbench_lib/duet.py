# SPDX-License-Identifier: MIT
"""Duets: two sides of a comparison as pairs of processes.

A sample is a process. Each pair runs both sides within moments of each other in an order decided by a coin, with the
same number of operations and each with its own random environment padding, and counts as one log ratio. Cells (a
comparison each) take turns, so that drift of the machine and the end of the budget meet all of them alike. Pairs are
added until the interval is narrow enough: the rule looks at its width only, never at where it lies, so that looking
does not make false findings more likely.
"""

import math
import time

from . import benchbin, stats

START_PAIRS = 10
STEP_PAIRS = 5
MAX_PAIRS = 60
TRIES_PER_SAMPLE = 3     # processes in one go before the sample is given up
LOST_IN_ROW_LIMIT = 5    # such samples in a row before the cell is
LOST_SHARE_LIMIT = 0.5   # of all processes that came back unmeasured, once there are enough to judge
LOST_SHARE_FROM = 20

OK, UNMEASURED = "ok", "unmeasured"


class Side:
    """One side of a cell: a case of a bench binary, perhaps with extra work injected into its operation (percent)."""

    def __init__(self, binary, case, label, inject=0):
        self.binary = binary
        self.case = case
        self.label = label
        self.inject = inject

    def binary_of(self, pair):
        """The binary that pair number PAIR runs: there is but one."""
        return self.binary


def whole_extra(n, percents):
    """The number of operations next to N of which each of PERCENTS is a whole number, since a sampler rounds extra work up;
    N where that is not within half of it."""
    units = [100000 // math.gcd(round(percent * 1000), 100000) for percent in percents if percent]
    unit = math.lcm(*units)
    near = max(round(n / unit), 1) * unit
    return near if n / 1.5 <= near <= n * 1.5 else n


class Pair:
    """Two samples: `first` is "a" or "b", `a` and `b` the bench's answers, `pad_a` and `pad_b` their paddings."""

    def __init__(self, first, answers, pads):
        self.first = first
        self.a, self.b = answers["a"], answers["b"]
        self.pad_a, self.pad_b = pads["a"], pads["b"]
        self.value_a = benchbin.value_of(self.a)
        self.value_b = benchbin.value_of(self.b)
        self.log_ratio = math.log(self.value_b / self.value_a)


class Measured:
    """What Duet's and Survey's cells share: how many processes it took, and why there is nothing if there is nothing."""

    def __init__(self, key, n, batches):
        self.key, self.n, self.batches = key, n, batches
        self.status, self.reason = OK, None
        self.stopped = None  # "width", "pairs", "samples", "budget", "unmeasured", "not possible", "interrupted", "failure"
        self.processes = 0
        self.lost_processes = 0
        self.lost_in_row = 0
        self.last_loss = None
        self.impossible = False
        self.oversubscribed = False  # its roles took turns on fewer CPUs: no time to judge by

    def refuse(self, reason, why="not possible here"):
        """The machine cannot run it, or none can."""
        self.impossible = True
        reason = str(reason).split(f" {self.key}: ", 1)[-1]  # the row names the case
        self.status, self.reason, self.stopped = UNMEASURED, f"{why}: {reason}", "not possible"

    def judge_losses(self):
        """Gives the cell up if too many of its processes came back unmeasured."""
        if self.status != OK:
            return
        many = self.processes >= LOST_SHARE_FROM and self.lost_processes > LOST_SHARE_LIMIT * self.processes
        if self.lost_in_row >= LOST_IN_ROW_LIMIT or many:
            self.status, self.stopped = UNMEASURED, "unmeasured"
            self.reason = f"{self.lost_processes} of {self.processes} processes unmeasured, the last: {self.last_loss}"


class SurveyCell(Measured):
    """A case measured by itself; n is None until it is calibrated."""

    def __init__(self, side, wanted, batches=None):
        super().__init__(side.case, None, batches)
        self.side, self.wanted = side, wanted
        self.samples = []  # (answer, padding)

    def values(self):
        return [benchbin.value_of(answer) for answer, _ in self.samples]


class Cell(Measured):
    """One comparison: its plan, and what has been measured of it.

    margin and target are fractions (0.03 is 3 %): what the verdict is about, and the half-width that ends the cell.
    With strict, an interval wider than target is inconclusive wherever it lies.
    """

    def __init__(self, key, a, b, n, margin=stats.MARGIN, target=stats.HALF_WIDTH, strict=False, max_pairs=MAX_PAIRS,
                 batches=None):
        super().__init__(key, n, batches)
        self.a, self.b = a, b
        self.margin, self.target, self.strict = margin, target, strict
        self.max_pairs = max_pairs
        self.pairs = []

    def log_ratios(self):
        return [pair.log_ratio for pair in self.pairs]

    def interval(self, confidence=stats.CONFIDENCE):
        """Of the median log ratio, or None."""
        return stats.sign_interval(self.log_ratios(), confidence)

    def half_width(self):
        return stats.half_width(self.interval())

    def verdict(self, confidence=stats.CONFIDENCE):
        interval = self.interval(confidence)
        if self.status != OK or interval is None:
            return stats.INCONCLUSIVE
        baseline = stats.median([pair.value_a for pair in self.pairs])
        return stats.verdict(interval[0], interval[1], stats.log_margin(self.margin),
                             stats.log_floor(stats.FLOOR_NS, baseline),
                             stats.log_margin(self.target) if self.strict else None)

    def side(self, which):
        """{"median", "lo", "hi", "n"} of one side's own values in ns an operation; None without a sample."""
        values = [pair.value_a if which == "a" else pair.value_b for pair in self.pairs]
        return summary(values)

    def difference(self, scale=1.0):
        """The same of the pairs' differences b - a, times SCALE."""
        return summary([(pair.value_b - pair.value_a) * scale for pair in self.pairs])

    def looks(self):
        """True if now is a time to look at the width."""
        count = len(self.pairs)
        return count >= START_PAIRS and (count - START_PAIRS) % STEP_PAIRS == 0


def summary(values):
    """{"median", "lo", "hi", "n"} with the 95 % sign interval, whose ends are None where there is none; or None."""
    if not values:
        return None
    interval = stats.sign_interval(values)
    lo, hi = interval if interval else (None, None)
    return {"median": stats.median(values), "lo": lo, "hi": hi, "n": len(values)}


def process_sampler(cpus=None, oversubscribe=False):
    """The sampler for real runs: starts one bench process a sample. OVERSUBSCRIBE: roles may take turns on a CPU."""
    def sample(side, cell, pad):
        binary = side.binary_of(len(cell.pairs)) if isinstance(cell, Cell) else side.binary
        return binary.sample(side.case, cell.n, pad, batches=cell.batches, cpus=cpus, inject=side.inject,
                             oversubscribe=oversubscribe)
    return sample


class Turns:
    """Runs cells in turns until each has stopped or the budget is over. Subclasses say what a turn is.

    rng      a random.Random: coins and paddings come from it alone, so its seed tells the whole plan
    budget_s seconds for all cells together; None for no limit
    sampler  sampler(side, cell, pad) returns a bench answer or raises Unmeasured, NotPossible or BenchFailed
    progress progress(self) after every turn, or None
    """

    def __init__(self, cells, rng, budget_s=None, sampler=None, progress=None, clock=time.monotonic):
        self.cells = list(cells)
        self.rng = rng
        self.budget_s = budget_s
        self.sampler = sampler or process_sampler()
        self.progress = progress
        self.clock = clock
        self.interrupted = False
        self.failure = None  # the BenchFailed that ended the run
        self.elapsed_s = 0.0
        self._begin = None

    def run(self):
        """Measures. Ctrl-C and a failing case end it early with `interrupted` or `failure` set; what was measured
        until then stays."""
        self._begin = self.clock()
        try:
            while any(cell.stopped is None for cell in self.cells) and not self._over():
                for cell in self._order([cell for cell in self.cells if cell.stopped is None]):
                    if self._over():
                        break
                    self._turn(cell)
                    if self.progress:
                        self.progress(self)
        except KeyboardInterrupt:
            self.interrupted = True
        except benchbin.BenchFailed as failure:
            self.failure = failure
        ended = "interrupted" if self.interrupted else "failure" if self.failure else "budget"
        for cell in self.cells:
            cell.stopped = cell.stopped or ended
        self.elapsed_s = self.clock() - self._begin

    def _over(self):
        self.elapsed_s = self.clock() - self._begin
        return self.budget_s is not None and self.elapsed_s >= self.budget_s

    def _order(self, cells):
        return cells

    def _turn(self, cell):
        raise NotImplementedError

    def _sample(self, cell, side):
        """(answer, padding), or (None, None) if the machine did not let it be measured."""
        for _ in range(TRIES_PER_SAMPLE):
            pad = self.rng.randrange(benchbin.PAD_LIMIT)
            cell.processes += 1
            try:
                return self.sampler(side, cell, pad), pad
            except benchbin.Unmeasured as error:
                cell.lost_processes += 1
                cell.last_loss = str(error)
            except benchbin.NotPossible as error:
                cell.refuse(error)
                return None, None
        cell.lost_in_row += 1
        return None, None


class Duet(Turns):
    """A turn is a pair; a cell stops when it is narrow enough or has its most pairs."""

    def _turn(self, cell):
        order = "ab" if self.rng.random() < 0.5 else "ba"
        answers, pads = {}, {}
        for which in order:
            answer, pad = self._sample(cell, cell.a if which == "a" else cell.b)
            if answer is None:
                cell.judge_losses()
                return
            answers[which], pads[which] = answer, pad
        cell.lost_in_row = 0
        cell.pairs.append(Pair(order[0], answers, pads))
        if cell.looks() and cell.half_width() <= stats.log_margin(cell.target):
            cell.stopped = "width"
        elif len(cell.pairs) >= cell.max_pairs:
            cell.stopped = "pairs"
        cell.judge_losses()


class Survey(Turns):
    """A turn is one sample; a cell stops when it has as many as it wants. Every round has a new random order.

    calibrate(cell) returns the operations a batch and is asked at a cell's first turn.
    """

    def __init__(self, cells, rng, calibrate, **how):
        super().__init__(cells, rng, **how)
        self.calibrate = calibrate

    def _order(self, cells):
        self.rng.shuffle(cells)
        return cells

    def _turn(self, cell):
        try:
            if cell.n is None:
                cell.n = self.calibrate(cell)
        except benchbin.NotPossible as error:
            cell.refuse(error)
            return
        except benchbin.Refused as error:  # one value of a sweep; the others are measured
            cell.refuse(error, "no such case")
            return
        answer, pad = self._sample(cell, cell.side)
        if answer is not None:
            cell.lost_in_row = 0
            cell.samples.append((answer, pad))
            if answer.get("status") == "oversubscribed":
                cell.oversubscribed = True
                cell.status, cell.reason = UNMEASURED, f"oversubscribed: {answer['reason']}"
            if len(cell.samples) >= cell.wanted:
                cell.stopped = "samples"
        cell.judge_losses()


def judge_control(cell):
    """(held, reason) of an A/A cell: both sides are the same, so its interval has to lie about 0 and be narrow."""
    interval = cell.interval()
    if cell.status != OK:
        return False, f"unmeasured: {cell.reason}"
    if interval is None:
        return False, f"{len(cell.pairs)} pairs, at least {stats.MIN_PAIRS} needed"
    margin = stats.log_margin(cell.margin)
    if interval[0] > margin or interval[1] < -margin:
        return False, "two equal sides differ by more than the margin"
    if stats.half_width(interval) > 2 * margin:
        return False, "two equal sides cannot be told apart to twice the margin"
    return True, None
