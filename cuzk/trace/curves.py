"""Levels of each pool over time, as step functions, and how far two of them are apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from cuzk.trace.event import Event

Level = Literal["live", "reserved", "resident"]
LEVELS: tuple[Level, ...] = ("live", "reserved", "resident")


@dataclass
class Curve:
    """A level in bytes that holds from `t[i]` (seconds) until the next one."""

    t: list[float] = field(default_factory=list)
    level: list[int] = field(default_factory=list)

    def add(self, t: float, level: int) -> None:
        if self.t and self.t[-1] >= t:
            self.level[-1] = level
        else:
            self.t.append(t)
            self.level.append(level)

    @property
    def peak(self) -> int:
        return max(self.level, default=0)

    @property
    def peak_at_s(self) -> float:
        """When the peak is first reached."""
        return self.t[self.level.index(self.peak)] if self.t else 0.0

    def at(self, t: float) -> int:
        """The level at time `t`; 0 before the first."""
        index = bisect_right(self.t, t)
        return self.level[index - 1] if index else 0

    def area(self, until: float) -> float:
        """Byte-seconds from 0 to `until`."""
        return distance(self, Curve(), until)


@dataclass
class PoolCurves:
    """The three levels of one pool. `peaks` are of single events: two events of one instant do not hide a peak."""

    live: Curve = field(default_factory=Curve)
    reserved: Curve = field(default_factory=Curve)
    resident: Curve = field(default_factory=Curve)
    capacity: int | None = None
    peaks: dict[str, int] = field(default_factory=dict)


def pool_curves(events: Iterable[Event]) -> dict[str, PoolCurves]:
    """By pool, from events in order of time."""
    pools: dict[str, PoolCurves] = {}
    for event in events:
        if event.pool is None or event.kind == "oom":  # an oom reports a level that a request would have exceeded
            continue
        pool = pools.setdefault(event.pool, PoolCurves())
        if event.capacity is not None:
            pool.capacity = event.capacity
        for name in LEVELS:
            level: int | None = getattr(event, name)
            if level is not None:
                getattr(pool, name).add(event.t, level)
                pool.peaks[name] = max(pool.peaks.get(name, 0), level)
    return pools


def resident_beside_live(traces: Iterable[Iterable[Event]], pool: str = "ram") -> int | None:
    """Bytes that are resident beside what the program holds: code, runtimes, allocators, a library's working memory.

    The difference of the two peaks (the largest over the traces): what matters for the next peak, while at other moments
    pages that are not touched yet, or working memory that comes and goes, blur it. None without samples.
    """
    found: list[int] = []
    for events in traces:
        live = resident = None
        for event in events:
            if event.pool != pool:
                continue
            if event.live is not None:
                live = max(live or 0, event.live)
            if event.kind == "sample" and event.resident is not None:
                resident = max(resident or 0, event.resident)
        if live is not None and resident is not None:
            found.append(max(0, resident - live))
    return max(found, default=None)


def distance(one: Curve, other: Curve, until: float, stretch: float = 1.0) -> float:
    """The area between two curves from 0 to `until`, in byte-seconds. `stretch`: factor on the times of `other`."""
    other_t = [t * stretch for t in other.t]
    times = sorted({t for t in (*one.t, *other_t, 0.0, until) if 0.0 <= t <= until})
    area, i, j = 0.0, 0, 0
    for start, end in pairwise(times):
        while i < len(one.t) and one.t[i] <= start:
            i += 1
        while j < len(other_t) and other_t[j] <= start:
            j += 1
        a = one.level[i - 1] if i else 0
        b = other.level[j - 1] if j else 0
        area += abs(a - b) * (end - start)
    return area
