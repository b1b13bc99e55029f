# SPDX-License-Identifier: MIT
"""docs/add-a-variant.md, followed to the letter in a copy of the tree."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from skbench_lib import tree  # noqa: E402


@unittest.skipIf(os.environ.get("SKBENCH_TEST_QUICK"), "it builds a tree: left out of the quick tests")
class Followed(unittest.TestCase):
    def test_it(self):
        text = (ROOT / "docs" / "add-a-variant.md").read_text(encoding="utf-8")
        path = re.search(r"Put this into `([^`]+)`", text).group(1)
        source = re.search(r"```c\n(.*?)```", text, re.DOTALL).group(1)
        commands = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
        with tempfile.TemporaryDirectory() as scratch:
            copy = pathlib.Path(scratch) / "skbench"
            for name in tree.tracked_files(ROOT):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
            (copy / path).parent.mkdir(exist_ok=True)
            (copy / path).write_text(source, encoding="utf-8")
            ledgers = {}
            for command in commands:
                if command.startswith("scripts/skbench"):
                    command += f" --budget 3 --out {scratch}/r.json"
                done = subprocess.run(command, shell=True, cwd=copy, capture_output=True, text=True, timeout=600)
                self.assertEqual(done.returncode, 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
                if "--skb_ledger" in command:
                    ledgers[command[-4:]] = json.loads(done.stdout)["rows"][0]["rmw"]
            self.assertEqual(ledgers, {"each": 32, "runs": 2})
            self.assertIn("variants/frag_ref", pathlib.Path(scratch, "r.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
