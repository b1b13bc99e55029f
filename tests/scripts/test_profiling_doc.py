# SPDX-License-Identifier: MIT
"""docs/profiling.md: the commands and flags in it are there, and so are the reasons that it explains."""

import re
import shlex
import unittest

from support import ROOT
from test_readme import blocks

from skbench_lib import __main__ as cli


class ProfilingDoc(unittest.TestCase):
    text = (ROOT / "docs" / "profiling.md").read_text(encoding="utf-8")

    def test_its_commands_are_ones(self):
        count = 0
        for _, _, commands in blocks(self.text):
            for line in commands.splitlines():
                words = shlex.split(line)
                if words[0] == "scripts/skbench":
                    args, rest = cli.parser(words[1]).parse_known_args(words[1:])
                    self.assertEqual(rest, [], line)
                    self.assertTrue(callable(args.func))
                    count += 1
                else:
                    self.assertEqual(words[0], "build/prof/skb-prof", line)
        self.assertEqual(count, 3)

    def test_its_reasons_are_the_programs(self):
        source = " ".join((ROOT / "prof" / name).read_text(encoding="utf-8") for name in ("count.c", "events.c", "main.c"))
        source = re.sub(r'"\s*"', "", source)
        table = self.text.split("| reason | what helps |")[1].split("\n\n")[0]
        reasons = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[1:]
        self.assertGreater(len(reasons), 7)
        for reason in reasons:
            for part in re.split(r"\.\.\.|: a container|\d|cannot be mapped: the|\((?=kptr)|this CPU's PMU", reason):
                if len(part.strip(" :,()=")) > 3:
                    with self.subTest(reason):
                        self.assertIn(part.strip(" :,()="), source)

    def test_its_files_are_the_sessions(self):
        source = (ROOT / "scripts" / "skbench_lib" / "profile.py").read_text(encoding="utf-8")
        for name in ("report.txt", "session.json", "flame.svg", "folded.txt", "lines.txt", "c2c.txt", "perf.data"):
            self.assertIn(f"`{name}`", self.text)
            self.assertIn(f'"{name}"', source)


if __name__ == "__main__":
    unittest.main()
