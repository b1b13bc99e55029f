# SPDX-License-Identifier: MIT
"""Budgets of the kernel's TCP beside the model: stored figures, residuals, and answers that are none."""

import csv
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from support import ROOT

from skbench_lib import kernelcost, oraclebudget as budget
from skbench_lib.errors import UserError


class Kernel:
    release = "6.1.0-1-amd64"


def stored():
    """{era: rows} of every stored budget."""
    found = {}
    for path in sorted((ROOT / "results" / "kernel").glob("budget-*.csv")):
        with open(path, encoding="utf-8", newline="") as source:
            rows = [(row["shape"], row["what"], float(row["per_65160_bytes"])) for row in csv.DictReader(source)]
        found[".".join(path.stem.removeprefix("budget-").split(".")[:2])] = rows
    return found


def lines(era, rows, problems):
    pages = {"pages": 4096, "zone_lock_alloc": 65, "zone_lock_free": 65}
    return list(budget.table(era, Kernel, rows, budget.model(era), pages, problems))


class Stored(unittest.TestCase):
    def test_every_residual_is_named(self):
        self.assertEqual(sorted(stored()), sorted(kernelcost.ERAS))
        for era, rows in stored().items():
            problems = []
            for line in lines(era, rows, problems):
                self.assertLessEqual(len(line), 80, line)
            self.assertEqual(problems, [], era)

    def test_one_that_is_not_named_is_said(self):
        rows = [(shape, what, number + (what == "skb_clone")) for shape, what, number in stored()["6.1"]]
        problems = []
        self.assertIn("clones: NO RESIDUAL is named", lines("6.1", rows, problems))
        self.assertEqual(problems, ["results/kernel/residuals.txt does not name 'clones'"])

    def test_the_stored_files_have_no_problem(self):
        for era in kernelcost.ERAS:
            self.assertEqual(budget.stored_problems(era), [])

    def test_what_the_stored_files_lack_is_said(self):
        with mock.patch.object(budget, "residuals", dict):
            said = budget.stored_problems("6.1")
        self.assertIn("does not name 'heads freed', era 6.1: kernel 2.000, model 1.000", said[1])
        with mock.patch.object(budget, "SHAPES", [*budget.SHAPES, budget.Shape("by-post", 0)]):
            said = budget.stored_problems("6.12")
        self.assertEqual(said, ["results/kernel has no budget of a 6.12 kernel for by-post: skbench oracle --era 6.12 "
                                "--budget measures it"])

    def test_the_mean_size_of_an_sk_buff(self):
        for era in kernelcost.ERAS:
            for shape in budget.MPTCP_MTU:
                self.assertGreater(budget.mean_skb_bytes(era, shape), 1448)
        with self.assertRaises(UserError) as caught:
            budget.mean_skb_bytes("6.1", "by-post")
        self.assertIn("no budget of a 6.1 kernel that moved bytes as by-post", str(caught.exception))

    def test_one_case_of_the_ledger(self):
        for keys in ("era:6.1", "era:6.1 variant:by_post"):
            with self.assertRaises(UserError) as caught:
                budget.phases("tcp/defer", keys, ("read",))
            self.assertIn("not one", str(caught.exception))

    def test_every_shape_is_there(self):
        for era, rows in stored().items():
            self.assertEqual({shape for shape, _, _ in rows if shape != "pages"},
                             {shape.name for shape in budget.SHAPES}, era)


class Answers(unittest.TestCase):
    def test_numbers(self):
        found = budget.parse("bytes,130320\nskb_clone,4\nsend_skb,2\nsend_bytes,130320\nsend_ns,10\nzone_lock,0\n")
        self.assertEqual(budget.rows({"x": found}), [("x", "skb_clone", 2.0), ("x", "send_skb", 1.0),
                                                     ("x", "mean_skb_bytes", 65160.0),
                                                     ("x", "send_instructions", 5.0)])

    def test_errors(self):
        for text, words in (("error,no connection over loopback: -99\n", "no connection over loopback: -99"),
                            ("skb_clone,many\n", "'skb_clone,many', which is no count")):
            with self.assertRaises(UserError) as caught:
                budget.parse(text)
            self.assertIn(words, str(caught.exception))

    def test_residuals(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "residuals.txt"
            with mock.patch.object(kernelcost, "directory", lambda: pathlib.Path(scratch)):
                for text in ("clones\n", "clones:\n", "clones: a\nclones: b\n"):
                    path.write_text(text)
                    self.assertRaises(UserError, budget.residuals)


if __name__ == "__main__":
    sys.exit(unittest.main())
