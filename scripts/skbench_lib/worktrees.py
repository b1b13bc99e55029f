# SPDX-License-Identifier: MIT
"""Builds of other revisions: a git worktree for each, kept in build/worktrees/<revision>-<compiler>."""

import fcntl
import subprocess
from pathlib import Path

from . import build, tree
from .errors import FAILED, IMPOSSIBLE, UserError

REVISION_DIGITS = 12
BENCHES = "benches/all"  # CMake's target for what lies in that directory


class Built:
    """A revision with its bench binaries. commit is the full id; label what the user called it."""

    def __init__(self, label, commit, dirty, date, benches):
        self.label, self.commit, self.dirty, self.date = label, commit, dirty, date
        self.benches = Path(benches)


def commit_of(name, root=None):
    """The full id of the revision NAME. Raises UserError."""
    root = root or tree.repo_root()
    if tree.git("rev-parse", "--git-dir", root=root) is None:
        raise UserError(f"{root} is no git tree: revisions cannot be compared in it")
    found = tree.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", root=root)
    if found is None:
        raise UserError(f"{name}: no such revision in {root}")
    return found.strip()


def date_of(commit, root=None):
    return (tree.git("show", "-s", "--format=%cI", commit, root=root) or "").strip() or None


def compiler():
    """Name and version of the compiler that the preset `release` names."""
    try:
        done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True)
    except OSError:
        raise UserError("gcc is not installed: scripts/install-packages run", IMPOSSIBLE) from None
    return f"gcc{done.stdout.strip()}"


def checkout(commit, root=None):
    """The worktree of COMMIT, made if it is not there. Two calls at once wait for each other."""
    root = root or tree.repo_root()
    place = root / "build" / "worktrees" / f"{commit[:REVISION_DIGITS]}-{compiler()}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.parent / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            head, dirty = tree.revision(place)
            # Without its own .git, git would answer for the tree around it.
            if (place / ".git").exists() and head == commit and not dirty:
                return place
            raise UserError(f"{place} is not {commit[:REVISION_DIGITS]} as it was checked out: remove that directory")
        tree.git("worktree", "prune", root=root)
        if tree.git("worktree", "add", "--detach", "--quiet", str(place), commit, root=root) is None:
            raise UserError(f"git worktree add {place} {commit[:REVISION_DIGITS]} failed", FAILED)
    return place


def build_revision(name, root=None):
    """Builds the revision NAME in its worktree: a Built. Raises UserError with the place of the log if it fails."""
    commit = commit_of(name, root)
    place = checkout(commit, root)
    if not (place / "CMakePresets.json").is_file() or not (place / "benches").is_dir():
        raise UserError(f"{name} ({commit[:REVISION_DIGITS]}): that revision has no bench binaries to build")
    directory = build.ensure_built("release", targets=[BENCHES], root=place)
    return Built(name, commit, False, date_of(commit, root), directory / "benches")


def build_working_tree():
    """The same for the tree as it stands."""
    directory = build.ensure_built("release", targets=[BENCHES])
    commit, dirty = tree.revision()
    return Built("working tree", commit, dirty, date_of(commit), directory / "benches")
