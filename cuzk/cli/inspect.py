"""`cuzk inspect FILE`: kind, curve, counts, domain and memory of a key, circuit, witness or proof, from its headers.

--deep reads everything: values below their modulus, points on the curve and in the subgroup.
"""

from __future__ import annotations

import argparse
from typing import Any

from cuzk.cli.proving import print_json, terminal_progress, warn_development


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("inspect", help="what a file is and costs", description=__doc__)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--deep", action="store_true", help="validate the content, not only the headers")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="with --deep: N random points of each list (default: all)"
    )
    parser.add_argument(
        "--scenario", metavar="YAML", help="also simulate this scenario with the file's circuit: does it fit"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.groth16.inspect import as_text, inspect

    found = inspect(args.file)
    if args.deep:
        from cuzk.groth16.deep import deep_check

        found["deep"] = deep_check(args.file, found["kind"], args.sample, terminal_progress())
    if args.scenario:
        from cuzk.cli.inspect_scenario import judge

        found["scenario"] = judge(found, args.scenario)
    if found.get("development"):
        warn_development(args.file)
    if args.json:
        print_json(found)
    else:
        print(as_text(found))
    return 0
