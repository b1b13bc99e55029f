# SPDX-License-Identifier: MIT
"""The mptcp experiment: its cells, and what its costs say about the published claim."""

# The claim: netperf over loopback, one run a side, so that there is no interval around it.
CLAIM_MBIT = (24414.86, 28357.69)
CLAIM_SKB_BYTES = (32728, 65160)  # what sk_buffs hold before and after if data never ends
SIZE = 65536


FEW = 12  # pairs of a cell that stands beside the main one: enough for an interval, not for a narrow one
TWO_SKBS = {1500: 90, 9000: 14, 65536: 2}  # segments that two full sk_buffs are, by MTU
# Shapes of `oracle --budget` in which a kernel's own MPTCP sockets make the same writes with a full send buffer, by MTU.
KERNEL_SHAPES = {65536: "mptcp-16k", 1500: "mptcp-16k-mtu1500"}
# What --suite full takes of this operation beside its default cases.
SIZES = {"mptcp/stream": {"mtu": (1500, 9000, 65536), "backlog": (0, 3, 15, 63, 254)}}


class Mptcp:
    """A stream of netperf's writes over one subflow, before the patch and with it or a part of it.

    stream: a backlog that is given; saturated: the one that a full send buffer makes, where each part is shown alone.
    """

    id = "mptcp"
    form = "stream"
    saturated = "saturated"
    binary = "bench_mptcp"
    claim = "24414.86 to 28357.69 Mbit/s, netperf over loopback; one run a side, no interval"
    source = "mptcp: let MPTCP create max size skbs, patch posted in 2020"
    baseline = "before"
    variants = ("merged", "size_bias", "psh", "split", "posted", "split_fixed")
    eras = ("6.1", "6.12")  # no kernel before has MPTCP
    metric = "cpu_ns_per_64KB"
    unit = "ns/64KB"
    better = "lower"
    mtus = (65536, 1500, 9000)
    main = 15  # the backlog that gets as many pairs as time allows
    backlogs = (0, 3, main, 63)
    sndbuf_kb = 512

    @classmethod
    def case(cls, era, variant, parameters):
        mtu = parameters["mtu"]
        start = f"mptcp/{parameters['form']}/era:{era}/variant:{variant}/mtu:{mtu}"
        how = f"cwnd:{TWO_SKBS[mtu]}/sndbuf:{cls.sndbuf_kb}" if parameters["form"] == cls.saturated else \
            f"backlog:{parameters['backlog']}/where:msk"
        return f"{start}/{how}/alloc:{parameters['alloc']}"

    @classmethod
    def grid(cls, frags, cpus, everything):
        """Parameters of the cells; none if sk_buffs of one number of FRAGS are asked for, which these have not."""
        if frags is not None:
            return []
        mtus, backlogs = (cls.mtus, SIZES["mptcp/stream"]["backlog"]) if everything else (cls.mtus[:1], cls.backlogs)
        cells = [{"form": cls.form, "mtu": mtu, "backlog": backlog, "alloc": "slub"}
                 for mtu in mtus for backlog in backlogs]
        return cells + [{"form": cls.saturated, "mtu": cls.mtus[0], "alloc": "slub"}]

    @classmethod
    def wanted(cls, variant, parameters, everything):
        """What became of the patch is compared everywhere, the posted form and the parts where data never ends."""
        return variant == "merged" or parameters["form"] == cls.saturated

    @classmethod
    def most_pairs(cls, parameters, everything):
        return None if everything or parameters.get("backlog") == cls.main else FEW


def claimed():
    """ns for each sk_buff and for each byte that the claim implies, if sk_buffs had just those sizes."""
    costs = [size * 8 / mbit * 1000 for size, mbit in zip(CLAIM_SKB_BYTES, CLAIM_MBIT)]
    per_byte = (costs[1] - costs[0]) / (CLAIM_SKB_BYTES[1] - CLAIM_SKB_BYTES[0])
    return costs[0] - per_byte * CLAIM_SKB_BYTES[0], per_byte


def points(experiments):
    """[(sk_buffs, their number less than before, ns, ns less than before, pairs)] for 64 KB, of each of EXPERIMENTS
    that was measured: what is before is the baseline."""
    found = []
    for entry in experiments:
        reports = entry["report"], entry.get("variant_report")
        if entry["difference"] is None or entry["baseline_value"] is None or \
                not all(report and "skbs_per_mb" in report for report in reports):
            continue
        before, after = (report["skbs_per_mb"] * SIZE / 1e6 for report in reports)
        found.append((before, before - after, entry["baseline_value"]["median"], -entry["difference"]["median"],
                      entry["pairs"]))
    return found


class Costs:
    """per_skb: ns; per_byte, lowest and highest: ns of a byte, over all points and at the cheapest and dearest of them;
    off: the largest share of a point's ns that its difference is off."""

    def __init__(self, per_skb, per_byte, off):
        self.per_skb, self.off = per_skb, off
        self.per_byte, self.lowest, self.highest = sum(per_byte) / len(per_byte), min(per_byte), max(per_byte)


def fit(found):
    """Least squares of ns = sk_buffs * per_skb + bytes * per_byte over points().

    What an sk_buff costs comes from the differences of pairs alone, weighted by their number: what a larger backlog
    costs in the caches is the same on both sides of a pair, and would else count as a property of sizes. None where no
    two sides differ by a tenth of their sk_buffs.
    """
    if not any(abs(fewer) > 0.1 * before for before, fewer, _, _, _ in found):
        return None
    per_skb = sum(pairs * fewer * less for _, fewer, _, less, pairs in found) / \
        sum(pairs * fewer ** 2 for _, fewer, _, _, pairs in found)
    return Costs(per_skb, [(ns - per_skb * before) / SIZE for before, _, ns, _, _ in found],
                 max(abs(less - per_skb * fewer) / ns for _, fewer, ns, less, _ in found))
