# SPDX-License-Identifier: MIT
"""Buffer programs of the oracle: their text, their binary form, random ones, and smaller ones that still differ.

tests/oracle/prog.h says what a program is; the table of operations is read from there.
"""

import random
import re
import struct

from .errors import UserError
from .tree import repo_root

BOUNDARY = 0x80000000
DUMP, YARDSTICK, HANG, PANIC, BUDGET = 1, 2, 4, 8, 16
REGISTERS = {"d": "s", "s": "s", "t": "s", "p": "p"}
_NR_REGISTERS = 6


def table():
    """[(name, form)] in the order of their numbers."""
    text = (repo_root() / "tests" / "oracle" / "prog.h").read_text(encoding="utf-8")
    return re.findall(r'^\tX\((\w+), "(\w+)"\)', text, re.MULTILINE)


OPS = table()
NUMBER = {name: i for i, (name, _) in enumerate(OPS)}
FORM = dict(OPS)


class Op:
    """One operation: its name and its operands, numbers all of them, in the order of its form."""

    __slots__ = ("name", "operands")

    def __init__(self, name, *operands):
        self.name = name
        self.operands = operands

    def __str__(self):
        words = [self.name]
        for kind, value in zip(FORM[self.name], self.operands):
            if kind in REGISTERS:
                words.append(f"{REGISTERS[kind]}{value}")
            elif value & BOUNDARY:
                delta = (value & 0xff) - 128
                words.append(f"b{(value & ~BOUNDARY) >> 8}" + (f"{delta:+d}" if delta else ""))
            else:
                words.append(str(value))
        return " ".join(words)

    def packed(self):
        registers, numbers = {"d": 0, "s": 0, "t": 0}, []
        for kind, value in zip(FORM[self.name], self.operands):
            if kind in REGISTERS:
                registers["t" if kind == "p" else kind] = value
            else:
                numbers.append(value)
        numbers += [0] * (3 - len(numbers))
        return struct.pack("=4B3I", NUMBER[self.name], registers["d"], registers["s"], registers["t"], *numbers)


def request(program, flags=0):
    """The bytes of a request, as the interpreters read it."""
    return struct.pack("=2I", flags, len(program)) + b"".join(op.packed() for op in program)


def budget_request(how, size, times):
    """A request for a budget (tests/oracle/budget.h): a bit mask, bytes of a write, writes or pages."""
    return struct.pack("=2I4B3I", BUDGET, 1, 0, 0, 0, 0, how, size, times)


def boundary(number, delta):
    return BOUNDARY | number << 8 | (delta + 128)


def parse(text, where="program"):
    """The program that TEXT is. UserError names the line that is none."""
    program = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            program.append(_parse_op(words))
        except ValueError as error:
            raise UserError(f"{where}:{number}: {error}") from None
    return program


def _parse_op(words):
    name, operands = words[0], words[1:]
    if name not in FORM:
        raise ValueError(f"'{name}' is no operation: tests/oracle/prog.h lists them")
    form = FORM[name]
    if len(operands) != len(form):
        raise ValueError(f"{name} takes {len(form)} operands, not {len(operands)}")
    return Op(name, *(_parse_operand(kind, word) for kind, word in zip(form, operands)))


def _parse_operand(kind, word):
    if kind in REGISTERS:
        letter = REGISTERS[kind]
        if not re.fullmatch(rf"{letter}[0-{_NR_REGISTERS - 1}]", word):
            raise ValueError(f"'{word}' is no register {letter}0 to {letter}{_NR_REGISTERS - 1}")
        return int(word[1:])
    found = re.fullmatch(r"b(\d+)([+-]\d+)?", word)
    if found and kind == "o":
        number, delta = int(found[1]), int(found[2] or 0)
        if number > 255 or not -128 <= delta <= 127:
            raise ValueError(f"'{word}' is out of range")
        return boundary(number, delta)
    if not re.fullmatch(r"\d+", word) or int(word) >= BOUNDARY:
        raise ValueError(f"'{word}' is no number below {BOUNDARY}")
    return int(word)


