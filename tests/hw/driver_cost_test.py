#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the driver takes for a packet, in instructions, over a device that does nothing."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import instructions  # noqa: E402

PROGRAM = os.environ.get("SKBENCH_DRIVER_COST", str(ROOT / "build/release/tests/hw/hw_driver_cost"))
COUNTED = "hw_counted_span"
BATCH = 32
# Posting and reclaiming a plain packet in batches of 32, its buffer not counted: what ixy takes.
MOST_PLAIN = 37
# A TSO of 64 KB with a context and 18 data descriptors: what it may not go above unnoticed.
MOST_TSO = 640


def count(kind, packets):
    """Instructions of PACKETS packets, all spans together."""
    with tempfile.TemporaryDirectory() as directory:
        profile = Path(directory) / "out"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={COUNTED}",
             f"--callgrind-out-file={profile}", PROGRAM, kind, str(packets)],
            env=instructions.environment(), capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            raise AssertionError(f"driver_cost {kind}: {done.stderr}")
        return instructions.total_of(profile.read_text(encoding="utf-8")), done.stdout


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed: scripts/install-packages test")
class Cost(unittest.TestCase):
    def test_plain(self):
        total, said = count("plain", 32 * BATCH)
        each = total / (32 * BATCH)
        print(f"a plain packet: {each:.1f} instructions", file=sys.stderr)
        self.assertIn("1 data descriptors", said)
        self.assertLessEqual(each, MOST_PLAIN)
        # It is counted: a descriptor alone takes several stores.
        self.assertGreater(each, 10)

    def test_tso(self):
        total, said = count("tso", 8 * BATCH)
        each = total / (8 * BATCH)
        print(f"a TSO of 64 KB: {each:.1f} instructions", file=sys.stderr)
        self.assertIn("18 data descriptors", said)
        self.assertLessEqual(each, MOST_TSO)
        self.assertGreater(each, 18 * 3)

    def test_same_again(self):
        self.assertEqual(count("plain", BATCH), count("plain", BATCH))

    def test_what_the_rest_costs(self):
        """The batch's own part is small: the doorbell is one store for 32 packets."""
        small, large = count("plain", BATCH)[0], count("plain", 2 * BATCH)[0]
        self.assertLess(abs(large - 2 * small), BATCH)

    def test_usage(self):
        done = subprocess.run([PROGRAM, "plain", "33"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertTrue(re.match("usage: ", done.stderr))


if __name__ == "__main__":
    unittest.main()
