# SPDX-License-Identifier: MIT
"""What `run` prints of the mptcp experiment."""

from . import mptcp_experiment, stats
from .table import both_ends, difference, number, percent, plural, row, wide, with_interval, wrapped

# mtu, backlog, variant, ns/64KB, against, verdict, bytes of an sk_buff, share of the goal
WIDTHS = (-5, -4, 11, -11, 20, 12, -5, -4)


def block(ours):
    """The rows of the experiment, then what its costs say; nothing if it was not run."""
    entries = [entry for entry in ours["experiments"] if entry["experiment"] == mptcp_experiment.Mptcp.id]
    if not entries:
        return []
    first = entries[0]
    lines = [""]
    lines += both_ends("mptcp  writes of 16384 bytes over one subflow", f"era {first['era']}, "
                       f"{first['parameters']['alloc']}")
    lines += wrapped(f"claim  {first['claim']}", "       ")
    lines += row(["mtu", "wait", "variant", "ns/64KB", f"against {first['baseline']}", "verdict", "skb", "fill"],
                 WIDTHS)
    shown = set()
    for entry in entries:
        lines += entry_rows(entry, shown)
    lines += wrapped("wait: writes that wait when another one comes; CPU time of sender, receiver and both copies; skb: "
                     "bytes in one, of the size goal that follows from the MTU", "")
    return lines + cost_lines(entries)


def entry_rows(entry, shown):
    params = entry["parameters"]
    lines = []
    for side, value, report in (("baseline", entry["baseline_value"], entry["report"]),
                                ("variant", entry["variant_value"], entry.get("variant_report"))):
        if entry["cases"][side] in shown:
            continue
        shown.add(entry["cases"][side])
        against = verdict = ""
        if side == "variant":
            against = difference(entry["difference"])
            verdict = entry["verdict"] if entry["status"] == "ok" else "unmeasured"
        size, fill = ((f"{report['skb_bytes']:.0f}", f"{report['goal_fill'] * 100:.0f} %")
                      if report and "skb_bytes" in report else ("?", "?"))
        lines += row([str(params["mtu"]), str(params["backlog"]), entry[side], with_interval(value), against, verdict,
                      size, fill], WIDTHS)
    if entry["status"] != "ok":
        lines += wrapped(f"      {entry['reason']}", "")
    elif entry["ratio"] is None:
        lines += wrapped("      not measured: the run ended before its first pair", "")
    elif entry["lo"] is None:
        lines += wrapped(f"      {percent(entry['ratio'])} % of {entry['baseline']}'s time, "
                         f"{plural(entry['pairs'], 'pair')}: no interval below {stats.MIN_PAIRS}", "")
    else:
        lines += wrapped(f"      = {percent(entry['ratio'])} % [{percent(entry['lo'])}, {percent(entry['hi'])}] of "
                         f"{entry['baseline']}'s CPU time, {plural(entry['pairs'], 'pair')}{wide(entry)}", "")
    return lines


def cost_lines(entries):
    """What an sk_buff and a byte cost here, beside what the claim implies."""
    mtu = mptcp_experiment.Mptcp.mtus[0]
    pairs = mptcp_experiment.points([entry for entry in entries if entry["parameters"]["mtu"] == mtu])
    per_skb, per_byte = mptcp_experiment.claimed()
    claim = f"the claim implies {number(per_skb / 1000)} us and {per_byte:.3f} ns"
    fitted = mptcp_experiment.fit(pairs)
    if fitted is None:
        return wrapped(f"{claim} for an sk_buff and a byte; sizes here do not differ enough to say", "  ")
    # A line through two points leaves nothing over.
    off = f", at most {number(fitted[2] * 100)} % off" if len(pairs) > 2 else ""
    text = (f"buffers and copies: {number(fitted[0])} ns an sk_buff and {fitted[1]:.3f} ns a byte at MTU {mtu} "
            f"({len(pairs)} points{off}); {claim}, if skbs were of just "
            f"{' and '.join(str(size) for size in mptcp_experiment.CLAIM_SKB_BYTES)} bytes: ")
    if fitted[0] > 0:
        text += (f"buffers are {number(fitted[0] / per_skb * 100)} % of what an sk_buff cost there, the rest lies above "
                 "and below them")
    else:
        text += "here an sk_buff more cannot be told from none"
    return wrapped(text, "  ")
