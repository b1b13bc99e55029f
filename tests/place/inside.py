#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""inside.py MACHINE ROOT BUILD: the checks of numa_guest.py, as root in the guest. One line each: ok or FAILED.

Where memory lies is asked of the kernel: move_pages(2) of the process for each object's address, and its numa_maps for all
the rest; where a role runs, of /proc/PID/task/TID. The programs' own reports are compared with that.
"""

import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

from topologies import MACHINES

NAME, ROOT, BUILD = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
MACHINE = MACHINES[NAME]
sys.path.insert(0, str(ROOT / "scripts"))
UPPER = Path("/run/skbench-upper/upper")  # what was written anywhere
SCRATCH = Path("/run/scratch")
GROUP = Path("/sys/fs/cgroup/t")
SYSFS = Path("/sys/devices/system")
MOVE_PAGES = 279
SECONDS = 100
KINDS = ("shells", "heads", "pages", "pool", "socket")
PLACED_BY_ROLE = ("shells", "heads", "pages")
EVERYWHERE = set(range(len(MACHINE.nodes)))
libc = ctypes.CDLL(None, use_errno=True)


class Wrong(Exception):
    """What is not as it should be."""


def need(good, text):
    if not good:
        raise Wrong(text)


def numbers(text):
    """"0-2,5" as [0, 1, 2, 5]."""
    found = []
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


# --- what the kernel says -----------------------------------------------------------------------------------------

def nodes_of(pid, addresses):
    """The node of each of ADDRESSES of process PID; negative: an errno."""
    pages = (ctypes.c_ulong * len(addresses))(*[address & ~4095 for address in addresses])
    status = (ctypes.c_int * len(addresses))()
    need(libc.syscall(ctypes.c_long(MOVE_PAGES), ctypes.c_long(pid), ctypes.c_ulong(len(addresses)), pages, None, status,
                      ctypes.c_long(0)) == 0, f"move_pages: {os.strerror(ctypes.get_errno())}")
    return list(status)


def tasks(pid):
    """{tid: (CPU that it ran on last, CPUs that it may use)}."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        stat = (task / "stat").read_text().rpartition(")")[2].split()
        status = (task / "status").read_text()
        found[int(task.name)] = (int(stat[36]), numbers(re.search(r"Cpus_allowed_list:\s*(\S+)", status)[1]))
    return found


def bound_memory(pid):
    """{nodes asked for: {node: 4 KB pages that lie there}} over all mappings with a policy of their own."""
    found = {}
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        policy = re.match(r"\S+ (?:bind|interleave)(?:=\w+)*:(\S+)", line)
        if policy:
            size = int((re.search(r"kernelpagesize_kB=(\d+)", line) or [0, 4])[1]) // 4
            for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                at = found.setdefault(policy[1], {})
                at[int(node)] = at.get(int(node), 0) + int(pages) * size
    return found


# --- programs -----------------------------------------------------------------------------------------------------

class Held:
    """A bench program that is held at its first timed batch, when all is allocated, warm and on its CPU."""

    def __init__(self, program, *flags, **environment):
        self.fifos = [SCRATCH / "ctl", SCRATCH / "ack"]
        for fifo in self.fifos:
            fifo.unlink(missing_ok=True)
            os.mkfifo(fifo)
        self.ctl, self.ack = (os.open(fifo, os.O_RDWR) for fifo in self.fifos)
        command = [BUILD / program, *flags, f"--skb_control={self.fifos[0]},{self.fifos[1]}"]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(SCRATCH / "stderr", "wb"), text=True,
                                      env={**os.environ, **environment})
        self.pid = self.child.pid

    def __enter__(self):
        self.await_word("enable")
        return self

    def await_word(self, word):
        os.set_blocking(self.ctl, False)
        text, end = b"", time.monotonic() + SECONDS
        while not text.endswith(b"\n"):
            need(self.child.poll() is None, f"it ended with {self.child.returncode}: {self.said()}")
            need(time.monotonic() < end, f"no batch within {SECONDS} s")
            try:
                text += os.read(self.ctl, 64)
            except BlockingIOError:
                time.sleep(0.01)
        need(text.decode().strip() == word, f"it said {text}")

    def said(self):
        return (SCRATCH / "stderr").read_text()

    def finish(self):
        """Lets it end; its answer."""
        os.write(self.ack, b"ack\n")
        while self.child.poll() is None:
            try:
                text = os.read(self.ctl, 64)
                os.write(self.ack, b"ack\n" * text.count(b"\n"))
            except BlockingIOError:
                time.sleep(0.01)
        out = self.child.stdout.read()
        need(self.child.returncode == 0, f"it ended with {self.child.returncode}: {self.said()}")
        return json.loads(out)

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        self.child.stdout.close()
        os.close(self.ctl)
        os.close(self.ack)


