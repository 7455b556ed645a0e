"""Who was busy when: spans put on lanes.

A pool worker has a lane of its own. Tasks that come in great numbers (a synthesis task for each partition) share lanes: each
task takes the first lane that is free, so that as many lanes show as tasks ran at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from cuzk.trace.spans import Span

MANY = 16
"""More instances of one worker than this share lanes."""


def lanes_of(spans: Iterable[Span], most: int) -> list[tuple[str, Span]]:
    """(lane, span) for every span that takes time, on at most `most` lanes (the busiest)."""
    shown = [span for span in spans if span.seconds > 0]
    shared = _shared_lanes(shown)
    rows = [(shared.get(span.worker) or own_lane(span), span) for span in shown if not _waits_to_start(span, shared)]
    busy: dict[str, float] = {}
    for lane, span in rows:
        busy[lane] = busy.get(lane, 0.0) + span.seconds * (span.kind == "run")
    kept = set(sorted(busy, key=lambda lane: -busy[lane])[:most])
    return [(lane, span) for lane, span in rows if lane in kept]


def own_lane(span: Span) -> str:
    return span.worker if span.stream is None else f"{span.worker} · {span.stream}"


def lane_order(lane: str) -> list[tuple[bool, Any]]:
    """Numbers inside names in order of size."""
    return [(part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", lane)]


def _kind(worker: str) -> str:
    return worker.partition(":")[0]


def _waits_to_start(span: Span, shared: dict[str, str]) -> bool:
    """The wait of a task that has not run yet says nothing on a lane that others share."""
    return span.kind == "wait" and span.worker in shared


def _shared_lanes(spans: list[Span]) -> dict[str, str]:
    """worker instance -> lane, for workers with many instances."""
    begun: dict[str, float] = {}
    ended: dict[str, float] = {}
    for span in spans:
        if span.kind == "run":
            begun[span.worker] = min(span.start, begun.get(span.worker, span.start))
            ended[span.worker] = max(span.end, ended.get(span.worker, span.end))
    instances: dict[str, list[str]] = {}
    for worker in begun:
        instances.setdefault(_kind(worker), []).append(worker)
    lanes: dict[str, str] = {}
    for kind, workers in instances.items():
        if len(workers) <= MANY:
            continue
        free_at: list[float] = []
        for worker in sorted(workers, key=lambda w: (begun[w], w)):
            slot = next((i for i, t in enumerate(free_at) if t <= begun[worker]), len(free_at))
            free_at[slot : slot + 1] = [ended[worker]]
            lanes[worker] = f"{kind} ({slot + 1})"
    return lanes
