# SPDX-License-Identifier: MIT
"""python3 -m skbench_lib.unittests DIRECTORY REPORT: runs the unittest files of DIRECTORY, with a JSON report.

The report is a list of objects: name, outcome (passed, failed or skipped), seconds, text. Exit status 1 if one failed
or there is none.
"""

import json
import os
import sys
import time
import unittest


class Result(unittest.TextTestResult):
    """Notes how each test ended."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rows = {}
        self.begin = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def _note(self, test, outcome, text=""):
        name = test.id()
        # A failed sub-test fails its test, whatever comes after it.
        if self.rows.get(name, {}).get("outcome") != "failed":
            seconds = round(time.monotonic() - self.begin, 3) if self.begin else 0.0
            self.rows[name] = {"name": name, "outcome": outcome, "seconds": seconds, "text": text}

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failed", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "failed", f"{err[0].__name__}: {err[1]}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self._note(test, "passed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._note(test, "failed", "passes, although it is marked as an expected failure")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed", f"{subtest.id()}: {err[1]}")


def main(directory, report):
    # What let this program find its package must not lead the tests' children away from theirs.
    for variable in ("PYTHONPATH", "PYTHONSAFEPATH"):
        os.environ.pop(variable, None)
    suite = unittest.defaultTestLoader.discover(directory)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    with open(report, "w", encoding="utf-8") as out:
        json.dump(list(result.rows.values()), out, indent=1)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
