# SPDX-License-Identifier: MIT
"""skbench oracle: random sk_buff programs on the library and on the real kernel, whose states must agree.

The kernel is Debian's, run by QEMU in software; docs/oracle.md says what is compared and which differences are
explained. With --yardstick: what operations cost in that kernel, in instructions.
"""

import argparse
import csv
import datetime
import io
import re
import sys
import time
from contextlib import contextmanager, nullcontext

from . import kernelcost
from . import oraclebudget as budget
from . import oraclecover as cover
from . import oracleguest as guest
from . import oraclelive as live
from . import oraclenightly as nightly
from . import oracleprog as prog
from .build import ensure_built
from .errors import FAILED, INCONCLUSIVE, OK, WORSE, UserError
from .files import text_stream, write_json, write_text
from .table import plural
from .tree import repo_root, revision

PROGRAMS, OPS = 3000, 30
BATCH = 500
# era, kind of machine, programs, operations each
NIGHTLY = [("6.1", "plain", 100000, 30), ("6.1", "plain", 2000, 200), ("6.1", "zeroed", 5000, 30),
           ("6.1", "slub_debug", 5000, 30), ("6.12", "plain", 20000, 30), ("6.12", "slub_debug", 2000, 30)]
PASSES = 4  # of the yardstick in one guest
SHOWN = 5  # differences that are shrunk and printed


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "oracle", help="differential test against the real kernel, and its instruction costs",
        description="Runs the corpus and random programs of sk_buff operations on the library and on the kernel of "
                    "the distribution, which QEMU runs in software. After each operation every state must agree. A "
                    "difference is shrunk and printed, and exits with 5.")
    parser.add_argument("--programs", type=_count, metavar="N", default=None,
                        help=f"random programs besides the corpus (default {PROGRAMS})")
    parser.add_argument("--ops", type=_count, metavar="N", default=None, help=f"operations each (default {OPS})")
    parser.add_argument("--seed", metavar="SEED", help="any word; the one of this hour if none is given")
    parser.add_argument("--era", choices=list(guest.SOURCES),
                        help="6.1: Debian 12's own kernel (default); 6.12: that of its backports")
    parser.add_argument("--program", metavar="FILE",
                        help="only the program in FILE, with its states; exits with 5 if they differ")
    parser.add_argument("--kernel", metavar="A", help="with --against: an era, a release, or a directory with a kernel and "
                        "its headers, which takes the library's place; with --yardstick their costs are compared")
    parser.add_argument("--against", metavar="B", help="the kernel that A is compared with")
    parser.add_argument("--library", action="store_true", help="the library alone: nothing is compared, no QEMU is needed")
    parser.add_argument("--host", action="store_true",
                        help="against the kernel that runs here, without QEMU: as root, loads the module and unloads it; "
                             "what random programs find there may bring the machine down")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--nightly", action="store_true",
                     help="100000 programs on 6.1, 20000 on 6.12, longer ones, and kernels that zero memory and "
                          "that check every object; started again, it goes on where it was stopped")
    how.add_argument("--coverage", action="store_true",
                     help="which branches of the library the programs reach, without QEMU")
    how.add_argument("--budget", action="store_true",
                     help="write what the kernel's own TCP does for 64 KB to results/kernel, beside the model's ledger")
    how.add_argument("--yardstick", action="store_true",
                     help="write what operations cost in the kernel to results/kernel")
    parser.add_argument("--json", metavar="FILE", help="write one JSON object to FILE (- for standard output)")
    parser.set_defaults(func=main)


def _count(word):
    number = int(word) if re.fullmatch(r"\d{1,7}", word) else 0
    if not number:
        raise argparse.ArgumentTypeError(f"'{word}' is no number from 1 to 9999999")
    return number


