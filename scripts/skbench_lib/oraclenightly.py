# SPDX-License-Identifier: MIT
"""What the nightly campaign of the oracle has done already, so that it goes on where it was stopped."""

import hashlib
import json

from . import oracleguest as guest
from .files import write_text
from .tree import repo_root, tracked_files

SOURCES = ("skb", "tcp", "mptcp", "tests/oracle")


def digest(kernels):
    """Of all that an agreement was found with: the library, the interpreter, the generator and KERNELS."""
    found = hashlib.sha256()
    for name in tracked_files():
        if str(name).startswith(SOURCES) or name.name == "oracleprog.py":
            found.update(str(name).encode() + b"\0" + (repo_root() / name).read_bytes())
    for kernel in kernels:
        found.update(f"{kernel.release} {kernel.version}\0".encode())
    return found.hexdigest()


class Record:
    """done: {campaign: programs that agreed}. Of another state of the sources or another seed, nothing is kept.

    WANTED is the seed that the user named (None: any), FRESH the one of a new campaign.
    """

    def __init__(self, wanted, fresh, kernels):
        self.path = guest.directory() / "nightly.json"
        self.key = digest(kernels)
        self.seed, self.done = wanted or fresh, {}
        try:
            old = json.loads(self.path.read_text(encoding="utf-8"))
            if old["key"] == self.key and wanted in (None, old["seed"]):
                self.seed, self.done = old["seed"], dict(old["done"])
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def note(self, campaign, programs):
        self.done[campaign] = programs
        write_text(self.path, json.dumps({"key": self.key, "seed": self.seed, "done": self.done}) + "\n")

    def finish(self):
        """All agreed: the next campaign begins anew, with another seed."""
        self.path.unlink(missing_ok=True)
