#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What ixgbe_guest.py makes of a guest's words and of frames, without a guest: that it finds what is wrong.

SKBENCH_SAME_MODEL names the program that sends TSO packets through the model.
"""

import contextlib
import io
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import guestlib  # noqa: E402
import ixgbe_guest  # noqa: E402
from ixgbe_guest import Segment, Stream, UserError, Verdict  # noqa: E402

KNOWS = "vfio-user-pci options:"


class Ending(unittest.TestCase):
    """What a script of guests ends with: only what the machine lacks may count as skipped."""

    def ended(self, error=None, status=0):
        def script(arguments):
            self.assertEqual(arguments, ["build"])
            if error:
                raise error
            return status

        with contextlib.redirect_stderr(io.StringIO()) as err:
            ended = guestlib.ending("x.py", script, ["build"])
        return ended, err.getvalue()

    def test_its_own(self):
        self.assertEqual(self.ended(status=1), (1, ""))

    def test_lacking(self):
        self.assertEqual(self.ended(UserError("no QEMU")), (4, "x.py: no QEMU\n"))
        self.assertEqual(self.ended(FileNotFoundError(2, "No such file", "tshark"))[0], 4)

    def test_failing(self):
        for error in (UserError("serve: no socket", 5), FileNotFoundError(2, "No such file", "build/hw/same_model"),
                      subprocess.CalledProcessError(1, ["gcc"]), subprocess.TimeoutExpired(["qemu"], 3), PermissionError()):
            with self.subTest(error):
                self.assertEqual(self.ended(error)[0], 1)


class Qemu(unittest.TestCase):
    """Programs that say what a QEMU says."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def program(self, name, says, status=0):
        path = Path(self.directory.name) / name / ixgbe_guest.QEMU
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n[ \"$*\" = \"-device vfio-user-pci,help\" ] && echo '{says}'\nexit {status}\n")
        path.chmod(0o755)
        return path

    def test_first_in_path_that_knows(self):
        older, one, other = self.program("a", "", 1), self.program("b", KNOWS), self.program("c", KNOWS)
        with mock.patch.dict(os.environ, PATH=":".join(str(path.parent) for path in (older, one, other))):
            self.assertEqual(ixgbe_guest.find_qemu(None), str(one))
            self.assertEqual(ixgbe_guest.find_qemu(str(other)), str(other))
            with self.assertRaisesRegex(UserError, "does not know vfio-user-pci: install QEMU 10.1"):
                ixgbe_guest.find_qemu(str(older))

    def test_none(self):
        older = self.program("a", "", 1)
        with mock.patch.dict(os.environ, PATH=str(older.parent)):
            with self.assertRaisesRegex(UserError, "no qemu-system-x86_64 here knows vfio-user-pci: install QEMU 10.1"):
                ixgbe_guest.find_qemu(None)
            with self.assertRaisesRegex(UserError, "no program"):
                ixgbe_guest.find_qemu("/nowhere/qemu")

    def test_one_sentence_and_status_4(self):
        done = subprocess.run([sys.executable, ixgbe_guest.__file__, "--qemu", "/nowhere", "/tmp"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (4, "", 1), done.stderr)
        for words in (["--bytes", "1"], ["--slow", "0"], ["--pcap", __file__], ["--frob"]):
            done = subprocess.run([sys.executable, ixgbe_guest.__file__, *words, "/tmp"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as work:
            pcap = Path(work) / "frames.pcapng"
            subprocess.run([os.environ["SKBENCH_SAME_MODEL"], pcap], check=True)
            cls.wire = ixgbe_guest.Wire(pcap)
            cls.frames = {}
            for comment, frame in ixgbe_guest.frames(pcap):
                cls.frames.setdefault(comment.split(" segment")[0], []).append(frame)
            cls.tso = max(cls.frames.values(), key=len)
            cls.sums = ixgbe_guest.tshark(pcap) if ixgbe_guest.shutil.which("tshark") else None

    def test_the_model_is_right(self):
        alone = sum(len(frames) == 1 for frames in self.frames.values())
        self.assertEqual((len(self.frames), len(self.wire.tso)), (64, 64 - alone))
        self.assertEqual(sum(len(segments) for _, segments in self.wire.tso), self.wire.frames - alone)
        for key, segments in self.wire.tso:
            self.assertEqual(int(key[2]), len(segments))
            self.assertIsNone(ixgbe_guest.wrong_segments(segments))

    def test_tshark(self):
        if self.sums is None:
            self.skipTest("tshark is not installed")
        self.assertEqual(self.sums[:3], (self.wire.frames, 0, self.wire.frames))

    def changed(self, number, at, form, add):
        """The segments of a packet, whose NUMBER-th has ADD more in the field of FORM at AT."""
        frames = [bytearray(frame) for frame in self.tso]
        value = struct.unpack_from(form, frames[number], at)[0]
        struct.pack_into(form, frames[number], at, (value + add) & (0xffffffff if form == "!I" else 0xffff))
        return [Segment(bytes(frame)) for frame in frames]

    def test_what_is_wrong(self):
        ip, tcp = 14, 34
        self.assertIsNone(ixgbe_guest.wrong_segments(self.changed(1, tcp, "!H", 0)))
        for at, form, add, says in ((tcp + 4, "!I", 1, "sequence"), (ip + 4, "!H", 1, "identification"),
                                    (ip + 2, "!H", -1, "lengths"), (tcp + 8, "!I", 1, "the rest"), (tcp, "!H", 1, "the rest")):
            with self.subTest(says):
                self.assertIn(says, ixgbe_guest.wrong_segments(self.changed(1, at, form, add)))
        frames = [bytearray(frame) for frame in self.tso]
        frames[1][tcp + 13] |= 8
        self.assertIn("PSH", ixgbe_guest.wrong_segments([Segment(bytes(frame)) for frame in frames]))

    def test_a_stream_put_together(self):
        segments = [Segment(frame) for frame in self.tso]
        opening = mock.Mock(flags=2, version=4, payload=b"", sequence=(segments[0].sequence - 1) & 0xffffffff)
        all_of = b"".join(one.payload for one in segments)
        for order, again in ((segments, 0), (segments[:3] + segments[4:6] + [segments[3]] + segments[6:], 0),
                             (segments[:3] + segments[1:], 2), (segments[:-1], None)):
            stream = Stream(opening)
            for one in (opening, *order):
                stream.take(one)
            if again is None:
                self.assertEqual(stream.bytes, len(all_of) - len(segments[-1].payload))
                continue
            self.assertEqual((stream.bytes, stream.again, stream.sha.digest()),
                             (len(all_of), again, ixgbe_guest.hashlib.sha256(all_of).digest()))


class Words(unittest.TestCase):
    def verdict(self, method, *args):
        verdict = Verdict()
        with contextlib.redirect_stdout(io.StringIO()):
            got = getattr(verdict, method)(*args)
        return verdict.bad, got

    def test_guest(self):
        line = "stream a-b IPv4 bytes 4096 ms 12 segments 5 retransmitted 0 sha256 00ff\n"
        bad, streams = self.verdict("guest", f"ok probe\n{line}end 0 failed\n")
        self.assertEqual((bad, streams), ([], [("a-b", "4", "4096", "12", "5", "0", "00ff")]))
        self.assertEqual(len(self.verdict("guest", f"ok probe\n{line}")[0]), 1)
        self.assertIn("FAILED up_a: eth0 has no carrier",
                      self.verdict("guest", "FAILED up_a: eth0 has no carrier\nend 1 failed\n")[0])

    def test_server(self):
        good = "/x/a: 9 messages, 0 segments\n    FCTRL, 3 times: y\n/x/b: 9 messages, 0 segments\n"
        told = "skbench: hw: serve: violation FCTRL at 1 us\n"
        self.assertEqual(self.verdict("server", good, told, 5)[0], [])
        self.assertEqual(self.verdict("server", good.replace("FCTRL", "PAYLEN"), told, 5)[0],
                         ["the model has found PAYLEN"])
        self.assertEqual(len(self.verdict("server", good, told, 0)[0]), 1)
        self.assertEqual(len(self.verdict("server", good.replace("/x/b: 9 messages, ", ""), told, 5)[0]), 1)
        self.assertEqual(len(self.verdict("server", good, told + "the client went away with the device running\n", 5)[0]), 1)


if __name__ == "__main__":
    unittest.main()
