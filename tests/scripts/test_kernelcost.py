# SPDX-License-Identifier: MIT
"""The model's instructions beside the kernel's: the stored files fit together, and what is missing is said."""

import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

from support import ROOT  # noqa: F401

from skbench_lib import casefile, kernelcost
from skbench_lib.errors import UserError

STEM = "gcc12"


def stored():
    """{era: pairs} with the kernel's and the model's stored costs."""
    return kernelcost.stored_pairs(STEM)


class Stored(unittest.TestCase):
    def test_every_ratio_outside_has_its_reason(self):
        self.assertEqual(list(kernelcost.unreasoned(stored(), kernelcost.read_reasons())), [])

    def test_a_missing_and_a_needless_reason_are_said(self):
        reasons = kernelcost.read_reasons()
        del reasons["get_page"]
        reasons["free_companion"] = "none is needed"
        said = list(kernelcost.unreasoned(stored(), reasons))
        self.assertEqual([re.search(r"get_page|free_companion", text)[0] for text in said],
                         ["get_page", "get_page", "free_companion"])

    def test_the_model_was_counted_for_these_pairs(self):
        model = kernelcost.read_model(STEM)
        self.assertEqual(set(model), {(era, pair.operation, pair.frags, pair.case) for era in kernelcost.ERAS
                                      for pair in kernelcost.read_pairs(era)})

    def test_pairs_name_operations_that_are_benchmarked(self):
        known = {"/".join(case.split("/")[:2])
                 for case in casefile.read(ROOT / "results" / "ledger" / "cases.txt")}
        for pair in kernelcost.read_pairs("6.12"):
            self.assertIn("/".join(pair.case.split("/")[:2]), known)
            self.assertIn("#", pair.case)

    def test_the_table_is_narrow(self):
        reasons = kernelcost.read_reasons()
        for era, pairs in stored().items():
            for line in kernelcost.table(era, kernelcost.kernel_file(era), pairs, reasons):
                self.assertLessEqual(len(line), 80, line)


class Tables(unittest.TestCase):
    def pair(self, operation, frags, kernel, model):
        pair = kernelcost.Pair(operation, frags, f"skb/{operation}#x")
        pair.kernel, pair.model = kernel, model
        return pair

    def test_slopes_and_variants(self):
        pairs = [self.pair("x", 0, 10, 10), self.pair("x", 2, 100, 80), self.pair("x", 16, 240, 150),
                 self.pair("x_cloned", 16, 480, 225), self.pair("once", 2, 7, 7)]
        self.assertEqual(list(kernelcost.slopes(pairs)), [("x", 10.0, 5.0)])
        self.assertEqual(list(kernelcost.variants(pairs)), [("x", 16, 2.0, 1.5)])

    def test_what_lies_outside(self):
        self.assertEqual([self.pair("x", 0, 100, model).outside() for model in (49, 50, 150, 151)],
                         [True, False, False, True])
        self.assertTrue(self.pair("x", 0, 0, 1).outside())


class Files(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name)
        patch = mock.patch.object(kernelcost, "directory", lambda: self.path)
        patch.start()
        self.addCleanup(patch.stop)

    def test_broken_files(self):
        for name, text, read, words in (
                ("pairs.txt", "x 1\n", lambda: kernelcost.read_pairs("6.1"), "pairs.txt:1: not 'operation frags case'"),
                ("pairs.txt", "# c\nx 1,2 a\nx 2 b\n", lambda: kernelcost.read_pairs("6.1"), "pairs.txt:3: x with 2"),
                ("reasons.txt", "x:\n", kernelcost.read_reasons, "reasons.txt:1: not 'operation: reason'"),
                ("reasons.txt", "x: a\nx: b\n", kernelcost.read_reasons, "reasons.txt:2:"),
                ("6.1.1.csv", "a,b\n", lambda: kernelcost.read_kernel(self.path / "6.1.1.csv"), "the columns are not"),
                ("6.1.1.csv", "operation,frags,instructions\nx,1,y\n",
                 lambda: kernelcost.read_kernel(self.path / "6.1.1.csv"), "6.1.1.csv:2: a number is none")):
            with self.subTest(text):
                (self.path / name).write_text(text)
                with self.assertRaises(UserError) as caught:
                    read()
                self.assertIn(words, str(caught.exception))

    def test_a_pair_that_was_not_counted_is_said(self):
        (self.path / "pairs.txt").write_text("x 1 skb/x/frags:{frags}#y\n")
        for name in ("6.1.1.csv", "6.12.1.csv"):
            (self.path / name).write_text("operation,frags,instructions\nx,1,7\n")
        (self.path / "model-m.csv").write_text("era,operation,frags,case,instructions\n6.1,x,1,skb/x/frags:1#y,8.0\n")
        with self.assertRaises(UserError) as caught:
            kernelcost.stored_pairs("m")
        self.assertIn("has no x with 1 frag of era 6.12: skbench ledger --kernel --write", str(caught.exception))

    def test_the_newest_kernel_of_an_era(self):
        for name in ("6.1.9-1.csv", "6.1.10-1.csv", "6.12.2-1.csv"):
            (self.path / name).touch()
        self.assertEqual(kernelcost.kernel_file("6.1").name, "6.1.10-1.csv")
        with self.assertRaises(UserError) as caught:
            kernelcost.kernel_file("3.4")
        self.assertIn("--yardstick", str(caught.exception))


if __name__ == "__main__":
    sys.exit(unittest.main())
