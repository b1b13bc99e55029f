# SPDX-License-Identifier: MIT
"""What a result depends on, in three rings.

identity   must be equal for stored times to be compared; its hash names the machine (fp8)
condition  what may change between two runs on one machine: shown beside a comparison
record     kept, never compared

A field that cannot be read is null, and `missing` says why. Nothing is guessed, and no host name is part of the
identity. The plan of a run (operations a batch, CPUs) belongs to each case and is compared there.
"""

import datetime
import hashlib
import json
import os
import pathlib
import platform
import re
import resource
import socket
import subprocess
import time

from . import tree

SCHEMA_MAJOR = 1
QUIET_OTHER_CPU_SHARE = 0.15
QUIET_STEAL_SHARE = 0.01

# From the bench binary's --skb_context. They decide how fast the same source runs.
BUILD_FIELDS = ("compiler", "compiler_version", "flags", "preset", "max_skb_frags", "page_size", "glibc", "jemalloc",
                "liburcu", "google_benchmark")


class Missing(Exception):
    """Why a field cannot be read."""


class Reader:
    """Reads below ROOT, which is "/" outside tests."""

    def __init__(self, root="/"):
        self.root = pathlib.Path(root)

    def path(self, name):
        return self.root / name.lstrip("/")

    def text(self, name):
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            raise Missing(f"{name}: {error.strerror}") from None

    def names(self, name):
        try:
            return sorted(entry.name for entry in self.path(name).iterdir())
        except OSError as error:
            raise Missing(f"{name}: {error.strerror}") from None

    def chosen(self, name):
        """The word in brackets of a file that lists choices ("always [madvise] never")."""
        found = re.search(r"\[(\w+)\]", self.text(name))
        if not found:
            raise Missing(f"{name}: no choice is marked")
        return found.group(1)

    def cpuinfo(self, *keys):
        """The first value of the first of KEYS in /proc/cpuinfo."""
        text = self.text("/proc/cpuinfo")
        for key in keys:
            found = re.search(rf"^{re.escape(key)}\s*:\s*(.*)$", text, re.MULTILINE)
            if found and found.group(1).strip():
                return found.group(1).strip()
        raise Missing(f"/proc/cpuinfo has no '{keys[0]}'")

    def meminfo(self, key):
        found = re.search(rf"^{key}:\s*(\d+)", self.text("/proc/meminfo"), re.MULTILINE)
        if not found:
            raise Missing(f"/proc/meminfo has no '{key}'")
        return int(found.group(1))


def allowed_cpus():
    """The CPUs this process may run on, sorted."""
    return sorted(os.sched_getaffinity(0))


def cpu_list(cpus):
    """[0, 1, 2, 5] as "0-2,5"."""
    runs = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in runs)


def _integer(text):
    try:
        return int(text, 0)
    except ValueError:
        raise Missing(f"'{text}' is not an integer") from None


def _virtual(reader):
    """True in a virtual machine."""
    if platform.machine() != "x86_64":
        raise Missing("only x86 tells of its hypervisor in /proc/cpuinfo")
    return re.search(r"^flags\s*:.*\bhypervisor\b", reader.text("/proc/cpuinfo"), re.MULTILINE) is not None


def _hypervisor(reader):
    """Vendor or kind of hypervisor, "none" on bare metal."""
    try:
        return reader.text("/sys/hypervisor/type")
    except Missing:
        pass
    try:
        listing = subprocess.run(["lscpu"], capture_output=True, text=True, timeout=10,
                                 env={**os.environ, "LC_ALL": "C"}).stdout if reader.root == pathlib.Path("/") else ""
    except (OSError, subprocess.SubprocessError):
        listing = ""
    found = re.search(r"^Hypervisor vendor:\s*(.+)$", listing, re.MULTILINE)
    if found:
        return found.group(1).strip()
    if _virtual(reader):
        raise Missing("a hypervisor is there (CPU flag) and lscpu does not name it")
    return "none"


def _nodes(reader):
    return len([name for name in reader.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)])


def _threads_per_core(reader, cpus):
    siblings = reader.text(f"/sys/devices/system/cpu/cpu{cpus[0]}/topology/thread_siblings_list")
    count = 0
    for part in siblings.split(","):
        lo, _, hi = part.partition("-")
        count += int(hi or lo) - int(lo) + 1
    return count


