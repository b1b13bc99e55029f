# SPDX-License-Identifier: MIT
"""Result files: the strict reader, the schema checker beside jsonschema, the writer that leaves no half file."""

import contextlib
import copy
import errno
import json
import locale
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import support
from skbench_lib import files, results
from skbench_lib.errors import UserError

SEED = 2020
COMPARE = pathlib.Path("/usr/share/benchmark/compare.py")


def good_document():
    """A real headline result, of the fake binary."""
    if not hasattr(good_document, "kept"):
        with support.FakeBench() as fake:
            path = fake.path / "good.json"
            status, out, err = fake.run("run", "--filter", "frags:16.*slub", "--seed", "1", "--out", path)
            assert path.exists(), (status, out, err)
            good_document.kept = path.read_bytes()
    return json.loads(good_document.kept)


def good_bytes():
    good_document()
    return good_document.kept


# Their fields are free, so that there is nothing in them for the checkers to agree on.
FREE = ("identity", "condition", "record", "missing", "build", "machine", "parameters")


def places(value, path=()):
    """Every place in a document that the schema may say something about, as a tuple of keys."""
    yield path
    if path and path[-1] in FREE:
        return
    if isinstance(value, dict):
        for key, below in value.items():
            yield from places(below, path + (key,))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from places(below, path + (index,))


def small_document():
    """A good document with one of each thing that may stand in a list."""
    document = good_document()
    ours = document["context"]["skbench"]
    document["benchmarks"] = document["benchmarks"][:1]
    ours["ledger"] = [{"case": "c", "rows": ours["ledger"][0]["rows"][:1]}]
    for key in ("experiments", "cases"):
        ours[key] = ours[key][:1]
    ours["plan"]["cases"] = ours["plan"]["cases"][:1]
    ours["cases"] = [{"case": "c", "metric": "m", "unit": "ns", "better": "lower", "status": "ok", "reason": None,
                      "value": {"median": 1.0, "lo": None, "hi": None, "n": 1}, "processes": 1, "lost_processes": 0}]
    return document


def at(document, path):
    for key in path:
        document = document[key]
    return document


class Reader(unittest.TestCase):
    def refused(self, data, pattern):
        with self.assertRaises(results.Invalid) as caught:
            results.parse(data, "x.json")
        text = str(caught.exception)
        self.assertTrue(text.startswith("x.json: "), text)
        self.assertNotIn("\n", text)
        self.assertEqual(caught.exception.status, 2)
        self.assertRegex(text, pattern)

    def test_empty(self):
        for data in (b"", b"\n", b"  \t\n", b"\xef\xbb\xbf"):
            self.refused(data, "file is empty$")

    def test_cut_anywhere(self):
        data = '{"name": "\u00b5\\u00b5\\n", "a": [1.25e-3, true, false, null, -12], "b": {"c": "\\\\"}}'.encode()
        self.assertEqual(results.parse(data, "x")["a"][0], 0.00125)
        for size in range(1, len(data)):
            self.refused(data[:size], f"truncated at byte {size}$")

    def test_real_file_cut_anywhere(self):
        data = good_bytes().rstrip()
        rng = random.Random(SEED)
        for size in sorted(rng.sample(range(1, len(data)), 200)):
            self.refused(data[:size], f"truncated at byte {size}$")

    def test_not_json(self):
        self.refused(b'{"a": 1,\n "b": x}', "not JSON at line 2, column 7")
        self.refused(b"hello", "not JSON at line 1, column 1")
        self.refused(b"{'a': 1}", "not JSON at line 1, column 2")
        self.refused(b'{"a": nan}', "not JSON at line 1")
        self.refused(b'{"a": -nan}', "not JSON at line 1")
        self.refused(b'{"a": inf}', "not JSON at line 1")

    def test_locale_is_named(self):
        for text in (b'{"iterations": 1,000,000, "b": 2}', b'{"real_time": 10,0, "b": 2}'):
            self.refused(text, "not JSON at line 1, column \\d+.*locale")

    def test_not_finite(self):
        for token in ("NaN", "Infinity", "-Infinity"):
            self.refused(f'{{"a": {token}}}'.encode(), f"{token} is not JSON")
        self.refused(b'{"a": 1e400}', "1e400 is beyond")
        self.refused(b'{"a": -1e400}', "-1e400 is beyond")

    def test_double_key(self):
        self.refused(b'{"a": 1, "b": {"c": 1, "c": 2}}', "key 'c' stands twice")
        self.refused(b'{"a": 1, "\\u0061": 2}', "key 'a' stands twice")

    def test_two_documents(self):
        self.refused(b'{"a": 1}\n{"a": 2}\n', "more than one JSON document, second starts at byte 9")
        self.refused('{"µ": 1}\n{"a": 2}\n'.encode(), "second starts at byte 10")
        self.refused(b'{"a": 1}\nrubbish', "not JSON at line 2")

    def test_encodings(self):
        plain, escaped = '{"a": "µé"}'.encode(), b'{"a": "\\u00b5\\u00e9"}'
        self.assertEqual(results.parse(plain, "x"), results.parse(escaped, "x"))
        self.assertEqual(results.parse(b"\xef\xbb\xbf" + plain, "x"), results.parse(plain, "x"))
        self.refused('{"a": "µé"}'.encode("latin-1"), "not UTF-8 at byte 7")
        self.refused(b'{"a": "\x81"}', "not UTF-8 at byte 7")

    def test_depth_and_length(self):
        self.refused(b"[" * 100000 + b"]" * 100000, "nested too deeply")
        self.refused(b"[" + b"1" * 5000 + b"]", "x.json: .+")

    def test_big_integers_stay_exact(self):
        for value in (4294967296, 48000000000, 2 ** 53 + 1, 2 ** 63, 2 ** 64 - 1):
            self.assertEqual(results.parse(f"[{value}]".encode(), "x"), [value])

    def test_missing_file(self):
        with self.assertRaisesRegex(results.Invalid, "/nowhere/x.json: No such file"):
            results.read("/nowhere/x.json")
        with self.assertRaisesRegex(results.Invalid, "Is a directory"):
            results.read("/tmp")


