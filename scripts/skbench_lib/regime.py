# SPDX-License-Identifier: MIT
"""`skbench regime`: the defer experiment point by point, over link rate, references a packet, place of the payload and
load of the softirq. Beside the measured ratio stands one that follows from three times of the baseline and the share of
packets that the variant frees in its softirq: what decides is which CPU, or the link, is the bottleneck before and after.
"""

import math
import random
import sys

from . import benchbin, duet, files, fingerprint, options, run, stats, table
from .errors import FAILED, INCONCLUSIVE, INTERRUPTED, OK, UserError

PAIRS, PROBES = 9, 5
BUDGET_S = 300.0
AGREE = 0.10
POINTS = ("shape:mtu4096/rate:40", "shape:mtu4096/rate:100", "shape:mtu4096/rate:200", "shape:mtu4096/rate:200/payload:dram",
          "shape:mtu4096/rate:200/load:100", "shape:header/rate:100", "shape:header/rate:100/payload:dram",
          "shape:head_frag/rate:100/payload:dram", "shape:big/rate:200", "shape:header/rate:100/load:100")


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
    parser.add_argument("--budget", metavar="SECONDS", help="time for measuring (300)")
    parser.add_argument("--seed", metavar="N", help="of the order of pairs (default: random)")
    parser.add_argument("--json", metavar="FILE", help="the points as JSON; - for standard output")
    parser.set_defaults(func=main)


def case(variant, point, memory):
    return f"tcp/defer/variant:{variant}/{point}/{memory}"


def predict(reader, softirq, wire, locked, moved):
    """us a packet before and after, and the ratio after over before.

    READER and SOFTIRQ are what a packet costs each of them in the baseline, WIRE the link's time for it, LOCKED the part of
    READER that frees under the lock, MOVED the share of packets that the softirq frees afterwards.
    """
    before = max(reader, softirq, wire)
    after = max(reader - moved * locked, softirq + moved * locked, wire)
    return before, after, after / before


def moved_share(answers):
    """The share of packets that the softirq freed, over all answers."""
    report = [answer["report"] for answer in answers]
    freed = sum(r["free_softirq"] for r in report)
    total = sum(r[key] for r in report for key in ("free_softirq", "free_reader", "free_locked_last", "free_locked_flush",
                                                   "free_locked_other"))
    return freed / total if total else 0.0


def roles_us(answers):
    """(reader, softirq): the median of their busy time, us a packet."""
    def median(name):
        values = []
        for answer in answers:
            packets = answer["bytes_per_op"] / answer["report"]["packet_bytes"]
            values += [role["busy_p33"] / packets / 1000 for role in answer["roles"] if role["name"] == name]
        return stats.median(values)
    return median("reader"), median("softirq")


def point_entry(cell, probes):
    """What is told of one point."""
    entry = {"point": cell.key, "status": cell.status, "reason": cell.reason, "pairs": len(cell.pairs),
             "measured": None, "lo": None, "hi": None, "predicted": None, "agrees": None}
    if cell.pairs:
        interval = cell.interval()
        entry["measured"] = math.exp(stats.median(cell.log_ratios()))
        if interval:
            entry["lo"], entry["hi"] = math.exp(interval[0]), math.exp(interval[1])
    if cell.pairs and probes:
        reader, softirq = roles_us([pair.a for pair in cell.pairs])
        wire = cell.pairs[0].a["report"]["wire_us"]
        locked = stats.median([answer["report"]["free_locked_us"] for answer in probes])
        moved = moved_share([pair.b for pair in cell.pairs])
        before, after, ratio = predict(reader, softirq, wire, locked, moved)
        entry.update(reader_us=reader, softirq_us=softirq, wire_us=wire, free_locked_us=locked, moved=moved,
                     predicted_before_us=before, predicted_after_us=after, predicted=ratio,
                     agrees=abs(ratio / entry["measured"] - 1) <= AGREE)
    return entry


# point, reader, softirq, wire, freed under the lock, moved, measured, predicted
WIDTHS = (-7, -8, -6, -7, -6, -18, -10)


def render(variant, memory, entries):
    lines = [f"defer  {variant} over inline, {memory}, us a packet of the baseline"]
    lines += table.row(["reader", "softirq", "wire", "locked", "moved", "measured", "predicted"], WIDTHS)
    for entry in entries:
        lines.append(f"  {entry['point']}")
        if entry["predicted"] is None:
            lines += table.wrapped(f"      unmeasured: {entry['reason'] or 'the budget ended before it'}", "      ")
            continue
        span = f" [{entry['lo']:.3f},{entry['hi']:.3f}]" if entry["lo"] else ""
        lines += table.row([f"{entry[key]:.2f}" for key in ("reader_us", "softirq_us", "wire_us", "free_locked_us", "moved")]
                           + [f"{entry['measured']:.3f}{span}", f"{entry['predicted']:.3f}{'' if entry['agrees'] else ' !'}"],
                           WIDTHS)
    return lines + ["! : more than 10 % apart"]


def measure(cells, probes, seed, budget_s):
    """Pairs for CELLS, then a few probes of each baseline. The engine of the pairs."""
    engine = duet.Duet(cells, random.Random(seed), budget_s=budget_s * 0.8)
    engine.run()
    survey = duet.Survey(probes, random.Random(seed), lambda cell: 1, budget_s=budget_s * 0.2)
    if not engine.interrupted and not engine.failure:
        survey.run()
    engine.interrupted |= survey.interrupted
    engine.failure = engine.failure or survey.failure
    return engine


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
    cells = [duet.Cell(point, duet.Side(plain, case("inline", point, memory), "inline"),
                       duet.Side(plain, case(variant, point, memory), variant), 1, max_pairs=PAIRS) for point in chosen]
    probes = [duet.SurveyCell(duet.Side(probe, case("inline", point, memory), "single"), PROBES) for point in chosen]
    with run.stoppable():
        engine = measure(cells, probes, seed, budget_s)
    entries = [point_entry(cell, [answer for answer, _ in taken.samples]) for cell, taken in zip(cells, probes)]
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
