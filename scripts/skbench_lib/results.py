# SPDX-License-Identifier: MIT
"""Result files: reading strictly, checking against results/schema.json, writing so that nothing is ever half there.

The checker interprets the part of JSON Schema that our schema uses, and refuses a schema that uses more, so that it
can never pass over a rule in silence. The reader takes nothing but JSON as the standard has it: no NaN, no double
keys, no numbers beyond a double, one document, UTF-8.
"""

import contextlib
import datetime
import functools
import gc
import json
import math
import re
from pathlib import Path

from . import tree
from .errors import UserError
from .files import write_new

SCHEMA_VERSION = "1.0"
SCHEMA_MAJOR = 1
COMMIT_DIGITS = 7
LEAST_NS, MOST_NS = 1e-9, 1e18  # what a time of one operation can be: from nothing to thirty years


class Invalid(UserError):
    """A file or a value that is not what it should be; the text says where and what was expected."""


# --- the schema ---------------------------------------------------------------------------------------------------

_ANNOTATIONS = {"$schema", "$comment", "$defs", "title", "description"}


def _is_integer(value):
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


_TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": _is_integer,
}


# The same as types of Python, whose exact ones are what a parser makes.
_PLAIN = {"object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
          "number": (int, float), "integer": (int,)}


def type_name(value):
    """The JSON type of a value, for messages."""
    for name in ("object", "array", "string", "boolean", "null", "integer", "number"):
        if _TYPES[name](value):
            return name
    return type(value).__name__


def _shown(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _equal(left, right):
    # True and 1 are different JSON values.
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def violations(value, schema, root=None, path=""):
    """Every way in which VALUE breaks SCHEMA, one sentence each, with the path of the culprit."""
    root = schema if root is None else root
    where = path or "the document"
    if "$ref" in schema:
        name = re.fullmatch(r"#/\$defs/(\w+)", schema["$ref"]).group(1)
        yield from violations(value, root["$defs"][name], root, path)
    if "type" in schema:
        allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_TYPES[name](value) for name in allowed):
            yield f"{where}: expected {' or '.join(allowed)}, is {type_name(value)} {_shown(value)}"
            return
    for keyword, rule in schema.items():
        if keyword in _ANNOTATIONS or keyword in ("type", "$ref"):
            continue
        if keyword == "const":
            if not _equal(value, rule):
                yield f"{where}: expected {_shown(rule)}, is {_shown(value)}"
        elif keyword == "enum":
            if not any(_equal(value, choice) for choice in rule):
                yield f"{where}: expected one of {', '.join(_shown(c) for c in rule)}, is {_shown(value)}"
        elif keyword == "minimum":
            if _TYPES["number"](value) and value < rule:
                yield f"{where}: expected at least {rule}, is {_shown(value)}"
        elif keyword == "exclusiveMinimum":
            if _TYPES["number"](value) and value <= rule:
                yield f"{where}: expected more than {rule}, is {_shown(value)}"
        elif keyword == "minLength":
            if isinstance(value, str) and len(value) < rule:
                yield f"{where}: expected a string of at least {rule} characters, is {_shown(value)}"
        elif keyword == "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                yield f"{where}: expected a string like {rule}, is {_shown(value)}"
        elif keyword == "required":
            if isinstance(value, dict):
                for key in rule:
                    if key not in value:
                        kind = schema.get("properties", {}).get(key, {}).get("type")
                        kind = " or ".join(kind) if isinstance(kind, list) else kind
                        yield f"{where}: '{key}' is missing{f', expected {kind}' if kind else ''}"
        elif keyword == "properties":
            if isinstance(value, dict):
                for key, below in rule.items():
                    if key in value:
                        yield from violations(value[key], below, root, f"{path}.{key}" if path else key)
        elif keyword == "items":
            if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from violations(item, rule, root, f"{path}[{index}]")
        else:
            raise ValueError(f"the schema uses '{keyword}', which the checker does not know")