class Schema(unittest.TestCase):
    """Our checker and jsonschema must agree on every document."""

    @classmethod
    def setUpClass(cls):
        import jsonschema

        jsonschema.Draft202012Validator.check_schema(results.schema())
        cls.reference = jsonschema.Draft202012Validator(results.schema())

    def agree(self, document):
        """The verdict of both: True for a good document."""
        ours = next(results.violations(document, results.schema()), None)
        theirs = next(self.reference.iter_errors(document), None)
        self.assertEqual(ours is None, theirs is None, f"ours: {ours}\ntheirs: {theirs and theirs.message}")
        self.assertEqual(results.keeps_schema()(document), ours is None, f"compiled, against: {ours}")
        return ours is None

    def test_good(self):
        self.assertTrue(self.agree(good_document()))
        results.check(good_document())

    def test_every_place_with_every_type(self):
        document = small_document()
        self.assertTrue(self.agree(document))
        wrong = right = 0
        for path in list(places(document)):
            if not path:
                continue
            for value in (None, True, 0, -1, 1.5, 1.0, "", [], {"a": None}):
                broken = copy.deepcopy(document)
                at(broken, path[:-1])[path[-1]] = value
                if self.agree(broken):
                    right += 1
                else:
                    wrong += 1
        self.assertGreater(wrong, 500)
        self.assertGreater(right, 100)

    def test_every_key_missing(self):
        document = small_document()
        self.assertTrue(self.agree(document))
        wrong = 0
        for path in list(places(document)):
            if path and isinstance(path[-1], str):
                broken = copy.deepcopy(document)
                del at(broken, path[:-1])[path[-1]]
                wrong += not self.agree(broken)
        self.assertGreater(wrong, 60)

    def test_random_damage(self):
        rng = random.Random(SEED)
        document = small_document()
        every = [path for path in places(document) if path]
        for _ in range(200):
            broken = copy.deepcopy(document)
            for path in rng.sample(every, 3):
                with contextlib.suppress(KeyError, IndexError, TypeError):
                    spot = at(broken, path[:-1])
                    spot[path[-1]] = rng.choice([copy.deepcopy(at(document, rng.choice(every))), None, "", 7, -0.0])
            self.agree(broken)

    def test_no_document(self):
        for document in (None, [], [1, 2], {}, {"context": {}}, "text", 1, True):
            self.assertFalse(self.agree(document))

    def test_messages(self):
        def message(change):
            document = good_document()
            change(document)
            with self.assertRaises(results.Invalid) as caught:
                results.check(document, "f.json")
            return str(caught.exception)

        def put(*path, value):
            return lambda document: at(document, path[:-1]).__setitem__(path[-1], value)

        ours = ("context", "skbench")
        for change, text in (
                (put("benchmarks", 3, "real_time", value="10"),
                 'f.json: benchmarks[3].real_time: expected number, is string "10"'),
                (put("benchmarks", 0, "real_time", value=True),
                 "f.json: benchmarks[0].real_time: expected number, is boolean true"),
                (put("benchmarks", 0, "real_time", value=None),
                 "f.json: benchmarks[0].real_time: expected number, is null null"),
                (put("benchmarks", 0, "real_time", value=-0.001),
                 "f.json: benchmarks[0].real_time: expected more than 0, is -0.001"),
                (put("benchmarks", 0, "iterations", value=1.5),
                 "f.json: benchmarks[0].iterations: expected integer, is number 1.5"),
                (put("benchmarks", 0, "time_unit", value="min"),
                 'f.json: benchmarks[0].time_unit: expected "ns", is "min"'),
                (put("benchmarks", value={}), "f.json: benchmarks: expected array, is object {}"),
                (lambda d: d["benchmarks"][1].pop("name"), "f.json: benchmarks[1]: 'name' is missing, expected string"),
                (put("benchmarks", 0, "skb", "wall", "p33", value=math.inf),
                 "f.json: benchmarks[0].skb.wall.p33: expected a finite number, is inf"),
                (put(*ours, "experiments", 0, "verdict", value="same"),
                 'f.json: context.skbench.experiments[0].verdict: expected one of "regression"'),
                (put(*ours, "schema", value="2.0"), "f.json: schema version 2.0, this skbench reads 1.x"),
                (put(*ours, "schema", value=1), "f.json: context.skbench.schema: expected string, is integer 1"),
                (put("context", "json_schema_version", value=2),
                 "f.json: context.json_schema_version: expected 1, is 2"),
                (put("context", "json_schema_version", value=True),
                 "f.json: context.json_schema_version: expected 1, is true")):
            self.assertTrue(message(change).startswith(text), (message(change), text))

    def test_tolerance(self):
        document = good_document()
        document["future"] = document["context"]["future"] = document["benchmarks"][0]["future"] = [1]
        document["context"]["skbench"]["schema"] = "1.9"
        document["benchmarks"][0]["iterations"] = 1e9
        self.assertTrue(self.agree(document))
        results.check(document)
        document["benchmarks"][0]["iterations"] = 2 ** 64 - 1
        self.assertTrue(self.agree(document))

    def test_unknown_keyword_is_refused(self):
        with self.assertRaisesRegex(ValueError, "multipleOf"):
            list(results.violations(1, {"multipleOf": 2}))


