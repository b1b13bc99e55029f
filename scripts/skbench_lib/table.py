# SPDX-License-Identifier: MIT
"""What `run` prints: a table in words, 80 columns wide, built from a result document and from nothing else."""

import math
import re
import unicodedata

from . import benchbin, defer, placement, stats

WIDTH = 80


def width(text):
    """Columns that a terminal uses for TEXT."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
               for char in text)


def number(value):
    """At least three digits, no more than needed: 2104, 104, 10.4, 1.04, 0.104; beyond a million an exponent."""
    size = abs(value)
    if size >= 1e6 or 0 < size < 1e-3:
        return f"{value:.2e}"
    for limit, digits in ((99.95, 0), (9.995, 1), (0.9995, 2)):
        if size >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.3f}" if size else "0"


def signed(value):
    text = number(value)
    return text if value <= 0 else f"+{text}"


def percent(ratio):
    """A ratio as a signed percentage; equal sides have no sign."""
    change = (ratio - 1) * 100
    if change == 0:
        return "0.00"
    return f"{change:+.2f}" if abs(change) < 99.995 else signed(change)


def with_interval(summary):
    """ "2104 +-0.3%": a median with the larger arm of its interval, in percent of it."""
    if summary is None:
        return "unmeasured"
    text = number(summary["median"])
    if summary["lo"] is None:
        return f"{text} n={summary['n']}"
    arm = max(summary["hi"] - summary["median"], summary["median"] - summary["lo"])
    share = arm / abs(summary["median"]) * 100 if summary["median"] else 0.0
    return f"{text} +-{share:.1f}%" if share < 99.95 else f"{text} +-{number(share)}%"


def difference(summary, unit="ns"):
    """ "-104 ns [-110, -98]"."""
    if summary is None:
        return ""
    if summary["lo"] is None:
        return f"{signed(summary['median'])} {unit} n={summary['n']}"
    return f"{signed(summary['median'])} {unit} [{signed(summary['lo'])},{signed(summary['hi'])}]"


def wrapped(text, indent="  "):
    """TEXT as lines of at most 80 columns; what does not fit goes on below, indented. Long words are cut."""
    if width(text) <= WIDTH:
        return [text.rstrip()]
    lead = re.match(r" *", text).group()
    lines, line, empty = [], lead, True
    for word in text.split():
        while True:
            joined = line + ("" if empty else " ") + word
            if width(joined) <= WIDTH:
                line, empty, word = joined, False, ""
                break
            if not empty:
                lines.append(line)
                line, empty = lead + indent, True
                continue
            size = fitting(word, WIDTH - width(line))
            lines.append(line + word[:size])
            line, empty, word = lead + indent, True, word[size:]
            if not word:
                break
    return lines if empty else lines + [line]


def fitting(text, columns):
    """How many of TEXT's characters go into that many columns, at least one."""
    size, used = 0, 0
    for char in text:
        used += width(char)
        if used > columns:
            break
        size += 1
    return max(size, 1)


def row(cells, widths):
    """Cells in columns: a positive width aligns left, a negative one right. A cell that is too wide takes the blanks
    of those behind it; where that is not enough, the columns are given up."""
    line, end = "", 0
    for cell, size in zip(cells, widths):
        start, end = end, end + abs(size)
        gap = max((start if size > 0 else end - width(cell)) - width(line), 1 if line and cell else 0)
        line += " " * gap + cell if cell else ""
        end += 1
    return [line] if width(line) <= WIDTH else wrapped("      " + " ".join(cell for cell in cells if cell), "")


def both_ends(left, right):
    """LEFT and RIGHT at the ends of one line, on two if they do not fit."""
    gap = WIDTH - width(left) - width(right)
    if gap >= 2:
        return [left + " " * gap + right]
    return wrapped(left) + wrapped("  " + right)


