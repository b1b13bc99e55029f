# SPDX-License-Identifier: MIT
"""Bench binaries as processes: one command, one line of JSON, one time limit.

A binary answers --skb_sample, --skb_calibrate, --skb_ledger, --skb_list, --skb_machine and --skb_context with one JSON
object on standard output. Exit 2 is wrong use, 4 what this machine cannot do, 5 a failed check.
"""

import json
import math
import os
import pathlib
import shlex
import subprocess

from . import children
from .errors import FAILED, IMPOSSIBLE, USAGE, UserError

TIME_LIMIT_S = 30
SAMPLE_SCHEMA = "skbench-sample-1"
PAD_LIMIT = 4096
PAD_VARIABLE = "SKB_PAD"
KB64 = 65536
OVERSUBSCRIBE = ("--skb_oversubscribe",)
QUANTILES = ("p10", "p20", "p33", "p50", "p90")

# They change how memory is laid out or copied behind the measurement's back.
CLEARED = ("MALLOC_CONF", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_",
           "MALLOC_TRIM_THRESHOLD_", "MALLOC_PERTURB_", "MALLOC_CHECK_", "LD_PRELOAD")


class BenchFailed(UserError):
    """A case crashed, timed out, failed its check or answered nonsense."""

    def __init__(self, text):
        super().__init__(text, FAILED)


class Refused(UserError):
    """The binary takes no such case: a wrong name, or values that do not go together."""


class NotPossible(Exception):
    """The machine cannot run this case; the text is the binary's own reason."""


class Unmeasured(Exception):
    """The process ran, but too few of its batches had their CPUs to themselves; the text is its reason."""


def environment(pad):
    """The environment of a bench process, with PAD bytes of padding: 0 to 4095, to move the stack."""
    env = {key: value for key, value in os.environ.items() if key not in CLEARED}
    env["LC_ALL"] = "C"
    env[PAD_VARIABLE] = "x" * pad
    return env


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _reject_constant(token):
    raise ValueError(f"{token} is not a number")


