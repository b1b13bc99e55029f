# SPDX-License-Identifier: MIT
"""What `run` prints of the mptcp experiment."""

from . import benchbin, mptcp_experiment, oraclebudget, stats
from .errors import UserError
from .mptcp_experiment import Mptcp
from .table import (both_ends, cell_lines, change, difference, judged, number, plural, row, why_not, with_interval,
                    wrapped)

# mtu, backlog, variant, ns/64KB, against, verdict, bytes of an sk_buff, share of the goal
WIDTHS = (-5, -4, 8, -11, 21, 12, -5, -6)
NOTE = ("wait: writes that wait when another one comes; CPU time of sender, receiver and both copies; skb: bytes in one, of "
        "the size goal that follows from the MTU")
# variant, bytes of an sk_buff, share of the goal; a MB: sk_buffs, maps, bytes of maps; Mbit/s, against
PART_WIDTHS = (11, -6, -6, -5, -5, -5, -7, 28)

PART_NOTE = ("skbs, maps and their bytes on the wire: a MB of payload; Mbit/s: of CPU time; n: pairs. Sizes are counted, "
             "times of few pairs a hint.")


def block(ours):
    """The rows of the experiment, each part alone, then what its costs say; nothing if it was not run."""
    entries = [entry for entry in ours["experiments"] if entry["experiment"] == Mptcp.id]
    if not entries:
        return []
    first = entries[0]
    lines = [""]
    lines += both_ends("mptcp  writes of 16384 bytes over one subflow", f"era {first['era']}, "
                       f"{first['parameters']['alloc']}")
    lines += wrapped(f"claim  {first['claim']}", "       ")
    given = [entry for entry in entries if entry["parameters"]["form"] == Mptcp.form]
    if given:
        lines += row(["mtu", "wait", "variant", "ns/64KB", f"against {first['baseline']}", "verdict", "skb", "fill"],
                     WIDTHS)
        shown = set()
        for entry in given:
            lines += entry_rows(entry, shown)
        lines += wrapped(NOTE, "")
    lines += part_rows([entry for entry in entries if entry["parameters"]["form"] == Mptcp.saturated])
    return lines + kernel_lines() + (cost_lines(given) if given else [])


def sides(entry):
    """(side, value, report) of both sides of a cell."""
    return (("baseline", entry["baseline_value"], entry["report"]),
            ("variant", entry["variant_value"], entry.get("variant_report")))


def figure(report, key, form="{:.0f}", scale=1):
    return form.format(report[key] * scale) if report and key in report else "?"


def entry_rows(entry, shown):
    params = entry["parameters"]
    lines = []
    for side, value, report in sides(entry):
        if entry["cases"][side] in shown:
            continue
        shown.add(entry["cases"][side])
        against = verdict = ""
        if side == "variant":
            against, verdict = difference(entry["difference"]), judged(entry)
        lines += row([str(params["mtu"]), str(params["backlog"]), entry[side], with_interval(value), against, verdict,
                      figure(report, "skb_bytes"), figure(report, "goal_fill", "{:.1f}%", 100)], WIDTHS)
    return lines + cell_lines(entry, f"{entry['baseline']}'s CPU time")


def part_rows(entries):
    """Each part of the patch alone, and what came of it, where data never ends."""
    if not entries:
        return []
    keys = benchbin.split_name(entries[0]["case"])[1]
    lines = wrapped(f"each part alone, MTU {keys['mtu']}, data that never ends: {keys['sndbuf']} KB of send buffer, "
                    f"{keys['cwnd']} segments on their way", "")
    lines += row(["variant", "skb", "fill", "skbs", "maps", "bytes", "Mbit/s", f"ns/64KB against {entries[0]['baseline']}"],
                 PART_WIDTHS)
    shown = set()
    for entry in entries:
        for side, value, report in sides(entry):
            if entry["cases"][side] in shown:
                continue
            shown.add(entry["cases"][side])
            rate = number(mptcp_experiment.SIZE * 8e3 / value["median"]) if value and value["median"] else "?"
            against = ""
            if side == "variant":
                against = f"{change(entry)} n={entry['pairs']}" if entry["status"] == "ok" and entry["ratio"] is not None \
                    else "unmeasured"
            lines += row([entry[side], figure(report, "skb_bytes"), figure(report, "goal_fill", "{:.1f}%", 100),
                          figure(report, "skbs_per_mb", "{:.1f}"), figure(report, "maps_per_mb", "{:.1f}"),
                          figure(report, "map_bytes_per_mb"), rate, against], PART_WIDTHS)
        if why_not(entry):
            lines += wrapped(f"      {why_not(entry)}", "")
    return lines + wrapped(PART_NOTE, "")


