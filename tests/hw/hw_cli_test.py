#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""skbench_hw as its user sees it: tables, JSON, packets in a pcapng file, exit statuses.

SKBENCH_HW names the program. The file of packets is read here by code of its own, and by tshark where that is installed.
"""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["SKBENCH_HW"]


def hw(*words, status=0):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120)
    if done.returncode != status:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def ones_sum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data[:len(data) & ~1])) + (data[-1] << 8 if len(data) & 1 else 0)
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def blocks(data):
    """(type, body) of each block of a pcapng file."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size % 4 == 0 and struct.unpack_from("<I", data, at + size - 4)[0] == size
        yield kind, data[at + 8:at + size - 4]
        at += size


def options(body):
    out = {}
    at = 0
    while True:
        code, size = struct.unpack_from("<HH", body, at)
        if code == 0:
            return out
        out[code] = body[at + 4:at + 4 + size]
        at += 4 + (size + 3) // 4 * 4


class Pcap:
    """The packets of a file: (ns, direction, bytes, comment)."""

    def __init__(self, path):
        found = list(blocks(Path(path).read_bytes()))
        assert found[0][0] == 0x0A0D0D0A and struct.unpack_from("<I", found[0][1])[0] == 0x1A2B3C4D
        assert found[1][0] == 1 and struct.unpack_from("<H", found[1][1])[0] == 1
        assert options(found[1][1][8:])[9] == b"\x09"  # ns
        self.packets = []
        for kind, body in found[2:]:
            assert kind == 6
            _, high, low, size, _ = struct.unpack_from("<IIIII", body)
            rest = options(body[20 + (size + 3) // 4 * 4:])
            self.packets.append((high << 32 | low, rest[2][0] & 3, body[20:20 + size], rest.get(1, b"").decode()))


def tcp_of(frame):
    """(seq, ack, flags, payload) of a frame whose sums are right."""
    ip = frame[14:]
    assert frame[12:14] == b"\x08\x00" and ip[0] == 0x45 and ip[9] == 6
    total = struct.unpack_from(">H", ip, 2)[0]
    assert ones_sum(ip[:20]) == 0xFFFF, "IPv4 checksum"
    segment = ip[20:total]
    assert ones_sum(ip[12:20] + struct.pack(">HH", 6, len(segment)) + segment) == 0xFFFF, "TCP checksum"
    seq, ack = struct.unpack_from(">II", segment, 4)
    return seq, ack, segment[13], segment[(segment[12] >> 4) * 4:]


class Selftest(unittest.TestCase):
    def test_table_and_json(self):
        text = hw("selftest").stdout
        self.assertIn("64 KB leave in 55.37 us, last minus first segment 54.14 us", text)
        self.assertEqual(text.splitlines()[-1], "8 passed, 0 failed")
        told = json.loads(hw("selftest", "--seed", "9", "--json", "-").stdout)
        self.assertEqual(told["failed"], 0)
        self.assertEqual([check["name"] for check in told["checks"] if not check["passed"]], [])

    def test_models_of_others(self):
        for what in ("82599", "X540", "x550", "X552", "X553", "0x10f7", "0x15e5"):
            told = json.loads(hw("selftest", "--device", f"model:{what}", "--json", "-").stdout)
            self.assertEqual((told["device"], len(told["checks"]), told["failed"]), (f"model:{what}", 8, 0))
        for what in ("", "X710", "0x57ae", "0x10ed", "1528", "0x"):
            for command in ("selftest", "race"):
                done = hw(command, "--device", f"model:{what}", status=2)
                self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1), done.stderr)
                self.assertIn(f"'model:{what}'", done.stderr)
        hw("selftest", "--device", "models", status=4)

    def test_packets(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "tso.pcapng"
            hw("selftest", "--pcap", path)
            sent = [packet for packet in Pcap(path).packets if packet[1] == 2]
            self.assertEqual(len(sent), 45)
            stream = b""
            for number, (_, _, frame, comment) in enumerate(sent):
                seq, _, _, payload = tcp_of(frame)
                self.assertEqual(seq, len(stream))
                self.assertIn(f"segment {number + 1} of 45", comment)
                stream += payload
            self.assertEqual(stream, bytes((i % 4093 * 2654435761 & 0xFFFFFFFF) >> 24 for i in range(65160)))
            self.assertAlmostEqual(sent[-1][0] - sent[0][0], 54138, delta=1)  # ns
            # A file that is there is not overwritten.
            hw("selftest", "--pcap", path, status=2)

    @unittest.skipUnless(shutil.which("tshark"), "tshark is not installed: apt-get install tshark")
    def test_packets_as_tshark_reads_them(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "race.pcapng"
            hw("race", "--point", "gen2x8", "--skbs", "3", "--pcap", path)
            out = subprocess.run(["tshark", "-r", path, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
                                  "-T", "fields", "-e", "tcp.checksum.status", "-e", "ip.checksum.status"],
                                 capture_output=True, text=True, check=True).stdout.split()
            self.assertEqual(set(out), {"1"})


class Race(unittest.TestCase):
    def test_table(self):
        text = hw("race").stdout
        rows = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith(("patch", "gen", "fifo"))}
        self.assertEqual({name: row[2] for name, row in rows.items()},
                         {"patch": "100", "gen1x4": "100", "gen2x8": "0", "fifo_full": "0"})
        self.assertEqual([round(float(rows[name][1])) for name in ("patch", "gen1x4", "gen2x8", "fifo_full")],
                         [110, 71, 16, -67])
        self.assertEqual(text.count("0 races (must be 0)"), 3)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_models_of_others(self):
        """The MAC's successors race alike: rings, buffer and wire are the same."""
        def told(device):
            cells = json.loads(hw("race", "--device", device, "--point", "patch", "--skbs", "4", "--json", "-").stdout)["cells"]
            for variant in cells[0]["variants"]:
                del variant["ns_per_64kb_quick_look"]
            return cells

        usual = told("model")
        for what in ("X540", "X553"):
            self.assertEqual(told(f"model:{what}"), usual)
        self.assertIn("model of X550-T, virtual time", hw("race", "--device", "model:X550", "--skbs", "2").stdout)

    def test_json_and_packets(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "race.pcapng"
            told = json.loads(hw("race", "--point", "gen1x4", "--skbs", "4", "--pcap", path, "--json", "-").stdout)
            self.assertEqual([cell["point"] for cell in told["cells"]], ["gen1x4"])
            eager, lazy = told["cells"][0]["variants"]
            self.assertEqual((eager["variant"], lazy["variant"]), ("eager", "offset_ack"))
            for key in ("races", "acks", "segments", "virtual_us"):  # the variant changes no packet
                self.assertEqual(eager[key], lazy[key])
            self.assertEqual((eager["races"], eager["races_before_dd"], eager["races_before_reclaim"]), (4, 4, 0))
            packets = Pcap(path).packets
            sent = [packet for packet in packets if packet[1] == 2]
            acks = [packet for packet in packets if packet[1] == 1]
            self.assertEqual((len(sent), len(acks)), (eager["segments"], eager["acks"]))
            at = 1
            for _, _, frame, _ in sent:
                seq, _, flags, payload = tcp_of(frame)
                self.assertEqual(seq, at)
                self.assertEqual(flags & 0x08 != 0, (at - 1 + len(payload)) % 65160 == 0)  # PSH ends a TSO
                at += len(payload)
            self.assertEqual(tcp_of(acks[-1][2])[1], at)
            self.assertEqual([packet[0] for packet in packets], sorted(packet[0] for packet in packets))

    def test_sweeps(self):
        def share(*words):
            told = json.loads(hw("race", "--json", "-", "--skbs", "4", *words).stdout)
            return [cell["variants"][0]["races"] / 4 for cell in told["cells"]]

        # The step at the window's end, 16.3 us; what widens it: a slower slot, a shallower buffer, the reclaim.
        self.assertEqual(share("--point", "gen2x8", "--sweep", "rtt=8:24:4"), [1, 1, 1, 0, 0])
        self.assertEqual(share("--rtt", "30", "--point", "gen2x8", "--sweep", "pcie=8000:32000:8000"), [1, 1, 0, 0])
        self.assertEqual(share("--rtt", "30", "--point", "gen2x8", "--sweep", "threshold=20:140:60"), [1, 0, 0])
        self.assertEqual(share("--rtt", "30", "--point", "gen2x8", "--sweep", "reclaim=0:20:10"), [0, 0, 1])
        self.assertEqual(share("--rtt", "5", "--point", "gen2x8", "--sweep", "bytes=14480:65160:25340"), [0, 1, 1])
        self.assertEqual(share("--rtt", "40", "--point", "gen2x8", "--mode", "irq", "--wthresh", "8", "--sweep",
                               "itr=2:102:50")[0], 0)

    def test_jitter_makes_a_slope(self):
        told = json.loads(hw("race", "--json", "-", "--point", "gen1x4", "--rtt", "68", "--jitter", "8").stdout)
        one = told["cells"][0]["variants"][0]
        self.assertIn(one["races"], range(1, 32))
        bars, spread = one["dd_after_ack_histogram"], one["dd_after_ack_us"]
        self.assertEqual((len(bars["count"]), sum(bars["count"])), (16, 32))
        self.assertAlmostEqual(bars["first_us"], spread["min"])
        self.assertAlmostEqual(bars["first_us"] + 16 * bars["step_us"], spread["max"], places=3)
        self.assertGreater(bars["count"][0], 0)
        self.assertGreater(bars["count"][15], 0)
        text = hw("race", "--point", "gen1x4", "--rtt", "68", "--jitter", "8").stdout
        self.assertEqual([int(line.split()[3]) for line in text.splitlines() if re.match(r" +[-\d.]+ to ", line)],
                         bars["count"])
        again = json.loads(hw("race", "--json", "-", "--point", "gen1x4", "--rtt", "68", "--jitter", "8").stdout)
        for one in (told, again):
            for variant in one["cells"][0]["variants"]:
                del variant["ns_per_64kb_quick_look"]
        self.assertEqual(told, again)

    def test_usage(self):
        for words in (["--rtt", "0"], ["--point", "x"], ["--sweep", "rtt=9:3"], ["--sweep", "rtt"], ["--k"],
                      ["--rtt", "5x"], ["--bytes", "262144"], ["--mode", "fast"], ["--pcap", "x"],
                      ["--sweep", "rtt=1:300"]):
            done = hw("race", *words, status=2)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("skbench hw list", hw("race", "--device", "ffff:ff:1f.7", status=4).stderr)
        self.assertIn("Unverified", hw("race", "--help").stdout)
        hw("fly", status=2)


class Ports(unittest.TestCase):
    def test_list(self):
        with tempfile.TemporaryDirectory() as root:
            port = Path(root) / "sys/bus/pci/devices/0000:03:00.0"
            port.mkdir(parents=True)
            for name, text in {"vendor": "0x8086", "device": "0x1563", "current_link_speed": "2.5 GT/s PCIe",
                               "current_link_width": "4", "max_link_speed": "8.0 GT/s PCIe", "max_link_width": "4",
                               "numa_node": "1"}.items():
                (port / name).write_text(text + "\n", encoding="ascii")
            text = hw("list", "--root", root).stdout
            self.assertIn("8086:1563  X550-T (tested on the model)", text)
            self.assertIn("PCIe Gen1 x4: 8.0 Gbit/s raw, below what 10 Gbit/s takes (the card has Gen3 x4)", text)
            self.assertIn("no IOMMU", text)
            told = json.loads(hw("list", "--root", root, "--json", "-").stdout)["ports"][0]
            self.assertEqual((told["pcie_mbps"], told["iommu_group"], told["node"]), (8000, None, 1))
            self.assertTrue(told["tested"])
            (port / "device").write_text("0x15ce\n", encoding="ascii")
            self.assertIn("8086:15ce  X553 SFP+ (accepted, not tested)", hw("list", "--root", root).stdout)
            self.assertFalse(json.loads(hw("list", "--root", root, "--json", "-").stdout)["ports"][0]["tested"])
            (Path(root) / "sys/kernel/iommu_groups/5").mkdir(parents=True)
            (port / "iommu_group").symlink_to("../../../../kernel/iommu_groups/5")
            self.assertIn("can be bound", hw("list", "--root", root).stdout)
        with tempfile.TemporaryDirectory() as root:
            self.assertIn("--device model", hw("list", "--root", root).stdout)

    def test_huge_pages(self):
        """What keeps rings out of huge pages is said in one line, and nothing where nothing does."""
        with tempfile.TemporaryDirectory() as root:
            port = Path(root) / "sys/bus/pci/devices/0000:03:00.0"
            port.mkdir(parents=True)
            (port / "vendor").write_text("0x8086\n", encoding="ascii")
            (port / "device").write_text("0x10fb\n", encoding="ascii")
            proc = Path(root) / "proc"
            proc.mkdir()

            def told(total, free, reserved=0, kib=2048):
                (proc / "meminfo").write_text(
                    f"MemTotal: 999 kB\nHugePages_Total: {total}\nHugePages_Free: {free}\n"
                    f"HugePages_Rsvd: {reserved}\nHugepagesize: {kib} kB\n", encoding="ascii")
                lines = [line for line in hw("list", "--root", root).stdout.splitlines() if "huge" in line]
                pages = json.loads(hw("list", "--root", root, "--json", "-").stdout)["huge_pages"]
                self.assertEqual(pages, {"needed_bytes": 16 << 20, "page_kb": kib, "total": total, "free": free,
                                         "reserved": reserved, "enough": not lines, "state": "".join(lines)})
                return lines

            (proc / "mounts").write_text("none /empty hugetlbfs rw 0 0\nnone /stale hugetlbfs rw 0 0\n"
                                         "none /other tmpfs rw 0 0\n", encoding="ascii")
            for name in ("empty", "stale", "other"):
                (Path(root) / name).mkdir()
            (Path(root) / "other/file").touch()
            self.assertEqual(told(1024, 0), ["huge pages: reserved 1024, free 0, needed 8: more by sysctl "
                                             "vm.nr_hugepages, or end who uses them"])
            (Path(root) / "stale/rtemap_0").touch()
            self.assertEqual(told(1024, 0), ["huge pages: reserved 1024, free 0, needed 8; there are files, stale ones "
                                             "perhaps, in /stale"])
            self.assertEqual(told(16, 16, reserved=9),
                             ["huge pages: reserved 16, free 7, needed 8; there are files, stale ones perhaps, in /stale"])
            self.assertEqual(told(0, 0), ["huge pages: none reserved, small ones are used: as root, sysctl "
                                          "vm.nr_hugepages=8"])
            (proc / "mounts").unlink()  # an anonymous mapping needs none
            self.assertEqual(told(8, 8), [])
            self.assertEqual(told(1, 1, kib=1 << 20), [])
            (proc / "meminfo").unlink()
            lines = [line for line in hw("list", "--root", root).stdout.splitlines() if "huge" in line]
            self.assertEqual(len(lines), 1)
            self.assertEqual(json.loads(hw("list", "--root", root, "--json", "-").stdout)["huge_pages"],
                             {"needed_bytes": 16 << 20, "page_kb": None, "total": None, "free": None, "reserved": None,
                              "enough": False, "state": lines[0]})

    def test_usage(self):
        hw("bind", status=2)
        hw("bind", "03:00.0", status=2)
        hw("unbind", "0000:00:00.0", "--force", status=2)
        hw("bind", "ffff:ff:1f.7", status=4)
        hw("selftest", "--device", "ffff:ff:1f.7", status=4)


def in_a_network(script, *words):
    """The words of a command that runs SCRIPT, then the program with WORDS, in a network namespace of its own."""
    return ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "sh", "-c",
            f'set -e; {script} "$@"', "sh", PROGRAM, *words]


CABLE = "ip link add near type veth peer name far; ip link set near up; ip link set far up;"
NETWORK = subprocess.run(in_a_network(CABLE + "true"), capture_output=True, check=False).returncode == 0


class Respond(unittest.TestCase):
    def test_bad_input(self):
        for words in ([], ["--interface"], ["--interface", "x", "--k", "0"], ["--interface", "x", "--ack", "never"],
                      ["--interface", "x", "--seconds", "0"], ["--interface", "x", "--seconds", "1s"], ["x"]):
            done = hw("respond", *words, status=2)
            self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1), done.stderr)
        for name, why in (("nowhere", "nowhere: no such interface (ip link)"), ("", "no such interface"),
                          ("a" * 300, "no such interface"), ("lo", "lo: no Ethernet interface")):
            done = hw("respond", "--interface", name, status=4)
            self.assertIn(why, done.stderr)
            self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1), done.stderr)
        self.assertIn("--interface IF", hw("respond", "--help").stdout)

    @unittest.skipUnless(NETWORK, "no network namespace, no veth, or no iproute2 here")
    def test_in_a_network(self):
        def run(script, *words):
            done = subprocess.run(in_a_network(script, "respond", *words), capture_output=True, text=True, timeout=60,
                                  check=False)
            return done.returncode, done.stdout, done.stderr

        self.assertEqual(run(CABLE + "ip link set near down;", "--interface", "near"),
                         (4, "", "skbench: hw: respond: near is down: ip link set near up\n"))
        apart = CABLE + "ethtool -K near gro off >&2 2>/dev/null || true;"
        if shutil.which("setpriv"):
            status, out, err = run(apart + "exec setpriv --bounding-set -net_raw --inh-caps -net_raw",
                                   "--interface", "near")
            if "merges" not in err:  # GRO is on by default here, and there is no ethtool
                self.assertEqual((status, out, len(err.splitlines())), (4, "", 1))
                self.assertIn("run as root, or with CAP_NET_RAW", err)
        status, out, err = run(apart, "--interface", "near", "--ack", "stretch", "--k", "8", "--seconds", "1")
        if "merges" not in err:
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(out.splitlines()[0], "answering on near: ACK stretch, k 8")
            self.assertIn("0 connections, 0 segments acknowledged by 0 ACKs", out)
            process = subprocess.Popen(in_a_network(apart + "exec", "respond", "--interface", "near"),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "answering on near: ACK every, k 2\n")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (0, ""))
            self.assertIn("0 connections", out)


if __name__ == "__main__":
    unittest.main()
