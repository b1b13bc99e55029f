# SPDX-License-Identifier: MIT
"""`skbench profile`: where one case spends its time: counts, samples, annotated source, flame graph, shared lines.

A session is one folder. The case runs once under skb-prof, which counts, and once under perf record, which samples;
both are told by the bench program when it is timed (--skb_control), so that set-up and barriers are in neither.
"""

import contextlib
import datetime
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import annotate, benchbin, build, children, files, flame, instructions, perfscript, profdiff, run, table, tree
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, OK, UserError
from .ledger import wrap

# How skb-prof's reason begins where the name is wrong, and not the machine.
MISSPELT = r"no such event|its modifier|PMU/TERMS/|a term of|the PMU .* has no event or term"
SCHEMA = "skbench-profile-1"
BATCH_S = 0.02  # long batches: switching counters on and off costs as much as thousands of operations
CALIBRATED_S = 200e-6
WARMUP = 2
SECONDS = 2.0
FREQUENCY = 4999
LIMIT_S = 120
INSIDE_LEAST = 0.95
HOT = 12  # functions on the terminal
ANNOTATED = 3  # functions that are annotated without being asked for
CALLGRIND_OPERATIONS = 200
SKID = {
    "cpu-clock": "a timer takes the samples: time is booked on the instruction after the one that took it, and never "
                 "inside a stretch with interrupts off",
    "cycles": "the PMU's interrupt comes late: time is booked some instructions after the one that took it",
}
LEDGER_SHOWN = (("page_get", "gets"), ("page_put", "puts"), ("obj_alloc", "allocs"), ("rmw", "RMW"), ("lock", "locks"),
                ("bytes_copied", "bytes copied"), ("shared_stores", "shared stores"))


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "profile", help="where one case spends its time: counters, hot functions, flame graph",
        description="Counts and samples the timed region of one case and writes a folder: report, annotated source, "
                    "flame graph, the recording itself. --diff puts two such folders side by side.")
    parser.add_argument("bench", nargs="?", metavar="BENCH", help="the name of a case; keys that it leaves out have their "
                                                                  "defaults")
    parser.add_argument("--annotate", metavar="SYMBOL", action="append", default=[],
                        help="annotate this function (default: the hottest)")
    parser.add_argument("--events", metavar="LIST", help="what is counted, instead of all that skb-prof knows")
    parser.add_argument("--seconds", metavar="S", default=str(SECONDS), help=f"of each of two passes ({SECONDS:g})")
    parser.add_argument("--frequency", metavar="HZ", default=str(FREQUENCY), help=f"samples a second ({FREQUENCY})")
    parser.add_argument("--cpus", metavar="LIST", help="CPUs for the roles, as in 0,1 or 2-3")
    parser.add_argument("--out", metavar="DIR", help="the folder, which must not exist (default: out/profile-...)")
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="compare two folders instead")
    parser.add_argument("--json", metavar="FILE", help="one JSON object to FILE; - for standard output")
    parser.set_defaults(func=main)


def main(args):
    if args.diff:
        if args.bench or args.annotate or args.out:
            raise UserError("profile --diff A B takes two folders and nothing else")
        return profdiff.main(args.diff, args.json)
    if not args.bench:
        raise UserError("profile: the name of a case is needed, as `skbench run --suite full` prints them")
    request = Request(args)
    prof = build.ensure_prof()
    binary, traced = find_binary(args.bench)
    folder = make_folder(args.out, args.bench)
    try:
        session = record(request, binary, traced, prof, folder)
    except BaseException:
        # Half a session is none; what perf wrote would only mislead.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    lines = list(report(session))
    files.write_new(folder / "session.json", files.json.dumps(session, indent=1, allow_nan=False) + "\n")
    files.write_text(folder / "report.txt", "\n".join(lines) + "\n")
    out = files.text_stream(args.json)
    with contextlib.suppress(ValueError):
        folder = folder.relative_to(Path.cwd())
    out.write("\n".join([*lines, "", f"session  {folder}"]) + "\n")
    if args.json:
        files.write_json(args.json, {**session, "folder": str(folder)})
    return session["exit_status"]


