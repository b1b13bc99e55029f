# SPDX-License-Identifier: MIT
"""bench_compare.py: how long the analysis itself takes; prints a table, judges nothing.

  compare       1,000 cases of 30 samples on each side: reading, judging, printing
  history       100,000 rows (1,000 results of 100 cases): building the index, asking it, asking it for one case
  start         the interpreter, and `skbench compare --help`
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

import compare_support as cs
import support
from skbench_lib import baseline, compare, compare_report, history, results, sides

CASES, SAMPLES = 1000, 30
RESULTS, CASES_EACH = 1000, 100


def many_cases(path, seed, cases=CASES, samples=SAMPLES):
    """A result with that many cases, every tenth of which is 5 % slower on odd SEEDs."""
    values = {f"skb/synthetic/k:{index}": cs.noise(seed * 100000 + index, 100 * (1.05 if seed % 2 and index % 10 == 0 else 1),
                                                    samples) for index in range(cases)}
    text = json.dumps(cs.survey(values, {name: {"rmw": 1} for name in values}))
    # As the benches write numbers.
    return cs.write(path, json.loads(text, parse_float=lambda digits: round(float(digits), 4)))


def stored_results(directory, results=RESULTS, cases=CASES_EACH):
    """That many results below DIRECTORY, an hour apart; the times of one case step by 6 % in the middle. As baselines
    are stored: without rows, each case with its summary."""
    document = cs.survey({f"skb/synthetic/k:{index}": cs.noise(index, 100, 7) for index in range(cases)})
    ours = document["context"]["skbench"]
    document["benchmarks"] = []
    for index in range(results):
        noise = cs.noise(index, 100, cases)
        for entry, value in zip(ours["cases"], noise):
            if entry["case"].endswith("/k:3") and index >= results // 2:
                value *= 1.06
            entry["value"] = {"median": value, "lo": value * 0.99, "hi": value * 1.01, "n": 15}
        document["context"]["date"] = f"2026-{1 + index // 720 % 12:02}-{1 + index // 24 % 28:02}T{index % 24:02}:00:00+00:00"
        cs.write(directory / f"{index:06}.json", document)


def timed(what, function):
    begin, busy = time.perf_counter(), time.process_time()
    value = function()
    print(f"{what:<56}{time.perf_counter() - begin:>8.3f} s  CPU {time.process_time() - busy:>7.3f} s", flush=True)
    return value


def main():
    with tempfile.TemporaryDirectory(prefix="skbench-speed-") as scratch:
        path = pathlib.Path(scratch)
        base, new = many_cases(path / "base.json", 2), many_cases(path / "new.json", 1)
        loaded = timed(f"read {CASES} cases of {SAMPLES} samples, twice", lambda: [sides.load(name) for name in (base, new)])
        kept = [cs.write(path / f"kept{number}.json", baseline.reduced(results.read(name), "kept"))
                for number, name in enumerate((base, new))]
        timed("read both as stored baselines", lambda: [sides.load(name) for name in kept])
        report = timed("compare them", lambda: compare.judge(*loaded))
        timed("print it", lambda: compare_report.text(report, True))
        timed("all of it: skbench compare", lambda: subprocess.run(
            [support.PYTHON, "-m", "skbench_lib", "compare", base, new], cwd=support.ROOT / "scripts", check=False,
            stdout=subprocess.DEVNULL))
        stored_results(path / "out")
        index = timed(f"index {RESULTS * CASES_EACH} rows of {RESULTS} results",
                      lambda: history.Index(path / "out", path / "history.db"))
        timed("bring the index up to date when nothing is new", index.refresh)
        timed("look at one case in it", lambda: history.examine(index, history.run.expression("k:3$", "--case")))
        timed("look at every case in it", lambda: history.examine(index))
        index.close()
    for what, arguments in (("start: the interpreter alone", ["-I", "-c", "pass"]),
                            ("start: skbench compare --help", ["-m", "skbench_lib", "compare", "--help"])):
        timed(what, lambda a=arguments: subprocess.run([support.PYTHON, *a], cwd=support.ROOT / "scripts", check=True,
                                                       stdout=subprocess.DEVNULL))


if __name__ == "__main__":
    sys.exit(main())
