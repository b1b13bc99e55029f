# SPDX-License-Identifier: MIT
"""Damaged files: results of ours and of Google Benchmark, baselines, histories, ledgers, instruction counts, lists of
cases and of names, states of a campaign. Never a traceback: one line and status 2, or a report with a status that there
is; and nothing is written.

SKBENCH_FUZZ=SEED/KIND/NUMBER runs one of them again. --nightly goes on for ten minutes.
"""

import contextlib
import copy
import io
import json
import os
import pathlib
import random
import tempfile
import time
import unittest
from unittest import mock

import compare_support as cs
from skbench_lib import __main__, aa, baseline, casefile, instructions, ledger, rows, sides, tree
from skbench_lib.errors import UserError

ROUNDS = 40            # of each kind in a normal run
NIGHTLY_SECONDS = 600
REPLAY = os.environ.get("SKBENCH_FUZZ")
SEED = REPLAY.split("/")[0] if REPLAY else str(random.SystemRandom().randrange(1 << 32))
A, B = "skb/clone/frags:0/alloc:slub", "skb/copy/alloc:slub"
TOKENS = (b"null", b"true", b"-1", b"0", b"1e400", b"NaN", b"1e999", b"{}", b"[]", b'""', b'"x"', b"9" * 400, b"1e-400",
          b"[" * 3000, b'{"a":' * 3000, b"\xff", b"\xef\xbb\xbf", b"\x00", b"-0.0", b'"\\ud800"', b",", b"\n", b"\r\n")
VALUES = (None, True, False, -1, 0, 0.0, 1, 1e308, -1e308, 5e-324, 10 ** 30, 2 ** 64, "", "x", "\u00b5", "\ud800", "a/b",
          [], {}, [None], [[]], {"": None}, "2026-13-45", "1.0", "9.9")


def nodes(value, path=()):
    """Paths of all that is inside VALUE."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        found += nodes(below, (*path, key))
    return found


def damaged_tree(rng, document):
    """DOCUMENT with a few of its parts replaced, taken away or doubled, as bytes."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 2, 5))):
        *way, last = rng.choice(nodes(document))
        place = document
        for key in way:
            place = place[key]
        how = rng.random()
        if how < 0.6:
            place[last] = copy.deepcopy(rng.choice(VALUES))
        elif how < 0.8 or not isinstance(place, list):
            del place[last]
        else:
            place.append(copy.deepcopy(place[last]))
        if not nodes(document):
            break
    return json.dumps(document).encode()


def damaged_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, how = rng.randrange(len(data) + 1), rng.randrange(6)
        size = rng.choice((1, 2, 10, 200))
        if how == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del data[at:at + size]
        elif how == 2:
            data[at:at] = rng.choice(TOKENS)
        elif how == 3:
            data[at:at + size] = rng.choice(TOKENS)
        elif how == 4:
            data[at:at] = data[at:at + size]
        else:
            del data[at:]
    return bytes(data)


def documents():
    """{kind: a good document} of what is JSON."""
    result = cs.survey({A: cs.noise(1, 100, 8), B: cs.noise(2, 50, 8)}, {A: {"rmw": 3}})
    made = {"compiler": "gcc", "version": "12.2.0", "machine": "x86_64", "libc": "glibc 2.36", "flags": "-O2",
            "tunables": "t", "operations": 1000}
    result["context"]["skbench"]["instructions"] = {"made_with": made, "rows": [{"case": A, "instructions": 7.0}]}
    rows = [{"name": "A/threads:2", "run_name": "A", "run_type": "iteration", "repetition_index": index, "threads": 2,
             "iterations": 1000, "real_time": 10.0 + index, "cpu_time": 9.0, "time_unit": "ns"} for index in range(9)]
    rows += [{"name": "A_mean", "run_name": "A", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 11.0,
              "cpu_time": 1.0, "time_unit": "us", "iterations": 9}, {"name": "B", "error_occurred": True}]
    return {"result": result, "baseline": baseline.reduced(result, "kept"),
            "benchmark": {"context": {"num_cpus": 2, "library_version": "v1.8.4", "json_schema_version": 1},
                          "benchmarks": rows},
            "counts": {"command": "instructions", "revision": "c" * 40, "dirty": False, "made_with": made,
                       "rows": [{"case": A, "instructions": 313.0}, {"case": B, "instructions": 40.1}]}}


