# SPDX-License-Identifier: MIT
"""Large results: their rows are the parser's, and a file is read that way only if nothing in it is unusual."""

import copy
import io
import json
import math
import os
import pathlib
import random
import re
import tempfile
import unittest
from unittest import mock

import compare_support as cs
from skbench_lib import results, rows, sides
from skbench_lib.errors import UserError

SEED = os.environ.get("SKBENCH_SEED") or str(random.SystemRandom().randrange(1 << 32))
NUMBERS = ("0", "1", "17", "999999999999999", "0.5", "120.25", "1e-07", "2.5e+16", "-3", "-0.25", "0.0", "-0.0", "-0", "00", "1.",
           ".5", "1e400", "9" * 20, "1e999", "0e0", "0.000", "1E5", "+1", "1e-400")
STRINGS = ('""', '"ns"', '"a b/c:1"', '"\u00b5"', '"\\u0041"', '"\\""', '"baseline"', '"a\tb"', '"\\"')
OTHERS = ("true", "false", "null", "NaN", "Infinity", "True", "[]", "{}")


def kept(row):
    """What is kept of a whole row."""
    found = {key: value for key, value in row.items() if key in rows.KEPT}
    found["skb"] = {key: value for key, value in row["skb"].items() if key in rows.KEPT_SKB}
    return found


def quick(text):
    return list(rows.document(io.BytesIO(text.encode()))["benchmarks"])


class Rows(unittest.TestCase):
    def setUp(self):
        self.document = cs.survey({f"skb/a/k:{k}": cs.noise(k, 100 + k, 9) for k in range(5)}, {"skb/a/k:0": {"rmw": 1}})

    def test_the_parser_s(self):
        for indent in (None, 1):
            for chunk in (4096, 1 << 20):
                text = json.dumps(self.document, indent=indent) + "\n"
                with self.subTest(indent=indent, chunk=chunk), mock.patch.multiple(rows, CHUNK=chunk, MOST_BYTES=4096):
                    self.assertEqual(quick(text), [kept(row) for row in self.document["benchmarks"]])

    def test_parses_one_row_of_a_kind(self):
        parsed = []
        with mock.patch.object(rows, "Layout", lambda text, make=rows.Layout: parsed.append(text) or make(text)):
            quick(json.dumps(self.document))
            self.assertEqual(len(parsed), 1)
            for number, row in enumerate(self.document["benchmarks"]):
                if number % 2:
                    row["skb"]["report"] = {"packets": number}
            self.assertEqual(len(quick(json.dumps(self.document))), 45)
            self.assertEqual(len(parsed), 3)

    def test_too_many_kinds(self):
        for number, row in enumerate(self.document["benchmarks"]):
            row["skb"][f"own{number}"] = 1
        with self.assertRaises(rows.Unlike):
            quick(json.dumps(self.document))

    def test_not_as_expected(self):
        """Each of these is for the parser and the checker to judge: they take some and refuse others."""
        text = json.dumps(self.document)
        row = text.index('"benchmarks": [') + len('"benchmarks": [')
        last = text.rindex('"time_unit": "ns"')
        for what, changed in (
                ("no rows", json.dumps({**self.document, "benchmarks": []})),
                ("rows first", json.dumps({"benchmarks": self.document["benchmarks"], "context": self.document["context"]})),
                ("more behind the rows", text[:-1] + ', "x": 1}'), ("two documents", text + "{}"), ("cut", text[:-1]),
                ("cut in a row", text[:last]), ("another unit", text[:last] + text[last:].replace('"ns"', '"us"', 1)),
                ("double key", text[:last] + '"threads": 1, ' + text[last:]), ("a comma more", text[:-2] + ",]}"),
                ("no comma", text.replace("}}, {", "}} {", 1)), ("not a row", text[:row] + "7, " + text[row:]),
                ("not UTF-8", text), ("NaN", re.sub('"p90": [0-9.]+', '"p90": NaN', text)),
                ("below the least", text.replace('"batches": 40', '"batches": 0')),
                ("a blank that is none", text[:last] + "\u00a0" + text[last:])):
            data = changed.encode()
            if what == "not UTF-8":
                data = data[:row + 10] + b"\xff" + data[row + 10:]
            with self.subTest(what), self.assertRaises(rows.Unlike):
                list(rows.document(io.BytesIO(data))["benchmarks"])


