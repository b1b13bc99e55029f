# SPDX-License-Identifier: MIT
"""What the kernel's own TCP does for 65160 bytes over loopback and veth, and with pages between two CPUs, beside the model.

tests/oracle/budget.c measures; results/kernel/budget-VERSION.csv holds what it found, results/kernel/residuals.txt why
the model's ledger differs, one line for each thing that does.
"""

import csv
import io

from . import kernelcost, ledger
from .errors import FAILED, UserError
from .table import wrapped
from .tree import repo_root

RECORD = 65160  # 45 segments of 1448
# tests/oracle/budget.h
ONLY_PAGES, PROBES, MTU, NO_TSO, MPTCP, APART, DEFER, BACKLOG, VETH, GRO = (1 << bit for bit in range(10))
SAME = 0.05  # of the kernel's count: a residual is more than that
ROUNDED = 0.001  # what is stored has three digits
COLUMNS = ["shape", "what", "per_65160_bytes"]


class Shape:
    """One way to move bytes: its NAME, bits of tests/oracle/budget.h, bytes of a write, writes."""

    def __init__(self, name, how, size=RECORD, writes=128):
        self.name, self.how, self.size, self.writes = name, how, size, writes

    @property
    def apart(self):
        return bool(self.how & APART)


PAGES = Shape("pages", ONLY_PAGES, 0, 4096)
SHAPES = [
    Shape("mtu65536", 0),
    Shape("mtu1500", MTU),
    Shape("mtu1500-cut", MTU | NO_TSO),
    Shape("mtu1500-cut-apart-defer0", MTU | NO_TSO | APART),
    Shape("mtu1500-cut-apart-defer64", MTU | NO_TSO | APART | DEFER),
    Shape("tcp-16k", BACKLOG, 16384, 512),
    Shape("mptcp-16k", BACKLOG | MPTCP, 16384, 512),
    Shape("tcp-16k-mtu1500", BACKLOG | MTU, 16384, 512),
    Shape("mptcp-16k-mtu1500", BACKLOG | MTU | MPTCP, 16384, 512),
    Shape("veth", VETH),
    Shape("veth-mtu1500", VETH | MTU),
    Shape("veth-cut", VETH | MTU | NO_TSO),
    Shape("veth-cut-gro-apart-defer0", VETH | MTU | NO_TSO | GRO | APART),
    Shape("veth-cut-gro-apart-defer64", VETH | MTU | NO_TSO | GRO | APART | DEFER),
    Shape("veth-tcp-16k-mtu1500", VETH | BACKLOG | MTU, 16384, 512),
    Shape("veth-mptcp-16k-mtu1500", VETH | BACKLOG | MTU | MPTCP, 16384, 512),
]
SEND = "mtu65536"  # the shape that the model's send side stands beside
# What is compared: its name, the kernel's count and the model's as functions of a dict.
SIDES = [
    ("sk_buffs with payload", lambda k: k["skb_alloc"] - k["send_ack"], lambda m: m["obj_alloc"] / 2),
    ("clones", lambda k: k["skb_clone"], lambda m: m["clones"]),
    ("blocks of pages allocated", lambda k: k["page_alloc_order3"], lambda m: m["page_alloc"]),
    ("single pages allocated", lambda k: k["page_alloc"], lambda m: 0),
    ("page references taken", lambda k: k["send_frags"] + k["page_get_expand"], lambda m: m["page_get"]),
    ("page references put", lambda k: k["page_put"], lambda m: m["page_put"]),
    ("heads freed", lambda k: k["head_free"], lambda m: m["obj_free"] - m["shells"]),
    ("pskb_expand_head()", lambda k: k["pskb_expand_head"], lambda m: 0),
    ("tcp_trim_head()", lambda k: k["tcp_trim_head"], lambda m: 0),
    ("acknowledgements sent", lambda k: k["send_ack"], lambda m: 0),
]
# The receive side: shape, the model's variant. The model's driver hands up 45 segments, which GRO merges, on one CPU, and
# the reader is on another: so is what comes out of veth when the sender's packets are cut before it.
RECEIVE = {"veth-cut-gro-apart-defer0": "inline", "veth-cut-gro-apart-defer64": "cpu_list"}
RECEIVE_SIDES = [
    ("segments", lambda k: k["skb_alloc"] - k["send_ack"] - k["send_skb"], lambda m: m["deliver"]["page_alloc"]),
    ("heads freed by the reader", lambda k: k["head_free_read"], lambda m: m["read"]["obj_free"] / 2),
    ("page references put by the reader", lambda k: k["page_put_read"], lambda m: m["read"]["page_put"]),
    ("page references put by others", lambda k: k["page_put"] - k["page_put_read"] - k["send_frags"],
     lambda m: m["free"]["page_put"]),
]
# MPTCP, as many writes of 16 KB as the socket takes: shape, the MTU of the model's.
MPTCP_MTU = {"mptcp-16k": 65536, "mptcp-16k-mtu1500": 1500, "veth-mptcp-16k-mtu1500": 1500}
MPTCP_WRITES = 16
MPTCP_SIDES = [
    ("bytes of an sk_buff", lambda k: k["mean_skb_bytes"], lambda m: m["bytes"] / m["send"]["rmw_dataref"]),
    ("page references of sk_buffs", lambda k: k["send_frags"], lambda m: m["send"]["page_get"] * RECORD / m["bytes"]),
]


