# SPDX-License-Identifier: MIT
"""The link form of tcp/trim as the bench program runs it: forms, reports, checks, ledger. Nothing depends on time."""

import json
import os
import subprocess
import sys
import unittest

BENCH = os.environ["BENCH_TCP"]
TRACED = os.environ["BENCH_TCP_TRACED"]
LINK = "tcp/trim/form:link"


def run(*flags, binary=BENCH):
    return subprocess.run([binary, *flags], capture_output=True, text=True, timeout=200, check=False)


class LinkForm(unittest.TestCase):
    def answer(self, *flags, binary=BENCH):
        done = run(*flags, binary=binary)
        self.assertEqual((done.returncode, done.stderr), (0, ""), flags)
        return json.loads(done.stdout)

    def check(self, keys):
        return self.answer(f"--skb_check={LINK}/{keys}")["report"]

    def refused(self, name, *says):
        done = run(f"--skb_check={name}")
        self.assertEqual(done.returncode, 2, name)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_named_points(self):
        for point, share, window in (("patch", 1, 110), ("gen1x4", 1, 71), ("gen2x8", 0, 16), ("fifo_full", 0, -67)):
            report = self.check(f"point:{point}")
            self.assertEqual(report["race_share"], share, point)
            self.assertAlmostEqual(report["window_us"], window, delta=0.6)
            self.assertEqual(report["skbs"], 32)
            self.assertEqual(report["segments"], 32 * 45)
            self.assertEqual(report["acks"], 32 * 23)
            self.assertEqual(report["wire_bytes"], 32 * 69210)

    def test_where_races_come_from(self):
        report = self.check("point:gen2x8/reclaim:40")
        self.assertEqual((report["races_before_dd"], report["races_before_reclaim"]), (0, 32))
        report = self.check("point:patch/reclaim:40")
        self.assertEqual((report["races_before_dd"], report["races_before_reclaim"]), (32, 0))
        self.assertEqual(self.check("ack:last")["race_share"], 0)
        share = self.check("point:gen1x4/rtt:65/jitter:12")["race_share"]
        self.assertTrue(0 < share < 1, share)

    def test_every_shape_passes_its_check(self):
        for era in ("3.4", "6.1", "6.12"):
            for variant in ("eager", "offset_ack"):
                for frags, source in ((2, "cache"), (16, "none"), (17, "cache")):
                    self.check(f"era:{era}/variant:{variant}/frags:{frags}/from:{source}/k:{frags}")
        for alloc in ("slub", "jemalloc", "glibc"):
            self.check(f"alloc:{alloc}/ack:delayed")
        self.check("from:memory/ack:stretch/k:8")

    def test_forms_have_their_own_keys(self):
        self.assertIn("form:forced", self.answer("--skb_check=tcp/trim")["name"])
        self.assertIn("form:forced", self.answer("--skb_check=tcp/trim/partial:2")["name"])
        name = self.answer("--skb_check=tcp/trim/rtt:20/form:link")["name"]
        self.assertIn("form:link", name)
        self.assertNotIn("partial", name)
        self.refused("tcp/trim/form:linked", "forced or link")
        self.refused("tcp/trim/form:link/partial:1", "no key 'partial'", "point")
        self.refused("tcp/trim/rtt:20", "no key 'rtt'", "partial")
        self.refused("tcp/trim/form:link/k:46", "1 to 45")
        ops = self.answer("--skb_list")["ops"]
        self.assertEqual([op["name"] for op in ops].count("tcp/trim"), 2)
        self.assertEqual([len(op["cases"]) for op in ops if op["name"] == "tcp/link_walk"], [1])
        forced = self.answer("--skb_check=tcp/trim")
        self.assertNotIn("report", forced)

    def test_sample(self):
        sample = self.answer(f"--skb_sample={LINK}/point:gen2x8", "--skb_n=7", "--skb_batches=20")
        self.assertEqual(sample["report"]["race_share"], 0)
        self.assertEqual(list(sample["whole"]), ["wall", "cpu", "busy"])
        self.assertEqual(sample["whole"]["wall"], sample["whole"]["busy"])  # one role, which never waits
        for clock, value in sample["whole"].items():
            self.assertGreater(value, 0, clock)
            # A mean of all batches, the slowest among them, is no lower than what nine tenths exceed.
            if sample["status"] == "ok":
                self.assertGreaterEqual(value, 0.5 * sample[clock]["p10"], clock)
        self.assertEqual(sample["bytes_per_op"], 65160)
        self.assertIn("report", self.answer("--skb_sample=tcp/link_walk", "--skb_n=100", "--skb_batches=20"))

    def test_ledger(self):
        def row(keys):
            rows = self.answer(f"--skb_ledger={LINK}/{keys}", binary=TRACED)["rows"]
            self.assertEqual([row["phase"] for row in rows], ["schedule"])
            return rows[0]

        for frags in (2, 16):
            lazy = row(f"variant:offset_ack/frags:{frags}")
            eager = row(f"variant:eager/frags:{frags}")
            late = row(f"variant:eager/frags:{frags}/point:gen2x8")
            # Each of 32 sk_buffs races once: a reference more on every frag, and a second head.
            self.assertEqual(eager["page_get"] - lazy["page_get"], 32 * frags)
            self.assertEqual(eager["page_put"] - lazy["page_put"], 32 * frags)
            self.assertEqual(eager["obj_alloc"] - lazy["obj_alloc"], 32)
            self.assertEqual(late["page_get"], lazy["page_get"])
            self.assertEqual(late["obj_alloc"], lazy["obj_alloc"])
            self.assertEqual(lazy["page_get"], 32 * frags)


if __name__ == "__main__":
    sys.exit(unittest.main())
