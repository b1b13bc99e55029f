# SPDX-License-Identifier: MIT
"""Whether two programs are the same code: a hash of their functions and constants, without what only tells where they
lie. Where that cannot be taken out the hashes differ, and the cases are measured as if the code did."""

import bisect
import hashlib
import re
import subprocess
from pathlib import Path

from .errors import IMPOSSIBLE, UserError

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\s+(.*)$")
TARGET = re.compile(r"\b[0-9a-f]+ (<[^>]+>)")  # of a jump or a call: the address goes, symbol and offset stay
PC_RELATIVE = re.compile(r"-?0x[0-9a-f]+\(%rip\)(.*?)\s*#\s*([0-9a-f]+)(?: <([^>+]+)(?:\+0x([0-9a-f]+))?>)?.*$")
PADDING = re.compile(r"(?:(?:data16|cs|xchg|nop\w*)\b.*|nop|int3)$")
DATA = (".rodata", ".data")
CONSTANT_BYTES = 16


def _objdump(*args):
    try:
        done = subprocess.run(["objdump", *args], capture_output=True, text=True, errors="surrogateescape",
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
    except OSError:
        raise UserError("objdump is not installed: scripts/install-packages run", IMPOSSIBLE) from None
    return done.stdout if done.returncode == 0 else None


class Data:
    """The data sections of a program, and the sizes of its symbols."""

    def __init__(self, path=None, root=None):
        self.root = str(root).encode()
        self.starts, self.sections, self.sizes = [], [], {}
        if path is None:
            return
        for section in DATA:
            self._read(_objdump("-s", "-j", section, str(path)))
        order = sorted(range(len(self.starts)), key=self.starts.__getitem__)
        self.starts, self.sections = [self.starts[i] for i in order], [self.sections[i] for i in order]
        for line in (_objdump("-t", str(path)) or "").splitlines():
            found = re.match(r"^[0-9a-f]+ .{7} \S+\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
            if found:
                self.sizes[found.group(2)] = max(int(found.group(1), 16), self.sizes.get(found.group(2), 0))

    def _read(self, listing):
        rows = re.findall(r"^ ([0-9a-f]+) ((?:[0-9a-f]{2,8} ){1,4})", listing or "", re.MULTILINE)
        if rows:
            self.starts.append(int(rows[0][0], 16))
            self.sections.append(bytes.fromhex("".join(words.replace(" ", "") for _, words in rows)))

    def at(self, address):
        """What lies at an address: a string to its end, or the first bytes of something else; without the tree's path."""
        index = bisect.bisect_right(self.starts, address) - 1
        if index < 0 or address - self.starts[index] >= len(self.sections[index]):
            return "?"
        rest = self.sections[index][address - self.starts[index]:]
        text = rest[:rest.find(b"\0")] if b"\0" in rest else rest
        if text and all(32 <= byte < 127 or byte in b"\t\n" for byte in text):
            return repr(text.replace(self.root, b""))
        return rest[:CONSTANT_BYTES].hex()

    def parts(self):
        """What stands in the sections between zero bytes, sorted: where each lies does not matter."""
        return sorted({part for data in self.sections for part in data.replace(self.root, b"").split(b"\0")})

    def place(self, match):
        """The text of an operand relative to the instruction: the symbol it lies in, or else what lies there."""
        between, address, symbol, offset = match.groups()
        offset = int(offset or "0", 16)
        if symbol and offset < max(1, self.sizes.get(symbol, 1)):
            return f"<{symbol}+{offset:#x}>(%rip){between}"
        return f"<{self.at(int(address, 16))}>(%rip){between}"


def functions(listing, data):
    """{name: instructions without addresses} of a disassembly; functions of one name are taken together, sorted."""
    found, name, body = {}, None, []
    for line in listing.splitlines() + ["0 <>:"]:
        head = FUNCTION.match(line)
        if head or line == "0 <>:":
            if name is not None:
                # What fills the gap to the next function depends on where that one lies.
                while body and PADDING.match(body[-1]):
                    body.pop()
                found.setdefault(name, []).append("\n".join(body))
            name, body = head.group(1) if head else None, []
            continue
        instruction = INSTRUCTION.match(line)
        if instruction and name is not None:
            text = PC_RELATIVE.sub(data.place, instruction.group(1).strip())
            body.append(TARGET.sub(r"\1", text))
    return {key: sorted(parts) for key, parts in found.items()}


def of(path, root):
    """The hash of the program PATH built from the source tree ROOT, or None if it is no program that objdump reads."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
    except OSError:
        return None
    listing = _objdump("-d", "--no-show-raw-insn", "-j", ".text", str(path))
    if listing is None:
        return None
    data = Data(path, root)
    digest = hashlib.sha256()
    for name, bodies in sorted(functions(listing, data).items()):
        for text in (name, *bodies):
            digest.update(b"\0" + text.encode("utf-8", "surrogateescape"))
    for part in data.parts():
        digest.update(b"\1" + part)
    return digest.hexdigest()
