# SPDX-License-Identifier: MIT
"""CPUs, caches and NUMA nodes of this machine, and what can and cannot be measured on it."""

import os
import re
import shutil

from . import benchbin, run
from .errors import IMPOSSIBLE, OK, UserError
from .files import text_stream, write_json
from .fingerprint import Missing, Reader, allowed_cpus, caches, cpu_list

CPU = "/sys/devices/system/cpu"
NODE = "/sys/devices/system/node"
HARDWARE_PMU = re.compile(r"cpu|cpu_core|cpu_atom|armv\d.*")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "topology", help="CPUs, caches, nodes, and what can and cannot be measured here",
        description="Shows the CPUs, caches and NUMA nodes of this machine, and what can be measured on it.")
    parser.add_argument("--latency", action="store_true",
                        help="also measure how long a cache line takes between each two CPUs (builds what is needed)")
    parser.add_argument("--cpus", metavar="LIST", help="with --latency: only these CPUs, as in 0,2-3")
    parser.add_argument("--json", metavar="FILE", help="write one JSON object to FILE (- for standard output)")
    parser.set_defaults(func=main)


def main(args):
    if args.cpus and not args.latency:
        raise UserError("--cpus chooses what --latency measures: give both")
    machine = read(Reader())
    if args.latency:
        machine["latency"] = latency(run.cpus_from(args.cpus))
    out = text_stream(args.json)
    for line in lines(machine):
        print(line, file=out)
    if args.json:
        write_json(args.json, {"command": "topology", **machine, "status": OK})
    return OK


def numbers(text):
    """"0-2,5" as [0, 1, 2, 5]."""
    found = []
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def told(read_it, *args):
    """READ_IT(*ARGS), or None where the kernel does not tell."""
    try:
        return read_it(*args)
    except (Missing, ValueError):
        return None


def read(reader, allowed=None):
    """Everything that topology shows: {"cpus", "caches", "nodes", "abilities", ...}. ALLOWED: CPUs, default ours."""
    allowed = allowed_cpus() if allowed is None else allowed
    online = told(lambda: numbers(reader.text(f"{CPU}/online"))) or allowed
    cpus = [{"cpu": cpu, "allowed": cpu in allowed,
             "package": told(lambda: int(reader.text(f"{CPU}/cpu{cpu}/topology/physical_package_id"))),
             "core": told(lambda: int(reader.text(f"{CPU}/cpu{cpu}/topology/core_id"))),
             "siblings": told(lambda: numbers(reader.text(f"{CPU}/cpu{cpu}/topology/thread_siblings_list")))}
            for cpu in online]
    nodes = []
    for name in told(reader.names, NODE) or []:
        if re.fullmatch(r"node\d+", name):
            size = re.search(r"MemTotal:\s*(\d+) kB", told(reader.text, f"{NODE}/{name}/meminfo") or "")
            nodes.append({"node": int(name[4:]),
                          "cpus": told(lambda: numbers(reader.text(f"{NODE}/{name}/cpulist"))),
                          "memory_kb": int(size.group(1)) if size else None,
                          "distances": told(lambda: [int(word) for word in
                                                     reader.text(f"{NODE}/{name}/distance").split()])})
    machine = {"name": told(reader.cpuinfo, "model name", "Model"), "allowed": allowed, "cpus": cpus,
               "caches": caches(reader), "nodes": sorted(nodes, key=lambda node: node["node"]),
               "smt": told(reader.text, f"{CPU}/smt/control"),
               "pmu": [name for name in told(reader.names, "/sys/bus/event_source/devices") or []
                       if HARDWARE_PMU.fullmatch(name)],
               "perf_event_paranoid": told(lambda: int(reader.text("/proc/sys/kernel/perf_event_paranoid"))),
               "governor": told(reader.text, f"{CPU}/cpu{allowed[0]}/cpufreq/scaling_governor"),
               "huge_pages": told(reader.meminfo, "HugePages_Total"),
               "hypervisor": bool(re.search(r"^flags\s*:.*\bhypervisor\b", told(reader.text, "/proc/cpuinfo") or "",
                                            re.MULTILINE)),
               "iommu_groups": len(told(reader.names, "/sys/kernel/iommu_groups") or [])}
    machine["abilities"] = abilities(machine)
    return machine


def latency(cpus):
    """[{"a", "b", "p10", "p50", "p90"}], ns one way between each two of CPUS (None: all that are allowed)."""
    binary = next(iter(run.bench_binaries(run.bench_directory()).values()))
    try:
        return binary.latency(cpus)
    except benchbin.NotPossible as reason:
        raise UserError(str(reason), IMPOSSIBLE) from None


