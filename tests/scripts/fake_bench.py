#!/usr/bin/python3 -IS
# SPDX-License-Identifier: MIT
"""A bench binary that does no work: it speaks the contract and invents its times as it is told to.

FAKE_BENCH holds a JSON object:
  value          ns an operation (1000); a case with variant:offset_ack takes `factor` times that (0.95)
  sigma          spread of ln(time) from process to process (0.001)
  drift          added to ln(time) for each process that ran before (0)
  seed           of the noise (1)
  fail           {"KIND": [numbers of samples, from 0]} or {"KIND": "all"}; kinds: unmeasured, crash, hang, garbage,
                 impossible, check, nan, zero, other_name
  only           the failures hit only cases that match this expression
  cpus           that it says to have (2): a case with threads:N needs N of them, and does N operations at once
  ops            the operation of the cases (skb/fake)
  nowhere        why roles and memory have no place: the refusal of --skb_where
  cases, frags   of --skb_list: names, and the words of the key frags (None: 1 to max_skb_frags)
FAKE_STATE names a file that counts the samples taken so far.
"""

import json
import math
import os
import random
import re
import sys
import time

PLAN = {"value": 1000.0, "factor": 0.95, "sigma": 0.001, "drift": 0.0, "seed": 1, "fail": {}, "only": "",
        "sleep": 0.0, "max_skb_frags": 17, "cpus": 2, "ops": "skb/fake", "nowhere": None,
        "frags": None,
        "cases": ["skb/clone/frags:0/alloc:slub", "skb/clone/frags:16/alloc:slub", "skb/copy/alloc:slub"]}
PLAN.update(json.loads(os.environ.get("FAKE_BENCH", "{}")))


