# SPDX-License-Identifier: MIT
"""The model's instructions beside the kernel's: values, slopes per frag, ratios between variants.

results/kernel/VERSION.csv holds what operations cost in a kernel (skbench oracle --yardstick), pairs.txt which case of
the model each row is compared with, reasons.txt why a ratio lies outside of LOW to HIGH, and model-COMPILER.csv what
the model's cases cost when they were compared last.
"""

import csv
import io
import re

from . import casefile, children, instructions
from .build import bench_binary, build_dir, ensure_built
from .errors import OK, WORSE, UserError
from .files import write_text
from .table import plural, wrapped
from .tree import repo_root

LOW, HIGH = 0.5, 1.5
ERAS = ("6.1", "6.12")
COLUMNS = ["operation", "frags", "instructions"]
MODEL_COLUMNS = ["era", "operation", "frags", "case", "instructions"]
OPERATIONS = 200
SAME = 0.002  # two runs of the yardstick, and two counts of the model


class Pair:
    """A row of the kernel's and the model's case: OPERATION with FRAGS, CASE; kernel and model are instructions."""

    def __init__(self, operation, frags, case):
        self.operation, self.frags, self.case = operation, frags, case
        self.kernel = self.model = None

    @property
    def key(self):
        return self.operation, self.frags

    @property
    def ratio(self):
        return self.model / self.kernel if self.kernel else float("inf")

    def outside(self):
        return not LOW <= self.ratio <= HIGH

    def as_json(self):
        return {"operation": self.operation, "frags": self.frags, "case": self.case, "kernel": self.kernel,
                "model": self.model, "ratio": round(self.ratio, 3) if self.kernel else None}


def directory():
    return repo_root() / "results" / "kernel"


def lines_of(path):
    """(number, text) of each line of PATH that holds something, comments taken off."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} is missing: it belongs to the tree") from None
    return [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.startswith("#")]


def read_pairs(era):
    """[Pair] of pairs.txt for ERA."""
    path, pairs, seen = directory() / "pairs.txt", [], set()
    for number, line in lines_of(path):
        words = line.split()
        if len(words) != 3 or not re.fullmatch(r"\d+(,\d+)*", words[1]):
            raise UserError(f"{path}:{number}: not 'operation frags case'")
        for frags in map(int, words[1].split(",")):
            pair = Pair(words[0], frags, words[2].format(era=era, frags=frags))
            if pair.key in seen:
                raise UserError(f"{path}:{number}: {pair.operation} with {frags} frags stands there a second time")
            seen.add(pair.key)
            pairs.append(pair)
    return pairs


def read_reasons():
    """{operation: reason} of reasons.txt, whose lines are 'operation: reason'."""
    path, reasons = directory() / "reasons.txt", {}
    for number, line in lines_of(path):
        operation, colon, reason = line.partition(":")
        if not colon or not reason.strip() or operation in reasons:
            raise UserError(f"{path}:{number}: not 'operation: reason', or an operation's second one")
        reasons[operation] = reason.strip()
    return reasons


def kernel_file(era):
    """The newest CSV of a kernel of ERA."""
    found = [path for path in directory().glob("*.csv") if re.match(rf"{re.escape(era)}\.\d", path.name)]
    if not found:
        raise UserError(f"results/kernel has no costs of a {era} kernel: skbench oracle --era {era} --yardstick "
                        "measures them")
    return max(found, key=version_key)


def version_key(path):
    """Orders files of results/kernel by the version in their names."""
    return [int(number) for number in re.findall(r"\d+", path.stem)]


def read_kernel(path):
    """{(operation, frags): instructions} of a CSV of costs."""
    with open(path, encoding="utf-8", newline="") as source:
        reader = csv.DictReader(source)
        if reader.fieldnames != COLUMNS:
            raise UserError(f"{path}: the columns are not {','.join(COLUMNS)}")
        try:
            return {(row["operation"], int(row["frags"])): int(row["instructions"]) for row in reader}
        except (TypeError, ValueError):
            raise UserError(f"{path}:{reader.line_num}: a number is none") from None


def model_file(stem):
    return directory() / f"model-{stem}.csv"


def read_model(stem):
    """{(era, operation, frags, case): instructions} as they were stored."""
    path = model_file(stem)
    try:
        with open(path, encoding="utf-8", newline="") as source:
            return {(row["era"], row["operation"], int(row["frags"]), row["case"]): float(row["instructions"])
                    for row in csv.DictReader(source)}
    except FileNotFoundError:
        raise UserError(f"{path} is missing: skbench ledger --kernel --write makes it") from None
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: the columns are not {','.join(MODEL_COLUMNS)}") from None


def write_model(stem, by_era):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(MODEL_COLUMNS)
    for era, pairs in by_era.items():
        writer.writerows([era, pair.operation, pair.frags, pair.case, f"{pair.model:.1f}"] for pair in pairs)
    write_text(model_file(stem), text.getvalue())
    return model_file(stem)


def with_kernel(pairs, path):
    """PAIRS with the kernel's costs from PATH; UserError if a row is not there."""
    costs = read_kernel(path)
    for pair in pairs:
        if pair.key not in costs:
            raise UserError(f"{path} has no {pair.operation} with {plural(pair.frags, 'frag')}: skbench oracle "
                            "--yardstick measures it")
        pair.kernel = costs[pair.key]
    return pairs