def main(args):
    if args.program and (args.nightly or args.yardstick or args.coverage or args.budget):
        raise UserError("--program goes with neither --nightly, --yardstick, --coverage nor --budget")
    if args.host and args.era:
        raise UserError("--era does not go with --host: the running kernel has one")
    other = args.nightly or args.coverage or args.budget or args.yardstick
    if args.host and (args.library or other):
        raise UserError("--host goes with --programs, --ops, --seed and --program only")
    if args.library and other:
        raise UserError("--library goes with --programs, --ops, --seed, --program and --era only")
    run = Run(args)
    if args.kernel or args.against:
        if not (args.kernel and args.against):
            raise UserError("--kernel and --against go together")
        if args.program or args.era or args.nightly or args.library or args.host or args.coverage or args.budget:
            raise UserError("--kernel and --against go with --programs, --ops, --seed and --yardstick only")
        return run.costs_against() if args.yardstick else run.against()
    if args.coverage:
        return run.coverage()
    if args.yardstick:
        return run.yardstick()
    if args.budget:
        return run.budget()
    return run.compare()


class Campaign:
    """PROGRAMS random programs of OPS operations, behind those of the corpus, on a kernel of ERA and a machine of KIND."""

    def __init__(self, era, kind, first, source, programs):
        self.era, self.kind = era, kind
        self.first, self.source, self.programs = first, source, programs

    def __len__(self):
        return len(self.first) + self.programs

    def __str__(self):
        return f"{self.era} {self.kind} {self.programs}x{self.source.length}"

    def part(self, at):
        """[(name, program)] of at most BATCH, from number AT on."""
        named = self.first[at:at + BATCH]
        begin = max(at - len(self.first), 0)
        end = min(at + BATCH - len(self.first), self.programs)
        source = self.source
        return named + [(f"--seed {source.seed} --ops {source.length}, program {i}", source.program(i))
                        for i in range(begin, end)]


