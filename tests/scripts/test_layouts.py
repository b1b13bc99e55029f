# SPDX-License-Identifier: MIT
"""Relinked copies of a small program, and what a duet over them says where layout alone makes a difference."""

import math
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import support  # noqa: F401 (finds the package)
from skbench_lib import benchbin, duet, layouts, revduet, stats
from skbench_lib.errors import UserError

SEED = 2009

NINJA = """\
rule cc
  command = gcc -O1 -falign-functions=64 -c $in -o $out
rule ar
  command = ar qc $out $in
rule link
  command = : && gcc $in $libs -o $out && :
build lib/f0.o: cc f0.c
build lib/f1.o: cc f1.c
build lib/f2.o: cc f2.c
build lib/f3.o: cc f3.c
build lib/unused.o: cc unused.c
build libf.a: ar lib/f0.o lib/f1.o lib/f2.o lib/f3.o lib/unused.o
build main.o: cc main.c
build bin/bench: link main.o | libf.a
  libs = libf.a -lm
"""


@unittest.skipUnless(all(map(shutil.which, ("gcc", "ninja", "nm", "ar"))), "gcc, ninja or binutils are not there")
class Relink(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="skbench-links-")
        cls.addClassCleanup(temporary.cleanup)
        cls.path = pathlib.Path(temporary.name)
        for number in range(4):
            (cls.path / f"f{number}.c").write_text(f"int f{number}(int x) {{ return x * {number + 3}; }}\n")
        (cls.path / "unused.c").write_text("int unused(void) { return 1; }\n")
        (cls.path / "main.c").write_text(
            "#include <stdio.h>\nint f0(int), f1(int), f2(int), f3(int);\n"
            'int main(int c, char **v) { printf("%d\\n", f0(f1(f2(f3(c))))); return 0; }\n')
        (cls.path / "build.ninja").write_text(NINJA)
        subprocess.run(["ninja", "-C", cls.path], check=True, capture_output=True)

    def relink(self, name, count=4, seed=SEED, program="bin/bench"):
        return layouts.relink(self.path / program, self.path, count, seed, self.path / name)

    def places(self, path):
        listing = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        return {name: int(address, 16) for address, name in re.findall(r"^(\w+) T (f\d|unused|main)$", listing, re.M)}

    def test_the_same_program_in_other_places(self):
        made = self.relink("a")
        self.assertEqual([path.relative_to(self.path).as_posix() for path in made], [f"a/{k}/bench" for k in range(4)])
        seen = {str(self.places(path)) for path in [self.path / "bin/bench", *made]}
        self.assertEqual(len(seen), 5)
        for path in made:
            self.assertEqual(subprocess.run([path], capture_output=True, text=True).stdout, f"{3 * 4 * 5 * 6}\n")
            places = self.places(path)
            self.assertEqual(set(places), {"f0", "f1", "f2", "f3", "main"})  # and nothing that the link had left out
            self.assertTrue(all(place % layouts.ALIGNMENT == 0 for name, place in places.items() if name != "main"))
        orders = {tuple(sorted(self.places(path), key=self.places(path).get)) for path in made}
        self.assertGreater(len(orders), 1)

    def test_the_seed_tells_all(self):
        first, again, other = (self.relink(name, 2, seed) for name, seed in (("b", 1), ("c", 1), ("d", 2)))
        self.assertEqual([self.places(path) for path in first], [self.places(path) for path in again])
        self.assertNotEqual([self.places(path) for path in first], [self.places(path) for path in other])
        # Copy k is the same, however many are made.
        self.assertEqual(self.places(self.relink("e", 1, 1)[0]), self.places(first[0]))

    def test_what_cannot_be_linked_anew(self):
        for program, pattern, status in (("main.o", "is not linked by ninja", 4), ("nothing", "is not linked by ninja", 4)):
            with self.subTest(program), self.assertRaisesRegex(UserError, pattern) as caught:
                self.relink("f", program=program)
            self.assertEqual(caught.exception.status, status)
        (self.path / "lib" / "f1.o").rename(self.path / "kept.o")
        (self.path / "libf.a").rename(self.path / "kept.a")
        try:
            with self.assertRaisesRegex(UserError, "^bin/bench cannot be linked anew: .*libf.a") as caught:
                self.relink("g")
            self.assertEqual(caught.exception.status, 5)
        finally:
            (self.path / "kept.a").rename(self.path / "libf.a")
            (self.path / "kept.o").rename(self.path / "lib" / "f1.o")


