# SPDX-License-Identifier: MIT
"""`skbench history`: what happened to each case over all stored results.

The result files are the truth; out/history.db is an index of them that is brought up to date by each call and can be
removed at any time. A time series belongs to one machine and build. A ratio of two variants of one session survives a
move: its series goes over all machines, and what changed in the environment between two points is told.
"""

import datetime
import json
import sqlite3
from pathlib import Path

from . import changepoint, compare, compare_report, files, fingerprint, ledger, results, run, sides, table, tree
from .errors import INCONCLUSIVE, OK, UserError

SCHEMA = "skbench-history-1"
INDEX = "history.db"
INDEX_VERSION = 2
TIME, RATIO = "time", "ratio"
SHOWN_BROKEN = 3
EVERYWHERE = "all machines"

TABLES = """
CREATE TABLE runs (path TEXT PRIMARY KEY, mtime_ns INTEGER, size INTEGER, problem TEXT, fp8 TEXT, revision TEXT,
                   dirty INTEGER, date TEXT, busy TEXT, fingerprint TEXT);
CREATE TABLE points (path TEXT REFERENCES runs ON DELETE CASCADE, metric TEXT, name TEXT, median REAL, lo REAL, hi REAL,
                     n INTEGER, contended INTEGER, better TEXT);
CREATE INDEX points_by_name ON points (name);
"""


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "history", help="change points over all stored results",
        description="Finds the steps and drifts of each case over the results in DIR, with the revisions between which "
                    "they happened and what changed in the environment there.")
    parser.add_argument("dir", nargs="?", metavar="DIR", help="directory of result files (default: out)")
    parser.add_argument("--case", metavar="RE", help="only cases whose name matches this regular expression")
    parser.add_argument("--since", metavar="DATE", help="only results from this day on, as in 2026-01-31 (default: all)")
    parser.add_argument("--busy", action="store_true", help="take times that were measured while others used the CPUs")
    parser.add_argument("--all", action="store_true", help="list the series without a change, too")
    parser.add_argument("--json", metavar="FILE", help="one JSON object with every point to FILE; - for standard output")
    parser.set_defaults(func=main)


def main(args):
    pattern, since = run.expression(args.case, "--case"), day(args.since)
    directory = Path(args.dir) if args.dir else tree.repo_root() / "out"
    if not directory.is_dir():
        raise UserError(f"{directory}: there is no such directory" + ("" if args.dir else "; skbench run makes it"))
    index = Index(directory, ":memory:" if args.dir else directory / INDEX)
    try:
        report = examine(index, pattern, since, args.busy)
    finally:
        index.close()
    selection(report, args, directory)
    out = files.text_stream(args.json)
    out.write("\n".join(text(report, args.all)) + "\n")
    if args.json:
        files.write_json(args.json, report)
    return OK


def day(text_):
    if text_ is None:
        return None
    try:
        return datetime.date.fromisoformat(text_).isoformat()
    except ValueError:
        raise UserError(f"--since {text_}: a day as in 2026-01-31 is needed") from None


def selection(report, args, directory):
    """Raises UserError if nothing is left to look at, with the reason."""
    if report["points_chosen"]:
        return
    known, busy, newest = report["points_known"], report["points_busy"], report["newest"]
    if not report["runs"]:
        raise UserError(f"{directory}: there is no result file in it")
    if not known:
        raise UserError(f"no case matches --case {args.case}" if args.case else f"{directory}: its results hold no case")
    if busy and busy == report["points_in_window"]:
        raise UserError(f"0 of {known} points can be used: others used the CPUs while {busy} were measured; "
                        "--busy takes them all the same", INCONCLUSIVE)
    raise UserError(f"0 of {known} points in the window, newest is {newest[:10]}")


# --- the index ----------------------------------------------------------------------------------------------------

