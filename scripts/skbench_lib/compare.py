# SPDX-License-Identifier: MIT
"""`skbench compare BASE NEW`: what two results say about each other.

Counts are compared exactly, on any machine. Ratios inside one session are compared wherever they come from. Times are
compared only between equal identities of machine and build. Two sessions are no pairs: the interval of a time's ratio
joins the sign intervals of both sides, and only what also passes the rank-sum test against the margin at 0.05 over the
number of cases fails.
"""

import math

from . import compare_report, counters, files, fingerprint, icounts, options, ranks, results, sides, stats, table
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, OK, WORSE, UserError

SCHEMA = "skbench-compare-1"

IDENTICAL, MISSING, NEW, NO_BASELINE = "identical code", "missing", "new", "no-baseline"
NOT_COMPARABLE, FAILED_CASE, SKIPPED, UNMEASURED, NO_TIME = "not comparable", "failed", "skipped", "unmeasured", "no time"
# In the order of the report.
ORDER = (FAILED_CASE, stats.REGRESSION, stats.INCONCLUSIVE, NOT_COMPARABLE, UNMEASURED, NO_TIME, stats.IMPROVEMENT,
         stats.SHIFTED, MISSING, NEW, NO_BASELINE, SKIPPED, stats.EQUIVALENT, IDENTICAL)

FAIL_ON = ("regression", "ledger", "instructions", "failed", "inconclusive", "not-comparable", "missing", "ratio")
FAIL_ON_DEFAULT = FAIL_ON[:6]  # a comparison of variants never fails by itself

# Conditions that no two runs share.
UNSTEADY = {"load_avg", "cpu_pressure_avg10", "other_cpu_share", "steal_share", "environment_bytes"}
PLAN_FACTOR = 2.0  # operations a batch: each run calibrates anew, and a little is no other plan


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "compare", help="two result files, or directories of them",
        description="Compares two results of skbench or of Google Benchmark: counts exactly, times where both are of "
                    "one machine and build, ratios always. Two results/instructions are compared, too.")
    parser.add_argument("base", metavar="BASE", help="a result file, or a directory whose *.json are one side")
    parser.add_argument("new", metavar="NEW", help="the same, to be judged")
    add_output(parser)
    parser.add_argument("--filter", metavar="RE", help="only cases whose name matches this regular expression")
    parser.add_argument("--force", action="store_true",
                        help="show times of different machines too; nothing that is not comparable fails")
    parser.set_defaults(func=main)


