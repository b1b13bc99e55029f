# SPDX-License-Identifier: MIT
"""One side of a comparison: what one result file, or all of a directory, says about its cases.

Instruction counts alone are a side, too: results/instructions, one of its CSV files, or what `instructions --json` wrote.

Times are in ns an operation, one value a sample. A sample is a process in a file of ours, a repetition in one of
Google Benchmark (see foreign.py).
"""

import contextlib
import math
import os
from pathlib import Path

from . import duet, fingerprint, foreign, icounts, results, rows, stats, tree
from .errors import UserError

OK, FAILED, SKIPPED, UNMEASURED, NO_TIME = "ok", "failed", "skipped", "unmeasured", "no time"
SESSIONS = 6  # files a side from which on a session, not a process, is the sample


class Case:
    """What a side says about one case.

    values       ns an operation, one for each sample
    status       OK, or why there is no value
    notes        sentences about samples that were left out
    aggregates   {"mean", "median", "stddev", "cv"} in ns (cv a fraction), where a file has nothing else
    summary      {"median", "lo", "hi", "n"} where a stored baseline kept no values
    plan         {"n", "batches", "cpus"}, None where the file does not tell
    """

    def __init__(self, name):
        self.name = name
        self.values = []
        self.status, self.reason = OK, None
        self.notes = []
        self.aggregates = {}
        self.summary = None
        self.threads = 1
        self.plan = None
        self.failed = 0
        self.sessions = 1

    def describe(self):
        """{"median", "lo", "hi", "n", "stddev_percent", "all_equal"}; None without a value."""
        if not self.values:
            if self.summary:
                return {**self.summary, "stddev_percent": None, "all_equal": False}
            centre = self.aggregates.get("median", self.aggregates.get("mean"))
            if centre is None:
                return None
            spread = self.aggregates.get("cv")
            return {"median": centre, "lo": None, "hi": None, "n": None, "all_equal": False,
                    "stddev_percent": None if spread is None else spread * 100}
        found = duet.summary(self.values)
        found["all_equal"] = len(self.values) > 1 and min(self.values) == max(self.values)
        mean = math.fsum(self.values) / len(self.values)
        found["stddev_percent"] = None
        if len(self.values) > 1 and mean:
            variance = math.fsum((value - mean) ** 2 for value in self.values) / (len(self.values) - 1)
            found["stddev_percent"] = math.sqrt(variance) / mean * 100
        return found


class Ratio:
    """A headline comparison as one file has it: ln(variant / baseline) of each pair, or only its interval."""

    def __init__(self, key, logs, median, lo, hi, better):
        self.key, self.logs, self.better = key, logs, better
        self.median, self.lo, self.hi = median, lo, hi


class Side:
    """See the head of this file. fingerprint is None for a file of Google Benchmark, whose context then says what it can."""

    def __init__(self, label):
        self.label = label
        self.files = []
        self.commit, self.dirty, self.date = None, None, None
        self.fingerprint = None
        self.context = None
        self.time_rule = None  # foreign: which meaning real_time has with threads
        self.cases = {}
        self.ratios = {}
        self.ledger = {}
        self.counted = {}   # {name: icounts.Set} of instructions
        self.counters = {}  # {case: what run --counters counted}
        self.notes = []
        self.lacks = []     # what the files do not tell
        self.rejected = []  # rows that were left out, a sentence each
        self.control_failed = None
        self.busy = None    # why its times cannot be trusted

    def counts_only(self):
        """True for instruction counts alone."""
        return bool(self.counted) and self.context is None

    def foreign(self):
        return self.fingerprint is None

    def short(self):
        """The revision as a heading: 7 digits and + for a changed tree, or the label."""
        if self.commit in (None, "unknown"):
            return Path(self.label).name
        return self.commit[:results.COMMIT_DIGITS] + ("+" if self.dirty else "")

    def untrusted(self):
        """Phrases that say why its times mean little; none if they may be judged."""
        found = [self.busy] if self.busy else []
        return found + ([f"the A/A control failed ({self.control_failed})"] if self.control_failed else [])

    def about(self):
        """What a report says of it."""
        return {"label": self.label, "files": self.files, "commit": self.commit, "dirty": self.dirty,
                "date": self.date, "fp8": self.fingerprint["fp8"] if self.fingerprint else None,
                "cases": None if self.counts_only() else len(self.cases), "untrusted": self.untrusted(), "lacks": self.lacks,
                "rejected": self.rejected, "notes": self.notes}


