# SPDX-License-Identifier: MIT
"""The mptcp experiment of run: cells, the fit of its costs, the table."""

import pathlib
import re
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401: the path to skbench_lib
from skbench_lib import kernelcost, mptcp_experiment, mptcp_table, oraclebudget, stats, sweep, table
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


def saturated(variant, before, after, **changes):
    """The same where data never ends."""
    made = entry(variant, None, before, after, **changes)
    parameters = {"form": "saturated", "mtu": 65536, "alloc": "slub"}
    names = {side: Mptcp.case("6.12", name, parameters) for side, name in (("baseline", "before"), ("variant", variant))}
    for side in ("report", "variant_report"):
        if made[side]:
            made[side].update(maps_per_mb=made[side]["skbs_per_mb"], map_bytes_per_mb=28 * made[side]["skbs_per_mb"])
    return {**made, "parameters": parameters, "cases": names, "case": names["baseline"]}


class Cells(unittest.TestCase):
    def test_default(self):
        cells = Mptcp.grid(None, 2, False)
        self.assertEqual([(c["form"], c["mtu"], c.get("backlog")) for c in cells],
                         [("stream", 65536, 0), ("stream", 65536, 3), ("stream", 65536, 15), ("stream", 65536, 63),
                          ("saturated", 65536, None)])
        self.assertEqual([v for v in Mptcp.variants if Mptcp.wanted(v, cells[0], False)], ["merged"])
        self.assertEqual([v for v in Mptcp.variants if Mptcp.wanted(v, cells[-1], False)], list(Mptcp.variants))
        self.assertEqual(set(Mptcp.variants) | {Mptcp.baseline},
                         {"before", "size_bias", "psh", "split", "posted", "merged", "split_fixed"})
        self.assertEqual(Mptcp.grid(17, 2, False), [])

    def test_everything(self):
        cells = Mptcp.grid(None, 1, True)
        self.assertEqual(sorted({(c["mtu"], c["backlog"]) for c in cells if c["form"] == "stream"}),
                         [(mtu, backlog) for mtu in (1500, 9000, 65536) for backlog in (0, 3, 15, 63, 254)])
        parts = [(v, c["form"]) for v in Mptcp.variants for c in cells if v != "merged" and Mptcp.wanted(v, c, True)]
        self.assertEqual(parts, [(v, "saturated") for v in Mptcp.variants if v != "merged"])
        self.assertTrue(all(Mptcp.wanted("merged", c, True) for c in cells))

    def test_few_pairs(self):
        """Without a selection only the main cell gets all the time that there is; the others enough for an interval."""
        cells = Mptcp.grid(None, 2, False)
        most = [Mptcp.most_pairs(cell, False) for cell in cells]
        self.assertEqual([cells[i]["backlog"] for i, pairs in enumerate(most) if pairs is None], [Mptcp.main])
        self.assertGreaterEqual(mptcp_experiment.FEW, stats.MIN_PAIRS)
        self.assertEqual({Mptcp.most_pairs(cell, True) for cell in cells}, {None})

    def test_names(self):
        self.assertEqual(Mptcp.case("6.1", "psh", {"form": "stream", "mtu": 1500, "backlog": 3, "alloc": "slub"}),
                         "mptcp/stream/era:6.1/variant:psh/mtu:1500/backlog:3/where:msk/alloc:slub")
        self.assertEqual(Mptcp.case("6.12", "psh", {"form": "saturated", "mtu": 65536, "alloc": "slub"}),
                         "mptcp/saturated/era:6.12/variant:psh/mtu:65536/cwnd:2/sndbuf:512/alloc:slub")

    def test_full_suite(self):
        """Every MTU with every backlog, each once, whatever the default cases are."""
        cases = [f"mptcp/stream/era:6.12/variant:{v}/mtu:{m}/backlog:{b}/where:msk/alloc:slub"
                 for v in ("before", "merged") for m in (1500, 65536) for b in (0, 15)]
        found = sweep.product(cases, mptcp_experiment.SIZES["mptcp/stream"])
        self.assertEqual(len(found), 2 * 3 * 5)
        self.assertEqual(len(set(found)), len(found))
        self.assertIn("mptcp/stream/era:6.12/variant:merged/mtu:9000/backlog:254/where:msk/alloc:slub", found)
        self.assertEqual(sweep.product(cases, {}), cases)


