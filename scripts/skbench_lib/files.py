# SPDX-License-Identifier: MIT
"""Writing results so that a reader never sees half of one."""

import json
import os
import sys
import tempfile
from pathlib import Path

from .errors import UserError


def write_text(path, text):
    """Writes TEXT to PATH under a temporary name and renames it: PATH holds the old text or the new, never a part."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_json(target, value):
    """Writes VALUE as one JSON object to the file TARGET, or to standard output for "-"."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        write_text(target, text)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}") from None


def text_stream(json_target):
    """Where a command writes what people read: not to standard output if the JSON object goes there."""
    return sys.stderr if json_target == "-" else sys.stdout
