"""`cuzk schema`: the JSON Schema of scenario files, for editors and other programs."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("schema", help="the JSON Schema of scenario files", description=__doc__)
    parser.add_argument("-o", "--output", help="write it to this file instead of stdout")


def run(args: argparse.Namespace) -> int:
    from cuzk.model.schema import scenario_schema

    text = json.dumps(scenario_schema(), indent=2, ensure_ascii=False)
    if args.output:
        from cuzk.report.files import write_text

        write_text(args.output, text + "\n")
    else:
        print(text)
    return 0
