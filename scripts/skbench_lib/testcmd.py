# SPDX-License-Identifier: MIT
"""skbench test: everything that proves this tree on this machine, one summary line for each step.

Each ctest case, each unittest, each row of a ledger check and each style check counts as one test. A step that cannot
run here is one skipped test with a sentence that names the remedy. Logs go to out/test-TIME/.
"""

import datetime
import json
import os
import re
import sys
import time
import xml.etree.ElementTree as ElementTree

from . import children, kernelcost, oraclebudget
from .build import LOG, build_dir, ensure_built, ensure_prof
from .errors import FAILED, IMPOSSIBLE, INCONCLUSIVE, INTERRUPTED, OK, WORSE, UserError
from .files import text_stream, write_json
from .table import plural
from .tree import repo_root, revision

PASSED, FAIL, SKIPPED = "passed", "failed", "skipped"
DIFFERS = "differs"  # a ledger or instruction count: failed, but exit status 1

# seconds
STYLE_SECONDS = 300
CTEST_SECONDS = 1500
PYTHON_SECONDS = 2100
COUNT_SECONDS = 900
AA_SECONDS = 600
SYSROOT_SECONDS = 600
INSTALL_SECONDS = 600
ORACLE_SECONDS = 600
MUTATE_SECONDS = 600
GUEST_SECONDS = 500
SHORT = ("frags45", "pages64k", "arm64")  # presets whose slow tests have run under another one
SYSROOTS = ("arm64",)
MODEL = "gcc12"  # the compiler whose counts are stored beside the kernel's
MUTATIONS = 4  # mistakes that are planted in the library for the oracle to see; --nightly: all of them
NIGHTLY_FACTOR = 24  # of the time that long campaigns may take
SHOWN_FAILURES = 20
# Before a fork jemalloc holds more mutexes than the thread sanitizer's deadlock detector can count, which then hangs.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
              "UBSAN_OPTIONS": "print_stacktrace=1",
              "TSAN_OPTIONS": "halt_on_error=1:detect_deadlocks=0"}
# What a sanitizer, cmocka or an assertion says first.
TROUBLE = re.compile(r"ERROR|WARNING: ThreadSanitizer|runtime error|\[  FAILED  \]|[Aa]ssert|Error:")


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "test", help="build and test all that this machine can do",
        description="Builds and tests all that this machine can do in 60 minutes. Ends with a line "
                    "'N passed, N failed, N skipped'. Exit status 1: only counts of the ledger or of instructions "
                    "differ; 5: a test failed.")
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument("--quick", action="store_true", help="2 minutes: one build, no slow tests, no sanitizers")
    how_much.add_argument("--sanitize", action="store_true", help="the sanitizer builds and their tests only")
    how_much.add_argument("--nightly", action="store_true", help="the long campaigns too")
    parser.add_argument("--json", metavar="FILE", help="write one JSON object to FILE (- for standard output)")
    parser.set_defaults(func=main)


def main(args):
    run = Run(args)
    interrupted = False
    try:
        for step in plan(args):
            run.do(*step)
    except KeyboardInterrupt:
        interrupted = True
    return run.finish(interrupted)


def plan(args):
    """The steps in order: (title, function of a Run, argument...)."""
    if not args.sanitize:
        yield "style", style
        yield from preset_steps("release")
        if not args.quick:
            yield from preset_steps("release-clang")
            yield "build prof", build_prof
            yield "ctest prof", ctest, "prof"
            # Before the scripts' tests, some of which need the kernel that it brings.
            yield "oracle", oracle
            yield "guests", guests
        yield "python", python_tests
        yield "ledger", counts, ["ledger", "--check"]
        yield "kernel", kernel_costs
        if not args.quick:
            yield "instructions gcc", counts, ["instructions", "--check", "--compiler", "gcc"]
            yield "instructions clang", counts, ["instructions", "--check", "--compiler", "clang"]
    if not args.quick:
        for preset in ("asan", "tsan", "tsan-gcc"):
            yield from preset_steps(preset)
        if not args.sanitize:
            yield "aa", control
            # Other configurations of the model; the random programs have run above.
            for preset in ("frags45", "pages64k", "arm64"):
                yield from preset_steps(preset)


def preset_steps(preset):
    yield f"build {preset}", build, preset
    yield f"ctest {preset}", ctest, preset