def written():
    """Every file that anybody wrote, with its time."""
    return {str(path.relative_to(UPPER)): path.lstat().st_mtime_ns for path in UPPER.rglob("*") if not path.is_dir()}


def skbench(*words, group=None):
    """(status, stdout, stderr, files written) of `scripts/skbench WORDS` in the cgroup GROUP. The interpreter is this one,
    copied, so that it is loaded once."""
    before = written()
    out, err = SCRATCH / "out", SCRATCH / "err"
    pid = os.fork()
    if not pid:
        status = 70
        try:
            if group:
                (group / "cgroup.procs").write_text("0")
            for descriptor, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            os.chdir(ROOT)
            os.environ["SKBENCH_BENCH_DIR"] = str(BUILD / "benches")
            from skbench_lib import __main__
            try:
                status = __main__.main(list(words))
            except SystemExit as end:
                status = end.code
            sys.stdout.flush()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    after = written()
    return status, out.read_text(), err.read_text(), {name for name in after if before.get(name) != after[name]}


def refused(says, *words, group=None):
    """One line that SAYS matches, status 4, and nothing written."""
    status, out, err, files = skbench(*words, group=group)
    need(status == 4 and not out and re.fullmatch(rf"skbench: .*{says}.*\n", err),
         f"{words}: status {status}, says {err!r}, where '{says}' was expected; {out}")
    need(not files, f"{words}: refused, but {', '.join(sorted(files))} was written")


@contextlib.contextmanager
def group(**limits):
    """A cgroup with limits, as in memory_max="64M"."""
    GROUP.mkdir()
    try:
        for key, value in limits.items():
            (GROUP / key.replace("_", ".", 1)).write_text(value)
        yield GROUP
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                GROUP.rmdir()
                break
            time.sleep(0.05)


# --- the checks ---------------------------------------------------------------------------------------------------

