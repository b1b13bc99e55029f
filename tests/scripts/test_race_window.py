# SPDX-License-Identifier: MIT
"""The NIC's transmit timing (sim/nic.c) against a model of the same that shares no code with it.

This one works in exact fractions and looks at the buffer's level as a function of time; the C model works in
picoseconds and goes from event to event. They may differ by the roundings: half a picosecond for each time added.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SKB_SEED", "20121"), 0)


def lone_tso(wire, pcie, tlp, mps, header, framing, min_wire, threshold, backlog, start, writeback, size, mss, k):
    """(segment k out, last out, fetched, DD, window) of one packet posted at 0, in ps; rates in Mbit/s."""
    per_byte = Fraction(8 * 10**6, wire)
    backlog_end = backlog * per_byte
    payloads = [min(mss, size - at) for at in range(0, size, mss)]
    departures, waiting = [], []
    now, wire_free = Fraction(start), backlog_end

    def level(moment):
        """Bytes in the buffer: a frame until its last bit has left, others' traffic bit by bit."""
        own = sum(frame for left, frame in waiting if left > moment)
        return own + max(Fraction(0), backlog_end - moment) / per_byte

    for payload in payloads:
        frame = payload + header
        # Where the level may begin to suffice: now, a departure, or while the others' traffic leaves.
        waiting = [(left, frame) for left, frame in waiting if left > now]
        moments = [now] + sorted(left for left, _ in waiting)
        for here, following in zip(moments, moments[1:] + [None]):
            excess = level(here) + frame - threshold
            if excess <= 0:
                now = here
                break
            drained = here + excess * per_byte
            if drained <= backlog_end and (following is None or drained < following):
                now = drained
                break
        else:
            raise AssertionError("the buffer never has room")
        now += (frame + tlp * (-(-payload // mps) + 1)) * Fraction(8 * 10**6, pcie)
        wire_free = max(wire_free, now) + max(frame + framing, min_wire) * per_byte
        departures.append(wire_free)
        waiting.append((wire_free, frame))
    done = now + writeback
    return departures[k - 1], departures[-1], now, done, done - departures[k - 1]


def random_case(rng):
    mss = rng.choice([88, 536, 1448, 1448, 1448, 8948])
    size = rng.randint(1, rng.choice([mss, 20000, 65160, 65160, 300000]))
    threshold = rng.randint(mss + 100, rng.choice([30000, 150000]))
    return [rng.choice([1000, 10000, 25000, 40000, 100000]), rng.randint(1000, 64000), rng.randint(0, 30),
            rng.choice([128, 256, 512]), rng.randint(40, 80), 24, 84, threshold,
            rng.choice([0, rng.randint(0, threshold), rng.randint(0, 2 * threshold)]), rng.randint(0, 2 * 10**6),
            rng.randint(0, 10**6), size, mss, rng.randint(1, -(-size // mss))]


class RaceWindow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = None
        cls.program = os.environ.get("NIC_PRINT")
        if not cls.program:
            cls.temporary = tempfile.TemporaryDirectory(prefix="skbench-nic-")
            cls.program = os.path.join(cls.temporary.name, "nic_print")
            subprocess.run(["cc", "-std=gnu11", "-O1", "-I.", "sim/nic.c", "sim/nic_presets.c", "skb/bug.c",
                            "tests/sim/nic_print.c", "-o", cls.program], cwd=ROOT, check=True)

    @classmethod
    def tearDownClass(cls):
        if cls.temporary:
            cls.temporary.cleanup()

    def model(self, cases):
        done = subprocess.run([self.program], input="\n".join(" ".join(map(str, case)) for case in cases),
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        self.assertEqual(len(rows), len(cases))
        return rows

    def compare(self, cases):
        for case, row in zip(cases, self.model(cases)):
            # Each segment adds a fetch, a wire time and perhaps a wait, each rounded.
            slack = 2 * (-(-case[11] // case[12])) + 2
            for value, exact in zip(row, lone_tso(*case)):
                self.assertLessEqual(abs(value - exact), slack, f"{case}: {row}")

    def test_random_parameters(self):
        rng = random.Random(SEED)
        print(f"SKB_SEED={SEED} replays it")
        self.compare([random_case(rng) for _ in range(150)])

    def test_known_windows(self):
        def case(pcie, backlog=0, threshold=150000):
            return [10000, pcie, 24, 256, 66, 24, 84, threshold, backlog, 10**6, 300000, 65160, 1448, 2]

        cases = [case(5200), case(8000), case(32000), case(32000, 148000), case(32000, 0, 20000)]
        for window, row in zip((110, 71, 16, -67, 38), self.model(cases)):
            self.assertAlmostEqual(row[4] / 10**6, window, delta=0.6)
        self.compare(cases)

    def test_bad_lines_are_refused(self):
        for line in ("1 2 3", "x", "0 8000 24 256 66 24 84 150000 0 0 0 65160 1448 2",
                     "10000 8000 24 256 66 24 84 150000 0 0 0 65160 1448 46"):
            done = subprocess.run([self.program], input=line, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, line)


if __name__ == "__main__":
    sys.exit(unittest.main())