def text(program):
    return "".join(f"{op}\n" for op in program)


# How often each operation is drawn. What makes room and pages comes often, so that the others have something to do.
WEIGHTS = {"alloc": 6, "alloc_fclone": 8, "build_skb": 4, "reserve": 5, "put": 8, "push": 3, "pull": 3, "page": 6,
           "frag": 16, "page_frag": 10, "clone": 10, "copy": 2, "pskb_copy": 4, "expand": 6, "unclone": 3,
           "unclone_keeptruesize": 4, "trim": 5, "pull_tail": 6, "split": 5, "shift": 3, "coalesce": 4,
           "header_release": 3, "header_unclone": 2, "condense": 2, "morph": 2, "share_check": 2, "unshare": 2,
           "get": 2, "free": 10, "own": 3, "frag_list": 2, "shared_frag": 1, "headers": 2, "tcp_segs": 3,
           "tcp_trim_head": 2, "tcp_fragment": 2, "ext_add": 4, "ext_write": 2, "ext_del": 1, "ext_copy": 2}
# The same in a program that is about the socket, which every fourth is.
SOCK_WEIGHTS = {"sock_send": 20, "sock_zerocopy": 6, "sock_push": 4, "sock_complete": 12, "sock_ack": 16, "sock_sack": 10,
                "sock_lost": 5, "sock_retransmit": 9, "page": 2}
SOCK_SHARE = 0.25

ROOM = [0, 1, 63, 64, 100, 128, 192, 193, 320, 384, 385, 448, 704, 705, 1000, 1728, 1729, 2048, 3776, 3777, 8000]
SMALL = [0, 1, 2, 7, 16, 32, 64, 128, 200]
WRITES = [1, 100, 536, 1447, 1448, 1448, 1449, 2896, 4344, 4344, 10000, 14480, 32768, 65160, 65161, 100000]
SIZES = [1, 2, 3, 16, 64, 100, 100, 200, 256, 256, 512, 1024, 1448, 4095, 4096]


# What single draws seldom make: sk_buffs as TCP has them, pairs that can be shifted, lists. A letter is a register that
# is free at the start; a phrase is what may follow. `*` repeats an operation up to four times, `?` leaves it out half
# the time.
PHRASES = [
    "alloc_fclone a|*frag a|?page_frag a|tcp_segs a|?header_release a|?clone b a|tcp_trim_head a|?clone c a|"
    "?tcp_trim_head a|?free b",
    "alloc_fclone a|?put a|*page_frag a|tcp_segs a|?clone b a|tcp_fragment c a|?tcp_trim_head c|?shift a c|?free b",
    "alloc_fclone a|*frag a|tcp_segs a|?header_release a|?clone c a|tcp_fragment b a|shift a b|?free c",
    "alloc_fclone a|*page_frag a|alloc_fclone b|*page_frag b|?clone c a|?clone d b|shift a b|?shift a b",
    "alloc a|*frag a|?clone c a|alloc_fclone b|*frag b|shift b a|?free c|?coalesce b a",
    "alloc a|?put a|?frag a|alloc b|put b|?frag b|frag_list a b|?alloc c|?put c|?frag_list a c|?clone d a|trim a",
    "alloc a|?put a|build_skb b|put b|*frag b|frag_list a b|?pskb_copy c a|pull_tail a|?trim a|?copy d a|?free c",
    "build_skb a|reserve a|put a|?headers a|?clone b a|alloc_fclone c|?put c|coalesce c a|?expand c",
    "alloc_fclone a|+frag a|alloc_fclone b|+frag b|?clone c b|shift a b|?shift a b|?coalesce a b",
    "alloc_fclone a|+page_frag a|+page_frag a|?tcp_segs a|?clone b a|alloc c|+page_frag c",
    "build_skb a|build_skb b|?clone c a|free b|build_skb b|free a|build_skb a|free b|build_skb b|free b|build_skb b",
    "alloc_fclone a|*frag a|tcp_segs a|ext_add a|?clone b a|?ext_add b|?ext_write a|tcp_fragment c a|?ext_copy c b|"
    "?ext_del a|?free b|?ext_add c",
    "alloc_fclone a|reserve a|put a|*frag a|header_release a|clone b a|?header_unclone b|?push b|?expand a|?clone c a",
]


