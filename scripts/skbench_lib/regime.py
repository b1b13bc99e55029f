# SPDX-License-Identifier: MIT
"""`skbench regime`: the defer experiment point by point, over link rate, references a packet, place of the payload and
load of the softirq. Beside the measured ratio stands one that follows from what a packet costs each role and the link: what
decides is which of them is the bottleneck before and after.

Two kinds of pairs: bench_tcp's give the ratio, and bench_tcp_probe's, the same program with a clock around copying and
freeing, what the prediction needs.
"""

import math
import random
import sys

from . import benchbin, duet, files, fingerprint, options, run, stats, table
from .errors import FAILED, INCONCLUSIVE, INTERRUPTED, OK, UserError

PAIRS = 40  # of a point, at most, and as many of its probe
BUDGET_S = 420.0
AGREE = 0.10
POINTS = ("shape:mtu4096/rate:40", "shape:mtu4096/rate:100", "shape:mtu4096/rate:200", "shape:mtu4096/rate:200/payload:dram",
          "shape:mtu4096/rate:200/load:100", "shape:header/rate:100", "shape:header/rate:100/payload:dram",
          "shape:head_frag/rate:100/payload:dram", "shape:big/rate:200", "shape:header/rate:100/load:100",
          "shape:mtu4096/rate:200/payload:dram/load:50", "shape:mtu4096/rate:200/payload:dram/load:100",
          "shape:head_frag/rate:100/payload:dram/load:25", "shape:header/rate:100/mode:rpc", "shape:mtu4096/rate:100/mode:rpc")
READER_PARTS = ("copy_us", "free_locked_us", "free_reader_us", "backlog_us")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "regime", help="where deferred freeing pays: measured and predicted ratios",
        description="Measures tcp/defer at points of link rate, shape, payload and load, and sets each ratio beside the "
                    "one that the bottlenecks predict. docs/defer.md tells how to read it.")
    parser.add_argument("--variant", default="sk_llist", metavar="V", help="against inline: sk_llist (default), cpu_list "
                                                                           "or node_llist")
    parser.add_argument("--alloc", default="slub", metavar="A", help="of sk_buffs and heads: slub (default) or jemalloc")
    parser.add_argument("--pages", default="plain", metavar="P", help="of the ring: plain (default), or pool, a page_pool's")
    parser.add_argument("--filter", metavar="RE", help="only points that match, as in mtu4096/rate:200")
    parser.add_argument("--budget", metavar="SECONDS", help="time for measuring (420)")
    parser.add_argument("--seed", metavar="N", help="of the order of pairs (default: random)")
    parser.add_argument("--json", metavar="FILE", help="the points as JSON; - for standard output")
    parser.set_defaults(func=main)


def case(variant, point, memory):
    return f"tcp/defer/variant:{variant}/{point}/{memory}"


def predict(before, after, rpc=False):
    """The ratio of a packet's time, variant over inline, as the bottlenecks have it.

    BEFORE and AFTER are reports of bench_tcp_probe. The reader's time changes by what it frees, what its copy then costs
    and what it handles of the backlog, and by nothing else; the softirq's is what it then uses of its CPU, since pages and
    heads come to it as warm or as cold as others left them; the link's stays. The slowest of the three is the throughput.
    A request and its response (RPC) go through them one after the other, but for what the reader frees: the sender has
    been told before that it may go on.
    """
    wire = before["wire_us"]
    reader = before["reader_us"] + sum(after[key] - before[key] for key in READER_PARTS)
    if rpc:
        was, then = (sum(side[key] for key in ("free_locked_us", "free_reader_us")) for side in (before, after))
        return (reader - then + after["softirq_us"] + wire) / (before["reader_us"] - was + before["softirq_us"] + wire)
    return max(reader, after["softirq_us"], wire) / max(before["reader_us"], before["softirq_us"], wire)


def moved_share(reports):
    """The share of packets that the softirq freed, over all reports."""
    freed = sum(r["free_softirq"] for r in reports)
    total = sum(r[key] for r in reports for key in ("free_softirq", "free_reader", "free_locked_last", "free_locked_flush",
                                                    "free_locked_other"))
    return freed / total if total else 0.0


def side_entry(reports):
    """Medians of what is told of one side of a point, and the share that its softirq freed."""
    return {**{key: stats.median([r[key] for r in reports]) for key in TOLD}, "moved": moved_share(reports)}


def point_entry(cell, probe):
    """What is told of one point: the pairs of CELL, and those of the probe."""
    entry = {"point": cell.key, "status": cell.status, "reason": cell.reason, "pairs": len(cell.pairs),
             "probe_pairs": len(probe.pairs), "measured": None, "lo": None, "hi": None, "verdict": None, "inline": None,
             "variant": None, "predicted": None, "agrees": None}
    if cell.pairs:
        interval = cell.interval()
        entry.update(measured=math.exp(stats.median(cell.log_ratios())), verdict=cell.verdict())
        if interval:
            entry["lo"], entry["hi"] = math.exp(interval[0]), math.exp(interval[1])
    if probe.pairs:
        both = [(pair.a["report"], pair.b["report"]) for pair in probe.pairs]
        entry["inline"], entry["variant"] = (side_entry(side) for side in zip(*both))
        entry["predicted"] = math.exp(stats.median([math.log(predict(a, b, "mode:rpc" in cell.key)) for a, b in both]))
    if entry["measured"] and entry["predicted"]:
        entry["agrees"] = abs(entry["predicted"] / entry["measured"] - 1) <= AGREE
    return entry


