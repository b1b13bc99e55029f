#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""numa_guest.py BUILD [MACHINE...]: nodes, placement and its refusals on real kernels with virtual topologies.

Each machine of topologies.py is booted in QEMU, in software, with Debian's kernel and this machine's own file system as its
root; inside.py does the checks there with the programs of BUILD. Times say nothing in such a guest, and none is looked at.
Exit status 1 if a check fails or a guest does not come to its end, 2 on wrong usage, 4 if this machine lacks something.
"""

import re
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hw")]
from guestlib import ROOT, UserError, ending, guest, initramfs, kernel_files, said  # noqa: E402
from topologies import MACHINES  # noqa: E402

SECONDS = 400
SOURCES = ["tests/place/numa_guest.c"]
MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "netfs", "fscache",
           "9pnet", "9pnet_virtio", "9p", "overlay"]
# Intel's way to tell of caches: QEMU's AMD, which "max" is otherwise, does not tell who shares the last one.
CPU = "max,vendor=GenuineIntel"
KERNEL = ("console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check mitigations=off init_on_alloc=0 nowatchdog "
          "rcupdate.rcu_cpu_stall_suppress=1 cgroup_no_v1=all")
LEAST = 20  # checks that each guest passes at least, its start included


def boot(name, image, initrd, build):
    """What the guest NAME said, up to its end."""
    command = [guest.QEMU, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", CPU, *MACHINES[name].flags(),
               "-display", "none", "-serial", "stdio", "-monitor", "none", "-nodefaults", "-no-reboot",
               "-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
               "-kernel", str(image), "-initrd", str(initrd),
               "-append", f"{KERNEL} -- /usr/bin/python3 {HERE}/inside.py {name} {ROOT} {build}"]
    return said(command, SECONDS)


def main(arguments):
    names = arguments[1:] or list(MACHINES)
    unknown = [name for name in names if name not in MACHINES]
    if not arguments or unknown:
        print(f"numa_guest.py BUILD [MACHINE...]: {unknown[0] + ' is none of ' if unknown else 'machines are '}"
              f"{', '.join(MACHINES)}", file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    if " " in str(build) + str(ROOT):
        raise UserError(f"{build}: the kernel's command line has no room for a path with blanks: move the tree")
    status = 0
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        image, modules = kernel_files(work, "numa", MODULES)
        initrd = initramfs(work, modules, SOURCES)
        for name in names:
            begin = time.monotonic()
            text = boot(name, image, initrd, build)
            passed = len(re.findall(r"(?m)^ok ", text))
            end = re.search(r"(?m)^end (\d+) failed", text)
            print(f"{name}: {passed} passed, {len(re.findall('(?m)^FAILED ', text))} failed"
                  f"{'' if end else ', no end'}, {time.monotonic() - begin:.0f} s", flush=True)
            if not end or end[1] != "0" or "FAILED" in text or passed < LEAST:
                print(text)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(ending("numa_guest.py", main, sys.argv[1:]))
