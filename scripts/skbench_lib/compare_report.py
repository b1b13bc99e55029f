# SPDX-License-Identifier: MIT
"""A comparison as text of 80 columns, Markdown, the layout of the kernel's test robot, and JUnit: all from one report
(see compare.judge()) and from nothing else."""

import json

from . import counters, icounts, ledger, table

SHOWN_REJECTED = 5
SHOWN_DIFFERENCES = 20
UNCHANGED = ("equivalent", "identical code")
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def time_text(ns):
    """A time with three digits in the unit that suits it."""
    if ns is None:
        return "-"
    for scale, unit in UNITS:
        if abs(ns) >= scale * 0.9995 or unit == "ns":
            return f"{table.number(ns / scale)} {unit}"
    raise AssertionError("unreachable")


def p_text(p):
    """ "<1e-6" or two digits."""
    return "<1e-6" if p < 1e-6 else f"{p:.2g}"


def change_text(entry, key="ratio"):
    """ "+5.77 % [+5.10, +6.31]"; an empty string without a ratio."""
    if entry[key] is None:
        return ""
    text = f"{table.percent(entry[key])} %"
    if entry["lo"] is not None:
        text += f" [{table.percent(entry['lo'])}, {table.percent(entry['hi'])}]"
    return text


def equal(entry):
    """True if every value of both sides is the same."""
    return bool(entry["base"] and entry["new"] and entry["base"]["all_equal"] and entry["new"]["all_equal"]
                and entry["base"]["median"] == entry["new"]["median"])


def detail(entry):
    """Medians, change, counts and p of a row in words."""
    base, new = entry["base"], entry["new"]
    parts = []
    if base or new:
        parts.append(f"{time_text(base['median'] if base else None)} -> {time_text(new['median'] if new else None)}")
    if entry["ratio"] is not None:
        parts.append(change_text(entry) + (" (all equal)" if equal(entry) else ""))
    if entry.get("pairs"):
        parts.append(table.plural(entry["pairs"], "pair"))
    elif base and new and base["n"] and new["n"]:
        parts.append(f"n={base['n']}/{new['n']}")
    if entry["p"] is not None:
        parts.append(f"p {p_text(entry['p'])}")
    return "   ".join(parts)


def word(entry):
    """The verdict, with what is to be added to it."""
    if entry["verdict"] == "regression":
        return "regression, confirmed" if entry["fails"] else "regression, not confirmed"
    return entry["verdict"]


