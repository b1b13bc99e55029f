# SPDX-License-Identifier: MIT
"""The regime map: what the bottlenecks predict, and how a point is told."""

import contextlib
import io
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import __main__ as cli, defer, duet, regime, stats  # noqa: E402


SITES = {"free_softirq": 0.0, "free_reader": 0.0, "free_locked_last": 0.0, "free_locked_flush": 0.0,
         "free_locked_other": 1.0}


def answer(wall, **told):
    """A bench's answer: WALL us a packet, 64 packets an operation."""
    return {"value": "kept_run.wall", "kept_run": {"wall": wall * 64000.0}, "bytes_per_op": 64 * 65160, "report": told}


def cell_of(pairs, key="shape:header/rate:100"):
    cell = duet.Cell(key, None, None, 1)
    for a, b in pairs:
        cell.pairs.append(duet.Pair("a", {"a": a, "b": b}, {"a": 0, "b": 0}))
    return cell


def report(reader, softirq, wire=5.54, copy=3.0, locked=0.0, own=0.0, theirs=0.0, backlog=0.0, deliver=0.0):
    return {"backlog_us": backlog, "deliver_us": deliver, "reader_us": reader, "softirq_us": softirq, "wire_us": wire, "copy_us": copy, "free_locked_us": locked,
            "free_reader_us": own, "free_softirq_us": theirs}


class Predict(unittest.TestCase):
    def test_the_published_change(self):
        """9.48 us with 1.58 of them under the lock, a softirq that has time: 7.90."""
        self.assertAlmostEqual(regime.predict(report(9.48, 6.0, locked=1.58), report(0, 7.58, theirs=1.58)), 7.90 / 9.48)

    def test_loses_when_the_softirq_is_the_bottleneck(self):
        self.assertAlmostEqual(regime.predict(report(8.0, 9.0, locked=2.0), report(0, 10.0, locked=1.0, theirs=1.0)), 10 / 9)

    def test_the_copy_gets_dearer(self):
        self.assertAlmostEqual(regime.predict(report(10.0, 5.0, locked=2.0), report(0, 5.5, copy=4.5, own=0.5)), 1.0)

    def test_whoever_owns_the_socket_receives(self):
        before, after = report(9.0, 7.0, locked=2.0, backlog=2.0, deliver=0.5), report(0, 6.0, theirs=2.0)
        self.assertAlmostEqual(regime.predict(before, after), 6.0 / 9.0)

    def test_nothing_behind_a_link(self):
        self.assertEqual(regime.predict(report(4.5, 2.4, 5.02, locked=1.6), report(0, 4.0, theirs=1.6)), 1)

    def test_one_after_the_other(self):
        """The next request does not wait for what the reader frees; it does for what the softirq frees."""
        before = report(4.0, 3.0, 5.0, locked=2.0)
        self.assertAlmostEqual(regime.predict(before, report(0, 3.0, locked=2.0), rpc=True), 1)
        self.assertAlmostEqual(regime.predict(before, report(0, 4.0, theirs=1.0), rpc=True), 11 / 10)

    def test_a_softirq_that_gets_warm_pages(self):
        self.assertEqual(regime.predict(report(9.0, 12.0, locked=6.0), report(0, 6.0, theirs=1.6)), 0.5)


def probe_cell(before, after, key="shape:header/rate:100"):
    return cell_of([(answer(1, **SITES, **before), answer(1, **{**SITES, **after}))] * 3, key)


