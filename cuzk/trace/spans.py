"""Steps as spans: every begin with its end, in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from cuzk.trace.event import Event

_CLOSES = {"end": "begin", "grant": "wait"}


@dataclass(frozen=True, slots=True)
class Span:
    """One step on one lane (`kind` = "run"), or one wait for a claim (`kind` = "wait")."""

    name: str
    kind: str
    worker: str
    stream: str | None
    proof: int | None
    partition: int | None
    start: float
    end: float
    bytes: int | None = None
    cost: str | None = None
    cpu_s: float | None = None
    """Processor time that its thread used meanwhile."""

    @property
    def law(self) -> str:
        """The name of its cost law."""
        return self.cost or self.name

    @property
    def seconds(self) -> float:
        return self.end - self.start


def spans(events: Iterable[Event], waits: bool = False) -> list[Span]:
    """In order of their ends. What never ended is left out."""
    opened: dict[tuple[object, ...], Event] = {}
    out: list[Span] = []
    for event in events:
        kind = event.kind
        if kind not in ("begin", "end") and not (waits and kind in ("wait", "grant")):
            continue
        key = (_CLOSES.get(kind, kind), event.worker, event.stream, event.name, event.proof, event.partition)
        if kind in ("begin", "wait"):
            opened[key] = event
        elif (begin := opened.pop(key, None)) is not None:
            cpu_s = event.cpu_s - begin.cpu_s if event.cpu_s is not None and begin.cpu_s is not None else None
            out.append(Span(event.name, "run" if kind == "end" else "wait", event.worker, event.stream, event.proof,
                            event.partition, begin.t, event.t, event.bytes, begin.cost, cpu_s))  # fmt: skip
    return out


@dataclass(frozen=True)
class StepTimes:
    """The time that a step took, over all its runs."""

    n: int
    median_s: float


def step_times(events: Iterable[Event]) -> dict[str, StepTimes]:
    """By step, in order of first end."""
    taken: dict[str, list[float]] = {}
    for span in spans(events):
        taken.setdefault(span.name, []).append(span.seconds)
    return {name: times_of(values) for name, values in taken.items()}


def times_of(values: Iterable[float]) -> StepTimes:
    """The summary of some times, at least one."""
    taken = list(values)
    return StepTimes(len(taken), statistics.median(taken))
