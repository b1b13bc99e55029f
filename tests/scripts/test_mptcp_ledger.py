# SPDX-License-Identifier: MIT
"""The stored counts of the mptcp stream against a model of its own: which sk_buffs a backlog becomes in each variant, and
what each of them, its map and each data frag cost in every phase."""

import csv
import unittest

import support
from skbench_lib import benchbin

WRITE = 16384
DFRAG = 32768 - 40  # bytes of one data frag alone in its block
EXT = 8 * (1 + 4)  # a header and a map, copied when a packet gets its own
GOALS = {1500: 45 * 1420, 9000: 7 * 8920, 65536: 65455}
BIASED = {"size_bias", "posted", "merged", "split_fixed"}


def pieces(total, size):
    return [size] * (total // size) + [total % size] * bool(total % size)


def fill(frags, goal, biased, skbs=()):
    """The sk_buffs, as lists of frags, that data frags of these sizes become behind SKBS while none is sent."""
    skbs = list(skbs)
    for left in frags:
        fresh = True  # no byte of this data frag is in the last sk_buff
        while left:
            tail = sum(skbs[-1]) if skbs else goal
            room = goal - tail
            cap = goal if not room else room + (tail if biased else 0)
            if skbs and room and cap > tail:
                take = min(left, cap - tail)
                if fresh:
                    skbs[-1].append(take)
                else:
                    skbs[-1][-1] += take
            else:
                take = min(left, cap)
                skbs.append([take])
            fresh = False
            left -= take
    return skbs


class Saturated:
    """64 writes into a drained connection whose packets are single segments, and the ACKs of all of them."""

    writes = 64
    block = 32768
    head = 40  # of a data frag, which begins at a multiple of 8

    def __init__(self, keys):
        self.goal, self.biased = GOALS[int(keys["mtu"])], keys["variant"] in BIASED
        self.cwnd, self.sndbuf = int(keys["cwnd"]), int(keys["sndbuf"]) << 10
        self.queue, self.flight = [], []
        self.held = []  # [bytes, overhead] of data frags that are not acknowledged
        self.offset = 0  # of the free part of the block
        self.frags = self.slots = self.skbs = 0
        self.blocks = 0  # taken anew: the first is the one that it has, whole again
        for _ in range(self.writes):
            left = WRITE
            while left:
                left -= self.write(left) or self.arrive()
        while self.flight:
            self.arrive()

    def write(self, left):
        """One mptcp_sendmsg(): the bytes that it took."""
        pieces = []
        while left and sum(map(sum, self.held)) < self.sndbuf:
            if self.offset + 32 + 8 + self.head > self.block:
                self.offset, self.blocks = 0, self.blocks + 1
            at = -(-self.offset // 8) * 8
            size = min(left, self.block - at - self.head)
            pieces.append(size)
            self.held.append([size, at - self.offset + self.head])
            self.offset = at + self.head + size
            left -= size
        self.frags += len(pieces)
        before = sum(map(len, self.queue))
        self.queue = fill(pieces, self.goal, self.biased, self.queue)
        self.slots += sum(map(len, self.queue)) - before
        self.xmit()
        return sum(pieces)

    def xmit(self):
        while self.queue and len(self.flight) < self.cwnd:
            self.flight.append(sum(self.queue.pop(0)))
            self.skbs += 1

    def arrive(self):
        acked = self.flight.pop(0)
        while acked:
            size = min(acked, self.held[0][0])
            acked -= size
            self.held[0][0] -= size
            if not self.held[0][0]:
                self.held.pop(0)
        self.xmit()
        return 0


def expected_burst(keys):
    """The same of mptcp/saturated."""
    run = Saturated(keys)
    n, last = run.skbs, int(keys["era"] == "6.1")
    return {"burst": {
        "page_get": run.slots + run.frags, "page_put": run.slots + run.frags + run.blocks, "page_alloc": run.blocks,
        "obj_alloc": 4 * n, "obj_free": 4 * n, "rmw_dataref": (2 + last) * n, "rmw_fclone": n, "rmw_ext": 2 * n,
        "rmw_wmem": 3 * n, "bytes_copied": 2 * WRITE * Saturated.writes + EXT * n}}


def expected(keys):
    """{phase: {column: count}} of one operation."""
    if "sndbuf" in keys:
        return expected_burst(keys)
    total = WRITE * (int(keys["backlog"]) + 1)
    frags = pieces(total, DFRAG)
    skbs = fill(frags, GOALS[int(keys["mtu"])], keys["variant"] in BIASED)
    n, slots = len(skbs), sum(map(len, skbs))
    last = int(keys["era"] == "6.1")  # the original's free pays for dataref, too
    return {
        "write": {"page_get": len(frags), "bytes_copied": total, "obj_alloc": 0, "rmw_ext": 0},
        # A pair, a head and a map each; a clone on its way, which shares the map.
        "send": {"page_get": slots, "page_put": 0, "obj_alloc": 3 * n, "rmw_dataref": n, "rmw_ext": n, "rmw_wmem": n,
                 "bytes_copied": 0},
        # The packet's own map, by a copy; the clone, which is not the last of anything but that map.
        "arrive": {"page_get": 0, "page_put": 0, "obj_alloc": n, "obj_free": n, "rmw_ext": n, "rmw_dataref": n,
                   "rmw_fclone": n, "rmw_wmem": 2 * n, "bytes_copied": total + EXT * n},
        "ack": {"page_put": slots + len(frags), "obj_free": 3 * n, "rmw_dataref": last * n, "rmw_ext": 0}}


def rows():
    with open(support.ROOT / "results" / "ledger" / "mptcp.csv", encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            name, _, phase = row["case"].partition("#")
            operation, keys = benchbin.split_name(name)
            if operation == "mptcp/saturated" or operation == "mptcp/stream" and keys["where"] == "msk":
                yield row, keys, phase


class Ledger(unittest.TestCase):
    def test_every_row(self):
        seen, wrong = set(), []
        for row, keys, phase in rows():
            seen.add((keys["variant"], keys["mtu"], keys.get("backlog")))
            wrong += [f"{row['case']}: {column} is {row[column]}, should be {count}"
                      for column, count in expected(keys)[phase].items() if int(row[column]) != count]
        self.assertEqual(wrong, [])
        self.assertGreater(len(seen), 17)
        self.assertEqual({variant for variant, _, backlog in seen if backlog is None},
                         {"before", "size_bias", "psh", "split", "posted", "merged", "split_fixed"})

    def test_fill(self):
        """The table that was worked out by hand, for a goal of 65160: half-full sk_buffs, and full ones."""
        sizes = [[sum(skb) for skb in fill([DFRAG] * 4, 65160, biased)] for biased in (False, True)]
        self.assertEqual(sizes, [[32728] * 4, [65160, 65160, 592]])

    def test_finds_what_is_wrong(self):
        row, keys, phase = next(rows())
        for column, count in expected(keys)[phase].items():
            self.assertNotEqual(int(row[column]) + 1, count)


if __name__ == "__main__":
    unittest.main()
