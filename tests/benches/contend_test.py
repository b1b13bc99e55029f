# SPDX-License-Identifier: MIT
"""Every contention case on real threads, with more of them than CPUs too: its check has to hold before and after.

Nothing is judged by its time here. CONTEND_BENCH is the program, CONTEND_LAUNCHER what starts it.
"""

import json
import os
import re
import shlex
import subprocess
import unittest

BENCH = os.environ["CONTEND_BENCH"]
LAUNCHER = shlex.split(os.environ.get("CONTEND_LAUNCHER", ""))
FEW = ("--skb_batches=3", "--skb_warmup=1")
# Roles that serve those that `threads` counts.
SERVED = {"contend/unclone": 1, "contend/shinfo": 1, "contend/page_pool_ring": 1, "contend/lock_sock": 1}
COUPLES = ("contend/fclone", "contend/pages_handed", "contend/obj_handed")


def run(*flags):
    done = subprocess.run([*LAUNCHER, BENCH, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def cases():
    return [case for operation in json.loads(run("--skb_list")[1])["ops"] for case in operation["cases"]]


def operation(case):
    return "/".join(part for part in case.split("/") if ":" not in part)


def value(case, key, default=0):
    found = re.search(rf"/{key}:(\d+)(/|$)", case)
    return int(found.group(1)) if found else default


def roles(case):
    threads = value(case, "threads")
    return threads * 2 if operation(case) in COUPLES else threads + value(case, "flushers") + SERVED.get(operation(case), 0)


def operations(case):
    """As few that a batch is short, as many that the threads meet."""
    return 8 if value(case, "burst") > 64 else 50 if operation(case) == "contend/charge" else 300


class Contend(unittest.TestCase):
    def sample(self, case, count, few=FEW):
        status, out, err = run(f"--skb_sample={case}", f"--skb_n={count}", "--skb_oversubscribe", *few)
        self.assertEqual((status, err), (0, ""), case)
        answer = json.loads(out)
        case = answer["name"]
        self.assertEqual(len(answer["roles"]), roles(case), case)
        self.assertEqual(answer["ops"], 1 if operation(case) == "contend/unclone" else value(case, "threads"), case)
        shared = roles(case) > len(answer["cpus"])
        self.assertEqual(answer["status"] == "oversubscribed", shared, case)
        self.assertEqual(answer["oversubscribed"], shared, case)
        return answer

    def test_every_case(self):
        for case in cases():
            with self.subTest(case):
                self.sample(case, operations(case))

    def test_more_threads(self):
        """5 of each, in every other case: roles take turns on few CPUs, so that they are interrupted anywhere."""
        chosen = [case for case in cases() if value(case, "threads") == 2 and not re.search("alloc:(jemalloc|glibc)", case)]
        for case in chosen[::2] + chosen[-1:]:
            with self.subTest(case):
                many = re.sub("threads:2", "threads:5", case)
                self.sample(many, max(operations(many) // 4, 4), ("--skb_batches=2", "--skb_warmup=0"))

    def test_refused_unless_asked_for(self):
        status, out, err = run("--skb_sample=contend/get_page/threads:64", "--skb_n=10", *FEW)
        if status == 0:
            self.assertGreaterEqual(len(json.loads(out)["cpus"]), 64)
            return
        self.assertEqual((status, out), (4, ""))
        self.assertRegex(err, r"^\S+: contend/get_page\S*: needs 64 CPUs and has \d+: give more with --skb_cpus, or let "
                              r"roles share one with --skb_oversubscribe$")

    def test_what_does_not_go_together(self):
        status, _, err = run("--skb_check=contend/page_pool_ring/era:3.4")
        self.assertEqual(status, 2)
        self.assertIn("3.4 has no page_pool: ask for era:6.1 or era:6.12", err)

    def test_every_allocator_is_listed(self):
        found = {value_of.group(1) for value_of in (re.search("alloc:(.*)$", case) for case in cases()
                                                    if operation(case) == "contend/obj_handed")}
        self.assertEqual(found, {"slub", "jemalloc", "glibc"})

    def test_reports(self):
        self.assertGreater(self.sample("contend/shinfo", 3000)["report"]["reads_per_op"], 0)
        self.assertLessEqual(self.sample("contend/unclone", 300)["report"]["race_share"], 1)
        report = self.sample("contend/lock_sock", 300)["report"]
        self.assertEqual(report["drop_share"], 0)
        self.assertGreater(report["locks_per_packet"], 0)


if __name__ == "__main__":
    unittest.main()
