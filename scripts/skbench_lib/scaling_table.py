# SPDX-License-Identifier: MIT
"""context.skbench.scaling in words: a block for each case, a row for each number of threads."""

from . import benchbin
from .table import number, row, with_interval, wrapped

# threads, CPUs, Mops/s, CPU ns an operation, efficiency, mark
WIDTHS = (-8, -5, -18, -18, -11, 16)


def scaled(summary, factor):
    return None if summary is None else {key: value if key == "n" or value is None else value * factor
                                         for key, value in summary.items()}


def lines(entries):
    """The blocks of ENTRIES; nothing for none."""
    found = []
    for entry in entries:
        found += [""] + block(entry)
    if entries:
        found += [""] + wrapped("ns/op: CPU time of all roles for one operation. Efficiency: throughput a thread, of what "
                                "the first point has. sigma: the share that only one thread does at a time; kappa: what "
                                "each pair costs to agree (universal scalability law).", "")
    return found


def block(entry):
    operation, keys = benchbin.split_name(entry["case"])
    shown = " ".join(f"{key}:{value}" for key, value in keys.items())
    found = wrapped(f"scaling  {operation} {shown}".rstrip(), "         ")
    found += row(["threads", "CPUs", "Mops/s", "ns/op", "efficiency", ""], WIDTHS)
    for point in entry["points"]:
        if point["ops_per_s"] is None:
            found += wrapped(f"{point['threads']:>8}       unmeasured: {point['reason']}", "")
            continue
        efficiency = "" if point["efficiency"] is None else number(point["efficiency"])
        found += row([str(point["threads"]), str(point["cpus"]), with_interval(scaled(point["ops_per_s"], 1e-6)),
                      with_interval(point["cpu_ns_per_op"]), efficiency,
                      "oversubscribed" if point["oversubscribed"] else ""], WIDTHS)
    return found + fit_lines(entry)


def parameter(name, value):
    if value["lo"] is None:
        return f"{name} {number(value['value'])}"
    return f"{name} {number(value['value'])} [{number(value['lo'])}, {number(value['hi'])}]"


def fit_lines(entry):
    fitted = entry["fit"]
    if fitted is None:
        return wrapped(f"law none: {entry['fit_reason']}", "    ")
    peak = fitted["peak_threads"]
    text = (f"law {parameter('sigma', fitted['sigma'])} {parameter('kappa', fitted['kappa'])} "
            f"{fitted['points']} points, off by at most {number(fitted['worst_error'] * 100)} %; "
            + ("never falls" if peak is None else f"falls beyond {number(peak)} threads"))
    return wrapped(text, "    ")
