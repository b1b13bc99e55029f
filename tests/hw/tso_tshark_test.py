#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The frames of tso_random_test, as tshark reads them: every checksum right, none missing.

HW_TSO_RANDOM names the program. The frames go through a pipe: they are some hundred megabytes.
"""

import collections
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["HW_TSO_RANDOM"]
OPTIONS = [word for option in ("tcp.check_checksum:TRUE", "ip.check_checksum:TRUE", "tcp.desegment_tcp_streams:FALSE",
                               "tcp.analyze_sequence_numbers:FALSE") for word in ("-o", option)]
FIELDS = [word for field in ("ip.version", "ip.checksum.status", "tcp.checksum.status", "ip.len", "ipv6.plen",
                             "frame.len") for word in ("-e", field)]
GOOD = "1"


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed: scripts/install-packages test")
class Frames(unittest.TestCase):
    def test_every_checksum(self):
        with tempfile.TemporaryDirectory() as directory:
            pipe = Path(directory) / "frames"
            os.mkfifo(pipe)
            with subprocess.Popen([PROGRAM], env=os.environ | {"SKB_PCAP": str(pipe)}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) as made:
                read = subprocess.run(["tshark", "-r", pipe, *OPTIONS, "-T", "fields", *FIELDS], capture_output=True,
                                      text=True, check=True)
                said = made.communicate()[0]
        self.assertEqual(made.returncode, 0, said)
        packets, frames = map(int, re.search(r"(\d+) packets, (\d+) frames", said).groups())
        rows = [line.split("\t") for line in read.stdout.splitlines()]
        self.assertEqual(len(rows), frames)
        self.assertGreater(frames, packets)
        versions = collections.Counter()
        for version, ip_sum, tcp_sum, ip_len, ipv6_len, length in rows:
            versions[version] += 1
            self.assertEqual(tcp_sum, GOOD)
            # Short frames are padded.
            if version == "4":
                self.assertEqual(ip_sum, GOOD)
                self.assertEqual(max(14 + int(ip_len), 60), int(length))
            else:
                self.assertEqual(max(14 + 40 + int(ipv6_len), 60), int(length))
        self.assertEqual(set(versions), {"4", "6"})


if __name__ == "__main__":
    unittest.main()
