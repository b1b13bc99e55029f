# SPDX-License-Identifier: MIT
"""Where roles run, and where their memory lies: CPUs by a policy, or a list; a node for each role, or for each kind of object.

skb_place knows the machine's topology (hwloc) and is asked once, before anything is timed. What a bench program would
then do with CPUs, nodes and memory it is asked too (--skb_where), so that what this machine cannot do is one line.
"""

import re

from . import benchbin, fingerprint
from .errors import IMPOSSIBLE, UserError
from .options import one_of

SAME_CORE = "same-core"
POLICIES = (SAME_CORE, "smt", "same-llc", "cross-llc", "cross-node")
OBJECTS = ("shells", "heads", "pages", "pool", "socket")
PLACES = ("local", "remote", "interleave")
CPU, NODE = "/sys/devices/system/cpu", "/sys/devices/system/node"
MAX_NODES = 64
MAX_ROLES = 64


class Cpus(list):
    """CPUs in the order of the roles. NODES, if not None, has one memory node for each, or one for all; or OBJECTS, if not
    None, has where each kind of object lies. HUGE: page memory in huge pages or not at all."""

    def __init__(self, cpus, nodes=None, policy=None, objects=None, huge=False):
        super().__init__(cpus)
        self.nodes, self.policy, self.objects, self.huge = nodes, policy, objects, huge

    def flags(self):
        """What a bench program is told of memory."""
        text = None
        if self.objects is not None:
            text = ",".join(f"{name}={where}" for name, where in self.objects.items())
        elif self.nodes is not None:
            text = ",".join(str(node) for node in self.nodes)
        return ([] if text is None else [f"--skb_nodes={text}"]) + ["--skb_huge"][:self.huge]


def policy_from(text):
    return None if text is None else one_of(text, "--placement", POLICIES)


def objects_from(text):
    """{object: where} of a list as in shells=remote,pages=1."""
    objects = {}
    for part in text.split(","):
        name, _, where = part.strip().partition("=")
        number = re.fullmatch(r"\d{1,2}", where)
        if name not in OBJECTS or name in objects or not (where in PLACES or number and int(where) < MAX_NODES):
            raise UserError(f"--nodes {text}: OBJECT=WHERE[,OBJECT=WHERE...] is needed: {', '.join(OBJECTS[:-1])} or {OBJECTS[-1]}, each "
                            f"once, on {', '.join(PLACES)} or a node from 0 to {MAX_NODES - 1}")
        objects[name] = str(int(where)) if number else where
    return objects


def nodes_from(text):
    """The nodes of a list as in 0,1 or 0-3, in the order given, each as often as it stands there; {object: where} of a
    list as in shells=remote,pages=1; None for None."""
    if text is None:
        return None
    if "=" in text:
        return objects_from(text)
    nodes = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,2})(?:-(\d{1,2}))?", part.strip())
        lo = int(match.group(1)) if match else 0
        hi = int(match.group(2) or lo) if match else -1
        if hi < lo or hi >= MAX_NODES:
            raise UserError(f"--nodes {text}: a list of nodes from 0 to {MAX_NODES - 1} as in 0,1 is needed, one for each role "
                            f"or one for all, or OBJECT=WHERE as in shells=remote,pages=1")
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


def usable_nodes(reader):
    """The nodes with memory, and those of them whose memory this process may use. Where the kernel tells of no nodes at all
    there is node 0."""
    memory = told(reader, f"{NODE}/has_memory") or told(reader, f"{NODE}/online") or {0}
    try:
        found = re.search(r"^Mems_allowed_list:\s*(\S+)", reader.text("/proc/self/status"), re.MULTILINE)
    except fingerprint.Missing:
        found = None
    return memory, memory & numbers(found.group(1)) if found else memory


def check_nodes(nodes, reader):
    """Raises UserError for a node that the machine does not have, that has no memory, or whose memory is not for this
    process."""
    online = told(reader, f"{NODE}/online") or {0}
    memory, allowed = usable_nodes(reader)
    for node in nodes:
        if node not in online:
            raise UserError(f"--nodes: there is no node {node} here, but {fingerprint.cpu_list(sorted(online))}", IMPOSSIBLE)
        if node not in memory:
            raise UserError(f"--nodes: node {node} has no memory; {fingerprint.cpu_list(sorted(memory))} "
                            f"ha{'s' if len(memory) == 1 else 've'}", IMPOSSIBLE)
        if node not in allowed:
            raise UserError(f"--nodes: node {node} is not among those whose memory this process may use, "
                            f"{fingerprint.cpu_list(sorted(allowed))}: see cpuset.mems of its cgroup, and numactl --show", IMPOSSIBLE)