class Layouts(unittest.TestCase):
    """Duets of equal code whose links differ by a few percent."""

    SPREAD = 0.04

    def duet(self, rng, links, shift=1.0, cell_class=revduet.LayoutCell, pairs=60):
        effects = {}

        class Link:
            def __init__(self, key):
                self.key = key

        a = revduet.LaidOut([Link(("a", k)) for k in range(links)], "case", "a")
        b = revduet.LaidOut([Link(("b", k)) for k in range(links)], "case", "b")
        cell = cell_class("c", a, b, 100, max_pairs=pairs)

        def sample(side, cell, pad):
            link = side.binary_of(len(cell.pairs)).key
            effect = effects.setdefault(link, rng.gauss(0, self.SPREAD))
            return {"busy": {"p33": 100 * math.exp(effect + rng.gauss(0, 0.003)) * (shift if side is b else 1)}}

        duet.Duet([cell], random.Random(rng.random()), sampler=sample).run()
        return cell

    def test_each_pair_of_links_is_one_sample(self):
        rng = random.Random(SEED)
        cell = self.duet(rng, 7, pairs=20)
        self.assertEqual((len(cell.pairs), len(cell.log_ratios())), (20, 7))
        by_hand = [stats.median([pair.log_ratio for number, pair in enumerate(cell.pairs) if number % 7 == k])
                   for k in range(7)]
        self.assertEqual(cell.log_ratios(), by_hand)

    def test_layout_alone_is_no_change(self):
        """Of equal code, links taken as samples alarm as seldom as they should; one link of each side does not."""
        print(f"seed {SEED}", end=" ", flush=True)
        rng, runs = random.Random(SEED), 300
        alarms, holds = 0, 0
        for _ in range(runs):
            cell = self.duet(rng, 10)
            lo, hi = cell.interval()
            holds += lo <= 0 <= hi
            alarms += cell.verdict() in (stats.REGRESSION, stats.IMPROVEMENT)
        # Nominally 97.9 % at 10 samples; a 1-in-1000 accident below that is 95.2 %.
        self.assertGreaterEqual(holds / runs, 0.952)
        self.assertLessEqual(alarms / runs, 0.03)
        wrong = sum(self.duet(rng, 1, cell_class=duet.Cell).verdict() in (stats.REGRESSION, stats.IMPROVEMENT)
                    for _ in range(100))
        self.assertGreater(wrong, 30)

    def test_a_change_is_still_found(self):
        rng = random.Random(SEED)
        found = sum(self.duet(rng, 30, 1.15).verdict() == stats.REGRESSION for _ in range(60))
        self.assertGreaterEqual(found, 57)

    def test_the_control_pairs_other_links(self):
        binaries = [benchbin.BenchBinary(f"/nowhere/{k}") for k in range(6)]
        comparison = revduet.Comparison(None, None, None)
        comparison.links = {"bench_skb": (binaries, binaries)}
        comparison.binaries = {"bench_skb": (binaries[0], binaries[0])}
        cell = comparison.cell("skb/x", "skb/x", "skb/x", "bench_skb")
        control = comparison.control(cell)
        for pair in range(8):
            self.assertIs(control.a.binary_of(pair), binaries[pair % 6])
            self.assertIs(control.b.binary_of(pair), binaries[(pair + 1) % 6])


if __name__ == "__main__":
    unittest.main()
