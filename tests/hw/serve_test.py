#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Driver and model in two processes, by vfio-user: it works, and the end of either is told and cleaned up.

SKBENCH_HW names the program. SKB_SEED replays the random bytes.
"""

import json
import os
import random
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

PROGRAM = os.environ["SKBENCH_HW"]
SECONDS = 60  # until something counts as hung
VERSION, MAP, INFO = 1, 2, 4


def message(command, body, number=1, flags=0, size=None):
    return struct.pack("<HHIII", number, command, 16 + len(body) if size is None else size, flags, 0) + body


HELLO = message(VERSION, struct.pack("<HH", 0, 1) + b'{"capabilities":{}}\0')


class Served(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "nic"
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.directory.cleanup()

    def start(self, *words):
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def serve(self, *words):
        server = self.start("serve", "--socket", self.path, *words)
        self.assertEqual(server.stdout.readline(), f"serving {self.path}\n")
        return server

    def await_client(self, server):
        """Until SERVER has taken a client, which on a busy machine may be seconds behind its start."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            links = [os.readlink(path) for path in Path(f"/proc/{server.pid}/fd").iterdir() if path.is_symlink()]
            if sum(link.startswith("socket:") for link in links) > 1:  # the listening one, and the client's
                return
            time.sleep(0.05)
        self.fail("no client has come")

    def ended(self, process, status):
        out, err = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, status, out + err)
        self.assertNotIn("Sanitizer", err)
        return out, err

    def connected(self, *sent):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(SECONDS)
        client.connect(str(self.path))
        for data in sent:
            client.sendall(data)
        return client


class Together(Served):
    def test_selftest(self):
        server = self.serve()
        out, _ = self.ended(self.start("selftest", "--device", f"vfio-user:{self.path}"), 0)
        self.assertIn("7 passed, 0 failed", out)
        out, err = self.ended(server, 0)
        self.assertIn("0 violations", out)
        self.assertEqual(err, "")
        self.assertFalse(self.path.exists())

    def test_selftest_on_others(self):
        for device in ("0x1528", "0x1563", "0x15ac", "0x15ce"):
            with self.subTest(device):
                server = self.serve("--id", device)
                out, _ = self.ended(self.start("selftest", "--device", self.path), 0)
                self.assertIn("7 passed, 0 failed", out)
                self.assertIn("0 violations", self.ended(server, 0)[0])

    def test_a_path_is_enough(self):
        self.serve()
        told = json.loads(self.ended(self.start("selftest", "--device", self.path, "--json", "-"), 0)[0])
        self.assertEqual(told["failed"], 0)
        self.assertIn("write_back_threshold", [check["name"] for check in told["checks"]])  # with interrupts

    def test_frames_of_the_wire(self):
        pcap = Path(self.directory.name) / "frames.pcapng"
        server = self.serve("--pcap", pcap)
        self.ended(self.start("selftest", "--device", self.path), 0)
        self.ended(server, 0)
        self.assertGreater(pcap.stat().st_size, 10_000_000)


class Ends(Served):
    def running(self):
        """A server and a client in the middle of its work."""
        server = self.serve("--slow", "2000")
        client = self.start("selftest", "--device", f"vfio-user:{self.path}")
        self.await_client(server)
        time.sleep(1.5)
        self.assertIsNone(client.poll())
        return server, client

    def test_client_is_killed(self):
        server, client = self.running()
        client.kill()
        server.wait(timeout=SECONDS)
        # Between two of its checks the device stands still.
        _, err = self.ended(server, server.returncode if server.returncode == 0 else 5)
        self.assertEqual(len(err.splitlines()), 1 if server.returncode else 0, err)
        self.assertFalse(self.path.exists())

    def test_server_is_killed(self):
        server, client = self.running()
        server.kill()
        out, _ = self.ended(client, 5)
        self.assertIn("gone", out)

    def test_server_is_told_to_stop(self):
        server, client = self.running()
        server.terminate()
        _, err = self.ended(server, 0)
        self.assertIn("stopped by a signal", err)
        self.assertFalse(self.path.exists())
        self.assertIn("gone", self.ended(client, 5)[0])

    def test_server_stops_before_anybody_comes(self):
        server = self.serve()
        server.send_signal(signal.SIGINT)
        self.ended(server, 0)
        self.assertFalse(self.path.exists())