class Run:
    """One `skbench oracle`."""

    def __init__(self, args):
        self.args = args
        self.out = text_stream(args.json)
        self.begin = time.monotonic()
        now = datetime.datetime.now(datetime.timezone.utc)
        self.seed = args.seed or now.strftime("%Y%m%dT%H")
        self.logs = repo_root() / "out" / f"oracle-{now.strftime('%Y%m%dT%H%M%SZ')}"
        self.kernels = {}
        self.starts = 0
        self.running = live.Running() if args.host else None
        self.module = None  # the directory of the running kernel's

    def prepare(self, era):
        """The kernel for ERA, or that it names, and its initramfs, made once."""
        if era not in self.kernels:
            self.logs.mkdir(parents=True, exist_ok=True)
            self.progress(f"fetching the kernel {era}")
            kernel = guest.named(era)
            with open(self.logs / f"module-{kernel.release}.log", "w", encoding="utf-8") as log:
                self.kernels[era] = kernel, guest.initramfs(kernel, guest.build_module(kernel, log))
        return self.kernels[era]

    @contextmanager
    def boot(self, era, kind="plain", counting=False, **machine):
        if self.running:
            side = live.Live(self.running, self.module)
        else:
            side = self.boot_guest(era, kind, counting, **machine)
        try:
            yield side
        finally:
            side.close()

    def boot_guest(self, era, kind, counting, **machine):
        kernel, initrd = self.prepare(era)
        self.starts += 1
        return guest.Guest(kernel, initrd, self.logs / f"guest-{self.starts}-{kernel.release}-{kind}.log", kind, counting,
                           **machine)

    def load_here(self):
        """All that can be refused, and the module for the kernel that runs here."""
        self.running.check()
        self.logs.mkdir(parents=True, exist_ok=True)
        with open(self.logs / f"module-{self.running.release}.log", "w", encoding="utf-8") as log:
            self.module = guest.build_module(self.running, log)
        self.kernels[self.running.era] = self.running, None
        live.leave_network()

    def say(self, text):
        print(text, file=self.out, flush=True)

    def progress(self, text):
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def compare(self):
        if self.running:
            self.running.check()
        ensure_built("release", targets=["oracle_host"])
        if self.running:
            self.load_here()
        elif not self.args.library:
            for era in dict.fromkeys(self.eras()):
                self.prepare(era)
        lacks = lacking()
        record = None
        if self.args.nightly:
            record = nightly.Record(self.args.seed, self.seed, [kernel for kernel, _ in self.kernels.values()])
            self.seed = record.seed
            if record.done:
                self.say(f"goes on with seed {self.seed}: {plural(sum(record.done.values()), 'program')} agreed before")
        found, total = [], 0
        for campaign in self.campaigns(lacks):
            total += len(campaign)
            if record and record.done.get(str(campaign), 0) == len(campaign):
                continue
            with nullcontext() if self.args.library else self.boot(campaign.era, campaign.kind) as kernel:
                found = self.campaign(campaign, kernel, record)
            if record:
                self.say(f"era {campaign.era}, {campaign.kind}: {plural(len(campaign), 'program')} of "
                         f"{campaign.source.length} operations, {plural(len(found), 'difference')}")
            if found:
                break  # what differs on one machine is likely to differ on the next
        if record and not found:
            record.finish()
        return self.finish(found, total, lacks)

    def eras(self):
        if self.args.nightly:
            return [era for era, *_ in NIGHTLY if self.args.era in (None, era)]
        if self.running:
            return [self.running.era]
        return [self.args.era or "6.1"]

    def campaigns(self, lacks):
        """The Campaigns of this run, in order."""
        if self.args.program:
            source = prog.Generator(self.seed, 1, lacks)
            return [Campaign(self.eras()[0], "plain", [(self.args.program, read_program(self.args.program))], source, 0)]
        first = corpus(lacks)
        plans = [plan for plan in NIGHTLY if plan[0] in self.eras()] if self.args.nightly else \
            [(self.eras()[0], "plain", PROGRAMS, OPS)]
        return [Campaign(era, kind, first, prog.Generator(self.seed, self.args.ops or ops, lacks),
                         self.args.programs or programs) for era, kind, programs, ops in plans]

    def campaign(self, campaign, kernel, record=None):
        """Runs the programs on both, those left out that RECORD has; returns Differences."""
        library = guest.Host(campaign.era)
        try:
            begin = record.done.get(str(campaign), 0) if record else 0
            for at in range(begin, len(campaign), BATCH):
                part = campaign.part(at)
                self.progress(f"era {campaign.era}, {campaign.kind}: {at} of {plural(len(campaign), 'program')}")
                found = self.part(library, kernel, part)
                if self.args.program:
                    self.show_states(library, kernel, part[0][1])
                if found:
                    return found
                if record:
                    record.note(str(campaign), at + len(part))
            library.finish()
            return []
        finally:
            library.close()
            self.progress("")

    def part(self, library, kernel, named):
        requests = [prog.request(program) for _, program in named]
        ours = library.ask(requests)
        theirs = ours if kernel is None else self.ask_kernel(kernel, requests, named)
        found = [Difference(name, library.era, program) for (name, program), a, b in zip(named, ours, theirs)
                 if a != b or a.startswith("died")]
        for difference in found[:SHOWN]:
            self.progress(f"shrinking {difference.name}")
            difference.shrink(library, kernel)
        return found

    def ask_kernel(self, kernel, requests, named):
        try:
            return kernel.ask(requests)
        except guest.Died as died:
            name, program = named[died.number]
            path = self.logs / "died.prog"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {name}\n{prog.text(program)}", encoding="utf-8")
            raise UserError(f"the kernel died in {name}, which is now {path}: {died}", FAILED) from None

    def show_states(self, library, kernel, program):
        request = [prog.request(program, prog.DUMP)]
        self.say(library.ask(request)[0].strip())
        if kernel is not None:
            self.say(f"kernel: {'the same' if library.ask(request) == kernel.ask(request) else 'differs'}")

    def finish(self, found, total, lacks):
        for difference in found[:SHOWN]:
            for line in difference.lines():
                self.say(line)
        if len(found) > SHOWN:
            self.say(f"and {plural(len(found) - SHOWN, 'program')} more that differ")
        checked = list(self.kernels)
        against = "the library alone" if self.args.library else " against ".join(
            f"Linux {kernel.release} ({kernel.version})" for kernel, _ in self.kernels.values()) \
            if self.args.against else " and ".join(
            f"era {era} against Linux {kernel.release} ({kernel.version})"
            for era, (kernel, _) in self.kernels.items())
        self.say(f"oracle: {plural(total, 'program')}, {against}, seed {self.seed}, "
                 f"{plural(len(found), 'difference')}, {time.monotonic() - self.begin:.0f} s")
        if lacks:
            self.say(f"not compared, since the library has them not: {', '.join(sorted(lacks))}")
        unchecked = [name for name in ("3.4", "6.1", "6.12") if name not in checked]
        if not self.args.library and not self.args.against:
            others = [f"era {name} (--era {name})" for name in guest.SOURCES if name not in checked]
            self.say(f"not checked by this run: {'; '.join([*others, 'era 3.4 (no kernel of it can be had here)'])}")
        status = FAILED if found else OK
        if self.args.json:
            commit, dirty = revision()
            write_json(self.args.json, {
                "command": "oracle", "revision": commit, "dirty": dirty, "eras": self.eras(), "seed": self.seed,
                "kernels": [{"era": era, "release": kernel.release, "version": kernel.version}
                            for era, (kernel, _) in self.kernels.items()],
                "programs": total, "lacks": sorted(lacks), "unchecked_eras": unchecked,
                "differences": [difference.as_json() for difference in found],
                "seconds": round(time.monotonic() - self.begin, 1), "status": status})
        return status

    def against(self):
        """The same programs on two kernels."""
        sides = self.args.kernel, self.args.against
        campaign = Campaign(" against ".join(sides), "plain", corpus(set()),
                            prog.Generator(self.seed, self.args.ops or OPS), self.args.programs or PROGRAMS)
        found = []
        with self.boot(sides[0]) as first, self.boot(sides[1]) as second:
            for at in range(0, len(campaign), BATCH):
                part = campaign.part(at)
                self.progress(f"{campaign.era}: {at} of {plural(len(campaign), 'program')}")
                requests = [prog.request(program) for _, program in part]
                answers = [self.ask_kernel(side, requests, part) for side in (first, second)]
                found += [Difference(name, campaign.era, program, sides)
                          for (name, program), a, b in zip(part, *answers) if a != b]
            for difference in found[:SHOWN]:
                self.progress(f"shrinking {difference.name}")
                difference.shrink(first, second)
        self.progress("")
        return self.finish(found, len(campaign), set())

    def costs_against(self):
        """The yardstick of two kernels, row beside row."""
        sides = self.args.kernel, self.args.against
        costs = []
        for which in sides:
            with self.boot(which, counting=True) as side:
                passes = [parse_costs(text) for text in side.ask([prog.request([], prog.YARDSTICK)] * PASSES)]
                costs.append({key: min(one[key] for one in passes) for key in passes[0]})
        for line in costs_beside(costs, [self.kernels[which][0] for which in sides]):
            self.say(line)
        if self.args.json:
            write_json(self.args.json, {"command": "oracle", "kernels": [self.kernels[which][0].release for which in sides],
                                        "costs": [[*key, cost, costs[1].get(key)] for key, cost in costs[0].items()],
                                        "status": OK})
        return OK

    def coverage(self):
        """What of the library the corpus and the random programs reach, in the eras that have a kernel."""
        lacks, programs = lacking(), self.args.programs or PROGRAMS
        source = prog.Generator(self.seed, self.args.ops or OPS, lacks)
        requests = [prog.request(program)
                    for _, program in corpus(lacks) + [("", source.program(i)) for i in range(programs)]]
        eras = [self.args.era] if self.args.era else list(guest.SOURCES)
        files = cover.measure(eras, requests)
        for line in cover.table(files):
            self.say(line)
        reached, within, branches = cover.total(files)
        self.say(f"oracle: {reached} branches reached, {100 * reached / within:.1f} % of the {within} in functions that "
                 f"programs call, {100 * reached / branches:.1f} % of all {branches}")
        self.say(f"{plural(len(requests), 'program')}, eras {' and '.join(eras)}, seed {self.seed}")
        if self.args.json:
            write_json(self.args.json, {"command": "oracle", "seed": self.seed, "eras": eras,
                                        "programs": len(requests), "reached": reached, "within": within, "branches": branches,
                                        "files": [cover.as_json(one) for one in files], "status": OK})
        return OK

    def budget(self):
        """What the kernel's paths do for 64 KB, and for pages between two CPUs, beside the model."""
        era = self.eras()[0]
        ensure_built("release", targets=["oracle_host"])
        kernel = self.prepare(era)[0]
        library = guest.Host(era)
        try:
            model_pages = budget.parse(library.ask([budget.request(budget.PAGES)])[0])
        finally:
            library.close()
        measured = {}
        # The lists of a small zone have small batches: 2 GB, as the model's. Two CPUs whose clock counts instructions
        # take minutes to start: they go by time, which some timers of TCP see.
        with self.boot(era, cpus=2, megabytes=2048) as side:
            for shape in (budget.PAGES, *(shape for shape in budget.SHAPES if shape.apart)):
                self.progress(f"era {era}: {shape.name}")
                measured[shape.name] = budget.parse(side.ask([budget.request(shape)])[0])
        with self.boot(era, counting=True, megabytes=2048) as side:
            for shape in budget.SHAPES:
                if not shape.apart:
                    self.progress(f"era {era}: {shape.name}")
                    counts, clock = side.ask([budget.request(shape), budget.request(shape, False)])
                    measured[shape.name] = {**budget.parse(counts), **budget.parse(clock)}
        self.progress("")
        rows = budget.rows(measured)
        path = kernelcost.directory() / f"budget-{kernel.version}.csv"
        write_text(path, budget.as_csv(rows))
        problems = []
        for line in budget.table(era, kernel, rows, budget.model(era), model_pages, problems):
            self.say(line)
        for problem in problems:
            self.say(problem)
        self.say(f"wrote {path.relative_to(repo_root())}")
        status = WORSE if problems else OK
        if self.args.json:
            write_json(self.args.json, {"command": "oracle", "kernel": kernel.release, "version": kernel.version,
                                        "rows": [list(row) for row in rows], "problems": problems, "status": status})
        return status

    def yardstick(self):
        """Two guests, one after the other; what they agree on is written."""
        era = self.eras()[0]
        kernel = self.prepare(era)[0]
        runs = []
        for _ in range(2):
            with self.boot(era, counting=True) as side:
                passes = [parse_costs(text) for text in side.ask([prog.request([], prog.YARDSTICK)] * PASSES)]
                # Where lists and slabs stand when a pass begins can only add to what an operation needs.
                runs.append({key: min(costs[key] for costs in passes) for key in passes[0]})
        rows, again = runs
        if rows.keys() != again.keys() or not rows:
            raise UserError("the guest measured other operations the second time; this is a bug of the oracle", FAILED)
        unsteady = [key for key in rows if abs(rows[key] - again[key]) > kernelcost.SAME * rows[key]]
        path = kernelcost.directory() / f"{kernel.version}.csv"
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(kernelcost.COLUMNS)
        writer.writerows([*key, cost] for key, cost in rows.items() if key not in unsteady)
        write_text(path, text.getvalue())
        self.say(f"instructions of one operation, Linux {kernel.release} ({kernel.version})")
        for line in cost_table(rows):
            self.say(line)
        for operation, frags in unsteady:
            self.say(f"{operation} with {plural(frags, 'frag')}: {rows[operation, frags]} and then "
                     f"{again[operation, frags]}, more than {100 * kernelcost.SAME:g} % apart and not written")
        self.say(f"{plural(len(rows), 'row')}, {len(unsteady)} that two guests do not agree on; wrote "
                 f"{path.relative_to(repo_root())}")
        status = INCONCLUSIVE if unsteady else OK
        if self.args.json:
            write_json(self.args.json, {"command": "oracle", "kernel": kernel.release, "version": kernel.version,
                                        "status": status, "unsteady": [list(key) for key in unsteady],
                                        "costs": [dict(zip(kernelcost.COLUMNS, (*key, cost)))
                                                  for key, cost in rows.items()]})
        return status


