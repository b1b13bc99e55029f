#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""skb-prof: what it counts against perf stat, and with a scripted kernel every way in which events are refused."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

PROF = os.environ["SKB_PROF"]
SCRIPTED = os.environ["SKB_PROF_SCRIPTED"]
BENCH = os.environ.get("SELFTEST_BENCH") or ""
BENCH = BENCH if os.path.exists(BENCH) else ""
NOBODY = 65534

HARDWARE, SOFTWARE, CACHE, RAW = 0, 1, 3, 4
VIRTUAL = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nflags\t\t: fpu hypervisor sse\n"
METAL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nflags\t\t: fpu nohypervisor sse\n"
ALL_CAPS, NO_CAPS = "000001ffffffffff", "0000000000000000"


class Machine:
    """A directory with the sys and proc of a machine."""

    def __init__(self, path, cpuinfo=METAL, paranoid="2", kptr="0", mlock="516", caps=ALL_CAPS,
                 kallsyms="ffffffff81000000 T _stext\n", pmus=(("cpu", 4),)):
        self.path = Path(path)
        self.write("proc/cpuinfo", cpuinfo)
        self.write("proc/self/status", f"Name:\tx\nCapEff:\t{caps}\n")
        self.write("proc/kallsyms", kallsyms)
        for name, value in (("perf_event_paranoid", paranoid), ("kptr_restrict", kptr), ("perf_event_mlock_kb", mlock)):
            if value is not None:
                self.write(f"proc/sys/kernel/{name}", value + "\n")
        for name, kind in pmus:
            self.pmu(name, kind)

    def write(self, name, text):
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def pmu(self, name, kind, formats=None, events=None):
        base = f"sys/bus/event_source/devices/{name}"
        self.write(f"{base}/type", f"{kind}\n")
        for word, text in (formats or {}).items():
            self.write(f"{base}/format/{word}", text + "\n")
        for word, text in (events or {}).items():
            self.write(f"{base}/events/{word}", text + "\n")


