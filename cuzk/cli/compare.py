"""`cuzk compare PREDICTED MEASURED`: peaks, curves, step times and time a proof, side by side.

Each is a trace (`cuzk sim --trace`, `cuzk run -o`) or a result document (`--json`); curves and steps need traces. With
--scenario (or --replay) the scenario is simulated again with the measured durations, and each error splits: predicted -
replay is the cost laws', replay - measured the scheduling model's.

Exit code 0; with --gate 4 if a peak or the time a proof is further off than allowed, or the verdicts differ.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.trace.compare import Side
    from cuzk.trace.spans import StepTimes


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser("compare", help="predicted against measured", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("predicted", metavar="PREDICTED", help="trace or result document")
    parser.add_argument("measured", metavar="MEASURED", help="trace or result document")
    parser.add_argument("--replay", metavar="TRACE", help="trace of a simulation with the measured durations")
    parser.add_argument("--scenario", metavar="FILE", help="make that replay here: the scenario that MEASURED (a trace) ran")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="PATH=VALUE",
                        help="override a value of that scenario (repeatable)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--html", metavar="FILE", help="write a page with both traces")
    parser.add_argument("--gate", type=_percent, nargs="?", const=0.1, metavar="PERCENT",
                        help="exit 4 if a resident peak or s/proof is further off than this (default 10)")  # fmt: skip


def _percent(text: str) -> float:
    try:
        value = float(text.rstrip("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a percentage, not {text!r}") from None
    if not 0 < value < 1000:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text!r}")
    return value / 100


def run(args: argparse.Namespace) -> int:
    from cuzk.trace.compare import compare

    replay = _side("replay", args.replay) if args.replay else None
    if args.scenario and replay is None:
        replay = _replayed(args)
    document = compare(_side("predicted", args.predicted), _side("measured", args.measured), replay)
    missed = _missed(document, args.gate) if args.gate is not None else []
    if args.gate is not None:
        document["gate"] = {"limit": args.gate, "missed": missed}
    if args.html:
        _page(args, "\n".join([table(document), *missed]))
    print(json.dumps(document, indent=2) if args.json else "\n".join([table(document), *missed]))
    return 4 if missed else 0


def _page(args: argparse.Namespace, text: str) -> None:
    """Both traces on the same axes, the table below. Raises InputError where one of them is a document."""
    from cuzk.errors import InputError
    from cuzk.report.page import write_page
    from cuzk.trace.jsonl import read_trace

    sides = []
    for label, path in (("predicted", args.predicted), ("measured", args.measured)):
        with open(path, "rb") as file:
            if b'"trace"' not in file.readline(1 << 16):
                raise InputError(f"{path}: a page needs traces; a document has no curves")
        sides.append((label, read_trace(path).events))
    write_page(args.html, sides, title="cuzk compare", texts=[("Figure by figure", text)])


def _replayed(args: argparse.Namespace) -> Side:
    """The scenario, simulated with the durations of the measured trace. Raises InputError, ScenarioError."""
    from cuzk.analysis.replays import replay
    from cuzk.model.scenario import load_scenario
    from cuzk.trace.compare import side_of_trace
    from cuzk.trace.jsonl import read_trace

    scenario = load_scenario(args.scenario, args.overrides)
    result = replay(scenario, read_trace(args.measured).events, trace=True)
    return side_of_trace("replay", result.events or [])


def _side(label: str, path: str) -> Side:
    """A trace or a document, by its content. Raises InputError."""
    from cuzk import strict_json
    from cuzk.errors import InputError
    from cuzk.trace.compare import side_of_document, side_of_trace
    from cuzk.trace.jsonl import read_trace

    with open(path, "rb") as file:
        head = file.readline(1 << 16)
    if b'"trace"' in head:
        trace = read_trace(path)
        side = side_of_trace(label, trace.events)
        side.steps = _timed(path, trace.header) | side.steps
        return side
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    document = strict_json.loads(path, raw) if len(raw) <= MOST_BYTES else None
    if not isinstance(document, dict) or "verdict" not in document or not isinstance(document.get("peaks"), dict):
        raise InputError(f"{path}: neither a trace nor a document of cuzk sim --json or cuzk run --json")
    return side_of_document(label, document)


def _timed(path: str, header: dict[str, Any]) -> dict[str, StepTimes]:
    """Step times without a place in time, as the header of an imported log has them. Raises InputError."""
    from cuzk.errors import InputError
    from cuzk.trace.spans import times_of

    given = header.get("step_seconds", {})
    right = isinstance(given, dict) and all(
        isinstance(times, list)
        and times
        and all(isinstance(t, (int, float)) and not isinstance(t, bool) and t >= 0 for t in times)
        for times in given.values()
    )
    if not right:
        raise InputError(f"{path}:1: step_seconds must be a mapping of steps to lists of seconds")
    return {step: times_of(times) for step, times in given.items()}


MOST_BYTES = 1 << 26


def _missed(document: dict[str, Any], limit: float) -> list[str]:
    missed = []
    if not document["oom"]["agree"]:
        oom = document["oom"]
        missed.append(f"gate missed: out of memory: predicted {oom['predicted'] or 'none'}, measured {oom['measured'] or 'none'}")
    rows = {"s/proof": document["throughput"]["s_per_proof"]}
    rows |= {f"peak {pool}": levels["resident_bytes"] for pool, levels in document["peaks"].items() if "resident_bytes" in levels}
    for what, row in rows.items():
        if row["error"] is not None and abs(row["error"]) > limit:
            missed.append(f"gate missed: {what}: {row['error']:+.1%}, allowed {limit:.1%}")
    return missed


def table(document: dict[str, Any]) -> str:
    """The comparison as text. The replay's column appears if it is there."""
    replayed = any("replay" in row for row in [*document["throughput"].values(), *document["steps"]])
    head = ["", "predicted", "measured", "error"] + (["replay", "cost laws", "scheduling"] if replayed else [])
    rows: list[list[str]] = [head]

    def add(label: str, row: dict[str, Any], show: Any) -> None:
        if row["predicted"] is None and row["measured"] is None:
            return
        cells = [label, show(row["predicted"]), show(row["measured"]), _share(row["error"])]
        if replayed:
            cells += [show(row.get("replay")), _share(row.get("cost_error")), _share(row.get("scheduling_error"))]
        rows.append(cells)

    add("s/proof", document["throughput"]["s_per_proof"], _seconds)
    add("s/proof, steady", document["throughput"]["steady_s_per_proof"], _seconds)
    for pool, levels in document["peaks"].items():
        for level, row in levels.items():
            add(f"peak {pool} {level.removesuffix('_bytes')}", row, _gib)
    for step in document["steps"]:
        add(f"step {step['name']}", step, _seconds)
    add("completions", document["counts"]["completions"], _count)
    for path, row in document["counts"]["deallocations"].items():
        add(f"deallocations {path}", row, _count)
    lines = _aligned(rows)
    for pool, levels in document["curves"].items():
        for level, row in levels.items():
            shape = f", {row['shape_distance']:.1%} with durations made equal" if "shape_distance" in row else ""
            again = f", replay {row['replay_distance']:.1%}" if "replay_distance" in row else ""
            lines.append(f"curve {pool} {level}: apart by {row['distance']:.1%} of the area{shape}{again}")
    lines += _drift(document["drift"])
    oom = document["oom"]
    if oom["predicted"] or oom["measured"]:
        lines.append(f"out of memory: predicted {oom['predicted'] or 'none'}, measured {oom['measured'] or 'none'}")
    return "\n".join(lines)


def _drift(drift: dict[str, Any]) -> list[str]:
    cause, under = drift["cause"], drift["worst_under"]
    lines = []
    if cause is not None:
        lines.append(f"largest difference: {cause['kind']} {cause['name']}, {cause['seconds_a_proof']:+.3f} s a proof "
                     f"(predicted {cause['predicted_s_a_proof']:.3f}, measured {cause['measured_s_a_proof']:.3f})")  # fmt: skip
    if under is not None:
        lines.append(f"furthest too low: {under['name']}, predicted {under['error']:+.1%}")
    return lines


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
            for row in rows]  # fmt: skip


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1%}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f} s"


def _gib(value: float | None) -> str:
    return "–" if value is None else f"{value / 2**30:.2f} GiB"


def _count(value: float | None) -> str:
    return "–" if value is None else str(int(value))
