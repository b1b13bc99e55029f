# SPDX-License-Identifier: MIT
"""Counters of each case of a run (`run --counters`), and how `compare` shows them: they explain a time, they never judge.

They are taken after all timing, by one process of skb-prof for each case: a timed process carries none.
"""

from . import benchbin, table
from .errors import UserError
from .ledger import wrap

SECONDS = 0.4
CHANGED = 0.02  # of a count, from which on compare shows it
LEAST = 0.005  # and it is at least so many an operation


def take(cases, prof, cpus, progress):
    """[{"case", "operations", "user_only", "reason", "events"}] of CASES, {name: BenchBinary}; ends early when
    interrupted."""
    found = []
    try:
        for number, (name, binary) in enumerate(cases.items(), 1):
            progress.say(f"counters, case {number} of {len(cases)}")
            found.append(take_one(name, binary, prof, cpus))
    except KeyboardInterrupt:
        pass  # the times are there: what was counted is written with them
    finally:
        progress.clear()
    return found


def take_one(name, binary, prof, cpus):
    from . import profile

    entry = {"case": name, "operations": None, "user_only": None, "reason": None, "events": []}
    try:
        n = binary.calibrate(name, cpus) * max(1, round(profile.BATCH_S / profile.CALIBRATED_S))
        batches = max(1, round(SECONDS / profile.BATCH_S))
        answer, _ = profile.count(prof, profile.Bench(binary, name, cpus, n, batches), None)
    except (benchbin.NotPossible, UserError) as error:
        return {**entry, "reason": str(error)}
    operations = n * batches
    entry.update(operations=operations, user_only=answer["user_only"], events=[event_of(event, operations)
                                                                                for event in answer["events"]])
    return entry


def event_of(event, operations):
    """What a result file keeps of one event: enough to scale it anew."""
    kept = {"label": event["label"], "status": event["status"], "reason": event["reason"],
            "per_op": None if event["value"] is None else event["value"] / operations}
    for key in ("raw", "enabled_ns", "running_ns"):
        kept[key] = event.get(key)
    return kept


def lines(entries):
    """What `run` prints of them; nothing without any."""
    if not entries:
        return
    yield ""
    yield "counters of one operation, of processes of their own after the timing"
    refused = {}
    for entry in entries:
        told = [f"{event['label']} {table.number(event['per_op']) if event['per_op'] else '0'}"
                f"{' (scaled)' if event['status'] == 'scaled' else ''}" for event in entry["events"]
                if event["per_op"] is not None]
        for event in entry["events"]:
            if event["per_op"] is None:
                refused.setdefault(event["reason"], {})[event["label"]] = True
        yield from (f"  {line}" for line in wrap(entry["case"], table.WIDTH - 2))
        yield from table.wrapped(f"    {', '.join(told) or entry['reason'] or 'none'}", "  ")
    for reason, labels in refused.items():
        yield from table.wrapped(f"  not counted: {', '.join(labels)}: {reason}", "    ")
    if any(entry["user_only"] for entry in entries):
        yield "  counts of user space only (:u)"


# --- in a comparison ----------------------------------------------------------------------------------------------

def changes(base, new, cases):
    """[{"case", "label", "base", "new"}] of what both sides counted on CASES; BASE and NEW: {case: entry}."""
    found = []
    for case in cases:
        if case not in base or case not in new:
            continue
        after = {event["label"]: event["per_op"] for event in new[case]["events"]}
        for event in base[case]["events"]:
            if event["per_op"] is not None and after.get(event["label"]) is not None:
                found.append({"case": case, "label": event["label"], "base": event["per_op"], "new": after[event["label"]]})
    return found


def changed(entry):
    most = max(entry["base"], entry["new"])
    return most >= LEAST and abs(entry["new"] - entry["base"]) > CHANGED * most


def explanation(report, case):
    """One line of the counts that changed with CASE, or nothing."""
    told = [f"{entry['label']} {table.number(entry['base'])} -> {table.number(entry['new'])}"
            for entry in report.get("counters", ()) if entry["case"] == case and changed(entry)]
    return [f"counters, which judge nothing: {', '.join(told)}"] if told else []