class Scalars(unittest.TestCase):
    def test_keep_the_rule(self):
        """What an expression takes is JSON, keeps the rule, and is a number that a double holds."""
        rng = random.Random(SEED)
        rules = [{}, {"const": "ns"}, {"enum": ["a", "baseline"]}, {"pattern": "^a", "type": "string"}]
        rules += [{"type": kind, **limit} for kind in ("integer", "number", ["number", "null"], "string", "boolean")
                  for limit in ({}, {"minimum": 0}, {"minimum": 1}, {"minimum": 2.5}, {"exclusiveMinimum": 0},
                                {"exclusiveMinimum": 3}, {"minimum": 0, "exclusiveMinimum": 0}, {"minLength": 1})]
        tokens = list(NUMBERS + STRINGS + OTHERS[:4])
        tokens += ["".join(rng.choice("0123456789.eE+-\"\\ ntu\x7f") for _ in range(rng.randrange(1, 9))) for _ in range(300)]
        taken = 0
        for rule in rules:
            keeps = results.compiled(rule)
            for like in NUMBERS + STRINGS + OTHERS:
                try:
                    if not keeps(results.parse(like.encode(), "x")):
                        continue
                except UserError:
                    continue
                expression = re.compile(rows.scalar(like, rule)) if like not in ("[]", "{}") else None
                for token in tokens if expression else ():
                    if expression.fullmatch(token):
                        value = results.parse(token.encode(), f"seed {SEED}: {token} like {like}")
                        self.assertTrue(keeps(value), f"seed {SEED}: {token} like {like} under {rule}")
                        self.assertFalse(isinstance(value, float) and not math.isfinite(value), token)
                        taken += token != like
        self.assertGreater(taken, 1000)


class Loaded(unittest.TestCase):
    def test_the_same_side(self):
        with tempfile.TemporaryDirectory(prefix="skbench-rows-") as scratch:
            path = pathlib.Path(scratch)
            document = cs.survey({f"skb/a/k:{k}": cs.noise(k, 100 + k, 9) for k in range(3)})
            for number, row in enumerate(document["benchmarks"]):
                row["skb"].update(side=("baseline", "variant")[number % 2], cell="skb/a", pair=number // 2)
            document["benchmarks"][3]["skb"]["side"] = "control_a"
            document["benchmarks"][4]["skb"]["inject"] = 5
            name = cs.write(path / "a.json", document)
            small = sides.load(name)
            with mock.patch.object(rows, "LARGE", 0), mock.patch.object(results, "parse", side_effect=AssertionError):
                large = sides.load(name)
            self.assertEqual(large.about(), small.about())
            self.assertEqual({key: vars(case) for key, case in large.cases.items()},
                             {key: vars(case) for key, case in small.cases.items()})
            self.assertEqual(sum(len(case.values) for case in large.cases.values()), 25)

    def test_what_is_wrong_is_told(self):
        with tempfile.TemporaryDirectory(prefix="skbench-rows-") as scratch, mock.patch.object(rows, "LARGE", 0):
            document = cs.survey({"skb/a": cs.noise(1, 100, 9)})
            worse = copy.deepcopy(document)
            worse["benchmarks"][7]["skb"]["value"] = 1e30
            for what, text, word in (("cut", json.dumps(document)[:-1], "truncated at byte"),
                                     ("value", json.dumps(worse), "expected 1e-09 to 1e+18, is 1e+30")):
                name = pathlib.Path(scratch) / "a.json"
                name.write_text(text)
                with self.subTest(what), self.assertRaises(UserError) as caught:
                    sides.load(name)
                self.assertIn(word, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
