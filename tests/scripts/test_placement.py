# SPDX-License-Identifier: MIT
"""`run --placement`, `--cpus`, `--nodes`, `--huge`: from the command line to the flags of the bench program, on this machine and
on described ones."""

import os
import pathlib
import tempfile
import types
import unittest
from unittest import mock

import support
from skbench_lib import benchbin, fingerprint, placement, results, run
from skbench_lib.errors import UserError
from test_run import Case, flat, ours

OBJECTS = {"shells", "heads", "pages", "pool", "socket"}
two_cpus = unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "a policy is about two CPUs")
one_node = unittest.skipIf(os.path.exists("/sys/devices/system/node/node1"), "this machine has 2 nodes")


class Run(Case):
    def place(self, fake, most):
        """A skb_place with room for MOST roles: CPU 4i on node i; same-core has one CPU for all."""
        program = fake.bin / "skb_place"
        program.write_text(f"""#!/bin/sh
n=${{2#--roles=}}
test $n -le {most} || {{ echo "skb_place: ${{1#--policy=}}: $n roles need more, and there are {most}" >&2; exit 4; }}
test $n = 1 && echo '{{"cpus": [0], "nodes": [0]}}' || echo '{{"cpus": [0, 4], "nodes": [0, 1]}}'
""", encoding="utf-8")
        program.chmod(0o755)

    def run_it(self, *args, most=2, **plan):
        plan = {"cases": ["skb/meet/threads:2/alloc:slub"], **plan}
        fake = self.fake(**plan)
        self.place(fake, most)
        return fake.run("run", "--suite", "quick", "--budget", 30, "--out", self.out, *args)

    def refused(self, says, *args, status=4, **how):
        found, out, err = self.run_it(*args, **how)
        self.assertEqual((found, out), (status, ""), err)
        self.one_line(err, says)
        self.assertFalse(self.out.exists())

    @two_cpus
    def test_policy(self):
        status, out, err = self.run_it("--placement", "cross-node")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("placement cross-node: CPUs 0, 4; memory on nodes 0, 1", flat(out))
        document = results.read(self.out)
        self.assertEqual(ours(document)["plan"]["placement"], {"policy": "cross-node", "cpus": [0, 4], "nodes": [0, 1]})
        self.assertEqual({(row["skb"]["roles"][1]["cpu"], row["skb"]["roles"][1]["node"]) for row in document["benchmarks"]},
                         {(4, 1)})

    @two_cpus
    def test_no_room(self):
        self.refused("skb_place: smt: 2 roles need more, and there are 1", "--placement", "smt", most=1)

    def test_same_core_is_one_cpu(self):
        """What one CPU can do by turns is measured; what has to run at once is left out, with its reason."""
        alone, both = "skb/meet/threads:1/alloc:slub", "skb/meet/threads:2/alloc:slub"
        status, out, err = self.run_it("--placement", "same-core", most=1, cases=[alone, both], cpus=1)
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        self.assertIn("placement same-core: CPU 0 for every role; cases whose roles must run at once are left out, unless "
                      "--oversubscribe lets them take turns; memory on node 0", flat(out))
        document = results.read(self.out)
        self.assertEqual(ours(document)["plan"]["placement"], {"policy": "same-core", "cpus": [0], "nodes": [0]})
        self.assertEqual({row["name"] for row in document["benchmarks"]}, {alone})
        reasons = {case["case"]: case["reason"] for case in ours(document)["cases"]}
        self.assertIn("needs 2 CPUs and has 1", reasons[both])
        self.out.unlink()
        status, out, err = self.run_it("--placement", "same-core", "--oversubscribe", most=1, cases=[both], cpus=1)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(ours(results.read(self.out))["cases"][0]["reason"], "oversubscribed: 2 roles took turns on 1 CPUs")

    def test_nodes_of_roles(self):
        status, out, err = self.run_it("--nodes", "0,0")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("memory on nodes 0, 0", flat(out))
        roles = results.read(self.out)["benchmarks"][0]["skb"]["roles"]
        self.assertEqual([role["node"] for role in roles], [0, 0])

    def test_nodes_of_objects(self):
        status, out, err = self.run_it("--nodes", "pages=0,shells=local")
        self.assertEqual((status, err), (0, ""))
        self.narrow(out)
        self.assertIn("; pages on node 0; shells local; the rest local", flat(out))
        document = results.read(self.out)
        told = ours(document)["plan"]["placement"]
        self.assertEqual((told["nodes"], told["objects"]), (None, {"pages": "0", "shells": "local"}))
        objects = document["benchmarks"][0]["skb"]["placed"][0]["objects"]
        self.assertEqual({name: entry["asked"] for name, entry in objects.items()}, {**dict.fromkeys(OBJECTS, "local"), "pages": "0"})

    def test_huge(self):
        status, out, err = self.run_it("--huge")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("; pages in huge pages", flat(out))
        document = results.read(self.out)
        self.assertIs(ours(document)["plan"]["placement"]["huge"], True)
        self.assertEqual(document["benchmarks"][0]["skb"]["backing"], "hugetlb")

    @two_cpus
    def test_a_policy_and_objects(self):
        status, out, err = self.run_it("--placement", "cross-node", "--nodes", "socket=local")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("placement cross-node: CPUs 0, 4; socket local; the rest local", flat(out))

    def test_what_the_bench_program_says_is_one_line(self):
        """A memory limit, say, which no flag asks for: nothing is measured and nothing is written."""
        self.refused(r"bench_mptcp: needs 51 MB, and the limit of its cgroup, 20 MB, leaves 9",
                     nowhere="bench_mptcp: needs 51 MB, and the limit of its cgroup, 20 MB, leaves 9: raise it")

    @unittest.skipIf(os.path.exists("/sys/devices/system/node/node7"), "this machine has 8 nodes")
    def test_a_missing_node(self):
        self.refused("--nodes: there is no node 7 here, but 0", "--nodes", "0,7")
        self.refused("--nodes: there is no node 7 here, but 0", "--nodes", "shells=local,pages=7")

    @one_node
    def test_one_node_has_no_other(self):
        for where in ("remote", "interleave"):
            self.refused(f"--nodes pool={where}: this process has memory on one node alone, 0: ask for local, or use a machine",
                         "--nodes", f"shells=local,pool={where}")

    def test_wrong_usage(self):
        for args, says in ((("--placement", "near"), "--placement near"), (("--nodes", "64"), "--nodes 64: a list of nodes"),
                           (("--nodes", "0,"), "--nodes 0,: a list"), (("--nodes", "2-1"), "--nodes 2-1: a list"),
                           (("--nodes", "0-64"), "--nodes 0-64: a list"), (("--nodes", "shells"), "--nodes shells: a list"),
                           (("--nodes", "shells=near"), "--nodes shells=near: OBJECT=WHERE"),
                           (("--nodes", "shell=0"), "--nodes shell=0: OBJECT=WHERE"),
                           (("--nodes", "pool=64"), "--nodes pool=64: OBJECT=WHERE"),
                           (("--nodes", "pool=0,pool=1"), "each once"), (("--nodes", "pool=0,1"), "--nodes pool=0,1: OBJECT=WHERE"),
                           (("--nodes", "="), "--nodes =: OBJECT=WHERE"),
                           (("--placement", "smt", "--cpus", str(min(os.sched_getaffinity(0)))),
                            "--placement chooses the CPUs: give it or --cpus")):
            with self.subTest(args):
                self.refused(says, *args, status=2)


