# SPDX-License-Identifier: MIT
"""What perf recorded: samples with their call chains, and which of them lie in the timed region.

The harness calls a role's span from run_role() and from nowhere else, and run_role() is never inlined: what is below it
in a chain is timed, but for the clock's own functions.
"""

import collections
import re

from .errors import FAILED, UserError

FIELDS = "comm,tid,period,event,ip,sym,symoff,dso"
CALLER = "run_role"
# Whose frame is above run_role()'s: a sample that falls on a function's first instruction skips the caller's frame.
ABOVE = ("crew_batch", "member_main")
KERNEL = "[kernel]"
_HEAD = re.compile(r"(?P<comm>.*\S)\s+(?P<tid>\d+)\s+(?P<period>\d+)\s+(?P<event>[^:]+(?::[a-zA-Z]+)?):\s*$")
_FRAME = re.compile(r"\s+[0-9a-f]+\s+(?P<symbol>.*?)(?:\+0x(?P<offset>[0-9a-f]+))?\s+\((?P<dso>[^()]*(?:\(deleted\))?)\)$")
_CLONE = re.compile(r"\.(?:constprop|isra|part|cold|lto_priv)\b.*$")

Frame = collections.namedtuple("Frame", "symbol offset dso")
Sample = collections.namedtuple("Sample", "role tid period frames")  # frames: innermost first


def base_name(symbol):
    """SYMBOL without what a compiler adds to a copy of a function."""
    return _CLONE.sub("", symbol)


def is_kernel(frame):
    return frame.dso.startswith("[kernel") or frame.dso.startswith("[guest.kernel") or frame.dso.endswith(".ko")


def _frame(line):
    found = _FRAME.match(line)
    if not found:
        raise UserError(f"perf script printed a line that is no frame: {line.strip()[:80]}", FAILED)
    symbol, dso = found["symbol"].strip(), found["dso"]
    frame = Frame(symbol, int(found["offset"] or "0", 16), dso)
    if symbol in ("", "[unknown]"):
        # Names of the kernel may be hidden: say so much and no address.
        return frame._replace(symbol=KERNEL if is_kernel(frame) else f"[{dso.rsplit('/', 1)[-1].strip('[]') or 'unknown'}]")
    return frame


def parse(text):
    """The samples in the output of `perf script -F FIELDS`."""
    samples, head, frames = [], None, []

    def finish():
        if head:
            samples.append(Sample(head["comm"], int(head["tid"]), int(head["period"]), tuple(frames)))

    for line in text.splitlines():
        if not line.strip():
            continue
        if not line[0].isspace() or (_HEAD.match(line) and not _FRAME.match(line)):
            finish()
            head, frames = _HEAD.match(line), []
            if not head:
                raise UserError(f"perf script printed a line that is no sample: {line.strip()[:80]}", FAILED)
        elif head:
            frames.append(_frame(line))
    finish()
    return samples


def _clock(frame):
    return "clock_gettime" in frame.symbol or frame.dso == "[vdso]" or is_kernel(frame)


def spans(samples):
    """The functions that run_role() was seen to call: the roles' spans."""
    found = set()
    for sample in samples:
        for inner, outer in zip(sample.frames, sample.frames[1:]):
            if base_name(outer.symbol) == CALLER and not _clock(inner):
                found.add(inner.symbol)
    return found


def timed(sample, known):
    """The frames of SAMPLE inside the timed region, innermost first; none if it lies outside. KNOWN: the spans."""
    for index, frame in enumerate(sample.frames):
        name = base_name(frame.symbol)
        if name == CALLER:
            return sample.frames[:index] if index and not _clock(sample.frames[index - 1]) else ()
        if name in ABOVE:
            return sample.frames[:index] if index and sample.frames[index - 1].symbol in known else ()
    return ()


class Profile:
    """Samples of one recording, summed: weights are in the event's unit (ns of cpu-clock, cycles)."""

    def __init__(self, samples):
        self.samples = len(samples)
        self.inside = 0
        self.weight = 0
        self.outside = collections.Counter()  # innermost symbols of the others
        self.stacks = collections.Counter()  # (role, outermost, ..., innermost): weight
        self.symbols = {}  # (symbol, dso): [samples, weight, {role: weight}]
        self.places = {}  # (symbol, dso): {offset: [samples, weight]}
        known = spans(samples)
        for sample in samples:
            frames = timed(sample, known)
            if frames:
                self._add(sample, frames)
            else:
                self.outside[sample.frames[0].symbol if sample.frames else "[no chain]"] += 1

    def _add(self, sample, frames):
        self.inside += 1
        self.weight += sample.period
        self.stacks[(sample.role, *((frame.symbol, is_kernel(frame)) for frame in reversed(frames)))] += sample.period
        leaf = frames[0]
        key = leaf.symbol, leaf.dso
        entry = self.symbols.setdefault(key, [0, 0, collections.Counter()])
        entry[0] += 1
        entry[1] += sample.period
        entry[2][sample.role] += sample.period
        place = self.places.setdefault(key, {}).setdefault(leaf.offset, [0, 0])
        place[0] += 1
        place[1] += sample.period

    @property
    def share(self):
        """The share of the samples that lie in the timed region; None without samples."""
        return self.inside / self.samples if self.samples else None

    def hottest(self):
        """[((symbol, dso), entry)], the heaviest first."""
        return sorted(self.symbols.items(), key=lambda item: (-item[1][1], item[0]))

    def folded(self):
        """Lines `role;outer;inner WEIGHT`, as flame graph tools read them; kernel functions end in _[k]."""
        for stack, weight in sorted(self.stacks.items()):
            names = [stack[0]] + [f"{name}_[k]" if kernel else name for name, kernel in stack[1:]]
            yield f"{';'.join(name.replace(';', ':') for name in names)} {weight}"
