# SPDX-License-Identifier: MIT
"""Change points of one series: where it moved for good, and where it crept.

Segments come from the energy statistic (E-divisive), which is blind to the distribution's shape. Whether a split is
real is decided by the exact rank-sum test, not by permutations, so that a series has one answer. First splits are
accepted weakly; then the weakest boundary is taken away until all that are left pass the strong test: a weak split can
uncover two strong ones beside it.

A step of less than the margin is no change point. Several of them in one direction are a drift once they add up to it.
A boundary needs MIN_SEGMENT points behind it: what lies nearer to the end is pending, and 9 points before are needed
where just 5 follow, since no rearrangement of 8 and 5 is rarer than P_VALUE.
"""

import functools
import math

from . import ranks, stats

P_VALUE = 0.001
P_WEAK = 0.01
MIN_SEGMENT = 5
PENDING = MIN_SEGMENT - 1
FEWEST = 9 + MIN_SEGMENT  # points below which nothing can be found

SCALE = 1 << 48  # of logarithms as integers

STEP, DRIFT = "step", "drift"


class Change:
    """A change between the points BEFORE and AFTER (indexes; for a step AFTER is BEFORE + 1).

    ratio, lo, hi   median after over median before, with its 95 % interval (None below 7 points a side)
    old, new        the medians; p of the rank-sum test of both segments
    """

    def __init__(self, kind, before, after, left, right):
        self.kind, self.before, self.after = kind, before, after
        self.old, self.new = stats.median(left), stats.median(right)
        self.count_before, self.count_after = len(left), len(right)
        self.ratio = self.new / self.old
        interval = ranks.interval_of_ratio(left, right)
        self.lo, self.hi = (math.exp(end) for end in interval) if interval else (None, None)
        self.p = ranks.rank_sum(left, right)


def statistics(values):
    """[energy statistic of the split before values[i], for i from 1]: weighted by both sides' length.

    Distances are those of the logarithms, in integers of SCALE, so that every sum is exact. The sums are updated as the
    boundary moves; what a value has to those on its left comes from a tree over the sorted values: n log n steps in all.
    """
    count = len(values)
    logs = [round(math.log(value) * SCALE) for value in values]
    to_all = distances(logs)
    within_left = between = 0
    within_right = sum(to_all) // 2
    tree = Sums(logs)
    found = []
    for index in range(1, count):
        moved = logs[index - 1]
        to_left = tree.distances(moved)
        tree.add(moved)
        to_right = to_all[index - 1] - to_left
        within_left += to_left
        within_right -= to_right
        between += to_right - to_left
        left, right = index, count - index
        energy = 2 * between / (left * right)  # from here on floats
        energy -= 2 * within_left / (left * (left - 1)) if left > 1 else 0.0
        energy -= 2 * within_right / (right * (right - 1)) if right > 1 else 0.0
        found.append(left * right / count * energy / SCALE)
    return found


def distances(logs):
    """[sum of the distances of each of LOGS to all of them]."""
    order = sorted(range(len(logs)), key=logs.__getitem__)
    found, below, whole = [0] * len(logs), 0, sum(logs)
    for rank, index in enumerate(order):
        here = logs[index]
        found[index] = here * rank - below + (whole - below - here) - here * (len(logs) - rank - 1)
        below += here
    return found


class Sums:
    """How many values were added, and their sum, up to any of LOGS (a binary indexed tree over their ranks)."""

    def __init__(self, logs):
        self.rank = {value: number for number, value in enumerate(sorted(set(logs)), 1)}
        self.counts, self.sums = [0] * (len(self.rank) + 1), [0] * (len(self.rank) + 1)
        self.count = self.sum = 0

    def add(self, value):
        self.count, self.sum = self.count + 1, self.sum + value
        place = self.rank[value]
        while place < len(self.counts):
            self.counts[place] += 1
            self.sums[place] += value
            place += place & -place

    def distances(self, value):
        """The sum of the distances of VALUE to all that was added."""
        place, count, total = self.rank[value], 0, 0
        while place:
            count, total = count + self.counts[place], total + self.sums[place]
            place -= place & -place
        return value * count - total + (self.sum - total) - value * (self.count - count)


def best_split(values):
    """(index, statistic) of the best split with MIN_SEGMENT values on each side, or None.

    Only a peak counts. Where the statistic still rises towards an end, the change is nearer to that end than a segment
    may be: that is a tail to wait for, and no split of MIN_SEGMENT values some of which are old.
    """
    found = statistics(values)
    best = None
    for index in range(MIN_SEGMENT, len(values) - MIN_SEGMENT + 1):
        here, before, behind = (found[i - 1] for i in (index, index - 1, index + 1))
        if here >= max(before, behind) and (best is None or here > best[1]):
            best = index, here
    return best


def _weak(values, begin, end, found):
    split = best_split(values[begin:end])
    if split is None:
        return
    index = begin + split[0]
    if ranks.rank_sum(values[begin:index], values[index:end]) > P_WEAK:
        return
    found.append(index)
    _weak(values, begin, index, found)
    _weak(values, index, end, found)


def boundaries(values):
    """Indexes at which a new segment begins, each of which the strong test accepts between its two segments."""
    return list(_boundaries(tuple(values)))


@functools.lru_cache(maxsize=8)  # of one series, changes() and pending() ask both
def _boundaries(values):
    found = []
    _weak(values, 0, len(values), found)
    found.sort()
    while found:
        edges = [0, *found, len(values)]
        tests = [ranks.rank_sum(values[edges[i]:edges[i + 1]], values[edges[i + 1]:edges[i + 2]])
                 for i in range(len(found))]
        worst = max(range(len(tests)), key=tests.__getitem__)
        if tests[worst] <= P_VALUE:
            break
        del found[worst]
    return found


def changes(values, margin=stats.MARGIN):
    """The changes of a series of positive numbers in its order, of at least MARGIN in either direction."""
    edges = [0, *boundaries(values), len(values)]
    parts = [(edges[i], edges[i + 1]) for i in range(len(edges) - 1)]
    least = stats.log_margin(margin)
    found = []

    def logs(part):
        return math.log(stats.median(values[part[0]:part[1]]))

    since = [parts[0]]  # the segments since the last change that was reported
    for part in parts[1:]:
        last = since[-1]
        if abs(logs(part) - logs(last)) >= least:
            found.append(Change(STEP, part[0] - 1, part[0], values[last[0]:last[1]], values[part[0]:part[1]]))
            since = [part]
            continue
        start = max(since, key=lambda old: abs(logs(part) - logs(old)))
        if abs(logs(part) - logs(start)) >= least:
            found.append(Change(DRIFT, start[1] - 1, part[0], values[start[0]:start[1]], values[part[0]:part[1]]))
            since = [part]
        else:
            since.append(part)
    return found


def pending(values, margin=stats.MARGIN):
    """How many of the last points (at most PENDING) all lie beyond MARGIN on one side of the segment before them: what
    may become a change point, and is none yet. 0 if none."""
    least = stats.log_margin(margin)
    begin = (boundaries(values) or [0])[-1]
    for count in range(min(PENDING, len(values) - begin - MIN_SEGMENT), 0, -1):
        centre = math.log(stats.median(values[begin:len(values) - count]))
        tail = [math.log(value) - centre for value in values[-count:]]
        if all(d > least for d in tail) or all(d < -least for d in tail):
            return count
    return 0