class BenchBinary:
    """One bench executable. Every call starts a process and waits for it; nothing is cached but the context."""

    def __init__(self, path, time_limit_s=TIME_LIMIT_S):
        self.path = pathlib.Path(path)
        self.time_limit_s = time_limit_s
        self._context = None

    @property
    def name(self):
        return self.path.name

    def _ask(self, case, args, pad=0):
        """Runs the binary with ARGS and returns its JSON object. CASE names it in messages."""
        command = [str(self.path), *args]
        shown = shlex.join(command)
        try:
            ended = children.run(command, self.time_limit_s, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment(pad))
        except OSError as error:
            raise UserError(f"cannot run {self.path}: {error.strerror}") from None
        said = "" if ended.timed_out else self._last_line(ended.err)
        about = f"{case}: " if case and case not in said else ""
        if ended.status == IMPOSSIBLE:
            raise NotPossible(said or "the bench binary gave no reason")
        if ended.status == USAGE:
            raise Refused(f"{about}{said or 'refused by the bench binary'}")
        if ended.timed_out or ended.status != 0:
            raise BenchFailed(f"{case or self.name}: {ended.why(self.time_limit_s)}{': ' + said if said else ''}; "
                              f"command: {shown}")
        try:
            answer = json.loads(ended.out.decode("utf-8"), parse_constant=_reject_constant)
            if not isinstance(answer, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            raise BenchFailed(f"{case or self.name}: the answer is not one JSON object ({error}); command: {shown}") from None
        return answer

    @staticmethod
    def _last_line(text):
        lines = text.decode("utf-8", "replace").strip().splitlines()
        line = lines[-1].strip() if lines else ""
        return line if len(line) <= 300 else line[:297] + "..."

    def _need(self, case, answer, key, good, expected):
        if key not in answer or not good(answer[key]):
            raise BenchFailed(f"{case or self.name}: the answer's '{key}' is {json.dumps(answer.get(key))[:80]}, "
                              f"expected {expected}; binary: {self.path}")
        return answer[key]

    def context(self):
        """What the binary was built with: compiler, flags, max_skb_frags, library versions."""
        if self._context is None:
            self._context = self._ask("", ["--skb_context"])
        return self._context

    def machine(self, cpus=None):
        """The calibration that every run prints: core-to-core latency and copy bandwidth."""
        return self._ask("", ["--skb_machine", *self._cpus(None if cpus is None else list(cpus))])

    def where(self, cpus=None):
        """Where roles and objects would lie; NotPossible tells what this machine lacks, memory included."""
        return self._ask("", ["--skb_where", *self._cpus(cpus)])

    def operations(self):
        """The registered operations with the names of the cases in their default grids."""
        answer = self._ask("", ["--skb_list"])
        ops = self._need("", answer, "ops", lambda v: isinstance(v, list), "a list")
        for op in ops:
            if not isinstance(op, dict) or not isinstance(op.get("name"), str) or \
                    not isinstance(op.get("cases"), list):
                raise BenchFailed(f"{self.name}: an entry of --skb_list has no name or no cases")
        return ops

    def calibrate(self, case, cpus=None, oversubscribe=False):
        """How many operations make one batch of this case here."""
        answer = self._ask(case, [f"--skb_calibrate={case}", *self._cpus(cpus), *OVERSUBSCRIBE[:oversubscribe]])
        return self._need(case, answer, "n", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 1,
                          "an integer of at least 1")

    def latency(self, cpus=None):
        """[{"a", "b", "p10", "p50", "p90"}]: ns that a cache line takes between each two CPUs."""
        answer = self._ask("", ["--skb_latency", *self._cpus(cpus)])
        return self._need("", answer, "pairs", lambda v: isinstance(v, list) and v, "a list of pairs")

    def ledger(self, case):
        """The rows of the case's op ledger (traced binaries only), each a dict with its phase and its counts."""
        answer = self._ask(case, [f"--skb_ledger={case}"])
        rows = self._need(case, answer, "rows", lambda v: isinstance(v, list) and v, "a list of rows")
        for row in rows:
            if not isinstance(row, dict) or not isinstance(row.get("phase"), str):
                raise BenchFailed(f"{case}: a ledger row without a phase; binary: {self.path}")
        return rows

    def sample(self, case, n, pad, batches=None, cpus=None, inject=0, oversubscribe=False):
        """One process's sample of CASE with N operations a batch: the checked answer. With OVERSUBSCRIBE its roles may
        take turns, and its status is then "oversubscribed".

        Raises Unmeasured, NotPossible, or BenchFailed.
        """
        args = [f"--skb_sample={case}", f"--skb_n={n}", *self._cpus(cpus)]
        if batches is not None:
            args.append(f"--skb_batches={batches}")
        args += OVERSUBSCRIBE[:oversubscribe]
        if inject:
            args.append(f"--skb_inject={inject:g}")
        answer = self._ask(case, args, pad)
        self._need(case, answer, "schema", lambda v: v == SAMPLE_SCHEMA, f'"{SAMPLE_SCHEMA}"')
        self._need(case, answer, "name", lambda v: isinstance(v, str) and same_case(case, v), f'the case "{case}"')
        known = ("ok", "unmeasured", "oversubscribed")[:3 if oversubscribe else 2]
        self._need(case, answer, "status", lambda v: v in known, " or ".join(f'"{word}"' for word in known))
        if answer["status"] == "unmeasured":
            raise Unmeasured(str(answer.get("reason") or "no reason given"))
        self._need(case, answer, "n", lambda v: v == n, f"{n}, as asked for")
        for clock in ("wall", "busy", "cpu"):
            quantiles = self._need(case, answer, clock, lambda v: isinstance(v, dict), "an object")
            for key in QUANTILES:
                if not _is_number(quantiles.get(key)) or quantiles[key] < 0:
                    raise BenchFailed(f"{case}: {clock}.{key} is {json.dumps(quantiles.get(key))}, expected a time "
                                      f"in ns; binary: {self.path}")
        if not answer["busy"]["p33"] > 0 or not answer["wall"]["p33"] > 0:
            raise BenchFailed(f"{case}: took no time at all, so nothing was measured; binary: {self.path}")
        return answer

    @staticmethod
    def _cpus(cpus):
        """Flags for CPUS, a list, or a placement.Cpus that tells of memory, too."""
        if cpus is None:
            return []
        flags = ["--skb_cpus=" + ",".join(str(cpu) for cpu in cpus)]
        return flags + (cpus.flags() if hasattr(cpus, "flags") else [])


# What an answer's "value" names, but for the 33rd percentile.
PIPELINE_VALUES = {"whole.cpu": ("whole", "cpu"), "kept_run.wall": ("kept_run", "wall")}


def value_of(answer):
    """What a process contributes, in ns an operation: the 33rd percentile over its batches of the roles' busy time;
    where the case says that it is a pipeline the CPU time of the whole run, or the wall time of all of its batches
    whose roles ran together."""
    part, key = PIPELINE_VALUES.get(answer.get("value"), ("busy", "p33"))
    return answer[part][key]


def per_64kb(answer, value):
    """VALUE ns an operation as ns per 64 KB of payload, or None for an operation without payload."""
    payload = answer.get("bytes_per_op") or 0
    return value * KB64 / payload if payload else None


def same_case(asked, answered):
    """True if ANSWERED is ASKED with at most keys added that ASKED left to their defaults."""
    return set(asked.split("/")) <= set(answered.split("/"))


def split_name(name):
    """(family/operation, {key: value}) of a canonical case name."""
    words, keys = [], {}
    for part in name.split("/"):
        key, colon, value = part.partition(":")
        if colon:
            keys[key] = value
        else:
            words.append(part)
    return "/".join(words), keys