class Request:
    """The command line, checked as far as it can be without a binary."""

    def __init__(self, args):
        self.case = args.bench
        self.annotate = args.annotate
        self.events = args.events
        self.seconds = run.seconds(args.seconds, "--seconds")
        self.frequency = run.integer(args.frequency, "--frequency", 1, 1000000)
        self.cpus = run.cpus_from(args.cpus)
        if args.out is not None and os.path.lexists(args.out):
            raise UserError(f"{args.out} exists and results are never overwritten: name another folder")


def find_binary(case):
    """(plain, traced or None): the programs that hold CASE."""
    directory = run.bench_directory()
    binaries = run.bench_binaries(directory)
    operation = benchbin.split_name(case)[0]
    plain = binaries.get(f"bench_{case.split('/')[0]}")
    # A variant of somebody's own is a program that may hold operations of any family.
    for binary in [] if plain else binaries.values():
        if any(entry["name"] == operation for entry in binary.operations()):
            plain = binary
    if plain is None:
        raise UserError(f"{case}: no program has such a case: {', '.join(binaries)} --skb_list tells theirs")
    traced = directory / f"{plain.name}_traced"
    return plain, benchbin.BenchBinary(traced) if traced.is_file() else None


def make_folder(given, case):
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    words = "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", part) for part in case.split("/")[:2])
    folder = Path(given) if given else tree.repo_root() / "out" / f"profile-{stamp}-{words}"
    try:
        folder.mkdir(parents=not given)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}") from None
    return folder


# --- the two passes -----------------------------------------------------------------------------------------------

def record(request, binary, traced, prof, folder):
    """Runs both passes and returns the session, with its other files in FOLDER."""
    progress = run.Progress("profile")
    progress.say("calibration")
    try:
        n = binary.calibrate(request.case, request.cpus) * max(1, round(BATCH_S / CALIBRATED_S))
        batches = max(20, round(request.seconds / BATCH_S))
        bench = Bench(binary, request.case, request.cpus, n, batches)
        progress.say("counting")
        counters, sample = count(prof, bench, request.events)
        if request.events is not None:
            check_names(counters, request.events)
        probe = probe_of(prof)
        profile = sampling = None
        if probe["event"] is None:
            sampling = {"event": None, "reason": probe["reason"]}
        else:
            progress.say("sampling")
            sampling, sampled = record_samples(bench, probe, request.frequency, folder)
        if sampling["event"] is not None:
            progress.say("reading the samples")
            profile = perfscript.Profile(read_samples(folder / "perf.data"))
            sample = sampled
        progress.say("ledger and instructions")
        name = sample["name"]
        session = {
            "schema": SCHEMA, "command": "profile", "case": name, "n": sample["n"], "batches": batches,
            "operations": sample["n"] * batches, "revision": dict(zip(("commit", "dirty"), tree.revision())),
            "build": binary.context(), "roles": sample["roles"], "time": times(sample),
            "control": sample["control"], "counters": counters, "sampling": sampling,
            "ledger": ledger_of(traced, name), "instructions": instructions_of(binary, name, sample)}
        add_profile(session, profile, request, binary, folder)
        session["sharing"] = sharing(bench, traced, sample, folder)
    except benchbin.NotPossible as error:
        raise UserError(f"{request.case}: {error}", IMPOSSIBLE) from None
    finally:
        progress.clear()
    session["exit_status"] = status_of(session)
    return session


def status_of(session):
    inside = session["sampling"].get("inside_share")
    counted = any(event["value"] is not None for event in session["counters"]["events"])
    if session["sampling"]["event"] is None and not counted:
        return IMPOSSIBLE
    return INCONCLUSIVE if inside is not None and inside < INSIDE_LEAST else OK