class Test:
    """One test: its name, how it ended (PASSED, FAIL, DIFFERS or SKIPPED) and a sentence if it did not pass."""

    def __init__(self, name, outcome, text="", seconds=None):
        self.name = name
        self.outcome = outcome
        self.text = text
        self.seconds = seconds


class Run:
    """The state of one `skbench test`."""

    def __init__(self, args):
        self.quick = args.quick
        self.nightly = args.nightly
        self.json = args.json
        self.out = text_stream(args.json)
        self.begin = time.monotonic()
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        self.logs = repo_root() / "out" / f"test-{stamp}"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.broken_builds = {}
        self.steps = []

    def log(self, title):
        return self.logs / f"{title.replace(' ', '-')}.log"

    def do(self, title, function, *arguments):
        """Runs one step and prints its summary; an exception of the step is a failed test."""
        begin = time.monotonic()
        if self.out.isatty():
            self.out.write(f"{title} ...")
            self.out.flush()
        step = {"name": title, "seconds": 0.0, "log": str(self.log(title).relative_to(repo_root())), "tests": []}
        self.steps.append(step)
        try:
            for test in function(self, title, *arguments):
                step["tests"].append(test)
        except UserError as error:
            outcome = SKIPPED if error.status == IMPOSSIBLE else FAIL
            step["tests"].append(Test(title, outcome, str(error)))
        finally:
            step["seconds"] = round(time.monotonic() - begin, 1)
            if self.out.isatty():
                self.out.write("\r\x1b[K")
        for line in step_lines(step, self.log(title)):
            print(line, file=self.out, flush=True)

    def command(self, title, command, seconds, **environment):
        """Runs COMMAND with its output in the step's log. Returns how it Ended."""
        with open(self.log(title), "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(map(str, command))}\n")
            log.flush()
            try:
                return children.run(command, seconds, cwd=repo_root(), stdout=log, stderr=log,
                                    env={**os.environ, **environment})
            except FileNotFoundError as error:
                raise UserError(f"{error.filename} is not installed: scripts/install-packages test",
                                IMPOSSIBLE) from None

    def skbench(self, title, arguments, seconds):
        """Runs `skbench ARGUMENTS --json`; returns how it Ended and its JSON object (None: it wrote none)."""
        report = self.logs / f"{title.replace(' ', '-')}.json"
        ended = self.command(title, [sys.executable, "-m", __package__, *arguments, "--json", str(report)], seconds)
        try:
            return ended, json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ended, None

    def finish(self, interrupted):
        tests = [test for step in self.steps for test in step["tests"]]
        count = {outcome: sum(test.outcome == outcome for test in tests)
                 for outcome in (PASSED, FAIL, DIFFERS, SKIPPED)}
        failed = count[FAIL] + count[DIFFERS]
        status = INTERRUPTED if interrupted else FAILED if count[FAIL] else WORSE if count[DIFFERS] else OK
        if interrupted:
            print("interrupted: what follows did not run", file=self.out)
        if failed:
            print(f"logs: {self.logs}", file=self.out)
        print(f"{count[PASSED]} passed, {failed} failed, {count[SKIPPED]} skipped", file=self.out, flush=True)
        if self.json:
            commit, dirty = revision()
            steps = [{**step, "tests": [vars(test) for test in step["tests"]]} for step in self.steps]
            write_json(self.json, {"command": "test", "revision": commit, "dirty": dirty, "partial": interrupted,
                                   "seconds": round(time.monotonic() - self.begin, 1), "steps": steps,
                                   "passed": count[PASSED], "failed": failed, "skipped": count[SKIPPED],
                                   "status": status})
        return status


def step_lines(step, log):
    """The summary of a step: a line with its counts, then what did not pass and why."""
    tests = step["tests"]
    passed = sum(test.outcome == PASSED for test in tests)
    skipped = [test for test in tests if test.outcome == SKIPPED]
    failed = [test for test in tests if test.outcome in (FAIL, DIFFERS)]
    yield (f"{step['name']:<22}{passed:>5} passed {len(failed):>4} failed {len(skipped):>4} skipped"
           f"{step['seconds']:>9.1f} s")
    for test in failed[:SHOWN_FAILURES]:
        first = test.text.strip().splitlines()[:1]
        yield f"  failed   {test.name}{': ' + first[0] if first else ''}"
    if len(failed) > SHOWN_FAILURES:
        yield f"  failed   {len(failed) - SHOWN_FAILURES} more"
    if failed and log.exists():
        yield f"  log      {log}"
    reasons = {}
    for test in skipped:
        reasons.setdefault(test.text, []).append(test.name)
    for text, names in reasons.items():
        yield f"  skipped  {names[0] if len(names) == 1 else f'{len(names)} tests'}: {text}"