class Index:
    """The SQLite index of the result files below DIRECTORY, brought up to date when it is opened.

    An index of another version, or what is no index at all, is thrown away and made anew.
    """

    def __init__(self, directory, path):
        self.directory, self.path = Path(directory), path
        self.changed = 0  # files read anew
        try:
            self.db = self._open()
            self.refresh()
        except sqlite3.DatabaseError as error:
            if path == ":memory:" or isinstance(error, sqlite3.OperationalError):
                raise UserError(f"{path}: {error}") from None
            self.db.close()
            Path(path).unlink()
            self.db = self._open()
            self.refresh()

    def _open(self):
        self.db = sqlite3.connect(self.path, timeout=30)
        self.db.execute("PRAGMA foreign_keys = ON")
        version = self.db.execute("PRAGMA user_version").fetchone()[0]
        if version != INDEX_VERSION:
            for name in ("points", "runs"):
                self.db.execute(f"DROP TABLE IF EXISTS {name}")
            self.db.executescript(TABLES)
            self.db.execute(f"PRAGMA user_version = {INDEX_VERSION}")
        return self.db

    def close(self):
        self.db.close()

    def refresh(self):
        """Reads what is new or changed, forgets what is gone."""
        known = {path: (mtime, size) for path, mtime, size in self.db.execute("SELECT path, mtime_ns, size FROM runs")}
        with self.db:
            for path in sorted(self.directory.rglob("*.json")):
                name = path.relative_to(self.directory).as_posix()
                if any(part.startswith(".") for part in Path(name).parts) or not path.is_file():
                    continue
                stat = path.stat()
                if known.pop(name, None) == (stat.st_mtime_ns, stat.st_size):
                    continue
                self.changed += 1
                self.db.execute("DELETE FROM runs WHERE path = ?", (name,))
                self._add(name, path, stat)
            self.db.executemany("DELETE FROM runs WHERE path = ?", [(name,) for name in known])

    def _add(self, name, path, stat):
        row = {"problem": None, "fp8": None, "revision": None, "dirty": None, "date": None, "busy": None,
               "fingerprint": None}
        points = []
        try:
            side = sides.load_file(path)
            if side.foreign():
                row["problem"] = "not a result of skbench"
            else:
                row.update(fp8=side.fingerprint["fp8"], revision=side.commit, dirty=side.dirty, date=utc(side.date),
                           busy=side.busy, fingerprint=json.dumps(side.fingerprint))
                points = list(points_of(side))
        except UserError as error:
            row["problem"] = str(error)
            # Reports of tests lie in the same directory and are no broken results.
            if isinstance(error, results.Invalid) and "'benchmarks'" in str(error):
                row["problem"] = "not a result of skbench"
        self.db.execute("INSERT INTO runs VALUES (?,?,?,?,?,?,?,?,?,?)",
                        (name, stat.st_mtime_ns, stat.st_size, *row.values()))
        self.db.executemany("INSERT INTO points VALUES (?,?,?,?,?,?,?,?,?)", [(name, *point) for point in points])

    def runs(self):
        """[{path, problem, fp8, revision, dirty, date, busy, fingerprint}] by date."""
        columns = ("path", "problem", "fp8", "revision", "dirty", "date", "busy", "fingerprint")
        return [dict(zip(columns, row)) for row in
                self.db.execute(f"SELECT {', '.join(columns)} FROM runs ORDER BY date, path")]

    def names(self):
        """Every name that a point has."""
        return [name for name, in self.db.execute("SELECT DISTINCT name FROM points")]

    def points(self, names=None):
        """(path, metric, name, median, lo, hi, n, contended, better) by date, of NAMES alone if they are given."""
        self.db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (name TEXT PRIMARY KEY)")
        self.db.execute("DELETE FROM wanted")
        self.db.executemany("INSERT INTO wanted VALUES (?)", [(name,) for name in names or ()])
        chosen = "" if names is None else "WHERE name IN wanted "
        return self.db.execute(f"SELECT points.* FROM points JOIN runs USING (path) {chosen}"
                               "ORDER BY runs.date, path, points.rowid")


