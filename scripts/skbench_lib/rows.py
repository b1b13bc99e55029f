# SPDX-License-Identifier: MIT
"""Large result files: their rows, most of which look alike, without the parser's and the checker's work on each.

A row that differs from one that was parsed and checked in nothing but values is as good as that one, if its values are:
from the text of a row and the schema comes an expression that only such rows match, and what a comparison needs of them
is what its groups hold. A row that does not match is parsed and checked itself, and gives the next expression. A file
in which anything is not as expected is left to results.parse() and results.check(), which say what it is.
"""

import contextlib
import json
import re

from . import results

LARGE = 1 << 20  # bytes of a file from which on this is worth an expression
MOST_LAYOUTS = 32
MOST_BYTES = 1 << 16  # of a row, with what follows it
CHUNK = 1 << 20  # what is read at once; at least MOST_BYTES

# What sides.native() reads of a row.
KEPT = {"name", "threads"}
KEPT_SKB = {"cell", "side", "pair", "inject", "n", "batches", "cpus", "value"}

_BLANK = r"[ \t\n\r]*"
_HEAD = re.compile(rf'{_BLANK}{{{_BLANK}"context"{_BLANK}:{_BLANK}')
_ROWS = re.compile(rf'{_BLANK},{_BLANK}"benchmarks"{_BLANK}:{_BLANK}\[{_BLANK}(?={{)'.encode())
_NEXT = rf"{_BLANK}([,\]]){_BLANK}"
_TAIL = re.compile(rf"}}{_BLANK}\Z".encode())
_TOKEN = re.compile(rf'({_BLANK})("(?:[^"\\]|\\.)*"|[{{}}\[\],:]|[^\s{{}}\[\],:"]+)')

# ASCII, and numbers that are neither too large nor too small for a double. What else JSON knows is left to the parser.
_CHARACTER = r"[ !#-\[\]-~]"
_WHOLE, _COUNT = r"(?:0|[1-9][0-9]{0,14})", r"[1-9][0-9]{0,14}"
_UNSIGNED = rf"{_WHOLE}(?:\.[0-9]{{1,20}})?(?:e[-+]?[0-9]{{1,2}})?"
_NUMBER, _POSITIVE = "-?" + _UNSIGNED, r"(?=[0-9.]*[1-9])" + _UNSIGNED


class Unlike(Exception):
    """The file is not what is expected here: it must be read whole."""


def document(file):
    """The result in FILE (open, binary), checked, but for its rows: they are checked as they are read, once, and hold what
    KEPT and KEPT_SKB name. Raises Unlike, now or while rows are read."""
    data, begin = b"", None
    while not begin:
        more = file.read(CHUNK)
        if not more:
            raise Unlike
        data, begin = data + more, _ROWS.search(data + more, max(0, len(data) - 1000))
    with _unlike():
        text = data[:begin.start()].decode("utf-8")
        head = _HEAD.match(text)
        if not head:
            raise Unlike
        context, end = results.strict_decoder().raw_decode(text, head.end())
        if end != len(text):
            raise Unlike
        results.check({"context": context, "benchmarks": []}, finite=True)
    return {"context": context, "benchmarks": _rows(file, data[begin.end():])}


@contextlib.contextmanager
def _unlike():
    try:
        yield
    except (results.Refused, results.Invalid, ValueError, RecursionError):
        raise Unlike from None


def _rows(file, data):
    layouts, more, at = [], b",", 0
    known = _Known()
    while more == b",":
        if len(data) - at < MOST_BYTES:
            data, at = data[at:] + file.read(CHUNK), 0
        for number, layout in enumerate(layouts):
            match = layout.match(data, at)
            if match:
                if number:
                    layouts.insert(0, layouts.pop(number))
                break
        else:
            layout = _layout(data[at:at + MOST_BYTES])
            layouts.insert(0, layout)
            match = layout.match(data, at)
            if not match or len(layouts) > MOST_LAYOUTS:
                raise Unlike
        *values, more = match.groups()
        yield layout.row([known[value] for value in values])
        at = match.end()
    if not _TAIL.match(data[at:] + file.read()):
        raise Unlike