def machine_line(ours):
    identity, condition = ours["fingerprint"]["identity"], ours["fingerprint"]["condition"]
    hypervisor = identity.get("hypervisor")
    unnamed = "virtual" if identity.get("virtual") else "hypervisor unknown"
    where = {None: unnamed, "none": "bare metal"}.get(hypervisor, hypervisor)
    model = ", ".join(part for part in (identity.get("cpu_name") or "CPU unknown", where) if part)
    nodes = identity.get("nodes")
    pmu = condition.get("pmu")
    revision = ours["revision"]
    commit = revision["commit"][:7] + ("+" if revision["dirty"] else "")
    left = (f"skbench run: {ours['suite']}   {plural(identity['cpus_allowed'], 'CPU')} ({model}), "
            f"{plural(nodes, 'node') if nodes else 'nodes unknown'}, "
            f"{'PMU unknown' if pmu is None else 'no PMU' if pmu == 'none' else 'PMU ' + pmu}")
    return both_ends(left, f"rev {commit}")


def plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def calibration_lines(ours):
    calibration = ours["calibration"]
    core, copy = calibration["core_to_core_ns"], calibration["copy_gbs"]
    parts = [f"core to core {number(core['p50'])} ns [{number(core['p10'])}, {number(core['p90'])}]" if core
             else "core to core: not measured"]
    if copy:
        parts.append("copy " + ", ".join(f"{key} {number(copy[key])} GB/s" if copy[key] is not None
                                         else f"{key} not measured" for key in ("cache", "memory")))
    else:
        parts.append("copy: not measured")
    if calibration.get("reason"):
        parts.append(f"({calibration['reason']})")
    return wrapped("   ".join(parts))


def control_lines(ours):
    control = ours["control"]
    if control is None:
        return []
    word = "held" if control["held"] else "FAILED"
    text = f"A/A control: {word}"
    if control["reason"]:
        text += f" ({control['reason']})"
    if control["lo"] is not None:
        text += (f"   {percent(control['ratio'])} % [{percent(control['lo'])}, {percent(control['hi'])}], "
                 f"{plural(control['pairs'], 'pair')}, margin {control['margin'] * 100:g} %")
    return wrapped(text)


def condition_lines(ours):
    condition = ours["fingerprint"]["condition"]
    notes = []
    other, steal = condition.get("other_cpu_share"), condition.get("steal_share")
    if other is not None and other > 0.15:
        notes.append(f"others used {other * 100:.0f} % of the CPUs")
    if steal is not None and steal > 0.01:
        notes.append(f"{steal * 100:.1f} % stolen")
    return wrapped("note   " + ", ".join(notes) + ": do not compare absolute times") if notes else []


# frags, variant, ns/64KB, against, verdict, get/put/alloc, RMW/shst
TRIM_WIDTHS = (-5, 10, -13, 21, 12, -8, -5)
LIFE = ("transmit", "partial_ack", "completion", "full_ack")
ALONE = ("partial_ack", "completion")
TRIM_NOTE = ("ns/64KB: busy time of all roles in one skb's life. Page gets and puts, allocations of heads (alloc) and "
             "stores into what the clone shares (shst): from the partial ACK to the completion. RMW: atomics of the "
             "whole life, without wmem and ext.")


def counts(rows, phases, keys):
    """The sums of KEYS over PHASES of a ledger, as "16/16/1"; "?" for what it does not tell."""
    chosen = [entry for entry in rows or [] if entry["phase"] in phases]
    return "/".join(str(sum(entry[key] for entry in chosen))
                    if len(chosen) == len(phases) and all(key in entry for entry in chosen) else "?" for key in keys)


def trim_rows(experiments, ledgers):
    """The rows of one block: for each number of frags the baseline, then each variant against it."""
    lines = []
    shown = set()
    for entry in experiments:
        params = entry["parameters"]
        for side, value in (("baseline", entry["baseline_value"]), ("variant", entry["variant_value"])):
            name = entry[side]
            key = (params["complete"], params["frags"], name)
            if key in shown:
                continue
            shown.add(key)
            ledger = ledgers.get(entry["cases"][side])
            against = verdict = ""
            if side == "variant":
                against, verdict = difference(entry["difference"]), judged(entry)
            lines += row([str(params["frags"]), name, with_interval(value), against, verdict,
                          counts(ledger, ALONE, ("page_get", "page_put", "obj_alloc")),
                          counts(ledger, LIFE, ("rmw",)) + "/" + counts(ledger, ALONE, ("shared_stores",))],
                         TRIM_WIDTHS)
        lines += cell_lines(entry, f"{entry['baseline']}'s busy time")
    return lines