class Point(unittest.TestCase):
    def test_numbers(self):
        pairs = cell_of([(answer(9.48), answer(7.90))] * 7)
        probe = probe_cell(report(9.48, 6.0, locked=2.0),
                           {**report(8, 7.6, theirs=1.5, locked=0.5), "free_softirq": 0.75, "free_locked_last": 0.25, "free_locked_other": 0.0})
        entry = regime.point_entry(pairs, probe)
        self.assertAlmostEqual(entry["measured"], 7.90 / 9.48)
        self.assertAlmostEqual(entry["variant"]["moved"], 0.75)
        self.assertAlmostEqual(entry["predicted"], (9.48 - 1.5) / 9.48)
        self.assertTrue(entry["agrees"])
        self.assertEqual(entry["verdict"], "improvement")
        self.assertLess(entry["lo"], entry["measured"] + 1e-9)
        off = regime.point_entry(cell_of([(answer(9.48), answer(4.0))] * 7), probe)
        self.assertFalse(off["agrees"])
        half = regime.point_entry(pairs, cell_of([]))
        lines = regime.render("node_llist", "pages:plain/alloc:jemalloc", [entry, off, half])
        text = "\n".join(lines)
        self.assertIn("0.833", text)
        self.assertIn("not predicted", text)
        self.assertIn("1 of 3 points within 10 %", text)
        self.assertEqual(sum(line.endswith(" !") for line in lines), 1)
        self.assertTrue(all(len(line) <= 80 for line in lines), max(lines, key=len))

    def test_rpc_and_home(self):
        same = cell_of([(answer(9.48), answer(9.48))] * 7, "shape:header/mode:rpc")
        costs = report(4.0, 3.0, locked=2.0)
        entry = regime.point_entry(same, probe_cell(costs, costs, "shape:header/mode:rpc"))
        self.assertEqual((entry["predicted"], entry["verdict"]), (1.0, "equivalent"))
        home = regime.point_entry(cell_of([(answer(12), answer(6))] * 7),
                                  probe_cell(report(9, 12, locked=6.0), report(3, 6, theirs=1.6)))
        self.assertAlmostEqual(home["predicted"], 0.5)

    def test_unmeasured(self):
        cell = cell_of([])
        cell.refuse("two CPUs are needed, one is there")
        entry = regime.point_entry(cell, cell_of([]))
        self.assertIsNone(entry["predicted"])
        self.assertIn("two CPUs are needed", " ".join(regime.render("sk_llist", "pages:pool/alloc:jemalloc", [entry])))


class Follow(unittest.TestCase):
    def test_a_probe_ends_with_its_cell(self):
        cells = [duet.Cell(key, None, None, 1) for key in "xy"]
        probes = [duet.Cell(key, None, None, 1, target=0.0) for key in "xy"]
        after_turn = regime.follow(cells, probes)
        cells[0].pairs, cells[0].stopped = [1] * 15, "width"
        probes[0].pairs = [1] * 14
        after_turn(None)
        self.assertEqual([probe.stopped for probe in probes], [None, None])
        probes[0].pairs.append(1)
        after_turn(None)
        self.assertEqual([probe.stopped for probe in probes], ["width", None])


class Report(unittest.TestCase):
    def test_medians(self):
        self.assertEqual(defer.medians([answer(1, x=v) for v in (3.0, 1.0, 2.0)])["x"], 2.0)
        self.assertIsNone(defer.medians([{"report": None}]))

    def test_us_of_a_packet(self):
        value = {"median": 65536.0, "lo": None, "hi": 131072.0, "n": 4}
        self.assertEqual(defer.packet_us(value, {"packet_bytes": 61440.0}),
                         {"median": 61.44, "lo": None, "hi": 122.88, "n": 4})
        self.assertIsNone(defer.packet_us(None, {"packet_bytes": 1.0}))
        self.assertIsNone(defer.packet_us(value, None))

    def test_cases(self):
        cells = defer.Defer.grid(None, 2, False)
        self.assertEqual([cell["shape"] for cell in cells], ["header", "mtu4096"])
        self.assertEqual(defer.Defer.grid(None, 1, False), [])
        self.assertEqual(defer.Defer.grid(16, 2, False), [])
        self.assertEqual(len(defer.Defer.grid(None, 2, True)), 8)
        self.assertGreaterEqual(stats.MIN_PAIRS, 6)


class Command(unittest.TestCase):
    def test_bad_input(self):
        for arguments, word in ((["--variant", "inline"], "--variant"), (["--filter", "nowhere"], "no point"),
                                (["--filter", "("], "regular"), (["--budget", "0"], "--budget"),
                                (["--alloc", "glibc"], "--alloc"), (["--pages", "huge"], "--pages")):
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()) as err:
                self.assertEqual(cli.main(["regime", *arguments]), 2)
                self.assertIn(word, err.getvalue())


if __name__ == "__main__":
    unittest.main()