REPEATS = {"*": 4, "+": 17}


class Generator:
    """Random programs. Program NUMBER of a seed is always the same, whatever else was drawn."""

    def __init__(self, seed, length, lacks=()):
        self.seed = seed
        self.length = length
        self.names = [name for name, _ in OPS if name not in lacks]
        self.weights = [WEIGHTS.get(name, 0) for name in self.names]
        self.sock_weights = [SOCK_WEIGHTS.get(name, 0) for name in self.names]
        self.lacks = lacks

    def program(self, number):
        rng = random.Random(f"{self.seed}:{number}")
        full, pages, program = set(), set(), []
        # Some programs have few registers, so that much happens to one sk_buff.
        registers = rng.choice([2, 3, 4, 6])
        weights, phrases = (self.sock_weights, 0) if rng.random() < SOCK_SHARE else (self.weights, 0.12)
        while len(program) < self.length:
            if rng.random() < phrases:
                program += self._phrase(rng, full, pages, registers)
            else:
                op = self._draw(rng, weights, full, pages, registers)
                program += [op] if op else []
        return program[:self.length]

    def _draw(self, rng, weights, full, pages, registers):
        name = rng.choices(self.names, weights)[0]
        form = FORM[name]
        empty = [r for r in range(registers) if r not in full]
        if ("d" in form and not empty) or (("s" in form or "t" in form) and not full):
            return None
        if "p" in form and name != "page" and not pages:
            return None
        return self._op(rng, name, {"d": empty, "s": sorted(full), "t": sorted(full)}, full, pages)

    def _phrase(self, rng, full, pages, registers):
        empty = [r for r in range(_NR_REGISTERS) if r not in full]
        rng.shuffle(empty)
        phrase = rng.choice(PHRASES).split("|")
        letters = sorted({word for part in phrase for word in part.lstrip("*+?").split()[1:]})
        if len(empty) < len(letters):
            return [self._op(rng, "free", {"s": sorted(full)}, full, pages)]
        register = dict(zip(letters, empty))
        out = []
        if not pages:
            out.append(self._op(rng, "page", {}, full, pages))
        for part in phrase:
            if part[0] == "?" and rng.random() < 0.5:
                continue
            name, *words = part.lstrip("*+?").split()
            if name in self.lacks:
                continue
            operands = iter([register[word] for word in words])
            choice = {kind: [next(operands)] for kind in FORM[name] if kind in "dst"}
            for _ in range(rng.randrange(1, REPEATS.get(part[0], 1) + 1)):
                out.append(self._op(rng, name, choice, full, pages))
        return out

    def _op(self, rng, name, choice, full, pages):
        """NAME with registers of CHOICE; notes in FULL and PAGES what it fills and empties."""
        form = FORM[name]
        operands = []
        for at, kind in enumerate(form):
            if kind in "dst":
                operands.append(rng.choice(choice[kind]))
            elif kind == "p":
                operands.append(rng.randrange(3) if name == "page" else rng.choice(sorted(pages)))
            elif kind == "o":
                operands.append(self._position(rng))
            else:
                operands.append(self._number(rng, name, sum(k == "n" for k in form[:at])))
        if "d" in form:
            full.add(operands[form.index("d")])
        if name == "page":
            pages.add(operands[0])
        elif name == "free":
            full.discard(operands[0])
        elif name in ("frag_list", "coalesce") and operands[0] != operands[1]:
            full.discard(operands[1])
        return Op(name, *operands)

    @staticmethod
    def _position(rng):
        if rng.random() < 0.7:
            return boundary(rng.randrange(6), rng.choice([-1, 0, 0, 1, 1, -16, 37]))
        return rng.choice([0, 1, 2, 100, 1448, rng.randrange(5000)])

    @staticmethod
    def _number(rng, name, index):
        if name == "build_skb" and rng.random() < 0.3:
            return rng.choice([4096, 6000, 8000, 8192])  # a few use up the block that they come from
        if name in ("alloc", "alloc_fclone", "build_skb"):
            return rng.choice(ROOM)
        if name == "page":
            return rng.choice([0, 0, 0, 1, 2])
        if name == "frag":
            return [rng.randrange(4), rng.choice([0, 0, 100, 256, 512, 4000, rng.randrange(4096)]),
                    rng.choice(SIZES)][index]
        if name == "page_frag":
            return rng.choice(SIZES)
        if name in ("tcp_segs", "tcp_fragment"):
            return rng.choice([1, 100, 536, 1448])
        if name.startswith("sock_"):
            return Generator._sock_number(rng, name, index)
        if name == "push" and index == 1:
            return rng.randrange(2)
        if name == "put":
            return rng.choice(SMALL + [384, 576, 704, 1728])
        if name == "expand":
            return rng.choice([0, 0, 0, 1, 32, 64, 65, 256, 1000])
        return rng.choice(SMALL)


    @staticmethod
    def _sock_number(rng, name, index):
        if name == "sock_send":
            return rng.choice(WRITES + [rng.randrange(1, 70000)]) if index == 0 else rng.choice([0, 0, 0, 0, 1, 1, 2, 3])
        if name == "sock_zerocopy":
            return [rng.choice([0, 0, 0, 100, 4000, 4096, rng.randrange(16384)]), rng.choice(SIZES + [8192, 16384]),
                    rng.choice([0, 0, 1, 1, 2, 3, 4, 5])][index]
        if name == "sock_push":
            return rng.randrange(2)
        if name == "sock_complete":
            return rng.choice([1, 1, 2, 3, 16])
        if index == 0:
            return rng.choice([0, 0, 0, 1, 2, rng.randrange(16)])
        if name == "sock_sack":
            return rng.choice([1448, 2896, 4344, 14480, 100, rng.randrange(1, 70000)])
        if name == "sock_retransmit" and index == 2:
            return rng.choice([0, 0, 0, 0, 1, 1000, 1448, 3000, 4344, rng.randrange(1, 20000)])  # the window
        return rng.choice([1, 1, 2, 3, 45, 64])  # segments to send again


