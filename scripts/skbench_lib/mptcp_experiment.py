# SPDX-License-Identifier: MIT
"""The mptcp experiment: its cells, and what its costs say about the published claim."""

# The claim: netperf over loopback, one run a side, so that there is no interval around it.
CLAIM_MBIT = (24414.86, 28357.69)
CLAIM_SKB_BYTES = (32728, 65160)  # what sk_buffs hold before and after if data never ends
SIZE = 65536


class Mptcp:
    """A stream of netperf's writes over one subflow of a loopback, before the patch and with it or a part of it."""

    id = "mptcp"
    form = "stream"
    binary = "bench_mptcp"
    claim = "24414.86 to 28357.69 Mbit/s, netperf over loopback; one run a side, no interval"
    source = "mptcp: let MPTCP create max size skbs, patch posted in 2020"
    baseline = "before"
    variants = ("merged", "posted", "split_fixed", "size_bias", "psh", "split")
    eras = ("6.1", "6.12")  # no kernel before has MPTCP
    metric = "cpu_ns_per_64KB"
    unit = "ns/64KB"
    better = "lower"
    backlogs = (0, 3, 15, 63)
    mtus = (65536, 1500, 9000)
    ablation = 15  # the backlog at which every part is compared

    @staticmethod
    def case(era, variant, parameters):
        return (f"mptcp/stream/era:{era}/variant:{variant}/mtu:{parameters['mtu']}/backlog:{parameters['backlog']}/"
                f"where:msk/alloc:{parameters['alloc']}")

    @classmethod
    def grid(cls, frags, cpus, everything):
        """Parameters of the cells; none if sk_buffs of one number of FRAGS are asked for, which these have not."""
        if frags is not None:
            return []
        sizes = [(mtu, backlog) for mtu in cls.mtus for backlog in cls.backlogs] if everything else \
            [(cls.mtus[0], cls.ablation)]
        return [{"form": cls.form, "mtu": mtu, "backlog": backlog, "alloc": "slub"} for mtu, backlog in sizes]

    @classmethod
    def wanted(cls, variant, parameters, everything):
        """What became of the patch is compared at each size, the posted form and the parts at one."""
        return variant == "merged" or everything and parameters["mtu"] == cls.mtus[0] and \
            parameters["backlog"] == cls.ablation


def claimed():
    """ns for each sk_buff and for each byte that the claim implies, if sk_buffs had just those sizes."""
    costs = [size * 8 / mbit * 1000 for size, mbit in zip(CLAIM_SKB_BYTES, CLAIM_MBIT)]
    per_byte = (costs[1] - costs[0]) / (CLAIM_SKB_BYTES[1] - CLAIM_SKB_BYTES[0])
    return costs[0] - per_byte * CLAIM_SKB_BYTES[0], per_byte


def points(experiments):
    """(sk_buffs, ns) for 64 KB of each side of EXPERIMENTS that was measured."""
    found = {}
    for entry in experiments:
        for side, value, report in (("baseline", entry["baseline_value"], entry["report"]),
                                    ("variant", entry["variant_value"], entry.get("variant_report"))):
            if value is not None and report and "skbs_per_mb" in report:
                found.setdefault(entry["cases"][side], (report["skbs_per_mb"] * SIZE / 1e6, value["median"]))
    return list(found.values())


def fit(pairs):
    """Least squares of ns = a * sk_buffs + b * bytes over (sk_buffs, ns) for 64 KB.

    Returns a, b and the largest residual as a share of its point; None where sizes do not differ by a tenth.
    """
    if len(pairs) < 2 or max(x for x, _ in pairs) < 1.1 * min(x for x, _ in pairs):
        return None
    mean_x = sum(x for x, _ in pairs) / len(pairs)
    mean_y = sum(y for _, y in pairs) / len(pairs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / sum((x - mean_x) ** 2 for x, _ in pairs)
    level = mean_y - slope * mean_x
    return slope, level / SIZE, max(abs(level + slope * x - y) / y for x, y in pairs)
