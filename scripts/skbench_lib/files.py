# SPDX-License-Identifier: MIT
"""Writing results so that a reader never sees half of one."""

import csv
import errno
import io
import json
import os
import sys
import tempfile
from pathlib import Path

from .errors import UserError


def write_text(path, text):
    """Writes TEXT to PATH, in the place of what is there: PATH holds the old text or the new, never a part.

    Missing directories are made. Raises UserError, and then the old text stands there.
    """
    _write(path, text, "utf-8", os.replace)


def read_text(path):
    """The text of a file in UTF-8. Raises FileNotFoundError if there is none, UserError if it cannot be read."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"{path}: {_why(error)}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}") from None


def read_csv(path):
    """(columns, rows) of a CSV file with a head: rows gives (line number, {column: text}), with None as a key where a row
    has more fields than the head, and None as a value where it has fewer. Raises as read_text() does."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))

    def rows():
        try:
            for row in reader:
                yield reader.line_num, row
        except csv.Error as error:
            raise UserError(f"{path}:{reader.line_num}: not CSV: {error}") from None

    try:
        return reader.fieldnames, rows()
    except csv.Error as error:
        raise UserError(f"{path}: not CSV: {error}") from None


def write_json(target, value):
    """Writes VALUE as one JSON object to the new file TARGET, or to standard output for "-"."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    refuse_existing(target)
    write_new(target, text)


def text_stream(json_target):
    """Where a command writes what people read: not to standard output if the JSON object goes there."""
    return sys.stderr if json_target == "-" else sys.stdout


def _why(error):
    return "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)


def refuse_existing(path):
    """Raises UserError if PATH cannot become a new result file, to be asked before anything is measured."""
    path = Path(path)
    if os.path.lexists(path):
        raise UserError(f"{path} exists and results are never overwritten: name another file")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no directory {path.parent}")
    try:
        handle, probe = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise UserError(f"{path}: cannot write to {path.parent}: {_why(error)}") from None
    os.close(handle)
    os.unlink(probe)


def write_new(path, text):
    """Writes ASCII text to PATH, which must not exist. Missing directories are made.

    Either the whole file stands there afterwards, on disk, or UserError was raised and nothing stands there.
    """
    _write(path, text, "ascii", _rename_new)


def _write(path, text, encoding, rename):
    """Writes TEXT to a temporary file beside PATH, on disk, and gives it that name by RENAME(temporary, path)."""
    path = Path(path)
    temporary = None
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"cannot make {path.parent}: {_why(error)}") from None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "w", encoding=encoding) as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        rename(temporary, path)
        _sync_directory(path.parent)
    except FileExistsError:
        raise UserError(f"{path} exists and results are never overwritten: name another file") from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {_why(error)}") from None
    finally:
        if temporary is not None and os.path.lexists(temporary):
            os.unlink(temporary)


def _rename_new(temporary, path):
    """Renames, but never onto a file that is there: a link fails then, where a rename would replace it."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        # A file system without hard links: reserve the name, then rename onto our own empty file.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            os.rename(temporary, path)
        except BaseException:
            os.unlink(path)
            raise


def _sync_directory(directory):
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
