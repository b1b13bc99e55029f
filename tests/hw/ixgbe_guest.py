#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""ixgbe_guest.py [--qemu PATH] [--id DEVICE] [--bytes N] [--slow N] [--pcap FILE] [--log FILE] BUILD

Linux's own ixgbe on the model: a guest of QEMU has two ports of `skbench_hw serve` of BUILD with a cable between them,
each in a network namespace of its own, and TCP streams go from one to the other, over IPv4 and IPv6.

QEMU is --qemu, or what SKBENCH_QEMU names, or the first in PATH that knows the device vfio-user-pci (QEMU 10.1 and later
have it). The kernel is Debian's, unpacked below build/oracle; software emulation, so that no KVM is needed.

What is looked at: the driver's probe, addresses, link, rings, interrupts, pings and datagrams both ways, streams with the
SHA-256 of what one end sent, what the other received, and what lies in the frames of the wire; the segments of the guest's
TSO packets, one by one; checksums and retransmissions as tshark reads them; the chip's counters against the driver's; and
what the model calls wrong, which may be nothing but what DIFFERENCES tells. Exit status 1 if something is not as it should
be, 2 usage, 4 if this machine lacks something.
"""

import argparse
import collections
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import guestlib  # noqa: E402
from guestlib import FAILED, UserError, ending, initramfs, said  # noqa: E402

SECONDS = 480
QEMU = "qemu-system-x86_64"
DEVICE = "vfio-user-pci"
PORTS = ("05.0", "06.0")
MODULES = ["dca", "mdio", "libphy", "mdio_devres", "fwnode_mdio", "fixed_phy", "acpi_mdio", "of_mdio", "xfrm_algo", "ptp",
           "pps_core", "ixgbe"]
SOURCES = ["tests/hw/ixgbe_guest.c", "skb/bug.c"]
# What Linux's driver does and cards stand, and the model does not forgive: see docs/hardware-mode.md.
DIFFERENCES = {
    "RESET_ACCESS": "STATUS is read to flush the write of CTRL.RST",
    "EEPROM_WAIT": "queues are enabled after a fixed time, without a look at both bits",
    "TABLES": "tables that the driver does not use stay as they are",
    "DTXMXSZRQ": "it stays as it comes out of reset",
    "ARB_CHANGE": "TXPBSIZE and TXPBTHRESH are written without RTTDCS.ARBDIS",
    "RS_WTHRESH": "RS is set whatever WTHRESH is",
    "TCPFLG": "DTXTCPFLGL and DTXTCPFLGH stay as they come",
    "DTALEN": "buffers of 16 KB",
    "RX_REARM": "the length in a descriptor is looked at, and cleared, and not DD",
    "FCTRL": "changed while RXEN is set",
    "FCRTH": "the watermark follows the frame size and the pause time",
}


def knows(program):
    """Whether this QEMU has the device."""
    try:
        done = subprocess.run([program, "-device", f"{DEVICE},help"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and f"{DEVICE} options" in done.stdout


def find_qemu(named):
    remedy = ("install QEMU 10.1 or later, from a later release of the distribution or built from its sources, and name it by "
              "--qemu PATH or SKBENCH_QEMU=PATH")
    if named:
        if not shutil.which(named):
            raise UserError(f"'{named}' is no program that can be run: {remedy}")
        if not knows(named):
            raise UserError(f"'{named}' does not know {DEVICE}: {remedy}")
        return named
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which(QEMU, path=directory)
        if path and knows(path):
            return path
    raise UserError(f"no {QEMU} here knows {DEVICE}: {remedy}")


#
# --- the two processes
#


def serve(build, paths, pcap, device, slow):
    command = [build / "hw/skbench_hw", "serve", "--socket", paths[0], "--wire", paths[1], "--id", device,
               "--slow", str(slow), "--pcap", pcap]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for path in paths:
        if server.stdout.readline() != f"serving {path}\n":
            server.kill()
            raise UserError(f"skbench_hw serve: {server.communicate()[1].strip()}", FAILED)
    return server


def boot(qemu, image, initrd, paths, size):
    command = [qemu, "-machine", "q35,accel=tcg,memory-backend=ram", "-object",
               "memory-backend-memfd,id=ram,size=384M,share=on", "-cpu", "max", "-m", "384", "-smp", "1", "-display", "none",
               "-serial", "stdio", "-monitor", "none", "-nodefaults", "-no-reboot", "-kernel", image, "-initrd", initrd,
               "-append", "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check mitigations=off net.ifnames=0 "
               f"bytes={size}"]
    for path, address in zip(paths, PORTS):
        command += ["-device", f'{{"driver":"{DEVICE}","socket":{{"type":"unix","path":"{path}"}},"addr":"{address}"}}']
    return said(command, SECONDS)


#
# --- what was on the wire
#


def frames(path):
    """(comment, bytes) of each frame of a pcapng file of ours."""
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 6:
            length = struct.unpack_from("<I", data, at + 20)[0]
            option = at + 28 + (length + 3) // 4 * 4
            comment = ""
            while option + 4 <= at + size - 4:
                code, text = struct.unpack_from("<HH", data, option)
                if code == 0:
                    break
                if code == 1:
                    comment = data[option + 4:option + 4 + text].decode()
                option += 4 + (text + 3) // 4 * 4
            yield comment, data[at + 28:at + 28 + length]
        at += size


class Segment:
    """A TCP segment of FRAME; None for anything else."""

    def __new__(cls, frame):
        kind = struct.unpack_from("!H", frame, 12)[0]
        six = kind == 0x86DD
        if not (six and frame[20] == 6) and not (kind == 0x0800 and frame[23] == 6):
            return None
        self = super().__new__(cls)
        self.version = 6 if six else 4
        tcp = 54 if six else 14 + 4 * (frame[14] & 15)
        end = 54 + struct.unpack_from("!H", frame, 18)[0] if six else 14 + struct.unpack_from("!H", frame, 16)[0]
        self.id = None if six else struct.unpack_from("!H", frame, 18)[0]
        addresses = frame[22:54] if six else frame[26:34]
        self.sequence, self.acknowledged = struct.unpack_from("!II", frame, tcp + 4)
        self.flags = frame[tcp + 13]
        self.header = tcp + 4 * (frame[tcp + 12] >> 4)
        self.payload = frame[self.header:end]
        half = len(addresses) // 2
        self.direction = (addresses[:half] + frame[tcp:tcp + 2], addresses[half:] + frame[tcp + 2:tcp + 4])
        return self


class Stream:
    """One direction of a connection, put together again."""

    def __init__(self, first):
        self.version = first.version
        self.next = None
        self.early = {}
        self.bytes = self.again = 0
        self.sha = hashlib.sha256()

    def take(self, segment):
        if segment.flags & 2:
            self.next = (segment.sequence + 1) & 0xffffffff
        elif segment.payload and self.next is not None:
            if segment.sequence in self.early or (segment.sequence - self.next) & 0xffffffff > 0x7fffffff:
                self.again += 1
            else:
                self.early[segment.sequence] = segment.payload
        while self.next in self.early:
            data = self.early.pop(self.next)
            self.sha.update(data)
            self.bytes += len(data)
            self.next = (self.next + len(data)) & 0xffffffff


def wrong_segments(segments):
    """What is wrong with the SEGMENTS of one TSO packet; None if nothing is."""
    first = segments[0]
    size = len(first.payload)
    for number, one in enumerate(segments):
        last = number == len(segments) - 1
        if one.sequence != (first.sequence + number * size) & 0xffffffff:
            return "sequence numbers"
        if one.id is not None and one.id != (first.id + number) & 0xffff:
            return "identification"
        if len(one.payload) != size and not (last and 0 < len(one.payload) < size):
            return "lengths"
        if one.flags & 0x09 and not last:
            return "PSH or FIN before the last"
        if one.acknowledged != first.acknowledged or one.direction != first.direction:
            return "the rest of the header"
    return None


class Wire:
    """All that the capture of port 0 holds."""

    def __init__(self, path):
        self.streams, packets, self.frames = {}, collections.defaultdict(list), 0
        for comment, frame in frames(path):
            self.frames += 1
            segment = Segment(frame)
            if not segment:
                continue
            if segment.direction not in self.streams or segment.flags & 2:
                self.streams.setdefault(segment.direction, []).append(Stream(segment))
            self.streams[segment.direction][-1].take(segment)
            said = re.match(r"queue (\d+) packet (\d+) segment (\d+) of (\d+)", comment)
            if said and int(said[4]) > 1:
                packets[said[1], said[2], said[4]].append(segment)
        self.tso = list(packets.items())

    def found(self, version, size):
        """The streams over IPv VERSION that carry SIZE bytes."""
        return [one for many in self.streams.values() for one in many if one.version == version and one.bytes == size]


def tshark(path):
    """(frames with a checksum, wrong ones, TCP segments, retransmitted ones) by tshark."""
    fields = ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "icmp.checksum.status",
              "icmpv6.checksum.status", "tcp.analysis.retransmission", "tcp.seq_raw"]
    command = ["tshark", "-r", path, "-T", "fields", "-E", "separator=;", "-o", "tcp.check_checksum:TRUE", "-o",
               "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    for field in fields:
        command += ["-e", field]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(";") for line in out]
    sums = [[status for field in row[:5] for status in field.split(",") if status] for row in rows]
    return (sum(bool(row) for row in sums), sum(any(status != "1" for status in row) for row in sums),
            sum(bool(row[6]) for row in rows), sum(bool(row[5]) for row in rows))


#
# --- the verdict
#


class Verdict:
    def __init__(self):
        self.bad = []

    def expect(self, good, text):
        if not good:
            self.bad.append(text)

    def guest(self, text):
        """What the guest has said: its streams, as (direction, version, bytes, ms, segments, retransmitted, SHA-256)."""
        passed = len(re.findall(r"(?m)^ok ", text))
        failed = re.findall(r"(?m)^FAILED .*", text)
        print(f"guest: {passed} passed, {len(failed)} failed")
        self.bad += failed
        self.expect("end 0 failed" in text, "the guest does not come to its end, or something in it failed")
        for line in re.findall(r"(?m)^note: (.*)", text):
            print(f"guest: {line.strip()}")
        return re.findall(r"(?m)^stream (\S+) IPv(\d) bytes (\d+) ms (\d+) segments (\d+) retransmitted (\d+) sha256 (\S+)",
                          text)

    def wire(self, streams, wire, path):
        self.expect(len(streams) == 4, f"{len(streams)} streams instead of 4")
        for direction, version, size, ms, segments, again, sha in streams:
            same = [one for one in wire.found(int(version), int(size)) if one.sha.hexdigest() == sha]
            self.expect(same, f"stream {direction} over IPv{version}: the wire carried something else")
            print(f"stream {direction} IPv{version}: {size} bytes in {int(ms) / 1000:.2f} s, {segments} segments, {again} "
                  f"retransmitted, SHA-256 {sha[:16]} {'at both ends and on the wire' if same else 'NOT ON THE WIRE'}")
        several = [(key, segments) for key, segments in wire.tso]
        wrong = {f"packet {key[1]}: {what}" for key, segments in several
                 for what in [f"{len(segments)} of {key[2]} segments" if len(segments) != int(key[2]) else
                              wrong_segments(segments)] if what}
        frames_of = sum(len(segments) for _, segments in several)
        print(f"TSO of port 0: {len(several)} packets, {frames_of} segments, up to "
              f"{max((len(segments) for _, segments in several), default=0)} in one, {len(wrong)} packets wrong")
        self.expect(several, "no TSO packet was sent")
        self.bad += sorted(wrong)
        summed, bad, tcp, again = tshark(path)
        print(f"tshark: {wire.frames} frames, {summed} with a checksum, {bad} of them wrong; {tcp} TCP segments, {again} "
              "retransmitted")
        self.expect(summed and tcp, "tshark has read no checksum")
        self.expect(not bad, "wrong checksums")

    def server(self, out, err, status):
        told = collections.Counter()
        for name, times in re.findall(r"(?m)^    ([A-Z0-9_]+), (\d+) times", out):
            told[name] += int(times)
        for name, times in sorted(told.items()):
            print(f"model: {name}, {times} times: {DIFFERENCES.get(name, 'NOT EXPECTED')}")
            self.expect(name in DIFFERENCES, f"the model has found {name}")
        self.expect(out.count(" messages, ") == 2 and status == (5 if told else 0), f"the server ends with {status}")
        for line in err.splitlines():
            self.expect("serve: violation" in line, line)


def run(args, work):
    qemu = find_qemu(args.qemu or os.environ.get("SKBENCH_QEMU"))
    if not shutil.which("tshark"):
        raise UserError("tshark is not installed: scripts/install-packages test")
    build = Path(args.build).resolve()
    if not (build / "hw/skbench_hw").exists():
        raise UserError(f"{build} has no hw/skbench_hw: build it first", FAILED)
    image, modules = guestlib.kernel_files(work, "ixgbe", MODULES)
    initrd = initramfs(work, modules, SOURCES)
    pcap = Path(args.pcap).resolve() if args.pcap else work / "wire.pcapng"
    paths = [work / "a", work / "b"]
    server = serve(build, paths, pcap, args.id, args.slow)
    begin = time.monotonic()
    try:
        text = boot(qemu, image, initrd, paths, args.bytes)
        out, err = server.communicate(timeout=60)
    finally:
        if server.poll() is None:
            server.kill()
            server.communicate()
    print(f"{qemu}, {image.name}: {time.monotonic() - begin:.1f} s")
    if args.log:
        Path(args.log).write_text(f"{text}\n{out}\n{err}", encoding="utf-8")
    verdict = Verdict()
    streams = verdict.guest(text)
    verdict.wire(streams, Wire(pcap), pcap)
    verdict.server(out, err, server.returncode)
    if verdict.bad:
        print(text)
        print(out + err)
        for line in verdict.bad:
            print(f"FAILED: {line}")
    return 1 if verdict.bad else 0


def main(arguments):
    parser = argparse.ArgumentParser(prog="ixgbe_guest.py", description=__doc__.splitlines()[2])
    parser.add_argument("--qemu", metavar="PATH", help="a QEMU that knows vfio-user-pci")
    parser.add_argument("--id", metavar="DEVICE", default="0x10fb", help="PCI device ID, of an 82599 (0x10fb: with a module; "
                        "0x10f7: a backplane, without)")
    parser.add_argument("--bytes", metavar="N", type=int, default=8 << 20, help="of each stream over IPv4 (8388608); a quarter "
                        "of it over IPv6")
    parser.add_argument("--slow", metavar="N", type=int, default=100, help="PCIe and wire N times slower (100)")
    parser.add_argument("--pcap", metavar="FILE", help="keep the frames of port 0")
    parser.add_argument("--log", metavar="FILE", help="keep what guest and server said")
    parser.add_argument("build", metavar="BUILD", help="the build directory, for its hw/skbench_hw")
    args = parser.parse_args(arguments)
    if args.bytes < 4 << 10 or args.slow < 1:
        parser.error("--bytes takes 4096 and more, --slow 1 and more")
    if args.pcap and Path(args.pcap).exists():
        parser.error(f"{args.pcap} is there already")
    with tempfile.TemporaryDirectory() as work:
        return run(args, Path(work))


if __name__ == "__main__":
    sys.exit(ending("ixgbe_guest.py", main, sys.argv[1:]))
