# SPDX-License-Identifier: MIT
"""changepoint_rates.py [--write]: how often change points are found, missed and invented, on synthetic series.

Prints the table of docs/regressions.md; --write puts it there. Each series has 60 points with 1 % of noise; the change
lies in the middle. Beside it, on the same series: a threshold (a point more than 5 % above the one before it), and a
window (the means of the 12 points before and after a place differ by 3 % and 7 standard errors).

  found     a change in the right direction within 3 points of the place; for a drift: within its span
  invented  series with any other change
"""

import functools
import math
import random
import statistics
import sys

import support
from skbench_lib import changepoint

SEED, SERIES, POINTS, PLACE, NEAR = 1998, 200, 60, 30, 3
NOISE, THRESHOLD, WINDOW, ERRORS = 0.01, 0.05, 12, 7.0
BEGIN, END = "<!-- changepoint_rates.py writes from here -->\n", "<!-- to here -->\n"


def noisy(rng, shift):
    """60 points; SHIFT(index) is added to the logarithm."""
    return [100 * math.exp(rng.gauss(0, NOISE) + shift(index)) for index in range(POINTS)]


def step(rng, share):
    return noisy(rng, lambda index: math.log1p(share) * (index >= PLACE))


def drift(rng, share):
    return noisy(rng, lambda index: math.log1p(share) * min(1.0, max(0.0, (index - 20) / 20)))


def outliers(rng, share):
    return [value * (1.3 if rng.random() < 0.05 else 1) for value in step(rng, share)]


def periodic(rng, share):
    return noisy(rng, lambda index: math.log1p(share) * (index >= PLACE) + 0.015 * math.sin(index * math.tau / 7))


# (name, what makes it, size of the change)
ROWS = [("nothing", step, 0.0), ("nothing, 5 % outliers of +30 %", outliers, 0.0), ("nothing, a period of 7", periodic, 0.0),
        *((f"a step of {share:.0%}".replace("%", " %"), step, share) for share in (0.01, 0.02, 0.03, 0.05, 0.1)),
        ("5 %, with the outliers", outliers, 0.05), ("5 %, with the period", periodic, 0.05),
        ("a drift of 8 % over 20 points", drift, 0.08)]


def ours(values):
    """[(index of the first new point, upwards)] of changes()."""
    return [(change.after, change.ratio > 1) for change in changepoint.changes(values)]


def threshold(values):
    found = []
    for index in range(1, len(values)):
        ratio = values[index] / values[index - 1]
        if max(ratio, 1 / ratio) > 1 + THRESHOLD:
            found.append((index, ratio > 1))
    return found


def window(values):
    """Places where the statistic passes its limit and is the largest around."""
    scores = {}
    for index in range(WINDOW, len(values) - WINDOW + 1):
        a, b = values[index - WINDOW:index], values[index:index + WINDOW]
        error = math.sqrt((statistics.variance(a) + statistics.variance(b)) / WINDOW)
        change = statistics.fmean(b) / statistics.fmean(a) - 1
        t = (statistics.fmean(b) - statistics.fmean(a)) / error
        if abs(t) >= ERRORS and abs(change) >= 0.03:
            scores[index] = t
    return [(index, t > 0) for index, t in scores.items()
            if all(abs(t) >= abs(scores.get(other, 0)) for other in range(index - WINDOW, index + WINDOW + 1))]


METHODS = {"skbench history": ours, "threshold of 5 %": threshold, "window of 12 + 12": window}


@functools.lru_cache(maxsize=None)
def rates(series=SERIES, seed=SEED):
    """{row's name: {method: (share found, share of series with something invented)}}."""
    table = {}
    for name, make, share in ROWS:
        rng = random.Random(f"{seed}/{name}")
        counts = {method: [0, 0] for method in METHODS}
        for _ in range(series):
            values = make(rng, share)
            for method, find in METHODS.items():
                changes = find(values)
                near = (20 - NEAR, 40 + NEAR) if make is drift else (PLACE - NEAR, PLACE + NEAR)
                right = [up and share > 0 and near[0] <= index <= near[1] for index, up in changes]
                counts[method][0] += any(right)
                counts[method][1] += not all(right)
        table[name] = {method: (found / series, invented / series) for method, (found, invented) in counts.items()}
    return table


def markdown(table):
    head = ["series", *(f"{method}: found, invented" for method in METHODS)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for name, _, share in ROWS:
        cells = []
        for method in METHODS:
            found, invented = table[name][method]
            cells.append(f"{f'{found:.1%}, ' if share else '-, '}{invented:.1%}".replace("%", " %"))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(argv):
    text = markdown(rates())
    if argv == ["--write"]:
        path = support.ROOT / "docs" / "regressions.md"
        old = path.read_text(encoding="utf-8")
        before, _, rest = old.partition(BEGIN)
        _, _, behind = rest.partition(END)
        path.write_text(before + BEGIN + text + END + behind, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
