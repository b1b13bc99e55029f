# SPDX-License-Identifier: MIT
"""Result files of Google Benchmark, versions 1.5 to 1.9, as its library or a program like it wrote them.

They are read for what they hold, and what they lack is said: no fingerprint, and repetitions inside one process, which
agree with each other more than with the next process. A row that is no row is an error that names file, entry and
field. A row that says that it failed, or holds no finite time, is counted and left out.
"""

import math
import re

from . import results
from .results import Invalid, type_name

NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
SCHEMA_READ = 1
MOST_ITERATIONS = (1 << 64) - 1
AGGREGATES = ("mean", "median", "stddev", "cv")
MHZ_TOLERANCE = 0.05  # the clock is measured when a run begins
OLD_RULE, NEW_RULE = "before 1.9", "1.9"  # with threads:N, real_time was divided by N before 1.9


class Object(dict):
    """A JSON object that remembers a key that stood in it twice."""

    doubled = None


def _pairs(pairs):
    found = Object(pairs)
    if len(found) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                found.doubled = key
            seen.add(key)
    return found


def parse(data, source):
    """As results.parse(), but what is not finite becomes an infinite or undefined float instead of an error, and a
    double key is left for whoever reads that object."""
    return results.parse(data, source, pairs_hook=_pairs, constant=float, number=float)


