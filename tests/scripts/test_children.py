# SPDX-License-Identifier: MIT
"""Children at work side by side: results in order, an error that ends all of them, and an interrupt that leaves none."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from skbench_lib import children  # noqa: E402


class Each(unittest.TestCase):
    def test_results_in_order(self):
        self.assertEqual(children.each(lambda n: n * n, range(20)), [n * n for n in range(20)])

    def test_an_error_ends_the_others_and_those_that_wait(self):
        def work(n):
            if n == 3:
                raise ValueError("three")
            children.run(["sleep", "60"] if n > 3 else ["true"], 100)

        begin = time.monotonic()
        with self.assertRaisesRegex(ValueError, "three"):
            children.each(work, range(200))
        self.assertLess(time.monotonic() - begin, 50)


class Interrupt(unittest.TestCase):
    """An interrupt at the worst moment: the child runs, and Popen() has not said so yet."""

    def setUp(self):
        self.started = []
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_IGN)):
            self.addCleanup(signal.signal, number, signal.signal(number, handler))

    def popen(self, *args, **how):
        child = self.real(*args, **how)
        self.started.append(child)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # bytecodes, between which it would be raised
            pass
        return child

    def test_no_child_is_left(self):
        self.real = subprocess.Popen
        with mock.patch.object(subprocess, "Popen", self.popen), self.assertRaises(KeyboardInterrupt):
            children.run(["sleep", "60"], 100)
        self.assertEqual([child.returncode for child in self.started], [-signal.SIGKILL])

    def test_delayed(self):
        done = []
        with self.assertRaises(KeyboardInterrupt):
            with children.delayed():
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGTERM)  # ignored before, and still
                done.append(1)
        self.assertEqual((done, signal.getsignal(signal.SIGINT)), ([1], signal.default_int_handler))

    def test_it_cannot_start(self):
        with self.assertRaises(FileNotFoundError):
            children.run(["/no/such/program"], 1)


if __name__ == "__main__":
    unittest.main()
