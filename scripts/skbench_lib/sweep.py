# SPDX-License-Identifier: MIT
"""`run --sweep KEY=A:B`: every value of one key, on every selected operation that has the key; a CSV beside the result."""

import csv
import io
import re

from . import benchbin
from .errors import UserError

MAX_VALUES = 1000
DEFAULT_MAX_SKB_FRAGS = 17
COLUMNS = ["case", "key", "value", "unit", "ns_per_op", "lo", "hi", "processes", "bytes_per_op", "status"]


def product(cases, sizes):
    """CASES with each key of SIZES, {key: values}, at each of its values; each case once."""
    for key, values in sizes.items():
        cases = [re.sub(rf"/{key}:[^/]*", f"/{key}:{value}", case) for case in cases for value in values]
    return list(dict.fromkeys(cases))


class Sweep:
    """The argument of --sweep: a key and a range of integers."""

    def __init__(self, text):
        match = re.fullmatch(r"([a-z_]+)=(\d{1,9}):(\d{1,9})", text)
        self.text = text
        if not match or int(match.group(2)) > int(match.group(3)):
            raise UserError(f"--sweep {text}: KEY=A:B is needed, as in frags=1:17, with A not above B")
        self.key, self.first, self.last = match.group(1), int(match.group(2)), int(match.group(3))
        if self.last - self.first >= MAX_VALUES:
            raise UserError(f"--sweep {text}: at most {MAX_VALUES} values")

    def beyond_default(self):
        """True if the range needs a build with more frags than the default one has (preset frags45)."""
        return self.key == "frags" and self.last > DEFAULT_MAX_SKB_FRAGS

    def cases(self, operation):
        """The default cases of OPERATION with the key at each value of the range; empty if it has no such key.

        A key of words takes those words of the range that it knows; one of integers must take them all.
        """
        key = next((entry for entry in operation.get("keys", []) if entry["name"] == self.key), None)
        if key is None:
            return []
        values = range(self.first, self.last + 1)
        if "words" in key:
            values = [value for value in values if str(value) in key["words"]]
        elif not key["lo"] <= self.first <= self.last <= key["hi"]:
            raise UserError(f"--sweep {self.text}: {operation['name']} takes {self.key} from {key['lo']} to {key['hi']}")
        found = {}
        for case in operation["cases"]:
            for value in values:
                found[re.sub(rf"/{self.key}:[^/]*", f"/{self.key}:{value}", case)] = None
        return list(found)

    def table(self, entries, bytes_per_op):
        """The CSV text of ENTRIES, objects of context.skbench.cases. BYTES_PER_OP: {case: payload of one operation}."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for entry in entries:
            value = entry["value"] or {}
            figures = [value.get(name) for name in ("median", "lo", "hi")]
            writer.writerow([entry["case"], self.key, benchbin.split_name(entry["case"])[1][self.key], entry["unit"],
                             *("" if figure is None else f"{figure:.4f}" for figure in figures),
                             value.get("n", 0), bytes_per_op.get(entry["case"]) or 0, entry["status"]])
        return text.getvalue()