def add_output(parser):
    """The options of every command that prints a comparison."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--markdown", action="store_true", help="the report as Markdown")
    how.add_argument("--lkp", action="store_true", help="the report in the layout of the kernel's test robot")
    parser.add_argument("--all", action="store_true", help="list the cases that did not change, too")
    parser.add_argument("--json", metavar="FILE", help="one JSON object to FILE; - for standard output")
    parser.add_argument("--junit", metavar="FILE", help="a JUnit file, one testcase for each case")
    parser.add_argument("--fail-on", metavar="LIST",
                        help=f"what makes the exit status other than 0: of {', '.join(FAIL_ON)} "
                             f"(default: all but missing and ratio)")


def fail_on(text):
    if text is None:
        return set(FAIL_ON_DEFAULT)
    words = {word.strip() for word in text.split(",") if word.strip()}
    wrong = sorted(words - set(FAIL_ON))
    if wrong:
        raise UserError(f"--fail-on {text}: '{wrong[0]}' is none of {', '.join(FAIL_ON)}")
    return words


def main(args):
    words, pattern = fail_on(args.fail_on), options.expression(args.filter)
    check_output(args)
    base, new = sides.load(args.base), sides.load(args.new)
    report = judge(base, new, sides.read_aliases(), words, args.force, pattern)
    if not report["rows"] and not report["ledger"]["cases"] and not report["ratios"] and \
            not any(one["cases"] for one in report["instructions"]["sets"]):
        raise UserError(f"no case matches --filter {args.filter}" if args.filter
                        else f"{args.base} and {args.new}: there is no case in them")
    deliver(report, args)
    return report["exit_status"]


def check_output(args):
    """Refuses, before anything is done, a JUnit file that cannot be written; the command line does so for --json."""
    if args.json is not None and args.json == args.junit:
        raise UserError(f"--json {args.json} and --junit {args.junit}: one file does not take both")
    if args.junit not in (None, "-"):
        files.refuse_existing(args.junit)


def deliver(report, args):
    """Prints the report as asked for and writes its files."""
    quiet = "-" in (args.json, args.junit)
    out = files.text_stream("-" if quiet else None)
    make = compare_report.markdown if args.markdown else compare_report.lkp if args.lkp else compare_report.text
    out.write("\n".join(make(report, everything=args.all)) + "\n")
    for target, text in ((args.json, results.text_of), (args.junit, compare_report.junit)):
        if target == "-":
            files.text_stream(None).write(text(report))
        elif target is not None:
            files.write_new(target, text(report))


# --- judging ------------------------------------------------------------------------------------------------------

def judge(base, new, aliases=None, words=frozenset(FAIL_ON_DEFAULT), force=False, pattern=None, absent=MISSING):
    """The report of a comparison, a JSON object. ABSENT is the verdict on a case that NEW lacks; None leaves it out."""
    renamed = sides.rename(base, set(new.cases) | set(new.ledger), aliases or {})
    icounts.rename(base.counted, aliases or {}, new.counted)
    # Instruction counts alone say nothing of times, and belong to a compiler, not to a machine.
    counts_only = base.counts_only() or new.counts_only()
    fields = [] if counts_only else sides.identity_differences(base, new)
    names = [] if counts_only else list(dict.fromkeys([*base.cases, *new.cases]))
    rows = []
    for name in names:
        if pattern and not pattern.search(name):
            continue
        if name not in new.cases and absent is None:
            continue
        entry = judge_case(base, new, name, fields, force)
        entry["renamed_from"] = renamed.get(name)
        rows.append(entry)
    family(rows)
    report = {
        "schema": SCHEMA, "command": "compare", "base": base.about(), "new": new.about(),
        "headings": headings(base, new), "margin": stats.MARGIN, "confidence": stats.CONFIDENCE,
        "method": "two sessions, not paired: sign intervals of both sides joined; a failure also passes the rank-sum "
                  "test at 0.05 over the number of cases",
        "differing_identity": fields, "identity_values": identity_values(base, new, fields),
        "forced": bool(force and fields), "conditions": conditions(base, new),
        "rows": sort(rows), "counters": counters.changes(base.counters, new.counters, [entry["case"] for entry in rows]),
        "ratios": judge_ratios(base, new, pattern), "ledger": judge_ledger(base, new, pattern),
        "instructions": icounts.judge(base.counted, new.counted, pattern)}
    return finish(report, words)


def headings(base, new):
    """A short name for each side: the revision, or else what tells them apart."""
    short = [base.short(), new.short()]
    return short if short[0] != short[1] or base.commit else [base.label, new.label]


def finish(report, words):
    """Adds what follows from the rows: mean, counts, notes, exit status."""
    rows = report["rows"]
    report["geomean"] = geomean(rows)
    report["counts"] = {verdict: sum(entry["verdict"] == verdict for entry in rows) for verdict in ORDER}
    report["fail_on"] = sorted(words)
    report["exit_status"], report["decided_by"] = status(report, words)
    return report


def row(name, verdict, reason=None, base=None, new=None):
    """A row of a report with what is known of it; see judge_case() and revduet."""
    return {"case": name, "verdict": verdict, "reason": reason, "unit": "ns", "base": base, "new": new, "ratio": None,
            "lo": None, "hi": None, "p": None, "fails": False, "warnings": [], "renamed_from": None}


def judge_case(base, new, name, fields, force):
    b, n = base.cases.get(name), new.cases.get(name)
    one, other = b.describe() if b else None, n.describe() if n else None
    if b is None or n is None:
        return row(name, NEW if b is None else MISSING, None, one, other)
    entry = row(name, None, None, one, other)
    entry["warnings"] = [f"{side}: {note}" for side, case in (("base", b), ("new", n)) for note in case.notes]
    if not decide_unmeasured(entry, b, n):
        decide(entry, base, new, b, n, fields, force)
    return entry


def decide_unmeasured(entry, b, n):
    """Gives the verdict on a case without a time on one side or both; False if there are two times."""
    for verdict, word in ((FAILED_CASE, "failed"), (SKIPPED, "skipped"), (UNMEASURED, "unmeasured"), (NO_TIME, "no time")):
        where = [label for label, case in (("baseline", b), ("new", n)) if case.status == verdict]
        if where:
            entry["verdict"] = verdict
            place = "both" if len(where) == 2 else where[0]
            why = next((case.reason for case in (n, b) if case.status == verdict and case.reason), None)
            entry["reason"] = f"{word} in {place}{f' ({why})' if why else ''}"
            return True
    return False


def refusal(base, new, b, n, ratio):
    """Why the times of one case are not comparable although machine and build are the same, or None."""
    threads = max(b.threads, n.threads)
    if base.foreign():
        if threads > 1 and base.time_rule != new.time_rule:
            text = (f"definition changed: with threads, real_time was divided by their number before version 1.9 "
                    f"({base.time_rule} against {new.time_rule}; ratio {ratio:.2f}, {threads} threads)")
            return text
        return None
    if threads > 1 and base.fingerprint["identity"].get("virtual"):
        return "roles on several CPUs of a virtual machine: such times do not hold across sessions; skbench duet"
    if b.plan and n.plan:
        for key in ("batches", "cpus"):
            if None not in (b.plan.get(key), n.plan.get(key)) and b.plan[key] != n.plan[key]:
                return f"another plan: {key} {b.plan.get(key)} against {n.plan.get(key)}"
        if b.plan.get("n") and n.plan.get("n") and \
                max(b.plan["n"], n.plan["n"]) > PLAN_FACTOR * min(b.plan["n"], n.plan["n"]):
            return f"another plan: {b.plan['n']} operations a batch against {n.plan['n']}"
    return None


def decide(entry, base, new, b, n, fields, force):
    """Ratio, interval and verdict of two times."""
    one, other = entry["base"], entry["new"]
    if one["median"] == 0 or other["median"] == 0:
        entry["verdict"], entry["reason"] = NOT_COMPARABLE, "a time of 0 has no ratio"
        return
    ratio = other["median"] / one["median"]
    why = f"differs in {', '.join(fields)}" if fields else refusal(base, new, b, n, ratio)
    if why:
        entry["verdict"], entry["reason"] = NOT_COMPARABLE, why
        if fields and not force:
            return
    entry["ratio"] = ratio
    measure(entry, b, n)
    if why:
        return
    if not b.values or not n.values:
        entry["verdict"] = stats.INCONCLUSIVE
        entry["reason"] = "aggregates only: no test possible" if b.aggregates or n.aggregates else \
            "no single values are stored: no test possible"
        if b.aggregates.get("mean") and n.aggregates.get("mean"):
            change = table.percent(n.aggregates["mean"] / b.aggregates["mean"])
            entry["reason"] += f"; mean {change} %"
        return
    if entry["lo"] is None:
        word = "repetitions" if base.foreign() else "samples"
        entry["verdict"] = stats.INCONCLUSIVE
        entry["reason"] = f"few {word}: {len(b.values)} against {len(n.values)}, no interval below 7 a side"
        return
    margin, floor = stats.log_margin(stats.MARGIN), stats.log_floor(stats.FLOOR_NS, one["median"])
    entry["verdict"] = stats.verdict(math.log(entry["lo"]), math.log(entry["hi"]), margin, floor)
    entry["p_margin"] = ranks.rank_sum([value * math.exp(max(margin, floor)) for value in b.values], n.values)
    entry["smallest_p"] = ranks.smallest_p(len(b.values), len(n.values))
    if (base.untrusted() or new.untrusted()) and not force and entry["verdict"] != stats.INCONCLUSIVE:
        entry["reason"] = f"would be {entry['verdict']} on a quiet machine"
        entry["verdict"] = stats.INCONCLUSIVE


def measure(entry, b, n):
    """The interval and p of a row whose ratio is known."""
    if not b.values or not n.values:
        return
    entry["p"] = ranks.rank_sum(b.values, n.values)
    if min(b.values) > 0 and min(n.values) > 0:
        interval = ranks.interval_of_ratio(b.values, n.values)
        if interval:
            entry["lo"], entry["hi"] = math.exp(interval[0]), math.exp(interval[1])


def confirm_row(entry, b, n, count):
    """Verdict and failure of a row measured anew, by a test at 0.05 over COUNT cases."""
    measure(entry, b, n)
    margin = max(stats.log_margin(stats.MARGIN), stats.log_floor(stats.FLOOR_NS, entry["base"]["median"]))
    lo, hi = (math.log(entry[key]) if entry[key] else None for key in ("lo", "hi"))
    entry["verdict"] = stats.verdict(lo, hi, margin)
    p = ranks.rank_sum([value * math.exp(margin) for value in b.values], n.values)
    entry["fails"] = entry["verdict"] == stats.REGRESSION and p <= 0.05 / max(1, count)


def family(rows):
    """Marks the regressions that hold over all cases together: those that fail."""
    timed = [entry for entry in rows if entry.get("p_margin") is not None]
    allowed = 0.05 / max(1, len(timed))
    for entry in timed:
        p, least = entry.pop("p_margin"), entry.pop("smallest_p")
        if entry["verdict"] != stats.REGRESSION:
            continue
        entry["fails"] = p <= allowed
        if not entry["fails"]:
            cause = (f"{entry['base']['n']} and {entry['new']['n']} samples cannot show it among "
                     f"{table.plural(len(timed), 'case')}") if least > allowed else \
                f"p {p:.2g} against the margin, {allowed:.2g} is needed among {table.plural(len(timed), 'case')}"
            entry["reason"] = f"not confirmed: {cause}; skbench duet"


def sort(rows):
    """By verdict, the most certain first within one."""
    return sorted(rows, key=lambda entry: (ORDER.index(entry["verdict"]), not entry["fails"],
                                           1.0 if entry["p"] is None else entry["p"], entry["case"]))


def geomean(rows):
    """The geometric mean of the ratios of matched cases, with how many of them it holds; None with a reason."""
    matched = [entry for entry in rows if entry["verdict"] not in (MISSING, NEW, NO_BASELINE)]
    zero = [entry["case"] for entry in matched if entry["reason"] == "a time of 0 has no ratio"]
    used = [entry["ratio"] for entry in matched if entry["ratio"] is not None and
            (entry["verdict"] != NOT_COMPARABLE or entry["reason"].startswith("differs in"))]
    found = {"ratio": None, "used": len(used), "matched": len(matched), "reason": None}
    if zero:
        found["reason"] = f"{zero[0]} took 0"
    elif not used:
        found["reason"] = "no case with two times"
    else:
        found["ratio"] = math.exp(math.fsum(map(math.log, used)) / len(used))
    return found


def judge_ratios(base, new, pattern=None):
    """The change of each headline ratio that both sides have, judged by the headline's margin."""
    found = []
    for key, b in base.ratios.items():
        n = new.ratios.get(key)
        if n is None or (pattern and not pattern.search(key)):
            continue
        each = math.sqrt(stats.CONFIDENCE)
        ends = []
        for side in (b, n):
            interval = stats.sign_interval(side.logs, each) if side.logs else None
            if interval is None and not side.logs and side.lo is not None:
                interval = math.log(side.lo), math.log(side.hi)
            ends.append(interval)
        entry = {"key": key, "base": b.median, "new": n.median, "change": n.median / b.median, "lo": None, "hi": None,
                 "verdict": stats.INCONCLUSIVE}
        if None not in ends:
            lo, hi = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
            entry["lo"], entry["hi"] = math.exp(lo), math.exp(hi)
            if b.better == "higher":
                lo, hi = -hi, -lo
            entry["verdict"] = stats.verdict(lo, hi, stats.log_margin(stats.HEADLINE_MARGIN))
        found.append(entry)
    return found