# side; of the reader: all, copy, freed under the lock and without, backlog; of the softirq: all, freed, delivery; link; moved
WIDTHS = (11, -6, -5, -6, -5, -7, -7, -5, -7, -5, -5)
TOLD = ("reader_us", "copy_us", "free_locked_us", "free_reader_us", "backlog_us", "softirq_us", "free_softirq_us", "deliver_us",
        "wire_us")


def render(variant, memory, entries):
    lines = [f"defer  {variant} over inline, {memory}", "",
             "us a packet: of the reader, of that to copy, to free under the lock and",
             "without it, and for the backlog; of the softirq, of that to free and to",
             "deliver; of the link. moved: the share of packets that the softirq freed",
             "", *table.row(["", "reader", "copy", "locked", "free", "backlog", "softirq", "free", "deliver", "wire", "moved"],
                            WIDTHS)]
    for entry in entries:
        lines.append(entry["point"])
        if entry["measured"] is None:
            lines += table.wrapped(f"  unmeasured: {entry['reason'] or 'the budget ended before it'}", "  ")
            continue
        for name, side in (("inline", entry["inline"]), (variant, entry["variant"])):
            if side:
                lines += table.row([f" {name}", *(f"{side[key]:.2f}" for key in TOLD), f"{side['moved']:.2f}"], WIDTHS)
        span = f" [{entry['lo']:.3f}, {entry['hi']:.3f}]" if entry["lo"] else ""
        guess = "not predicted: the budget ended before it" if entry["predicted"] is None else \
            f"predicted {entry['predicted']:.3f}" + ("" if entry["agrees"] else " !")
        lines += table.wrapped(f"  {entry['measured']:.3f}{span} {entry['verdict']}, {guess}", "  ")
    agree = [entry for entry in entries if entry["agrees"]]
    lines += ["", f"{len(agree)} of {table.plural(len(entries), 'point')} within {AGREE * 100:g} % of the prediction; ! : not"]
    return lines


def follow(cells, probes):
    """For an engine: a probe ends with its cell. Processes are of two or three kinds by the minute, where a hypervisor
    moves CPUs about, and both medians are to be of the same minutes."""
    def after_turn(engine):
        for cell, probe in zip(cells, probes):
            if cell.stopped and len(probe.pairs) >= len(cell.pairs):
                probe.stopped = probe.stopped or cell.stopped
    return after_turn


def pairs_of(binary, point, variant, memory, **how):
    return duet.Cell(point, duet.Side(binary, case("inline", point, memory), "inline"),
                     duet.Side(binary, case(variant, point, memory), variant), 1, max_pairs=PAIRS, **how)


def main(args):
    variant = options.one_of(args.variant, "--variant", ("sk_llist", "cpu_list", "node_llist"))
    chosen = [point for point in POINTS if options.expression(args.filter).search(point)]
    if not chosen:
        raise UserError(f"no point matches --filter {args.filter}: {', '.join(POINTS)}")
    alloc = options.one_of(args.alloc, "--alloc", ("slub", "jemalloc"))
    memory = f"pages:{options.one_of(args.pages, '--pages', ('plain', 'pool'))}/alloc:{alloc}"
    budget_s = BUDGET_S if args.budget is None else options.seconds(args.budget)
    seed = run.seed_from(args.seed)
    directory = run.bench_directory()
    plain, probe = run.need(directory, "bench_tcp"), run.need(directory, "bench_tcp_probe")
    cells = [pairs_of(plain, point, variant, memory) for point in chosen]
    probes = [pairs_of(probe, point, variant, memory, target=0.0) for point in chosen]
    with run.stoppable():
        engine = duet.Duet([cell for two in zip(cells, probes) for cell in two], random.Random(seed), budget_s=budget_s,
                           progress=follow(cells, probes))
        engine.run()
    entries = [point_entry(cell, other) for cell, other in zip(cells, probes)]
    if engine.failure:
        sys.stderr.write(f"skbench: {engine.failure}\n")
    out = files.text_stream(args.json)
    out.write("\n".join(render(variant, memory, entries)) + "\n")
    if args.json is not None:
        files.write_json(args.json, {"schema": "skbench-regime-1", "variant": variant, "memory": memory, "seed": seed,
                                     "fingerprint": fingerprint.take(plain.context())["fp8"], "points": entries})
    if engine.interrupted:
        return INTERRUPTED
    if engine.failure:
        return FAILED
    return OK if all(entry["agrees"] for entry in entries) else INCONCLUSIVE
