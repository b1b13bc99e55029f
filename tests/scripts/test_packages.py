# SPDX-License-Identifier: MIT
"""scripts/install-packages and scripts/skbench on machines that lack something, played by stand-ins on PATH."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


class Machine(unittest.TestCase):
    """A directory that is all of PATH: dpkg-query tells what the file `installed` lists, apt-get adds to it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.bin = Path(scratch.name) / "bin"
        self.bin.mkdir()
        self.installed = Path(scratch.name) / "installed"
        self.log = Path(scratch.name) / "log"
        self.log.touch()
        for tool in ("awk", "cat", "dirname", "env", "grep", "readlink", "sh"):
            (self.bin / tool).symlink_to(f"/usr/bin/{tool}")
        self.tool("sleep", "exit 0")
        self.tool("dpkg-query", 'while read -r p; do echo "$p installed"; done <%s\nexit 1' % self.installed)
        self.user(0)
        self.apt("installs")
        self.have("python3")

    def tool(self, name, body):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/usr/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def user(self, number):
        self.tool("id", f"echo {number}")

    def apt(self, behaviour):
        """apt-get that installs, or fails so many times first; it logs its arguments in one line."""
        fails = 0 if behaviour == "installs" else behaviour
        self.tool("apt-get", f"""
echo "$DEBIAN_FRONTEND: $*" >>{self.log}
echo chatter
case "$*" in
*" update") exit 0 ;;
esac
[ "$(grep -c " install " {self.log})" -gt {fails} ] || exit 100
for word in "$@"; do echo "$word"; done >>{self.installed}""")

    def have(self, *packages):
        self.installed.write_text("".join(f"{p}\n" for p in packages))

    def run_it(self, *command, **environment):
        done = subprocess.run([str(SCRIPTS / command[0]), *command[1:]], capture_output=True, text=True,
                              env={"PATH": str(self.bin), **environment})
        self.assertNotIn("chatter", done.stdout)
        return done

    @staticmethod
    def packages(*groups):
        lines = (SCRIPTS / "packages.txt").read_text().splitlines()
        fields = [line.split(None, 2) for line in lines if line and not line.startswith("#")]
        return [name for name, group, _ in fields if set(group.split(",")) & set(groups)]

    def calls(self, word):
        return [line for line in self.log.read_text().splitlines() if f" {word}" in line]