def judged(entry):
    """The verdict of a cell as the table has it."""
    return entry["verdict"] if entry["status"] == "ok" else "unmeasured"


def change(entry):
    """The ratio of a cell that has one, with its interval if there is one: "-6.21 % [-7.10, -5.30]"."""
    text = f"{percent(entry['ratio'])} %"
    return text if entry["lo"] is None else f"{text} [{percent(entry['lo'])}, {percent(entry['hi'])}]"


def why_not(entry):
    """Why a cell has no ratio or no interval; an empty text if it has both."""
    if entry["status"] != "ok":
        return entry["reason"] or "unmeasured"
    if entry["ratio"] is None:
        return "not measured: the run ended before its first pair"
    return f"no interval below {stats.MIN_PAIRS}" if entry["lo"] is None else ""


def cell_lines(entry, whole):
    """What stands below a headline cell, in every block: the ratio, its interval and how many pairs, or why not.
    WHOLE is what the ratio is of, as in "eager's busy time"."""
    reason = why_not(entry)
    if entry["status"] != "ok" or entry["ratio"] is None:
        return wrapped(f"      {reason}", "")
    return wrapped(f"      = {change(entry)} of {whole}, {plural(entry['pairs'], 'pair')}"
                   f"{f': {reason}' if reason else wide(entry)}", "")


def wide(entry):
    """Why an interval that looks clear is still inconclusive."""
    if entry["verdict"] != stats.INCONCLUSIVE or not 0 < entry["lo"] <= entry["hi"]:
        return ""
    lo, hi = math.log(entry["lo"]), math.log(entry["hi"])
    half, needed = (hi - lo) / 2, stats.widest(lo, hi, stats.log_margin(entry["target_half_width"]))
    return f"; half-width {number(half * 100)} %, {number(needed * 100)} % needed" if half > needed \
        else "; across the margin"


def trim_blocks(ours):
    """One block for each allocator."""
    lines = []
    experiments = [entry for entry in ours["experiments"] if entry["experiment"] == "trim"
                   and entry["parameters"]["form"] == "forced"]
    ledgers = {entry["case"]: entry["rows"] for entry in ours["ledger"]}
    for alloc in dict.fromkeys(entry["parameters"]["alloc"] for entry in experiments):
        block = [entry for entry in experiments if entry["parameters"]["alloc"] == alloc]
        era = block[0]["era"]
        lines.append("")
        lines += both_ends("trim   partial ACK while the clone is alive, forced", f"era {era}, {alloc}")
        if lines.count("") == 1:
            lines += wrapped(f"claim  {block[0]['claim']}", "       ")
        lines += row(["frags", "variant", "ns/64KB", f"against {block[0]['baseline']}", "verdict", "get/put/", "RMW/"],
                     TRIM_WIDTHS)
        lines += row(["", "", "", "", "", "alloc", "shst"], TRIM_WIDTHS)
        for complete in dict.fromkeys(entry["parameters"]["complete"] for entry in block):
            part = [entry for entry in block if entry["parameters"]["complete"] == complete]
            if complete == "other":
                lines.append("      completion on another CPU:")
            lines += trim_rows(part, ledgers)
    if experiments:
        lines += wrapped(TRIM_NOTE, "")
    return lines


# point, window, races, variant, ns/64KB, against, verdict
LINK_WIDTHS = (9, -7, -5, 10, -11, 20, 12)


def link_block(ours):
    """The link form: a row for each point and variant, then what share of the whole path is saved."""
    entries = [entry for entry in ours["experiments"] if entry["parameters"].get("form") == "link"]
    lines = []
    for source in dict.fromkeys(entry["parameters"]["from"] for entry in entries):
        lines += link_rows([entry for entry in entries if entry["parameters"]["from"] == source])
    return lines + (share_lines(ours, entries[0]) if entries else [])


def path_name(source):
    return "no copy" if source == "none" else f"copy from {source}"