class Difference:
    """A program after which the two sides differ."""

    def __init__(self, name, era, program, sides=("library", "kernel")):
        self.name = name
        self.sides = sides
        self.era = era
        self.program = program
        self.states = None

    def shrink(self, library, kernel):
        def differs(programs):
            requests = [prog.request(program) for program in programs]
            ours = library.ask(requests)
            if kernel is None:
                return [a.startswith("died") for a in ours]
            # What ends the library is not shown to the kernel, which would end too.
            return [a != b for a, b in zip(ours, kernel.ask(requests))]

        try:
            self.program = prog.shrink(self.program, differs)
            request = [prog.request(self.program, prog.DUMP)]
            self.states = library.ask(request)[0], kernel.ask(request)[0] if kernel else ""
        except guest.Died as died:
            self.states = (f"the guest died while this was shrunk: {died}", "")

    def lines(self):
        yield ""
        yield f"DIFFERENT: {self.name}, era {self.era}"
        yield from (f"    {line}" for line in prog.text(self.program).splitlines())
        if self.states:
            yield from differing(*self.states, self.sides)

    def as_json(self):
        ours, theirs = self.states or (None, None)
        return {"name": self.name, "era": self.era, "program": prog.text(self.program),
                self.sides[0]: ours, self.sides[1]: theirs}


