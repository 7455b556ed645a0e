"""`cuzk plan SCENARIO`: which pw, gw and j to run on this machine. Every combination is simulated; the best few are shown.

Shown are the policies that fit (under several seeds) and that no other one beats in both time a proof and RAM, fastest first.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from cuzk.cli.scenario_args import add_scenario, load

MOST_VALUES = 4096


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("plan", help="which pw, gw and j to run", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("--pw", type=_values, default="1-24", metavar="VALUES", help="such as 1-24 or 8,10,12 (default 1-24)")
    parser.add_argument("--gw", type=_values, default="1-3", metavar="VALUES", help="default 1-3")
    parser.add_argument("--j", type=_values, metavar="VALUES", help="default: the scenario's")
    parser.add_argument("--top", type=_number, default=8, metavar="N", help="show so many (default 8)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _number(text: str) -> int:
    """A whole number from 1."""
    found = _values(text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"must be one number from 1 to {MOST_VALUES}, not {text!r}")
    return found[0]


def _values(text: str) -> list[int]:
    """`1-24` or `8,10,12`."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = (first, last or first)
        if not all(end.isascii() and end.isdigit() and 1 <= int(end) <= MOST_VALUES for end in ends) or len(part) > 9:
            raise argparse.ArgumentTypeError(f"must be numbers from 1 to {MOST_VALUES}, such as 1-24 or 8,10,12, not {text!r}")
        found += range(int(ends[0]), int(ends[1]) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} has no value in it: the lower end comes first")
    return sorted(set(found))


def run(args: argparse.Namespace) -> int:
    from cuzk.pipeline.plan import compile
    from cuzk.report.plan_text import plan_text
    from cuzk.report.progress import counter
    from cuzk.sim import sensible_policies

    scenario = load(args)
    axes = {"pw": args.pw, "gw": args.gw, **({"j": args.j} if args.j else {})}
    rows = sensible_policies(scenario, axes, progress=counter("policy"))[: args.top]
    tried = len(args.pw) * len(args.gw) * len(args.j or [0])
    j = compile(scenario).policy.j
    document = {
        "schema_version": 1, "scenario": scenario.name, "tried": tried,
        "policies": [
            {"policy": {"j": j, **row.settings}, "set": [f"policy.{name}={value}" for name, value in row.settings.items()],
             "verdict": row.result.verdict, "s_per_proof": round(row.result.s_per_proof or 0.0, 6),
             "peaks": {pool: {"resident_bytes": peak.resident_bytes, "capacity_bytes": peak.capacity_bytes}
                       for pool, peak in row.result.peaks.items()},
             "bottleneck": row.result.bottleneck, "warnings": row.result.warnings}
            for row in rows
        ],
    }  # fmt: skip
    print(json.dumps(document, indent=2) if args.json else plan_text(document))
    return 0 if rows else 3