class Writer(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.path = pathlib.Path(self.temporary.name)

    def left(self):
        return sorted(entry.name for entry in self.path.iterdir())

    def test_round_trip(self):
        target = self.path / "deep" / "er" / "r.json"
        results.write(target, good_document())
        self.assertEqual(results.read(target), good_document())
        self.assertEqual([entry.name for entry in target.parent.iterdir()], ["r.json"])
        umask = os.umask(0)
        os.umask(umask)
        self.assertEqual(target.stat().st_mode & 0o777, 0o666 & ~umask)

    def test_never_overwrites(self):
        target = self.path / "r.json"
        target.write_text("mine")
        with self.assertRaisesRegex(UserError, "never overwritten"):
            files.refuse_existing(target)
        with self.assertRaisesRegex(UserError, "never overwritten") as caught:
            results.write(target, good_document())
        self.assertEqual(caught.exception.status, 2)
        self.assertEqual(target.read_text(), "mine")
        self.assertEqual(self.left(), ["r.json"])
        (self.path / "dangling").symlink_to("nowhere")
        with self.assertRaisesRegex(UserError, "never overwritten"):
            files.refuse_existing(self.path / "dangling")
        with self.assertRaisesRegex(UserError, "never overwritten"):
            files.refuse_existing("/dev/full")

    def test_no_hard_links(self):
        refusal = OSError(errno.EPERM, "Operation not permitted")
        target = self.path / "r.json"
        with mock.patch("os.link", side_effect=refusal):
            results.write(target, good_document())
            self.assertEqual(results.read(target), good_document())
            with self.assertRaisesRegex(UserError, "never overwritten"):
                results.write(target, good_document())
        self.assertEqual(self.left(), ["r.json"])
        with mock.patch("os.link", side_effect=refusal), \
                mock.patch("os.rename", side_effect=OSError(errno.EIO, "Input/output error")):
            with self.assertRaisesRegex(UserError, "Input/output error"):
                results.write(self.path / "s.json", good_document())
        self.assertEqual(self.left(), ["r.json"])

    def test_disk_full_injected(self):
        for name in ("os.fsync", "tempfile.mkstemp", "os.link"):
            with mock.patch(name, side_effect=OSError(errno.ENOSPC, "No space left on device")):
                with self.assertRaisesRegex(UserError, r"^cannot write .*r\.json: the disk is full$") as caught:
                    results.write(self.path / "r.json", good_document())
            self.assertEqual(caught.exception.status, 2)
            self.assertEqual(self.left(), [], name)

    def test_a_replaced_file_keeps_the_old_text_or_has_the_new(self):
        target = self.path / "deep" / "r.csv"
        files.write_text(target, "one \u00b5s\n")
        files.write_text(target, "two \u00b5s\n")
        self.assertEqual(target.read_text(encoding="utf-8"), "two \u00b5s\n")
        for name in ("os.fsync", "tempfile.mkstemp", "os.replace"):
            with mock.patch(name, side_effect=OSError(errno.ENOSPC, "No space left on device")):
                with self.assertRaisesRegex(UserError, r"^cannot write .*r\.csv: the disk is full$"):
                    files.write_text(target, "three")
            self.assertEqual(target.read_text(encoding="utf-8"), "two \u00b5s\n", name)
        self.assertEqual([entry.name for entry in target.parent.iterdir()], ["r.csv"])

    def test_disk_full_for_real(self):
        mount = self.path / "tiny"
        mount.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(mount)], capture_output=True)
        if done.returncode != 0:
            self.skipTest(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
        try:
            with self.assertRaisesRegex(UserError, "the disk is full$"):
                results.write(mount / "r.json", good_document())
            self.assertEqual(list(mount.iterdir()), [])
        finally:
            subprocess.run(["umount", str(mount)], check=True)

    def test_no_directory_and_no_permission(self):
        with self.assertRaisesRegex(UserError, "there is no directory"):
            files.refuse_existing(self.path / "none" / "r.json")
        (self.path / "file").write_text("")
        with self.assertRaisesRegex(UserError, "cannot make .*file: File exists"):
            results.write(self.path / "file" / "r.json", good_document())

    def test_broken_document_is_never_written(self):
        document = good_document()
        document["benchmarks"][0]["real_time"] = math.nan
        with self.assertRaises(results.Invalid):
            results.write(self.path / "r.json", document)
        self.assertEqual(self.left(), [])

    def test_default_path(self):
        import datetime

        now = datetime.datetime(2026, 11, 30, 10, 15, 0, tzinfo=datetime.timezone.utc)
        first = results.default_path("0123abcd", "abc1234def", now, self.path)
        self.assertEqual(first, self.path / "out" / "0123abcd" / "20261130T101500Z-abc1234.json")
        results.write(first, good_document())
        second = results.default_path("0123abcd", "abc1234def", now, self.path)
        self.assertEqual(second.name, "20261130T101500Z-abc1234-2.json")

    def test_same_bytes_under_every_locale(self):
        text = results.text_of(good_document())
        tried = 0
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "hi_IN.UTF-8", "C.UTF-8", "C"):
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, name)
                tried += 1
                self.assertEqual(results.text_of(good_document()), text)
        locale.setlocale(locale.LC_ALL, "C")
        self.assertGreaterEqual(tried, 2)
        text.encode("ascii")


