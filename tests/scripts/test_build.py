# SPDX-License-Identifier: MIT
"""ensure_built() on a small project, and what git is asked."""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from skbench_lib import build, children, files, tree  # noqa: E402
from skbench_lib.errors import UserError  # noqa: E402

# One target, that appends to the file `ran` and fails while there is a file `fail`.
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small NONE)
add_custom_target(all_of_it ALL COMMAND sh -c
	"echo begin >>${CMAKE_SOURCE_DIR}/ran; sleep 0.3; echo end >>${CMAKE_SOURCE_DIR}/ran; ! test -e ${CMAKE_SOURCE_DIR}/fail" VERBATIM)
"""
PRESETS = {"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja",
                                               "binaryDir": "${sourceDir}/build/${presetName}"}]}


class Build(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name).resolve() / "tree"
        self.root.mkdir()
        (self.root / "CMakeLists.txt").write_text(PROJECT)
        (self.root / "CMakePresets.json").write_text(json.dumps(PRESETS))
        patch = mock.patch.object(build, "repo_root", lambda: self.root)
        patch.start()
        self.addCleanup(patch.stop)

    def ran(self):
        return (self.root / "ran").read_text().split()

    def build(self):
        """What ensure_built() writes to standard error, which is no terminal here."""
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            self.assertEqual(build.ensure_built("release"), self.root / "build" / "release")
        return err.getvalue()

    def test_it_builds_and_is_quiet(self):
        self.assertEqual(self.build(), "")
        self.assertEqual(self.ran(), ["begin", "end"])
        log = (self.root / "build" / "release" / build.LOG).read_text()
        self.assertIn("--preset release", log)
        self.build()
        log = (self.root / "build" / "release" / build.LOG).read_text()
        self.assertNotIn("--preset", log)  # configured once

    def test_changed_presets_are_configured_anew(self):
        self.build()
        PRESETS_2 = json.loads(json.dumps(PRESETS))
        PRESETS_2["configurePresets"][0]["cacheVariables"] = {"CHANGED": "yes"}
        time.sleep(0.02)
        (self.root / "CMakePresets.json").write_text(json.dumps(PRESETS_2))
        self.build()
        self.assertIn("CHANGED:UNINITIALIZED=yes", (self.root / "build" / "release" / "CMakeCache.txt").read_text())

    def test_a_failure_shows_the_end_of_the_log_and_names_it(self):
        (self.root / "fail").touch()
        err = io.StringIO()
        with contextlib.redirect_stderr(err), self.assertRaises(UserError) as raised:
            build.ensure_built("release")
        self.assertEqual(raised.exception.status, 5)
        self.assertIn(str(self.root / "build" / "release" / build.LOG), str(raised.exception))
        self.assertIn("FAILED", err.getvalue())

    def test_two_at_once_take_turns(self):
        self.build()
        threads = [threading.Thread(target=build.ensure_built, args=("release",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.ran(), ["begin", "end"] * 4)

    def test_a_moved_tree(self):
        self.build()
        moved = self.root.parent / "moved"
        self.root.rename(moved)
        self.root = moved
        self.build()
        self.assertEqual(self.ran(), ["begin", "end"] * 2)


class Git(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        (self.root / "a.c").touch()
        (self.root / "build").mkdir()
        (self.root / "build" / "b.c").touch()

    def test_without_git(self):
        self.assertEqual(tree.revision(self.root), ("unknown", None))
        self.assertEqual(tree.tracked_files(self.root), [Path("a.c")])
        with mock.patch.dict("os.environ", {"PATH": "/nonexistent"}):
            self.assertEqual(tree.revision(), ("unknown", None))

    def test_with_git(self):
        def git(*words):
            subprocess.run(["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=e", *words], check=True,
                           capture_output=True)
        git("init")
        git("add", "a.c")
        git("commit", "-m", "x")
        (self.root / "untracked.c").touch()
        commit, dirty = tree.revision(self.root)
        self.assertRegex(commit, "^[0-9a-f]{40}$")
        self.assertIs(dirty, False)
        self.assertEqual(tree.tracked_files(self.root), [Path("a.c")])
        (self.root / "a.c").write_text("x")
        self.assertIs(tree.revision(self.root)[1], True)
        (self.root / "a.c").unlink()
        self.assertEqual(tree.tracked_files(self.root), [])


class Files(unittest.TestCase):
    def test_all_or_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "new" / "x"
            files.write_text(path, "one")
            with mock.patch("os.replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                files.write_text(path, "two")
            self.assertEqual([(p.name, p.read_text()) for p in path.parent.iterdir()], [("x", "one")])

    def test_a_place_that_cannot_be_written(self):
        with self.assertRaises(UserError) as raised:
            files.write_json("/dev/null/x", {})
        self.assertEqual(raised.exception.status, 2)


class Children(unittest.TestCase):
    def test_how_it_ended(self):
        self.assertEqual(children.run(["true"], 10).status, 0)
        self.assertEqual(children.run(["sh", "-c", "exit 3"], 10).why(10), "exited with status 3")
        self.assertEqual(children.run(["sh", "-c", "kill -ABRT $$"], 10).why(10), "was killed by SIGABRT")

    def test_one_that_raises_ends_the_others(self):
        def work(item):
            if item == "bad":
                time.sleep(0.3)
                raise UserError("bad")
            children.run(["sleep", "60"], 60)
        begin = time.monotonic()
        with mock.patch("os.sched_getaffinity", return_value={0, 1}), self.assertRaises(UserError):
            children.each(work, ["bad", "long", "long"])
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(children.each(lambda n: n + 1, [3, 1, 2]), [4, 2, 3])

    def test_a_time_out_ends_grandchildren_too(self):
        with tempfile.TemporaryDirectory() as scratch:
            pid = Path(scratch) / "pid"
            begin = time.monotonic()
            ended = children.run(["sh", "-c", f"sleep 60 & echo $! >{pid}; wait"], 0.5)
            self.assertTrue(ended.timed_out)
            self.assertLess(time.monotonic() - begin, 10)
            # Killed; until init reaps it, it may be there as a zombie.
            state = Path("/proc") / pid.read_text().strip() / "stat"
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline and state.exists() and ") Z " not in state.read_text():
                time.sleep(0.01)
            self.assertTrue(not state.exists() or ") Z " in state.read_text())


if __name__ == "__main__":
    unittest.main()