def load(target):
    """The Side in the file or directory TARGET. Raises UserError."""
    path = Path(target)
    if not path.exists():
        raise UserError(f"{target}: No such file or directory")
    counted = icounts.stored(path)
    if counted is not None:
        return counts_side(counted, str(target))
    if not path.is_dir():
        return load_file(path)
    names = sorted(entry for entry in path.glob("*.json") if entry.is_file() and not entry.name.startswith("."))
    if not names:
        raise UserError(f"{target}: no result file (*.json) in this directory")
    loaded = [load_file(name) for name in names]
    return loaded[0] if len(loaded) == 1 else merge(str(target), loaded)


def counts_side(counted, label):
    side = Side(label)
    side.files, side.counted = [label], counted
    return side


def load_file(path):
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size >= rows.LARGE:
                with results.no_collection(), contextlib.suppress(rows.Unlike, results.Invalid):
                    return native(rows.document(file), str(path))
                # Whatever is unusual about it is told below.
                file.seek(0)
            data = file.read()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    ours = parse_ours(data, path)
    if foreign.is_ours(ours):
        results.check(ours, path, finite=True)
        return native(ours, str(path))
    document = foreign.parse(data, path)
    if foreign.is_ours(document) or is_counts(document):
        document = results.parse(data, path)  # which says why it is none of ours
        side = counts_side(icounts.of_object(document, path), str(path))
        if isinstance(document.get("revision"), str):
            side.commit, side.dirty = document["revision"], document.get("dirty") is True
        return side
    side = Side(str(path))
    side.files = [str(path)]
    foreign.fill(side, document, path, Case)
    return side


def is_counts(document):
    """True for what `skbench instructions --json` writes."""
    return isinstance(document, dict) and document.get("command") == "instructions"


def parse_ours(data, path):
    """The document in DATA if it may be one of ours and is strict JSON, else None: most are, and are read but once."""
    if b'"skbench"' not in data:
        return None
    try:
        return results.parse(data, path)
    except results.Invalid:
        return None


def plausible(value, where, least=results.LEAST_NS, most=results.MOST_NS):
    """VALUE, if it is None or a time in ns that an operation can take; raises Invalid else."""
    if value is not None and not least <= value <= most:
        raise results.Invalid(f"{where}: expected {least:g} to {most:g}, is {value:g}"
                              if abs(value) < 1e300 else f"{where}: expected {least:g} to {most:g}")
    return value


