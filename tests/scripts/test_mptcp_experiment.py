# SPDX-License-Identifier: MIT
"""The mptcp experiment of run: cells, the fit of its costs, the table."""

import unittest

import support  # noqa: F401: the path to skbench_lib
from skbench_lib import mptcp_experiment, mptcp_table, table
from skbench_lib.mptcp_experiment import Mptcp


def entry(variant, backlog, before, after, mtu=65536, **changes):
    """One compared pair: (ns, sk_buffs a MB) of both sides."""
    def side(ns, skbs):
        return ({"median": ns, "lo": ns - 1, "hi": ns + 1, "n": 20},
                {"skbs_per_mb": skbs, "skb_bytes": 1e6 / skbs, "goal_fill": 1e6 / skbs / 65455})
    parameters = {"form": "stream", "mtu": mtu, "backlog": backlog, "alloc": "slub"}
    names = {"baseline": Mptcp.case("6.12", "before", parameters), "variant": Mptcp.case("6.12", variant, parameters)}
    a, report_a = side(*before)
    b, report_b = side(*after)
    return {"experiment": "mptcp", "case": names["baseline"], "cases": names, "parameters": parameters,
            "baseline": "before", "variant": variant, "era": "6.12", "claim": Mptcp.claim, "baseline_value": a,
            "variant_value": b, "report": report_a, "variant_report": report_b, "status": "ok", "reason": None,
            "difference": {"median": after[0] - before[0], "lo": -9.0, "hi": -1.0, "n": 20}, "verdict": "improvement",
            "ratio": after[0] / before[0], "lo": 0.9, "hi": 0.95, "pairs": 20, "target_half_width": 0.003, **changes}


class Cells(unittest.TestCase):
    def test_default(self):
        cells = Mptcp.grid(None, 2, False)
        self.assertEqual([(c["mtu"], c["backlog"]) for c in cells], [(65536, 15)])
        self.assertEqual([v for v in Mptcp.variants if Mptcp.wanted(v, cells[0], False)], ["merged"])
        self.assertEqual(Mptcp.grid(17, 2, False), [])

    def test_everything(self):
        cells = Mptcp.grid(None, 1, True)
        self.assertEqual(len(cells), 12)
        parts = [(v, c["mtu"], c["backlog"]) for v in Mptcp.variants for c in cells
                 if v != "merged" and Mptcp.wanted(v, c, True)]
        self.assertEqual(parts, [(v, 65536, 15) for v in Mptcp.variants if v != "merged"])
        self.assertTrue(all(Mptcp.wanted("merged", c, True) for c in cells))


class Costs(unittest.TestCase):
    def test_claim(self):
        """Worked out by hand: 10.724 us for 32728 bytes, 18.382 us for 65160."""
        per_skb, per_byte = mptcp_experiment.claimed()
        self.assertAlmostEqual(per_skb, 2996, delta=2)
        self.assertAlmostEqual(per_byte, 0.2361, delta=0.0001)

    def test_fit(self):
        slope, per_byte, worst = mptcp_experiment.fit([(x, 1500 + 120 * x) for x in (1, 2, 3, 4)])
        self.assertAlmostEqual(slope, 120)
        self.assertAlmostEqual(per_byte * 65536, 1500)
        self.assertAlmostEqual(worst, 0)
        self.assertAlmostEqual(mptcp_experiment.fit([(1, 100), (2, 230), (3, 300)])[2], 0.1)

    def test_sizes_that_do_not_differ(self):
        for pairs in ([], [(2, 100)], [(2, 100), (2.1, 90)]):
            self.assertIsNone(mptcp_experiment.fit(pairs))

    def test_points(self):
        """Each side counts once, however often it is a baseline; what was not measured does not."""
        entries = [entry("merged", 3, (2100, 45.0), (2000, 30.0)), entry("posted", 3, (2100, 45.0), (1990, 30.0))]
        entries.append(entry("psh", 3, (2100, 45.0), (0, 1.0), variant_value=None))
        entries.append(entry("split", 3, (2100, 45.0), (0, 1.0), variant_report=None))
        found = mptcp_experiment.points(entries)
        self.assertEqual([round(ns) for _, ns in found], [2100, 2000, 1990])
        self.assertAlmostEqual(found[0][0], 45 * 65536 / 1e6)


class Block(unittest.TestCase):
    def lines(self, *entries):
        lines = mptcp_table.block({"experiments": list(entries)})
        for line in lines:
            self.assertLessEqual(table.width(line), 80, line)
        return " ".join(" ".join(lines).split())

    def test_rows_and_costs(self):
        text = self.lines(entry("merged", 3, (2300, 45.0), (2180, 30.0)), entry("merged", 15, (2250, 34.3), (2130, 19.0)),
                          entry("merged", 15, (2500, 50.0), (2400, 20.0), mtu=1500))
        self.assertIn("24414.86 to 28357.69 Mbit/s, netperf over loopback; one run a side, no interval", text)
        self.assertIn("65536 3 before 2300", text)
        self.assertIn("22222 34 %", text)
        self.assertIn("merged 2180 +-0.0% -120 ns [-9.00,-1.00] improvement 33333 51 %", text)
        self.assertIn("at MTU 65536 (4 points", text)
        self.assertIn("the claim implies 3.00 us and 0.236 ns", text)

    def test_more_costs_nothing(self):
        text = self.lines(entry("merged", 3, (2000, 45.0), (2100, 30.0)))
        self.assertIn("an sk_buff more cannot be told from none", text)

    def test_not_measured(self):
        text = self.lines(entry("merged", 3, (2300, 45.0), (2180, 30.0), status="unmeasured", reason="too few batches",
                                baseline_value=None, variant_value=None, report=None, variant_report=None,
                                difference=None))
        self.assertIn("unmeasured", text)
        self.assertIn("too few batches", text)
        self.assertIn("do not differ enough to say", text)
        none = entry("merged", 3, (2300, 45.0), (2180, 30.0), ratio=None, difference=None, pairs=0)
        self.assertIn("the run ended before its first pair", self.lines(none))

    def test_nothing_else(self):
        self.assertEqual(mptcp_table.block({"experiments": [{"experiment": "trim"}]}), [])


if __name__ == "__main__":
    unittest.main()