def utc(date):
    """A date of a result in UTC, so that its text sorts."""
    try:
        then = datetime.datetime.fromisoformat(date)
    except (TypeError, ValueError):
        raise results.Invalid(f"date {date}: not a date as in 2026-01-31T12:00:00+00:00") from None
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.timezone.utc)
    return then.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def points_of(side):
    """What a result contributes: (metric, name, median, lo, hi, n, contended, better)."""
    virtual = bool(side.fingerprint["identity"].get("virtual"))
    for case in side.cases.values():
        summary = case.describe() if case.status == sides.OK else None
        if summary and summary["median"] > 0:
            yield (TIME, case.name, summary["median"], summary["lo"], summary["hi"], summary["n"],
                   virtual and case.threads > 1, "lower")
    for ratio in side.ratios.values():
        yield RATIO, ratio.key, ratio.median, ratio.lo, ratio.hi, len(ratio.logs) or None, False, ratio.better


# --- looking at it ------------------------------------------------------------------------------------------------

def examine(index, pattern=None, since=None, busy=False):
    """The report over all series, a JSON object. Each series has its own points: a gap in one is none in another."""
    aliases = sides.read_aliases()
    runs = {entry["path"]: entry for entry in index.runs()}
    series, known, contended = {}, 0, set()
    in_window, left_busy, newest = 0, 0, None
    wanted = None if pattern is None else [name for name in index.names() if pattern.search(aliases.get(name, name))]
    for path, metric, name, median, lo, hi, n, unsafe, better in index.points(wanted):
        entry = runs[path]
        name = aliases.get(name, name)
        if unsafe:
            contended.add((entry["fp8"], name))
            continue
        known += 1
        newest = max(newest or "", entry["date"])
        if since and entry["date"] < since:
            continue
        in_window += 1
        if metric == TIME and entry["busy"] and not busy:
            left_busy += 1
            continue
        key = (metric, name, entry["fp8"] if metric == TIME else EVERYWHERE)
        series.setdefault(key, {"better": better, "points": []})["points"].append(
            {"path": path, "revision": entry["revision"], "dirty": bool(entry["dirty"]), "date": entry["date"],
             "fp8": entry["fp8"], "value": median, "lo": lo, "hi": hi, "n": n})
    good = [entry for entry in runs.values() if entry["problem"] is None]
    return {
        "schema": SCHEMA, "directory": str(index.directory), "runs": len(good), "margin": compare.stats.MARGIN,
        "p": changepoint.P_VALUE, "fewest_points": changepoint.FEWEST, "since": since,
        "points_known": known, "points_in_window": in_window, "points_busy": left_busy, "newest": newest,
        "points_chosen": sum(len(entry["points"]) for entry in series.values()), "contended_series": len(contended),
        "unreadable": {path: entry["problem"] for path, entry in runs.items()
                       if entry["problem"] not in (None, "not a result of skbench")},
        "series": [judge(key, entry, runs) for key, entry in sorted(series.items())]}


def judge(key, entry, runs):
    """One series with its changes."""
    metric, name, where = key
    points, values = entry["points"], [point["value"] for point in entry["points"]]
    margin = compare.stats.MARGIN if metric == TIME else compare.stats.HEADLINE_MARGIN
    changes = []
    for change in changepoint.changes(values, margin):
        worse = (change.ratio > 1) == (entry["better"] == "lower")
        between = points[change.before:change.after + 1]
        changes.append({
            "kind": change.kind, "direction": "worse" if worse else "better", "old": change.old, "new": change.new,
            "ratio": change.ratio, "lo": change.lo, "hi": change.hi, "p": change.p,
            "points_before": change.count_before, "points_after": change.count_after,
            "last_before": between[0], "first_after": between[-1],
            "environment": environment([runs[point["path"]] for point in between])})
    return {"metric": metric, "case": name, "machine": where, "better": entry["better"], "margin": margin,
            "points": points, "changes": changes, "pending": changepoint.pending(values, margin)}


