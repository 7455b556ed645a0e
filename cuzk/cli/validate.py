"""`cuzk validate`: predictions against measured points, row by row.

--points FILE: runs of a whole system (default: the reference system's, from the library). --runs DIR: timelines of the
stand-alone reference prover (a folder with runs.yaml). Exit code 0 when every usable row was predicted, 2 when rows were
faulty (the others are still predicted), 4 with --gate when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

REFERENCE = "reference"
SECOND = "h200-supraseal"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("validate", help="back-test predictions against measured points", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--points", metavar="FILE", help="measured points (YAML)")
    source.add_argument("--runs", nargs="?", const="", metavar="DIR",
                        help="measured runs of the stand-alone reference prover (default: the library's)")  # fmt: skip
    parser.add_argument("--calibration", metavar="FILE", help="the calibration to judge (default: that of the library)")
    parser.add_argument("--seeds", type=_count, default=21, metavar="N", help="runs a row, for the bands (default 21)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--gate", action="store_true", help="exit with 4 if a goal is missed")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the report: .md, .html or .json")


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"must be a whole number above zero, not {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from cuzk.accuracy.library import cross_validation_of, load_calibration, place, reference_points
    from cuzk.accuracy.measured_points import read_points
    from cuzk.report.accuracy import text
    from cuzk.report.progress import done, say

    if args.runs is not None:
        from cuzk.accuracy.runs import backtest_runs

        folder = args.runs or str(place("data", "h200-reference"))
        found = backtest_runs(folder, load_calibration(args.calibration or SECOND), args.seeds, progress=say)
    else:
        from cuzk.accuracy.backtest import backtest

        points = read_points(args.points or reference_points())
        found = backtest(points, load_calibration(args.calibration or REFERENCE), args.seeds, progress=say)
    done()
    if not (args.points or args.runs):
        found.source = "the library's data/" + ("reference/measurements.yaml" if args.runs is None else "h200-reference")
    document = found.to_json()
    left_out = cross_validation_of(args.calibration or (REFERENCE if args.runs is None else SECOND))
    if left_out:
        document["cross_validation"] = left_out
    for line in [*found.warnings, *found.faults]:
        print(line, file=sys.stderr)
    if args.output and not found.faults:
        _write(args.output, document)
    print(json.dumps(document, indent=2) if args.json else text(document))
    if found.faults:
        return 2
    return 4 if args.gate and document["failed_gates"] else 0


def _write(path: str, document: dict[str, Any]) -> None:
    from cuzk.report.files import write_text

    if path.endswith(".html"):
        from cuzk.report.accuracy_page import write_accuracy_page

        write_accuracy_page(path, document)
    elif path.endswith(".json"):
        write_text(path, json.dumps(document, indent=2) + "\n")
    else:
        from cuzk.report.accuracy import markdown

        write_text(path, markdown(document))