def link_rows(entries):
    """The rows of one path."""
    first = entries[0]
    lines = [""]
    lines += both_ends("trim   the same over a link in virtual time", f"era {first['era']}, "
                       f"{first['parameters']['alloc']}, {first['parameters']['frags']} frags")
    lines += wrapped("races: skbs whose clone lives at their first partial ACK; RTT "
                     f"{benchbin.split_name(first['case'])[1]['rtt']} us, an ACK every 2 segments, "
                     f"{path_name(first['parameters']['from'])}", "")
    lines += row(["point", "window", "races", "variant", "ns/64KB", f"against {first['baseline']}", "verdict"],
                 LINK_WIDTHS)
    for entry in entries:
        report = entry["report"] or {}
        window = f"{number(report['window_us'])} us" if "window_us" in report else "?"
        races = f"{number(report['race_share'] * 100)} %" if "race_share" in report else "?"
        lines += row([entry["parameters"]["point"], window, races, entry["baseline"],
                      with_interval(entry["baseline_value"]), "", ""], LINK_WIDTHS)
        lines += row(["", "", "", entry["variant"], with_interval(entry["variant_value"]),
                      difference(entry["difference"]), judged(entry)], LINK_WIDTHS)
        lines += cell_lines(entry, "the path's CPU time")
    return lines


def share_lines(ours, entry):
    """What ENTRY's saving is of each path, and how long a path would have to be for the claimed share."""
    if entry["difference"] is None or entry["baseline_value"] is None:
        return []
    saved = -entry["difference"]["median"]
    scale = entry["baseline_value"]["median"]
    paths = [(path_name(entry["parameters"]["from"]), scale)]
    for case in ours["cases"]:
        source = benchbin.split_name(case["case"])[1].get("from")
        value = case["value"]
        if source and value:
            paths.append((path_name(source), benchbin.per_64kb(case, value["median"])))
    paths = [(name, path) for name, path in paths if path and path > 0]
    text = f"{number(saved)} ns saved at {entry['parameters']['point']}: " + ", ".join(
        f"{number(saved / path * 100)} % of a path of {number(path)} ns ({name})" for name, path in paths)
    lines = wrapped(text, "  ")
    if saved > 0:
        lines += wrapped(f"the claimed 3 % would need a path of {number(saved / 0.03 / 1000)} us of CPU time per 64 KB",
                         "  ")
    return lines


# shape, variant, us a packet, against, verdict, puts under the lock, frees
DEFER_WIDTHS = (9, 10, -11, 20, 12, -4, -8)
DEFER_NOTE = ("us: wall time a packet, of 65160 bytes (mtu4096: 61440). Puts: of pages, under the socket lock, to let go of a "
              "packet with another behind it (exact). Locked: packets freed under it, of one: the last of a queue, by the flush "
              "before the reader waits, other. Best: of the processes, as the claim is of its runs. docs/defer.md tells what "
              "decides the ratio.")


def lock_sites(report):
    """Packets freed under the lock, by site, as "0.4/0/0"."""
    keys = ("free_locked_last", "free_locked_flush", "free_locked_other")
    return "/".join(f"{(report or {}).get(key, 0):.2f}".rstrip("0").rstrip(".") or "0" if report else "?" for key in keys)


def defer_block(ours):
    """A row for each shape and variant of the defer experiment, inline first."""
    entries = [entry for entry in ours["experiments"] if entry["experiment"] == "defer"]
    if not entries:
        return []
    first = entries[0]
    ledgers = {entry["case"]: entry["rows"] for entry in ours["ledger"]}
    lines = [""] + both_ends("defer  one TCP stream from the ring to its reader, two CPUs",
                             f"era {first['era']}, {first['parameters']['alloc']}")
    lines += wrapped(f"claim  {first['claim']}", "       ")
    lines += row(["shape", "variant", "us", f"against {first['baseline']}", "verdict", "puts", "locked"], DEFER_WIDTHS)
    shown = None
    for entry in entries:
        shape = " ".join(entry["parameters"][key] for key in ("shape", "payload") if entry["parameters"][key] != "llc")
        for side, value, report in (("baseline", entry["baseline_value"], entry["report"]),
                                    ("variant", entry["variant_value"], entry["variant_report"])):
            if side == "baseline" and shown == shape:
                continue
            against = verdict = ""
            if side == "variant":
                against = difference(defer.packet_ns(entry["difference"], report))
                verdict = judged(entry)
            lines += row(["" if shown == shape else shape, entry[side], with_interval(defer.packet_us(value, report)), against,
                          verdict, counts(ledgers.get(entry["cases"][side]), ("eat",), ("page_put",)),
                          lock_sites(report)], DEFER_WIDTHS)
            shown = shape
        lines += cell_lines(entry, f"{entry['baseline']}'s time")
        rates = defer.throughput(entry)
        lines += wrapped(f"      {rates}", "        ") if rates else []
    return lines + wrapped(DEFER_NOTE, "")