class Costs(unittest.TestCase):
    def test_claim(self):
        """Worked out by hand: 10.724 us for 32728 bytes, 18.382 us for 65160."""
        per_skb, per_byte = mptcp_experiment.claimed()
        self.assertAlmostEqual(per_skb, 2996, delta=2)
        self.assertAlmostEqual(per_byte, 0.2361, delta=0.0001)

    def test_fit(self):
        """120 ns an sk_buff; a byte costs more where more of them wait."""
        levels = (1500, 1500, 1800)
        found = [(x, fewer, level + 120 * x, 120 * fewer, 12)
                 for (x, fewer), level in zip(((4, 0), (3, 1), (2, 1)), levels)]
        costs = mptcp_experiment.fit(found)
        self.assertAlmostEqual(costs.per_skb, 120)
        self.assertAlmostEqual(costs.per_byte * 65536, 1600)
        self.assertAlmostEqual(costs.lowest * 65536, 1500)
        self.assertAlmostEqual(costs.highest * 65536, 1800)
        self.assertAlmostEqual(costs.off, 0)

    def test_weights(self):
        """A difference from 90 pairs counts nine times one from 10."""
        costs = mptcp_experiment.fit([(2, 1, 1000, 100, 90), (2, 1, 1000, 200, 10)])
        self.assertAlmostEqual(costs.per_skb, 110)
        self.assertAlmostEqual(costs.off, 0.09)

    def test_sizes_that_do_not_differ(self):
        for found in ([], [(2, 0, 100, 5, 12)], [(2, 0.1, 100, 5, 12)]):
            self.assertIsNone(mptcp_experiment.fit(found))

    def test_points(self):
        """What was not measured does not count."""
        entries = [entry("merged", 3, (2100, 45.0), (2000, 30.0))]
        entries.append(entry("psh", 3, (2100, 45.0), (0, 1.0), difference=None))
        entries.append(entry("split", 3, (2100, 45.0), (0, 1.0), variant_report=None))
        found = mptcp_experiment.points(entries)
        self.assertEqual(len(found), 1)
        before, fewer, ns, less, pairs = found[0]
        self.assertAlmostEqual(before, 45 * 65536 / 1e6)
        self.assertAlmostEqual(fewer, 15 * 65536 / 1e6)
        self.assertEqual((ns, less, pairs), (2100, 100, 20))


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
        self.assertIn("22222 34.0%", text)
        self.assertIn("merged 2180 +-0.0% -120 ns [-9.00,-1.00] improvement 33333 50.9%", text)
        # 120 ns for 0.983 and for 1.003 sk_buffs less.
        self.assertIn("buffers and copies: 121 ns an sk_buff and 0.030 ns a byte (0.030 to 0.030), fitted over 2 backlogs "
                      "at MTU 65536, at most 0.0", text)
        self.assertIn("the claim implies 3.00 us and 0.236 ns", text)
        self.assertIn("buffers are 4.03 % of what an sk_buff cost there", text)

    def test_columns(self):
        """The widest figures that are to be expected keep to their columns."""
        wide = entry("merged", 254, (12345, 15.28), (11345, 15.28), lo=0.9, hi=0.95)
        wide["difference"].update(median=-1000.0, lo=-1100.0, hi=-900.0)
        lines = mptcp_table.block({"experiments": [wide, saturated("split_fixed", (12345, 15.28), (12345, 15.28))]})
        head = next(line for line in lines if line.startswith("  mtu wait variant"))
        for line in lines:
            if re.match(" *(65536|split_fixed)", line):
                self.assertTrue(line.endswith("%") or "n=20" in line, line)
                self.assertIn("100.0%", line)
        for name in ("before", "merged"):
            line = next(line for line in lines if re.match(f"65536  254 {name} ", line))
            self.assertEqual(line.index(name), head.index("variant"))
            self.assertEqual(len(line), len(head))

    def test_parts(self):
        """What each part alone does: sizes, maps, throughput, and the ratio of few pairs."""
        text = self.lines(saturated("merged", (2000, 30.5), (1800, 15.3), ratio=0.9, lo=0.89, hi=0.91, pairs=12),
                          saturated("psh", (2000, 30.5), (2010, 30.5), ratio=1.005, lo=None, hi=None, pairs=5),
                          saturated("split", (2000, 30.5), (1, 1.0), status="unmeasured", reason="too few batches",
                                    variant_value=None, variant_report=None, difference=None, ratio=None, lo=None, pairs=0))
        self.assertIn("MTU 65536, data that never ends: 512 KB of send buffer, 2 segments on their way", text)
        self.assertIn("before 32787 50.1% 30.5 30.5 854 262144 merged", text)
        self.assertIn("merged 65359 99.9% 15.3 15.3 428 291271 -10.00 % [-11.00, -9.00] n=12", text)
        self.assertIn("psh 32787 50.1% 30.5 30.5 854 260840 +0.50 % n=5 no interval below 6", text)
        self.assertIn("split ? ? ? ? ? ? unmeasured too few batches", text)
        self.assertNotIn("buffers and copies", text)

    def test_kernel_stands_beside(self):
        """The stored sizes, none typed in; without them the run still has its table."""
        cell = entry("merged", 3, (2300, 45.0), (2180, 30.0))
        sizes = {(era, shape): oraclebudget.mean_skb_bytes(era, shape) for era in Mptcp.eras
                 for shape in mptcp_experiment.KERNEL_SHAPES.values()}
        text = self.lines(cell)
        for (era, _), size in sizes.items():
            self.assertIn(f"{size:.0f} (Linux {era})", text)
        self.assertIn("bytes at MTU 65536, ", text)
        with mock.patch.object(oraclebudget, "mean_skb_bytes", lambda era, shape: 7777.4):
            self.assertEqual(self.lines(cell).count("7777 (Linux 6.1)"), 2)
        for number, words in ((None, "no budget of a 6.1 kernel that moved bytes as mptcp-16k"),
                              ("wide", "budget-6.1.9.csv:2: a number is none")):
            with tempfile.TemporaryDirectory() as scratch:
                if number:
                    (pathlib.Path(scratch) / "budget-6.1.9.csv").write_text(
                        f"shape,what,per_65160_bytes\nmptcp-16k,mean_skb_bytes,{number}\n")
                with mock.patch.object(kernelcost, "directory", lambda: pathlib.Path(scratch)):
                    text = self.lines(cell)
            self.assertIn("a kernel's sizes cannot stand here: ", text)
            self.assertIn(words, text)
            self.assertIn("buffers and copies: ", text)

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


