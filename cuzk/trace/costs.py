"""A table of step costs from measured traces: what a calibration is made of.

A step that ran beside more work than there are cores was slowed; its own work is what it would have taken alone:

    work = ∫ min(1, (C / k(t))^e) dt   over the step, with k(t) the cores asked for at time t, C the cores that there are

the inverse of the simulator's law for cores. Where the trace has the thread's processor time, that is the work: it does
not see what else this machine was doing.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cuzk.trace.event import Event
from cuzk.trace.spans import Span, spans


@dataclass(frozen=True)
class StepCost:
    """One row: a step of one circuit."""

    step: str
    """The name of its cost law."""
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
    gap_s: float = 0.0
    """Median of the time around it on its worker that no step and no wait explains: allocations, wake-ups."""
    rate_bytes_s: float | None = None
    """A copy's median of bytes over seconds."""

    def to_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v is not None}


def cost_table(traces: Iterable[Sequence[Event]], *, cores: float, demand: Mapping[str, float] | None = None,
               exponent: float = 1.0, scale: float = 1.0) -> list[StepCost]:  # fmt: skip
    """The table of one or more traces of the same machine.

    `cores`: how many there are. `demand`: cores that a step keeps busy; 0 for one that waits for a device, and 1 for
    steps that are not in it. `scale`: seconds of the table for one of the trace.
    """
    asked = demand or {}
    work: dict[tuple[str, str], list[_Sample]] = defaultdict(list)
    for number, events in enumerate(traces):
        circuits = {e.proof: e.name for e in events if e.kind == "admit"}
        found = spans(events)
        gaps = _gaps(events, asked)
        on_cores = _Load([(s, _busy(s, asked)) for s in found], cores, exponent)
        for span in found:
            busy = _busy(span, asked)
            alone = span.seconds
            if busy > 0:
                alone = span.cpu_s if span.cpu_s is not None and busy == 1 else on_cores.work(span)
            proof = number << 32 | (span.proof or 0)
            gap = gaps.get((span.worker, span.start), 0.0)
            sample = _Sample(proof, alone * scale, span.seconds * scale, gap * scale, span.bytes)
            work[span.law, circuits.get(span.proof, "")].append(sample)
    return [_row(step, circuit, rows) for (step, circuit), rows in sorted(work.items())]


def _busy(span: Span, asked: Mapping[str, float]) -> float:
    """Cores that a step keeps busy. On a stream it works for a device, unless `asked` says otherwise."""
    return asked.get(span.law, 1.0 if span.stream is None else 0.0)


def effective_cores(events: Sequence[Event], *, cores: float, demand: Mapping[str, float] | None = None) -> float:
    """Cores that the run really got, `cores` at most: those at which the host steps' times on the clock, with the contention
    taken out, come to the processor time that their threads used. Less than there are where other work took its share.

    A trace without processor times, or too short to say, gives `cores`.
    """
    asked = demand or {}
    found = [s for s in spans(events) if s.stream is None and s.cpu_s is not None and asked.get(s.law, 1.0) == 1.0]
    used = sum(s.cpu_s or 0.0 for s in found)
    if used < 0.5:
        return cores

    def work(count: float) -> float:
        load = _Load([(s, 1.0) for s in found], count, 1.0)
        return sum(load.work(s) for s in found)

    low, high = 0.0, cores
    if work(high) <= used:
        return cores
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if work(middle) < used else (low, middle)
    return high


@dataclass(frozen=True, slots=True)
class _Sample:
    proof: int
    alone_s: float
    wall_s: float
    gap_s: float
    bytes: int | None