def compiled(schema, root=None, made=None):
    """A function that tells whether a value keeps SCHEMA: what violations() says in sentences, thirty times as fast."""
    root = schema if root is None else root
    made = {} if made is None else made
    tests = []
    if "$ref" in schema:
        name = re.fullmatch(r"#/\$defs/(\w+)", schema["$ref"]).group(1)
        if name not in made:
            made[name] = None  # a schema that holds itself finds its function when it runs
            made[name] = compiled(root["$defs"][name], root, made)
        tests.append(made[name] or (lambda value: made[name](value)))
    if "type" in schema:
        allowed = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        kinds = frozenset(kind for name in allowed for kind in _PLAIN[name])
        if "integer" in allowed and "number" not in allowed:
            tests.append(lambda value: type(value) in kinds or (type(value) is float and value.is_integer()))
        else:
            tests.append(lambda value: type(value) in kinds)
    for keyword, rule in schema.items():
        if keyword in _ANNOTATIONS or keyword in ("type", "$ref"):
            continue
        if keyword == "required":
            wanted = frozenset(rule)
            tests.append(lambda value, wanted=wanted: type(value) is not dict or wanted <= value.keys())
        elif keyword == "properties":
            below = [(key, compiled(part, root, made)) for key, part in rule.items()]
            tests.append(functools.partial(_members, below))
        elif keyword == "items":
            test = compiled(rule, root, made)
            tests.append(lambda value, test=test: type(value) is not list or all(map(test, value)))
        elif keyword == "minimum":
            tests.append(lambda value, rule=rule: type(value) not in (int, float) or value >= rule)
        elif keyword == "minLength":
            tests.append(lambda value, rule=rule: type(value) is not str or len(value) >= rule)
        elif keyword == "enum" and all(type(choice) is str for choice in rule):
            tests.append(lambda value, rule=frozenset(rule): type(value) is str and value in rule)
        elif keyword == "const" and type(rule) is str:
            tests.append(lambda value, rule=rule: value == rule)
        else:
            # What is rare is left to the one that explains it.
            part = {keyword: rule}
            tests.append(lambda value, part=part: not any(violations(value, part, root)))
    return functools.partial(_every, tests) if len(tests) != 1 else tests[0]


def _members(below, value):
    if type(value) is dict:
        for key, test in below:
            if key in value and not test(value[key]):
                return False
    return True


def _every(tests, value):
    for test in tests:
        if not test(value):
            return False
    return True


@functools.lru_cache(maxsize=None)
def keeps_schema(part=None):
    """A function that tells whether a value is a result file, or that PART of one which the schema defines."""
    return compiled(schema() if part is None else schema()["$defs"][part], schema())


@functools.lru_cache(maxsize=None)
def schema():
    """The schema of this version's result files."""
    with open(tree.repo_root() / "results" / "schema.json", encoding="utf-8") as file:
        return json.load(file)