class Sizes(unittest.TestCase):
    """What the suites that compare nothing print of sizes."""

    def lines(self, *cases):
        rows = [{"name": f"mptcp/stream/era:6.12/variant:{variant}/mtu:{mtu}/backlog:{backlog}/where:{where}/alloc:slub",
                 "skb": {"report": {"skb_bytes": size}}} for variant, mtu, backlog, where, size in cases]
        rows += [{"name": "skb/clone/frags:0", "skb": {}}, {"name": "tcp/defer/era:6.12", "skb": {"report": {"x": 1.0}}}]
        return mptcp_table.sizes({"benchmarks": rows})

    def test_matrix(self):
        lines = self.lines(("before", 65536, 63, "msk", 31775.0), ("merged", 65536, 63, "msk", 61681.0),
                           ("merged", 65536, 63, "msk", 61682.6), ("merged", 65536, 63, "msk", 61690.0),
                           ("merged", 1500, 3, "msk", 32768.0), ("split_fixed", 1500, 3, "subflow", 1.0))
        self.assertEqual(lines, [
            "", "mptcp/stream era:6.12 where:msk: bytes of an sk_buff", "  mtu wait before merged", " 1500    3      -  32768",
            "65536   63  31775  61683", "", "mptcp/stream era:6.12 where:subflow: bytes of an sk_buff",
            "  mtu wait split_fixed", " 1500    3           1"])

    def test_all_of_them(self):
        every = [(v, m, b, "msk", 65455.0) for v in ("before", *Mptcp.variants) for m in (1500, 65536) for b in (0, 254)]
        lines = self.lines(*every)
        self.assertEqual(len(lines), 3 + 4)
        self.assertTrue(all(table.width(line) <= 80 for line in lines))
        self.assertEqual(lines[-1].split(), ["65536", "254"] + ["65455"] * 7)

    def test_none(self):
        self.assertEqual(self.lines(), [])


if __name__ == "__main__":
    unittest.main()
