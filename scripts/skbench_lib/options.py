# SPDX-License-Identifier: MIT
"""Values of options, each checked with one sentence for what is wrong with it."""

import re

from .errors import UserError


def integer(text, option, least, most=None):
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or value < least or (most is not None and value > most):
        span = f"{least} to {most}" if most is not None else f"at least {least}"
        raise UserError(f"{option} {text}: an integer is needed, {span}")
    return value


def seconds(text, option="--budget"):
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is None or not 0 < value <= 86400:
        raise UserError(f"{option} {text}: seconds are needed, more than 0, at most 86400")
    return value


def expression(text, option="--filter"):
    try:
        return re.compile(text or "")
    except re.error as error:
        raise UserError(f"{option} {text}: not a regular expression: {error}") from None


def one_of(text, option, allowed):
    if text not in allowed:
        raise UserError(f"{option} {text}: one of {', '.join(allowed)} is needed")
    return text
