#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""vfio_guest.py [intel|amd]: hw/vfio on a real kernel, in QEMU with an IOMMU and an 82574; both IOMMUs without a word.

The kernel is Debian's, unpacked below build/oracle; software emulation, so that no KVM is needed. Exit status 1 if a
check fails or the guest does not come to its end, 4 if this machine lacks something.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import guestlib  # noqa: E402
from guestlib import UserError, guest, initramfs  # noqa: E402

SECONDS = 480
SOURCES = ["tests/hw/vfio_guest.c", "hw/nicdev.c", "hw/vfio/vfio.c", "hw/vfio/sysfs.c", "hw/ixgbe/id.c", "skb/bug.c"]
MODULES = ["irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci"]
MACHINES = {"intel": ("intel-iommu,intremap=on", "max", "intel_iommu=on"),
            "amd": ("amd-iommu,intremap=on", "EPYC", "amd_iommu=on")}


def kernel_files(work):
    """(image, {module: bytes}) of Debian's kernel."""
    return guestlib.kernel_files(work, "vfio", MODULES)


def boot(kind, image, initrd):
    device, cpu, option = MACHINES[kind]
    command = [guest.QEMU, "-machine", "q35,accel=tcg", "-cpu", cpu, "-m", "512", "-display", "none", "-serial", "stdio",
               "-monitor", "none", "-nodefaults", "-no-reboot", "-device", device, "-netdev", "user,id=n0",
               "-device", "e1000e,netdev=n0,addr=05.0,romfile=", "-kernel", str(image), "-initrd", str(initrd),
               "-append", f"console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check mitigations=off {option}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=SECONDS)
        return f"{done.stdout}\nQEMU ended with {done.returncode}\n{done.stderr}"
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace") + f"\nno end within {SECONDS} s\n"


def main(arguments):
    status = 0
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        image, modules = kernel_files(work)
        initrd = initramfs(work, modules, SOURCES)
        for kind in arguments or MACHINES:
            text = boot(kind, image, initrd)
            passed = len(re.findall(r"(?m)^ok ", text))
            end = re.search(r"(?m)^end (\d+) failed", text)
            good = end and end[1] == "0" and passed >= 17
            print(f"{kind}: {passed} passed, {end[1] if end else 'no end, some'} failed")
            if not good:
                print(text)
                status = 1
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (UserError, FileNotFoundError) as error:
        print(f"vfio_guest.py: {error}", file=sys.stderr)
        sys.exit(4)