def native(document, label):
    """The Side of a checked result of ours, a stored baseline too."""
    ours = document["context"]["skbench"]
    side = Side(label)
    side.files = [label]
    side.fingerprint = ours["fingerprint"]
    side.context = document["context"]
    side.commit, side.dirty = ours["revision"]["commit"], ours["revision"]["dirty"]
    side.date = document["context"]["date"]
    if ours["partial"]:
        side.notes.append(f"partial: {ours['partial_reason'] or 'no reason given'}")
    control = ours["control"]
    if control is not None and not control["held"]:
        side.control_failed = control["reason"] or "the A/A control failed"
    side.busy = busy(side.fingerprint["condition"])
    plans = {entry["cell"]: entry for entry in ours["plan"]["cases"]}
    pairs = {}
    last = None
    for row in document["benchmarks"]:
        name, skb = row["name"], row["skb"]
        value = skb["value"]
        if skb["inject"]:
            side.notes.append(f"{name}: extra work was injected, left out")
            continue
        if skb["side"] in ("control_a", "control_b"):
            continue
        if last is None or last.name != name:
            last = side.cases.get(name)
            if last is None:
                last = side.cases[name] = Case(name)
        if not results.LEAST_NS <= value <= results.MOST_NS:
            plausible(value, f"{label}: the value of {name}")
        last.values.append(value)
        last.threads = max(last.threads, row["threads"])
        last.plan = skb
        if skb["side"] in ("baseline", "variant"):
            pairs.setdefault(skb["cell"], {}).setdefault(skb["pair"], {})[skb["side"]] = value
    for case in side.cases.values():
        case.plan = {key: case.plan.get(key) for key in ("n", "batches", "cpus")}
    for entry in ours["cases"]:
        case = side.cases.setdefault(entry["case"], Case(entry["case"]))
        if not case.values:
            where = f"{label}: the values of {entry['case']}"
            case.values = [plausible(value, where) for value in entry.get("values") or []]
            case.summary = entry["value"]
            for key in ("median", "lo", "hi") if case.summary else ():
                plausible(case.summary[key], where)
            case.threads = entry.get("threads", 1)
            case.plan = entry.get("plan") or plans.get(entry["case"])
        if entry["status"] != "ok" or (not case.values and case.summary is None):
            case.status, case.reason = UNMEASURED, entry["reason"] or "the run ended before it"
    for entry in ours["experiments"]:
        key = f"{entry['case']}: {entry['variant']} over {entry['baseline']}"
        if entry["ratio"] is None:
            for name in entry["cases"].values():
                if name not in side.cases:
                    case = side.cases[name] = Case(name)
                    case.status, case.reason = UNMEASURED, entry["reason"] or "the run ended before it"
            continue
        logs = [math.log(pair["variant"] / pair["baseline"]) for pair in pairs.get(entry["case"], {}).values()
                if len(pair) == 2]
        for name in ("ratio", "lo", "hi"):
            plausible(entry[name], f"{label}: {name} of {key}", 1e-9, 1e9)
        # With several variants of one cell the rows cannot be told apart by cell alone: then the interval has to do.
        if len(logs) != entry["pairs"]:
            logs = []
        side.ratios[key] = Ratio(key, logs, entry["ratio"], entry["lo"], entry["hi"], entry["better"])
    side.ledger = {entry["case"]: entry["rows"] for entry in ours["ledger"]}
    side.counters = {entry["case"]: entry for entry in ours.get("counters") or ()}
    if ours.get("instructions"):
        side.counted = icounts.of_object(ours["instructions"], f"{label}: context.skbench.instructions")
    return side


def busy(condition):
    """A phrase if others had so much of the machine that its absolute times mean little, or None."""
    if fingerprint.quiet(condition) is not False:
        return None
    if condition["other_cpu_share"] > fingerprint.QUIET_OTHER_CPU_SHARE:
        return f"others used {condition['other_cpu_share'] * 100:.0f} % of the CPUs"
    return f"{condition['steal_share'] * 100:.1f} % of the CPUs' time was stolen"


