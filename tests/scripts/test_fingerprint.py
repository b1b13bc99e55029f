# SPDX-License-Identifier: MIT
"""The fingerprint: what counts as the same machine, and that nothing is invented."""

import copy
import json
import pathlib
import socket
import tempfile
import time
import unittest
from unittest import mock

import support  # noqa: F401  (the path of the package)
from skbench_lib import fingerprint

CONTEXT = {"compiler": "GNU", "compiler_version": "12.2.0", "flags": "-O2", "preset": "release", "max_skb_frags": 17,
           "page_size": 4096, "glibc": "2.36", "jemalloc": "5.3.0", "liburcu": "0.13.2", "google_benchmark": "1.7.1"}

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: A CPU @ 2.00GHz
stepping\t: 7
microcode\t: 0x5003604
cpu MHz\t\t: 1999.998
flags\t\t: fpu sse2 %s

"""


def tree(path, flag="hypervisor", **files):
    """A small /proc and /sys below PATH."""
    cpu = "sys/devices/system/cpu"
    contents = {
        "proc/cpuinfo": CPUINFO % flag, "proc/meminfo": "MemTotal: 100 kB\nHugePages_Total: 3\n",
        "proc/loadavg": "0.10 0.20 0.30 1/100 1\n", "proc/stat": "cpu 10 0 10 80 0 0 0 0 0 0\n",
        "proc/sys/kernel/randomize_va_space": "2\n", "proc/sys/kernel/perf_event_paranoid": "3\n",
        "proc/self/cgroup": "0::/secret/name\n", "proc/pressure/cpu": "some avg10=1.50 avg60=0 avg300=0 total=1\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/node/node0/x": "", "sys/devices/system/node/node1/x": "",
        "sys/bus/event_source/devices/cpu/type": "4\n", f"{cpu}/vulnerabilities/mds": "Not affected\n",
        f"{cpu}/smt/control": "on\n", f"{cpu}/cpufreq/boost": "1\n", "sys/hypervisor/type": "xen\n"}
    for number in fingerprint.allowed_cpus():
        contents.update({
            f"{cpu}/cpu{number}/topology/thread_siblings_list": "0,2-3\n",
            f"{cpu}/cpu{number}/topology/physical_package_id": "0\n",
            f"{cpu}/cpu{number}/topology/core_id": f"{number}\n",
            f"{cpu}/cpu{number}/cpufreq/scaling_governor": "performance\n",
            f"{cpu}/cpu{number}/thermal_throttle/core_throttle_count": "0\n",
            f"{cpu}/cpu{number}/cache/index0/type": "Data\n", f"{cpu}/cpu{number}/cache/index0/level": "1\n",
            f"{cpu}/cpu{number}/cache/index0/size": "32K\n",
            f"{cpu}/cpu{number}/cache/index0/shared_cpu_map": "0000,00000003\n"})
    contents.update(files)
    for name, text in contents.items():
        target = pathlib.Path(path) / name
        if text is None:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return fingerprint.Reader(path)


class Whole(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def take(self, context=None, **files):
        with tempfile.TemporaryDirectory(dir=self.path) as path:
            return fingerprint.take(CONTEXT if context is None else context, None, 5, reader=tree(path, **files))

    def test_everything_readable(self):
        taken = self.take()
        identity, condition = taken["identity"], taken["condition"]
        self.assertEqual((identity["cpu_vendor"], identity["cpu_family"], identity["cpu_model"],
                          identity["cpu_stepping"]), ("GenuineIntel", 6, 85, 7))
        self.assertEqual((identity["hypervisor"], identity["virtual"], identity["nodes"], identity["threads_per_core"],
                          identity["thp"]), ("xen", True, 2, 3, "madvise"))
        self.assertEqual((condition["governor"], condition["boost"], condition["pmu"], condition["cgroup"],
                          condition["cpu_pressure_avg10"]), ("performance", True, "cpu", "v2", 1.5))
        self.assertEqual(condition["mitigations"], {"mds": "Not affected"})
        self.assertEqual((taken["record"]["mhz"], taken["record"]["seed"]), (2000, 5))
        self.assertFalse([key for key in taken["missing"] if key.startswith("identity")], taken["missing"])

    def test_hash(self):
        """The same machine gives the same name; each field of the identity changes it, nothing else does."""
        one, two = self.take(), self.take()
        self.assertEqual(one["fp"], two["fp"])
        self.assertEqual(one["fp8"], one["fp"][:8])
        self.assertEqual(one["fp"], fingerprint.digest(json.loads(json.dumps(one["identity"]))))
        for key in one["identity"]:
            changed = copy.deepcopy(one["identity"])
            changed[key] = "other"
            self.assertNotEqual(fingerprint.digest(changed), one["fp"], key)
        for key in fingerprint.BUILD_FIELDS:
            self.assertNotEqual(self.take({**CONTEXT, key: "other"})["fp"], one["fp"], key)
        busy = self.take(**{"proc/loadavg": "9 9 9 1/1 1\n", "proc/sys/kernel/perf_event_paranoid": "0\n"})
        self.assertEqual(busy["fp"], one["fp"])
        self.assertEqual(fingerprint.differences(one, busy), [])
        self.assertIn("perf_event_paranoid", fingerprint.differences(one, busy, "condition"))
        other = self.take({**CONTEXT, "compiler": "Clang"})
        self.assertEqual(fingerprint.differences(one, other), ["build.compiler"])

    def test_missing_is_null_with_a_reason(self):
        taken = fingerprint.take({}, None, None, reader=fingerprint.Reader(self.path / "nothing"))
        for ring in ("identity", "condition", "record"):
            for key, value in taken[ring].items():
                if value is None:
                    self.assertTrue(taken["missing"].get(f"{ring}.{key}"), f"{ring}.{key}")
        for key, value in taken["identity"]["build"].items():
            self.assertIsNone(value)
            self.assertIn(key, taken["missing"][f"identity.build.{key}"])
        self.assertIsNone(taken["identity"]["cpu_vendor"])
        self.assertIn("/proc/cpuinfo", taken["missing"]["identity.cpu_vendor"])
        self.assertEqual(fingerprint.caches(fingerprint.Reader(self.path / "nothing")), [])

    def test_no_names(self):
        """Neither host nor container is part of what is hashed or compared."""
        text = json.dumps([self.take()["identity"], self.take()["condition"]])
        self.assertNotIn("secret", text)
        with mock.patch("socket.gethostname", return_value="a-certain-host"):
            taken = self.take()
        self.assertNotIn("a-certain-host", json.dumps(taken["identity"]))
        self.assertEqual(taken["record"]["host"], "a-certain-host")
        self.assertEqual(taken["fp"], self.take()["fp"])

    def test_hypervisor(self):
        with tempfile.TemporaryDirectory(dir=self.path) as path:
            reader = tree(path, flag="none", **{"sys/hypervisor/type": None})
            taken = fingerprint.take(CONTEXT, None, 1, reader=reader)
        self.assertEqual((taken["identity"]["hypervisor"], taken["identity"]["virtual"]), ("none", False))
        with tempfile.TemporaryDirectory(dir=self.path) as path:
            taken = fingerprint.take(CONTEXT, None, 1, reader=tree(path, **{"sys/hypervisor/type": None}))
        self.assertEqual((taken["identity"]["hypervisor"], taken["identity"]["virtual"]), (None, True))
        self.assertIn("hypervisor", taken["missing"]["identity.hypervisor"])

    def test_caches(self):
        caches = fingerprint.caches(tree(self.path))
        self.assertEqual(caches, [{"type": "Data", "level": 1, "size": 32768, "num_sharing": 2}])

    def test_this_machine(self):
        taken = fingerprint.take(CONTEXT, fingerprint.Load(), 1)
        self.assertEqual(taken["record"]["host"], socket.gethostname())
        self.assertEqual(taken["fp"], fingerprint.take(CONTEXT, None, 2)["fp"])


class Load(unittest.TestCase):
    def ask(self, before, after, own):
        with tempfile.TemporaryDirectory() as path:
            reader = tree(path, **{"proc/stat": before})
            with mock.patch.object(fingerprint, "_own_seconds", side_effect=[0.0, own]):
                load = fingerprint.Load(reader)
                (pathlib.Path(path) / "proc/stat").write_text(after)
                return load.ask()

    def test_shares(self):
        # 100 ticks pass on all CPUs: 50 busy, 2 stolen; 0.3 s of the busy ones (30 ticks of 10 ms) were ours.
        with mock.patch("os.sysconf", return_value=100):
            got = self.ask("cpu 10 0 10 80 0 0 0 0 0 0\n", "cpu 40 5 20 128 0 3 2 2 0 0\n", 0.3)
        self.assertEqual(got, {"other_cpu_share": 0.2, "steal_share": 0.02})
        self.assertEqual(self.ask("cpu 1 0 0 0 0 0 0 0\n", "cpu 1 0 0 0 0 0 0 0\n", 0),
                         {"other_cpu_share": None, "steal_share": None})

    def test_quiet(self):
        self.assertTrue(fingerprint.quiet({"other_cpu_share": 0.15, "steal_share": 0.01}))
        self.assertFalse(fingerprint.quiet({"other_cpu_share": 0.16, "steal_share": 0.0}))
        self.assertFalse(fingerprint.quiet({"other_cpu_share": 0.0, "steal_share": 0.02}))
        self.assertIsNone(fingerprint.quiet({"other_cpu_share": None, "steal_share": 0.0}))

    def test_real(self):
        load = fingerprint.Load()
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        got = load.ask()
        self.assertTrue(0 <= got["other_cpu_share"] <= 1)


class Lists(unittest.TestCase):
    def test_cpu_list(self):
        self.assertEqual(fingerprint.cpu_list([5, 0, 1, 2]), "0-2,5")
        self.assertEqual(fingerprint.cpu_list([]), "")


if __name__ == "__main__":
    unittest.main()