def check_topology():
    status, out, err, files = skbench("topology", "--json", "-")
    need(status == 0, err)
    told = json.loads(out)
    for node, (cpus, memory) in enumerate(MACHINE.nodes):
        at = told["nodes"][node]
        need(at["node"] == node and at["cpus"] == list(cpus), f"node {node}: {at}, CPUs {list(cpus)} were expected")
        need(at["distances"] == MACHINE.distances[node], f"node {node}: {at['distances']}, not {MACHINE.distances[node]}")
        size = (at["memory_kb"] or 0) / 1024
        need(0.75 * memory - 64 <= size <= memory, f"node {node}: {size:.0f} MB, {memory} were given")  # the kernel's own
    need(len(told["nodes"]) == len(MACHINE.nodes), f"{len(told['nodes'])} nodes")
    cores = {(cpu["package"], cpu["core"], tuple(cpu["siblings"])) for cpu in told["cpus"]}
    need(len(told["cpus"]) == 8 and len(cores) == 8 // MACHINE.siblings, f"CPUs {told['cpus']}")
    need(all(len(siblings) == MACHINE.siblings for _, _, siblings in cores), f"siblings {cores}")


def in_group(limited, *words):
    """The finished process of WORDS in the cgroup LIMITED (None: in this one)."""
    return subprocess.run(words, capture_output=True, text=True,
                          preexec_fn=limited and (lambda: (limited / "cgroup.procs").write_text("0") and None))


def place(policy, roles, limited=None):
    done = in_group(limited, BUILD / "benches/skb_place", f"--policy={policy}", f"--roles={roles}")
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else done.stderr


def check_policies():
    for policy, plans in MACHINE.policies.items():
        for roles, *expected in plans:
            status, answer = place(policy, roles)
            if len(expected) == 1:
                need(status == 4 and expected[0] in answer and answer.count("\n") == 1, f"{policy} {roles}: {status} {answer}")
            else:
                need(status == 0 and [answer["cpus"], answer["nodes"]] == expected, f"{policy} {roles}: {answer}")


def look(held, cpus, nodes):
    """Every role of place_bench on its CPU, every object on one of its nodes, NODES[role][kind]."""
    roles = json.loads(held.said())["roles"]
    at = tasks(held.pid)
    need(len(roles) == len(cpus), f"{len(roles)} roles")
    seen = {}
    for role, (told, cpu) in enumerate(zip(roles, cpus)):
        need(at[told["tid"]] == (cpu, [cpu]), f"role {role} is on CPU {at[told['tid']]}, not {cpu}")
        found = nodes_of(held.pid, [address for _, address in told["objects"]])
        for (kind, address), node in zip(told["objects"], found):
            need(node in nodes[role][kind], f"role {role}: {kind} at {address:#x} on node {node}, not {nodes[role][kind]}")
            seen.setdefault(kind, set()).add(node)
    need(set(seen) == set(KINDS), f"objects {seen}")


def look_at_maps(held, nodes):
    """All that is bound lies where it was bound to, page by page on each of several; and each of NODES has some."""
    found = bound_memory(held.pid)
    for asked, pages in found.items():
        need(set(pages) <= set(numbers(asked)), f"bound to node {asked}: pages on {pages}")
        each = [pages.get(node, 0) for node in numbers(asked)]
        if sum(each) > 8192:  # zones; by less than that, in huge pages perhaps, not every node has its turn
            need(min(each) > 0.5 * max(each), f"interleaved on {asked}: pages on {pages}")
    for node in nodes:
        need(sum(pages.get(node, 0) for pages in found.values()) > 1024, f"node {node} has no memory bound to it: {found}")


def listed(values):
    return ",".join(map(str, values))


def held_objects(cpus, words, alloc, **environment):
    return Held("tests/place/place_bench", f"--skb_sample=place/objects/roles:{len(cpus)}/alloc:{alloc}", "--skb_n=1",
                "--skb_batches=1", "--skb_warmup=0", f"--skb_cpus={listed(cpus)}", f"--skb_nodes={words}", **environment)


def by_role(cpus, nodes, alloc="slub", **environment):
    """All objects of each role on its node of NODES; pools and sockets are malloc()'s then, but for a pool's pages."""
    with held_objects(cpus, listed(nodes), alloc, **environment) as held:
        look(held, cpus, [{kind: {node} if kind in PLACED_BY_ROLE else EVERYWHERE for kind in KINDS} for node in nodes])
        look_at_maps(held, set(nodes))
        answer = held.finish()
    need({placed["node"] for placed in answer["placed"]} == set(nodes), f"the report tells of {answer['placed']}")
    for placed in answer["placed"]:
        need(placed["pages_elsewhere"] == 0 and placed["shell_on"] == placed["head_on"] == placed["node"],
             f"the report differs from the kernel: {placed}")


def by_object(cpus, where, alloc):
    """Each kind of object where WHERE says, {kind: local, remote, interleave or a number}."""
    nodes = [{kind: MACHINE.places(word, cpu) for kind, word in where.items()} for cpu in cpus]
    with held_objects(cpus, listed(f"{kind}={word}" for kind, word in where.items()), alloc) as held:
        look(held, cpus, nodes)
        look_at_maps(held, set.union(*(role["pages"] for role in nodes)))
        answer = held.finish()
    for placed in answer["placed"]:
        cpu = next(cpu for cpu in cpus if MACHINE.home(cpu) == placed["node"])
        for kind, word in where.items():
            told, expected = placed["objects"][kind], MACHINE.places(word, cpu)
            node = told["node"] if isinstance(told["node"], list) else [told["node"]]
            need(told["asked"] == word and set(node) == expected and told["pages"] > 0 and told["elsewhere"] == 0,
                 f"{kind}={word} beside CPU {cpu}: the report says {told}, nodes {expected} were expected")


def check_roles():
    """Local to each role, remote to each, all on one, on a node without CPUs."""
    memory = MACHINE.with_memory()
    local = [node for node in memory if MACHINE.nodes[node][0]]
    cpus = [MACHINE.nodes[node][0][0] for node in local]
    by_role(cpus, local)
    by_role(cpus, local[1:] + local[:1] if len(local) > 1 else memory[-1:], alloc="jemalloc")
    by_role([cpus[0], 7], [memory[-1]] * 2)
    by_role([cpus[0], 7], [memory[-1], memory[0]], alloc="jemalloc")


def check_objects():
    """Every kind under every policy, with roles on the first and the last CPU."""
    words = ["local", "remote", str(MACHINE.with_memory()[-1]), "interleave"]
    for turn in range(len(words)):
        where = {kind: words[(turn + i) % len(words)] for i, kind in enumerate(KINDS)}
        for alloc in ("slub", "jemalloc"):
            by_object([0, 7], where, alloc)


def check_planted():
    """The checks above see memory and threads that are elsewhere, whatever the program says."""
    memory = MACHINE.with_memory()
    library = str(BUILD / "tests/place/libplace_wrong_node.so")
    for what, says in (("memory", "on node"), ("cpu", "is on CPU")):
        try:
            by_role([0, 2], [memory[0]] * 2, LD_PRELOAD=library, SKB_WRONG=what, SKB_WRONG_NODE=str(memory[-1]))
        except Wrong as seen:
            need(says in str(seen), f"wrong {what}: another complaint: {seen}")
        else:
            raise Wrong(f"wrong {what}: not seen")


CASES = ("bench_contend contend/get_page/pages:private/threads:2", "bench_contend contend/obj_handed/alloc:jemalloc",
         "bench_skb skb/alloc_skb")


def check_cases():
    """Cases as they are measured."""
    memory = MACHINE.with_memory()
    for words in CASES:
        program, case = words.split()
        with Held(f"benches/{program}", f"--skb_sample={case}", "--skb_n=100", "--skb_batches=3", "--skb_cpus=0,6",
                  f"--skb_nodes={memory[-1]}") as held:
            at = sorted(tasks(held.pid).values())
            need(at == [(0, [0]), (6, [6])][:len(at)], f"{case}: roles on {at}")
            look_at_maps(held, memory[-1:])
            answer = held.finish()
        need(answer["placed"][0]["pages_elsewhere"] == 0, f"{case}: {answer['placed']}")


def check_run():
    """The whole command in a process of its own, as a user starts it."""
    policy = "cross-node" if len(MACHINE.with_memory()) == len(MACHINE.nodes) else "cross-llc"
    roles, cpus, nodes = MACHINE.policies[policy][0]
    done = subprocess.run([ROOT / "scripts/skbench", "run", "--suite", "quick", "--filter",
                           "^contend/get_page/pages:private/threads:2", "--placement", policy, "--budget", "4", "--json",
                           "-", "--seed", "1"], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "SKBENCH_BENCH_DIR": str(BUILD / "benches")})
    need(done.returncode in (0, 3), f"status {done.returncode}: {done.stderr}")  # 3: times that say nothing, as here
    document = json.loads(done.stdout)
    placed = document["context"]["skbench"]["plan"]["placement"]
    need(placed["policy"] == policy and placed["cpus"][:roles] == cpus and placed["nodes"][:roles] == nodes, f"{placed}")


