"""`cuzk import`: timelines of the stand-alone prover, or a daemon's log, as traces that `cuzk plot` and `cuzk compare` read.

cuzk import DIR -o OUT_DIR          every timeline of a folder with runs.yaml
cuzk import FILE.jsonl -o OUT.jsonl one timeline
cuzk import daemon.log -o OUT.jsonl the TIMELINE lines of a log
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("import", help="read timelines and logs into traces", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("source", help="a folder of timelines, a timeline or a log")
    parser.add_argument("-o", "--output", required=True, help="a folder for a folder, else a file")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError

    source = Path(args.source)
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    written, dropped = _folder(source, Path(args.output)) if source.is_dir() else _file(source, Path(args.output))
    for line in dropped:
        print(line, file=sys.stderr)
    if args.json:
        print(json.dumps({"schema_version": 1, "traces": written, "dropped": dropped}, indent=2))
    else:
        for row in written:
            print(f"{row['trace']}: {row['events']} events")
    return 0


def _folder(source: Path, output: Path) -> tuple[list[dict[str, Any]], list[str]]:
    from cuzk.errors import InputError
    from cuzk.trace.jsonl import write_trace
    from cuzk.trace.timelines import events_of, header_of, read_timeline

    files = sorted(source.glob("*.jsonl"))
    if not files:
        raise InputError(f"{source}: no timeline (*.jsonl) in this folder")
    if output.exists() and not output.is_dir():
        raise InputError(f"{output}: is a file; a folder of timelines needs a folder to write to")
    written, dropped = [], []
    for file in files:
        try:
            timeline = read_timeline(file)
        except InputError as error:
            dropped.append(str(error))
            continue
        dropped += timeline.dropped
        output.mkdir(parents=True, exist_ok=True)
        events = events_of(timeline)
        write_trace(output / file.name, header_of(timeline), events)
        written.append({"trace": str(output / file.name), "events": len(events)})
    if not written:
        raise InputError("\n".join(dropped))
    return written, dropped


def _file(source: Path, output: Path) -> tuple[list[dict[str, Any]], list[str]]:
    from cuzk.errors import InputError
    from cuzk.trace import daemon_log, timelines
    from cuzk.trace.jsonl import write_trace

    with source.open("rb") as file:
        is_timeline = b'"part_cols"' in file.readline(1 << 20)
    if is_timeline:
        timeline = timelines.read_timeline(source)
        header, events, dropped = timelines.header_of(timeline), timelines.events_of(timeline), timeline.dropped
    else:
        log = daemon_log.read_log(source)
        events = daemon_log.events_of(log)
        if not events:
            raise InputError(f"{source}: no TIMELINE line: a trace needs times (cuzk calibrate --log reads the rest)")
        header = {"clock": "wall", "source": source.name, "machine": "", "device": "daemon"}
        dropped = [f"{source}: dropped: {n} x {what}" for what, n in sorted(log.dropped.items()) if n]
    write_trace(output, header, events)
    return [{"trace": str(output), "events": len(events)}], dropped
