# SPDX-License-Identifier: MIT
"""The statistics that judge a run: exact intervals of a median, and verdicts against a margin.

The interval is that of the sign test: two order statistics of the sample. It assumes that the samples are independent
and nothing about the shape of their distribution, it needs no random numbers, and its coverage is exact. Clumped and
skewed times, which are what a shared machine gives, break the usual alternatives.

Ratios live in log space: d = ln(variant / baseline). A margin of m is the band from -ln(1 + m) to +ln(1 + m), so that
exchanging the two sides only changes the sign.
"""

import math

MIN_PAIRS = 6
CONFIDENCE = 0.95

MARGIN = 0.03
HALF_WIDTH = 0.01
HALF_WIDTH_CONTENDED = 0.03
HEADLINE_MARGIN = 0.005
HEADLINE_HALF_WIDTH = 0.003
SIZE_SHARE = 10  # an effect that wide is known well enough if its half-width is at most a tenth of it
FLOOR_NS = 0.3  # about one cycle: differences below it are code layout

REGRESSION = "regression"
IMPROVEMENT = "improvement"
SHIFTED = "shifted"
EQUIVALENT = "equivalent"
INCONCLUSIVE = "inconclusive"
VERDICTS = (REGRESSION, IMPROVEMENT, SHIFTED, EQUIVALENT, INCONCLUSIVE)


def median(values):
    """The median of a non-empty sequence of numbers."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("median of nothing")
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def binomial_cdf(k, n, p):
    """P(X <= k) for X binomial(n, p). Exact integers for p = 1/2, a plain sum of terms otherwise."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if p == 0.5:
        return sum(math.comb(n, i) for i in range(k + 1)) / (1 << n)
    if p in (0, 1):
        return 1.0 if p == 0 else 0.0
    log_p, log_q = math.log(p), math.log1p(-p)
    log_n = math.lgamma(n + 1)
    return min(1.0, math.fsum(
        math.exp(log_n - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q)
        for i in range(k + 1)))


def sign_rank(n, confidence=CONFIDENCE):
    """How many order statistics to step in from each end of n samples: the largest r for which the interval from the
    r-th smallest to the r-th largest value covers the median with at least that confidence. 0 if there is none, and
    below 6 samples always.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    if n < MIN_PAIRS:
        return 0
    # In integers: 2 * sum(comb(n, i), i < r) <= (1 - confidence) * 2^n, without the rounding of a quotient.
    allowed = (1 - confidence) * (1 << n) if n < 1000 else int((1 - confidence) * (1 << 60)) << (n - 60)
    tail, term, rank = 0, 1, 0
    while rank < (n + 1) // 2:
        tail += 2 * term
        if tail > allowed:
            break
        rank += 1
        term = term * (n - rank + 1) // rank
    return rank


def sign_coverage(n, rank):
    """The exact coverage of the interval from the rank-th smallest to the rank-th largest of n samples."""
    return 1 - 2 * binomial_cdf(rank - 1, n, 0.5)


def sign_interval(values, confidence=CONFIDENCE):
    """(lo, hi) around the median, or None if there are too few values for that confidence."""
    rank = sign_rank(len(values), confidence)
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


def family_confidence(k, confidence=CONFIDENCE):
    """The confidence of each of k intervals that are all to hold together (Bonferroni)."""
    if k < 1:
        raise ValueError(f"a family of {k} intervals")
    return 1 - (1 - confidence) / k


def half_width(interval):
    """Half the length of an interval; infinite for None."""
    return math.inf if interval is None else (interval[1] - interval[0]) / 2


def hodges_lehmann(values):
    """The median of all pairwise means, each value with itself included."""
    count = len(values)
    return median([(values[i] + values[j]) / 2 for i in range(count) for j in range(i, count)])


def smallest_found(values, n, bound=0.0, power=0.95):
    """The smallest shift that lifts the lower end of the sign interval of N samples above BOUND with probability POWER,
    where the samples are spread as VALUES are, about 0; None if there are too few VALUES to say.

    The end is the r-th smallest of N: it lies below the quantile of the spread at which N samples have R below it with
    probability 1 - POWER. VALUES come from equal sides, so that each could as well have had the other sign.
    """
    rank = sign_rank(n)
    if rank == 0:
        return None
    lo, hi = 0.0, 1.0
    for _ in range(60):
        middle = (lo + hi) / 2
        if 1 - binomial_cdf(rank - 1, n, middle) < 1 - power:
            lo = middle
        else:
            hi = middle
    both = sorted([*values, *(-value for value in values)])
    index = int(lo * len(both))
    return bound - both[index - 1] if index else None


def log_margin(margin):
    """A relative margin (0.03 for 3 %) in log space."""
    return math.log1p(margin)


def log_floor(floor_ns, baseline_ns):
    """An absolute difference that is never worth a verdict, in log space, for a baseline of that many ns."""
    return math.log1p(floor_ns / baseline_ns)


def relative(log_ratio):
    """ln(b / a) as a fraction: 0.05 is 5 % more."""
    return math.expm1(log_ratio)


def verdict(lo, hi, margin_log, floor_log=0.0, max_half_width=None):
    """The word for an interval (lo, hi) of ln(variant / baseline) where less is better.

    Beyond the margin on one side: regression or improvement. Inside it: equivalent if it holds 0, else shifted.
    Anything else, no interval at all (None), and an interval too wide to tell the size: inconclusive, wherever it lies.
    Too wide is a half-width above max_half_width and above a tenth of the bound that lies nearer to 0: a change of a
    fifth need not be known to a thousandth, one of 2 % does.
    """
    if lo is None or hi is None:
        return INCONCLUSIVE
    if lo > hi or not math.isfinite(lo) or not math.isfinite(hi):
        raise ValueError(f"not an interval: {lo} to {hi}")
    if max_half_width is not None and (hi - lo) / 2 > widest(lo, hi, max_half_width):
        return INCONCLUSIVE
    margin = max(margin_log, floor_log)
    if lo > margin:
        return REGRESSION
    if hi < -margin:
        return IMPROVEMENT
    if lo >= -margin and hi <= margin:
        return EQUIVALENT if lo <= 0 <= hi else SHIFTED
    return INCONCLUSIVE


def widest(lo, hi, max_half_width):
    """The half-width that a verdict on the interval (lo, hi) may have."""
    nearest = max(lo, -hi, 0.0)
    return max(max_half_width, nearest / SIZE_SHARE)