def check_refusals():
    memory = MACHINE.with_memory()
    missing = len(MACHINE.nodes) + 2
    case = ("run", "--suite", "quick", "--filter", "^skb/alloc_skb/")
    refused(f"--nodes: there is no node {missing} here, but 0-{len(MACHINE.nodes) - 1}", *case, "--nodes", str(missing))
    for policy, plans in MACHINE.policies.items():
        if len(plans) == 1 and len(plans[0]) == 2:
            refused(f"{policy}: .* {plans[0][1]}", *case, "--placement", policy)
    if NAME == "memory-less":
        refused("--nodes: node 1 has no memory; 0,2 have", *case, "--nodes", "1")
        refused("--nodes: node 1 has no memory; 0,2 have", *case, "--nodes", "shells=1")
    if NAME == "four-nodes":
        with group(cpuset_mems="0,2") as limited:
            refused("node 1 is not among those whose memory this process may use, 0,2: .*cpuset.mems", *case, "--nodes",
                    "1", group=limited)
            refused("node 3 is not among those whose memory", *case, "--nodes", "pool=3", group=limited)
        with group(cpuset_mems="2") as limited:
            refused("this process has memory on one node alone, 2", *case, "--nodes", "heads=remote", group=limited)
        with group(cpuset_cpus="0-3") as limited:
            refused("CPU 5 is not among those that this process may use, 0-3: .*cpuset.cpus", *case, "--cpus", "0,5",
                    group=limited)
            status, answer = place("cross-node", 3, limited)
            need(status == 4 and "there are 2" in answer, f"3 roles on the 2 nodes of a cpuset: {answer}")
    if NAME == "two-nodes":
        with group(memory_max="40M") as limited:
            refused("the limit of its cgroup, 40 MB, leaves .*/sys/fs/cgroup/t/memory.max", *case, group=limited)
        with group(memory_max="100M") as limited:  # enough for a case, and not for 128 MB to copy from
            done = in_group(limited, BUILD / "benches/bench_skb", "--skb_machine", "--skb_cpus=0")
            need(done.returncode == 0 and "memory.max" in json.loads(done.stdout)["copy_memory_gb_per_s_reason"],
                 f"bench_skb --skb_machine: {done.returncode} {done.stdout} {done.stderr}")
        refused("needs 16 free huge pages of 2 MB on node 0 and has 0", *case, "--huge")
        offline()