def differing(ours, theirs, sides=("library", "kernel")):
    """The first operation after which the two states differ: its differing lines, field beside field."""
    if ours.startswith("died") or not theirs:
        yield f"  library  {ours}"
        if theirs:
            yield f"  kernel   {theirs.strip().splitlines()[-1][:80]}"
        return
    a, b = (re.split(r"\n(?=op |end)", side.strip("\n")) for side in (ours, theirs))
    for x, y in zip(a, b):
        if x == y:
            continue
        yield f"  after {x.splitlines()[0].split(' skipped')[0]}"
        yield f"    {'':<24}{sides[0][-14:]:>14}{sides[1][-14:]:>14}"
        mine, theirs = by_name(x), by_name(y)
        for name, line in mine.items():
            if name in theirs:
                yield from differing_fields(line, theirs[name])
        for side, only in zip(sides, (mine.keys() - theirs.keys(), theirs.keys() - mine.keys())):
            if only:
                yield f"    only {side} has {', '.join(sorted(only))}"
        return
    if len(a) != len(b):
        yield "  one side executed more operations"


def by_name(state):
    """{name: line} of a state's lines; a list's members are numbered."""
    lines = {}
    for i, line in enumerate(state.splitlines()):
        word = line.split(maxsplit=1)[0]
        lines["result" if not i else f"{word} {i}" if word in lines or word == "member" else word] = line
    return lines


