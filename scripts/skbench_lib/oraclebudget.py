# SPDX-License-Identifier: MIT
"""What the kernel's own TCP does for 65160 bytes over loopback, and with pages between two CPUs, beside the model.

tests/oracle/budget.c measures; results/kernel/budget-VERSION.csv holds what it found, results/kernel/residuals.txt why
the model's ledger differs, one line for each thing that does.
"""

import csv
import io

from . import kernelcost, ledger
from . import oracleprog as prog
from .errors import FAILED, UserError
from .table import wrapped
from .tree import repo_root

RECORD = 65160  # 45 segments of 1448
# tests/oracle/budget.h
ONLY_PAGES, PROBES, MTU, NO_TSO, MPTCP, APART, DEFER, BACKLOG = (1 << bit for bit in range(8))
SAME = 0.05  # of the kernel's count: a residual is more than that
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


def request(shape, counting=True):
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
    yield f"65160 bytes through TCP, era {era}, Linux {kernel.release}, loopback"
    yield f"{'sent':<34}{'kernel':>10}{'model':>10}{'residual':>10}"
    differing = []
    sides = [(what, theirs(by_shape[SEND]), mine(ours)) for what, theirs, mine in SIDES]
    pages = by_shape[PAGES.name]
    sides += [("zone locks a page, allocated", pages["zone_lock_alloc"] / pages["pages"],
               model_pages["zone_lock_alloc"] / model_pages["pages"]),
              ("zone locks a page, freed", pages["zone_lock_free"] / pages["pages"],
               model_pages["zone_lock_free"] / model_pages["pages"])]
    for what, theirs, mine in sides:
        yield f"{what:<34}{theirs:>10.3f}{mine:>10.3f}{theirs - mine:>+10.3f}"
        if abs(theirs - mine) > SAME * max(theirs, mine):
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
    yield f"{'':<26}{'mean skb':>9}{'instructions':>20}{'trim_head':>11}{'heads freed':>14}"
    yield f"{'shape':<26}{'bytes':>9}{'send':>10}{'receive':>10}{'all/alive':>11}{'all/away':>14}"
    for shape in SHAPES:
        found = by_shape.get(shape.name)
        if not found:
            continue
        send, receive = (f"{found[key]:.0f}" if key in found else "-"
                         for key in ("send_instructions", "receive_instructions"))
        trims = f"{found['tcp_trim_head']:.2f}/{found['tcp_trim_head_alive']:.2f}"
        heads = f"{found['head_free']:.2f}/{found['head_free_away']:.2f}"
        yield f"{shape.name:<26}{found['mean_skb_bytes']:>9.0f}{send:>10}{receive:>10}{trims:>11}{heads:>14}"
