"""Predicted against measured, as plain data: peaks, curves, step times, time a proof.

With a replay (the simulator with the measured durations) each figure's error splits in two: predicted − replay is the error of
the cost laws, replay − measured that of the scheduling model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuzk.trace.composites import composites
from cuzk.trace.curves import LEVELS, PoolCurves, distance, pool_curves
from cuzk.trace.drift import drift
from cuzk.trace.event import Event
from cuzk.trace.spans import StepTimes, spans, step_times
from cuzk.trace.throughput import Throughput, throughput

SCHEMA_VERSION = 1
_POOL_LANE = re.compile(r".+:\d+\.\d+")
"""`gpu:0.1`: the lanes of pool workers, by device and number."""
PATHS = ("predicted", "measured", "replay")


@dataclass
class Side:
    """One of the things compared. `curves` and `steps` are empty where only the result document is at hand."""

    label: str
    pools: dict[str, PoolCurves] = field(default_factory=dict)
    peaks: dict[str, dict[str, int]] = field(default_factory=dict)
    """Pool -> level -> bytes."""
    steps: dict[str, StepTimes] = field(default_factory=dict)
    composites: dict[str, StepTimes] = field(default_factory=dict)
    """Times of several steps together, under the name by which another prover reports them as one."""
    throughput: Throughput = field(default_factory=Throughput)
    completions: int = 0
    deallocations: dict[str, int] = field(default_factory=dict)
    oom: str | None = None
    """The pool that ran out."""
    end_s: float = 0.0
    proofs: int = 0
    """Whole proofs that came out."""
    totals: dict[str, float] = field(default_factory=dict)
    """Seconds of all runs of a step together."""
    waits: dict[str, float] = field(default_factory=dict)
    """Seconds of all waits for a lock, permit or channel together."""


def side_of_trace(label: str, events: Iterable[Event]) -> Side:
    events = list(events)
    pools = pool_curves(events)
    side = Side(label, pools, {pool: dict(curves.peaks) for pool, curves in pools.items()}, step_times(events))
    side.composites = composites(events)
    for span in spans(events, waits=True):
        into = side.waits if span.kind == "wait" else side.totals
        into[span.name] = into.get(span.name, 0.0) + span.seconds
    done = [e.t for e in events if e.kind == "complete" and e.partition != -1]
    whole = sum(e.kind == "complete" and e.partition == -1 for e in events)
    workers = {e.worker for e in events if _POOL_LANE.fullmatch(e.worker)}
    side.throughput = throughput(done, whole, max(1, len(workers)))
    side.completions = len(done)
    side.proofs = whole
    side.end_s = max((e.t for e in events), default=0.0)
    for event in events:
        if event.kind == "dealloc":
            side.deallocations[event.name] = side.deallocations.get(event.name, 0) + 1
        if event.kind == "oom" and side.oom is None:
            side.oom = event.pool
    return side


def side_of_document(label: str, document: Mapping[str, Any]) -> Side:
    """The side of a JSON document of `cuzk sim --json` or `cuzk run --json`: no curves, no steps."""
    side = Side(label)
    for pool, peak in (document.get("peaks") or {}).items():
        side.peaks[pool] = {name: peak[f"{name}_bytes"] for name in LEVELS if peak.get(f"{name}_bytes") is not None}
    given = document.get("throughput") or {}
    side.throughput = Throughput(given.get("s_per_proof"), given.get("steady_s_per_proof"))
    counts = document.get("counts") or {}
    side.completions = int(counts.get("completions") or 0)
    side.deallocations = dict(counts.get("deallocations") or {})
    side.oom = (document.get("oom") or {}).get("pool")
    return side


def compare(predicted: Side, measured: Side, replay: Side | None = None) -> dict[str, Any]:
    """The comparison as one document. Errors are relative to measured: 0.05 is 5 % too high."""
    sides = [predicted, measured] + ([replay] if replay is not None else [])
    return {
        "schema_version": SCHEMA_VERSION,
        "throughput": {
            name: _row(*[getattr(side.throughput, name) for side in sides]) for name in ("s_per_proof", "steady_s_per_proof")
        },
        "oom": {"predicted": predicted.oom, "measured": measured.oom, "agree": predicted.oom == measured.oom},
        "peaks": _peaks(sides),
        "curves": _curves(predicted, measured, replay),
        "steps": _steps(sides),
        "drift": drift(predicted, measured),
        "counts": {
            "completions": _row(*[side.completions for side in sides]),
            "deallocations": {
                path: _row(*[side.deallocations.get(path, 0) for side in sides])
                for path in sorted({p for side in sides for p in side.deallocations})
            },
        },
    }  # fmt: skip


def _row(predicted: float | None, measured: float | None, replay: float | None = None) -> dict[str, Any]:
    """The values side by side, and the errors that can be formed of them."""
    row: dict[str, Any] = {"predicted": predicted, "measured": measured, "error": _relative(predicted, measured, measured)}
    if replay is not None:
        row["replay"] = replay
        row["cost_error"] = _relative(predicted, replay, measured)
        row["scheduling_error"] = _relative(replay, measured, measured)
    return row


def _relative(value: float | None, reference: float | None, scale: float | None) -> float | None:
    if value is None or reference is None or not scale:
        return None
    return (value - reference) / scale


def _peaks(sides: list[Side]) -> dict[str, Any]:
    pools = sorted({pool for side in sides for pool, levels in side.peaks.items() if any(levels.values())})
    out: dict[str, Any] = {}
    for pool in pools:
        levels = [name for name in LEVELS if all(name in side.peaks.get(pool, {}) for side in sides[:2])]
        out[pool] = {f"{name}_bytes": _row(*[side.peaks.get(pool, {}).get(name) for side in sides]) for name in levels}
    return {pool: rows for pool, rows in out.items() if rows}


def _curves(predicted: Side, measured: Side, replay: Side | None) -> dict[str, Any]:
    """Area between the curves over the area under the measured one: as they are, and with the predicted one stretched to
    the measured duration (then only the shape counts)."""
    out: dict[str, Any] = {}
    for pool in sorted(predicted.pools.keys() & measured.pools.keys()):
        for name in ("resident", "live"):
            real = getattr(measured.pools[pool], name)
            if not real.t or not getattr(predicted.pools[pool], name).t:
                continue
            until = max(predicted.end_s, measured.end_s)
            area = real.area(measured.end_s)
            if area <= 0:
                continue
            row = {"distance": distance(real, getattr(predicted.pools[pool], name), until) / area}
            if predicted.end_s > 0:
                stretch = measured.end_s / predicted.end_s
                shape = distance(real, getattr(predicted.pools[pool], name), measured.end_s, stretch)
                row["shape_distance"] = shape / area
            if replay is not None and pool in replay.pools:
                again = getattr(replay.pools[pool], name)
                row["replay_distance"] = distance(real, again, max(replay.end_s, measured.end_s)) / area
            out.setdefault(pool, {})[name] = row
    return out


def _steps(sides: list[Side]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for side in reversed(sides[:2]) for name in side.steps)
    rows = []
    for name in names:
        times = [side.steps.get(name) or side.composites.get(name) for side in sides]
        medians = [t.median_s if t is not None else None for t in times]
        counts = {f"n_{path}": t.n if t is not None else 0 for path, t in zip(PATHS, times, strict=False)}
        rows.append({"name": name, **_row(*medians), **counts})
    return rows
