#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""vfio_guest.py [intel|amd] [--kernel FILE]: hw/vfio on a real kernel, in QEMU with an IOMMU and cards of QEMU's; both
IOMMUs without a word. What works, and what is said where it does not: tests/hw/vfio_guest.c.

The kernel is Debian's, unpacked below build/oracle; software emulation, so that no KVM is needed. Debian builds neither
the character device with iommufd nor noiommu in: FILE is a kernel of one's own that has both, all that is needed built
in, and is asked for those (case "none" then runs without an IOMMU). Exit status 1 if a check fails or a guest does not
come to its end, 4 if this machine lacks something.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import guestlib  # noqa: E402
from guestlib import UserError, ending, guest, initramfs, said  # noqa: E402

SECONDS = 480
SOURCES = ["tests/hw/vfio_guest.c", "hw/nicdev.c", "hw/vfio/vfio.c", "hw/vfio/sysfs.c", "hw/ixgbe/id.c", "skb/bug.c"]
# Of VFIO, and the driver of the cards that it has to be taken from.
MODULES = ["irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci", "e1000"]
MACHINES = {"intel": ("intel-iommu", "max", "intel_iommu=on"), "amd": ("amd-iommu", "EPYC", "amd_iommu=on")}
# A guest for each: the checks that have to pass in it, at least.
CASES = {"intel": {"iommu": 74, "noremap": 6, "none": 7}, "amd": {"iommu": 73, "noremap": 6}}
OWN_CASES = {"intel": {"iommu": 45, "none": 12}, "amd": {"iommu": 45}}


def kernel_files(work):
    """(image, {module: bytes}) of Debian's kernel."""
    return guestlib.kernel_files(work, "vfio", MODULES)


def devices(kind, case, cards):
    device, cpu, option = MACHINES[kind]
    words = ["-cpu", cpu]
    if case != "none":
        words += ["-device", f"{device},intremap={'off' if case == 'noremap' else 'on'}"]
    words += ["-netdev", "user,id=n0", "-device", "e1000e,netdev=n0,addr=05.0,romfile="]
    if cards and case == "iommu":
        words += ["-device", "e1000,addr=06.0,romfile=", "-device", "pcie-pci-bridge,id=bridge,addr=07.0",
                  "-device", "e1000,bus=bridge,addr=01.0,romfile=", "-device", "e1000,bus=bridge,addr=02.0,romfile="]
    return words, option if case != "none" else ""


def boot(kind, case, image, initrd, cards):
    words, option = devices(kind, case, cards)
    command = [guest.QEMU, "-machine", "q35,accel=tcg", "-m", "512", "-display", "none", "-serial", "stdio",
               "-monitor", "none", "-nodefaults", "-no-reboot", *words, "-kernel", str(image), "-initrd", str(initrd),
               "-append", "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check mitigations=off "
                          f"{option} case={case}"]
    return said(command, SECONDS)


def options(arguments):
    parser = argparse.ArgumentParser(description="hw/vfio on a real kernel, in QEMU.")
    parser.add_argument("kinds", nargs="*", metavar="intel|amd", help="the IOMMU (both)")
    parser.add_argument("--kernel", type=Path, help="a kernel with iommufd and noiommu, everything built in")
    args = parser.parse_args(arguments)
    unknown = [kind for kind in args.kinds if kind not in MACHINES]
    if unknown:
        parser.error(f"'{unknown[0]}' is no IOMMU that is known here: {', '.join(MACHINES)}")
    if args.kernel and not args.kernel.is_file():
        parser.error(f"{args.kernel}: no such file")
    return args


def main(arguments):
    args, status = options(arguments), 0
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        image, modules = (args.kernel, {}) if args.kernel else kernel_files(work)
        initrd = initramfs(work, modules, SOURCES)
        for kind in args.kinds or MACHINES:
            for case, least in (OWN_CASES if args.kernel else CASES)[kind].items():
                text = boot(kind, case, image, initrd, not args.kernel)
                passed = len(re.findall(r"(?m)^ok ", text))
                end = re.search(r"(?m)^end (\d+) failed", text)
                print(f"{kind}, {case}: {passed} passed, {end[1] if end else 'no end, some'} failed", flush=True)
                if not end or end[1] != "0" or passed < least:
                    print(text)
                    status = 1
    return status


if __name__ == "__main__":
    sys.exit(ending("vfio_guest.py", main, sys.argv[1:]))
