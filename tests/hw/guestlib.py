# SPDX-License-Identifier: MIT
"""Guests of QEMU that run one program of ours on Debian's own kernel: its files, and an initramfs with the program."""

import gzip
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from skbench_lib import oracleguest as guest  # noqa: E402
from skbench_lib.errors import FAILED, IMPOSSIBLE, UserError  # noqa: E402


def _unpack(deb, root, modules):
    """The kernel's image and its MODULES out of its package. What is built into the image is no file there."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as files:
        with tarfile.open(fileobj=files.stdout, mode="r|") as tar:
            for member in tar:
                name = member.name.rsplit("/", 1)[-1]
                if member.isfile() and (member.name.startswith("./boot/vmlinuz-") or
                                        (".ko" in name and name.partition(".ko")[0] in modules)):
                    tar.extract(member, root)
    if files.returncode or not list((root / "boot").glob("vmlinuz-*")):
        raise UserError(f"{deb.name} cannot be unpacked into {root}")


def kernel_files(work, purpose, modules):
    """(image, {module: bytes}) of Debian's kernel with the MODULES that it has, unpacked once for each PURPOSE, and
    again if the MODULES are others."""
    apt = guest.Apt(None)
    package = apt.depends("linux-image-amd64", r"linux-image-\d\S+-amd64")
    root = guest.directory() / f"{purpose}-{package}"
    ready = root / "ready"
    what = "".join(f"{name}\n" for name in sorted(modules))
    if not ready.exists() or ready.read_text(encoding="utf-8") != what:
        root.mkdir(parents=True, exist_ok=True)
        deb = apt.download([package], work)[0]
        _unpack(deb, root, set(modules))
        deb.unlink()
        ready.write_text(what, encoding="utf-8")
    found = {}
    for name in modules:
        for path in root.rglob(f"{name}.ko*"):  # none: another version has it elsewhere, or in the image
            found[name.replace("-", "_")] = guest._module(path)
    return next((root / "boot").glob("vmlinuz-*")), found


def initramfs(work, modules, sources):
    """An initramfs in WORK whose init is made of SOURCES, with MODULES in the order in which they can be loaded."""
    program = work / "init"
    subprocess.run(["gcc", "-O1", "-static", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
                    "-D_LGPL_SOURCE", f"-I{ROOT}", "-o", str(program), *[str(ROOT / name) for name in sources]],
                   check=True)
    order = guest._in_order(modules)
    entries = [("init", 0o100755, program.read_bytes()), ("dev", 0o040755, b""),
               ("dev/console", 0o020600, b"", (5, 1))]
    entries += [(f"{name}.ko", 0o100644, modules[name]) for name in order]
    entries.append(("modules", 0o100644, "".join(f"/{name}.ko\n" for name in order).encode()))
    path = work / "initramfs.gz"
    path.write_bytes(gzip.compress(guest._cpio(entries), 1))
    return path


def said(command, seconds, **how):
    """What a guest that QEMU's COMMAND boots said on its serial line, then what QEMU said; HOW as for subprocess.run."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=seconds, **how)
        return f"{done.stdout}\nQEMU ended with {done.returncode}\n{done.stderr}"
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace") + f"\nno end within {seconds} s\n"


def ending(name, main, arguments):
    """The exit status of MAIN(ARGUMENTS), a script called NAME: its own; 4 with a sentence for what this machine lacks, a
    UserError (but one of FAILED) or a program that is not in PATH; 1 for whatever else goes wrong, which is no reason to
    skip anything."""
    try:
        return main(arguments)
    except UserError as error:
        text, status = str(error), 1 if error.status == FAILED else IMPOSSIBLE
    except FileNotFoundError as error:
        text, status = str(error), 1
        if error.filename and "/" not in str(error.filename):
            text, status = f"{error.filename} is not installed: scripts/install-packages test", IMPOSSIBLE
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        text, status = str(error), 1
    print(f"{name}: {text}", file=sys.stderr)
    return status
