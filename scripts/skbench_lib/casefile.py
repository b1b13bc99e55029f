# SPDX-License-Identifier: MIT
"""Lists of cases: one name a line, `{a,b}` stands for one name with a and one with b, a # at its
beginning or behind a blank begins a comment."""

import re

from .errors import UserError
from .files import read_text


def expand(name):
    """The names that NAME stands for, in order: the rightmost braces vary fastest."""
    opened = re.search(r"\{([^{}]*)\}", name)
    if not opened:
        if "{" in name or "}" in name:
            raise UserError(f"'{name}': a brace without its partner")
        return [name]
    words = opened.group(1).split(",")
    if not all(words):
        raise UserError(f"'{name}': an alternative is empty")
    return [full for word in words for full in expand(name[:opened.start()] + word + name[opened.end():])]


def read(path):
    """The names listed in the file PATH, expanded; an empty list if there is no such file. No name stands there twice."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        return []
    names = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = re.split(r"(?:^|\s)#", line)[0].strip()  # CASE#PHASE is no comment
        if not line:
            continue
        if " " in line or "\t" in line or "/" not in line:
            raise UserError(f"{path}:{number}: '{line}' is no name of a case (family/operation/key:value/...)")
        try:
            expanded = expand(line)
        except UserError as error:
            raise UserError(f"{path}:{number}: {error}") from None
        for name in expanded:
            if name in names:
                raise UserError(f"{path}:{number}: {name} is listed in line {names[name]} already")
            names[name] = number
    return list(names)


def value(name, key, default="-"):
    """The value of KEY in the case name NAME."""
    for part in name.split("#")[0].split("/"):
        if part.startswith(f"{key}:"):
            return part[len(key) + 1:]
    return default
