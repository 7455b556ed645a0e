"""`cuzk explain SCENARIO`: what the peak consists of, the waits that led there, what binds when, and what would change it.

Exit code 3 for a predicted out-of-memory, as `cuzk sim` has it.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from cuzk.cli.scenario_args import add_scenario, load, seed


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("explain", help="why a scenario comes out as it does", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_scenario(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--seed", type=seed, help="seed of the jitter (default: the scenario's)")
    parser.add_argument("--no-changes", action="store_true", help="do not simulate the nearest changes")


def run(args: argparse.Namespace) -> int:
    from cuzk.analysis.explanation import explain
    from cuzk.report.explanation_text import explanation_text

    found = explain(load(args), seed=args.seed, changes=not args.no_changes).to_json()
    print(json.dumps(found, indent=2) if args.json else explanation_text(found))
    return 3 if found["verdict"] == "oom" else 0
