# SPDX-License-Identifier: MIT
"""How others would judge the values of a duet: Google Benchmark's compare.py and Go's benchstat, both of which take the
two sides as independent samples and run the rank-sum test at 5 %. For the campaign's table, never for a verdict.
"""

from . import ranks

ALPHA = 0.05
SMALL = 8          # scipy's "auto" counts the distribution out up to this many values on one side, without ties
BENCHSTAT_LEAST = 4
METHODS = ("compare.py", "benchstat")


def tied(a, b):
    return len({*a, *b}) < len(a) + len(b)


def compare_py(a, b):
    """True if compare.py, whose U test is scipy's, calls B different from A."""
    exact = min(len(a), len(b)) <= SMALL and not tied(a, b)
    return ranks.rank_sum(a, b, ranks.EXACT_TOTAL if exact else 0) < ALPHA


def benchstat(a, b):
    """The same for benchstat, whose test is exact for as many values as a duet has. Below 4 a side it says nothing."""
    return min(len(a), len(b)) >= BENCHSTAT_LEAST and ranks.rank_sum(a, b) <= ALPHA


def judge(values):
    """{method: {"interleaved", "blocks"}} for VALUES, the [a, b] of each pair in time.

    Blocks are how both are used: one side first, then the other, here A of the first half of the pairs against B of the
    second half. Interleaved takes all values, whose order in time was a coin's.
    """
    half = len(values) // 2
    sides = {"interleaved": ([a for a, _ in values], [b for _, b in values]),
             "blocks": ([a for a, _ in values[:half]], [b for _, b in values[half:]])}
    return {name: {how: bool(a and b) and method(a, b) for how, (a, b) in sides.items()}
            for name, method in zip(METHODS, (compare_py, benchstat))}