def matrix(pairs):
    """The lines of a table of all pairs: the median, one row and one column a CPU, in as many blocks as 80 columns need."""
    cpus = sorted({pair["a"] for pair in pairs} | {pair["b"] for pair in pairs})
    ns = {(pair["a"], pair["b"]): pair["p50"] for pair in pairs}
    ns.update({(b, a): value for (a, b), value in list(ns.items())})
    yield "a cache line from CPU to CPU, ns one way (median of 51 rounds)"
    for start in range(0, len(cpus), 12):
        columns = cpus[start:start + 12]
        yield "CPU   " + "".join(f"{cpu:>6}" for cpu in columns)
        for cpu in cpus:
            yield f"{cpu:>4}  " + "".join(f"{ns[cpu, other]:6.0f}" if cpu != other else f"{'-':>6}"
                                          for other in columns)


def abilities(machine):
    """[{"what", "can", "text"}]: one sentence each; for what cannot be done here it names the remedy."""
    found = []

    def say(what, can, yes, no):
        found.append({"what": what, "can": can, "text": yes if can else no})

    allowed = len(machine["allowed"])
    say("ledger", True, "exact counts of operations: on any machine", None)
    say("instructions", shutil.which("valgrind") is not None, "callgrind counts them",
        "valgrind is not installed: scripts/install-packages test")
    say("contention", allowed >= 2, f"up to {allowed} roles at once, each on a CPU of its own",
        "one CPU: an operation's cost between CPUs cannot be shown; allow this process at least 2 CPUs")
    say("numa", len(machine["nodes"]) >= 2, f"{len(machine['nodes'])} nodes: memory can be placed on each",
        "one node: nothing can be placed on a remote one; use a machine with 2 nodes, or a virtual one with such a "
        "topology for function without times")
    siblings = [cpu["siblings"] for cpu in machine["cpus"] if cpu["allowed"] and cpu["siblings"]]
    say("smt", any(len(group) > 1 for group in siblings), "two threads of one core can be compared with two cores",
        "each CPU shown is a core of its own: switch SMT on in the firmware to compare threads of one core")
    say("pmu", bool(machine["pmu"]), f"hardware counters: {', '.join(machine['pmu'])}",
        "no PMU in /sys/bus/event_source/devices: use bare metal, or a virtual machine whose hypervisor passes it on")
    if machine["pmu"] and os.geteuid() != 0 and (machine["perf_event_paranoid"] or 0) > 2:
        say("pmu access", False, None, f"kernel.perf_event_paranoid is {machine['perf_event_paranoid']}: as root, "
                                       "sysctl kernel.perf_event_paranoid=2")
    say("steady clock rate", machine["governor"] == "performance", "the governor is performance",
        "the clock rate is not under control here (hypervisor): compare only within one run" if
        machine["governor"] is None else
        f"the governor is {machine['governor']}: as root, cpupower frequency-set -g performance")
    say("caches", bool(machine["caches"]), "the kernel tells their sizes",
        "the kernel tells no cache sizes (hypervisor): state the size of a working set yourself, or use bare metal")
    say("huge pages", bool(machine["huge_pages"]), f"{machine['huge_pages']} are reserved for page memory",
        "none are reserved, page memory uses small pages: as root, sysctl vm.nr_hugepages=64")
    return found


def lines(machine):
    """The report, at most 80 columns but for long names."""
    yield machine["name"] or "CPU of unknown name"
    limits = "" if len(machine["allowed"]) == len(machine["cpus"]) else f", allowed {cpu_list(machine['allowed'])}"
    packages = {cpu["package"] for cpu in machine["cpus"]}
    cores = {(cpu["package"], cpu["core"]) for cpu in machine["cpus"]}
    yield (f"CPUs    {cpu_list(cpu['cpu'] for cpu in machine['cpus'])}{limits}: {len(packages)} package(s), "
           f"{len(cores)} core(s){', under a hypervisor' if machine['hypervisor'] else ''}")
    for cache in machine["caches"]:
        yield (f"cache   L{cache['level']} {cache['type'].lower()}, {cache['size'] // 1024} KB, shared by "
               f"{cache['num_sharing']} CPU(s)")
    for node in machine["nodes"]:
        size = "" if node["memory_kb"] is None else f", {node['memory_kb'] / 1048576:.1f} GB"
        distances = "" if node["distances"] is None else f", distances {' '.join(map(str, node['distances']))}"
        yield f"node    {node['node']}: CPUs {cpu_list(node['cpus'] or []) or 'none'}{size}{distances}"
    if "latency" in machine:
        yield ""
        yield from matrix(machine["latency"])
    yield ""
    for ability in machine["abilities"]:
        first, *rest = _wrapped(ability["text"], 54)
        yield f"{'yes' if ability['can'] else 'no':<4}{ability['what']:<20}{first}"
        yield from (f"{'':<24}{line}" for line in rest)


def _wrapped(text, width):
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line