class Bench:
    """The command line of the timed program."""

    def __init__(self, binary, case, cpus, n, batches):
        self.case = case
        self.words = [str(binary.path), f"--skb_sample={case}", f"--skb_n={n}", f"--skb_batches={batches}",
                      f"--skb_warmup={WARMUP}", *benchbin.BenchBinary._cpus(cpus)]

    def under(self, before, scratch):
        """Runs BEFORE (a profiler and its flags, the FIFOs' names in {ctl} and {ack}) with the bench behind it.

        (the sample that the bench printed or None, how it Ended)
        """
        fifos = {name: os.path.join(scratch, name) for name in ("ctl", "ack")}
        for path in fifos.values():
            with contextlib.suppress(FileExistsError):
                os.mkfifo(path)
        command = [word.format(**fifos) if "{ctl}" in word else word for word in before]
        command += [*self.words, f"--skb_control={fifos['ctl']},{fifos['ack']}"]
        ended = children.run(command, LIMIT_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             env=benchbin.environment(0))
        sample = None
        for line in ended.out.splitlines() if ended.out else ():
            if line.startswith("{"):
                sample = files.json.loads(line)
        return sample, ended


def last_line(ended):
    said = [line.strip() for line in (ended.err or "").splitlines() if line.strip()]
    return said[-1][:300] if said else "it says nothing"


def failed(bench, program, ended):
    if ended.status in (2, 4):  # the bench's own words, through the profiler
        return UserError(last_line(ended), ended.status)
    return benchbin.BenchFailed(f"{bench.case}: {program} {ended.why(LIMIT_S)}: {last_line(ended)}")


def count(prof, bench, events):
    """(what skb-prof counted, the sample)."""
    with tempfile.TemporaryDirectory(prefix="skbench-") as scratch:
        out = os.path.join(scratch, "counters.json")
        before = [str(prof), "--control={ctl},{ack}", f"--json={out}", *([f"--events={events}"] if events is not None else []),
                  "--"]
        sample, ended = bench.under(before, scratch)
        try:
            with open(out, encoding="utf-8") as file:
                counters = files.json.load(file)
        except (OSError, ValueError):
            counters = None
    # Status 4 with an answer: nothing could be counted, and each event says why.
    if counters is None or sample is None or (ended.status and ended.status != IMPOSSIBLE):
        raise failed(bench, "under skb-prof it", ended)
    return counters, sample


def check_names(counters, given):
    """Refuses a list that nobody could count anywhere; what only this machine cannot count has its reason."""
    if not counters["events"]:
        raise UserError(f"--events '{given}': names no event")
    for event in counters["events"]:
        if event["reason"] and re.match(MISSPELT, event["reason"]):
            raise UserError(f"--events {event['name']}: {event['reason']}")


def probe_of(prof):
    done = subprocess.run([str(prof), "--probe"], capture_output=True, text=True, timeout=LIMIT_S)
    try:
        answer = files.json.loads(done.stdout)
    except ValueError:
        raise UserError(f"{prof} --probe: {done.stderr.strip() or 'no answer'}", FAILED) from None
    if shutil.which("perf") is None and answer["event"] is not None:
        answer["event"], answer["reason"] = None, "perf is not installed: scripts/install-packages profile"
    return answer


def max_frequency(wanted, path="/proc/sys/kernel/perf_event_max_sample_rate"):
    try:
        return min(wanted, int(Path(path).read_text(encoding="ascii")))
    except (OSError, ValueError):
        return wanted


