# SPDX-License-Identifier: MIT
"""A flame graph as a browser shows it: its texts and titles are there, nothing is complained of, and it has colours."""

import re
import struct
import subprocess
import tempfile
import unittest
import zlib
from pathlib import Path

from support import ROOT  # noqa: F401  (puts the package on the path)

from skbench_lib import flame

STACKS = {("sender", ("tcp_ack", False), ("kfree_skb", False)): 70, ("sender", ("tcp_<ack> & more", False)): 20,
          ("sender", ("irq", True)): 10}
TITLE = "tcp/trim/frags:16 <of> & more"


def pixels(png):
    """(width, rows) of a PNG of 8-bit RGB or RGBA without interlacing; a row is its bytes, a pixel three or four of them."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            if depth != 8 or colour not in (2, 6) or interlace:
                raise ValueError(f"depth {depth}, colour {colour}, interlace {interlace}")
            step = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    raw, stride = zlib.decompress(data), width * step
    above, rows = bytearray(stride), []
    for y in range(height):
        how, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            a, b, c = row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
            if how == 1:
                row[i] = (row[i] + a) & 255
            elif how == 2:
                row[i] = (row[i] + b) & 255
            elif how == 3:
                row[i] = (row[i] + (a + b) // 2) & 255
            elif how == 4:
                far = [(abs(b - c), a), (abs(a - c), b), (abs(a + b - 2 * c), c)]
                row[i] = (row[i] + min(far, key=lambda entry: entry[0])[1]) & 255
        above = row
        rows.append(bytes(row))
    return step, rows


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.path = Path(scratch.name)
        (cls.path / "flame.svg").write_text(flame.svg(STACKS, TITLE, "below", lambda weight, share: f"{weight} of 100"),
                                            encoding="utf-8")

    def chromium(self, *arguments):
        # --no-sandbox: a container's root has no user namespaces to build one from.
        return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                               f"--user-data-dir={self.path}/profile", "--enable-logging=stderr", *arguments,
                               f"file://{self.path}/flame.svg"], capture_output=True, text=True, timeout=120, check=True)

    def test_texts_and_titles(self):
        done = self.chromium("--dump-dom")
        for text in (">sender</text>", ">tcp_ack</text>", ">kfree_skb</text>", ">irq [k]</text>", "below</text>"):
            self.assertIn(text, done.stdout)
        self.assertIn("&lt;of&gt; &amp; more</title>", done.stdout)
        self.assertEqual(sorted(re.findall(r"<title>([^<\n]*)\n(\d+) of 100</title>", done.stdout)), [
            ("all", "100"), ("irq [k]", "10"), ("kfree_skb", "70"), ("sender", "100"), ("tcp_&lt;ack&gt; &amp; more", "20"),
            ("tcp_ack", "70")])
        # What a page has to say for itself; the rest of the log is the browser's own.
        self.assertNotIn("CONSOLE", done.stderr)
        self.assertNotIn("parsererror", done.stdout)

    def test_a_picture(self):
        self.chromium(f"--window-size={flame.WIDTH},200", f"--screenshot={self.path}/flame.png")
        step, rows = pixels((self.path / "flame.png").read_bytes())
        self.assertEqual((len(rows), len(rows[0]) // step), (200, flame.WIDTH))
        # The row of what calls nothing, at its lower edge where no text is: kfree_skb, then nothing, both as wide as told.
        row = rows[flame.HEAD + flame.ROW - 4]
        shown = [row[x * step:x * step + 3] for x in range(flame.WIDTH)]
        coloured = [x for x, pixel in enumerate(shown) if pixel != b"\xff\xff\xff"]
        whole = flame.WIDTH - 2 * flame.MARGIN
        self.assertAlmostEqual(len(coloured), 0.7 * whole, delta=4)
        # Beside irq, and the one of its callers that calls nothing: 30 of 100.
        self.assertAlmostEqual(coloured[0], flame.MARGIN + 0.3 * whole, delta=3)


if __name__ == "__main__":
    unittest.main()