class Race(Served):
    """Real time, so that only what must be so is looked at: sums, and races of a device that is made very slow."""

    def race(self, *words, status=0, peer=None):
        device = ["--device", f"vfio-user:{self.path}"] + (["--peer", peer] if peer else [])
        out, err = self.ended(self.start("race", *device, "--json", "-", *words), status)
        return json.loads(out), err

    def cell(self, told, skbs, number=0):
        eager, lazy = told["cells"][number]["variants"]
        for one in (eager, lazy):
            self.assertEqual(one["skbs"], skbs)
            self.assertEqual(one["segments"], 45 * skbs)
            self.assertEqual(one["races"], one["races_before_dd"] + one["races_before_reclaim"])
            self.assertLessEqual(one["races"], skbs)
            self.assertGreaterEqual(one["trims"], one["races"])
            self.assertGreater(one["partial_acks"], 0)
        return eager

    def test_loopback(self):
        # A fetch of 150 ms at this rate, and ACKs from 9 ms on.
        server = self.serve("--slow", "2000", "--point", "gen1x4")
        told, err = self.race("--skbs", "3", "--rtt", "1")
        self.assertEqual((told["device"], told["peer"], err), (f"vfio-user:{self.path}", "loopback", ""))
        eager = self.cell(told, 3)
        self.assertEqual(eager["acks"], 3 * 23)
        self.assertGreater(eager["races_before_dd"], 0)
        self.assertEqual([one["races"] for one in told["controls"]], [0, 0, 0])
        self.ended(server, 0)

    def test_somebody_else_acknowledges(self):
        server = self.serve("--slow", "200", "--partner", "ack", "--rtt", "500", "--k", "3", "--point", "gen1x4")
        told, _ = self.race("--skbs", "5", "--mode", "irq", "--itr", "100", peer="external")
        self.assertEqual(self.cell(told, 5)["acks"], 5 * 15)
        self.assertEqual(told["controls"], [])
        out, _ = self.ended(server, 0)
        self.assertIn("450 segments acknowledged by 150 ACKs, 0 violations", out)

    def test_markers(self):
        for words, peer in (((), None), (("--partner", "ack", "--rtt", "100"), "external")):
            server = self.serve("--slow", "100", *words)
            told, _ = self.race("--skbs", "4", "--marker", "--rtt", "100", peer=peer)
            eager = self.cell(told, 4)
            # 45 segments of 1538 bytes at a hundredth of 10 Gbit/s: the wire cannot be faster.
            self.assertGreaterEqual(eager["sent_after_doorbell_us"]["min"], 5536)
            out, _ = self.ended(server, 0)
            self.assertIn("0 violations", out)
        server = self.serve()
        _, err = self.ended(self.start("race", "--device", self.path, "--marker", "--inflight", "2"), 2)
        self.assertIn("one packet in flight", err)
        self.ended(server, 0)

    def test_one_vector(self):
        server = self.serve("--slow", "50", "--partner", "ack", "--rtt", "500")
        told, _ = self.race("--skbs", "4", "--inflight", "2", "--mode", "irq-shared", "--itr", "50", "--wthresh", "8",
                            peer="external")
        self.cell(told, 4)
        self.ended(server, 0)

    def test_two_ports(self):
        other = f"{self.path}2"
        server = self.serve("--wire", other, "--slow", "200", "--point", "gen1x4")
        told, _ = self.race("--skbs", "4", "--rtt", "100", "--sweep", "inflight=1:2",
                            peer=f"vfio-user:{other}")
        for number in range(2):
            self.assertEqual(self.cell(told, 4, number)["acks"], 4 * 23)
        out, _ = self.ended(server, 0)
        self.assertEqual(out.count("0 violations"), 2)
        self.assertFalse(Path(other).exists())

    def test_signal(self):
        server = self.serve("--slow", "5000")
        racer = self.start("race", "--device", self.path, "--skbs", "500", "--json", Path(self.directory.name) / "so-far")
        time.sleep(3)
        racer.send_signal(signal.SIGINT)
        out, err = self.ended(racer, 5)
        self.assertIn("stopped by a signal", err)
        if "stopped before" not in out:
            self.assertIn("of 500 packets", out)
        self.assertTrue(json.loads((Path(self.directory.name) / "so-far").read_text())["stopped"])
        _, err = self.ended(server, 0)  # the device was stopped, bus mastering off
        self.assertEqual(err, "")

    def test_device_goes(self):
        server = self.serve("--slow", "1000")
        racer = self.start("race", "--device", self.path, "--skbs", "500", "--rtt", "1")
        time.sleep(3)
        server.kill()
        out, err = self.ended(racer, 5)
        self.assertIn("gone in mid-run", err)
        if out:
            self.assertIn("ENDED EARLY", out)

    def test_faults(self):
        for fault, says, violation in (("link=100", "the link was lost in mid-run", None),
                                       ("gone=100", "gone in mid-run", None),
                                       ("stall=100", "transmit queue 0 hangs: TDH", None),
                                       ("iommu=100", "look for DMAR or AMD-Vi faults", "IOMMU_FAULT")):
            with self.subTest(fault):
                server = self.serve("--partner", "ack", "--rtt", "100", "--slow", "20", "--fault", fault)
                json_file = Path(self.directory.name) / fault
                out, err = self.ended(self.start("race", "--device", self.path, "--peer", "external", "--skbs", "8",
                                                 "--json", json_file), 5)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertIn(says, err)
                # 100 of the 360 frames went: two packets of 45, at most.
                self.assertIn("ENDED EARLY", out)
                told = json.loads(json_file.read_text())["cells"][0]["variants"][0]
                self.assertIn(told["skbs"], (1, 2))
                out, err = self.ended(server, 5 if violation else 0)
                if violation:
                    self.assertIn(violation, err)
                else:
                    self.assertIn("0 violations", out)  # stopped as it should be, or as far as it goes

    def test_racer_is_killed(self):
        server = self.serve("--slow", "1000")
        racer = self.start("race", "--device", self.path, "--skbs", "500", "--rtt", "1")
        self.await_client(server)
        time.sleep(2)
        racer.kill()
        self.assertIn("with the device running", self.ended(server, 5)[1])

    def test_nobody_answers(self):
        server = self.serve("--slow", "10")
        _, err = self.ended(self.start("race", "--device", self.path, "--peer", "external", "--skbs", "2"), 5)
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn("does the peer answer?", err)
        self.ended(server, 0)

    def test_usage(self):
        for words in (("--point", "gen2x8"), ("--pcie", "8000"), ("--pcap", "x"), ("--sweep", "pcie=1000:2000:500"),
                      ("--peer-mac", "03:00:00:00:00:00", "--peer", "external"), ("--peer-mac", "02:00:00:00:00:00"),
                      ("--peer", "model"), ("--peer", str(self.path))):
            out, err = self.ended(self.start("race", "--device", self.path, *words), 2)
            self.assertEqual((out, len(err.splitlines())), ("", 1), words)
        self.ended(self.start("race", "--peer", "loopback"), 2)
        self.ended(self.start("race", "--marker"), 2)
        server = self.serve()
        _, err = self.ended(self.start("race", "--device", self.path, "--mode", "irq-shared"), 2)
        self.assertIn("another peer", err)
        self.ended(server, 0)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU alone")
    def test_one_cpu(self):
        server = self.serve()
        racer = subprocess.run([PROGRAM, "race", "--device", str(self.path)], capture_output=True, text=True,
                               preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]), check=False)
        self.assertEqual(racer.returncode, 2)
        self.assertIn("a CPU each", racer.stderr)
        self.ended(server, 0)