def style(run, title):
    scripts = repo_root() / "scripts"
    for name, command in [("layers", ["check-layers"])] + [
            (word, ["check-style", word]) for word in ("spdx", "format", "whitespace", "paths", "shell")]:
        ended = run.command(title, [sys.executable, scripts / command[0], *command[1:]], STYLE_SECONDS)
        if ended.status == IMPOSSIBLE:
            yield Test(name, SKIPPED, "its tool is not installed: scripts/install-packages test")
        elif ended.timed_out or ended.status != 0:
            yield Test(name, FAIL, f"scripts/{' '.join(command)} {ended.why(STYLE_SECONDS)}")
        else:
            yield Test(name, PASSED)


def build(run, title, preset):
    """One test: PRESET builds."""
    if preset.startswith("tsan"):
        run.broken_builds[preset] = "the thread sanitizer cannot run here"
        need_fixed_addresses(run, title)
    if preset in SYSROOTS:
        run.broken_builds[preset] = f"the libraries for {preset} are not to be had"
        unpack_sysroot(run, title, preset)
    run.broken_builds[preset] = f"{preset} does not build"
    try:
        ensure_built(preset)
    except UserError as error:
        if error.status == FAILED:
            run.log(title).write_bytes((build_dir(preset) / LOG).read_bytes())
        raise
    del run.broken_builds[preset]
    yield Test(title, PASSED)


def build_prof(run, title):
    """One test: skb-prof builds, where the packages that it needs are there."""
    run.broken_builds["prof"] = "skb-prof does not build"
    try:
        ensure_prof()
    except UserError as error:
        if error.status == IMPOSSIBLE:
            run.broken_builds["prof"] = str(error)
        else:
            run.log(title).write_bytes((build_dir("prof") / LOG).read_bytes())
        raise
    del run.broken_builds["prof"]
    yield Test(title, PASSED)


def unpack_sysroot(run, title, arch):
    """The libraries that a cross build for ARCH links with, in build/, from Debian's packages."""
    directory = repo_root() / "build" / f"sysroot-{arch}"
    ended = run.command(title, [repo_root() / "scripts" / "cross-sysroot", arch, directory], SYSROOT_SECONDS)
    if ended.timed_out or ended.status != 0:
        raise UserError(f"no packages for {arch} are to be had, so that nothing can be built for it: give apt a mirror "
                        "that has them", IMPOSSIBLE)


def need_fixed_addresses(run, title):
    """clang's thread sanitizer dies under full address randomisation: its tests run under setarch -R."""
    ended = run.command(title, ["setarch", "-R", "true"], 10)
    if ended.status != 0:
        raise UserError("this container forbids setarch -R, which the thread sanitizer needs: start it with "
                        "--security-opt seccomp=unconfined", IMPOSSIBLE)


def ctest(run, title, preset):
    if preset in run.broken_builds:
        yield Test(title, SKIPPED, run.broken_builds[preset])
        return
    report = run.logs / f"{title.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    seconds = CTEST_SECONDS * (NIGHTLY_FACTOR if run.nightly else 1)
    short = run.quick or preset in SHORT
    leave_out = [] if run.nightly else ["-LE", "^(slow|nightly)$" if short else "^nightly$"]
    # Two tests that spin on the same CPUs would wait for each other: one at a time.
    ended = run.command(title, ["ctest", "--test-dir", build_dir(preset), "--output-on-failure", "--output-junit",
                                report, "--no-tests=error", *leave_out], seconds, **SANITIZERS)
    try:
        tests = list(junit(report))
    except (OSError, ElementTree.ParseError):
        tests = []
    yield from tests
    if ended.timed_out or not tests or (ended.status != 0 and not any(test.outcome == FAIL for test in tests)):
        yield Test(title, FAIL, f"ctest {ended.why(seconds)}")