def judge_ledger(base, new, pattern=None):
    """Every count that differs between cases of both sides."""
    common = [name for name in base.ledger if name in new.ledger and (not pattern or pattern.search(name))]
    differences = []
    for name in common:
        b = {entry["phase"]: entry for entry in base.ledger[name]}
        n = {entry["phase"]: entry for entry in new.ledger[name]}
        for phase in dict.fromkeys([*b, *n]):
            if phase not in b or phase not in n:
                differences.append({"case": f"{name}#{phase}", "column": None, "base": "row" if phase in b else None,
                                    "new": "row" if phase in n else None})
                continue
            # A column that only one version of the ledger has says nothing about the operation.
            differences += [{"case": f"{name}#{phase}", "column": column, "base": b[phase][column],
                             "new": n[phase][column]}
                            for column in b[phase] if column in n[phase] and b[phase][column] != n[phase][column]]
    return {"cases": len(common), "differences": differences,
            "only_base": sum(name not in new.ledger for name in base.ledger),
            "only_new": sum(name not in base.ledger for name in new.ledger)}


def _value_of(tree, dotted):
    for key in dotted.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def identity_values(base, new, fields):
    """{field: [base's value, new's value]}."""
    if base.foreign() != new.foreign():
        return {}
    one, other = (side.context if side.foreign() else side.fingerprint["identity"] for side in (base, new))
    return {field: [_value_of(one, field), _value_of(other, field)] for field in fields}