def record_samples(bench, probe, frequency, folder):
    """(context of the samples, the sample that the bench printed), with the recording in FOLDER/perf.data."""
    event, label = probe["event"], probe["event"]
    if probe["user_only"]:
        label = f"{event}u" if ":" in event else f"{event}:u"
    precise = event.partition(":")[2]
    about = {"event": label, "reason": None, "precise": len(precise), "user_only": probe["user_only"],
             "unit": "ns" if event == "cpu-clock" else "cycles",
             "frequency": max_frequency(frequency), "cycles_reason": probe["cycles_reason"],
             "skid": None if precise else SKID[event], "kernel_names": probe["kernel_names"]}
    with tempfile.TemporaryDirectory(prefix="skbench-") as scratch:
        before = ["perf", "record", "-o", str(folder / "perf.data"), "-N", "-e", label, "-F", str(about["frequency"]),
                  "--call-graph", "fp", "-m", str(max(1, probe["mmap_kb"] * 1024 // os.sysconf("SC_PAGESIZE"))),
                  "--delay=-1", "--control=fifo:{ctl},{ack}", "--"]
        sample, ended = bench.under(before, scratch)
    if ended.status == 0 and sample is not None:
        return about, sample
    (folder / "perf.data").unlink(missing_ok=True)
    if sample is not None or "ermission" in (ended.err or "") or "mmap" in (ended.err or ""):
        return {"event": None, "reason": f"perf record: {last_line(ended)}"}, None
    raise failed(bench, "under perf record it", ended)


def read_samples(path):
    """The samples of a recording, through perf script."""
    command = ["perf", "script", "-i", str(path), "--no-inline", "-F", perfscript.FIELDS]
    ended = children.run(command, LIMIT_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    if ended.timed_out or ended.status:
        raise UserError(f"perf script {ended.why(LIMIT_S)}: {last_line(ended)}", FAILED)
    return perfscript.parse(ended.out)


# --- what is beside the samples -----------------------------------------------------------------------------------

def times(sample):
    """ns an operation, as the timed program itself says; null where too few batches had their CPUs."""
    return {"wall_p33": (sample["wall"] or {}).get("p33"), "busy_p33": (sample["busy"] or {}).get("p33"),
            "cpu": sample["whole"]["cpu"], "status": sample["status"], "reason": sample["reason"]}


def ledger_of(traced, case):
    if traced is None:
        return {"rows": [], "reason": "there is no traced program"}
    try:
        return {"rows": traced.ledger(case), "reason": None}
    except (benchbin.NotPossible, UserError) as error:
        return {"rows": [], "reason": str(error)}


def instructions_of(binary, case, sample):
    """Instructions of one operation: the stored count, or one by callgrind, or why there is none."""
    directory = tree.repo_root() / "results" / "instructions"
    with contextlib.suppress(UserError):
        made = instructions.toolchain("gcc", build.build_dir())
        stem = made["compiler"] + made["version"].split(".")[0]
        instructions.comparable(directory / f"{stem}.json", made)
        for name, value in instructions.read_stored(directory, stem).items():
            if benchbin.same_case(name, case):
                return {"value": value, "source": f"results/instructions/{stem}.csv", "reason": None}
    if len(sample["roles"]) > 1:
        return {"value": None, "source": None, "reason": "its roles wait for each other by spinning, and spins are not the "
                                                         "same number twice"}
    try:
        return {"value": instructions.count(binary.path, case, CALLGRIND_OPERATIONS), "source": "callgrind", "reason": None}
    except UserError as error:
        return {"value": None, "source": None, "reason": str(error)}


def sharing(bench, traced, sample, folder):
    """Which cache lines roles share: by perf c2c where it opens, else by the traced build. {"kind", "reason", "rows"}."""
    if len(sample["roles"]) < 2:
        return {"kind": None, "reason": "one role: no line is shared with another CPU", "rows": []}
    reason = record_c2c(bench, folder)
    if reason is None:
        return {"kind": "perf c2c", "reason": None, "rows": [], "file": "c2c.txt"}
    if traced is None:
        return {"kind": None, "reason": f"{reason}; there is no traced program", "rows": []}
    try:
        answer = traced._ask(bench.case, [f"--skb_lines={bench.case}"])
    except (benchbin.NotPossible, UserError) as error:
        return {"kind": None, "reason": f"{reason}; {error}", "rows": []}
    shared = {"kind": "traced build", "reason": reason, "operations": answer["operations"], "rows": answer["lines"]}
    files.write_text(folder / "lines.txt", "\n".join(sharing_lines(shared, everything=True)) + "\n")
    return shared


def record_c2c(bench, folder):
    """None with FOLDER/c2c.txt written, or why perf c2c does not work here."""
    if shutil.which("perf") is None:
        return "perf is not installed: scripts/install-packages profile"
    with tempfile.TemporaryDirectory(prefix="skbench-") as scratch:
        data = os.path.join(scratch, "c2c.data")
        try:
            ended = children.run(["perf", "c2c", "record", "-o", data, "--", "true"], LIMIT_S, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, errors="replace")
            if not ended.timed_out and ended.status == 0:
                _, ended = bench.under(["perf", "c2c", "record", "-o", data, "--delay=-1", "--control=fifo:{ctl},{ack}",
                                        "--"], scratch)
            if not ended.timed_out and ended.status == 0:
                ended = children.run(["perf", "c2c", "report", "-i", data, "--stdio"], LIMIT_S, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True, errors="replace")
        except OSError as error:
            return f"perf c2c: {error.strerror}"
        if ended.timed_out or ended.status != 0:
            return f"perf c2c does not work here ({last_line(ended)}): it needs precise load events, as a bare-metal PMU has"
        files.write_text(folder / "c2c.txt", ended.out)
    return None


# --- what the samples say -----------------------------------------------------------------------------------------

def add_profile(session, profile, request, binary, folder):
    """Symbols, listings and the flame graph: into SESSION and FOLDER."""
    sampling, operations = session["sampling"], session["operations"]
    session["symbols"], session["annotated"] = [], []
    if profile is None:
        return
    sampling.update(samples=profile.samples, inside=profile.inside, inside_share=profile.share,
                    outside=dict(profile.outside.most_common(8)), per_op=profile.weight / operations)
    for (symbol, dso), (samples, weight, by_role) in profile.hottest():
        session["symbols"].append({
            "symbol": symbol, "dso": short_dso(dso), "samples": samples, "share": weight / profile.weight,
            "samples_per_op": samples / operations, "per_op": weight / operations,
            "roles": {role: value / operations for role, value in sorted(by_role.items())}})
    files.write_text(folder / "folded.txt", "".join(f"{line}\n" for line in profile.folded()))
    unit = sampling["unit"]
    files.write_text(folder / "flame.svg", flame.svg(
        profile.stacks, session["case"],
        f"{sampling['event']}, {profile.inside} samples of the timed region, {profile.weight / operations:.1f} {unit} an "
        f"operation of all roles, rev {session['revision']['commit'][:7]}",
        lambda weight, share: f"{weight / operations:.2f} {unit} an operation, {100 * share:.2f} %"))
    for symbol in request.annotate or [key[0] for key, _ in profile.hottest()[:ANNOTATED]]:
        session["annotated"].append(annotate_one(session, profile, symbol, bool(request.annotate), binary, folder))


def short_dso(dso):
    return dso if dso.startswith("[") else dso.rsplit("/", 1)[-1]


def annotate_one(session, profile, symbol, asked_for, binary, folder):
    """{"symbol", "file", "reason", "lines"}; the listing goes to FOLDER."""
    keys = [key for key in profile.places if key[0] == symbol]
    if not keys:
        near = sorted(key[0] for key in profile.places if symbol in key[0])
        raise UserError(f"--annotate {symbol}: no sample lies in it; there are "
                        f"{', '.join(near[:5] or [key[0] for key, _ in profile.hottest()[:5]])}")
    key = max(keys, key=lambda k: profile.symbols[k][1])
    samples, weight, _ = profile.symbols[key]
    found = {"symbol": symbol, "file": None, "reason": None, "lines": []}
    try:
        if not key[1].startswith("/"):
            raise UserError(f"{symbol} lies in {key[1]}, which is no file", IMPOSSIBLE)
        rows = annotate.disassemble(key[1], symbol)
    except UserError as error:
        if asked_for:
            raise
        return {**found, "reason": str(error)}
    operations, sampling = session["operations"], session["sampling"]
    sources = annotate.Sources()
    lines = [f"{symbol}  ({short_dso(key[1])})  case {session['case']}",
             f"{samples} samples of {sampling['event']}, {100 * weight / profile.weight:.1f} % of the timed region, "
             f"{weight / operations:.3f} {sampling['unit']} an operation ({operations} operations)"]
    if sampling["skid"]:
        lines.append(f"note: {sampling['skid']}")
    for file, number, line_samples, line_weight in annotate.by_line(rows, profile.places[key])[:10]:
        found["lines"].append({"file": sources.shown(file), "line": number, "samples": line_samples,
                               "per_op": line_weight / operations, "text": sources.text(file, number)})
    lines += ["", f"{'samples':>8}{'%':>7}{sampling['unit'] + '/op':>11}  source"]
    lines += [f"{row['samples']:>8}{100 * row['per_op'] * operations / weight:>7.1f}{row['per_op']:>11.3f}  "
              f"{row['file']}:{row['line']}  {row['text']}" for row in found["lines"]]
    lines += ["", *annotate.listing(rows, profile.places[key], operations, sampling["unit"], sources)]
    found["file"] = f"annotate-{re.sub(r'[^A-Za-z0-9_.]+', '-', symbol)}.txt"
    files.write_text(folder / found["file"], "\n".join(lines) + "\n")
    return found


# --- the report ---------------------------------------------------------------------------------------------------

def small(value):
    """A count of one operation: as many digits as tell something."""
    if value == 0:
        return "0"
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.3g}" if value >= 1e-4 else \
        f"{value:.1e}"


def labelled(label, text):
    """LABEL in a column of its own and TEXT beside it, on as many lines as it takes."""
    line = f"  {label:<14}"
    for word in text.split():
        if len(line) + len(word) > table.WIDTH and line.strip():
            yield line.rstrip()
            line = " " * 16
        line += f"{word} "
    yield line.rstrip()


def per_operation(session):
    """The lines that set time, instructions, ledger and counters of one operation side by side."""
    time, counted, counters = session["time"], session["instructions"], session["counters"]
    yield "one operation"
    if time["busy_p33"] is None:
        yield from labelled("time", f"{small(time['cpu'])} ns CPU with waiting; busy time unmeasured: {time['reason']}")
    else:
        yield from labelled("time", f"{small(time['busy_p33'])} ns busy, {small(time['cpu'])} ns CPU with waiting")
    yield from labelled("instructions", f"none: {counted['reason']}" if counted["value"] is None else
                        f"{small(counted['value'])} ({counted['source']})")
    for row in session["ledger"]["rows"]:
        words = ", ".join(f"{row[key]} {name}" for key, name in LEDGER_SHOWN if row.get(key))
        yield from labelled("ledger", f"{row['phase']}: {words or 'nothing'}")
    if session["ledger"]["reason"]:
        yield from labelled("ledger", f"none: {session['ledger']['reason']}")
    told = [f"{event['label']} {small(event['value'] / session['operations'])}"
            f"{' (scaled)' if event['status'] == 'scaled' else ''}"
            for event in counters["events"] if event["value"] is not None]
    yield from labelled("counters", ", ".join(told) or "none")
    yield from topdown(counters)
    yield from not_counted(counters)


def topdown(counters):
    values = {event["name"]: event["value"] for event in counters["events"] if event["value"] is not None}
    slots = values.get("slots")
    parts = [(name.removeprefix("topdown-"), value) for name, value in values.items() if name.startswith("topdown-")]
    if slots and parts:
        yield from labelled("top down", ", ".join(f"{name} {100 * value / slots:.1f} %" for name, value in parts))


def not_counted(counters):
    reasons = {}
    for event in counters["events"]:
        if event["value"] is None:
            reasons.setdefault(event["reason"], []).append(event["label"])
    for reason, names in reasons.items():
        yield from labelled("not counted", f"{', '.join(names)}: {reason}")
    if counters["user_only"]:
        yield from labelled("user only", f"every count is of user space (:u); {100 * counters['system_share']:.1f} % of the "
                                         "CPU time was spent in the kernel and is not covered")
    if counters["threads_not_counted"]:
        yield from labelled("not counted", table.plural(counters["threads_not_counted"], "thread") + " that came later")
    if counters["note"]:
        yield from labelled("note", counters["note"])


def report(session):
    """The lines of the report, 80 columns but for long names."""
    revision = session["revision"]
    yield f"skbench profile   rev {revision['commit'][:7]}{'+' if revision['dirty'] else ''}"
    yield from wrap(session["case"])
    control = session["control"]
    yield from table.wrapped(f"{session['operations']} operations in {session['batches']} batches; telling the profiler of a "
                             f"batch took {control['ns_per_pair'] / 1000:.0f} us, between batches")
    yield ""
    yield from per_operation(session)
    yield ""
    yield from samples_lines(session)
    yield ""
    yield from sharing_lines(session["sharing"])


def samples_lines(session):
    sampling = session["sampling"]
    if sampling["event"] is None:
        yield from table.wrapped(f"not sampled: {sampling['reason']}")
        return
    unit = sampling["unit"]
    share = sampling["inside_share"]
    yield from table.wrapped(
        f"{sampling['samples']} samples of {sampling['event']}, "
        f"{'none' if share is None else f'{100 * share:.1f} %'} of them in the timed region")
    if share is not None and share < INSIDE_LEAST:
        yield from table.wrapped(f"  too few ({100 * INSIDE_LEAST:.0f} % are needed): the others lie in "
                                 f"{', '.join(list(sampling['outside'])[:4])}")
    if sampling["cycles_reason"]:
        yield from table.wrapped(f"  cycles cannot be sampled: {sampling['cycles_reason']}")
    if sampling["skid"]:
        yield from table.wrapped(f"  {sampling['skid']}")
    if not sampling["kernel_names"]["available"]:
        yield from table.wrapped(f"  {sampling['kernel_names']['reason']}")
    yield f"{'%':>6}{unit + '/op':>11}{'samples':>9}  function"
    for entry in session["symbols"][:HOT]:
        name = entry["symbol"] if entry["dso"].startswith("bench_") else f"{entry['symbol']}  ({entry['dso']})"
        yield f"{100 * entry['share']:>6.1f}{entry['per_op']:>11.2f}{entry['samples']:>9}  {name}"
    if len(session["symbols"]) > HOT:
        yield f"{'':26}  and {len(session['symbols']) - HOT} more: session.json"
    waits = [f"{role['name']} {small(role['wait_p33'])} ns" for role in session["roles"] if role.get("wait_p33")]
    if waits:
        yield from table.wrapped(f"  of it waiting for other roles, in their spans: {', '.join(waits)} an operation")
    for found in session["annotated"]:
        if found["reason"]:
            yield from table.wrapped(f"  not annotated: {found['reason']}")
        else:
            hot = found["lines"][0] if found["lines"] else None
            yield from table.wrapped(f"  {found['file']}" + (f": most at {hot['file']}:{hot['line']}, {hot['per_op']:.2f} "
                                                             f"{unit}/op" if hot else ""))


def sharing_lines(shared, everything=False):
    if shared["kind"] == "perf c2c":
        yield f"lines that CPUs share: {shared['file']}, by perf c2c"
        return
    if shared["kind"] is None:
        yield from table.wrapped(f"lines that CPUs share: {shared['reason']}")
        return
    yield "cache lines that more than one role writes, by the traced build"
    yield from table.wrapped(f"  {shared['reason']}")
    if not shared["rows"]:
        yield "  none"
        return
    yield f"  {'writes/op':>9} {'lines':>6}  what (offset in the line: field, writers; readers)"
    rows = shared["rows"] if everything else shared["rows"][:8]
    for row in rows:
        fields = "; ".join(
            f"+{field['offset']} {field['class']} by {'+'.join(field['writers']) or 'nobody'}"
            f"{', read by ' + '+'.join(field['readers']) if set(field['readers']) - set(field['writers']) else ''}"
            for field in row["fields"])
        yield from table.wrapped(f"  {row['writes'] / shared['operations']:>9.2f} {row['lines']:>6}  {row['sharing']}: {fields}",
                                 "                    ")
    if len(shared["rows"]) > len(rows):
        yield f"  and {len(shared['rows']) - len(rows)} kinds of lines more: lines.txt"