def merge(label, loaded):
    """One Side from several files, which must be of one machine and one build."""
    first = loaded[0]
    side = Side(label)
    if len({one.counts_only() for one in loaded}) > 1:
        raise UserError(f"{label}: results and instruction counts in one directory: compare them apart")
    for other in loaded[1:]:
        fields = identity_differences(first, other)
        if other.time_rule != first.time_rule:
            fields.append("the meaning of real_time (library_version)")
        if fields:
            raise UserError(f"{label}: {first.label} and {other.label} are not of one machine and build: they differ in "
                            f"{', '.join(fields)}")
    side.fingerprint, side.context, side.time_rule = first.fingerprint, first.context, first.time_rule
    side.commit, side.dirty, side.date = first.commit, first.dirty, max((one.date or "") for one in loaded) or None
    commits = {one.commit for one in loaded}
    if len(commits) > 1:
        side.commit = None
        side.notes.append(f"{len(commits)} revisions in one directory, taken as one side")
    medians = {}
    for one in loaded:
        side.files += one.files
        side.notes += [f"{Path(one.label).name}: {note}" for note in one.notes]
        side.rejected += one.rejected
        side.lacks += [lack for lack in one.lacks if lack not in side.lacks]
        side.control_failed = side.control_failed or one.control_failed
        side.busy = side.busy or one.busy
        side.counters = {**one.counters, **side.counters}
        for name, case in one.cases.items():
            mine = side.cases.setdefault(name, Case(name))
            mine.values += case.values
            mine.notes += case.notes
            mine.failed += case.failed
            mine.threads, mine.plan = max(mine.threads, case.threads), mine.plan or case.plan
            mine.aggregates, mine.summary = mine.aggregates or case.aggregates, mine.summary or case.summary
            if case.values:
                medians.setdefault(name, []).append(stats.median(case.values))
            if case.status != OK:
                mine.status, mine.reason = case.status, case.reason
        for key, ratio in one.ratios.items():
            mine = side.ratios.get(key)
            if mine is None:
                side.ratios[key] = ratio
            else:
                side.ratios[key] = Ratio(key, mine.logs + ratio.logs if mine.logs and ratio.logs else [], mine.median,
                                         mine.lo, mine.hi, mine.better)
        for name, counted in one.counted.items():
            mine = side.counted.setdefault(name, counted)
            if mine.made_with != counted.made_with or \
                    any(mine.counts.get(case, count) != count for case, count in counted.counts.items()):
                raise UserError(f"{label}: the instructions of {name} differ between its files: they are not of one "
                                "revision")
            mine.counts.update(counted.counts)
        for name, rows in one.ledger.items():
            if side.ledger.setdefault(name, rows) != rows:
                raise UserError(f"{label}: the ledger of {name} differs between its files: they are not of one revision")
    for name, case in side.cases.items():
        if case.values:
            case.status, case.reason = OK, None
        if len(medians.get(name, ())) >= SESSIONS:
            case.values, case.sessions = medians[name], len(medians[name])
    for ratio in side.ratios.values():
        if ratio.logs:
            interval = stats.sign_interval(ratio.logs)
            ratio.median = math.exp(stats.median(ratio.logs))
            ratio.lo, ratio.hi = (math.exp(end) for end in interval) if interval else (None, None)
    return side


def identity_differences(base, new):
    """Fields in which two sides are of different machines or builds."""
    if base.foreign() != new.foreign():
        return ["kind of file (skbench against Google Benchmark)"]
    if base.foreign():
        return foreign.identity_differences(base.context, new.context)
    return fingerprint.differences(base.fingerprint, new.fingerprint)


def read_aliases(path=None):
    """{old name: new name} of the list of renamed cases, one `OLD NEW` a line; chains end at the newest name."""
    path = Path(path or tree.repo_root() / "results" / "aliases.txt")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] == words[1]:
            raise UserError(f"{path}:{number}: the old and the new name of a case are needed, with a blank between")
        if words[0] in found:
            raise UserError(f"{path}:{number}: {words[0]} was renamed already")
        found[words[0]] = words[1]
    for old in found:
        name, steps = old, 0
        while name in found:
            name, steps = found[name], steps + 1
            if steps > len(found):
                raise UserError(f"{path}: {old} is renamed in a circle")
        found[old] = name
    return found


def rename(side, names, aliases):
    """Gives the cases of SIDE the newest names that another side (NAMES) uses. Returns {new name: old name}."""
    renamed = {}
    for old, new in aliases.items():
        if new in names and new not in side.cases and old in side.cases:
            side.cases[new] = side.cases.pop(old)
            renamed[new] = old
        if old in side.ledger and new not in side.ledger and new in names:
            side.ledger[new] = side.ledger.pop(old)
    return renamed
