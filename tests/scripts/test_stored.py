# SPDX-License-Identifier: MIT
"""What the stored baseline says at the end of a run."""

import copy
import json
import pathlib
import tempfile
import unittest

import compare_support as cs
from skbench_lib import baseline, errors, results, run, sides, stored

A, B = "skb/clone/frags:0/alloc:slub", "skb/copy/alloc:slub"
COUNTS = {A: {"rmw": 3, "page_get": 0}, B: {"rmw": 5, "page_get": 2}}


def kept(values, ledger=COUNTS, **how):
    """A baseline made of a run that measured VALUES."""
    return baseline.reduced(cs.survey(values, ledger, **how), "first")


class Against(unittest.TestCase):
    def setUp(self):
        self.base = kept({A: cs.noise(1, 100), B: cs.noise(2, 200)})

    def judge(self, values, ledger=(), found=None, **condition):
        document = cs.survey(values, ledger)
        document["context"]["skbench"]["fingerprint"]["condition"].update(condition)
        return stored.against([("first", self.base)] if found is None else found, document)

    def test_none(self):
        self.assertEqual(self.judge({A: cs.noise(3, 100)}, found=[]), ("none yet (skbench baseline save NAME)", False))

    def test_equal_times_and_counts(self):
        words, worse = self.judge({A: cs.noise(3, 100), B: cs.noise(4, 200)}, COUNTS)
        self.assertEqual((words, worse), ("first: the ledger of 2 cases is the same; times: 2 equivalent", False))

    def test_what_was_not_measured_is_not_missed(self):
        self.assertEqual(self.judge({A: cs.noise(3, 100)}), ("first: times: 1 equivalent", False))

    def test_a_regression(self):
        words, worse = self.judge({A: cs.noise(3, 110), B: cs.noise(4, 200)})
        self.assertTrue(worse)
        self.assertRegex(words, rf"^first: times: 1 regression, 1 equivalent; confirmed {A} \+\d+\.\d+ % \[\+9")

    def test_few_samples_confirm_nothing(self):
        self.base = kept({A: cs.noise(1, 100, 7)})
        words, worse = self.judge({A: cs.noise(3, 110, 5)})
        self.assertEqual((words, worse), ("first: times: 1 inconclusive", False))

    def test_fifteen_samples_can_confirm_among_two_hundred_cases(self):
        many = {f"{A}/k:{index}": cs.noise(index, 100, 15) for index in range(200)}
        self.base = kept(many, ())
        words, worse = self.judge({**{name: cs.noise(1000 + index, 100, 15) for index, name in enumerate(many)},
                                   f"{A}/k:7": cs.noise(999, 112, 15)})
        self.assertTrue(worse, words)
        self.assertIn(f"confirmed {A}/k:7 ", words)

    def test_a_busy_machine_gets_no_verdict(self):
        words, worse = self.judge({A: cs.noise(3, 110)}, other_cpu_share=0.5)
        self.assertEqual((words, worse), ("first: times: 1 inconclusive; not judged: others used 50 % of the CPUs", False))

    def test_counts_are_exact(self):
        counts = copy.deepcopy(COUNTS)
        counts[B]["page_get"] += 1
        words, worse = self.judge({A: cs.noise(3, 100)}, counts)
        self.assertEqual(words, f"first: 1 count differs, first {B}#op: page_get 2 -> 3; times: 1 equivalent")
        self.assertTrue(worse)

    def test_nothing_in_common(self):
        self.assertEqual(self.judge({"skb/other": cs.noise(3, 100)}), ("first: no case in common", False))

    def test_the_newest_counts(self):
        slow = kept({A: cs.noise(5, 200)}, date="2026-02-01T00:00:00+00:00")
        words, worse = self.judge({A: cs.noise(3, 200)}, found=[("first", self.base), ("second", slow)])
        self.assertEqual((words, worse), ("second: times: 1 equivalent", False))


class Files(unittest.TestCase):
    def test_of_this_machine(self):
        with tempfile.TemporaryDirectory() as path:
            self.assertEqual(stored.baselines("0123abcd", path), [])
            target = pathlib.Path(path) / "results" / "baselines" / "0123abcd" / "first.json"
            results.write(target, kept({A: cs.noise(1, 100)}))
            self.assertEqual([name for name, _ in stored.baselines("0123abcd", path)], ["first"])
            self.assertEqual(stored.baselines("89abcdef", path), [])
            (target.parent / "second.json").write_text('{"a"')
            with self.assertRaisesRegex(results.Invalid, "truncated"):
                stored.baselines("0123abcd", path)


class Conclusion(unittest.TestCase):
    def test_it_sets_the_status(self):
        class Engine:
            interrupted, failure = False, None

        base = kept({A: cs.noise(1, 100)})
        for centre, status in ((100, errors.OK), (110, errors.WORSE)):
            document = cs.survey({A: cs.noise(3, centre)})
            run.conclude(document, [("first", base)], Engine, [])
            ours = document["context"]["skbench"]
            self.assertEqual(ours["exit_status"], status)
            self.assertIn("first: times: ", ours["baseline"])
            results.check(json.loads(json.dumps(document)))
            self.assertEqual(sides.native(document, "x").cases[A].status, sides.OK)


if __name__ == "__main__":
    unittest.main()