def junit(path):
    """The tests of a report that ctest wrote."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        seconds = float(case.get("time") or 0)
        message = next((child.get("message") or "" for child in case if child.tag in ("failure", "skipped")), "")
        state = case.get("status")
        if state == "run":
            yield Test(case.get("name"), PASSED, seconds=seconds)
        elif state in ("notrun", "disabled") and not re.search(r"[Uu]nable to find|[Rr]equired", message):
            yield Test(case.get("name"), SKIPPED, line_of(case) or message or "ctest did not run it",
                       seconds=seconds)
        else:
            yield Test(case.get("name"), FAIL, message or line_of(case, TROUBLE) or "failed", seconds=seconds)


def line_of(case, pattern=""):
    """The first line of a test's output in which PATTERN is found, or the last line of all."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    wanted = [line for line in lines if re.search(pattern, line)] if pattern else []
    return (wanted or lines[-1:] or [""])[0][:200]


def python_tests(run, title):
    report = run.logs / "python.json"
    environment = {"SKBENCH_TEST_QUICK": "1"} if run.quick else {"SKBENCH_TEST_NIGHTLY": "1"} if run.nightly else {}
    ended = run.command(title, [sys.executable, "-m", f"{__package__}.unittests", "tests/scripts", report],
                        PYTHON_SECONDS * (NIGHTLY_FACTOR if run.nightly else 1), **environment)
    try:
        rows = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        rows = []
    for row in rows:
        yield Test(row["name"], row["outcome"], row["text"], row["seconds"])
    if ended.timed_out or not rows or (ended.status != 0 and not any(row["outcome"] == FAIL for row in rows)):
        yield Test(title, FAIL, f"the unittests' process {ended.why(PYTHON_SECONDS)}")


def last_error(log):
    """What a command of ours said last on standard error."""
    said = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.startswith("skbench: ")]
    return said[-1][len("skbench: "):] if said else ""


def counts(run, title, arguments):
    """A check of stored counts: one test for each row and each relation."""
    ended, report = run.skbench(title, arguments, COUNT_SECONDS)
    if ended.timed_out or ended.status not in (OK, WORSE, IMPOSSIBLE) or (ended.status != IMPOSSIBLE and not report):
        yield Test(title, FAIL, last_error(run.log(title)) or f"skbench {arguments[0]} {ended.why(COUNT_SECONDS)}")
        return
    if ended.status == IMPOSSIBLE:
        yield Test(title, SKIPPED, last_error(run.log(title)))
        return
    differing = {}
    for difference in report["differences"]:
        if difference.get("fails", True):
            column = difference.get("column")
            sides = f"stored {difference['stored']}, counted {difference['counted']}"
            differing.setdefault(difference["case"], []).append(f"{column} {sides}" if column else sides)
    rows = [row["case"] for row in report["rows"]]
    for name in rows + [case for case in differing if case not in rows]:
        yield Test(name, DIFFERS if name in differing else PASSED, "; ".join(differing.get(name, [])))
    for name in report.get("relations", []):
        broken = [text for text in report["broken"] if text.startswith(f"relation {name}: ")]
        yield Test(f"relation {name}", DIFFERS if broken else PASSED, "".join(broken))


def kernel_costs(run, title):
    """One test for each primitive whose cost is stored beside the kernel's, one for each era's stored budget.

    Nothing is counted: what is stored must be whole, and what differs must have its reason.
    """
    reasons = kernelcost.read_reasons()
    by_era = kernelcost.stored_pairs(MODEL)
    for era, pairs in by_era.items():
        for pair in pairs:
            lacks = pair.outside() and pair.operation not in reasons
            yield Test(f"era {era}: {pair.operation} with {plural(pair.frags, 'frag')}", DIFFERS if lacks else PASSED,
                       f"{pair.ratio:.2f} of the kernel's, and results/kernel/reasons.txt does not say why" if lacks else "")
    outside = {pair.operation for pairs in by_era.values() for pair in pairs if pair.outside()}
    for operation in reasons:
        if operation not in outside:
            yield Test(f"reason of {operation}", DIFFERS, "results/kernel/reasons.txt explains what needs no reason")
    for era in by_era:
        problems = oraclebudget.stored_problems(era)
        yield Test(f"era {era}: budget", DIFFERS if problems else PASSED, "; ".join(problems))


