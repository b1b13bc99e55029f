# SPDX-License-Identifier: MIT
"""The real kernel of the oracle: Debian's packages unpacked into build/oracle, a module, an initramfs, QEMU.

Nothing of the kernel is installed. A Guest and a Host answer the same requests (tests/oracle/prog.h).
"""

import gzip
import hashlib
import lzma
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from . import children
from .build import build_dir
from .errors import FAILED, IMPOSSIBLE, UserError
from .tree import repo_root

GUEST_SECONDS = 120  # for a start and for any one answer
PACKAGES_SECONDS = 300
BUILD_SECONDS = 300
WINDOW = 16  # requests under way, so that neither side waits for the other
QEMU = "qemu-system-x86_64"
MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_console",
           "veth"]
# The library's eras that there is a kernel for, and where Debian 12 has it: among its own packages (None), or in a suite
# of the mirror that this machine uses.
SOURCES = {"6.1": None, "6.12": "bookworm-backports"}
# What the guest's kernel is told, by name: each is a machine of its own. init_on_alloc zeroes all that is allocated,
# which Debian switches on; slub_debug checks every object for writes beyond its end and after its release.
BASE = ("console=ttyS0 quiet loglevel=5 panic=-1 oops=panic panic_on_warn=1 mitigations=off tsc=reliable "
        "random.trust_cpu=on nokaslr")
KINDS = {"plain": "init_on_alloc=0", "zeroed": "init_on_alloc=1",
         "slub_debug": "init_on_alloc=0 slub_debug=FZPU page_poison=1"}


class Died(Exception):
    """The side that should have answered is gone. TEXT says how; NUMBER requests of the call had been answered."""

    def __init__(self, text, number):
        super().__init__(text)
        self.number = number


class Kernel:
    """A distribution kernel: its files below ROOT, its RELEASE ("6.1.0-57-amd64") and Debian's VERSION."""

    def __init__(self, root, release, version):
        self.root = Path(root)
        self.release = release
        self.version = version
        self.era = ".".join(release.split(".")[:2])

    @property
    def image(self):
        return self.root / "boot" / f"vmlinuz-{self.release}"

    @property
    def headers(self):
        return self.root / "usr" / "src" / f"linux-headers-{self.release}"


def directory():
    return repo_root() / "build" / "oracle"