def count_model(pairs, preset="release"):
    """Counts each pair's case; each distinct one once."""
    names = list(dict.fromkeys(pair.case for pair in pairs))
    counted = dict(zip(names, children.each(
        lambda name: instructions.count(bench_binary(name, preset), name, OPERATIONS), names)))
    for pair in pairs:
        pair.model = counted[pair.case]


def stored_pairs(stem):
    """{era: [Pair]} with the kernel's and the model's costs as they are stored. UserError for a pair that has none."""
    model, by_era = read_model(stem), {}
    for era in ERAS:
        by_era[era] = with_kernel(read_pairs(era), kernel_file(era))
        for pair in by_era[era]:
            if (era, *pair.key, pair.case) not in model:
                raise UserError(f"{model_file(stem)} has no {pair.operation} with {plural(pair.frags, 'frag')} of era {era}: "
                                "skbench ledger --kernel --write counts it")
            pair.model = model[era, *pair.key, pair.case]
    return by_era


def unreasoned(by_era, reasons):
    """Sentences about what reasons.txt does not explain, and about what it explains and need not."""
    pairs = [pair for pairs in by_era.values() for pair in pairs]
    outside = {pair.operation for pair in pairs if pair.outside()}
    for era, members in by_era.items():
        for pair in members:
            if pair.outside() and pair.operation not in reasons:
                yield (f"era {era}: {pair.operation} with {plural(pair.frags, 'frag')} costs {pair.ratio:.2f} of the "
                       "kernel's, and results/kernel/reasons.txt does not say why")
    for operation in reasons:
        if operation not in outside:
            yield f"results/kernel/reasons.txt explains {operation}, which needs no reason"


def table(era, path, pairs, reasons):
    """Lines of at most 80 columns."""
    yield f"instructions of one operation, era {era}; kernel: {path.stem}, model: gcc"
    yield f"{'operation':<36}{'frags':>6}{'kernel':>10}{'model':>10}{'ratio':>8}"
    for pair in pairs:
        mark = " *" if pair.outside() else ""
        yield f"{pair.operation:<36}{pair.frags:>6}{pair.kernel:>10}{pair.model:>10.0f}{pair.ratio:>8.2f}{mark}"
    yield ""
    yield f"{'instructions per frag':<42}{'kernel':>10}{'model':>10}{'ratio':>8}"
    for operation, kernel, model in slopes(pairs):
        ratio = f"{model / kernel:>8.2f}" if kernel else ""
        yield f"{operation:<42}{kernel:>10.1f}{model:>10.1f}{ratio}"
    yield ""
    yield f"{'with a clone alive, of that without':<36}{'frags':>6}{'kernel':>10}{'model':>10}"
    for operation, frags, kernel, model in variants(pairs):
        yield f"{operation:<36}{frags:>6}{kernel:>10.2f}{model:>10.2f}"
    yield ""
    yield f"* outside of {LOW:g} to {HIGH:g}:"
    for operation in dict.fromkeys(pair.operation for pair in pairs if pair.outside()):
        yield from wrapped(f"{operation}: {reasons.get(operation, 'NO REASON is written down')}")


def slopes(pairs):
    """(operation, kernel, model) between the fewest frags that are not 0 and the most."""
    for operation in dict.fromkeys(pair.operation for pair in pairs):
        mine = sorted((pair for pair in pairs if pair.operation == operation and pair.frags), key=lambda p: p.frags)
        if len(mine) > 1:
            few, many = mine[0], mine[-1]
            frags = many.frags - few.frags
            yield operation, (many.kernel - few.kernel) / frags, (many.model - few.model) / frags


def variants(pairs):
    """(operation, frags, kernel, model): X_cloned over X."""
    by_key = {pair.key: pair for pair in pairs}
    for pair in pairs:
        cloned = by_key.get((f"{pair.operation}_cloned", pair.frags))
        if cloned and pair.kernel > 1:
            yield pair.operation, pair.frags, cloned.kernel / pair.kernel, cloned.model / pair.model


def without_row(pairs):
    """The operations in results/ledger/cases.txt that no pair names."""
    paired = {"/".join(pair.case.split("/")[:2]) for pair in pairs}
    cases = casefile.read(repo_root() / "results" / "ledger" / "cases.txt")
    return sorted({"/".join(case.split("/")[:2]) for case in cases} - paired)


def main(args, out):
    """`skbench ledger --kernel`; returns (status, object for --json)."""
    eras = [args.era] if args.era else list(ERAS)
    made_with = instructions.toolchain("gcc", build_dir("release"))
    stem = made_with["compiler"] + made_with["version"].split(".")[0]
    by_era = {era: with_kernel(read_pairs(era), kernel_file(era)) for era in eras}
    reasons = read_reasons()
    ensure_built("release")
    for pairs in by_era.values():
        count_model(pairs)
    for era, pairs in by_era.items():
        for line in table(era, kernel_file(era), pairs, reasons):
            print(line, file=out)
        print(file=out)
    for line in wrapped(f"benchmarked, but of no row of the kernel: {', '.join(without_row(by_era[eras[0]]))}"):
        print(line, file=out)
    problems = list(unreasoned(by_era, reasons)) if not args.era else []
    if args.write:
        if args.era:
            raise UserError("--write stores both eras: leave --era out")
        print(f"wrote {write_model(stem, by_era).relative_to(repo_root())}", file=out)
    for problem in problems:
        print(problem, file=out)
    rows = {era: [pair.as_json() for pair in pairs] for era, pairs in by_era.items()}
    return WORSE if problems else OK, {"made_with": made_with, "rows": rows, "reasons": reasons, "problems": problems}
