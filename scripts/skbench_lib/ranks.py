# SPDX-License-Identifier: MIT
"""Two independent samples: the exact rank-sum test, and an interval of the ratio of two medians.

For results of two sessions, which cannot be paired. The pairs of a duet are judged by stats.py alone.
"""

import collections
import functools
import math

from . import stats

EXACT_TOTAL = 40  # values on both sides together up to which the distribution is counted out


def midranks(values):
    """Twice the rank of each value, equal values sharing the mean of theirs: integers."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end + 1 < len(order) and values[order[end + 1]] == values[order[begin]]:
            end += 1
        for index in order[begin:end + 1]:
            ranks[index] = begin + end + 2
        begin = end + 1
    return ranks


@functools.lru_cache(maxsize=256)
def _sums(ranks, size):
    """{sum: how many subsets of SIZE of the doubled RANKS (a sorted tuple) have it}."""
    ways = [{0: 1}] + [{} for _ in range(size)]
    for rank in ranks:
        for taken in range(size - 1, -1, -1):
            above = ways[taken + 1]
            for total, count in ways[taken].items():
                above[total + rank] = above.get(total + rank, 0) + count
    return ways[size]


def rank_sum(a, b, exact_total=EXACT_TOTAL):
    """The two-sided p of the rank-sum test that A and B come from one distribution.

    Exact, ties included, while both have EXACT_TOTAL values together; the normal approximation with the corrections
    for ties and continuity beyond. Equal values throughout give 1.
    """
    if not a or not b:
        raise ValueError("a rank-sum test needs values on both sides")
    ranks = midranks(list(a) + list(b))
    n, m = len(a), len(b)
    if len(set(ranks)) == 1:
        return 1.0
    small = min(n, m)
    observed = sum(ranks[:n]) if n <= m else sum(ranks[n:])
    centre = small * (n + m + 1)
    if n + m <= exact_total:
        sums = _sums(tuple(sorted(ranks)), small)
        away = abs(observed - centre)
        return min(1.0, sum(count for total, count in sums.items() if abs(total - centre) >= away)
                   / math.comb(n + m, small))
    ties = sum(count ** 3 - count for count in collections.Counter(ranks).values())
    total = n + m
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    z = max(0.0, abs(observed - centre) / 2 - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def smallest_p(n, m):
    """The smallest p that rank_sum() can give for N and M different values."""
    return min(1.0, 2 / math.comb(n + m, n)) if n + m <= EXACT_TOTAL else 0.0


def interval_of_ratio(a, b, confidence=stats.CONFIDENCE):
    """(lo, hi) of ln(median of B / median of A) from the sign intervals of both sides, or None below 7 values a side.

    Each side's interval has the square root of CONFIDENCE, so that both hold together with CONFIDENCE at least. It
    assumes independent values and nothing about their shape.
    """
    each = math.sqrt(confidence)
    one, other = stats.sign_interval(a, each), stats.sign_interval(b, each)
    if one is None or other is None:
        return None
    return math.log(other[0] / one[1]), math.log(other[1] / one[0])
