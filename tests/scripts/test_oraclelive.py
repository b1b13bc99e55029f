# SPDX-License-Identifier: MIT
"""The oracle in the running kernel: what is refused before anything is loaded, and that what was loaded goes again.

The kernel is a directory, and insmod and rmmod are scripts that change it; what the real module does is test_oracle's.
"""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

from support import ROOT  # noqa: F401  (puts the package on the path)

from skbench_lib import oracleguest, oraclelive
from skbench_lib.errors import FAILED, IMPOSSIBLE, UserError

INSMOD = """#!/bin/sh -e
{say}
echo "skb_oracle 16384 0 - Live 0x0 (OE)" >>{root}/proc/modules
: >{root}/proc/skb_oracle
echo $(($(cat {root}/proc/sys/kernel/tainted) | 4096)) >{root}/proc/sys/kernel/tainted
"""
RMMOD = """#!/bin/sh -e
{say}
sed -i /^skb_oracle/d {root}/proc/modules
rm -f {root}/proc/skb_oracle
"""


class Machine(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "proc" / "sys" / "kernel").mkdir(parents=True)
        (self.root / "proc" / "modules").write_text("veth 40960 0 - Live 0x0\n")
        (self.root / "proc" / "sys" / "kernel" / "tainted").write_text("0\n")
        (self.root / "bin").mkdir()
        self.tool("insmod", INSMOD)
        self.tool("rmmod", RMMOD)
        for what, value in (("geteuid", lambda: 0), ("uname", lambda: os.uname_result(
                ("Linux", "here", "6.1.0-9-amd64", "#1 SMP", "x86_64")))):
            patch = mock.patch.object(oraclelive.os, what, value)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.dict(os.environ, {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"})
        patch.start()
        self.addCleanup(patch.stop)
        self.kernel = oraclelive.Running(self.root)
        self.kernel.headers.mkdir(parents=True)

    def tool(self, name, text, say=""):
        path = self.root / "bin" / name
        path.write_text(text.format(root=self.root, say=say))
        path.chmod(0o755)

    def refused(self, *words, status=IMPOSSIBLE):
        with self.assertRaises(UserError) as caught:
            self.kernel.check()
        self.assertEqual(caught.exception.status, status)
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_a_machine_that_can(self):
        self.assertEqual(self.kernel.era, "6.1")
        self.kernel.check()

    def test_refusals(self):
        with mock.patch.object(oraclelive.os, "geteuid", lambda: 1000):
            self.refused("only root may")
        with mock.patch.object(self.kernel, "era", "6.18"):
            self.refused("no era of the running kernel, Linux 6.1.0-9-amd64, only 6.1 and 6.12")
        with mock.patch.object(oraclelive.shutil, "which", lambda tool: None):
            self.refused("apt-get install kmod")
        self.kernel.headers.rmdir()
        self.refused("apt-get install linux-headers-6.1.0-9-amd64")
        (self.root / "proc" / "modules").unlink()
        self.refused("takes no modules")

    def test_one_at_a_time(self):
        with open(self.root / "proc" / "modules", "a", encoding="ascii") as modules:
            modules.write("skb_oracle_of_others 1 0 - Live 0x0\n")
        self.kernel.check()
        with open(self.root / "proc" / "modules", "a", encoding="ascii") as modules:
            modules.write("skb_oracle 1 0 - Live 0x0\n")
        self.refused("is loaded already")

    def test_it_asks_and_goes(self):
        side = oraclelive.Live(self.kernel, self.root)
        self.assertTrue(self.kernel.loaded())
        # A file says what was written to it, a module an answer.
        self.assertEqual(side.ask([b"some words", b"more words"])[0], "some words")
        side.close()
        self.assertFalse(self.kernel.loaded())
        self.assertFalse((self.root / "proc" / "skb_oracle").exists())

    def test_a_module_that_is_not_taken(self):
        self.tool("insmod", INSMOD, "echo 'insmod: ERROR: could not insert module: Key was rejected by service' >&2; exit 1")
        with self.assertRaises(UserError) as caught:
            oraclelive.Live(self.kernel, self.root)
        self.assertIn("does not take the module: insmod: ERROR: could not insert module: Key was", str(caught.exception))
        self.assertEqual(caught.exception.status, IMPOSSIBLE)

    def test_a_kernel_that_complains(self):
        side = oraclelive.Live(self.kernel, self.root)
        (self.root / "proc" / "sys" / "kernel" / "tainted").write_text("4608\n")  # foreign, and a warning
        with self.assertRaises(oracleguest.Died) as caught:
            side.ask([b"one"])
        self.assertIn("dmesg", str(caught.exception))
        side.close()

    def test_a_module_that_stays(self):
        side = oraclelive.Live(self.kernel, self.root)
        self.tool("rmmod", RMMOD, "echo 'rmmod: ERROR: Module skb_oracle is in use' >&2; exit 1")
        with self.assertRaises(UserError) as caught:
            side.close()
        self.assertEqual(caught.exception.status, FAILED)
        self.assertIn("still loaded: rmmod: ERROR: Module skb_oracle is in use", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