def _output(command, what):
    try:
        ended = children.run(command, PACKAGES_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        raise UserError(f"{command[0]} is not here: the oracle needs Debian 12 on x86-64", IMPOSSIBLE) from None
    if ended.timed_out or ended.status != 0:
        last = (ended.err or "").strip().splitlines()[-1:]
        raise UserError(f"{what}: {' '.join(command)} {ended.why(PACKAGES_SECONDS)}"
                        f"{': ' + last[0] if last else ''}", IMPOSSIBLE)
    return ended.out


def mirror():
    """Where this machine gets Debian 12 from."""
    found = _output(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Codename: bookworm"],
                    "apt's sources cannot be read").split()
    if not found:
        raise UserError("apt has no source of Debian 12 (bookworm): add one, and run apt-get update", IMPOSSIBLE)
    return found[0]


class Apt:
    """apt with the machine's own lists, or with those of SUITE alone in a directory of ours."""

    def __init__(self, suite):
        self.options = []
        if suite is None:
            return
        source = f"deb {mirror()} {suite} main"
        own = directory() / "apt"
        for part in ("lists/partial", "cache/archives/partial"):
            (own / part).mkdir(parents=True, exist_ok=True)
        (own / "sources.list").write_text(source + "\n", encoding="utf-8")
        self.options = ["-o", f"Dir::Etc::sourcelist={own / 'sources.list'}", "-o", "Dir::Etc::sourceparts=/dev/null",
                        "-o", f"Dir::State::lists={own / 'lists'}", "-o", f"Dir::Cache={own / 'cache'}",
                        "-o", "APT::Sandbox::User="]
        _output(["apt-get", "-qq", *self.options, "update"], f"'{source}' cannot be read")

    def depends(self, package, pattern):
        listing = _output(["apt-cache", *self.options, "depends", package], f"{package} cannot be looked up")
        found = re.findall(rf"Depends: ({pattern})\n", listing)
        if not found:
            raise UserError(f"{package} depends on no {pattern}: run apt-get update, or use Debian 12 on x86-64",
                            IMPOSSIBLE)
        return found[0]

    def download(self, packages, to):
        command = ["apt-get", "-qq", *self.options, "download", *packages]
        ended = children.run(command, PACKAGES_SECONDS, cwd=to, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True)
        debs = sorted(to.glob("*.deb"))
        if ended.timed_out or ended.status != 0 or len(debs) != len(packages):
            last = (ended.err or "").strip().splitlines()[-1:]
            raise UserError(f"the kernel's packages cannot be downloaded: {' '.join(command)} "
                            f"{ended.why(PACKAGES_SECONDS)}{': ' + last[0] if last else ''}", IMPOSSIBLE)
        return debs


def fetch(era="6.1"):
    """The Kernel for ERA, downloaded and unpacked if it is not yet. Without a network, one that is there already."""
    if os.uname().machine != "x86_64":
        raise UserError("the oracle needs an x86-64 machine", IMPOSSIBLE)
    try:
        apt = Apt(SOURCES[era])
        image = apt.depends("linux-image-amd64", r"linux-image-\d\S+-amd64")
    except UserError:
        present = sorted(directory().glob(f"linux-{era}.*/ready"), key=lambda path: path.stat().st_mtime)
        if not present:
            raise
        return _unpacked(present[-1].parent)
    release = image.removeprefix("linux-image-")
    if not release.startswith(era + "."):
        raise UserError(f"the kernel there is for era {era} is {release}: use Debian 12", IMPOSSIBLE)
    root = directory() / f"linux-{release}"
    if not (root / "ready").exists() or not list(root.rglob("veth.ko*")):
        _unpack(apt, root, image, release)
    return _unpacked(root)


def named(which):
    """The Kernel that WHICH names: an era, a release or a version that is unpacked already, or a directory that holds
    boot/vmlinuz-RELEASE and usr/src/linux-headers-RELEASE, as the packages of a kernel unpack."""
    if which in SOURCES:
        return fetch(which)
    for ready in sorted(directory().glob("linux-*/ready")):
        kernel = _unpacked(ready.parent)
        if which in (kernel.release, kernel.version):
            return kernel
    images = sorted(Path(which).glob("boot/vmlinuz-*"))
    if len(images) != 1:
        raise UserError(f"'{which}' is no kernel: name an era ({', '.join(SOURCES)}), a release below {directory()}, or a "
                        "directory that holds one boot/vmlinuz-RELEASE and its headers")
    release = images[0].name.removeprefix("vmlinuz-")
    kernel = Kernel(Path(which).resolve(), release, hashlib.sha256(images[0].read_bytes()).hexdigest()[:12])
    if not kernel.headers.is_dir():
        raise UserError(f"{kernel.headers} is missing: the module is built with a kernel's own headers")
    return kernel


def _unpacked(root):
    return Kernel(root, root.name.removeprefix("linux-"), (root / "ready").read_text(encoding="utf-8").strip())


def _unpack(apt, root, image, release):
    headers = f"linux-headers-{release}"
    packages = [image, headers, apt.depends(headers, r"linux-headers-\S+-common\S*"),
                apt.depends(headers, r"linux-kbuild-\S+")]
    directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory()) as scratch:
        scratch = Path(scratch)
        debs = apt.download(packages, scratch)
        files = scratch / "files"
        files.mkdir()
        for deb in debs:
            # Of the kernel's thousands of modules only a few are needed.
            which = "tar -x -C \"$2\" --wildcards './boot/vmlinuz-*' '*/virtio*.ko*' '*/veth.ko*'"
            _output(["sh", "-ec", f"dpkg-deb --fsys-tarfile \"$1\" | {which}", "sh", str(deb), str(files)]
                    if deb.name.startswith(image + "_") else ["dpkg-deb", "-x", str(deb), str(files)],
                    f"{deb.name} cannot be unpacked")
        version = next(deb for deb in debs if deb.name.startswith(image + "_")).name.split("_")[1]
        _relocate(files, root, release)
        (files / "ready").write_text(version + "\n", encoding="utf-8")
        shutil.rmtree(root, ignore_errors=True)
        files.rename(root)