def counted():
    """How many samples were taken before this one."""
    state = os.environ.get("FAKE_STATE")
    if not state:
        return 0
    handle = os.open(state, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(handle, b".")
    size = os.fstat(handle).st_size
    os.close(handle)
    return size - 1


def quantiles(value):
    return {"p10": value * 0.98, "p20": value * 0.99, "p33": value, "p50": value * 1.01, "p90": value * 1.2}


def fails(case, number):
    if PLAN["only"] and not re.search(PLAN["only"], case):
        return None
    for kind, numbers in PLAN["fail"].items():
        if numbers == "all" or number in numbers:
            return kind
    return None


def sample(case, flags):
    number = counted()
    kind = fails(case, number)
    time.sleep(PLAN["sleep"])
    answer = {"schema": "skbench-sample-1", "name": case, "n": int(flags["n"]),
              "batches": int(flags.get("batches", 100)), "kept": 90, "status": "ok", "reason": None, "unit": "ns",
              "roles": [{"name": "ack", "cpu": 0, "busy_p33": 1.0, "wait_p33": 0.0}],
              "bytes_per_op": 65160 if "/trim/" in case else 65536 if case.startswith("mptcp/") else 0, "allocator": "slub", "backing": "4k", "bound": False,
              "cpus": [0], "inject": float(flags.get("inject", 0)), "env_pad": len(os.environ.get("SKB_PAD", ""))}
    if kind == "crash":
        os.abort()
    if kind == "hang":
        time.sleep(3600)
    if kind == "garbage":
        print('{"schema": "skbench-sample-1", "name"')
        return 0
    if kind == "impossible":
        print("noise before", file=sys.stderr)
        print("two CPUs are needed, one is there", file=sys.stderr)
        return 4
    if kind == "check":
        print("check: 15 page references where 16 were expected", file=sys.stderr)
        return 5
    if kind == "unmeasured":
        answer.update(status="unmeasured", reason="12 of 100 batches kept", wall=None, busy=None, cpu=None)
        print(json.dumps(answer))
        return 0
    threads = int((re.search(r"/threads:(\d+)", case) or [None, 1])[1])
    if threads > PLAN["cpus"]:
        if "oversubscribe" not in flags:
            print(f"needs {threads} CPUs and has {PLAN['cpus']}", file=sys.stderr)
            return 4
        answer.update(status="oversubscribed", kept=0, reason=f"{threads} roles took turns on {PLAN['cpus']} CPUs")
    cpus = [int(cpu) for cpu in flags.get("cpus", "0").split(",")]
    objects = dict(part.split("=") for part in flags.get("nodes", "").split(",") if "=" in part)
    nodes = [0] if objects else [int(node) for node in flags.get("nodes", "0").split(",")]
    if objects:
        told = {"node": 0, "pages": 8, "elsewhere": 0, "on": {"0": 8}}
        answer["placed"] = [{"node": 0, "pages_elsewhere": 0, "shell_on": 0, "head_on": 0, "objects": {
            name: {"asked": objects.get(name, "local"), **told} for name in ("shells", "heads", "pages", "pool", "socket")}}]
    if "huge" in flags:
        answer["backing"] = "hugetlb"
    answer.update(ops=threads, cpus=cpus, roles=[{**answer["roles"][0], "cpu": cpus[i % len(cpus)], "node": nodes[i % len(nodes)]}
                                                 for i in range(threads)])
    rng = random.Random(PLAN["seed"] * 1000003 + number)
    value = PLAN["value"] * math.exp(rng.gauss(0, PLAN["sigma"]) + PLAN["drift"] * number)
    if re.search("variant:(offset_ack|merged|size_bias|posted|split_fixed)", case):
        value *= PLAN["factor"]
    value *= 1 + float(flags.get("inject", 0)) / 100
    for clock in ("wall", "busy", "cpu"):
        answer[clock] = quantiles(value)
    answer["value"] = "busy.p33"
    if "form:link" in case:
        answer.update(value="whole.cpu", whole={"wall": value * 1.5, "cpu": value, "busy": value * 1.5},
                      report={"race_share": 1.0, "window_us": 110.34})
        answer["busy"] = quantiles(value * 7)  # not what counts
    if case.startswith("mptcp/"):
        size = 32768.0 if re.search("variant:(size_bias|posted|merged|split_fixed)", case) else 16384.0
        answer.update(value="whole.cpu", whole={"wall": value, "cpu": value, "busy": value},
                      report={"size_goal": 65455.0, "skb_bytes": size, "goal_fill": size / 65455,
                              "skbs_per_mb": 1e6 / size, "maps_per_mb": 1e6 / size, "map_bytes_per_mb": 28e6 / size})
    if case.startswith("tcp/defer"):
        if "variant:inline" not in case:
            value *= PLAN["factor"]
        answer.update(value="kept_run.wall", kept_run={"wall": value}, whole={"wall": value * 2, "cpu": value * 3, "busy": value},
                      bytes_per_op=65160, report={
                          "packet_bytes": 65160.0, "free_locked_last": 0.25, "free_locked_flush": 0.0,
                          "free_locked_other": float("variant:inline" in case)})
        answer["busy"] = quantiles(value * 7)
    if kind == "nan":
        answer["busy"]["p33"] = math.nan
    if kind == "zero":
        answer["busy"] = quantiles(0.0)
    if kind == "other_name":
        answer["name"] = "tcp/other/case"
    print(json.dumps(answer))
    return 0


def ledger(case):
    if case.startswith("mptcp/"):
        return {"name": case, "rows": [{"phase": "send", "page_get": 3, "rmw": 6}]}
    if case.startswith("tcp/defer"):
        return {"name": case, "rows": [{"phase": "eat", "page_put": 45 * ("variant:inline" in case), "rmw": 1}]}
    eager = "variant:eager" in case
    frags = int(re.search(r"frags:(\d+)", case).group(1))
    rows = []
    if "form:link" in case:
        return {"name": case, "rows": [{"phase": "schedule", "page_get": 32 * frags * eager, "rmw": 600}]}
    for phase, get, put in (("transmit", 0, 0), ("partial_ack", 1, 0), ("completion", 0, 1), ("full_ack", 0, 0),
                            ("life", 1, 1)):
        got, given = frags * get * eager, frags * put * eager
        rows.append({"phase": phase, "page_get": got, "page_put": given, "page_alloc": 0, "page_free": 0,
                     "obj_alloc": get * eager, "rmw": 19 * (phase in ("transmit", "life")) + got + given, "rmw_page": got + given,
                     "shared_stores": 0 if eager or phase == "completion" else 3})
    return {"name": case, "rows": rows}


def main(argv):
    flags = dict(re.fullmatch(r"--skb_(\w+)(?:=(.*))?", arg).groups() for arg in argv)
    if "sample" in flags:
        return sample(flags["sample"], flags)
    if "calibrate" in flags:
        answer = {"name": flags["calibrate"], "n": 200}
    elif "ledger" in flags:
        answer = ledger(flags["ledger"])
    elif "list" in flags:
        frags = {"name": "frags", "lo": 1, "hi": PLAN["max_skb_frags"]}
        words = {"name": "frags", "words": PLAN["frags"]} if PLAN["frags"] else frags
        answer = {"ops": [{"name": PLAN["ops"], "summary": "invented", "keys": [{"name": "frags", "lo": 0, "hi": 17}, {"name": "threads", "lo": 1, "hi": 64}],
                           "cases": PLAN["cases"]},
                          {"name": "tcp/trim", "summary": "invented", "keys": [words], "cases": []}]}
        if "mptcp" in os.path.basename(sys.argv[0]):
            answer = {"ops": [{"name": "mptcp/stream", "summary": "invented", "keys": [], "cases": []}]}
    elif "where" in flags:
        if PLAN["nowhere"]:
            print(PLAN["nowhere"], file=sys.stderr)
            return 4
        answer = {"schema": "skbench-where-1", "cpus": [0], "nodes": [0], "homes": [{"node": 0}]}
    elif "machine" in flags:
        speeds = {"p10": 20.0, "p50": 20.5, "p90": 21.0}
        answer = {"schema": "skbench-machine-1", "cpus": [0, 1],
                  "core_to_core_ns": {"p10": 60.0, "p50": 65.5, "p90": 80.0}, "copy_cache_gb_per_s": speeds,
                  "copy_memory_gb_per_s": None, "copy_memory_gb_per_s_reason": "Cannot allocate memory"}
    elif "context" in flags:
        answer = {"schema": "skbench-context-1", "compiler": "fake", "compiler_version": "1.0", "flags": "-O2",
                  "preset": "release", "max_skb_frags": PLAN["max_skb_frags"], "page_size": 4096,
                  "jemalloc": "5.3.0", "liburcu": "0.13.2", "google_benchmark": "1.7.1", "glibc": "2.36"}
    else:
        print(f"unknown flags: {argv}", file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