def _finite(value, path=""):
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path or 'the document'}: expected a finite number, is {value}"
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _finite(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _finite(item, f"{path}[{index}]")


def check(document, source="the result", finite=False):
    """Raises Invalid for the first way in which DOCUMENT is not a result file of a version that we can read.

    FINITE: its numbers are known to be, as those of parse() are.
    """
    version = None
    if isinstance(document, dict) and isinstance(document.get("context"), dict):
        ours = document["context"].get("skbench")
        version = ours.get("schema") if isinstance(ours, dict) else None
    if isinstance(version, str) and re.fullmatch(r"[0-9]+\.[0-9]+", version) and \
            int(version.split(".")[0]) != SCHEMA_MAJOR:
        raise Invalid(f"{source}: schema version {version}, this skbench reads {SCHEMA_MAJOR}.x")
    for problem in () if finite else _finite(document):
        raise Invalid(f"{source}: {problem}")
    if keeps_schema()(document):
        return
    for problem in violations(document, schema()):
        raise Invalid(f"{source}: {problem}")


# --- reading ------------------------------------------------------------------------------------------------------

class Refused(Exception):
    """JSON that the standard has no place for; the text says what."""


def _no_double_keys(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise Refused(f"key '{key}' stands twice in one object")
            seen.add(key)
    return found


def _no_constant(token):
    raise Refused(f"{token} is not JSON; a value that could not be measured is null")


def _double(text):
    value = float(text)
    if not math.isfinite(value):
        raise Refused(f"{text} is beyond the range of a number")
    return value


def _cut(text, error):
    """True if the text breaks off rather than going wrong."""
    rest = text[error.pos:].strip()
    if not rest or error.msg.startswith("Unterminated string"):
        return True
    if any(word.startswith(rest) for word in ("true", "false", "null", "-")):
        return True
    # The parser takes the digits before a point or an exponent that has none behind it yet.
    if error.pos and text[error.pos - 1].isdigit() and re.fullmatch(r"\.|[eE][+-]?", rest):
        return True
    return error.msg.startswith("Invalid \\u") and re.fullmatch(r"\\?u?[0-9a-fA-F]{0,4}", rest) is not None


_DIGITS = bytes(ord("9") if chr(byte).isdigit() else byte for byte in range(128)) + bytes(128)


def _may_be_too_large(data):
    """True if a number in the JSON text DATA could be beyond the range of a double: 300 digits, or three of an exponent."""
    return re.search(rb"e\+?[0-9]{3}", data) or re.search(rb"E\+?[0-9]{3}", data) or \
        b"9" * 300 in data.translate(_DIGITS)


def strict_decoder():
    """A parser of what parse() takes; it raises Refused, too."""
    return json.JSONDecoder(object_pairs_hook=_no_double_keys, parse_constant=_no_constant, parse_float=_double)


@contextlib.contextmanager
def no_collection():
    """Whoever makes millions of objects and drops none need not look for dropped ones all the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def parse(data, source, pairs_hook=_no_double_keys, constant=_no_constant, number=_double):
    """The JSON document in DATA (bytes). Raises Invalid with one sentence that begins with SOURCE.

    The hooks are those of json.loads: what becomes of an object, of NaN and Infinity, and of a number with a fraction.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if not data.strip():
        raise Invalid(f"{source}: file is empty")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            raise Invalid(f"{source}: truncated at byte {len(data)}") from None
        raise Invalid(f"{source}: not UTF-8 at byte {error.start}") from None
    if not _may_be_too_large(data):
        number = None  # the parser's own
    try:
        with no_collection():
            return json.loads(text, object_pairs_hook=pairs_hook, parse_constant=constant, parse_float=number)
    except Refused as error:
        raise Invalid(f"{source}: {error}") from None
    except json.JSONDecodeError as error:
        byte = len(text[:error.pos].encode("utf-8"))
        if error.msg == "Extra data" and text[error.pos] in "{[":
            reason = f"more than one JSON document, second starts at byte {byte}"
        elif _cut(text, error):
            reason = f"truncated at byte {len(data)}"
        else:
            reason = f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
            if re.match(r"[0-9]+,[0-9]", text[max(0, error.pos - 1):].lstrip(", ")) or \
                    re.search(r"[0-9],[0-9]*$", text[:error.pos + 1]):
                reason += " (a number written under a locale?)"
        raise Invalid(f"{source}: {reason}") from None
    except RecursionError:
        raise Invalid(f"{source}: nested too deeply") from None
    except ValueError as error:
        raise Invalid(f"{source}: {error}") from None


def read(path):
    """The checked result in a file. Raises Invalid, one sentence that begins with the path."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
    document = parse(data, path)
    check(document, path, finite=True)
    return document


# --- writing ------------------------------------------------------------------------------------------------------

def text_of(document):
    """The JSON text of a result: the same bytes under every locale."""
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=True) + "\n"


def default_path(fp8, commit, now=None, root=None):
    """out/<fp8>/<UTC>-<commit7>.json, with a number behind it if that name is taken."""
    now = now or datetime.datetime.now(datetime.timezone.utc)
    directory = Path(root or tree.repo_root()) / "out" / fp8
    stem = f"{now.strftime('%Y%m%dT%H%M%SZ')}-{commit[:COMMIT_DIGITS]}"
    path = directory / f"{stem}.json"
    number = 2
    while path.exists():
        path = directory / f"{stem}-{number}.json"
        number += 1
    return path


def write(path, document):
    """Checks DOCUMENT and writes it to the new file PATH, as write_new() does."""
    check(document)
    write_new(path, text_of(document))