def _relocate(files, root, release):
    """The headers' makefiles name /usr/src: let them name ROOT."""
    for path in (files / "usr" / "src" / f"linux-headers-{release}").iterdir():
        if path.name == "Makefile" and path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(r"(?m)(^include )(/usr/src/)", rf"\g<1>{root}\g<2>", text), encoding="utf-8")


def sources():
    return repo_root() / "tests" / "oracle"


def build_module(kernel, log):
    """Builds the module and the guest's init for KERNEL; returns their directory."""
    own = kernel.root.parent == directory()
    work = directory() / (f"module-{kernel.release}" if own else f"module-{kernel.release}-{kernel.version}")
    work.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(kernel.version.encode())
    for path in sorted(sources().iterdir()):
        if path.suffix in (".c", ".h") or path.name == "Kbuild":
            text = path.read_bytes()
            digest.update(path.name.encode() + b"\0" + text)
            target = work / path.name
            if not target.exists() or target.read_bytes() != text:
                target.write_bytes(text)
    stamp = work / "stamp"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return work
    stamp.unlink(missing_ok=True)
    for command in (["make", "-s", "-C", str(kernel.headers), f"M={work}", "CONFIG_DEBUG_INFO_BTF_MODULES=",
                     "modules"],
                    ["gcc", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-o", str(work / "oracle_init"),
                     str(work / "oracle_init.c"), str(work / "oracle_veth.c")]):
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        try:
            ended = children.run(command, BUILD_SECONDS, cwd=work, stdout=log, stderr=log)
        except FileNotFoundError:
            raise UserError(f"{command[0]} is not installed: scripts/install-packages oracle", IMPOSSIBLE) from None
        if ended.timed_out or ended.status != 0:
            raise UserError(f"the module for {kernel.release} cannot be built ({command[0]} "
                            f"{ended.why(BUILD_SECONDS)}); its log is {log.name}", FAILED)
    stamp.write_text(digest.hexdigest())
    return work


def _cpio(entries):
    """An initramfs of ENTRIES, (name, mode, bytes), in the format that the kernel unpacks."""
    out = bytearray()

    def add(number, name, mode, data, rdev=(0, 0)):
        header = "070701" + "".join(f"{field:08x}" for field in (
            number, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(name) + 1, 0))
        out.extend(header.encode() + name.encode() + b"\0")
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    for number, (name, mode, data, *rdev) in enumerate(entries, 1):
        add(number, name, mode, data, *rdev)
    add(0, "TRAILER!!!", 0, b"")
    return bytes(out)


def initramfs(kernel, work):
    """Writes the guest's file system and returns its path."""
    entries = [("init", 0o100755, (work / "oracle_init").read_bytes()), ("dev", 0o040755, b""),
               ("dev/console", 0o020600, b"", (5, 1))]
    modules = {}
    for name in MODULES:
        for path in kernel.root.rglob(f"{name}.ko*"):  # none: it is built into this kernel
            modules[name] = _module(path)
    stripped = work / "skb_oracle.stripped.ko"
    _output(["strip", "--strip-debug", "-o", str(stripped), str(work / "skb_oracle.ko")], "the module is broken")
    modules["skb_oracle"] = stripped.read_bytes()
    order = _in_order(modules)
    entries += [(f"{name}.ko", 0o100644, modules[name]) for name in order]
    entries.append(("modules", 0o100644, "".join(f"/{name}.ko\n" for name in order).encode()))
    path = work / "initramfs.gz"
    path.write_bytes(gzip.compress(_cpio(entries), 1))
    return path


