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
"""A worker with more instances than this has them share lanes."""
Task = tuple[str, int | None, int | None]
"""One worker's walk of one set."""


def lanes_of(spans: Iterable[Span], most: int) -> list[tuple[str, Span]]:
    """(lane, span) for every span that takes time, on at most `most` lanes (the busiest)."""
    shown = [span for span in spans if span.seconds > 0]
    shared = _shared_lanes(shown)
    sharing = {_kind(worker) for worker, _, _ in shared}
    # a task's wait before it has run says nothing on a lane that others share
    told = [span for span in shown if span.kind == "run" or _kind(span.worker) not in sharing]
    rows = [(shared.get(_task(span)) or own_lane(span), span) for span in told]
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


def _task(span: Span) -> Task:
    return (span.worker, span.proof, span.partition)


def _kind(worker: str) -> str:
    return worker.partition(":")[0]


def _shared_lanes(spans: list[Span]) -> dict[Task, str]:
    """task -> lane, for workers with many instances."""
    begun: dict[Task, float] = {}
    ended: dict[Task, float] = {}
    for span in spans:
        if span.kind == "run":
            begun[_task(span)] = min(span.start, begun.get(_task(span), span.start))
            ended[_task(span)] = max(span.end, ended.get(_task(span), span.end))
    kinds: dict[str, list[Task]] = {}
    for task in begun:
        kinds.setdefault(_kind(task[0]), []).append(task)
    lanes: dict[Task, str] = {}
    for kind, tasks in kinds.items():
        if len({worker for worker, _, _ in tasks}) <= MANY:
            continue
        free_at: list[float] = []
        for task in sorted(tasks, key=lambda t: (begun[t], t[0])):
            slot = next((i for i, t in enumerate(free_at) if t <= begun[task]), len(free_at))
            free_at[slot : slot + 1] = [ended[task]]
            lanes[task] = f"{kind} ({slot + 1})"
    return lanes
