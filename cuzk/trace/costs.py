"""A table of step costs from measured traces: what a calibration is made of.

A step that ran beside more work than there are cores was slowed; its own work is what it would have taken alone:

    work = ∫ min(1, (C / k(t))^e) dt   over the step, with k(t) the cores asked for at time t, C the cores that there are

the inverse of the simulator's law for cores. Device steps are divided by their device's load in the same way.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cuzk.trace.event import Event
from cuzk.trace.spans import Span, spans


@dataclass(frozen=True)
class StepCost:
    """One row: a step of one circuit."""

    step: str
    circuit: str
    n: int
    seconds: float
    """Median of its work alone."""
    jitter: float
    """Coefficient of variation within a proof (robust: from the quartiles)."""
    group_jitter: float
    """Coefficient of variation of the proofs' medians, beyond what `jitter` explains."""
    low_s: float
    high_s: float
    wall_s: float
    """Median as measured, contention included."""
    bytes: int | None = None
    """Of a copy: what it moves."""

    def to_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v is not None}


def cost_table(traces: Iterable[Sequence[Event]], *, cores: float, demand: Mapping[str, float] | None = None,
               exponent: float = 1.0, scale: float = 1.0) -> list[StepCost]:  # fmt: skip
    """The table of one or more traces of the same machine.

    `cores`: how many there are. `demand`: cores that a step keeps busy; 0 for one that waits for a device, and 1 for
    steps that are not in it. `scale`: seconds of the table for one of the trace.
    """
    asked = demand or {}
    work: dict[tuple[str, str], list[tuple[int, float, float, int | None]]] = defaultdict(list)
    for number, events in enumerate(traces):
        circuits = {e.proof: e.name for e in events if e.kind == "admit"}
        found = spans(events)
        on_cores = _Load([(s, asked.get(s.name, 1.0)) for s in found if s.stream is None], cores, exponent)
        for span in found:
            busy = asked.get(span.name, 1.0) if span.stream is None else 0.0
            alone = on_cores.work(span) if busy > 0 else span.seconds
            proof = number << 32 | (span.proof or 0)
            work[span.name, circuits.get(span.proof, "")].append((proof, alone * scale, span.seconds * scale, span.bytes))
    return [_row(step, circuit, rows) for (step, circuit), rows in sorted(work.items())]


class _Load:
    """Cores asked for over time, and the integral of the share that each gets."""

    def __init__(self, users: list[tuple[Span, float]], cores: float, exponent: float) -> None:
        changes: dict[float, float] = defaultdict(float)
        for span, cores_used in users:
            changes[span.start] += cores_used
            changes[span.end] -= cores_used
        self._t = sorted(changes)
        self._share: list[float] = []
        self._integral = [0.0]
        load = 0.0
        for index, t in enumerate(self._t):
            load += changes[t]
            share = 1.0 if load <= cores + 1e-9 else float((cores / load) ** exponent)
            if index:
                self._integral.append(self._integral[-1] + self._share[-1] * (t - self._t[index - 1]))
            self._share.append(share)

    def work(self, span: Span) -> float:
        return self._upto(span.end) - self._upto(span.start)

    def _upto(self, t: float) -> float:
        index = bisect_left(self._t, t)  # t is one of them
        return self._integral[index]


def _row(step: str, circuit: str, rows: list[tuple[int, float, float, int | None]]) -> StepCost:
    alone = sorted(seconds for _, seconds, _, _ in rows)
    median = statistics.median(alone)
    by_proof: dict[int, list[float]] = defaultdict(list)
    for proof, seconds, _, _ in rows:
        by_proof[proof].append(seconds)
    centres = [statistics.median(values) for values in by_proof.values()]
    within = [v - statistics.median(values) for values in by_proof.values() for v in values if len(values) > 1]
    jitter = _spread(within) / median if median > 0 else 0.0
    group = _spread(centres) / median if median > 0 and len(centres) > 2 else 0.0
    a_proof = len(rows) / len(by_proof)
    group = max(0.0, group**2 - jitter**2 / a_proof) ** 0.5
    moved = {nbytes for *_, nbytes in rows}
    return StepCost(
        step, circuit, len(rows), median, jitter, group, alone[0], alone[-1],
        statistics.median(wall for _, _, wall, _ in rows), moved.pop() if len(moved) == 1 else None,
    )  # fmt: skip


def _spread(values: list[float]) -> float:
    """Standard deviation as the quartiles tell it: a few outliers do not count."""
    if len(values) < 2:
        return 0.0
    if len(values) < 8:
        return statistics.pstdev(values)
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 1.349
