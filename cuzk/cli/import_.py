"""`cuzk import`: what other provers leave behind, as files of cuzk.

cuzk import DIR -o OUT_DIR            every timeline of a folder with runs.yaml, as traces
cuzk import FILE.jsonl -o OUT.jsonl   one timeline
cuzk import daemon.log -o OUT.jsonl   a daemon's log: a trace that `cuzk plot` and `cuzk compare` read
cuzk import cuzk.toml --machine FILE -o scenario.yaml
                                      a daemon's configuration as a scenario; keys that the daemon ignores or takes for
                                      something else are named. --machine here: this machine, as `cuzk doctor` finds it
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("import", help="read configurations, timelines and logs of other provers", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("source", help="a folder of timelines, a timeline, a log or a cuzk.toml")
    parser.add_argument("-o", "--output", required=True, help="a folder for a folder, else a file")
    parser.add_argument("--machine", metavar="FILE", help="with a cuzk.toml: the machine that the daemon runs on, or 'here'")
    parser.add_argument("--circuit", default="circuits/porep-32g.yaml", metavar="FILE",
                        help="with a cuzk.toml: what it proves (default %(default)s)")  # fmt: skip
    parser.add_argument("--calibration", default="calibrations/reference.yaml", metavar="FILE",
                        help="with a cuzk.toml: what its steps cost (default %(default)s)")  # fmt: skip
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE",
                        help="with a cuzk.toml: a variable of its environment, e.g. CUZK_DISABLE_SPLIT_PROVE=1")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    from cuzk.errors import InputError

    source = Path(args.source)
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    if source.suffix == ".toml":
        return _toml(args, source)
    for option, given in (("--machine", args.machine), ("--env", args.env)):
        if given:
            raise InputError(f"{option} goes with a cuzk.toml, and {source} is none")
    written, dropped = _folder(source, Path(args.output)) if source.is_dir() else _file(source, Path(args.output))
    for line in dropped:
        print(line, file=sys.stderr)
    if args.json:
        print(json.dumps({"schema_version": 1, "traces": written, "dropped": dropped}, indent=2))
    else:
        for row in written:
            print(f"{row['trace']}: {row['events']} events")
    return 0


def _toml(args: argparse.Namespace, source: Path) -> int:
    from cuzk.daemon.scenario import scenario_of
    from cuzk.daemon.toml import read_toml
    from cuzk.errors import InputError
    from cuzk.model.circuit import Circuit
    from cuzk.model.machine import Machine
    from cuzk.model.scenario import load_part
    from cuzk.report.files import write_text

    settings = read_toml(source)
    if not args.machine:
        raise InputError("--machine is needed: what the daemon runs on (a file of cuzk doctor --emit machine, or 'here')")
    environment = dict(_variable(text) for text in args.env)
    if args.machine == "here":
        from cuzk.host.machine import look, machine_of

        machine = machine_of(look())
    else:
        machine = load_part(args.machine, "machine", Machine)
    circuit = load_part(args.circuit, "circuit", Circuit)
    names = {"circuit_file": _seen_from(args.circuit, args.output), "calibration_file": _seen_from(args.calibration, args.output)}
    machine_file = "" if args.machine == "here" else _seen_from(args.machine, args.output)
    found = scenario_of(settings, machine, circuit, machine_file=machine_file, environment=environment, **names)
    if args.machine == "here":
        gpus = found.data["machine"]["gpus"] if isinstance(found.data["machine"], dict) else None
        found.data["machine"] = machine.model_dump(mode="json", exclude_defaults=True) | ({"gpus": gpus} if gpus else {})
    lines = [note.text(str(source)) for note in found.notes]
    write_text(
        args.output, found.text(f"The daemon of {source.name} as a scenario. Written by: cuzk import\n" + "\n".join(lines))
    )
    for line in lines:
        print(line, file=sys.stderr)
    document = {
        "schema_version": 1, "scenario": args.output, "budget_bytes": found.budget_bytes,
        "notes": [{"line": n.line, "key": n.key, "fate": n.fate, "message": n.message} for n in found.notes],
    }  # fmt: skip
    print(json.dumps(document, indent=2) if args.json else f"{args.output}: cuzk sim {args.output}")
    return 0


def _variable(text: str) -> tuple[str, str]:
    from cuzk.errors import InputError

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--env takes NAME=VALUE, not {text!r}")
    return name, value


def _seen_from(name: str, output: str) -> str:
    """The file's name as the scenario must say it: relative to the scenario, or as it is where it is the library's."""
    import os

    if not Path(name).exists():
        return name
    return os.path.relpath(name, Path(output).parent)


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
        header = {"clock": "wall", "source": source.name, "machine": "", "device": "daemon",
                  "step_seconds": daemon_log.step_seconds(log)}  # fmt: skip
        dropped = [f"{source}: dropped: {n} x {what}" for what, n in sorted(log.dropped.items()) if n]
    write_trace(output, header, events)
    return [{"trace": str(output), "events": len(events)}], dropped
