"""`cuzk inspect FILE`: kind, curve, counts, domain and memory of a key, circuit, witness or proof, from its headers.

--deep reads everything: values below their modulus, points on the curve and in the subgroup.
"""

from __future__ import annotations

import argparse
from typing import Any

from cuzk.cli.proving import print_json, terminal_progress, warn_unsafe


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("inspect", help="what a file is and costs", description=__doc__)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--deep", action="store_true", help="validate the content, not only the headers")
    parser.add_argument("--sample", type=int, metavar="N", help="with --deep: N random points of each list (default: all)")
    parser.add_argument("--scenario", metavar="YAML", help="also simulate this scenario with the file's circuit: does it fit")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.groth16.formats.template import describe, is_template
    from cuzk.groth16.inspect import inspect
    from cuzk.groth16.inspect_text import as_text

    if is_template(args.file):
        return _template(args, describe(args.file))
    if args.sample is not None and args.sample < 1:
        raise InputError("--sample must be at least 1")
    found = inspect(args.file)
    if args.deep:
        from cuzk.groth16.deep import deep_check

        found["deep"] = deep_check(args.file, found["kind"], args.sample, terminal_progress())
    if args.scenario:
        from cuzk.cli.inspect_scenario import under_scenario

        found["scenario"] = under_scenario(found, args.scenario)
    warn_unsafe(args.file, found.get("unsafe_key", []))
    if args.json:
        print_json(found)
    else:
        print(as_text(found))
    return 0


def _template(args: argparse.Namespace, found: dict[str, Any]) -> int:
    """A template is checked whole when it is opened: --deep adds nothing."""
    from cuzk.errors import InputError

    if args.scenario or args.sample is not None:
        raise InputError(f"{args.file}: --scenario and --sample are not for templates")
    if args.json:
        print_json(found)
    else:
        print("\n".join(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}" for name, value in found.items()))
    return 0