def environment(runs):
    """["kernel: 6.1 to 6.2"]: what differs between any two successive runs of a range, in order."""
    found = []
    for before, after in zip(runs, runs[1:]):
        one, other = json.loads(before["fingerprint"]), json.loads(after["fingerprint"])
        for ring in ("identity", "condition"):
            for field in fingerprint.differences(one, other, ring):
                if field.split(".")[0] in compare.UNSTEADY:
                    continue
                values = [compare_report.value_text(compare._value_of(part[ring], field)) for part in (one, other)]
                text_ = f"{field}: {values[0]} to {values[1]}"
                if text_ not in found:
                    found.append(text_)
    return found


# --- printing -----------------------------------------------------------------------------------------------------

def revision(point):
    return f"{point['revision'][:results.COMMIT_DIGITS]}{'+' if point['dirty'] else ''} ({point['date'][:10]})"


def value(series, number):
    return compare_report.time_text(number) if series["metric"] == TIME else f"{number:.4f}"


def text(report, everything=False):
    """Lines of at most 80 columns."""
    short = [series for series in report["series"] if len(series["points"]) < changepoint.FEWEST]
    lines = table.both_ends(f"skbench history: {table.plural(report['runs'], 'result')}, "
                            f"{len(report['series'])} series", f"p {report['p']:g}")
    lines += table.broken(f"  {report['directory']}")
    if report["since"]:
        lines += table.wrapped(f"since {report['since']}: {report['points_in_window']} of {report['points_known']} points "
                               "in the window")
    for path, problem in list(report["unreadable"].items())[:SHOWN_BROKEN]:
        lines += table.wrapped(f"note   not read: {problem}")
    if len(report["unreadable"]) > SHOWN_BROKEN:
        lines.append(f"note   and {len(report['unreadable']) - SHOWN_BROKEN} more files that cannot be read")
    if report["points_busy"]:
        lines += table.wrapped(f"note   {report['points_busy']} of {report['points_in_window']} points left out: others "
                               "used the CPUs then (--busy takes them)")
    if report["contended_series"]:
        lines += table.wrapped(f"note   {report['contended_series']} series of contended cases on a virtual machine left "
                               "out: their times do not hold across sessions")
    if short:
        lines += table.wrapped(f"note   {len(short)} of {len(report['series'])} series have fewer than "
                               f"{changepoint.FEWEST} points, too few to find anything at p {report['p']:g}")
    found = 0
    for series in report["series"]:
        if not (series["changes"] or series["pending"] or everything):
            continue
        lines += [""] + [part for line in ledger.wrap(series["case"]) for part in table.broken(line)]
        values = [point["value"] for point in series["points"]]
        lines += table.wrapped(f"  {series['metric']}, {series['machine']}, {table.plural(len(values), 'point')}, "
                               f"{value(series, min(values))} to {value(series, max(values))}")
        for change in series["changes"]:
            found += 1
            lines += table.wrapped(f"  {change['kind']}, {change['direction']}: {value(series, change['old'])} -> "
                                   f"{value(series, change['new'])}   {compare_report.change_text(change)}   "
                                   f"n={change['points_before']}/{change['points_after']}   "
                                   f"p {compare_report.p_text(change['p'])}", "    ")
            lines += table.wrapped(f"    after {revision(change['last_before'])}, up to {revision(change['first_after'])}",
                                   "  ")
            for what in change["environment"]:
                lines += table.wrapped(f"    there changed {what}")
        if series["pending"]:
            lines += table.wrapped(f"  pending: the last {table.plural(series['pending'], 'point')} lie beyond "
                                   f"{series['margin'] * 100:g} %; {changepoint.MIN_SEGMENT} are needed for a verdict")
        if not series["changes"] and not series["pending"]:
            lines.append("  no change")
    lines += [""] + table.wrapped(f"{table.plural(found, 'change')} in {len(report['series'])} series, "
                                  f"{report['points_chosen']} points")
    return lines