@contextlib.contextmanager
def without(cpu):
    """CPU is offline."""
    online = SYSFS / f"cpu/cpu{cpu}/online"
    online.write_text("0")
    try:
        yield
    finally:
        online.write_text("1")


def offline():
    with without(3):
        refused("CPU 3 is offline: as root, echo 1 >", "run", "--cpus", "0,3")
        check_policies()  # none of them takes CPU 3
    with without(1):
        status, answer = place("smt", 2)
        need(status == 0 and answer["cpus"] == [2, 3], f"smt beside an offline CPU: {answer}")


def check_huge_pages():
    """Reserved on the last node alone: memory there lies in them, and elsewhere it is refused."""
    last = MACHINE.with_memory()[-1]
    pages = SYSFS / f"node/node{last}/hugepages/hugepages-2048kB/nr_hugepages"
    pages.write_text("40")
    try:
        need(int(pages.read_text()) == 40, f"{pages.read_text()} huge pages")
        with Held("benches/bench_skb", "--skb_sample=skb/alloc_skb", "--skb_n=10", "--skb_batches=1",
                  f"--skb_nodes={last}", "--skb_huge") as held:
            look_at_maps(held, [last])
            answer = held.finish()
        need(answer["backing"] == "hugetlb" and answer["placed"][0]["pages_elsewhere"] == 0, f"{answer}")
    finally:
        pages.write_text("0")


CHECKS = {"topology": check_topology, "policies": check_policies, "roles": check_roles, "objects": check_objects,
          "planted": check_planted, "cases": check_cases, "run": check_run, "refusals": check_refusals, "huge pages": check_huge_pages}


def main():
    SCRATCH.mkdir()
    failed = 0
    for name, check in CHECKS.items():
        begin = time.monotonic()
        try:
            check()
            print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Exception as wrong:
            failed += 1
            print(f"FAILED {name}: {wrong if isinstance(wrong, Wrong) else traceback.format_exc()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