class Fuzz(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="skbench-fuzz-")
        cls.addClassCleanup(temporary.cleanup)
        cls.path = pathlib.Path(temporary.name)
        cls.documents = documents()
        cls.good = {kind: cs.write(cls.path / f"{kind}.json", document) for kind, document in cls.documents.items()}
        cls.history = cls.path / "history"
        for index in range(16):
            cs.write(cls.history / f"{index}.json", cs.survey({A: cs.noise(index, 100 + 10 * (index > 9), 8)},
                                                              date=f"2026-01-{index + 1:02}T00:00:00+00:00"))
        stored = tree.repo_root() / "results"
        cls.texts = {"ledger": cls.small(stored / "ledger" / "skb.csv"), "cases": (stored / "ledger" / "cases.txt").read_bytes(),
                     "csv": cls.small(stored / "instructions" / "gcc12.csv"), "aliases": b"skb/a skb/b\nskb/b skb/c\n# x\n"}
        settings = {"schema": "s", "kinds": {"aa": 0}}
        done = {"duet": 0, "loaded": False, "done": [{"kind": "aa"}]}
        cls.texts["state"] = (json.dumps(settings) + "\n" + (json.dumps(done) + "\n") * 2).encode()
        cls.settings = settings
        print(f"seed {SEED}", end=" ", flush=True)

    @staticmethod
    def small(path):
        return b"".join(path.read_bytes().splitlines(True)[:12])

    def rounds(self, kind):
        """(number, random.Random, message) of each round."""
        if REPLAY:
            _, wanted, number = REPLAY.split("/")
            numbers = [int(number)] if wanted == kind else []
        else:
            numbers = self.numbers()
        for number in numbers:
            yield random.Random(f"{SEED}/{kind}/{number}"), f"again: SKBENCH_FUZZ={SEED}/{kind}/{number}"

    @staticmethod
    def numbers():
        if not os.environ.get("SKBENCH_TEST_NIGHTLY"):
            yield from range(ROUNDS)
            return
        number, end = 0, time.monotonic() + NIGHTLY_SECONDS / 10  # kinds
        while time.monotonic() < end:
            yield number
            number += 1

    def command(self, message, *args):
        """Runs `skbench ARGS` here; checks what it says and that it leaves nothing behind."""
        before = sorted(self.path.rglob("*"))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = __main__.main([str(arg) for arg in args])
            except BaseException as error:
                raise AssertionError(f"{message}: {type(error).__name__}: {error}") from error
        said = err.getvalue()
        self.assertIn(status, (0, 1, 2, 3, 4, 5), message)
        if status == 2:
            self.assertEqual((out.getvalue(), said.count("\n")), ("", 1), message)
            self.assertTrue(said.startswith("skbench: "), f"{message}: {said}")
        else:
            self.assertTrue(out.getvalue() or status in (3, 4), message)
        self.assertEqual(sorted(self.path.rglob("*")), before, message)
        return status

    def damage(self, rng, kind):
        document = self.documents[kind]
        return damaged_tree(rng, document) if rng.random() < 0.6 else damaged_bytes(rng, json.dumps(document).encode())

    def compared(self, kind):
        seen = set()
        target = self.path / f"damaged-{kind}.json"
        for rng, message in self.rounds(kind):
            target.write_bytes(self.damage(rng, kind))
            pair = (self.good[kind], target) if rng.random() < 0.5 else (target, self.good[kind])
            seen.add(self.command(message, "compare", *pair, *rng.choice(((), ("--lkp",), ("--markdown", "--all"),
                                                                          ("--force",), ("--json", "-")))))
        if not REPLAY:
            self.assertIn(2, seen)

    def test_results(self):
        self.compared("result")

    def test_rows_of_large_results(self):
        """A file is the same side, or has the same fault, whether it is large or not."""
        target = self.path / "damaged-rows.json"
        good = self.documents["result"]
        for rng, message in self.rounds("rows"):
            document = {**good, "benchmarks": good["benchmarks"] * 3}
            text = json.dumps(document, indent=rng.choice((None, 1))).encode()
            rows_at = text.index(b'"benchmarks"')
            target.write_bytes(damaged_tree(rng, document) if rng.random() < 0.4
                               else text[:rows_at] + damaged_bytes(rng, text[rows_at:]))
            with mock.patch.multiple(rows, LARGE=0, CHUNK=rng.choice((3000, 5000, rows.CHUNK)), MOST_BYTES=3000):
                large = self.outcome(target)
            self.assertEqual(large, self.outcome(target), message)

    @staticmethod
    def outcome(target):
        try:
            side = sides.load(target)
        except UserError as error:
            return str(error)
        return side.about(), side.notes, {name: vars(case) for name, case in side.cases.items()}, side.ledger

    def test_results_of_google_benchmark(self):
        self.compared("benchmark")

    def test_baselines(self):
        self.compared("baseline")

    def test_instruction_counts(self):
        self.compared("counts")

    def test_histories(self):
        victim = self.history / "8.json"
        good = victim.read_bytes()
        self.addCleanup(victim.write_bytes, good)
        for rng, message in self.rounds("history"):
            document = json.loads(good)
            victim.write_bytes(damaged_tree(rng, document) if rng.random() < 0.6 else damaged_bytes(rng, good))
            # One broken file is told, and the others are looked at.
            self.assertIn(self.command(message, "history", self.history, "--busy"), (0,), message)

    def only_user_errors(self, kind, name, read):
        target = self.path / kind / name
        target.parent.mkdir(exist_ok=True)
        for rng, message in self.rounds(kind):
            target.write_bytes(damaged_bytes(rng, self.texts[kind]))
            try:
                read(target)
            except UserError as error:
                self.assertIn(error.status, (2, 4), message)
                self.assertNotIn("\n", str(error), message)
            except BaseException as error:
                raise AssertionError(f"{message}: {type(error).__name__}: {error}") from error

    def test_ledgers(self):
        self.only_user_errors("ledger", "skb.csv", lambda path: ledger.read_stored(path.parent))

    def test_lists(self):
        self.only_user_errors("cases", "cases.txt", casefile.read)
        self.only_user_errors("aliases", "aliases.txt", sides.read_aliases)

    def test_stored_instructions(self):
        self.only_user_errors("csv", "gcc12.csv", lambda path: instructions.read_stored(path.parent, "gcc12"))

    def test_states(self):
        self.only_user_errors("state", "state.jsonl", lambda path: aa.State(path, self.settings))


if __name__ == "__main__":
    unittest.main()
