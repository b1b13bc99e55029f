# SPDX-License-Identifier: MIT
"""docs/regressions.md holds: every command in it is run, in a small tree whose bench binaries are the fake one; the
verdicts and exit statuses that it names are those that there are."""

import re
import shlex
import shutil
import subprocess
import unittest

import compare_support as cs
import support
from skbench_lib import compare, errors, stats
from test_readme import blocks

CASES = [f"skb/{name}/era:6.12/frags:2" for name in ("alloc_skb", "alloc_skb_fclone", "pskb_expand_head", "skb_clone")]
# A machine that is busy while it is tested makes a time inconclusive; the command has done its work then.
DONE = (0, 3)


class RegressionsDoc(cs.GitTree):
    """The commands, in order, as a reader would type them."""

    def setUp(self):
        super().setUp()
        self.text = (support.ROOT / "docs" / "regressions.md").read_text(encoding="utf-8")
        self.tree.plan(cases=CASES)
        shutil.copytree(support.ROOT / "results" / "instructions", self.tree.root / "results" / "instructions",
                        dirs_exist_ok=True)

    def commands(self):
        return [line for _, info, text in blocks(self.text) for line in text.splitlines() if line]

    def test_every_block_is_a_list_of_commands(self):
        self.assertEqual(len(list(blocks(self.text))), self.text.count("```sh"))
        self.assertGreater(len(self.commands()), 12)

    def test_every_command(self):
        self.git("tag", "v1.0")
        environment = {**self.tree.fake.environment(), "SKBENCH_NO_INSTALL": "1"}
        for line in self.commands():
            words = shlex.split(line)
            if words[1:2] == ["ledger"]:  # it counts the real cases: tests of its own, and the README's
                continue
            with self.subTest(line=line):
                env = dict(environment)
                if words[1:2] == ["duet"]:
                    del env["SKBENCH_BENCH_DIR"]
                done = subprocess.run(["sh", "-eu", "-c", line], cwd=self.tree.root, env=env, capture_output=True, text=True,
                                      timeout=300)
                self.assertIn(done.returncode, DONE, done.stderr)

    def test_the_words(self):
        section = self.text.split("| verdict |")[1].split("\n\n")[0]
        named = {word.strip() for cell in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE) for word in cell.split(",")}
        known = {*stats.VERDICTS, compare.IDENTICAL, compare.NOT_COMPARABLE, compare.MISSING, compare.NEW,
                 compare.NO_BASELINE, compare.FAILED_CASE, compare.UNMEASURED}
        self.assertEqual(named - {"verdict", "---"}, known)
        statuses = {int(number) for number in re.findall(r"^\| (\d) \|", self.text, re.MULTILINE)}
        self.assertEqual(statuses, {errors.OK, errors.WORSE, errors.USAGE, errors.INCONCLUSIVE, errors.IMPOSSIBLE, errors.FAILED})


if __name__ == "__main__":
    unittest.main()