def request(shape, counting=True):
    from . import oracleprog as prog  # reads tests/oracle, which a table's reader need not have
    return prog.budget_request(shape.how | (PROBES if counting and shape is not PAGES else 0), shape.size, shape.writes)


def parse(text):
    """{what: number} of an answer; UserError for an error that it tells."""
    found = {}
    for line in text.splitlines():
        what, _, number = line.partition(",")
        if what == "error":
            raise UserError(f"the guest cannot measure a budget: {number}", FAILED)
        try:
            found[what] = int(number)
        except ValueError:
            raise UserError(f"the guest's budget said '{line}', which is no count", FAILED) from None
    return found


def rows(measured):
    """[(shape, what, number)]: for each shape what 65160 bytes take; of pages the numbers themselves."""
    out = []
    for shape, found in measured.items():
        if shape == PAGES.name:
            out += [(shape, what, number) for what, number in found.items()]
            continue
        scale = RECORD / found["bytes"]
        for what, number in found.items():
            if what == "send_bytes":
                out.append((shape, "mean_skb_bytes", round(number / found["send_skb"], 1)))
            elif what not in ("bytes", "zone_lock"):
                # The guest's clock tells instructions.
                out.append((shape, what.replace("_ns", "_instructions"), round(number * scale, 3)))
    return out