class Played(unittest.TestCase):
    """skb-prof on a scripted kernel."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = Path(scratch.name)
        self.calls = []

    def start(self, *flags, rules, machine=None, **how):
        if machine is None:
            shutil.rmtree(self.path / "root", ignore_errors=True)
            machine = Machine(self.path / "root", **how)
        (self.path / "script").write_text("".join(f"open {rule}\n" for rule in rules) or "open errno=2\n")
        (self.path / "calls").write_text("")
        done = subprocess.run([SCRIPTED, f"--root={machine.path}", *flags], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SKB_PROF_SCRIPT": str(self.path / "script"),
                                   "SKB_PROF_CALLS": str(self.path / "calls")})
        self.calls = (self.path / "calls").read_text().splitlines()
        return done

    def events(self, events, *rules, status=0, **how):
        """{label: event} of the JSON that counting EVENTS gives."""
        done = self.start(f"--events={events}", "--json=-", "--", "true", rules=rules, **how)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr, "")
        self.answer = json.loads(done.stdout)
        self.assertEqual(self.answer["schema"], "skb-prof-1")
        return {event["label"]: event for event in self.answer["events"]}

    def reason(self, events, *rules, **how):
        """Why the only event is not counted."""
        (event,) = self.events(events, *rules, status=4, **how).values()
        self.assertEqual((event["status"], event["value"]), ("refused", None))
        return event["reason"]


class Reasons(Played):
    def test_a_virtual_machine_without_a_pmu(self):
        for error in (2, 95, 19):
            text = self.reason("cycles", f"errno={error}", cpuinfo=VIRTUAL, pmus=())
            self.assertRegex(text, "not on this machine: its hypervisor passes no PMU on; use bare metal")

    def test_bare_metal_without_such_an_event(self):
        self.assertEqual(self.reason("node-loads", "errno=2"),
                         "not on this machine: this CPU's PMU has no such event")
        self.assertRegex(self.reason("cycles", "errno=2", pmus=()), "the kernel knows no PMU of this CPU")

    def test_paranoid(self):
        for error in (1, 13):
            text = self.reason("cycles", f"errno={error}", paranoid="3", caps=NO_CAPS)
            self.assertRegex(text, r"^not allowed: kernel.perf_event_paranoid is 3 .* CAP_PERFMON; as root, sysctl")
        self.assertRegex(self.reason("cycles", "errno=13", paranoid=None, caps=NO_CAPS), "lacks CAP_PERFMON; run as root")

    def test_a_container(self):
        self.assertRegex(self.reason("cycles", "errno=1"), "although this process has CAP_PERFMON: a container's seccomp")
        self.assertRegex(self.reason("cycles", "errno=1", caps=NO_CAPS, paranoid="-1"),
                         "although kernel.perf_event_paranoid allows it: a container's seccomp")
        self.assertRegex(self.reason("cycles", "errno=38"), "perf_event_open is not there; a container's seccomp")

    def test_other_errors(self):
        for error, says in ((28, "too many for the PMU"), (16, "in use by somebody else"), (24, "ulimit -n"),
                            (3, "the thread ended"), (12, "no memory"), (7, "too old"), (22, "refuses this combination"),
                            (5, "Input/output error")):
            with self.subTest(error):
                self.assertRegex(self.reason("cycles", f"errno={error}"), says)

    def test_never_scheduled(self):
        self.assertRegex(self.reason("cycles", "value=0 enabled=9 running=0"), "too many for the PMU: it never got")

    def test_reading(self):
        self.assertRegex(self.reason("cycles", "value=0 readerrno=5"), "cannot be read: Input/output error")

    def test_the_terminal_tells_them_too(self):
        done = self.start("-e", "cycles,instructions,task-clock", "--", "true", rules=["type=1 value=1234", "errno=2"])
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"(?m)^ +1234  task-clock$")
        self.assertIn("not counted: cycles, instructions\n  not on this machine:", done.stderr)

    def test_nothing_counted_at_all(self):
        done = self.start("-e", "cycles", "--", "true", rules=[])
        self.assertEqual(done.returncode, 4)


class UserOnly(Played):
    def test_the_kernel_is_left_out_and_said_so(self):
        events = self.events("cycles,instructions,context-switches,task-clock", "user=0 errno=13", "user=1 value=7",
                             caps=NO_CAPS)
        self.assertEqual(events["cycles:u"]["value"], 7)
        self.assertEqual(events["instructions:u"]["status"], "ok")
        self.assertEqual(events["task-clock:u"]["value"], 7)
        self.assertTrue(self.answer["user_only"])
        self.assertGreaterEqual(self.answer["system_share"], 0)
        # A count of what the kernel does would be 0, which is a lie.
        self.assertIsNone(events["context-switches"]["value"])
        self.assertRegex(events["context-switches"]["reason"], "happens in the kernel.*: as root, sysctl")
        # Once refused, the kernel is not asked for again.
        self.assertEqual(sum("user=0" in call for call in self.calls), 1, self.calls)

    def test_the_share_that_is_not_covered(self):
        done = self.start("-e", "cycles", "--", "sh", "-c", "head -c 200000000 /dev/zero >/dev/null",
                          rules=["user=0 errno=13", "value=7"], caps=NO_CAPS)
        share = float(re.search(r"user space only \(:u\): ([0-9.]+) % of the CPU time was spent in the kernel",
                                done.stderr).group(1))
        self.assertGreater(share, 10)

    def test_what_cannot_leave_out_the_kernel(self):
        machine = Machine(self.path / "root", caps=NO_CAPS)
        machine.pmu("msr", 9, {"event": "config:0-63"}, {"tsc": "event=0x00"})
        self.assertRegex(self.reason("msr/tsc/", "user=0 errno=13", "user=1 errno=22", machine=machine),
                         "cannot leave out the kernel")

    def test_asked_for(self):
        events = self.events("cycles:u,cycles:k,cycles", "value=5")
        self.assertEqual(list(events), ["cycles:u", "cycles:k", "cycles"])
        self.assertFalse(self.answer["user_only"])


class Scaling(Played):
    def test_each_event_by_its_own_times(self):
        events = self.events("cycles,task-clock", "type=0 value=100 enabled=3 running=1",
                             "type=1 value=100 enabled=3 running=3")
        cycles, clock = events["cycles"], events["task-clock"]
        self.assertEqual((cycles["value"], cycles["status"]), (300, "scaled"))
        self.assertEqual((clock["value"], clock["status"]), (100, "ok"))
        self.assertEqual([cycles[key] for key in ("raw", "enabled_ns", "running_ns")], [100, 3, 1])
        self.assertEqual([clock[key] for key in ("raw", "enabled_ns", "running_ns")], [100, 3, 3])

    def test_the_terminal_marks_it(self):
        done = self.start("-e", "cycles", "--", "true", rules=["value=100 enabled=4 running=1"])
        self.assertRegex(done.stderr, r"400  cycles  \(scaled: counted for 25.0 % of the time\)")

    def test_groups(self):
        self.events("cycles,instructions,branches,L1-dcache-loads", "value=1")
        self.assertEqual([re.search("grouped=.", call).group() for call in self.calls],
                         ["grouped=0", "grouped=1", "grouped=1", "grouped=0"])

    def test_a_group_that_is_too_large(self):
        # The third does not fit in, and counts alone.
        events = self.events("cycles,instructions,branches", "config=4 grouped=1 errno=22", "value=1")
        self.assertEqual([event["status"] for event in events.values()], ["ok"] * 3)
        self.assertEqual(len(self.calls), 4)

    def test_a_refused_leader_does_not_take_its_group_along(self):
        events = self.events("cycles,instructions,branches", "config=0 errno=2", "value=1")
        self.assertEqual([event["status"] for event in events.values()], ["refused", "ok", "ok"])
        self.assertEqual([re.search("grouped=.", call).group() for call in self.calls],
                         ["grouped=0", "grouped=0", "grouped=1"])


class Hybrid(Played):
    PMUS = (("cpu_core", 4), ("cpu_atom", 8))

    def test_both_kinds_of_cores_are_summed(self):
        # Half of the time on each: 600 on one, 200 on the other; nothing was multiplexed.
        events = self.events("cycles", "config=0x400000000 value=600 enabled=100 running=50",
                             "config=0x800000000 value=200 enabled=100 running=50", pmus=self.PMUS)
        self.assertEqual((events["cycles"]["value"], events["cycles"]["status"]), (800, "ok"))
        self.assertEqual(len(self.calls), 2)

    def test_multiplexed_on_one_kind(self):
        events = self.events("cycles", "config=0x400000000 value=300 enabled=100 running=25",
                             "config=0x800000000 value=300 enabled=100 running=25", pmus=self.PMUS)
        self.assertEqual((events["cycles"]["value"], events["cycles"]["status"]), (1200, "scaled"))

    def test_half_of_them_is_a_refusal(self):
        self.assertRegex(self.reason("cycles", "config=0x400000000 value=600", "errno=2", pmus=self.PMUS),
                         "no such event")

    def test_software_events_are_one(self):
        self.events("task-clock", "value=1", pmus=self.PMUS)
        self.assertEqual(len(self.calls), 1)


class Lists(Played):
    def test_parsing(self):
        for text, count in (("", 0), (",", 0), (" , ", 0), ("cycles", 1), ("cycles,", 1), (",cycles", 1),
                            ("cycles,,instructions", 2), ("cycles, instructions", 2), ("cycles,cycles", 1),
                            ("CYCLES,Instructions", 2), ("cycles:u,cycles", 2)):
            with self.subTest(text):
                events = self.events(text, "value=1")
                self.assertEqual(len(events), count)
                self.assertTrue(all(event["name"] for event in events.values()))
                self.assertEqual("twice" in (self.answer["note"] or ""), text == "cycles,cycles")

    def test_too_many(self):
        done = self.start("-e", ",".join(f"r{n:x}" for n in range(65)), "--", "true", rules=["value=1"])
        self.assertEqual((done.returncode, done.stderr), (2, "skb-prof: more than 64 events\n"))

    def test_an_unknown_name_names_the_nearest(self):
        events = self.events("CYCLES,cycels,INSTRUCTIONS,LLC-load-mises", "value=1")
        self.assertEqual([event["status"] for event in events.values()], ["ok", "refused", "ok", "refused"])
        self.assertRegex(events["cycels"]["reason"], "no such event; the nearest names are cycles, ")
        self.assertRegex(events["LLC-load-mises"]["reason"], "are LLC-load-misses, ")

    def test_modifiers(self):
        for text in ("cycles:x", "cycles:", "cycles:uu"):
            self.assertRegex(self.reason(text, "value=1"), "neither :u nor :k")
        self.assertIn("x" * 90, self.reason("x" * 200, "value=1") + "x" * 90)

    def test_pmu_terms(self):
        machine = Machine(self.path / "root")
        machine.pmu("cpu", 4, {"event": "config:0-7", "umask": "config:8-15", "any": "config:21",
                               "split": "config1:0-3,8-11"},
                    {"mem": "event=0xd2,umask=0x4", "energy": "event=0x2", "energy.scale": "0.5"})
        self.events("cpu/event=0xd2,umask=0x4/,cpu/mem,any/u,r1d3,cpu/split=0xab/", "value=1", machine=machine)
        self.assertEqual([re.search("config=0x[0-9a-f]+ user=.", call).group() for call in self.calls],
                         ["config=0x4d2 user=0", "config=0x2004d2 user=1", "config=0x1d3 user=0", "config=0x0 user=0"])
        self.assertEqual(self.events("cpu/energy/", "value=8", machine=machine)["cpu/energy/"]["value"], 4)
        for text, says in (("cpu/nope/", "no event or term 'nope'"), ("cpu/event=x/", "no number"),
                           ("cpu/event=0x100/", "does not fit"), ("gpu/x/", "no PMU 'gpu'"),
                           ("cpu/event=1", "slash at its end"), ("../cpu/x/", "slash at its end"), (".x/y/", "no PMU"), ("cpu/..=1/", "no event")):
            with self.subTest(text):
                self.assertRegex(self.reason(text, "value=1", machine=machine), says)

    def test_codes_of_vendors(self):
        def codes(events, vendor, family, model):
            cpuinfo = f"vendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\nflags : fpu\n"
            self.events(events, "type=4 value=1", cpuinfo=cpuinfo)
            return [re.search("config=(0x[0-9a-f]+)", call).group(1) for call in self.calls]

        intel = "hitm,remote-hitm,remote-loads,task-clock"
        self.assertEqual(codes(intel, "GenuineIntel", 6, 0x8f)[:3], ["0x4d2", "0x4d3", "0x2d3"])
        self.assertEqual(codes(intel, "GenuineIntel", 6, 0x4f)[:3], ["0x4d2", "0x10d3", "0x4d3"])
        amd = "remote-loads,remote-cache-fills,other-ccx-fills"
        self.assertEqual(codes(amd, "AuthenticAMD", 0x19, 1), ["0x4043", "0x1043", "0x443"])
        self.assertEqual(codes(amd, "AuthenticAMD", 0x17, 0x31), ["0x4043", "0x1043"])
        self.assertRegex(self.reason("remote-loads", "value=1", cpuinfo="vendor_id : AuthenticAMD\ncpu family : 23\n"
                                                                        "model : 1\nflags : fpu\n"),
                         r"no event code for it is known for this CPU \(AuthenticAMD family 23 model 1\)")

    def test_topdown_where_the_pmu_has_it(self):
        machine = Machine(self.path / "root")
        machine.pmu("cpu", 4, {"event": "config:0-7", "umask": "config:8-15"},
                    {"slots": "event=0x00,umask=0x4", "topdown-retiring": "event=0x00,umask=0x80"})
        events = self.events("slots,topdown-retiring,topdown-be-bound", "value=9", machine=machine)
        self.assertEqual([event["status"] for event in events.values()], ["ok", "ok", "refused"])
        self.assertEqual([re.search("config=.*user", call).group() for call in self.calls],
                         ["config=0x400 user", "config=0x8000 user"])
        self.assertIn("grouped=1", self.calls[1])


class Probe(Played):
    def probe(self, *rules, **how):
        done = self.start("--probe", rules=rules, **how)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_precise_cycles(self):
        found = self.probe("times=1 errno=95", "value=1")
        self.assertEqual((found["event"], found["mmap_kb"], found["reason"]), ("cycles:pp", 512, None))

    def test_the_clock_instead(self):
        found = self.probe("type=0 errno=2", "type=1 value=1", cpuinfo=VIRTUAL, pmus=())
        self.assertEqual((found["event"], found["reason"]), ("cpu-clock", None))
        self.assertRegex(found["cycles_reason"], "hypervisor passes no PMU on")

    def test_user_space_only(self):
        found = self.probe("user=0 errno=13", "type=0 errno=2", "type=1 value=1", caps=NO_CAPS)
        self.assertEqual((found["event"], found["user_only"]), ("cpu-clock", True))

    def test_not_allowed(self):
        found = self.probe("errno=13", caps=NO_CAPS, paranoid="4")
        self.assertIsNone(found["event"])
        self.assertRegex(found["reason"], "perf_event_paranoid is 4")

    def test_locked_memory(self):
        found = self.probe("value=1 mmaperrno=1", mlock="516")
        self.assertIsNone(found["event"])
        self.assertRegex(found["reason"], "a buffer of 32 KB .*kernel.perf_event_mlock_kb is 516 KB")

    def test_kernel_names(self):
        self.assertEqual(self.probe("value=1")["kernel_names"], {"available": True, "reason": None})
        for kptr in ("1", "2"):
            found = self.probe("value=1", kptr=kptr, kallsyms="0000000000000000 T _stext\n0000000000000000 t x\n")
            self.assertFalse(found["kernel_names"]["available"])
            self.assertRegex(found["kernel_names"]["reason"],
                             rf"^kernel names not available \(kptr_restrict={kptr}, perf_event_paranoid=2\): as root")


class Usage(unittest.TestCase):
    def run_it(self, *arguments):
        return subprocess.run([PROF, *arguments], capture_output=True, text=True, timeout=60)

    def test_wrong_use(self):
        for arguments in ([], ["--bogus"], ["--probe", "--", "true"], ["--control=x", "--", "true"],
                          ["--control=/no/such,/nor/such", "--", "true"], ["--json=/no/such/dir/x", "--", "true"]):
            with self.subTest(arguments):
                done = self.run_it(*arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_licence_is_told(self):
        done = self.run_it("--version")
        self.assertRegex(done.stdout, r"As a program this is GPL-2.0, by libperf")

    def test_the_commands_status(self):
        self.assertEqual(self.run_it("--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.run_it("--", "sh", "-c", "kill -9 $$").returncode, 137)
        done = self.run_it("--", "/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("/no/such/program cannot be run", done.stderr)

    def test_it_is_not_linked_with_google_benchmark(self):
        needed = subprocess.run(["readelf", "-d", PROF], capture_output=True, text=True).stdout
        self.assertEqual(re.findall(r"NEEDED.*\[(.*)\]", needed), ["libc.so.6"])


def counts(*arguments, **how):
    """{name: event} that the real skb-prof gives for a command, and its standard error."""
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o777)
        out = os.path.join(scratch, "counts.json")
        done = subprocess.run([PROF, f"--json={out}", *arguments], capture_output=True, text=True, timeout=120, **how)
        if done.returncode:
            return done.returncode, done.stderr
        with open(out, encoding="utf-8") as file:
            answer = json.load(file)
    return answer, {event["name"]: event for event in answer["events"]}


# 30 MB touched page by page, some sleep, some work.
WORK = ["/usr/bin/python3", "-c", "import time\nb = bytearray(30 << 20)\nfor _ in range(20): time.sleep(0.001)\n"
        "n = 0\nfor i in range(1500000): n += i"]


class Real(unittest.TestCase):
    """On this machine's own kernel."""

    def setUp(self):
        answer, events = counts("-e", "task-clock", "--", "true")
        if answer == 4:
            self.skipTest("events cannot be opened here: a container that allows perf_event_open is needed")
        self.answer = answer

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed: scripts/install-packages profile")
    def test_it_agrees_with_perf_stat(self):
        # What else runs here preempts perf itself now and then, which only the outer one counts: one of five must agree.
        for left in reversed(range(5)):
            apart = self.apart()
            if not apart or not left:
                break
        self.assertEqual(apart, [])

    def apart(self):
        """What the two say differently of one run of a program. Both count at once, one inside the other, so that the
        machine cannot change in between; what is inside counts a little less."""
        names = ["task-clock", "page-faults", "context-switches"]
        with tempfile.TemporaryDirectory() as scratch:
            stat = os.path.join(scratch, "stat")
            answer, ours = counts("-e", ",".join(names), "--", "perf", "stat", "-x,", "-o", stat, "-e", ",".join(names),
                                  "--", *WORK)
            alone, _ = counts("-e", ",".join(names), "--", "perf", "stat", "-x,", "-o", os.devnull, "-e",
                              ",".join(names), "--", "true")
            with open(stat, encoding="utf-8") as file:
                fields = [line.split(",") for line in file if "," in line]
        theirs = {line[2].split(":")[0]: float(line[0]) for line in fields if line[0][:1].isdigit()}
        theirs["task-clock"] *= 1e6
        self.assertIsInstance(answer, dict)
        # perf itself, with what `true` takes, is counted by the outer one alone.
        own = {event["name"]: event["value"] or 0 for event in alone["events"]}
        self.assertGreater(theirs["page-faults"], 7000)
        found = []
        for name, bound in (("task-clock", 0.02 * theirs["task-clock"] + 0.5 * own["task-clock"]),
                            ("page-faults", max(3, 0.05 * theirs["page-faults"])),
                            ("context-switches", max(3, 0.05 * theirs["context-switches"]))):
            if ours[name]["value"] is None:
                self.assertIn("happens in the kernel", ours[name]["reason"])
            elif abs(ours[name]["value"] - own[name] - theirs[name]) >= bound:
                found.append(f"{name}: ours {ours[name]['value']}, perf's own {own[name]}, perf says {theirs[name]}")
        return found

    @unittest.skipUnless(os.geteuid() == 0, "only root can become a plain user")
    def test_a_plain_user(self):
        paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
        with tempfile.TemporaryDirectory() as scratch:
            os.chmod(scratch, 0o755)
            shutil.copy(PROF, scratch)
            program = os.path.join(scratch, "skb-prof")
            done = subprocess.run([program, "--json=-", "-e", "task-clock,page-faults,context-switches", "--", "true"],
                                  capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=())
        if paranoid > 2:
            self.assertEqual(done.returncode, 4)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        events = {event["name"]: event for event in answer["events"]}
        if paranoid == 2:
            self.assertTrue(answer["user_only"])
            self.assertEqual(events["page-faults"]["label"], "page-faults:u")
            self.assertIn("happens in the kernel", events["context-switches"]["reason"])
        self.assertGreater(events["page-faults"]["value"], 0)

    @unittest.skipUnless(BENCH, "the bench programs are not built")
    def test_only_what_is_timed(self):
        with tempfile.TemporaryDirectory() as scratch:
            paths = ",".join(os.path.join(scratch, name) for name in ("ctl", "ack"))
            for path in paths.split(","):
                os.mkfifo(path)
            command = [BENCH, "--skb_sample=self/setup", "--skb_n=200000", "--skb_batches=20", "--skb_warmup=0"]
            whole, all_of_it = counts("-e", "task-clock,page-faults", "--", *command)
            answer, timed = counts(f"--control={paths}", "-e", "task-clock,page-faults", "--", *command,
                                   f"--skb_control={paths}")
        self.assertIsInstance(answer, dict, timed)
        self.assertEqual(answer["switching"]["pairs"], 20)
        self.assertEqual(answer["threads_not_counted"], 0)
        (thread,) = timed["task-clock"]["threads"]
        self.assertEqual(thread["name"], "first")
        # Each of three set-ups and checks touches 4096 pages and works for 100 ms; the batches touch nothing.
        self.assertGreater(all_of_it["page-faults"]["value"], 12000)
        self.assertLess(timed["page-faults"]["value"], 100)
        self.assertLess(timed["task-clock"]["value"], all_of_it["task-clock"]["value"] - 250e6)

    @unittest.skipUnless(BENCH, "the bench programs are not built")
    def test_a_command_that_says_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            paths = ",".join(os.path.join(scratch, name) for name in ("ctl", "ack"))
            for path in paths.split(","):
                os.mkfifo(path)
            status, said = counts(f"--control={paths}", "--", "true")
            self.assertEqual((status, said), (5, "skb-prof: the command never said when it was timed\n"))
            status, said = counts(f"--control={paths}", "--", "sh", "-c", f"echo on >{paths.split(',')[0]}; sleep 9")
            self.assertEqual((status, said), (5, "skb-prof: the command says 'on' instead of enable or disable\n"))


if __name__ == "__main__":
    unittest.main()