class Described(unittest.TestCase):
    """CPUs 0 to 3, of which 2 is offline; nodes 0 to 2, of which 1 has CPUs and no memory; this process may use node 0's memory
    and node 2's, or what ALLOWED says."""

    def machine(self, allowed="0,2"):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        root = pathlib.Path(directory.name)
        for name, text in (("sys/devices/system/cpu/present", "0-3"), ("sys/devices/system/cpu/online", "0-1,3"),
                           ("sys/devices/system/node/online", "0-2"), ("sys/devices/system/node/has_memory", "0,2"),
                           ("proc/self/status", f"Mems_allowed:\t5\nMems_allowed_list:\t{allowed}")):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        return fingerprint.Reader(root)

    def refuses(self, says, call, *args, status=4):
        with self.assertRaises(UserError) as caught:
            call(*args)
        self.assertEqual(caught.exception.status, status)
        self.assertIn(says, str(caught.exception))

    def test_cpus(self):
        reader = self.machine()
        self.refuses("CPU 2 is offline: as root, echo 1 > /sys/devices/system/cpu/cpu2/online", run.cpus_from, "2", [0, 1], reader)
        self.refuses("CPU 3 is not among those that this process may use, 0-1: see taskset -p, and cpuset.cpus", run.cpus_from, "0,3",
                     [0, 1], reader)
        self.refuses("CPU 9 is not among those allowed", run.cpus_from, "9", [0, 1], reader, status=2)

    def test_nodes(self):
        reader = self.machine()
        placement.check_nodes([0, 2, 0], reader)
        self.refuses("there is no node 3 here, but 0-2", placement.check_nodes, [0, 3], reader)
        self.refuses("node 1 has no memory; 0,2 have", placement.check_nodes, [1], reader)
        self.refuses("node 2 is not among those whose memory this process may use, 0: see cpuset.mems of its cgroup",
                     placement.check_nodes, [0, 2], self.machine("0"))

    def test_objects(self):
        reader = self.machine()
        placement.check_objects({"shells": "remote", "pages": "interleave", "pool": "2", "heads": "local"}, reader)
        self.refuses("node 1 has no memory", placement.check_objects, {"shells": "1"}, reader)
        for where in ("remote", "interleave"):
            self.refuses(f"--nodes pages={where}: this process has memory on one node alone, 2", placement.check_objects,
                         {"heads": "local", "pages": where}, self.machine("1-2"))
        placement.check_objects({"heads": "local"}, self.machine("2"))

    def test_a_kernel_that_tells_of_no_nodes(self):
        with tempfile.TemporaryDirectory() as root:
            reader = fingerprint.Reader(root)
            placement.check_nodes([0], reader)
            self.refuses("there is no node 1 here, but 0", placement.check_nodes, [1], reader)

    def test_flags(self):
        """What a bench program gets, and what machine(), which has no memory to place, does not."""
        cpus = placement.Cpus([3, 1], objects={"pages": "remote", "pool": "1"}, huge=True)
        for asked, expected in ((cpus, ["--skb_cpus=3,1", "--skb_nodes=pages=remote,pool=1", "--skb_huge"]),
                                (placement.Cpus([3, 1], [0, 1]), ["--skb_cpus=3,1", "--skb_nodes=0,1"]),
                                ([2], ["--skb_cpus=2"]), (None, [])):
            self.assertEqual(benchbin.BenchBinary._cpus(asked), expected)
        with mock.patch.object(benchbin.BenchBinary, "_ask", lambda self, case, args, pad=0: args):
            binary = benchbin.BenchBinary(support.FAKE)
            self.assertEqual(binary.machine(cpus), ["--skb_machine", "--skb_cpus=3,1"])
            self.assertEqual(binary.where(cpus), ["--skb_where", "--skb_cpus=3,1", "--skb_nodes=pages=remote,pool=1", "--skb_huge"])

    def test_a_policys_nodes_and_objects(self):
        """Objects replace the nodes that a policy tells, CPUs stay."""
        asked = []
        binary = types.SimpleNamespace(where=asked.append)
        request = types.SimpleNamespace(placement="cross-node", nodes={"pages": "interleave"}, huge=False, cpus=None)
        with mock.patch.object(placement, "by_policy", lambda program, policy, most: placement.Cpus([0, 1], [0, 2], policy)):
            placement.resolve(request, None, binary, self.machine())
        self.assertEqual(request.cpus.flags(), ["--skb_nodes=pages=interleave"])
        self.assertEqual((list(request.cpus), request.cpus.policy, asked), ([0, 1], "cross-node", [request.cpus]))
        request = types.SimpleNamespace(placement=None, nodes=None, huge=False, cpus=None)
        placement.resolve(request, None, binary, self.machine())
        self.assertIsNone(request.cpus)


if __name__ == "__main__":
    unittest.main()
