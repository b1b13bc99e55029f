# SPDX-License-Identifier: MIT
"""What stands below a headline cell: the same in every block of the table."""

import unittest

import support  # noqa: F401: the path to skbench_lib
from skbench_lib import mptcp_table, stats, table
from skbench_lib.defer import Defer
from skbench_lib.mptcp_experiment import Mptcp
from skbench_lib.run import Trim, TrimLink

VALUE = {"median": 1000.0, "lo": 990.0, "hi": 1010.0, "n": 20}
REPORT = {"window_us": 110.0, "race_share": 1.0, "packet_bytes": 65160.0, "skb_bytes": 32768.0, "goal_fill": 0.5,
          "skbs_per_mb": 30.5, "free_locked_last": 0.0, "free_locked_flush": 0.0, "free_locked_other": 1.0}

# block: (experiment, parameters, how it is printed, what its ratios are of)
BLOCKS = {
    "trim": (Trim, {"form": "forced", "frags": 16, "complete": "same", "alloc": "slub"}, table.trim_blocks,
             "eager's busy time"),
    "link": (TrimLink, {"form": "link", "point": "patch", "from": "cache", "frags": 16, "complete": "same", "alloc": "slub"},
             table.link_block, "the path's CPU time"),
    "defer": (Defer, {"form": "pipeline", "shape": "header", "payload": "llc", "alloc": "slub"}, table.defer_block,
              "inline's time"),
    "mptcp": (Mptcp, {"form": "stream", "mtu": 65536, "backlog": 15, "alloc": "slub"}, mptcp_table.block,
              "before's CPU time")}

# what is known of the cell, and what is said of it
STATES = (
    ({}, "= -5.00 % [-6.00, -4.00] of {whole}, 20 pairs"),
    ({"lo": 0.94, "hi": 0.96, "pairs": 1}, "= -5.00 % [-6.00, -4.00] of {whole}, 1 pair"),
    ({"verdict": stats.INCONCLUSIVE, "lo": 0.85, "hi": 1.06},
     "= -5.00 % [-15.00, +6.00] of {whole}, 20 pairs; half-width 11.0 %, 0.300 % needed"),
    ({"verdict": stats.INCONCLUSIVE, "lo": 0.994, "hi": 0.996}, "20 pairs; across the margin"),
    ({"verdict": stats.INCONCLUSIVE, "lo": None, "hi": None, "pairs": 5},
     "= -5.00 % of {whole}, 5 pairs: no interval below 6"),
    ({"verdict": stats.INCONCLUSIVE, "ratio": None, "lo": None, "hi": None, "pairs": 0, "difference": None},
     "not measured: the run ended before its first pair"),
    ({"status": "unmeasured", "reason": "12 of 13 processes unmeasured", "difference": None}, "12 of 13 processes unmeasured"),
    ({"status": "unmeasured", "reason": "not possible here: two CPUs are needed", "ratio": None, "lo": None, "hi": None,
      "pairs": 0, "baseline_value": None, "variant_value": None, "report": None, "variant_report": None, "difference": None},
     "not possible here: two CPUs are needed"))


def document(name, **changes):
    """A result with one cell of the block NAME."""
    experiment, parameters = BLOCKS[name][:2]
    variant = experiment.variants[0]
    names = {"baseline": experiment.case("6.12", experiment.baseline, parameters),
             "variant": experiment.case("6.12", variant, parameters)}
    entry = {"experiment": experiment.id, "case": names["baseline"], "cases": names, "parameters": parameters,
             "baseline": experiment.baseline, "variant": variant, "era": "6.12", "claim": experiment.claim,
             "baseline_value": VALUE, "variant_value": {**VALUE, "median": 950.0}, "report": REPORT,
             "variant_report": REPORT, "baseline_least": 980.0, "variant_least": 930.0, "status": "ok", "reason": None, "verdict": stats.IMPROVEMENT, "ratio": 0.95,
             "lo": 0.94, "hi": 0.96, "pairs": 20, "target_half_width": 0.003,
             "difference": {"median": -50.0, "lo": -60.0, "hi": -40.0, "n": 20}, **changes}
    return {"experiments": [entry], "cases": [], "ledger": []}


class Cells(unittest.TestCase):
    def test_every_block_says_the_same(self):
        for name, (_, _, lines, whole) in BLOCKS.items():
            for changes, words in STATES:
                with self.subTest(block=name, changes=changes):
                    printed = lines(document(name, **changes))
                    self.assertTrue(all(table.width(line) <= table.WIDTH for line in printed))
                    text = " ".join(" ".join(printed).split())
                    self.assertEqual(text.count(words.format(whole=whole)), 1, text)
                    # Nothing of another state beside it.
                    self.assertEqual("no interval" in text.replace("one run a side, no interval", ""),
                                     "no interval" in words)
                    self.assertEqual("first pair" in text, "first pair" in words)
                    self.assertEqual("unmeasured" in text, changes.get("status") == "unmeasured" or
                                     changes.get("baseline_value", VALUE) is None)
                    if changes.get("status") == "unmeasured":
                        self.assertNotIn("% of " + whole, text)

    def test_verdict_beside(self):
        """The row says what the lines below explain."""
        for name, (_, _, lines, _) in BLOCKS.items():
            with self.subTest(block=name):
                self.assertIn(stats.IMPROVEMENT, "\n".join(lines(document(name))))
                self.assertIn(stats.INCONCLUSIVE, "\n".join(lines(document(name, verdict=stats.INCONCLUSIVE))))
                text = "\n".join(lines(document(name, status="unmeasured", reason="gone")))
                self.assertNotIn(stats.IMPROVEMENT, text)

    def test_long_reason(self):
        printed = table.cell_lines(document("trim", status="unmeasured", reason="a long sentence " * 20)["experiments"][0], "x")
        self.assertGreater(len(printed), 3)
        self.assertTrue(all(table.width(line) <= table.WIDTH and line.startswith("      ") for line in printed))


if __name__ == "__main__":
    unittest.main()
