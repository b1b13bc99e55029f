# SPDX-License-Identifier: MIT
"""The command line: one module for each command, loaded only when it is needed."""

import argparse
import importlib
import os
import re
import signal
import sys

# Each module has add_parser(subparsers), which sets `func` on its parser: it takes the parsed arguments and returns
# the exit status.
COMMANDS = ["run", "test", "ledger", "instructions", "aa", "topology", "oracle", "hw", "compare", "duet", "baseline",
            "history", "profile", "regime"]
MODULES = {"test": "testcmd", "duet": "revduet"}


class Parser(argparse.ArgumentParser):
    """A usage error is one line and status 2."""

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message):
        sys.stderr.write(f"skbench: {message} ({self.prog} --help)\n")
        sys.exit(2)


def version():
    from .tree import repo_root

    text = (repo_root() / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(skbench VERSION ([0-9.]+)", text).group(1)


class Version(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print(f"skbench {version()}")
        parser.exit()


def parser(command=None):
    """The parser for COMMAND alone, or with every command for None."""
    top = Parser(prog="skbench", description="What Linux network buffers cost: microbenchmarks of sk_buff memory.",
                 epilog="Exit status: 0 nothing worse, 1 regression or changed counts, 2 usage or broken input, "
                        "3 inconclusive, 4 not comparable or not possible here, 5 a case failed, 130 interrupted.")
    top.add_argument("--version", action=Version, nargs=0, help="print the version and exit")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS if command is None else [command]:
        module = importlib.import_module(f".{MODULES.get(name, name)}", __package__)
        module.add_parser(subparsers)
    return top


def main(argv):
    from .errors import INTERRUPTED, UserError
    from .files import refuse_existing

    try:
        command = argv[0] if argv and argv[0] in COMMANDS else None
        args, rest = parser(command).parse_known_args(argv)
        if rest:
            Parser(prog=f"skbench {args.command}").error(f"unrecognized arguments: {' '.join(rest)}")
        if getattr(args, "json", None) not in (None, "-"):
            refuse_existing(args.json)  # before any work, not after it
        status = args.func(args)
        sys.stdout.flush()
        return status
    except UserError as error:
        sys.stderr.write(f"skbench: {error}\n")
        return error.status
    except KeyboardInterrupt:
        sys.stderr.write("skbench: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


if __name__ == "__main__":
    # A stopped command ends its children on the way out, as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        STATUS = main(sys.argv[1:])
    except KeyboardInterrupt:  # between two statements above
        STATUS = 130
    sys.exit(STATUS)
