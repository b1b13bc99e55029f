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


def answer(wall, reader, softirq, **report):
    """A bench's answer; times are us a packet, 64 packets an operation."""
    told = {"packet_bytes": 65160.0, "wire_us": 5.54, "free_softirq": 0.0, "free_reader": 0.0, "free_locked_last": 0.0,
            "free_locked_flush": 0.0, "free_locked_other": 0.0, **report}
    return {"value": "kept_run.wall", "kept_run": {"wall": wall * 64000.0}, "bytes_per_op": 64 * 65160, "report": told,
            "roles": [{"name": "softirq", "busy_p33": softirq * 64000.0}, {"name": "reader", "busy_p33": reader * 64000.0}]}


def cell_of(pairs):
    cell = duet.Cell("shape:header/rate:100", None, None, 1)
    for a, b in pairs:
        cell.pairs.append(duet.Pair("a", {"a": a, "b": b}, {"a": 0, "b": 0}))
    return cell


class Predict(unittest.TestCase):
    def test_the_published_change(self):
        """9.48 us with 1.58 of them under the lock, a softirq that has time: 7.90."""
        before, after, ratio = regime.predict(9.48, 6.0, 5.54, 1.58, 1.0)
        self.assertEqual((before, round(after, 2)), (9.48, 7.90))
        self.assertAlmostEqual(ratio, 7.90 / 9.48)

    def test_loses_when_the_softirq_is_the_bottleneck(self):
        self.assertGreater(regime.predict(8.0, 9.0, 5.54, 2.0, 0.5)[2], 1)

    def test_nothing_behind_a_link(self):
        self.assertEqual(regime.predict(4.5, 2.4, 5.02, 1.6, 1.0)[2], 1)

    def test_nothing_if_nothing_moves(self):
        self.assertEqual(regime.predict(9.0, 5.0, 1.0, 4.0, 0.0)[2], 1)


class Point(unittest.TestCase):
    def test_numbers(self):
        inline = answer(9.48, 9.48, 6.0, free_locked_other=1.0)
        lazy = answer(7.90, 7.9, 7.6, free_softirq=0.75, free_locked_last=0.25)
        probe = answer(9.7, 9.7, 6.1, free_locked_us=2.0)
        entry = regime.point_entry(cell_of([(inline, lazy)] * 7), [probe] * 3)
        self.assertAlmostEqual(entry["measured"], 7.90 / 9.48)
        self.assertAlmostEqual(entry["moved"], 0.75)
        self.assertAlmostEqual(entry["predicted_after_us"], 9.48 - 1.5)
        self.assertTrue(entry["agrees"])
        self.assertLess(entry["lo"], entry["measured"] + 1e-9)
        off = regime.point_entry(cell_of([(inline, answer(4.0, 4, 4, free_softirq=1.0))] * 7), [probe])
        self.assertFalse(off["agrees"])
        text = "\n".join(regime.render("sk_llist", "pages:plain/alloc:slub", [entry, off]))
        self.assertIn("0.833", text)
        self.assertEqual(sum(line.endswith(" !") for line in text.splitlines()), 1)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()))

    def test_unmeasured(self):
        cell = cell_of([])
        cell.refuse("two CPUs are needed, one is there")
        entry = regime.point_entry(cell, [])
        self.assertIsNone(entry["predicted"])
        self.assertIn("two CPUs are needed", " ".join(regime.render("sk_llist", "pages:pool/alloc:jemalloc", [entry])))


class Report(unittest.TestCase):
    def test_medians(self):
        self.assertEqual(defer.medians([answer(1, 1, 1, x=v) for v in (3.0, 1.0, 2.0)])["x"], 2.0)
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