def case_blocks(ours):
    """The suites that compare nothing: one block for each operation, the keys that never change in its head."""
    groups = {}
    for entry in ours["cases"]:
        groups.setdefault(benchbin.split_name(entry["case"])[0], []).append(entry)
    lines = []
    for operation, entries in groups.items():
        keys = [benchbin.split_name(entry["case"])[1] for entry in entries]
        fixed = {key: value for key, value in keys[0].items() if all(k.get(key) == value for k in keys)}
        if len(entries) == 1:
            fixed = {}
        lines.append("")
        lines += wrapped(operation + "".join(f" {key}:{value}" for key, value in fixed.items()))
        for entry, own in zip(entries, keys):
            name = "/".join(f"{key}:{value}" for key, value in own.items() if key not in fixed) or "(no parameters)"
            value = entry["value"]
            if value is None or entry["status"] != "ok":
                text = f"unmeasured: {entry['reason'] or 'the run ended before it'}"
            else:
                text = f"{number(value['median'])} ns/op"
                text += (f" [{number(value['lo'])}, {number(value['hi'])}]" if value["lo"] is not None
                         else " [no interval]")
                text += f" n={value['n']}"
            if width(name) + width(text) + 4 <= WIDTH:
                lines.append("  " + name + " " * (WIDTH - 2 - width(name) - width(text)) + text)
            else:
                lines += wrapped("  " + name.replace("/", " "), "  ") + wrapped("      " + text)
    return lines


def sample_lines(ours):
    """Why cases have fewer samples than were wanted of them; nothing if all have theirs."""
    short = [entry for entry in ours["cases"] if entry.get("stopped") == "budget"]
    if not short:
        return []
    counts = [entry["value"]["n"] if entry["value"] else 0 for entry in short]
    return [""] + wrapped(f"{len(short)} of {plural(len(ours['cases']), 'case')} have {min(counts)} to {max(counts)} of "
                          f"{max(entry['wanted'] for entry in short)} samples: the budget of "
                          f"{ours['plan']['budget_s']:g} s was over (--budget, --filter)")


def impossible_lines(ours):
    """How many cases this machine cannot run; nothing if it can run all."""
    count = sum(entry.get("stopped") == "not possible" for entry in ours["cases"])
    if not count:
        return []
    return [""] + wrapped(f"{count} of {plural(len(ours['cases']), 'case')} not possible here: each tells why")


def render(document):
    """The lines of the whole table but its last, which names the file (see result_line())."""
    ours = document["context"]["skbench"]
    lines = machine_line(ours) + calibration_lines(ours) + control_lines(ours) + condition_lines(ours)
    if ours["plan"].get("placement"):
        lines += wrapped(placement.line(ours["plan"]["placement"]))
    if ours["partial"]:
        lines += wrapped(f"PARTIAL: {ours['partial_reason']}")
    from . import mptcp_table  # builds on this module
    if ours["suite"] == "headline":
        return lines + trim_blocks(ours) + link_block(ours) + defer_block(ours) + mptcp_table.block(ours)
    return lines + case_blocks(ours) + mptcp_table.sizes(document) + impossible_lines(ours) + sample_lines(ours)


def result_line(path, baseline):
    """Where the result lies, and what the stored baseline says."""
    left, right = f"result  {path}", f"baseline  {baseline}"
    if width(left) + width(right) + 5 <= WIDTH:
        return [f"{left}     {right}"]
    return broken(left) + wrapped(right)


def broken(text):
    """A line that may hold a path with blanks or a very long one: cut where it must be."""
    lines = []
    while width(text) > WIDTH:
        size = fitting(text, WIDTH)
        lines.append(text[:size])
        text = text[size:]
    return lines + [text]