def conditions(base, new):
    """{field: [base's, new's]} of the conditions that differ between two runs on one machine."""
    if base.foreign() or new.foreign():
        return {}
    one, other = base.fingerprint["condition"], new.fingerprint["condition"]
    differing = fingerprint.differences(base.fingerprint, new.fingerprint, "condition")
    return {field: [_value_of(one, field), _value_of(other, field)] for field in differing
            if field.split(".")[0] not in UNSTEADY}


def status(report, words):
    """(exit status, the phrase that explains it)."""
    rows = report["rows"]
    failing = [entry for entry in rows if entry["fails"]]
    unsure = [entry for entry in rows if entry["verdict"] in (stats.INCONCLUSIVE, UNMEASURED) or
              (entry["verdict"] == stats.REGRESSION and not entry["fails"])]
    refused = [entry for entry in rows if entry["verdict"] == NOT_COMPARABLE]
    judged = [entry for entry in rows if entry["verdict"] in (*stats.VERDICTS, IDENTICAL)]
    matched = [entry for entry in rows if entry["verdict"] not in (MISSING, NEW, NO_BASELINE)]
    worse_ratios = [entry for entry in report["ratios"] if entry["verdict"] == stats.REGRESSION]
    failed = [entry for entry in rows if entry["verdict"] == FAILED_CASE]
    missing = [entry for entry in rows if entry["verdict"] == MISSING]
    sets = report["instructions"]["sets"]
    counts = [entry for one in sets for entry in one["rows"]]
    more = [entry for entry in counts if entry["fails"]]
    missing += [entry for entry in counts if entry["verdict"] == icounts.MISSING]
    nothing = rows and not matched and not report["ledger"]["cases"] and not counts and \
        not any(entry["verdict"] == NO_BASELINE for entry in rows)
    alone = not rows and not report["ledger"]["cases"] and not report["ratios"] and not counts
    impossible = (report["differing_identity"] and matched and not report["forced"]) or (refused and not judged) or \
        nothing or (alone and sets)
    for word, found, code, text in (
            ("failed", failed, FAILED, f"{table.plural(len(failed), 'case')} failed"),
            ("ledger", report["ledger"]["differences"], WORSE, "the ledger changed"),
            ("instructions", more, WORSE, f"{table.plural(len(more), 'case')} with more instructions"),
            ("regression", failing, WORSE, f"{table.plural(len(failing), 'confirmed regression')}"),
            ("missing", missing, WORSE, f"{table.plural(len(missing), 'case')} missing"),
            ("ratio", worse_ratios, WORSE, f"{table.plural(len(worse_ratios), 'ratio')} worse"),
            ("not-comparable", impossible and not report["forced"], IMPOSSIBLE,
             "no case in common" if nothing else "instructions are not comparable" if alone else
             "times are not comparable"),
            ("inconclusive", unsure, INCONCLUSIVE, f"{table.plural(len(unsure), 'case')} inconclusive")):
        if found and word in words:
            return code, text
    return OK, "nothing worse"