def shrink(program, differs):
    """A program that DIFFERS still says differs, without any operation that is not needed for that.

    DIFFERS takes a list of programs and answers with a list of booleans: candidates are tried many at once.
    """
    size = max(len(program) // 2, 1)
    while True:
        candidates = [program[:at] + program[at + size:] for at in range(0, len(program), size)]
        candidates = [candidate for candidate in candidates if len(candidate) < len(program)]
        answers = differs(candidates) if candidates else []
        found = next((candidate for candidate, answer in zip(candidates, answers) if answer), None)
        if found is not None:
            program = found
            size = max(min(size, len(program) // 2), 1)
        elif size == 1:
            break
        else:
            size //= 2
    return _smaller_numbers(program, differs)


def _smaller_numbers(program, differs):
    """The same with numbers that are easier to read."""
    changed = True
    while changed:
        changed = False
        candidates = []
        for i, op in enumerate(program):
            for j, kind in enumerate(FORM[op.name]):
                if kind not in "no":
                    continue
                value = op.operands[j]
                for smaller in (0, 1, 100, 1000):
                    if smaller < value:
                        operands = list(op.operands)
                        operands[j] = smaller
                        candidates.append(program[:i] + [Op(op.name, *operands)] + program[i + 1:])
        answers = differs(candidates) if candidates else []
        for candidate, answer in zip(candidates, answers):
            if answer:
                program, changed = candidate, True
                break
    return program
