"""The present, for status pages: lanes (who is busy) and curves (memory) of the last minutes, predicted beside measured."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from cuzk.service.timeline import Timeline
from cuzk.trace.event import Event
from cuzk.trace.spans import spans

KEPT_S = 600.0
MOST_SPANS, MOST_LEVELS = 8000, 4000
SAMPLE_S = 0.25
"""Levels of a pool are kept this far apart."""

Row = tuple[str, str, float, float, str, int | None]
"""(lane, step, start, end, job, partition); seconds since the service began."""


class Live:
    """Events come from threads of the engine, readers from the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._zero = clock, clock()
        self._mutex = threading.Lock()
        self._spans: deque[Row] = deque(maxlen=MOST_SPANS)
        self._open: dict[tuple[str, str, str | None, str, int | None], float] = {}
        self._levels: dict[tuple[str, str], deque[tuple[float, int]]] = {}
        self._predicted: dict[str, tuple[float | None, list[Event]]] = {}
        self._states: dict[str, dict[int, str]] = {}
        self.timeline = Timeline(self.now)
        self.events: dict[str, list[Event]] = {}
        """Those of the jobs that run: a calibration can be made from them."""

    def now(self) -> float:
        return self._clock() - self._zero

    def begin(self, job: str) -> None:
        with self._mutex:
            self._states[job] = {}
            self.events[job] = []

    def end(self, job: str) -> None:
        with self._mutex:
            self._states.pop(job, None)
            self.events.pop(job, None)
            for key in [key for key in self._open if key[3] == job]:
                del self._open[key]
            while len(self._predicted) > 8:
                self._predicted.pop(next(iter(self._predicted)))

    def predict(self, job: str, events: list[Event]) -> None:
        """The trace that the simulator expects of a job that is about to start."""
        with self._mutex:
            self._predicted[job] = (None, events)

    def states(self, job: str) -> dict[int, str]:
        """Partition -> pending, synthesizing, gpu, done."""
        with self._mutex:
            return dict(self._states.get(job, {}))

    def sink(self, job: str) -> Callable[[Event], None]:
        def sink(event: Event) -> None:
            at = self.now()
            self.timeline.take(job, event)
            with self._mutex:
                if len(self.events.get(job, ())) < 200_000 and job in self.events:
                    self.events[job].append(event)
                self._take(job, event, at)

        return sink

    def _take(self, job: str, event: Event, at: float) -> None:
        predicted = self._predicted.get(job)
        if predicted is not None and predicted[0] is None and event.kind == "begin":
            self._predicted[job] = (at - event.t, predicted[1])
        if event.kind in ("begin", "end"):
            key = (event.worker, event.name, event.stream, job, event.partition)
            if event.kind == "begin":
                self._open[key] = at
                self._step(job, event)
            elif (start := self._open.pop(key, None)) is not None:
                lane = event.worker if event.stream is None else f"{event.worker} · {event.stream}"
                self._spans.append((lane, event.name, start, at, job, event.partition))
        elif event.kind == "complete" and event.partition is not None and event.partition >= 0:
            self._states.setdefault(job, {})[event.partition] = "done"
        if event.pool is not None and event.kind != "oom":
            for level in ("live", "resident"):
                value = getattr(event, level)
                if value is not None:
                    rows = self._levels.setdefault((event.pool, level), deque(maxlen=MOST_LEVELS))
                    if rows and at - rows[-1][0] < SAMPLE_S:
                        rows[-1] = (rows[-1][0], max(rows[-1][1], value))
                    else:
                        rows.append((at, value))

    def _step(self, job: str, event: Event) -> None:
        if event.partition is None:
            return
        states = self._states.setdefault(job, {})
        if event.worker.startswith("gpu"):
            states[event.partition] = "gpu"
        elif event.worker.startswith("synthesis"):
            states.setdefault(event.partition, "synthesizing")

    def document(self) -> dict[str, Any]:
        """For the page: times in seconds since the service began."""
        now = self.now()
        with self._mutex:
            rows = [row for row in self._spans if row[3] > now - KEPT_S]
            rows += [(worker, name, start, now, job, partition)
                     for (worker, name, _, job, partition), start in self._open.items()]  # fmt: skip
            levels = {f"{pool} {level}": [row for row in found if row[0] > now - KEPT_S]
                      for (pool, level), found in self._levels.items()}  # fmt: skip
            predicted = dict(self._predicted)
        lanes: list[Row] = []
        curves: dict[str, list[tuple[float, int]]] = {}
        for job, (zero, events) in predicted.items():
            if zero is None or zero < now - KEPT_S:
                continue
            lanes += [(span.worker if span.stream is None else f"{span.worker} · {span.stream}", span.name, zero + span.start,
                       zero + span.end, job, span.partition) for span in spans(events)]  # fmt: skip
            for event in events:
                level = event.live
                if event.pool is not None and level is not None and event.kind != "oom":
                    curves.setdefault(f"{event.pool} live", []).append((zero + event.t, level))
        return {"now": now, "spans": rows, "levels": levels, "predicted_spans": lanes[-MOST_SPANS:],
                "predicted_levels": {name: rows[:: max(1, len(rows) // 2000)] for name, rows in curves.items()}}  # fmt: skip
