# SPDX-License-Identifier: MIT
"""skbench hw: the hardware mode. Builds the program behind it and becomes it."""

import argparse
import os
import sys

from .build import ensure_built

PROGRAM = "skbench_hw"


def add_parser(subparsers):
    parser = subparsers.add_parser(
        "hw", help="drive a NIC of the 82599 family through VFIO, or a model of one",
        description="Drives a NIC of the 82599 family through VFIO, or the model of one in software. Each of list, "
                    "bind, unbind, selftest, race, serve and respond takes --help of its own.")
    parser.add_argument("action", choices=["list", "bind", "unbind", "selftest", "race", "serve", "respond"])
    parser.add_argument("arguments", nargs=argparse.REMAINDER,
                        help="options of the action; list, selftest and race take --json FILE")
    parser.set_defaults(func=main)


def main(args):
    program = ensure_built("release", targets=[PROGRAM]) / "hw" / PROGRAM
    sys.stdout.flush()
    os.execv(program, [str(program), args.action, *args.arguments])
