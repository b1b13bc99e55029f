# SPDX-License-Identifier: MIT
"""skb_place on described machines: which CPUs each policy takes, and what it says where it cannot.

SKB_PLACE is the program; HWLOC_SYNTHETIC describes the machine in hwloc's words.
"""

import json
import os
import shlex
import subprocess
import unittest

PLACE = os.environ["SKB_PLACE"]
LAUNCHER = shlex.split(os.environ.get("SKB_PLACE_LAUNCHER", ""))
# 2 nodes of 2 caches of 2 cores of 2 threads: CPUs 0 to 7 on node 0, 8 to 15 on node 1; 0 and 1 are one core.
TWO_NODES = "node:2 l3:2 core:2 pu:2"


def run(machine, *flags):
    environment = dict(os.environ)
    environment.pop("HWLOC_SYNTHETIC", None)
    if machine:
        environment["HWLOC_SYNTHETIC"] = machine
    done = subprocess.run([*LAUNCHER, PLACE, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          env=environment, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


class Place(unittest.TestCase):
    def placed(self, machine, policy, roles, cpus, nodes):
        status, out, err = run(machine, f"--policy={policy}", f"--roles={roles}")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(json.loads(out), {"schema": "skbench-place-1", "policy": policy, "cpus": cpus, "nodes": nodes})

    def refused(self, machine, policy, roles, says):
        status, out, err = run(machine, f"--policy={policy}", f"--roles={roles}")
        self.assertEqual((status, out), (4, ""))
        self.assertEqual(err, f"skb_place: {policy}: {says}")

    def test_two_nodes(self):
        self.placed(TWO_NODES, "smt", 2, [0, 1], [0, 0])
        self.placed(TWO_NODES, "same-llc", 2, [0, 2], [0, 0])
        self.placed(TWO_NODES, "cross-llc", 2, [0, 4], [0, 0])
        self.placed(TWO_NODES, "cross-llc", 4, [0, 4, 8, 12], [0, 0, 1, 1])
        self.placed(TWO_NODES, "cross-node", 2, [0, 8], [0, 1])

    def test_one_cpu_for_all(self):
        for machine in (TWO_NODES, "node:1 l3:1 core:1 pu:1"):
            for roles in (1, 2, 64):
                self.placed(machine, "same-core", roles, [0], [0])

    def test_one_role_is_always_placed(self):
        for policy in ("same-core", "smt", "same-llc", "cross-llc", "cross-node"):
            self.placed(TWO_NODES, policy, 1, [0], [0])

    def test_too_many_roles(self):
        self.refused(TWO_NODES, "smt", 3, "3 roles need as many allowed hardware threads of one core, and there are 2")
        self.refused("node:1 l3:1 core:2 pu:1", "smt", 2,
                     "2 roles need as many allowed hardware threads of one core, and there is 1")
        self.refused(TWO_NODES, "same-llc", 3, "3 roles need as many allowed cores below one last-level cache, and there are 2")
        self.refused(TWO_NODES, "cross-llc", 5, "5 roles need as many last-level caches with allowed cores, and there are 4")
        self.refused(TWO_NODES, "cross-node", 3, "3 roles need as many nodes with memory and allowed cores, and there are 2")

    def test_a_machine_that_tells_no_shared_cache(self):
        for machine in ("node:2 core:4 pu:1", "node:2 core:4 l2:1 pu:1"):
            for policy in ("same-llc", "cross-llc"):
                self.refused(machine, policy, 2,
                             "the machine tells of no cache that cores share: name the CPUs with --cpus")

    def test_a_second_level_that_cores_share(self):
        self.placed("node:1 l2:4 core:2 pu:1", "same-llc", 2, [0, 1], [0, 0])
        self.placed("node:1 l2:4 core:2 pu:1", "cross-llc", 4, [0, 2, 4, 6], [0, 0, 0, 0])

    def test_many(self):
        self.placed("node:8 l3:1 core:8 pu:1", "cross-node", 8, list(range(0, 64, 8)), list(range(8)))
        self.placed("node:1 l3:1 core:64 pu:1", "same-llc", 64, list(range(64)), [0] * 64)

    def test_wrong_usage(self):
        for flags, says in (((), "--policy: is missing"), (("--policy=near",), "--policy=near: same-core, smt, same-llc, cross-llc or"),
                            (("--policy=smt", "--roles=0"), "--roles=0: 1 to 64 roles"),
                            (("--policy=smt", "--roles=65"), "--roles=65: 1 to 64 roles"),
                            (("--policy=smt", "--roles=-1"), "--roles=-1: 1 to 64 roles"),
                            (("--policy=smt", "--roles=2x"), "--roles=2x: 1 to 64 roles"), (("x",), "x: no such flag")):
            with self.subTest(flags):
                status, out, err = run(TWO_NODES, *flags)
                self.assertEqual((status, out, err.count("\n")), (2, "", 0))
                self.assertTrue(err.startswith(f"skb_place: {says}"), err)

    def test_only_cpus_that_we_may_use(self):
        """On this machine itself, whatever it is: one CPU is always there, and it is one of ours."""
        status, out, err = run(None, "--policy=cross-node", "--roles=1")
        self.assertEqual((status, err), (0, ""))
        self.assertIn(json.loads(out)["cpus"][0], os.sched_getaffinity(0))
        last = max(os.sched_getaffinity(0))
        done = subprocess.run(["taskset", "-c", str(last), *LAUNCHER, PLACE, "--policy=cross-node", "--roles=1"],
                              stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        self.assertEqual(json.loads(done.stdout)["cpus"], [last])


if __name__ == "__main__":
    unittest.main()
