# SPDX-License-Identifier: MIT
"""The stored baselines of one machine and build, and what the newest says of a run that has just ended."""

from pathlib import Path

from . import compare, compare_report, results, sides, table, tree

NONE = "none yet (skbench baseline save NAME)"


def baselines(fp8, root=None):
    """[(name, document)] of the machine and build FP8, sorted by name. Raises UserError for a broken file."""
    directory = Path(root or tree.repo_root()) / "results" / "baselines" / fp8
    return [(path.stem, results.read(path)) for path in sorted(directory.glob("*.json"))]


def against(found, document):
    """(words for the last line of a run, whether it got worse): DOCUMENT against the newest of the baselines FOUND.

    Counts are compared exactly. Times are judged as `compare` judges them; a case that the run did not measure is not
    missed.
    """
    if not found:
        return NONE, False
    name, stored = max(found, key=lambda entry: entry[1]["context"]["date"])
    report = compare.judge(sides.native(stored, name), sides.native(document, "this run"), sides.read_aliases(),
                           absent=None)
    counts, rows = report["ledger"], report["rows"]
    if not counts["cases"] and not any(entry["base"] for entry in rows):
        return f"{name}: no case in common", False
    parts = []
    if counts["differences"]:
        number = len(counts["differences"])
        parts.append(f"{'1 count differs' if number == 1 else f'{number} counts differ'}, "
                     f"first {compare_report.difference_text(counts['differences'][0])}")
    elif counts["cases"]:
        parts.append(f"the ledger of {table.plural(counts['cases'], 'case')} is the same")
    if rows:
        parts.append(f"times: {compare_report.summary_text(report)}")
    failing = [entry for entry in rows if entry["fails"]]
    if failing:
        parts.append(f"confirmed {failing[0]['case']} {compare_report.change_text(failing[0])}")
    for why in report["new"]["untrusted"] + report["base"]["untrusted"]:
        parts.append(f"not judged: {why}")
    return f"{name}: {'; '.join(parts)}", bool(counts["differences"] or failing)
