"""`cuzk show SCENARIO`: each worker's numbered steps, or the pipeline as YAML to edit and load again."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cuzk.cli.scenario_args import add_scenario, load


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("show", help="print a scenario's pipeline", description=__doc__)
    add_scenario(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--yaml", action="store_true", help="the pipeline as YAML: edit it and name the file in `pipeline:`")
    form.add_argument("--json", action="store_true", help="the pipeline as JSON")


def run(args: argparse.Namespace) -> int:
    from cuzk.pipeline.program import bind
    from cuzk.report.pipeline_text import pipeline_text

    program = bind(load(args))
    data = program.pipeline.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if args.yaml:
        from ruamel.yaml import YAML

        writer = YAML()
        writer.width = 120
        writer.dump(data, sys.stdout)
    elif args.json:
        import json

        print(json.dumps({"schema_version": 1, "pipeline": data}, indent=2))
    else:
        print(pipeline_text(program))
    return 0
