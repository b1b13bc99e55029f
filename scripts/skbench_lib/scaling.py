# SPDX-License-Identifier: MIT
"""How an operation scales with threads: throughput, cost and efficiency at each number of them, and the universal
scalability law through those points.

A point is a case at one number of threads; its samples are processes, each of which gives one throughput: operations of
all roles over the 33rd percentile of its batches' wall time. A point whose roles took turns on fewer CPUs says something
about the scheduler and nothing about scaling: it is shown, marked, and never enters a fit.

The law (N. Gunther) is X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)): lambda is one thread's throughput, sigma
the share that only one does at a time, kappa what each pair costs to agree. N/X is linear in 1/lambda, sigma/lambda and
kappa/lambda, so that the fit is one of linear least squares, of relative errors, with none of the three below 0.
"""

import math
import random
import re

from . import benchbin, duet, stats

KEY = "threads"
LEAST_POINTS = 4
RESAMPLES = 400
OVERSUBSCRIBED = "oversubscribed"


def throughput(answer):
    """Operations a second that the process of ANSWER did."""
    return max(answer.get("ops") or 1, 1) / answer["wall"]["p33"] * 1e9


def cost(answer):
    """CPU time of all roles for one operation, in ns: they all run for as long as the batch takes."""
    return len(answer.get("roles") or (None,)) * answer["wall"]["p33"] / max(answer.get("ops") or 1, 1)


def group_of(case):
    return re.sub(rf"/{KEY}:[^/]*", "", case)


class Point:
    """One number of threads. samples: throughputs in operations a second; none if there is a reason."""

    def __init__(self, threads, cpus, samples, costs, oversubscribed=False, reason=None):
        self.threads, self.cpus = threads, cpus
        self.samples, self.costs = list(samples), list(costs)
        self.oversubscribed = oversubscribed
        self.reason = reason if not self.samples or oversubscribed else None

    def real(self):
        """True if it may enter a fit."""
        return bool(self.samples) and not self.oversubscribed


def points(cells):
    """{case without its threads: [Point], in the order of their threads} of a survey's CELLS that have the key."""
    groups = {}
    for cell in cells:
        threads = benchbin.split_name(cell.key)[1].get(KEY)
        if threads is None:
            continue
        answers = [answer for answer, _ in cell.samples]
        reason = cell.reason or (None if answers else "the run ended before it")
        measured = cell.status == duet.OK or cell.oversubscribed
        groups.setdefault(group_of(cell.key), []).append(Point(
            int(threads), max((len(answer.get("roles") or ()) for answer in answers), default=None),
            [throughput(answer) for answer in answers] if measured else [],
            [cost(answer) for answer in answers] if measured else [], cell.oversubscribed, reason))
    return {group: sorted(found, key=lambda point: point.threads) for group, found in groups.items()}


# --- the law --------------------------------------------------------------------------------------------------------