def kernel_lines():
    """What sk_buffs a real kernel's sockets make of the same writes, as it is stored. What is not there or broken is told
    in a line: the run has been measured."""
    try:
        texts = [" and ".join(f"{oraclebudget.mean_skb_bytes(era, shape):.0f} (Linux {era})" for era in Mptcp.eras)
                 + f" bytes at MTU {mtu}" for mtu, shape in mptcp_experiment.KERNEL_SHAPES.items()]
    except (UserError, OSError, ValueError) as error:
        return wrapped(f"a kernel's sizes cannot stand here: {error}", "")
    return wrapped("a kernel's MPTCP sockets, same writes, full send buffer: skbs of " + ", ".join(texts), "")


def cost_lines(entries):
    """What an sk_buff and a byte cost here, beside what the claim implies."""
    mtu = Mptcp.mtus[0]
    found = mptcp_experiment.points([entry for entry in entries if entry["parameters"]["mtu"] == mtu])
    per_skb, per_byte = mptcp_experiment.claimed()
    claim = f"the claim implies {number(per_skb / 1000)} us and {per_byte:.3f} ns"
    costs = mptcp_experiment.fit(found)
    if costs is None:
        return wrapped(f"{claim} for an sk_buff and a byte; sizes here do not differ enough to say", "  ")
    off = f", at most {number(costs.off * 100)} % off" if len(found) > 1 else ""
    spread = f" ({costs.lowest:.3f} to {costs.highest:.3f})" if len(found) > 1 else ""
    text = (f"buffers and copies: {number(costs.per_skb)} ns an sk_buff and {costs.per_byte:.3f} ns a byte{spread}, "
            f"fitted over {plural(len(found), 'backlog')} at MTU {mtu}{off}; {claim}, if skbs were of just "
            f"{' and '.join(str(size) for size in mptcp_experiment.CLAIM_SKB_BYTES)} bytes: ")
    if costs.per_skb > 0:
        text += (f"buffers are {number(costs.per_skb / per_skb * 100)} % of what an sk_buff cost there, the rest lies "
                 "above and below them")
    else:
        text += "here an sk_buff more cannot be told from none"
    return wrapped(text, "  ")


def sizes(document):
    """Behind the suites that compare nothing: what sk_buffs each backlog became, by what of the patch was there."""
    found = {}
    for entry in document["benchmarks"]:
        operation, keys = benchbin.split_name(entry["name"])
        report = entry["skb"].get("report") or {}
        if operation == "mptcp/stream" and "skb_bytes" in report:
            size = (int(keys["mtu"]), int(keys["backlog"]))
            by_size = found.setdefault((keys["era"], keys["where"]), {}).setdefault(size, {})
            by_size.setdefault(keys["variant"], []).append(report["skb_bytes"])
    lines = []
    for (era, where), by_size in found.items():
        names = [name for name in (Mptcp.baseline, *Mptcp.variants) if any(name in row for row in by_size.values())]
        widths = (-5, -4, *(-max(len(name), 6) for name in names))
        lines += [""] + wrapped(f"mptcp/stream era:{era} where:{where}: bytes of an sk_buff")
        lines += row(["mtu", "wait", *names], widths)
        for (mtu, backlog), by_variant in sorted(by_size.items()):
            lines += row([str(mtu), str(backlog), *(f"{stats.median(by_variant[name]):.0f}" if name in by_variant else "-"
                                                    for name in names)], widths)
    return lines
