#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""igb.py BUILD: the driver's descriptors through QEMU's 82576, whose code is not ours, and through the model.

The same TSO packets (same_packets.h) go through both: in a guest of QEMU 10, whose igb has the 82599's advanced
descriptors, and through same_model of BUILD. Both must send the same frames, and tshark must find every checksum right.
QEMU is Debian's of bookworm-backports, unpacked below build/oracle and not installed. Exit status 1 if they differ, 4 if
this machine lacks something.

Where QEMU's igb is known to differ from hardware, and is not looked at:

  - the last segment has no PSH or FIN: segments take the flags of a middle one
  - PAYLEN, L4LEN and IPLEN are not used: it reads the frame; the model's own checks are for these
  - DD comes at once: there is neither transmit buffer nor wire
  - buffers that are not in one piece of the guest's memory are dropped: they lie in huge pages here
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import vfio_guest  # noqa: E402
from guestlib import UserError, ending, guest, initramfs, said  # noqa: E402

SUITE = "bookworm-backports"
PACKAGES = ["qemu-system-x86", "qemu-system-data", "qemu-system-common", "seabios"]
SOURCES = ["tests/hw/igb_guest.c", "hw/flow.c", "hw/nicdev.c", "hw/vfio/vfio.c", "hw/vfio/sysfs.c", "hw/ixgbe/id.c",
           "hw/ixgbe/ixgbe.c", "hw/ixgbe/ixgbe_txrx.c", "hw/ixgbe/shared.c", "skb/bug.c"]
SECONDS = 480
PSH_FIN = 0x09
FLAGS_AT = 14 + 20 + 13
SUM_AT = 14 + 20 + 16


def qemu(work):
    """(program, environment, firmware directories) of QEMU 10."""
    root = guest.directory() / "qemu-10"
    if not (root / "ready").exists():
        apt = guest.Apt(SUITE)
        root.mkdir(parents=True, exist_ok=True)
        debs = work / "qemu"  # download() counts what lies beside
        debs.mkdir()
        for deb in apt.download([f"{name}/{SUITE}" for name in PACKAGES], debs):
            subprocess.run(["dpkg-deb", "-x", str(deb), str(root)], check=True)
            deb.unlink()
        (root / "ready").touch()
    environment = os.environ | {"QEMU_MODULE_DIR": str(root / "usr/lib/x86_64-linux-gnu/qemu")}
    return (root / "usr/bin/qemu-system-x86_64", environment,
            [str(root / "usr/share/qemu"), str(root / "usr/share/seabios")])


def boot(work, image, initrd, pcap):
    program, environment, firmware = qemu(work)
    command = [program, "-machine", "q35,accel=tcg", "-cpu", "max", "-m", "512", "-display", "none", "-serial", "stdio",
               "-monitor", "none", "-nodefaults", "-no-reboot", "-device", "intel-iommu,intremap=on",
               "-netdev", "user,id=n0", "-object", f"filter-dump,id=f0,netdev=n0,file={pcap}",
               "-device", "igb,netdev=n0,addr=05.0,romfile=", "-kernel", image, "-initrd", initrd,
               "-append", "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check mitigations=off intel_iommu=on "
               "hugepages=8"]
    for path in firmware:
        command += ["-L", path]
    return said(command, SECONDS, env=environment)


def frames_of_pcap(path):
    data = Path(path).read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B2C3D4, "a pcap file with times in us"
    at = 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def frames_of_pcapng(path):
    data = Path(path).read_bytes()
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 6:
            length = struct.unpack_from("<I", data, at + 20)[0]
            yield data[at + 28:at + 28 + length]
        at += size


def comparable(frame):
    """FRAME without what QEMU does otherwise: flags of the last segment, and the checksum that holds them."""
    out = bytearray(frame)
    out[FLAGS_AT] &= ~PSH_FIN
    out[SUM_AT:SUM_AT + 2] = b"\0\0"
    return bytes(out).ljust(60, b"\0")  # padded to what Ethernet carries


def wrong_sums(path):
    out = subprocess.run(["tshark", "-r", path, "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-Y",
                          "eth.src==02:00:00:00:00:01", "-T", "fields", "-e", "tcp.checksum.status", "-e",
                          "ip.checksum.status"], capture_output=True, text=True, check=True).stdout.splitlines()
    return len(out), sum(line.split() != ["1", "1"] for line in out)


def main(arguments):
    if len(arguments) != 1:
        print("usage: igb.py BUILD", file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    if not shutil.which("tshark"):
        raise UserError("tshark is not installed: scripts/install-packages test")
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        ours, theirs = work / "model.pcapng", work / "igb.pcap"
        subprocess.run([build / "tests/hw/hw_same_model", ours], check=True)
        image, modules = vfio_guest.kernel_files(work)
        text = boot(work, image, initramfs(work, modules, SOURCES), theirs)
        if "end 0 failed" not in text:
            print(text)
            return 1
        model = [comparable(frame) for frame in frames_of_pcapng(ours)]
        igb = [comparable(frame) for frame in frames_of_pcap(theirs) if frame[6:12] == bytes.fromhex("020000000001")]
        different = sum(one != other for one, other in zip(model, igb))
        print(f"{len(model)} frames of the model, {len(igb)} of QEMU's igb, {different} differ")
        bad = different or len(model) != len(igb)
        for name, path in (("model", ours), ("igb", theirs)):
            number, wrong = wrong_sums(path)
            print(f"{name}: tshark read {number} frames, {wrong} with a wrong checksum")
            bad = bad or wrong or number != len(model)
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(ending("igb.py", main, sys.argv[1:]))