def value_text(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def header(report):
    """What is compared, and what has to be known before a verdict is read."""
    lines = table.both_ends(f"skbench {report['command']}", f"margin {report['margin'] * 100:g} %")
    for key, heading in zip(("base", "new"), report["headings"]):
        side = report[key]
        parts = [f"{key:<5} {heading}"]
        if side.get("date"):
            parts.append(side["date"])
        if side.get("cases") is not None:
            parts.append(table.plural(side["cases"], "case"))
        if len(side.get("files") or []) > 1:
            parts.append(table.plural(len(side["files"]), "file"))
        lines += table.wrapped("   ".join(parts))
        if side["label"] != heading:
            lines += table.broken(f"      {side['label']}")
    fields = report["differing_identity"]
    if fields:
        lines += table.wrapped(f"NOT COMPARABLE: not the same machine and build; they differ in {', '.join(fields)}. "
                               f"Times are {'shown, not judged' if report['forced'] else 'refused'}, ratios and counts "
                               "compared.")
        for field, (one, other) in report["identity_values"].items():
            lines += table.wrapped(f"  {field}: {value_text(one)} against {value_text(other)}")
    for field, (one, other) in report["conditions"].items():
        lines += table.wrapped(f"condition  {field}: {value_text(one)} against {value_text(other)}")
    lacks = list(dict.fromkeys(report["base"].get("lacks", []) + report["new"].get("lacks", [])))
    for lack in lacks:
        lines += table.wrapped(f"lacks  {lack}")
    for key in ("base", "new"):
        for why in report[key].get("untrusted", []):
            lines += table.wrapped(f"note   {key}: {why}: its times are not judged")
        for note in report[key].get("notes", []):
            lines += table.wrapped(f"note   {key}: {note}")
        rejected = report[key].get("rejected", [])
        if rejected:
            lines += table.wrapped(f"note   {key}: {table.plural(len(rejected), 'row')} left out")
            lines += [line for text in rejected[:SHOWN_REJECTED] for line in table.wrapped(f"         {text}")]
            if len(rejected) > SHOWN_REJECTED:
                lines.append(f"         and {len(rejected) - SHOWN_REJECTED} more (--json FILE has all)")
    return lines


def groups(report, everything):
    """(verdict, its rows) in the order of the report, without what did not change unless EVERYTHING."""
    found = {}
    for entry in report["rows"]:
        if everything or entry["verdict"] not in UNCHANGED or entry["warnings"]:
            found.setdefault(entry["verdict"], []).append(entry)
    return found.items()


def difference_text(difference):
    if difference["column"] is None:
        return f"{difference['case']}: only in {'new' if difference['base'] is None else 'base'}"
    return f"{difference['case']}: {difference['column']} {difference['base']} -> {difference['new']}"


def geomean_text(report):
    mean = report["geomean"]
    if mean["ratio"] is None:
        return f"geometric mean: none, {mean['reason']}"
    text = f"geometric mean {table.percent(mean['ratio'])} %, {mean['used']} of {mean['matched']} matched cases used"
    return text + (" (not comparable)" if report["differing_identity"] else "")


def summary_text(report):
    return ", ".join(f"{count} {verdict}" for verdict, count in report["counts"].items() if count) or "no case with times"


def ledger_lines(report):
    counts = report["ledger"]
    if not counts["cases"]:
        return ["ledger: no case in common"]
    lines = table.wrapped(f"ledger: {table.plural(counts['cases'], 'case')}, "
                          f"{table.plural(len(counts['differences']), 'difference')}")
    for difference in counts["differences"][:SHOWN_DIFFERENCES]:
        text = difference_text(difference)
        case, _, rest = text.partition("#")
        lines += [f"  {line}" for line in ledger.wrap(case, 78)] + table.wrapped(f"    {rest}")
    hidden = len(counts["differences"]) - SHOWN_DIFFERENCES
    return lines + ([f"  and {hidden} more (--json FILE has all)"] if hidden > 0 else [])


def only_counts(report):
    """True if there is nothing but instructions in it."""
    return bool(report["instructions"]["sets"]) and not report["rows"] and not report["ledger"]["cases"]


def instruction_rows(entry, everything):
    """The rows of a compiler's set that are shown."""
    return [one for one in entry["rows"] if everything or one["verdict"] not in UNCHANGED]


def instruction_lines(report, everything):
    counts, lines = report["instructions"], []
    for entry in counts["sets"]:
        lines += table.wrapped(icounts.set_text(entry))
        for one in instruction_rows(entry, everything):
            case, _, phase = one["case"].partition("#")
            lines += [f"  {line}" for line in ledger.wrap(case + (f"#{phase}" if phase else ""), 78)]
            lines += table.wrapped(f"    {icounts.row_text(one)}")
    for key, where in (("only_base", "base"), ("only_new", "new")):
        if counts[key] and (counts["only_base"] and counts["only_new"] or counts["sets"]):
            lines += table.wrapped(f"instructions, {', '.join(counts[key])}: only in {where}")
    return lines


def text(report, everything=False):
    """Lines of at most 80 columns."""
    lines = header(report)
    counts_only = only_counts(report)
    lines += [""] + ([] if counts_only else ledger_lines(report)) + instruction_lines(report, everything)
    for verdict, rows in groups(report, everything):
        lines += ["", f"{verdict} ({len(rows)})"]
        for entry in rows:
            lines += [f"  {line}" for line in ledger.wrap(entry["case"], 78)]
            if entry["renamed_from"]:
                lines += table.wrapped(f"    renamed from {entry['renamed_from']}")
            shown = detail(entry)
            if verdict == "regression":
                shown += "   " + ("confirmed" if entry["fails"] else "not confirmed")
            lines += table.wrapped(f"    {shown}") if shown.strip() else []
            if entry["reason"]:
                lines += table.wrapped(f"    {entry['verdict']}: {entry['reason']}" if verdict == "not comparable"
                                       else f"    {entry['reason']}")
            for warning in entry["warnings"]:
                lines += table.wrapped(f"    note: {warning}")
            for told in counters.explanation(report, entry["case"]):
                lines += table.wrapped(f"    {told}")
    ratios = [entry for entry in report["ratios"] if everything or entry["verdict"] not in UNCHANGED]
    if report["ratios"]:
        lines += [""] + table.wrapped(f"ratios of variants inside each side: {len(report['ratios']) - len(ratios)} of "
                                      f"{len(report['ratios'])} unchanged" if len(ratios) < len(report["ratios"])
                                      else "ratios of variants inside each side, and how they changed")
        for entry in ratios:
            lines += [f"  {line}" for line in ledger.wrap(entry["key"], 78) for line in table.wrapped(line)]
            lines += table.wrapped(f"    {entry['base']:.4f} -> {entry['new']:.4f}   {change_text(entry, 'change')}   "
                                   f"{entry['verdict']}")
    lines.append("")
    if not counts_only:
        lines += table.wrapped(summary_text(report)) + table.wrapped(geomean_text(report))
    lines += table.wrapped(f"exit status {report['exit_status']}: {report['decided_by']}")
    return [part for line in lines for part in table.broken(line)] if lines else lines


def _cell(value):
    return str(value).replace("|", "\\|")


def markdown(report, everything=False):
    """The same as a table, with footnotes."""
    base, new = report["headings"]
    lines = [f"**skbench {report['command']}**: `{base}` against `{new}`, margin {report['margin'] * 100:g} %", ""]
    notes = [line for line in header(report)[1:] if not line.startswith(("base  ", "new   ", "      "))]
    rows = [entry for _, part in groups(report, everything) for entry in part]
    if rows:
        lines += [f"| case | {_cell(base)} | {_cell(new)} | change | n | verdict |",
                  "| --- | ---: | ---: | ---: | ---: | --- |"]
        for entry in rows:
            b, n = entry["base"], entry["new"]
            count = f"{b['n']}/{n['n']}" if b and n and b["n"] and n["n"] else ""
            what = word(entry) + (f": {entry['reason']}" if entry["reason"] else "")
            name = f"`{entry['case']}`" + (f" (was `{entry['renamed_from']}`)" if entry["renamed_from"] else "")
            change = change_text(entry) + (" (all equal)" if equal(entry) else "")
            lines.append(f"| {_cell(name)} | {time_text(b['median'] if b else None)} | "
                         f"{time_text(n['median'] if n else None)} | {change} | {count} | {_cell(what)} |")
        lines.append("")
    if report["ratios"]:
        lines += [f"| ratio | {_cell(base)} | {_cell(new)} | change | verdict |", "| --- | ---: | ---: | ---: | --- |"]
        lines += [f"| `{_cell(entry['key'])}` | {entry['base']:.4f} | {entry['new']:.4f} | "
                  f"{change_text(entry, 'change')} | {entry['verdict']} |" for entry in report["ratios"]]
        lines.append("")
    counts = report["ledger"]
    if not only_counts(report):
        lines.append(f"Ledger: {table.plural(counts['cases'], 'case')}, "
                     f"{table.plural(len(counts['differences']), 'difference')}.")
    lines += [f"- `{difference_text(difference)}`" for difference in counts["differences"]]
    for entry in report["instructions"]["sets"]:
        text_ = icounts.set_text(entry)
        lines += [*([""] if lines[-1] else []), f"{text_[0].upper()}{text_[1:]}."]
        lines += [f"- `{one['case']}`: {icounts.row_text(one)}" for one in instruction_rows(entry, everything)]
    summary = "" if only_counts(report) else f"{summary_text(report)}; {geomean_text(report)}. "
    lines += [f"- `{entry['case']}`: {told}" for entry in rows for told in counters.explanation(report, entry["case"])]
    lines += ["", f"{summary}Exit status {report['exit_status']}: {report['decided_by']}."]
    if notes:
        lines += [""] + [f"> {line.strip()}" for line in notes]
    return lines


LKP_WIDTH = 16


def lkp(report, everything=False):
    """Two commits, the spread of both in percent, the change between them. Every case with two times is listed."""
    base, new = report["headings"]
    lines = ["commit:", f"  {base} ({report['base']['label']})", f"  {new} ({report['new']['label']})", "",
             f"{base[:LKP_WIDTH]:>{LKP_WIDTH}} {new[:27]:<27} ", f"{'-' * LKP_WIDTH} {'-' * 27} ",
             f"{'%stddev':>{LKP_WIDTH}} {'%change':>11} {'%stddev':>15}",
             f"{chr(92):>{LKP_WIDTH + 1}} {'|':>10} {chr(92):>17}"]

    def value(summary):
        if summary is None:
            return " " * 17
        spread = summary["stddev_percent"]
        return f"{table.number(summary['median']):>10}" + (f" ± {spread:2.0f}%" if spread is not None else " " * 6)

    for entry in report["rows"]:
        if entry["ratio"] is None:
            change = entry["verdict"]
        else:
            change = f"{table.percent(entry['ratio'])}%"
        mark = "" if entry["verdict"] in UNCHANGED else f"  ({word(entry)})"
        lines.append(f"{value(entry['base'])} {change:>12} {value(entry['new'])}  {entry['case']}.ns_per_op{mark}")
    for difference in report["ledger"]["differences"]:
        if difference["column"] is not None:
            lines.append(f"{difference['base']:>10}{' ' * 6} {'ledger':>12} {difference['new']:>10}{' ' * 6}  "
                         f"{difference['case']}.{difference['column']}")
    for one in report["instructions"]["sets"]:
        for entry in one["rows"]:
            if None not in (entry["base"], entry["new"]):
                change = f"{table.percent(entry['new'] / entry['base'])}%"
                mark = "" if entry["verdict"] in UNCHANGED else f"  ({entry['verdict']})"
                lines.append(f"{entry['base']:>10.1f}{' ' * 6} {change:>12} {entry['new']:>10.1f}{' ' * 6}  "
                             f"{entry['case']}.{one['name']}.instructions{mark}")
    for entry in report["ratios"]:
        lines.append(f"{entry['base']:>10.4f}{' ' * 6} {table.percent(entry['change']) + '%':>12} "
                     f"{entry['new']:>10.4f}{' ' * 6}  {entry['key']}.ratio")
    lines += ["", summary_text(report)]
    if report["differing_identity"]:
        lines.append(f"not comparable: {', '.join(report['differing_identity'])}")
    return lines


def _xml(text):
    """TEXT as a quoted attribute. xml.sax.saxutils has it, too, and takes a tenth of a second to be imported."""
    shown = "".join(char if char.isprintable() else " " for char in str(text))
    for char, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        shown = shown.replace(char, name)
    return f'"{shown}"'


def junit(report):
    """One testcase for each case, and one for the ledger. What is not known is skipped, with the reason."""
    cases, failures, errors, skipped = [], 0, 0, 0
    for entry in report["rows"]:
        body = ""
        message = _xml(f"{word(entry)}: {entry['reason'] or detail(entry)}")
        if entry["fails"]:
            failures += 1
            body = f"<failure message={message}/>"
        elif entry["verdict"] == "failed":
            errors += 1
            body = f"<error message={message}/>"
        elif entry["verdict"] not in ("equivalent", "shifted", "improvement", "identical code"):
            skipped += 1
            body = f"<skipped message={message}/>"
        cases.append(f'  <testcase classname="time" name={_xml(entry["case"])}>{body}</testcase>')
    for one in report.get("instructions", {"sets": []})["sets"]:
        for entry in one["rows"]:
            body = ""
            if entry["fails"]:
                failures += 1
                body = f"<failure message={_xml(icounts.row_text(entry))}/>"
            elif None in (entry["base"], entry["new"]):
                skipped += 1
                body = f"<skipped message={_xml(icounts.row_text(entry))}/>"
            cases.append(f'  <testcase classname="instructions.{one["name"]}" name={_xml(entry["case"])}>{body}</testcase>')
    differences = report["ledger"]["differences"]
    body = ""
    if differences:
        failures += 1
        body = f"<failure message={_xml('; '.join(map(difference_text, differences[:SHOWN_DIFFERENCES])))}/>"
    cases.append(f'  <testcase classname="ledger" name="counts">{body}</testcase>')
    head = (f'<testsuite name="skbench {report["command"]}" tests="{len(cases)}" failures="{failures}" '
            f'errors="{errors}" skipped="{skipped}">')
    document = "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>"]) + "\n"
    return document.encode("ascii", "xmlcharrefreplace").decode("ascii")