def oracle(run, title):
    """A test for each kernel that the model is compared with, and one for each mistake planted to see that it is found."""
    ended = run.command(title, [repo_root() / "scripts" / "install-packages", "oracle"], INSTALL_SECONDS)
    if ended.timed_out or ended.status != 0:
        raise UserError(last_error(run.log(title)) or f"install-packages {ended.why(INSTALL_SECONDS)}", IMPOSSIBLE)
    seconds = ORACLE_SECONDS * (NIGHTLY_FACTOR if run.nightly else 1)
    ended, report = run.skbench(title, ["oracle", *(["--nightly"] if run.nightly else [])], seconds)
    said = last_error(run.log(title))
    if ended.status == IMPOSSIBLE:
        raise UserError(said, IMPOSSIBLE)
    if ended.timed_out or not report or ended.status not in (OK, FAILED):
        yield Test(title, FAIL, said or f"skbench oracle {ended.why(seconds)}")
        return
    for kernel in report["kernels"]:
        differs = [difference["name"] for difference in report["differences"] if difference["era"] == kernel["era"]]
        yield Test(f"era {kernel['era']} against Linux {kernel['release']}", FAIL if differs else PASSED,
                   f"differs in '{differs[0]}'" if differs else "")
    if not report["differences"]:
        yield from mutations(run, title)


def mutations(run, title):
    report = run.logs / "mutations.json"
    how_many = [] if run.nightly else ["--sample", str(MUTATIONS)]
    seconds = MUTATE_SECONDS * (NIGHTLY_FACTOR if run.nightly else 1)
    ended = run.command(title, [sys.executable, "tests/oracle/mutate.py", "--json", report, *how_many], seconds)
    try:
        seen = json.loads(report.read_text(encoding="utf-8"))["seen"]
    except (OSError, ValueError):
        seen = {}
    for what, programs in seen.items():
        yield Test(f"mistake: {what}", PASSED if programs else FAIL, "" if programs else "the oracle does not see it")
    if not seen or ended.timed_out:
        yield Test(title, FAIL, f"tests/oracle/mutate.py {ended.why(seconds)}")


def guests(run, title):
    """A test for each guest: VFIO under two IOMMUs, descriptors through a device that is not ours, a driver that is not ours
    on the model, machines with nodes."""
    place = ["tests/place/numa_guest.py", build_dir("release")]
    for name, words in (("VFIO, Intel's IOMMU", ["tests/hw/vfio_guest.py", "intel"]),
                        ("VFIO, AMD's IOMMU", ["tests/hw/vfio_guest.py", "amd"]),
                        ("descriptors through QEMU's 82576", ["tests/hw/igb.py", build_dir("release")]),
                        ("Linux's ixgbe on the model", ["tests/hw/ixgbe_guest.py", build_dir("release")]),
                        ("placement on two nodes", [*place, "two-nodes"]),
                        ("placement on four nodes", [*place, "four-nodes"]),
                        ("placement beside a node without memory", [*place, "memory-less"])):
        ended = run.command(title, [sys.executable, *words], GUEST_SECONDS)
        if ended.status == IMPOSSIBLE and not ended.timed_out:
            said = run.log(title).read_text(encoding="utf-8", errors="replace").splitlines()[-1]
            yield Test(name, SKIPPED, said.partition(": ")[2] or said)
        else:
            good = ended.status == OK and not ended.timed_out
            yield Test(name, PASSED if good else FAIL, "" if good else f"{words[0]} {ended.why(GUEST_SECONDS)}")


def control(run, title):
    """One test: two equal sides are not told apart, and a known difference is found."""
    words = ["aa", "--campaign"] if run.nightly else ["aa", "--duets", "20"]
    seconds = AA_SECONDS * (NIGHTLY_FACTOR if run.nightly else 1)
    ended, report = run.skbench(title, words, seconds)
    said = last_error(run.log(title)) or "; ".join((report or {}).get("problems", []))
    if ended.status == INCONCLUSIVE and report and not any("equal sides" in text for text in report["problems"]):
        # That a difference is not found, or no duet ends in time, is the machine's noise. A false alarm is ours.
        yield Test(title, SKIPPED, f"{said}: run it on a quiet machine")
    elif ended.status == IMPOSSIBLE:
        yield Test(title, SKIPPED, said)
    elif ended.timed_out or ended.status != OK:
        yield Test(title, FAIL, said or f"skbench aa {ended.why(seconds)}")
    else:
        yield Test(title, PASSED)