def differing_fields(line, other):
    first = re.split(r" (?=\w+=)", line.strip())
    second = re.split(r" (?=\w+=)", other.strip())
    where = first[0] if not first[0].startswith(("op ", "end")) else "result"
    fields = [dict(word.split("=", 1) for word in words if "=" in word) for words in (first, second)]
    for key in dict.fromkeys([*fields[0], *fields[1]]):
        x, y = (side.get(key, "-") for side in fields)
        if x != y:
            yield f"    {where + ' ' + key:<24}{x:>14}{y:>14}"


def lacking():
    """The operations that the library does not have yet, as tests/oracle/env_lib.h lists them."""
    text = (guest.sources() / "env_lib.h").read_text(encoding="utf-8")
    line = re.search(r"^#define ORACLE_LACKS (.*)$", text, re.MULTILINE)[1]
    return set(re.findall(r"O_BIT\((\w+)\)", line))


def read_program(path):
    try:
        with open(path, encoding="utf-8") as source:
            program = prog.parse(source.read(), path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not program:
        raise UserError(f"{path} holds no operation")
    return program


def corpus(lacks):
    """The programs in tests/oracle/corpus, but for those that need what the library has not."""
    named = [(path.name, read_program(path)) for path in sorted((guest.sources() / "corpus").glob("*.prog"))]
    return [(name, program) for name, program in named if not lacks & {op.name for op in program}]


def parse_costs(text):
    """{(operation, frags): instructions} of what the yardstick says."""
    rows = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+),(\d+),(-?\d+)", line)
        if not found or int(found[3]) < 0:
            raise UserError(f"the guest's yardstick said '{line}', which is no cost", FAILED)
        rows[found[1], int(found[2])] = int(found[3])
    return rows


def costs_beside(costs, kernels):
    yield f"instructions of one operation, {' and '.join(f'{kernel.release} ({kernel.version})' for kernel in kernels)}"
    yield f"{'operation':<36}{'frags':>6}{'first':>10}{'second':>10}{'ratio':>8}"
    for (operation, frags), cost in costs[0].items():
        other = costs[1].get((operation, frags))
        if other is not None:
            ratio = f"{other / cost:>8.2f}" if cost else ""
            yield f"{operation:<36}{frags:>6}{cost:>10}{other:>10}{ratio}"


def cost_table(rows):
    frags = sorted({n for _, n in rows})
    yield f"{'operation':<33}" + "".join(f"{f'n={n}':>7}" for n in frags)
    for operation in dict.fromkeys(name for name, _ in rows):
        yield f"{operation:<33}" + "".join(f"{rows.get((operation, n), ''):>7}" for n in frags)
