# SPDX-License-Identifier: MIT
"""README.md holds: each of its ```sh blocks runs, but for those whose fence says `not run here` and why."""

import os
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import __main__, children  # noqa: E402

BLOCK_SECONDS = 600
NOT_RUN = "not run here: "
# A time on a machine that is noisy now may be inconclusive; the command has done its work then.
DONE = (0, 3)


def blocks(text):
    """(line number, what follows ```sh, commands) of each block."""
    for found in re.finditer(r"^```sh(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        yield text[:found.start()].count("\n") + 1, found.group(1).strip(), found.group(2)


class Readme(unittest.TestCase):
    def setUp(self):
        self.text = (ROOT / "README.md").read_text(encoding="utf-8")

    def test_every_block_is_run_or_says_why_not(self):
        found = list(blocks(self.text))
        self.assertEqual(len(found), self.text.count("```sh"))
        self.assertTrue(any(not info for _, info, _ in found))
        for line, info, _ in found:
            with self.subTest(line=line):
                self.assertTrue(not info or re.match(f"{NOT_RUN}.+", info), info)

    @unittest.skipIf(os.environ.get("SKBENCH_TEST_QUICK"), "takes minutes: run scripts/skbench test without --quick")
    def test_commands(self):
        for line, info, commands in blocks(self.text):
            if not info:
                with self.subTest(line=line):
                    ended = children.run(["sh", "-eu", "-c", commands], BLOCK_SECONDS, cwd=ROOT, text=True,
                                         stdout=-1, stderr=-1)
                    self.assertIn(ended.status, DONE, f"README.md:{line}: {ended.why(BLOCK_SECONDS)}: {ended.err}")

    def test_the_commands_are_those_that_there_are(self):
        section = self.text.split("## Commands")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE), __main__.COMMANDS)

    def test_files_that_it_names_are_there(self):
        tree = self.text.split("## The tree")[1].split("```")[1]
        for name in re.findall(r"^(\S+/) ", tree, re.MULTILINE):
            self.assertTrue((ROOT / name).is_dir(), name)
        for name in re.findall(r"`((?:scripts|results)/[\w./-]+|LICENSE)", self.text):
            self.assertTrue((ROOT / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