class Strangers(Served):
    def test_nobody_serves(self):
        _, err = self.ended(self.start("selftest", "--device", f"vfio-user:{self.path}"), 4)
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn("skbench hw serve", err)

    def test_served_already(self):
        server = self.serve()
        _, err = self.ended(self.start("serve", "--socket", self.path), 4)
        self.assertIn("Address already in use", err)
        self.assertTrue(self.path.exists())
        server.terminate()
        self.ended(server, 0)

    def test_a_client_that_speaks_something_else(self):
        for sent, says in ((b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "a message says that it has"),
                           (message(INFO, struct.pack("<I", 16)), "before the version"),
                           (message(VERSION, struct.pack("<HH", 7, 0)), "version 7.0"),
                           (HELLO + message(INFO, b"", flags=1), "no command"),
                           (HELLO + message(INFO, b"", size=15), "15 bytes"),
                           (HELLO + message(INFO, b"", size=1 << 30), "1073741824 bytes")):
            with self.subTest(says):
                server = self.serve()
                client = self.connected(sent)
                _, err = self.ended(server, 5)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertIn(says, err)
                client.close()

    def test_a_client_that_stops_in_the_middle(self):
        server = self.serve()
        client = self.connected(HELLO, message(INFO, bytes(16))[:7])
        _, err = self.ended(server, 5)
        self.assertIn("does not come to its end", err)
        client.close()

    def test_random_bytes(self):
        seed = int(os.environ.get("SKB_SEED", "1"), 0)
        print(f"SKB_SEED={seed}")
        rng = random.Random(seed)
        for _ in range(40):
            server = self.serve()
            data = bytearray(HELLO + b"".join(
                message(rng.randrange(1, 16), rng.randbytes(rng.choice([0, 4, 16, 20, 32, 200])), number)
                for number in range(rng.randrange(60))))
            for _ in range(rng.randrange(20)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                self.connected(bytes(data)).close()
            except (BrokenPipeError, ConnectionResetError):
                pass
            out, err = server.communicate(timeout=SECONDS)
            self.assertIn(server.returncode, (0, 5), out + err)
            self.assertLessEqual(len(err.splitlines()), 3, err)
            self.assertFalse(self.path.exists())

    def answered(self, *answers):
        """What selftest says to a server that gives these ANSWERS, each to one message, and then closes."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen(1)

        def run():
            peer, _ = listener.accept()
            for answer in answers:
                head = peer.recv(16)
                size = struct.unpack_from("<I", head, 4)[0]
                peer.recv(size - 16)
                peer.sendall(answer)
            peer.close()

        thread = threading.Thread(target=run)
        thread.start()
        _, err = self.ended(self.start("selftest", "--device", f"vfio-user:{self.path}"), 4)
        thread.join()
        listener.close()
        self.path.unlink()
        self.assertEqual(len(err.splitlines()), 1, err)
        return err

    def test_a_server_that_speaks_something_else(self):
        good = message(VERSION, struct.pack("<HH", 0, 1) + b"{}\0", flags=1)
        self.assertIn("does not speak vfio-user", self.answered())
        self.assertIn("does not speak vfio-user", self.answered(b"220 ready for mail\r\n"))
        self.assertIn("does not speak vfio-user", self.answered(message(VERSION, b"", number=9, flags=1)))
        self.assertIn("another version", self.answered(message(VERSION, struct.pack("<HH", 3, 0), flags=1)))
        self.assertIn("no BAR 0", self.answered(good))
        self.assertIn("no BAR 0", self.answered(good, message(INFO, bytes(8), number=2, flags=1)))

    def test_usage(self):
        for words in ((), ("--socket",), ("--socket", "x", "--slow", "0"), ("--socket", "x", "--partner", "friend"),
                      ("--socket", "x", "--ack", "never"), ("--frob",), ("--socket", "x", "--fault", "link=1"),
                      ("--socket", "x", "--partner", "ack", "--fault", "fire=1"),
                      ("--socket", "x", "--partner", "ack", "--fault", "link"),
                      ("--socket", "x", "--wire", "x"), ("--socket", "x", "--id", "0x57ae")):
            out, err = self.ended(self.start("serve", *words), 2)
            self.assertEqual((out, len(err.splitlines())), ("", 1))
        self.ended(self.start("serve", "--socket", "/" + "x" * 200), 4)
        self.assertIn("usage", self.ended(self.start("serve", "--help"), 0)[0])


if __name__ == "__main__":
    unittest.main()