def _layout(data):
    """The Layout of the row at the start of DATA."""
    with _unlike():
        text = data.decode("utf-8", "replace")  # what is cut here lies behind the row, or the row does not match
        row, end = results.strict_decoder().raw_decode(text)
        if not results.keeps_schema("row")(row):
            raise Unlike
        return Layout(text[:end])


class _Known(dict):
    """Text of a JSON value to the value; most stand in many rows."""

    def __missing__(self, text):
        # Nearly all of them are times.
        value = self[text] = float(text) if b"." in text and text[:1].isdigit() else json.loads(text)
        return value


class Layout:
    """What a row and those like it have in common; made of the TEXT of one that is strict JSON and keeps the schema."""

    def __init__(self, text):
        self._tokens = [match.groups() for match in _TOKEN.finditer(text)]
        self._next = 0
        self._names, self._names_skb = [], []  # (place of the group, key)
        self._groups = 0
        self.match = re.compile((self._value({"$ref": "#/$defs/row"}, ()) + _NEXT).encode("ascii")).match

    def row(self, values):
        """The part of a row that is kept, of the VALUES of the expression's groups."""
        row = {key: values[group] for group, key in self._names}
        row["skb"] = {key: values[group] for group, key in self._names_skb}
        return row

    def _take(self):
        blank, token = self._tokens[self._next]
        self._next += 1
        return re.escape(blank), token

    def _value(self, rule, path):
        rule = _resolved(rule)
        names = self._names if len(path) == 1 and path[0] in KEPT else \
            self._names_skb if len(path) == 2 and path[0] == "skb" and path[1] in KEPT_SKB else None
        if names is not None:
            names.append((self._groups, path[-1]))
            self._groups += 1
        blank, token = self._take()
        if token == "{":
            found = r"\{" + self._members(rule, path)
        elif token == "[":
            found = r"\[" + self._items(rule, path)
        else:
            found = scalar(token, rule)
        return f"{blank}({found})" if names is not None else blank + found

    def _members(self, rule, path):
        found, token = "", None
        while token != "}":
            blank, key = self._take()
            found += blank + re.escape(key)
            if key == "}":
                break
            blank, _ = self._take()
            name = json.loads(key)
            found += blank + ":" + self._value(rule.get("properties", {}).get(name, {}), path + (name,))
            blank, token = self._take()
            found += blank + re.escape(token)
        return found

    def _items(self, rule, path):
        found, token = "", None
        if self._tokens[self._next][1] == "]":
            blank, token = self._take()
            return blank + r"\]"
        while token != "]":
            found += self._value(rule.get("items", {}), path + ("[]",))
            blank, token = self._take()
            found += blank + re.escape(token)
        return found


def _resolved(rule):
    while "$ref" in rule:
        rest = {key: value for key, value in rule.items() if key != "$ref"}
        rule = {**results.schema()["$defs"][rule["$ref"].rpartition("/")[2]], **rest}
    return rule


def scalar(token, rule):
    """An expression for the JSON scalars that keep RULE and are like TOKEN, which does: for TOKEN alone if RULE has more to
    it than a type and a least value or length."""
    kinds = rule.get("type", [])
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    least, above = rule.get("minimum"), rule.get("exclusiveMinimum")
    found = re.escape(token)
    if rule.keys() & {"const", "enum", "pattern"}:
        choices = rule.get("enum", ())
        return "|".join(re.escape(json.dumps(c)) for c in choices).join(("(?:", ")")) if choices else found
    if token.startswith('"'):
        return rf'"{_CHARACTER}{{{rule.get("minLength", 0)},}}"'
    if token in ("true", "false"):
        return "(?:true|false)"
    if token == "null" or (least not in (None, 0, 1)) or above not in (None, 0) or None not in (least, above):
        return found
    if kinds and "number" not in kinds:
        made = {None: "-?" + _WHOLE, 0: _WHOLE, 1: _COUNT}[least] if above is None else _COUNT
    elif above == 0:
        made = _POSITIVE
    else:
        made = {None: _NUMBER, 0: _UNSIGNED}.get(least, found)
    return made if re.fullmatch(made, token) else found
