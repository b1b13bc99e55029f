# SPDX-License-Identifier: MIT
"""The defer experiment: where a reader lets go of what it has read (docs/defer.md)."""

from . import benchbin, stats

SHAPES = ("header", "head_frag", "mtu4096", "big")


class Defer:
    """One TCP stream from a NIC's ring to a reader, a softirq and a reader on a CPU each."""

    id = "defer"
    form = "pipeline"
    binary = "bench_tcp"
    claim = ("9.48 to 7.90 us per 65160 B at MTU 1500 (55 to 66 Gbit/s), 5.99 to 5.17 us per 61440 B at MTU 4096 (82 to "
             "95 Gbit/s); maxima of 10 runs, one TCP_STREAM on 100 Gbit/s")
    source = "tcp: defer skb freeing after socket lock is released, 2021 (5.17)"
    baseline = "inline"
    eras = ("6.1", "6.12")
    variants = ("sk_llist", "cpu_list", "node_llist")
    default_variants = ("sk_llist",)
    shapes = ("header", "mtu4096")
    metric = "wall_ns_per_64KB"
    unit = "ns/64KB"
    better = "lower"
    rate = 100

    @classmethod
    def case(cls, era, variant, parameters):
        return (f"tcp/defer/era:{era}/variant:{variant}/shape:{parameters['shape']}/rate:{cls.rate}/"
                f"payload:{parameters['payload']}/load:0/mode:stream/read_size:131072/window:1024/cpus:two/reader:steady/"
                f"alloc:{parameters['alloc']}")

    @classmethod
    def grid(cls, frags, cpus, everything):
        if frags is not None or cpus < 2:
            return []
        shapes, payloads = (SHAPES, ("llc", "dram")) if everything else (cls.shapes, ("llc",))
        return [{"form": cls.form, "shape": shape, "payload": payload, "alloc": "slub"}
                for payload in payloads for shape in shapes]

    @classmethod
    def wanted(cls, variant, parameters, everything):
        """The patch itself; what followed it on request."""
        return everything or variant in cls.default_variants

    @staticmethod
    def most_pairs(parameters, everything):
        return None


def medians(answers):
    """Of each number of the answers' reports; None without one."""
    reports = [answer["report"] for answer in answers if answer.get("report")]
    if not reports:
        return None
    return {key: stats.median([report[key] for report in reports]) for key in reports[0]}


def gbit(ns_per_64kb):
    return benchbin.KB64 * 8 / ns_per_64kb


def throughput(entry):
    """The same as Gbit/s of payload, with the best process of each side; None without a value."""
    told = []
    for side in ("baseline", "variant"):
        value, least = entry.get(f"{side}_value"), entry.get(f"{side}_least")
        if not value or not least:
            return None
        span = f" [{gbit(value['hi']):.1f}, {gbit(value['lo']):.1f}]" if value["lo"] is not None else ""
        told.append(f"{entry[side]} {gbit(value['median']):.1f}{span}, best {gbit(least):.1f}")
    return f"Gbit/s: {'; '.join(told)}"


def packet_ns(value, report):
    """VALUE, {"median", "lo", "hi", "n"} in ns per 64 KB, as ns a packet; None if that cannot be told."""
    if not value or not (report or {}).get("packet_bytes"):
        return None
    scale = report["packet_bytes"] / benchbin.KB64
    return {key: number if key == "n" or number is None else number * scale for key, number in value.items()}


def packet_us(value, report):
    """The same in us."""
    value = packet_ns(value, report)
    return value and {key: number if key == "n" or number is None else number / 1000 for key, number in value.items()}
