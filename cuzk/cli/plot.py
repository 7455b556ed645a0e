"""`cuzk plot TRACE [TRACE…] -o PAGE`: one offline HTML page, the curves of all traces on the same axes."""

from __future__ import annotations

import argparse
from typing import Any

MOST = 4
LABELS = {"sim": "predicted", "wall": "measured"}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("plot", help="one offline HTML page", description=__doc__)
    parser.add_argument("traces", nargs="+", metavar="TRACE", help=f"trace files (JSONL), {MOST} at most")
    parser.add_argument("-o", "--output", required=True, metavar="PAGE", help="the HTML file to write")
    parser.add_argument("--title", default="cuzk", help="heading of the page")
    parser.add_argument("--perfetto", metavar="FILE", help="also write the first trace for Perfetto or chrome://tracing")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError
    from cuzk.report.page import write_page
    from cuzk.trace.jsonl import read_trace

    if len(args.traces) > MOST:
        raise InputError(f"{len(args.traces)} traces given, {MOST} at most can be told apart on one page")
    traces = [(path, read_trace(path)) for path in args.traces]
    labels = [str(LABELS.get(str(trace.header.get("clock")), path)) for path, trace in traces]
    sides = []
    for label, (path, trace) in zip(labels, traces, strict=True):
        sides.append((f"{label} ({path})" if labels.count(label) > 1 else label, trace.events))
    write_page(args.output, sides, title=args.title)
    if args.perfetto:
        import json

        from cuzk.report.files import write_text
        from cuzk.trace.perfetto import perfetto

        write_text(args.perfetto, json.dumps(perfetto(traces[0][1].header, traces[0][1].events)))
    print(args.output)
    return 0
