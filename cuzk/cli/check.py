"""`cuzk check SCENARIO`: faults of order and lifetime that need no run to be seen, and the most each pool can hold."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING, Any

from cuzk.cli.scenario_args import add_scenario, load

if TYPE_CHECKING:
    from cuzk.model.scenario import Scenario
    from cuzk.pipeline.steps import Pipeline


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("check", help="find faults of a pipeline without running it", description=__doc__)
    add_scenario(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from cuzk.model.units import fmt_gib
    from cuzk.pipeline.bounds import bounds
    from cuzk.pipeline.plan import compile

    scenario = load(args)
    plan = compile(scenario, unending=True)
    rows = findings(scenario, plan.pipeline)
    failed = any(row["severity"] == "error" for row in rows)
    most = [] if failed else bounds(plan)  # of steps that are wrong there is no bound
    if args.json:
        pools = {b.pool: {"at_most_bytes": b.at_most_bytes, "capacity_bytes": b.capacity_bytes, "why": b.why} for b in most}
        print(json.dumps({"schema_version": 1, "findings": rows, "bounds": pools}, indent=2))
    else:
        for row in rows:
            print(f"{row['where']}: {row['severity']}: {row['message']}")
        for bound in most:
            fits = "always fits" if bound.at_most_bytes <= bound.capacity_bytes else "may not fit"
            most_gib, limit_gib = fmt_gib(bound.at_most_bytes), fmt_gib(bound.capacity_bytes)
            print(f"{bound.pool}: at most {most_gib} of {limit_gib}: {fits} ({bound.why})")
        if not rows:
            print(f"{plan.pipeline.name}: no faults found")
    return 2 if failed else 0


def findings(scenario: Scenario, pipeline: Pipeline) -> list[dict[str, str]]:
    """{severity, where (file:line:col if it was written in a file), path, message} of each fault."""
    from cuzk.pipeline.check import check

    inline = isinstance(scenario.pipeline, dict)
    return [
        {"severity": f.severity, "where": str(scenario.where("pipeline", *_keys(f.path))) if inline else f.path,
         "path": f.path, "message": f.message}
        for f in check(pipeline)
    ]  # fmt: skip


def _keys(path: str) -> list[str | int]:
    """`workers.gpu.steps[3].then[0]` → its keys."""
    return [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
