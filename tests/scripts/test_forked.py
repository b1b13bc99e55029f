# SPDX-License-Identifier: MIT
"""Reading two files at once: the same as one after the other, and no error lost on the way."""

import os
import pathlib
import signal
import tempfile
import unittest
from unittest import mock

import compare_support as cs
from skbench_lib import forked, results, sides
from skbench_lib.errors import UserError


def fail(error):
    raise error


class Forked(unittest.TestCase):
    def test_result(self):
        self.assertEqual(forked.Forked(lambda a, b: {"sum": a + b}, 1, 2).result(), {"sum": 3})

    def test_error(self):
        with self.assertRaises(results.Invalid) as caught:
            forked.Forked(fail, results.Invalid("x.json: file is empty", 4)).result()
        self.assertEqual((str(caught.exception), caught.exception.status), ("x.json: file is empty", 4))

    def test_child_killed(self):
        with self.assertRaises(UserError) as caught:
            forked.Forked(lambda: os.kill(os.getpid(), signal.SIGKILL)).result()
        self.assertIn("ended before it was done", str(caught.exception))

    def test_dropped(self):
        child = forked.Forked(signal.pause)
        pid = child._child
        child.drop()
        child.drop()
        with self.assertRaises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


class Two(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="skbench-two-")
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)

    def both(self, base, new):
        with mock.patch.object(sides, "LARGE", 1), \
                mock.patch.object(sides.fingerprint, "allowed_cpus", lambda: [0, 1]):
            return sides.load_two(base, new)

    def test_the_same(self):
        names = [cs.write(self.path / f"{k}.json", cs.survey({f"skb/a/k:{k}": [1.5, 1.25]}, {f"skb/a/k:{k}": {"rmw": k}}))
                 for k in (1, 2)]
        for side, name in zip(self.both(*names), names):
            alone = sides.load(name)
            self.assertEqual(side.about(), alone.about())
            self.assertEqual({key: vars(case) for key, case in side.cases.items()},
                             {key: vars(case) for key, case in alone.cases.items()})
            self.assertEqual(side.ledger, alone.ledger)

    def test_errors(self):
        good = cs.write(self.path / "good.json", cs.survey({"skb/a": [1.0]}))
        for names, word in (((good, self.path / "b"), "b: "), ((self.path / "b", good), "b: "),
                            ((self.path / "a", self.path / "b"), "a: ")):
            for name in names:
                if name != good:
                    name.write_text("{")
            with self.subTest(names), self.assertRaises(UserError) as caught:
                self.both(*names)
            self.assertIn(word + "truncated", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