def _cores(reader, cpus):
    return len({(reader.text(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"),
                 reader.text(f"/sys/devices/system/cpu/cpu{cpu}/topology/core_id")) for cpu in cpus})


def _governor(reader, cpus):
    return reader.text(f"/sys/devices/system/cpu/cpu{cpus[0]}/cpufreq/scaling_governor")


def _boost(reader):
    for name, on in (("/sys/devices/system/cpu/cpufreq/boost", "1"),
                     ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0")):
        try:
            return reader.text(name) == on
        except Missing:
            continue
    raise Missing("neither cpufreq/boost nor intel_pstate/no_turbo is there")


def _mitigations(reader):
    base = "/sys/devices/system/cpu/vulnerabilities"
    return {name: reader.text(f"{base}/{name}") for name in reader.names(base)}


def _pmu(reader):
    """The hardware counters' device, or "none"."""
    names = reader.names("/sys/bus/event_source/devices")
    hardware = [name for name in names if name in ("cpu", "cpu_core", "cpu_atom") or name.startswith("armv8")]
    return ",".join(hardware) or "none"


def _cgroup(reader):
    """Kind only: paths name containers."""
    lines = reader.text("/proc/self/cgroup").splitlines()
    v1 = [line for line in lines if not line.startswith("0::")]
    named = any("name=" not in line.split(":")[1] for line in v1)
    kind = "v1" if named else "v2"
    if kind == "v1" and any(line.startswith("0::") for line in lines):
        kind = "hybrid"
    return kind


def _throttle(reader, cpus):
    return sum(_integer(reader.text(f"/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count"))
               for cpu in cpus)


def _pressure(reader):
    found = re.search(r"^some avg10=([0-9.]+)", reader.text("/proc/pressure/cpu"), re.MULTILINE)
    if not found:
        raise Missing("/proc/pressure/cpu has no avg10")
    return float(found.group(1))


def _mhz(reader):
    return round(float(reader.cpuinfo("cpu MHz")))


def _environment_size():
    return sum(len(key) + len(value) + 2 for key, value in os.environb.items())


def _stat(reader):
    """(busy, steal, total) in ticks since boot over all CPUs."""
    fields = [int(field) for field in reader.text("/proc/stat").splitlines()[0].split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = fields
    return user + nice + system + irq + softirq, steal, sum(fields)


def _own_seconds():
    return sum(usage.ru_utime + usage.ru_stime
               for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


class Load:
    """What others took of the machine between its creation and ask()."""

    def __init__(self, reader=None):
        self.reader = reader or Reader()
        self.begin = self._now()

    def _now(self):
        try:
            return _stat(self.reader), _own_seconds(), time.monotonic()
        except (Missing, ValueError):
            return None

    def ask(self):
        """{"other_cpu_share", "steal_share"}: of the time of all CPUs; null where it cannot be told."""
        end = self._now()
        if self.begin is None or end is None:
            return {"other_cpu_share": None, "steal_share": None}
        (busy0, steal0, total0), own0, _ = self.begin
        (busy1, steal1, total1), own1, _ = end
        total = total1 - total0
        if total <= 0:
            return {"other_cpu_share": None, "steal_share": None}
        own = (own1 - own0) * os.sysconf("SC_CLK_TCK")
        return {"other_cpu_share": round(max(0.0, (busy1 - busy0 - own) / total), 4),
                "steal_share": round(max(0.0, (steal1 - steal0) / total), 4)}


def quiet(condition):
    """True, False, or None if it cannot be told: whether the machine was ours enough for absolute times."""
    other, steal = condition.get("other_cpu_share"), condition.get("steal_share")
    if other is None or steal is None:
        return None
    return other <= QUIET_OTHER_CPU_SHARE and steal <= QUIET_STEAL_SHARE


def canonical(value):
    """The one JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(identity):
    """SHA-256 of the identity ring, in hex. Its first 8 digits name the machine's directory."""
    return hashlib.sha256(canonical(identity).encode("ascii")).hexdigest()


def take(context, load=None, seed=None, reader=None, root=None):
    """The fingerprint of this machine and of a build that describes itself with CONTEXT (--skb_context).

    LOAD is the Load that ran beside the measurement. Returns {fp, fp8, identity, condition, record, missing}.
    """
    reader = reader or Reader()
    cpus = allowed_cpus()
    missing = {}

    def field(ring, name, read):
        try:
            return read()
        except Missing as error:
            missing[f"{ring}.{name}"] = str(error)
        except (OSError, ValueError, IndexError) as error:
            missing[f"{ring}.{name}"] = f"{type(error).__name__}: {error}"
        return None

    def ring(name, readers):
        return {key: field(name, key, read) for key, read in readers.items()}

    def from_build(key):
        def read():
            if context.get(key) is None:
                raise Missing(f"the bench binary's context has no '{key}'")
            return context[key]
        return read

    identity = ring("identity", {
        "arch": platform.machine,
        "cpu_vendor": lambda: reader.cpuinfo("vendor_id", "CPU implementer"),
        "cpu_family": lambda: _integer(reader.cpuinfo("cpu family", "CPU architecture")),
        "cpu_model": lambda: _integer(reader.cpuinfo("model", "CPU part")),
        "cpu_stepping": lambda: _integer(reader.cpuinfo("stepping", "CPU revision")),
        "cpu_name": lambda: reader.cpuinfo("model name", "Model"),
        "virtual": lambda: _virtual(reader),
        "hypervisor": lambda: _hypervisor(reader),
        "cpus_allowed": lambda: len(cpus),
        "cores": lambda: _cores(reader, cpus),
        "threads_per_core": lambda: _threads_per_core(reader, cpus),
        "nodes": lambda: _nodes(reader),
        "page_size": lambda: os.sysconf("SC_PAGE_SIZE"),
        "thp": lambda: reader.chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
    })
    # Build facts that a binary does not state are absent from all its results alike.
    identity["build"] = {key: context.get(key) for key in BUILD_FIELDS}
    for key in BUILD_FIELDS:
        field("identity.build", key, from_build(key))
    identity["schema_major"] = SCHEMA_MAJOR

    condition = ring("condition", {
        "kernel": platform.release,
        "microcode": lambda: reader.cpuinfo("microcode"),
        "mitigations": lambda: _mitigations(reader),
        "governor": lambda: _governor(reader, cpus),
        "boost": lambda: _boost(reader),
        "smt": lambda: reader.text("/sys/devices/system/cpu/smt/control"),
        "aslr": lambda: _integer(reader.text("/proc/sys/kernel/randomize_va_space")),
        "perf_event_paranoid": lambda: _integer(reader.text("/proc/sys/kernel/perf_event_paranoid")),
        "pmu": lambda: _pmu(reader),
        "cgroup": lambda: _cgroup(reader),
        "environment_bytes": _environment_size,
        "memory_kb": lambda: reader.meminfo("MemTotal"),
        "huge_pages": lambda: reader.meminfo("HugePages_Total"),
        "load_avg": lambda: [float(word) for word in reader.text("/proc/loadavg").split()[:3]],
        "cpu_pressure_avg10": lambda: _pressure(reader),
        "throttle_count": lambda: _throttle(reader, cpus),
    })
    shares = load.ask() if load else {"other_cpu_share": None, "steal_share": None}
    condition.update(shares)
    for key, value in shares.items():
        if value is None:
            missing[f"condition.{key}"] = "/proc/stat did not tell" if load else "nothing was timed"

    commit, dirty = tree.revision(root)
    record = ring("record", {
        "date": lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "host": socket.gethostname,
        "mhz": lambda: _mhz(reader),
    })
    record.update({"commit": commit, "dirty": dirty, "cpus": cpu_list(cpus), "seed": seed})
    if seed is None:
        missing["record.seed"] = "nothing was drawn"
    if dirty is None:
        missing["record.dirty"] = "git does not answer for this tree"

    fp = digest(identity)
    return {"fp": fp, "fp8": fp[:8], "identity": identity, "condition": condition, "record": record,
            "missing": missing}


def caches(reader=None):
    """Google Benchmark's list of caches, as far as the kernel describes them."""
    reader = reader or Reader()
    found = []
    base = f"/sys/devices/system/cpu/cpu{allowed_cpus()[0]}/cache"
    try:
        indexes = [name for name in reader.names(base) if name.startswith("index")]
        for index in indexes:
            size = reader.text(f"{base}/{index}/size")
            unit = {"K": 1024, "M": 1024 * 1024}.get(size[-1], 1)
            shared = reader.text(f"{base}/{index}/shared_cpu_map").replace(",", "")
            found.append({"type": reader.text(f"{base}/{index}/type"),
                          "level": int(reader.text(f"{base}/{index}/level")),
                          "size": int(size.rstrip("KM")) * unit,
                          "num_sharing": bin(int(shared, 16)).count("1")})
    except (Missing, ValueError):
        return []
    return found


def differences(a, b, ring="identity"):
    """The names of the fields of a ring in which two fingerprints differ, nested ones with a dot."""
    def walk(left, right, prefix):
        for key in sorted(set(left) | set(right)):
            one, other = left.get(key), right.get(key)
            if isinstance(one, dict) and isinstance(other, dict):
                yield from walk(one, other, f"{prefix}{key}.")
            elif one != other:
                yield f"{prefix}{key}"
    return list(walk(a[ring], b[ring], ""))
