# SPDX-License-Identifier: MIT
"""Where roles run: CPUs by a policy, or a list, and the memory node of each role.

skb_place knows the machine's topology (hwloc) and is asked once, before anything is timed.
"""

import re

from . import benchbin, fingerprint
from .errors import IMPOSSIBLE, UserError
from .options import one_of

POLICIES = ("smt", "same-llc", "cross-llc", "cross-node")
CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
MAX_NODES = 8
MAX_ROLES = 64


class Cpus(list):
    """CPUs in the order of the roles; nodes, if not None, has one memory node for each, or one for all."""

    def __init__(self, cpus, nodes=None, policy=None):
        super().__init__(cpus)
        self.nodes, self.policy = nodes, policy


def policy_from(text):
    return None if text is None else one_of(text, "--placement", POLICIES)


def nodes_from(text):
    """The nodes of a list as in 0,1 or 0-3, in the order given, each as often as it stands there; None for None."""
    if text is None:
        return None
    nodes = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d)(?:-(\d))?", part.strip())
        lo = int(match.group(1)) if match else 0
        hi = int(match.group(2) or lo) if match else -1
        if hi < lo or hi >= MAX_NODES:
            raise UserError(f"--nodes {text}: a list of nodes from 0 to {MAX_NODES - 1} as in 0,1 is needed, one for each role "
                            f"or one for all")
        nodes += range(lo, hi + 1)
    return nodes


def numbers(text):
    """"0-2,5" as {0, 1, 2, 5}."""
    found = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def told(reader, name):
    """The numbers in a file of sysfs; empty where the kernel does not tell."""
    try:
        return numbers(reader.text(name))
    except (fingerprint.Missing, ValueError):
        return set()


def why_not(cpu, allowed, reader):
    """Why this process may not use a CPU that the machine has, and what helps; None for one that it does not have."""
    if cpu in told(reader, f"{CPU}/online"):
        return (f"CPU {cpu} is not among those that this process may use, {fingerprint.cpu_list(allowed)}: see taskset -p, and "
                f"cpuset.cpus of its cgroup")
    if cpu in told(reader, f"{CPU}/present"):
        return f"CPU {cpu} is offline: as root, echo 1 > {CPU}/cpu{cpu}/online"
    return None


def check_nodes(nodes, reader):
    """Raises UserError for a node that the machine does not have, or that has no memory. Where the kernel tells of no
    nodes at all there is node 0."""
    online = told(reader, f"{NODE}/online") or {0}
    memory = told(reader, f"{NODE}/has_memory") or online
    for node in nodes:
        if node not in online:
            raise UserError(f"--nodes: there is no node {node} here, but {fingerprint.cpu_list(sorted(online))}", IMPOSSIBLE)
        if node not in memory:
            raise UserError(f"--nodes: node {node} has no memory; {fingerprint.cpu_list(sorted(memory))} "
                            f"ha{'s' if len(memory) == 1 else 've'}", IMPOSSIBLE)


def by_policy(program, policy, most):
    """Cpus for as many roles as POLICY has room for, at most MOST: cases that need more are then refused one by one.
    PROGRAM is skb_place. Raises UserError where there is no room for two."""
    binary = benchbin.BenchBinary(program)
    for roles in range(min(most, MAX_ROLES), 1, -1):
        try:
            answer = binary._ask("", [f"--policy={policy}", f"--roles={roles}"])
        except benchbin.NotPossible as reason:
            refusal = str(reason)
            continue
        return Cpus(answer["cpus"], answer["nodes"], policy)
    if most < 2:
        refusal = f"{program.name}: {policy}: one CPU is allowed to this process, and a policy is about two"
    raise UserError(refusal, IMPOSSIBLE)


def resolve(request, program, reader=None):
    """REQUEST.cpus by its policy and with its nodes; None stays None where neither is given."""
    if request.placement:
        request.cpus = by_policy(program, request.placement, len(fingerprint.allowed_cpus()))
    if request.nodes is not None:
        check_nodes(request.nodes, reader or fingerprint.Reader())
        cpus = fingerprint.allowed_cpus() if request.cpus is None else request.cpus
        request.cpus = Cpus(cpus, request.nodes, request.placement)


def plan(cpus):
    """What the result's plan says of CPUS."""
    if not isinstance(cpus, Cpus):
        return {}
    return {"placement": {"policy": cpus.policy, "cpus": list(cpus), "nodes": cpus.nodes}}


def line(placement):
    """The same in words."""
    nodes = placement["nodes"]
    text = f"placement {placement['policy'] or 'as told'}: CPUs {', '.join(map(str, placement['cpus']))}"
    return text if nodes is None else f"{text}; memory on nodes {', '.join(map(str, nodes))}"