def _module(path):
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix != ".ko":
        raise UserError(f"{path}: a module packed in a way that is not known here", IMPOSSIBLE)
    return data


def _in_order(modules):
    """The names of MODULES, each behind those that it depends on."""
    order = []

    def add(name):
        if name not in modules or name in order:
            return
        depends = re.search(rb"\0depends=([^\0]*)\0", modules[name])
        for other in (depends[1].decode().split(",") if depends else []):
            add(other)
        order.append(name)

    for name in modules:
        add(name)
    return order


class _Side:
    """Something that answers requests over a file descriptor, in order."""

    def _exchange(self, requests, seconds, got):
        """Sends all REQUESTS, calls GOT for each answer; Died if the other side goes away or falls silent."""
        answered, sent, out, pending = 0, 0, b"", b""
        last = time.monotonic()
        while answered < len(requests):
            while sent < len(requests) and sent - answered < WINDOW and len(out) < 65536:
                out += struct.pack("=I", len(requests[sent])) + requests[sent]
                sent += 1
            readable, writable, _ = select.select([self._in()], [self._out()] if out else [], [], 1.0)
            if writable:
                try:
                    out = out[os.write(self._out(), out[:4096]):]
                except ConnectionError:  # gone; what it has said before is still to be read
                    out, sent = b"", len(requests)
            if readable:
                try:
                    data = os.read(self._in(), 1 << 20)
                except ConnectionError:
                    data = b""
                if not data:
                    raise Died(self._why(), answered)
                pending += data
                last = time.monotonic()
            while len(pending) >= 4:
                size = struct.unpack("=I", pending[:4])[0]
                if len(pending) < 4 + size:
                    break
                got(pending[4:4 + size].decode())
                pending = pending[4 + size:]
                answered += 1
            if time.monotonic() - last > seconds:
                raise Died(f"it has said nothing for {seconds} s{self._where()}", answered)

    def _where(self):
        """What to add to a sentence about this side."""
        return ""

    def ask(self, requests, seconds=None):
        """The answers to REQUESTS, as texts; Died unless each comes within SECONDS (None: GUEST_SECONDS)."""
        answers = []
        seconds = seconds or GUEST_SECONDS
        self._exchange(requests, seconds, answers.append)
        return answers


class Host(_Side):
    """The library, in a process of its own: an operation that ends in BUG() ends that process."""

    def __init__(self, era, program=None, **environment):
        self.era = era
        self.environment = environment
        self.program = program or build_dir("release") / "tests" / "oracle" / "oracle_host"
        self.child = None

    def start(self):
        self.stderr = tempfile.TemporaryFile()
        try:
            with children.delayed():
                self.child = subprocess.Popen([self.program, self.era], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                              stderr=self.stderr, start_new_session=True,
                                              env={**os.environ, **self.environment})
        except OSError as error:
            raise UserError(f"{self.program} cannot be started: {error.strerror}", FAILED) from None
        os.set_blocking(self.child.stdin.fileno(), False)

    def _in(self):
        return self.child.stdout.fileno()

    def _out(self):
        return self.child.stdin.fileno()

    def _why(self):
        self.child.wait()
        self.stderr.seek(0)
        text = self.stderr.read().decode(errors="replace").strip().splitlines()
        return text[0] if text else f"exited with status {self.child.returncode}"

    def ask(self, requests, seconds=None):
        """As a Guest's; a program that kills the process is answered with its last words."""
        answers = []
        while len(answers) < len(requests):
            if self.child is None:
                self.start()
            try:
                self._exchange(requests[len(answers):], seconds or GUEST_SECONDS, answers.append)
            except Died as died:
                self.close()
                answers.append(f"died: {died}")
        return answers

    def finish(self):
        """Lets it end. UserError if something that programs made was never given back."""
        if self.child:
            self.child.stdin.close()
            self.child.stdin = None
            try:
                self.child.wait(GUEST_SECONDS)
            except subprocess.TimeoutExpired:
                raise UserError(f"{self.program} does not end", FAILED) from None
            if self.child.returncode != 0:
                raise UserError(self._why(), FAILED)

    def close(self):
        if self.child:
            children.kill_group(self.child)
            self.stderr.close()
            self.child = None