def is_ours(document):
    return isinstance(document, dict) and isinstance(document.get("context"), dict) and \
        "skbench" in document["context"]


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Reader:
    """Reads one document into a Side. CASE makes its cases."""

    def __init__(self, side, document, source, case):
        self.side, self.source, self.make = side, source, case
        self.document = document

    def fail(self, index, field, expected, value=None, missing=False):
        is_ = "missing" if missing else f"{type_name(value)} {results._shown(value)}" if _finite_or_other(value) \
            else str(value)
        raise Invalid(f"{self.source}: benchmarks[{index}]: '{field}': expected {expected}, is {is_}")

    def read(self):
        document, side = self.document, self.side
        if not isinstance(document, dict):
            raise Invalid(f"{self.source}: expected an object with 'benchmarks', is {type_name(document)}")
        if document.doubled:
            raise Invalid(f"{self.source}: key '{document.doubled}' stands twice")
        if "benchmarks" not in document:
            raise Invalid(f"{self.source}: 'benchmarks' is missing, expected array")
        rows = document["benchmarks"]
        if not isinstance(rows, list):
            raise Invalid(f"{self.source}: 'benchmarks': expected array, is {type_name(rows)}")
        side.context = self.context(document.get("context"))
        names = {row["name"] for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)}
        for index, row in enumerate(rows):
            if not isinstance(row, dict):
                raise Invalid(f"{self.source}: benchmarks[{index}]: expected object, is {type_name(row)}")
            if row.doubled:
                raise Invalid(f"{self.source}: benchmarks[{index}]: key '{row.doubled}' stands twice")
            self.row(index, row, names)
        self.finish()

    def context(self, context):
        if context is None:
            context = Object()
        if not isinstance(context, dict):
            raise Invalid(f"{self.source}: 'context': expected object, is {type_name(context)}")
        if context.doubled:
            raise Invalid(f"{self.source}: context: key '{context.doubled}' stands twice")
        version = context.get("json_schema_version")
        if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise Invalid(f"{self.source}: context: 'json_schema_version': expected integer, is {type_name(version)} "
                          f"{results._shown(version)}")
        if version not in (None, SCHEMA_READ):
            raise Invalid(f"{self.source}: json_schema_version {version}, this skbench reads {SCHEMA_READ}")
        self.side.date = context.get("date") if isinstance(context.get("date"), str) else None
        self.side.time_rule = time_rule(context.get("library_version"))
        return context

    def row(self, index, row, names):
        name = row.get("name")
        if not isinstance(name, str) or not name:
            self.fail(index, "name", "a string that is not empty", name, "name" not in row)
        run_type = row.get("run_type")
        kind, stem = None, name
        if run_type == "aggregate" or run_type is None:
            kind, stem = self.aggregate(row, name, names, run_type)
        elif run_type != "iteration":
            self.fail(index, "run_type", "iteration or aggregate", run_type)
        key = stem if kind else name
        if row.get("error_occurred") is True or row.get("skipped") is True:
            return self.not_run(row, key)
        real = "real_time" in row
        if not real and "cpu_time" not in row:
            self.side.rejected.append(f"{name}: not comparable: no time")
            return None
        if not real:
            self.fail(index, "real_time", "a number", missing=True)
        value, unit = row["real_time"], row.get("time_unit")
        if not _number(value):
            self.fail(index, "real_time", "a number", value)
        if kind == "cv" or unit == "percentage":
            scale = 1.0  # a fraction in either case
        else:
            if not isinstance(unit, str) or unit not in NS:
                self.fail(index, "time_unit", f"one of {', '.join(NS)} for {name}", unit, "time_unit" not in row)
            scale = NS[unit]
        if not math.isfinite(value):
            self.side.rejected.append(f"{name}: non-finite real_time")
            return self.case(key)
        if kind in (None, "mean", "median") and value * scale > results.MOST_NS:
            self.side.rejected.append(f"{name}: no time that anything takes: real_time {value:g} {unit}")
            return self.case(key)
        if value < 0:
            self.fail(index, "real_time", "a number that is not negative", value)
        if kind:
            self.case(stem).aggregates[kind] = value * scale
            return None
        problem = self.iterations(row)
        if problem:
            self.side.rejected.append(f"{name}: {problem}")
            return self.case(key)
        case = self.case(key)
        case.values.append(value * scale + 0.0)
        threads = row.get("threads")
        if isinstance(threads, int) and not isinstance(threads, bool):
            case.threads = max(case.threads, threads)
        named = re.search(r"/threads:(\d+)(?:/|$)", key)
        if named:
            case.threads = max(case.threads, int(named.group(1)))
        return None

    def case(self, name):
        return self.side.cases.setdefault(name, self.make(name))

    @staticmethod
    def aggregate(row, name, names, run_type):
        """(which aggregate, name of the case) of a row, or (None, NAME)."""
        kind = row.get("aggregate_name")
        suffix = name.rsplit("_", 1)[-1] if "_" in name else ""
        if run_type is None and kind is None:
            # Before 1.5 rows did not say what they are. A name alone may end in anything: all three must be there.
            stem = name[:-len(suffix) - 1]
            if suffix not in AGGREGATES or not {f"{stem}_{word}" for word in AGGREGATES[:3]} <= names:
                return None, name
            return suffix, stem
        if kind is None:
            kind = suffix
        stem = row.get("run_name")
        if not isinstance(stem, str) or not stem:
            stem = name[:-len(kind) - 1] if name.endswith(f"_{kind}") else name
        return str(kind), stem

    def not_run(self, row, key):
        failed = row.get("error_occurred") is True
        text = row.get("error_message") if failed else row.get("skip_message")
        case = self.case(key)
        index = row.get("repetition_index")
        where = f"repetition {index} " if isinstance(index, int) else ""
        case.notes.append(f"{where}{'failed' if failed else 'skipped'}{f': {text}' if text else ''}")
        case.failed += 1
        if case.status in ("ok", "skipped"):
            case.status = "failed" if failed else "skipped"
        if "real_time" not in row:
            self.side.rejected.append(f"{key}: not comparable: no time")

    @staticmethod
    def iterations(row):
        """What is wrong with the row's iterations, or None. Whole numbers only, kept exactly; 1e9 is one."""
        value = row.get("iterations")
        if value is None:
            return None
        if not _number(value) or (isinstance(value, float) and not value.is_integer()):
            return f"iterations: expected an integer, is {results._shown(value) if _finite_or_other(value) else value}"
        if not 0 <= int(value) <= MOST_ITERATIONS:
            return f"iterations: expected 0 to {MOST_ITERATIONS}, is {int(value)}"
        return None

    def finish(self):
        side = self.side
        for case in side.cases.values():
            if case.values:
                case.status = "ok"
            elif case.status in ("failed", "skipped"):
                case.reason = f"no data: {case.failed} of {case.failed} repetitions {case.status}"
            elif not set(case.aggregates) & {"mean", "median"}:
                case.status, case.reason = "no time", "no row with a finite time"
        side.lacks += ["no fingerprint: CPU model, compiler, flags and placement are unknown",
                       "no op ledger",
                       "repetitions are no processes: they agree with each other more than with the next run"]
        if side.context.get("library_build_type") == "debug":
            side.notes.append("the library was built as debug (Debian's package always is); its loop is in the header")


def _finite_or_other(value):
    return not isinstance(value, float) or math.isfinite(value)


def time_rule(version):
    """What real_time means with threads in a library of this VERSION ("v1.8.4", None before 1.8.4)."""
    if not isinstance(version, str):
        return OLD_RULE
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return NEW_RULE if found and (int(found.group(1)), int(found.group(2))) >= (1, 9) else OLD_RULE


def identity_differences(base, new):
    """Fields of two contexts that show different machines; what only one of them has shows nothing."""
    found = []
    for key in ("num_cpus", "caches", "library_build_type"):
        if key in base and key in new and base[key] != new[key]:
            found.append(key)
    one, other = base.get("mhz_per_cpu"), new.get("mhz_per_cpu")
    if _number(one) and _number(other) and abs(one - other) > MHZ_TOLERANCE * max(one, other):
        found.append("mhz_per_cpu")
    return found


def fill(side, document, source, case):
    """Reads DOCUMENT, which parse() gave, into SIDE; CASE(name) makes a case. Raises Invalid."""
    Reader(side, document, source, case).read()
