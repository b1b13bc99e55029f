# SPDX-License-Identifier: MIT
"""The `defer` pipeline on real threads, in each of its modes: it ends, every byte is read in its order (the bench's own check
holds before and after), frees are where the variant has them, and the link is never outrun.

Nothing is judged by how long it takes. DEFER_BENCH is the program, DEFER_LAUNCHER what starts it.
"""

import json
import os
import shlex
import subprocess
import unittest

BENCH = os.environ["DEFER_BENCH"]
LAUNCHER = shlex.split(os.environ.get("DEFER_LAUNCHER", ""))
FEW = ("--skb_batches=3", "--skb_warmup=1", "--skb_n=1", "--skb_oversubscribe")
VARIANTS = ("inline", "sk_llist", "cpu_list", "node_llist")
MODES = ("shape:header", "shape:mtu4096/pages:pool", "shape:head_frag/payload:dram", "shape:mtu4096/load:50",
         "shape:mtu4096/reader:stops", "shape:header/reader:stops/read_size:65536", "shape:header/mode:rpc",
         "shape:mtu4096/reader:sleeps/rate:0", "shape:header/reader:sleeps/mode:rpc", "shape:big/window:256", "shape:mtu4096/cpus:one", "shape:mtu4096/read_size:5000")


def sample(case):
    done = subprocess.run([*LAUNCHER, BENCH, f"--skb_sample=tcp/defer/{case}", *FEW], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    if done.returncode or done.stderr:
        raise AssertionError(f"{case}: status {done.returncode}, {done.stderr.strip()}")
    return json.loads(done.stdout)


class Defer(unittest.TestCase):
    def test_every_mode(self):
        for variant in VARIANTS:
            for mode in MODES:
                with self.subTest(variant=variant, mode=mode):
                    self.judge(variant, mode, sample(f"variant:{variant}/{mode}")["report"])

    def judge(self, variant, mode, report):
        self.assertGreaterEqual(report["packets"], 4 * 64)
        self.assertEqual(report["drops"], 0)
        # On one CPU everything is at home already.
        at_once = variant == "inline" or ("cpus:one" in mode and variant != "sk_llist")
        self.assertEqual(report["free_locked_other"] > 0, at_once)
        home = report["free_locked_last"] + report["free_locked_flush"] + report["free_locked_other"] + report["free_reader"]
        if variant in ("cpu_list", "node_llist") and not at_once:
            self.assertEqual(home, 0)
            self.assertGreater(report["free_softirq"], 0)
        if variant == "sk_llist" and "rpc" in mode:
            self.assertEqual(report["free_softirq"] + report["free_reader"], 0)
        if variant == "sk_llist" and "stops" in mode:
            self.assertGreater(report["deferred_peak_kb"], 0)

    def test_the_link_is_never_outrun(self):
        """A slow link was busy with what it brought for at most as long as it ran, however often the stream was stopped."""
        for mode in ("shape:mtu4096", "shape:mtu4096/cpus:one"):
            with self.subTest(mode):
                report = sample(f"variant:sk_llist/{mode}/rate:2")["report"]
                self.assertGreater(report["link_util"], 0)
                self.assertLessEqual(report["link_util"], 1)


if __name__ == "__main__":
    unittest.main()
