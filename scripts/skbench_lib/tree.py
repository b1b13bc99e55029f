# SPDX-License-Identifier: MIT
"""The source tree and its revision."""

import os
import subprocess
from pathlib import Path


def repo_root():
    """The root of the source tree that this package lies in."""
    return Path(__file__).resolve().parents[2]


def git(*args, root=None):
    """Standard output of `git ARGS` in ROOT (default: this tree), or None where git is missing or refuses."""
    root = str(root or repo_root())
    # As root in a container the tree often belongs to somebody else, which git refuses; for this tree, whose code is
    # running already, that protects nothing.
    command = ["git", "-c", f"safe.directory={root}", "-C", root, *args]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape")
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def revision(root=None):
    """(commit, dirty): the full commit id or "unknown", and whether tracked files differ from it (None: unknown)."""
    commit = git("rev-parse", "HEAD", root=root)
    if commit is None:
        return "unknown", None
    status = git("status", "--porcelain", "--untracked-files=no", root=root)
    return commit.strip(), None if status is None else bool(status.strip())


def tracked_files(root=None):
    """Paths below ROOT, relative and sorted: what git tracks, or all but build output where git does not answer."""
    root = Path(root or repo_root())
    listing = git("ls-files", "-z", root=root)
    if listing is not None:
        return sorted(Path(name) for name in listing.split("\0") if name and (root / name).is_file())
    found = []
    for base, dirs, files in os.walk(root):
        if Path(base) == root:
            dirs[:] = [d for d in dirs if d not in (".git", "build", "out")]
        dirs[:] = [d for d in dirs if d != "__pycache__"]
        found += [(Path(base) / name).relative_to(root) for name in files]
    return sorted(found)
