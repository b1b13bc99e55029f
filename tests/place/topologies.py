# SPDX-License-Identifier: MIT
"""The virtual machines of numa_guest.py: how QEMU is told to make them, and what must be seen inside."""


class Machine:
    """SMP as QEMU takes it; NODES: (CPUs, MB of memory or 0) each; DISTANCES[from][to]; SIBLINGS: hardware threads a core.

    POLICIES: {policy: [(roles, CPUs, nodes) or (roles, what the refusal says)]}.
    """

    def __init__(self, smp, nodes, distances, siblings, policies):
        self.smp, self.nodes, self.distances, self.siblings, self.policies = smp, nodes, distances, siblings, policies

    def flags(self):
        flags = ["-smp", self.smp, "-m", str(sum(memory for _, memory in self.nodes))]
        for node, (cpus, memory) in enumerate(self.nodes):
            words = f"node,nodeid={node}"
            if cpus:
                words += f",cpus={cpus[0]}-{cpus[-1]}"
            if memory:
                flags += ["-object", f"memory-backend-ram,id=m{node},size={memory}M"]
                words += f",memdev=m{node}"
            flags += ["-numa", words]
        for one, row in enumerate(self.distances):
            for other, value in enumerate(row):
                if one != other:
                    flags += ["-numa", f"dist,src={one},dst={other},val={value}"]
        return flags

    def with_memory(self):
        return [node for node, (_, memory) in enumerate(self.nodes) if memory]

    def home(self, cpu):
        return next(node for node, (cpus, _) in enumerate(self.nodes) if cpu in cpus)

    def places(self, where, cpu):
        """The nodes that WHERE means for what a role on CPU makes: local, remote, interleave or a number."""
        memory, row = self.with_memory(), self.distances[self.home(cpu)]
        local = min(memory, key=lambda node: (row[node], node))
        if where == "local":
            return {local}
        if where == "remote":
            return {min(set(memory) - {local}, key=lambda node: (-row[node], node))}
        return set(memory) if where == "interleave" else {int(where)}


MACHINES = {
    "two-nodes": Machine(
        "8,sockets=2,cores=2,threads=2", [(range(4), 512), (range(4, 8), 448)], [[10, 21], [21, 10]], 2, {
            "same-core": [(2, [0], [0])],
            "smt": [(2, [0, 1], [0, 0]), (3, "there are 2")],
            "same-llc": [(2, [0, 2], [0, 0]), (3, "there are 2")],
            "cross-llc": [(2, [0, 4], [0, 1]), (3, "there are 2")],
            "cross-node": [(2, [0, 4], [0, 1]), (3, "there are 2")]}),
    "four-nodes": Machine(
        "8,sockets=4,cores=2,threads=1", [(range(0, 2), 448), (range(2, 4), 320), (range(4, 6), 320), (range(6, 8), 320)],
        [[10, 20, 30, 40], [21, 10, 31, 41], [32, 22, 10, 42], [43, 33, 23, 10]], 1, {
            "same-core": [(2, [0], [0])],
            "smt": [(2, "there is 1")],
            "same-llc": [(2, [0, 1], [0, 0]), (3, "there are 2")],
            "cross-llc": [(2, [0, 2], [0, 1]), (4, [0, 2, 4, 6], [0, 1, 2, 3]), (5, "there are 4")],
            "cross-node": [(3, [0, 2, 4], [0, 1, 2]), (4, [0, 2, 4, 6], [0, 1, 2, 3]), (5, "there are 4")]}),
    # Node 1 has CPUs and no memory, node 2 memory and no CPUs.
    "memory-less": Machine(
        "8,sockets=2,dies=2,cores=1,threads=2", [(range(4), 512), (range(4, 8), 0), ((), 384)],
        [[10, 21, 17], [21, 10, 28], [17, 28, 10]], 2, {
            "same-core": [(2, [0], [0])],
            "smt": [(2, [0, 1], [0, 0])],
            "same-llc": [(2, "there is 1")],
            "cross-llc": [(2, [0, 2], [0, 0])],
            "cross-node": [(2, "there is 1")]}),
}