def check_objects(objects, reader):
    """The same for where objects are to lie: more than one node is needed for some of it."""
    check_nodes([int(where) for where in objects.values() if where not in PLACES], reader)
    _, allowed = usable_nodes(reader)
    for name, where in objects.items():
        if where in ("remote", "interleave") and len(allowed) < 2:
            raise UserError(f"--nodes {name}={where}: this process has memory on one node alone, "
                            f"{fingerprint.cpu_list(sorted(allowed))}: ask for local, or use a machine with 2 nodes, or a virtual one",
                            IMPOSSIBLE)


def by_policy(program, policy, most):
    """Cpus for as many roles as POLICY has room for, at most MOST: cases that need more are then refused one by one.
    PROGRAM is skb_place. Raises UserError where there is no room for two."""
    binary = benchbin.BenchBinary(program)
    if policy == SAME_CORE:
        most, fewest = 1, 0
    else:
        fewest = 1
    for roles in range(min(most, MAX_ROLES), fewest, -1):
        try:
            answer = binary._ask("", [f"--policy={policy}", f"--roles={roles}"])
        except benchbin.NotPossible as reason:
            refusal = str(reason)
            continue
        return Cpus(answer["cpus"], answer["nodes"], policy)
    if most < 2 and policy != SAME_CORE:
        refusal = f"{program.name}: {policy}: one CPU is allowed to this process, and a policy is about two"
    raise UserError(refusal, IMPOSSIBLE)


def resolve(request, program, binary, reader=None):
    """REQUEST.cpus by its policy, with its nodes and objects; None stays None where none of them is given. PROGRAM is
    skb_place, BINARY any bench program. Raises UserError for what this machine cannot do, its memory included."""
    reader = reader or fingerprint.Reader()
    if request.placement:
        request.cpus = by_policy(program, request.placement, len(fingerprint.allowed_cpus()))
    if request.nodes is not None or request.huge:
        cpus = fingerprint.allowed_cpus() if request.cpus is None else request.cpus
        nodes, objects = getattr(cpus, "nodes", None), None
        if isinstance(request.nodes, dict):
            check_objects(request.nodes, reader)
            nodes, objects = None, request.nodes
        elif request.nodes is not None:
            check_nodes(request.nodes, reader)
            nodes = request.nodes
        request.cpus = Cpus(cpus, nodes, request.placement, objects, request.huge)
    try:
        binary.where(request.cpus)
    except benchbin.NotPossible as refusal:
        raise UserError(str(refusal), IMPOSSIBLE) from None


def plan(cpus):
    """What the result's plan says of CPUS."""
    if not isinstance(cpus, Cpus):
        return {}
    told_of = {"policy": cpus.policy, "cpus": list(cpus), "nodes": cpus.nodes}
    if cpus.objects is not None:
        told_of["objects"] = cpus.objects
    if cpus.huge:
        told_of["huge"] = True
    return {"placement": told_of}


def line(placement):
    """The same in words."""
    cpus, nodes, objects = placement["cpus"], placement["nodes"], placement.get("objects")
    text = f"placement {placement['policy'] or 'as told'}: CPU{'s' * (len(cpus) > 1)} {', '.join(map(str, cpus))}"
    if placement["policy"] == SAME_CORE:
        text += " for every role; cases whose roles must run at once are left out, unless --oversubscribe lets them take turns"
    if objects is not None:
        text += "".join(f"; {name} {'on node ' * where.isdigit()}{where}" for name, where in objects.items())
        text += "; the rest local" if len(objects) < len(OBJECTS) else ""
    elif nodes is not None:
        text += f"; memory on node{'s' * (len(nodes) > 1)} {', '.join(map(str, nodes))}"
    return text + "; pages in huge pages" * bool(placement.get("huge"))
