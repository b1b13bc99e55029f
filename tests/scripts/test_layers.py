# SPDX-License-Identifier: MIT
"""scripts/check-layers and check-style on planted faults, in a tree of their own."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPDX = "/* SPDX-License-Identifier: MIT */\n"


def check_style():
    """scripts/check-style as a module."""
    loader = importlib.machinery.SourceFileLoader("check_style", str(ROOT / "scripts" / "check-style"))
    spec = importlib.util.spec_from_loader("check_style", loader)
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = writes
    return module


class Planted(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def plant(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return Path(name)


class Layers(Planted):
    def check(self):
        done = subprocess.run([ROOT / "scripts" / "check-layers", self.root], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_downwards_is_allowed(self):
        self.plant("skb/page.h", SPDX)
        self.plant("skb/page.c", SPDX + '#include "skb/page.h"\n#include <stdio.h>\n#include <sys/mman.h>\n')
        self.plant("tcp/tcp.c", SPDX + '#include "skb/page.h"\n')
        self.plant("benches/harness/bench.h", SPDX + '#include "skb/page.h"\n')
        self.plant("benches/bench_tcp.c", SPDX + '#include "harness/bench.h"\n#include "tcp/tcp.h"\n')
        self.plant("tests/skb/page_test.c", SPDX + '#include "benches/harness/bench.h"\n#include "hw/ixgbe.h"\n')
        self.assertEqual(self.check(), (0, ""))

    def test_upwards_is_not(self):
        self.plant("tcp/tcp.h", SPDX)
        self.plant("skb/page.c", SPDX + '\n#  include "tcp/tcp.h"\n')
        self.plant("mptcp/protocol.c", SPDX + '#include "sim/cpu.h"\n')
        self.assertEqual(self.check(), (1, (
            "mptcp/protocol.c:2: mptcp includes sim/cpu.h: mptcp may include skb, tcp\n"
            "skb/page.c:3: skb includes tcp/tcp.h: skb may include no other layer\n")))

    def test_ways_around(self):
        self.plant("tcp/tcp.h", SPDX)
        self.plant("skb/a.c", SPDX + '#include "../tcp/tcp.h"\n')
        self.plant("skb/b.c", SPDX + "#include <tcp/tcp.h>\n")
        self.plant("skb/c.c", SPDX + '#include "tests/x.h"\n')
        self.plant("extra/d.c", SPDX)
        status, text = self.check()
        self.assertEqual(status, 1)
        self.assertEqual([line.split(": ")[0] for line in text.splitlines()],
                         ["extra/d.c:1", "skb/a.c:2", "skb/b.c:2", "skb/c.c:2"])

    def test_usage(self):
        done = subprocess.run([ROOT / "scripts" / "check-layers", self.root / "none"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)


class Style(Planted):
    def setUp(self):
        super().setUp()
        self.module = check_style()

    def found(self, name, files):
        return list(self.module.CHECKS[name](self.root, files))

    def test_spdx(self):
        good = [self.plant("a.c", SPDX), self.plant("b.py", "#!/usr/bin/python3\n# SPDX-License-Identifier: MIT\n"),
                self.plant("README.md", "text\n")]
        self.assertEqual(self.found("spdx", good), [])
        bad = [self.plant("c.h", "int x;\n"), self.plant("d", "#!/bin/sh\n"), self.plant("CMakeLists.txt", "\n"),
               self.plant("e.py", "\n\n\n# SPDX-License-Identifier: MIT\n")]
        self.assertEqual(len(self.found("spdx", bad)), 4)

    def test_format(self):
        shutil.copy(ROOT / ".clang-format", self.root)
        good = self.plant("a.c", SPDX + "int f(void)\n{\n\treturn 1;\n}\n")
        self.assertEqual(self.found("format", [good]), [])
        bad = self.plant("b.c", SPDX + "int f(void) {\n\treturn 1;\n}\n")
        self.assertEqual(self.found("format", [good, bad]), ["b.c:2: clang-format would change this"])

    def test_whitespace(self):
        self.assertEqual(self.found("whitespace", [self.plant("a.c", "\tx;\n"), self.plant("empty.txt", ""),
                                                      self.plant("a.py", 'x = """\n\ty\n"""\n')]), [])
        for name, text, line in (("b.c", "\tx; \n", 1), ("d.py", "if x:\n\ty\n", 2), ("e.c", " \tx;\n", 1), ("f.md", "x", 1), ("g.md", "x\n\n", 3)):
            with self.subTest(name):
                found = self.found("whitespace", [self.plant(name, text)])
                self.assertEqual([place.split(": ")[0] for place in found], [f"{name}:{line}"])

    def test_paths(self):
        self.assertEqual(self.found("paths", [self.plant("a.md", "~/x, $HOME/x, a/home/b/c, /sys/root/x\n")]), [])
        # Put together here, since this file is checked as well.
        for path in ("/" + "home/somebody/x", "/" + "root/x", "/" + "Users/somebody/x"):
            with self.subTest(path):
                self.assertEqual(len(self.found("paths", [self.plant("b.md", f"\nsee {path}\n")])), 1)

    def test_shell(self):
        good = self.plant("a.sh", '#!/bin/sh\n# SPDX-License-Identifier: MIT\necho "$1"\n')
        self.assertEqual(self.found("shell", [good]), [])
        bad = self.plant("b", "#!/bin/sh\necho $1\n")
        self.assertEqual(len(self.found("shell", [good, bad])), 1)


if __name__ == "__main__":
    unittest.main()