class Install(Machine):
    def test_nothing_missing(self):
        self.have(*self.packages("tool", "run", "test"))
        done = self.run_it("install-packages", "test")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.log.read_text(), "")

    def test_root_installs_what_is_missing_and_no_more(self):
        self.have(*[p for p in self.packages("tool", "run") if p not in ("gcc", "ninja-build")])
        done = self.run_it("install-packages", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("skbench: installing: gcc ninja-build\n", done.stderr)
        (install,) = self.calls("install")
        self.assertTrue(install.startswith("noninteractive: "))
        self.assertTrue(install.endswith(" -y --no-install-recommends gcc ninja-build"))
        self.assertEqual(self.run_it("install-packages", "run").returncode, 0)
        self.assertEqual(len(self.calls("install")), 1)

    def test_the_oracle_needs_what_nothing_else_does(self):
        own = self.packages("oracle")
        self.assertIn("qemu-system-x86", own)
        self.have(*self.packages("tool", "run", "test"))
        self.assertEqual(self.run_it("install-packages", "test").returncode, 0)
        self.assertEqual(self.log.read_text(), "")
        self.have(*self.packages("tool", "run"))
        self.assertEqual(self.run_it("install-packages", "oracle").returncode, 0)
        self.assertTrue(self.calls("install")[0].endswith(" " + " ".join(own)))

    def test_a_profile_needs_what_nothing_else_does(self):
        own = self.packages("profile")
        self.assertIn("linux-source-6.1", own)
        self.assertIn("make", set(own) & set(self.packages("oracle")))
        self.have(*self.packages("tool", "run"))
        for words in (["profile", "self/inc"], ["run", "--counters"]):
            with self.subTest(words):
                done = self.run_it("skbench", *words, SKBENCH_NO_INSTALL="1")
                self.assertEqual(done.returncode, 4)
                self.assertTrue(done.stderr.endswith(" " + " ".join(own) + "\n"), done.stderr)
        self.assertEqual(self.run_it("skbench", "run", "--help", SKBENCH_NO_INSTALL="1").returncode, 0)

    def test_g_plus_plus_is_no_pattern(self):
        self.have(*[p for p in self.packages("tool", "run") if p != "g++"], "g")
        self.assertEqual(self.run_it("install-packages", "run").returncode, 0)
        self.assertTrue(self.calls("install")[0].endswith(" g++"))

    def test_it_tries_again(self):
        self.apt(2)
        self.assertEqual(self.run_it("install-packages", "run").returncode, 0)
        self.assertEqual((len(self.calls("update")), len(self.calls("install"))), (3, 3))

    def test_it_gives_up(self):
        self.apt(9)
        done = self.run_it("install-packages", "run")
        self.assertEqual(done.returncode, 4)
        self.assertIn("could not be installed; run as root", done.stderr)

    def test_a_user_is_told_the_command(self):
        self.user(1000)
        self.have(*[p for p in self.packages("tool", "run") if p != "cmake"])
        done = self.run_it("install-packages", "run")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("apt-get update && apt-get install -y --no-install-recommends cmake\n", done.stderr)
        self.assertEqual(self.log.read_text(), "")

    def test_a_user_with_sudo(self):
        self.user(1000)
        self.tool("sudo", '[ "$1" = -n ] || exit 1\nshift\n[ "$1" = true ] || exec "$@"')
        self.assertEqual(self.run_it("install-packages", "run").returncode, 0)
        self.assertEqual(len(self.calls("install")), 1)
        self.have("python3")
        self.tool("sudo", "exit 1")  # wants a password
        self.assertEqual(self.run_it("install-packages", "run").returncode, 4)

    def test_told_not_to_install(self):
        done = self.run_it("install-packages", "run", SKBENCH_NO_INSTALL="1")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(self.log.read_text(), "")

    def test_not_debian(self):
        (self.bin / "dpkg-query").unlink()
        done = self.run_it("install-packages", "run")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("not a Debian system", done.stderr)

    def test_no_such_group(self):
        self.assertEqual(self.run_it("install-packages", "all").returncode, 2)


class Entry(Machine):
    def test_what_a_command_needs(self):
        # run and test end before they begin where their packages are not there; reading needs the interpreter alone.
        self.user(1000)
        for words, missing in ((["run"], "cmake"), (["ledger", "--check"], "cmake"), (["test", "--quick"], "valgrind"),
                               (["instructions"], "valgrind")):
            with self.subTest(words):
                done = self.run_it("skbench", *words)
                self.assertEqual(done.returncode, 4)
                self.assertIn(f" {missing}", done.stderr)
        for words in (["test", "--help"], ["topology"], ["--version"]):
            with self.subTest(words):
                done = self.run_it("skbench", *words)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("valgrind", self.run_it("skbench", "run").stderr)

    def test_through_symlinks_from_anywhere(self):
        link = self.bin.parent / "second"
        link.symlink_to(SCRIPTS / "skbench")
        first = self.bin.parent / "first"
        first.symlink_to(link)
        # A user's file that bears the name of a module is none of ours.
        (self.bin.parent / "json.py").write_text("raise SystemExit('wrong json')\n")
        done = subprocess.run([first, "topology", "--json", "-"], capture_output=True, text=True, cwd=self.bin.parent,
                              env={"PATH": str(self.bin)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("{"))


class List(unittest.TestCase):
    def test_every_line_is_whole(self):
        names = []
        for line in (SCRIPTS / "packages.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                name, group, reason = line.split(None, 2)
                self.assertLessEqual(set(group.split(",")), {"tool", "run", "test", "oracle", "profile"})
                self.assertTrue(reason)
                names.append(name)
        self.assertEqual(len(names), len(set(names)))

    @unittest.skipUnless(os.path.exists("/usr/bin/apt-cache"), "apt-cache is missing: use a Debian system")
    def test_debian_knows_them(self):
        names = Machine.packages("tool", "run", "test", "oracle", "profile")
        shown = subprocess.run(["apt-cache", "policy", *names], capture_output=True, text=True).stdout
        for name in names:
            with self.subTest(name):
                self.assertIn(f"{name}:\n", shown)


if __name__ == "__main__":
    unittest.main()