class Guest(_Side):
    """QEMU with KERNEL and the module. KIND is one of KINDS; COUNTING makes the guest's clock count instructions, of one CPU."""

    def __init__(self, kernel, initrd, log_path, kind="plain", counting=False, cpus=1, megabytes=512):
        self.kernel = kernel
        self.log_path = Path(log_path)
        self.scratch = tempfile.TemporaryDirectory(prefix="skbench-oracle-")
        path = os.path.join(self.scratch.name, "port")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        command = [QEMU, "-accel", "tcg,thread=single", "-cpu", "max", "-m", str(megabytes), "-smp", str(cpus), "-nodefaults",
                   "-no-reboot", "-display", "none", "-nic", "none", "-monitor", "none",
                   "-serial", f"file:{self.log_path}", "-kernel", str(kernel.image), "-initrd", str(initrd),
                   "-append", f"{BASE} {KINDS[kind]}", "-chardev", f"socket,id=port,path={path}",
                   "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port,name=oracle"]
        if counting:
            # The same random numbers and the same date each time: slabs shuffle their objects by them.
            command += ["-icount", "shift=0,sleep=off", "-seed", "1", "-rtc", "base=2024-01-01,clock=vm"]
        self.stderr = open(self.log_path.with_suffix(".qemu"), "w+", encoding="utf-8", errors="replace")
        self.child = None
        try:
            with children.delayed():
                self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.stderr, stderr=self.stderr,
                                              start_new_session=True)
            self.port = self._accept(listener)
            self._await_start()
        except FileNotFoundError:
            self.close()
            raise UserError(f"{QEMU} is not installed: scripts/install-packages oracle", IMPOSSIBLE) from None
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()

    def _accept(self, listener):
        listener.settimeout(1)
        for _ in range(GUEST_SECONDS):
            try:
                port = listener.accept()[0]
                port.setblocking(False)
                return port
            except socket.timeout:
                if self.child.poll() is not None:
                    break
        raise UserError(f"the guest cannot be started: {self._why()}", IMPOSSIBLE)

    def _await_start(self):
        deadline, text = time.monotonic() + GUEST_SECONDS, b""
        while text != b"up\n":
            if not select.select([self.port], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise UserError(f"the guest was not up after {GUEST_SECONDS} s{self._where()}", FAILED)
            data = self.port.recv(3 - len(text))
            if not data:
                raise UserError(f"the guest ended before it was up: {self._why()}", FAILED)
            text += data

    def _in(self):
        return self.port.fileno()

    _out = _in

    def _where(self):
        return f"; its log is {self.log_path}"

    def _why(self):
        """What the console said last; the guest's power goes off when it panics."""
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            pass
        text = self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""
        said = re.findall(r"kernel BUG at .+|BUG: .+|WARNING: .+|general protection fault.+|oracle guest: .+|"
                          r"Kernel panic .+", text)
        if said:
            return said[0].strip() + self._where()
        self.stderr.seek(0)
        lines = self.stderr.read().strip().splitlines()
        return (lines[-1] if lines else "it said nothing") + self._where()

    def close(self):
        if self.child:
            children.kill_group(self.child)
        if hasattr(self, "port"):
            self.port.close()
        self.stderr.close()
        self.scratch.cleanup()