def solve(matrix, right):
    """x with MATRIX x = RIGHT, by elimination with row exchanges; None if there is no single one."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < 1e-12 * max(1.0, max(abs(value) for row in matrix for value in row)):
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / rows[column][column]
            for i in range(column, size + 1):
                rows[row][i] -= factor * rows[column][i]
    found = [0.0] * size
    for row in reversed(range(size)):
        found[row] = (rows[row][size] - sum(rows[row][i] * found[i] for i in range(row + 1, size))) / rows[row][row]
    return found


def least_squares(terms, used):
    """Coefficients of the terms in USED, the rest 0, that bring each sum of TERMS nearest to 1; None if undetermined."""
    normal = [[math.fsum(row[i] * row[k] for row in terms) for k in used] for i in used]
    found = solve(normal, [math.fsum(row[i] for row in terms) for i in used])
    if found is None:
        return None
    whole = [0.0] * 3
    for i, value in zip(used, found):
        whole[i] = value
    return whole


def usl(pairs):
    """(lambda, sigma, kappa) of the law through PAIRS of (threads, throughput); None for fewer than three different
    numbers of threads, or where no throughput is above 0."""
    if len({threads for threads, _ in pairs}) < 3 or any(not value > 0 for _, value in pairs):
        return None
    # A relative error: each equation N/X = a + b (N - 1) + c N (N - 1) divided by its left side; X in units of the largest.
    unit = max(value for _, value in pairs)
    terms = [[value / unit / n, (n - 1) * value / unit / n, (n - 1) * value / unit] for n, value in pairs]
    best = None
    for used in ((0, 1, 2), (0, 1), (0, 2), (0,)):
        found = least_squares(terms, used)
        if found is None or found[0] <= 0 or min(found) < -1e-12:
            continue
        error = math.fsum((math.fsum(a * b for a, b in zip(row, found)) - 1) ** 2 for row in terms)
        if best is None or error < best[0]:
            best = (error, found)
    if best is None:
        return None
    a, b, c = (max(value, 0.0) for value in best[1])
    return unit / a, b / a, c / a


def law(parameters, threads):
    """Throughput that the law gives for THREADS."""
    lam, sigma, kappa = parameters
    return lam * threads / (1 + sigma * (threads - 1) + kappa * threads * (threads - 1))


def peak(parameters):
    """Threads beyond which the law falls; None if it never does, 1.0 if more than one is never better."""
    _, sigma, kappa = parameters
    if kappa <= 0:
        return None
    return math.sqrt((1 - sigma) / kappa) if sigma < 1 and (1 - sigma) / kappa > 1 else 1.0


def fit(found, seed):
    """({"lambda", "sigma", "kappa", ...}, None) for the real ones of the Points FOUND, or (None, why not).

    Each parameter has the middle 95 % of RESAMPLES fits through processes drawn again: SEED makes them the same ones
    again.
    """
    real = [point for point in found if point.real()]
    if len({point.threads for point in real}) < LEAST_POINTS:
        return None, (f"{len(real)} point{'' if len(real) == 1 else 's'} with each role on a CPU of its own, at least "
                      f"{LEAST_POINTS} are needed")
    parameters = usl([(point.threads, stats.median(point.samples)) for point in real])
    if parameters is None:
        return None, "the law goes through no such points"
    rng = random.Random(seed)
    again = [usl([(point.threads, stats.median(rng.choices(point.samples, k=len(point.samples)))) for point in real])
             for _ in range(RESAMPLES)]
    again = [other for other in again if other is not None]

    def entry(index):
        values = sorted(other[index] for other in again)
        ends = (values[int(0.025 * len(values))], values[int(0.975 * (len(values) - 1))]) if values else (None, None)
        return {"value": parameters[index], "lo": ends[0], "hi": ends[1]}

    worst = max(abs(law(parameters, point.threads) / stats.median(point.samples) - 1) for point in real)
    return {"lambda_ops_per_s": entry(0), "sigma": entry(1), "kappa": entry(2), "peak_threads": peak(parameters),
            "points": len(real), "worst_error": worst}, None


# --- what the result says -------------------------------------------------------------------------------------------

def entries(cells, seed):
    """context.skbench.scaling: one object for each case of CELLS that has threads."""
    return [entry(case, found, seed) for case, found in points(cells).items()]


def entry(case, found, seed):
    real = [point for point in found if point.real()]
    base = real[0] if real else None
    rows = []
    for point in found:
        efficiency = None
        if point.real():
            efficiency = stats.median(point.samples) / point.threads / (stats.median(base.samples) / base.threads)
        rows.append({"threads": point.threads, "cpus": point.cpus, "oversubscribed": point.oversubscribed,
                     "reason": point.reason, "ops_per_s": duet.summary(point.samples),
                     "cpu_ns_per_op": duet.summary(point.costs), "efficiency": efficiency})
    parameters, reason = fit(found, seed)
    return {"case": case, "key": KEY, "points": rows, "efficiency_of": base.threads if base else None, "fit": parameters,
            "fit_reason": reason}
