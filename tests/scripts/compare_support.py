# SPDX-License-Identifier: MIT
"""Result documents to compare: what the fake bench measured once, with values put in."""

import copy
import json
import random

import support
from skbench_lib import results

CASES = ("skb/clone/frags:0/alloc:slub", "skb/clone/frags:16/alloc:slub", "skb/copy/alloc:slub")
TRIM = "tcp/trim/form:forced/era:6.12/frags:16/partial:1/step:1/clone:alive/complete:same/alloc:slub"


def made(*args):
    """The document of one run of the fake bench, on a machine that was quiet; made once for each ARGS."""
    if args not in made.kept:
        with support.FakeBench() as fake:
            status, out, err = fake.run("run", *args, "--seed", "1", "--out", fake.path / "r.json")
            assert status in (0, 3), (out, err)
            made.kept[args] = results.read(fake.path / "r.json")
    document = copy.deepcopy(made.kept[args])
    document["context"]["skbench"]["fingerprint"]["condition"].update(other_cpu_share=0.01, steal_share=0.0)
    return document


made.kept = {}


def survey(values, ledger=(), commit="a" * 40, date="2026-01-01T00:00:00+00:00", n=200):
    """A result of the suite `full`: {case: [ns, ...]}, one row each, and ledger rows of one phase by case."""
    document = made("--suite", "quick")
    ours = document["context"]["skbench"]
    template = document["benchmarks"][0]
    document["context"]["date"] = date
    ours["revision"] = {"commit": commit, "dirty": False}
    document["benchmarks"], ours["cases"] = [], []
    ours["plan"]["cases"] = []
    for case, samples in values.items():
        for index, value in enumerate(samples):
            row = copy.deepcopy(template)
            row.update(name=case, run_name=case, repetition_index=index, repetitions=len(samples))
            row["skb"].update(cell=case, pair=index, value=value, n=n)
            document["benchmarks"].append(row)
        ordered = sorted(samples)
        value = {"median": ordered[len(ordered) // 2], "lo": None, "hi": None, "n": len(ordered)} if samples else None
        ours["cases"].append({"case": case, "metric": "busy_ns_per_op", "unit": "ns", "better": "lower",
                              "status": "ok" if samples else "unmeasured", "reason": None if samples else "12 of 100 kept",
                              "value": value, "processes": len(samples), "lost_processes": 0})
        ours["plan"]["cases"].append({"cell": case, "n": n, "batches": 40, "cpus": None})
    ours["ledger"] = [{"case": case, "rows": [{"phase": "op", **counts}]} for case, counts in dict(ledger).items()]
    results.check(document)
    return document


def noise(seed, centre, count=25, sigma=0.004):
    """COUNT times round CENTRE, from SEED."""
    rng = random.Random(seed)
    return [centre * rng.lognormvariate(0, sigma) for _ in range(count)]


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path