def _gaps(events: Sequence[Event], asked: Mapping[str, float]) -> dict[tuple[str, float], float]:
    """(worker, time of a begin) -> seconds around that step that no step and no wait explains.

    The time between two steps of one worker on one set goes to the later one; if that works for a device, to the last step
    before it that keeps a core busy, for it is the host that allocates. Where the trace has processor times it is no more
    than what the worker's thread used.
    """
    lanes: dict[str, _Lane] = defaultdict(_Lane)
    gaps: dict[tuple[str, float], float] = defaultdict(float)
    for event in events:
        if event.kind not in ("begin", "end", "grant"):
            continue
        worker, lane = event.worker, lanes[event.worker]
        on_host = event.stream is None
        place = (event.proof, event.partition)
        same_set = lane.place in (place, (None, None))
        if not same_set:
            lane.host_begin, lane.pending = None, []
            if event.kind == "begin" and on_host and event.cpu_s is not None and event.cpu_s < (lane.cpu_s or math.inf):
                gaps[worker, event.t] += event.cpu_s  # a thread of its own: what it has done so far was for this set
        if event.kind == "begin":
            busy = on_host and asked.get(event.cost or event.name, 1.0) > 0
            # a lane may have had another set before, and been idle since
            if same_set and lane.t is not None:
                owner = event.t if busy else lane.host_begin
                lane.pending.append((event.t if owner is None else owner, event.t - lane.t))
            if busy:
                lane.host_begin = event.t
        if on_host and event.cpu_s is not None:
            used = None if lane.cpu_s is None or not same_set else max(0.0, event.cpu_s - lane.cpu_s)
            for owner, gap in lane.pending:
                taken = gap if used is None else min(gap, used)
                gaps[worker, owner] += taken
                used = None if used is None else used - taken
            lane.pending = []
            lane.cpu_s = event.cpu_s
        elif event.cpu_s is None:
            for owner, gap in lane.pending:
                gaps[worker, owner] += gap
            lane.pending = []
        lane.t, lane.place = event.t, place
    return gaps


@dataclass(slots=True)
class _Lane:
    """The state of the walk over one worker's events."""

    t: float | None = None
    place: tuple[int | None, int | None] = (None, None)
    cpu_s: float | None = None
    host_begin: float | None = None
    pending: list[tuple[float, float]] = field(default_factory=list)


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


def _row(step: str, circuit: str, rows: list[_Sample]) -> StepCost:
    alone = sorted(row.alone_s for row in rows)
    median = statistics.median(alone)
    by_proof: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        by_proof[row.proof].append(row.alone_s)
    centres = [statistics.median(values) for values in by_proof.values()]
    within = [v - statistics.median(values) for values in by_proof.values() for v in values if len(values) > 1]
    jitter = _spread(within) / median if median > 0 else 0.0
    group = _spread(centres) / median if median > 0 and len(centres) > 2 else 0.0
    a_proof = len(rows) / len(by_proof)
    group = max(0.0, group**2 - jitter**2 / a_proof) ** 0.5
    rates = [row.bytes / row.alone_s for row in rows if row.bytes and row.alone_s > 0]
    return StepCost(
        step, circuit, len(rows), median, jitter, group, alone[0], alone[-1], statistics.median(r.wall_s for r in rows),
        statistics.median(r.gap_s for r in rows), statistics.median(rates) if rates else None,
    )  # fmt: skip


def _spread(values: list[float]) -> float:
    """Standard deviation as the quartiles tell it: a few outliers do not count."""
    if len(values) < 2:
        return 0.0
    if len(values) < 8:
        return statistics.pstdev(values)
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 1.349


def calibration_data(table: Sequence[StepCost], base: Mapping[str, Any], *, name: str, machine: str, software: str,
                     note: str, core_share: float = 1.0) -> dict[str, Any]:  # fmt: skip
    """A calibration as plain data (the layout of its file): the measured times of one circuit, and from `base` (laws by
    step, as data) what a trace does not tell: which resource a step uses, and how much of it.

    A step of `base` that the traces do not have keeps its law. The gap before a step counts as part of it. `core_share`:
    effective over existing cores; a measured step that keeps one busy asks for 1 / core_share of them.
    """
    measured = {row.step: row for row in table}
    costs: dict[str, Any] = {}
    for step, law in base.items():
        row = measured.get(step)
        if row is None or (law.get("link") is not None and not row.rate_bytes_s):  # a copy of unknown size says nothing
            costs[step] = dict(law)
            continue
        kept = {key: law[key] for key in ("cores", "dram", "dram_demand", "gpu", "link") if law.get(key) is not None}
        new: dict[str, Any] = {"jitter": round(min(1.0, row.jitter), 4), "group_jitter": round(min(1.0, row.group_jitter), 4)}
        if law.get("link") is not None:
            new |= {"rate": f"{row.rate_bytes_s:.0f}B/s", "seconds": f"{row.gap_s:.6f}s"}
        else:
            new["seconds"] = f"{row.seconds + row.gap_s:.6f}s"
        if core_share < 1 and str(kept.get("cores")) in ("1", "1.0"):
            new["cores"] = round(1 / core_share, 4)
        origin = f"measured: {note}, median of {row.n}"
        costs[step] = kept | new | {"provenance": dict.fromkeys(new, origin) | {"*": "assumed: as in the base calibration"}}
    return {"name": name, "software": software, "machine": machine, "costs": costs}