def as_csv(table_rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(table_rows)
    return text.getvalue()


def model(era):
    """The model's counts for the same: the life of one sk_buff in two frags whose clone is gone before the ACK."""
    stem = f"tcp/trim/form:forced/era:{era}/variant:eager/frags:2/partial:1/step:1/clone:gone/complete:same/alloc:slub"
    stored = ledger.read_stored(repo_root() / "results" / "ledger")
    phases = [stored.get(f"{stem}#{phase}") for phase in ("build", "transmit", "completion", "full_ack")]
    if None in phases:
        raise UserError(f"results/ledger has no {stem}: results/ledger/cases.txt names it no more")
    total = {column: sum(phase[column] for phase in phases) for column in ledger.COUNTS}
    return {**total, "clones": phases[1]["rmw_dataref"], "shells": 1}


def phases(family, keys, names):
    """{name: counts} of the phases of the one case of the ledger in FAMILY that has all KEYS (`key:value ...`)."""
    stored = ledger.read_stored(repo_root() / "results" / "ledger")
    stems = {stem for stem in (name.partition("#")[0] for name in stored)
             if stem.startswith(family + "/") and set(keys.split()) <= set(stem.split("/"))}
    if len(stems) != 1:
        raise UserError(f"results/ledger has {len(stems)} cases of {family} with {keys}, not one: "
                        "results/ledger/cases.txt names them")
    stem = stems.pop()
    found = {name: stored.get(f"{stem}#{name}") for name in names}
    if None in found.values():
        raise UserError(f"results/ledger lacks a phase of {stem}: {', '.join(names)}")
    return found


def model_receive(era, variant):
    """The model's counts for 45 segments from the ring to the reader on another CPU."""
    return phases("tcp/defer", f"era:{era} variant:{variant} shape:header payload:llc pages:plain load:0 mode:stream cpus:two "
                               "reader:steady alloc:slub", ("deliver", "read", "free"))


def model_mptcp(mtu):
    """The model's counts for writes of 16 KB that wait for each other; its MPTCP is the same in both eras."""
    return {**phases("mptcp/stream", f"era:6.12 variant:merged mtu:{mtu} backlog:{MPTCP_WRITES - 1} where:msk alloc:slub",
                     ("send",)), "bytes": MPTCP_WRITES * 16384}


def beside(by_shape, era):
    """[(what, kernel, model)] of the receive side and of MPTCP."""
    sides = []
    for shape, variant in RECEIVE.items():
        ours = model_receive(era, variant)
        sides += [(f"{variant}, {what}", theirs(by_shape[shape]), mine(ours)) for what, theirs, mine in RECEIVE_SIDES]
    for shape, mtu in MPTCP_MTU.items():
        ours = model_mptcp(mtu)
        way = f"MPTCP {'veth' if shape.startswith('veth') else 'lo'} {mtu}"
        sides += [(f"{way}, {what}", theirs(by_shape[shape]), mine(ours)) for what, theirs, mine in MPTCP_SIDES]
    # What comes out of a subtraction of rounded numbers may be a little less than nothing.
    return [(what, round(theirs, 6) + 0.0, mine) for what, theirs, mine in sides]


def mean_skb_bytes(era, shape):
    """Mean payload of an sk_buff in the newest stored budget of a kernel of ERA, as SHAPE sent it: see SHAPES."""
    found = stored_budget(era)
    if (shape, "mean_skb_bytes") not in found:
        raise UserError(f"results/kernel has no budget of a {era} kernel that moved bytes as {shape}: skbench oracle "
                        f"--era {era} --budget measures it")
    return found[shape, "mean_skb_bytes"]


def stored_budget(era):
    """{(shape, what): number} of the newest results/kernel/budget-VERSION.csv of a kernel of ERA; {} if there is none."""
    paths = [path for path in kernelcost.directory().glob(f"budget-{era}.*.csv")]
    if not paths:
        return {}
    path = max(paths, key=kernelcost.version_key)
    with open(path, encoding="utf-8", newline="") as source:
        reader = csv.DictReader(source)
        if reader.fieldnames != COLUMNS:
            raise UserError(f"{path}: the columns are not {','.join(COLUMNS)}")
        try:
            return {(row["shape"], row["what"]): float(row["per_65160_bytes"]) for row in reader}
        except (TypeError, ValueError):
            raise UserError(f"{path}:{reader.line_num}: a number is none") from None


def stored_problems(era):
    """What the stored budget of the newest kernel of ERA lacks: residuals that are not named, shapes that are not there."""
    by_shape = {}
    for (shape, what), number in stored_budget(era).items():
        by_shape.setdefault(shape, {})[what] = number
    missing = [shape.name for shape in (PAGES, *SHAPES) if shape.name not in by_shape]
    if missing:
        return [f"results/kernel has no budget of a {era} kernel for {', '.join(missing)}: skbench oracle --era {era} "
                "--budget measures it"]
    named = residuals()
    return [f"results/kernel/residuals.txt does not name '{what}', era {era}: kernel {theirs:.3f}, model {mine:.3f}"
            for what, theirs, mine in counts(by_shape, era) if differs(theirs, mine) and what not in named]


def differs(theirs, mine):
    return abs(theirs - mine) > max(SAME * max(theirs, mine), ROUNDED)


def counts(by_shape, era):
    """[(what, kernel, model)] of one sk_buff's life over loopback, then what beside() has."""
    ours = model(era)
    return [(what, theirs(by_shape[SEND]), mine(ours)) for what, theirs, mine in SIDES] + beside(by_shape, era)


def residuals():
    """{what: why the model differs}."""
    path = kernelcost.directory() / "residuals.txt"
    found = {}
    for number, line in kernelcost.lines_of(path):
        what, colon, why = line.partition(":")
        if not colon or not why.strip() or what in found:
            raise UserError(f"{path}:{number}: not 'what: why', or a second one")
        found[what] = why.strip()
    return found


def table(era, kernel, table_rows, ours, model_pages, problems):
    """Lines of at most 80 columns; adds to PROBLEMS what no residual names."""
    by_shape = {}
    for shape, what, number in table_rows:
        by_shape.setdefault(shape, {})[what] = number
    named = residuals()
    yield f"65160 bytes through TCP, era {era}, Linux {kernel.release}"
    yield f"{'sent over loopback':<44}{'kernel':>10}{'model':>10}{'residual':>12}"
    differing = []
    sides = [(what, theirs(by_shape[SEND]), mine(ours)) for what, theirs, mine in SIDES]
    pages = by_shape[PAGES.name]
    sides += [("zone locks a page, allocated", pages["zone_lock_alloc"] / pages["pages"],
               model_pages["zone_lock_alloc"] / model_pages["pages"]),
              ("zone locks a page, freed", pages["zone_lock_free"] / pages["pages"],
               model_pages["zone_lock_free"] / model_pages["pages"])]
    for what, theirs, mine in sides:
        yield f"{what:<44}{theirs:>10.3f}{mine:>10.3f}{theirs - mine:>+12.3f}"
        if differs(theirs, mine):
            differing.append(what)
    yield ""
    yield from wrapped("received over veth, packets cut before it and merged by GRO, the reader on a CPU of its own; MPTCP, "
                       "as many writes of 16 KB as the socket takes")
    for what, theirs, mine in beside(by_shape, era):
        yield f"{what:<44}{theirs:>10.3f}{mine:>10.3f}{theirs - mine:>+12.3f}"
        if differs(theirs, mine):
            differing.append(what)
    yield ""
    for what in differing:
        yield from wrapped(f"{what}: {named.get(what, 'NO RESIDUAL is named')}")
    problems += [f"results/kernel/residuals.txt does not name '{what}'" for what in differing if what not in named]
    yield ""
    yield from shapes(by_shape)


def shapes(by_shape):
    yield from wrapped("send, receive: instructions within the two calls, of which a copy takes one a byte on 6.1, since "
                       "a string instruction counts once an element; IP, loopback and its softirq are in both")
    yield f"{'':<27}{'mean skb':>8}{'instructions':>20}{'trim_head':>11}{'heads freed':>14}"
    yield f"{'shape':<27}{'bytes':>8}{'send':>10}{'receive':>10}{'all/alive':>11}{'all/away':>14}"
    for shape in SHAPES:
        found = by_shape.get(shape.name)
        if not found:
            continue
        send, receive = (f"{found[key]:.0f}" if key in found else "-"
                         for key in ("send_instructions", "receive_instructions"))
        trims = f"{found['tcp_trim_head']:.2f}/{found['tcp_trim_head_alive']:.2f}"
        heads = f"{found['head_free']:.2f}/{found['head_free_away']:.2f}"
        yield f"{shape.name:<27}{found['mean_skb_bytes']:>8.0f}{send:>10}{receive:>10}{trims:>11}{heads:>14}"
