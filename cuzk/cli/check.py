"""`cuzk check SCENARIO`: faults of order and lifetime that need no run to be seen, and the most each pool can hold."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario, load

if TYPE_CHECKING:
    from cuzk.pipeline.program import Program


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("check", help="find faults of a pipeline without running it", description=__doc__)
    add_scenario(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from cuzk.model.units import fmt_gib
    from cuzk.pipeline.bounds import bounds
    from cuzk.pipeline.program import bind

    program = bind(load(args))
    rows = findings(program)
    failed = any(row["severity"] == "error" for row in rows)
    most = [] if failed else bounds(program)  # of steps that are wrong there is no bound
    if args.json:
        pools = {
            b.pool: {
                "at_most_bytes": b.at_most_bytes,
                "settled_bytes": b.settled_bytes,
                "needs_bytes": b.needs_bytes,
                "capacity_bytes": b.capacity_bytes,
                "verdict": b.verdict,
                "why": b.why,
            }
            for b in most
        }
        print(json.dumps({"schema_version": 1, "findings": rows, "bounds": pools}, indent=2))
    else:
        for row in rows:
            print(f"{row['where']}: {row['severity']}: {row['message']}")
        for bound in most:
            most_gib, limit_gib = fmt_gib(bound.at_most_bytes), fmt_gib(bound.capacity_bytes)
            needs = f", {fmt_gib(bound.needs_bytes)} needed at least" if bound.verdict == "cannot fit" else ""
            lag = (
                f", {fmt_gib(bound.settled_bytes)} if what is out is given back at once"
                if bound.settled_bytes < bound.at_most_bytes
                else ""
            )
            print(f"{bound.pool}: at most {most_gib} of {limit_gib}{lag}: {bound.verdict}{needs} ({bound.why})")
        if not rows:
            print(f"{program.pipeline.name}: no faults found")
    if failed:
        return 2
    return 3 if any(bound.verdict == "cannot fit" for bound in most) else 0


def findings(program: Program) -> list[dict[str, str]]:
    """{severity, where (file:line:col if it was written in a file), path, message} of each fault."""
    from cuzk.pipeline.check import check

    scenario = program.scenario
    inline = isinstance(scenario.pipeline, dict)
    return [
        {
            "severity": f.severity,
            "where": str(scenario.where("pipeline", *f.place)) if inline else f.path,
            "path": f.path,
            "message": f.message,
        }
        for f in check(program)
    ]