class CompareTool(unittest.TestCase):
    """Debian's compare.py, of package libbenchmark-tools, reads our files."""

    @classmethod
    def setUpClass(cls):
        if not COMPARE.exists():
            raise unittest.SkipTest(f"{COMPARE} is not there: apt-get install libbenchmark-tools python3-scipy")
        cls.temporary = tempfile.TemporaryDirectory()
        cls.file = pathlib.Path(cls.temporary.name) / "r.json"
        cls.file.write_bytes(good_bytes())

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def compare(self, *args):
        done = subprocess.run([support.PYTHON, str(COMPARE), "--no-color", *map(str, args)], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_benchmarks(self):
        out = self.compare("benchmarks", self.file, self.file)
        names = {row["name"] for row in good_document()["benchmarks"]}
        for name in names:
            rows = [line for line in out.splitlines() if line.startswith(name + " ")]
            self.assertEqual(len(rows), sum(row["name"] == name for row in good_document()["benchmarks"]))
            self.assertTrue(all("+0.0000" in line for line in rows))
        self.assertIn("U Test, Repetitions: ", out)

    def test_filters(self):
        # Its filters are regular expressions for the whole of a name's part that is then replaced.
        out = self.compare("filters", self.file, "variant:eager", "variant:offset_ack")
        found = re.search(r"\[variant:eager vs\. variant:offset_ack\]\S*_pvalue", out)
        self.assertIsNotNone(found, out)


if __name__ == "__main__":
    print(f"test_results: seed {SEED}", file=sys.stderr)
    unittest.main()
