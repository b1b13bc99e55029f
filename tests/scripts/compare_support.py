# SPDX-License-Identifier: MIT
"""Result documents to compare: what the fake bench measured once, with values put in."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import textwrap
import unittest

import support

CASES = ("skb/clone/frags:0/alloc:slub", "skb/clone/frags:16/alloc:slub", "skb/copy/alloc:slub")
TRIM = "tcp/trim/form:forced/era:6.12/frags:16/partial:1/step:1/clone:alive/complete:same/alloc:slub"


def made(*args):
    """The document of one run of the fake bench, on a machine that was quiet; made once for each ARGS."""
    if args not in made.kept:
        with support.FakeBench() as fake:
            status, out, err = fake.run("run", *args, "--seed", "1", "--out", fake.path / "r.json")
            assert status in (0, 3), (out, err)
            made.kept[args] = (fake.path / "r.json").read_bytes()
    document = json.loads(made.kept[args])
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
            row = {**template, "name": case, "run_name": case, "repetition_index": index, "repetitions": len(samples),
                   "skb": {**template["skb"], "cell": case, "pair": index, "value": value, "n": n}}
            document["benchmarks"].append(row)
        ordered = sorted(samples)
        value = {"median": ordered[len(ordered) // 2], "lo": None, "hi": None, "n": len(ordered)} if samples else None
        ours["cases"].append({"case": case, "metric": "busy_ns_per_op", "unit": "ns", "better": "lower",
                              "status": "ok" if samples else "unmeasured", "reason": None if samples else "12 of 100 kept",
                              "value": value, "processes": len(samples), "lost_processes": 0})
        ours["plan"]["cases"].append({"cell": case, "n": n, "batches": 40, "cpus": None})
    ours["ledger"] = [{"case": case, "rows": [{"phase": "op", **counts}]} for case, counts in dict(ledger).items()]
    return document


def noise(seed, centre, count=25, sigma=0.004):
    """COUNT times round CENTRE, from SEED."""
    rng = random.Random(seed)
    return [centre * rng.lognormvariate(0, sigma) for _ in range(count)]


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


class Tree:
    """A copy of the tool in a directory of its own, so that what it stores lands there; PLAN as in fake_bench.py."""

    def __init__(self, **plan):
        self.temporary = tempfile.TemporaryDirectory(prefix="skbench-tree-")
        self.root = pathlib.Path(self.temporary.name) / "tree"
        shutil.copytree(support.ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "results").mkdir()
        for name in ("results/schema.json", "CMakePresets.json"):
            shutil.copy(support.ROOT / name, self.root / name)
        self.fake = support.FakeBench(**plan)
        (self.fake.bin / "bench_tcp").unlink()
        (self.fake.bin / "bench_tcp_traced").unlink()
        for name in ("bench_skb", "bench_skb_traced"):
            (self.fake.bin / name).symlink_to(support.FAKE)

    def close(self):
        self.fake.temporary.cleanup()
        self.temporary.cleanup()

    def plan(self, **plan):
        self.fake.plan.update(plan)

    def run(self, *args, benches=True, wait=180, **env):
        """`skbench ARGS` in that tree: (status, standard output, standard error)."""
        environment = {**self.fake.environment(), "PYTHONDONTWRITEBYTECODE": "1", **env}
        if not benches:
            del environment["SKBENCH_BENCH_DIR"]
        done = subprocess.run([support.PYTHON, "-m", "skbench_lib", *map(str, args)], cwd=self.root / "scripts",
                              env=environment, capture_output=True, text=True, timeout=wait)
        return done.returncode, done.stdout, done.stderr


CASES_OF_TREE = ["skb/clone/frags:2/alloc:slub", "skb/clone/frags:16/alloc:slub"]

BENCH = textwrap.dedent("""\
    #!/usr/bin/python3 -I
    import importlib.util, json, os, sys
    spec = importlib.util.spec_from_file_location("fake", {fake!r})
    fake = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake)
    plan = json.loads({plan!r})
    taken = os.path.getsize(os.environ["FAKE_STATE"]) if os.path.exists(os.environ["FAKE_STATE"]) else 0
    if taken < plan.pop("until", 1 << 40):
        fake.PLAN.update(plan)
    extra = plan.get("rmw", 0)
    counted = fake.ledger
    def ledger(case):
        answer = counted(case)
        answer["rows"][0]["rmw"] += extra
        return answer
    fake.ledger = ledger
    sys.exit(fake.main(sys.argv[1:]))
    """)

CMAKE = """\
cmake_minimum_required(VERSION 3.25)
project(skbench VERSION 0.1 LANGUAGES NONE)
add_subdirectory(benches)
"""

BENCHES = """\
foreach(name bench_skb bench_skb_traced)
	add_custom_command(OUTPUT ${name} DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/bench.py
		COMMAND install -m 755 ${CMAKE_CURRENT_SOURCE_DIR}/bench.py ${name})
	add_custom_target(make_${name} ALL DEPENDS ${name})
endforeach()
"""


QUICK = bool(os.environ.get("SKBENCH_TEST_QUICK"))
TAKES_A_MINUTE = "takes a minute: run scripts/skbench test without --quick"


@unittest.skipIf(QUICK, TAKES_A_MINUTE)
@unittest.skipUnless(all(map(shutil.which, ("git", "cmake", "ninja"))), "git, cmake or ninja is not there")
class GitTree(unittest.TestCase):
    """A Tree under git that builds its bench binaries, which are the fake one with a plan for each revision."""

    def setUp(self):
        self.tree = Tree(cases=CASES_OF_TREE, sigma=0.001)
        self.addCleanup(self.tree.close)
        (self.tree.root / "benches").mkdir()
        (self.tree.root / "CMakeLists.txt").write_text(CMAKE)
        (self.tree.root / "benches" / "CMakeLists.txt").write_text(BENCHES)
        (self.tree.root / ".gitignore").write_text("/build/\n__pycache__/\n")
        self.git("init", "-q", "-b", "main")
        self.commit("base")

    def git(self, *args):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", *args],
                       cwd=self.tree.root, check=True, capture_output=True)

    def write(self, **plan):
        (self.tree.root / "benches" / "bench.py").write_text(BENCH.format(fake=str(support.FAKE), plan=json.dumps(plan)))

    def commit(self, tag, **plan):
        self.write(**plan)
        (self.tree.root / "benches" / "note").write_text(tag)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", tag)
        self.git("tag", tag)
