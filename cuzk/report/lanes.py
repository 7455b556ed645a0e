"""Series for a picture, drawn from trace events: levels of each pool with their holders, and who was busy when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cuzk.trace.event import Event

GIB = 2**30
MAX_HOLDERS = 6


@dataclass
class Curve:
    """A level over time. `t` in seconds, `gib` in GiB, `hover` the largest holders as lines of HTML."""

    t: list[float] = field(default_factory=list)
    gib: list[float] = field(default_factory=list)
    hover: list[str] = field(default_factory=list)

    def add(self, t: float, nbytes: int, hover: str = "") -> None:
        if self.t and self.t[-1] == t:
            self.gib[-1], self.hover[-1] = nbytes / GIB, hover
        else:
            self.t.append(t)
            self.gib.append(nbytes / GIB)
            self.hover.append(hover)

    @property
    def peak(self) -> float:
        return max(self.gib, default=0.0)


@dataclass
class PoolCurves:
    """What a pool held: `live` (the program), `reserved` (its allocators), `resident` (sampled), and its capacity."""

    live: Curve = field(default_factory=Curve)
    reserved: Curve = field(default_factory=Curve)
    resident: Curve = field(default_factory=Curve)
    capacity_gib: float | None = None
    ooms: list[tuple[float, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Bar:
    """One stretch of work (or of waiting, `kind` = "wait") on a lane."""

    lane: str
    name: str
    kind: str
    start: float
    end: float
    proof: int | None
    partition: int | None


def pool_curves(events: Iterable[Event]) -> dict[str, PoolCurves]:
    """The curves of every pool that the events name."""
    pools: dict[str, PoolCurves] = {}
    held: dict[str, dict[str, list[int]]] = {}
    for event in events:
        if event.pool is None:
            continue
        pool = pools.setdefault(event.pool, PoolCurves())
        if event.capacity:
            pool.capacity_gib = event.capacity / GIB
        if event.kind in ("alloc", "free") and event.bytes is not None:
            row = held.setdefault(event.pool, {}).setdefault(event.name, [0, 0])
            sign = 1 if event.kind == "alloc" else -1
            row[0] += sign
            row[1] += sign * event.bytes
        if event.live is not None:
            pool.live.add(event.t, event.live, _holders(held.get(event.pool, {})))
        if event.reserved is not None and event.reserved != event.live:
            pool.reserved.add(event.t, event.reserved)
        if event.resident is not None:
            pool.resident.add(event.t, event.resident)
        if event.kind == "oom":
            pool.ooms.append((event.t, f"{event.name} needs {(event.bytes or 0) / GIB:.1f} GiB"))
    return pools


def _holders(held: dict[str, list[int]]) -> str:
    rows = sorted(((size, name, count) for name, (count, size) in held.items() if count > 0), reverse=True)
    lines = [f"{name} × {count}: {size / GIB:.2f} GiB" for size, name, count in rows[:MAX_HOLDERS]]
    return "<br>".join(lines + ([f"and {len(rows) - MAX_HOLDERS} more"] if len(rows) > MAX_HOLDERS else []))


def bars(events: Iterable[Event], with_waits: bool = True) -> list[Bar]:
    """Every begin/end pair (and wait/grant pair) as a bar. What never ended is left out."""
    open_: dict[tuple[object, ...], Event] = {}
    closing = {"end": "begin", "grant": "wait"}
    out: list[Bar] = []
    for event in events:
        if event.kind not in ("begin", "end", "wait", "grant") or (not with_waits and event.kind in ("wait", "grant")):
            continue
        key = (closing.get(event.kind, event.kind), event.worker, event.stream, event.name, event.proof, event.partition)
        if event.kind in ("begin", "wait"):
            open_[key] = event
        elif (begin := open_.pop(key, None)) is not None and event.t > begin.t:
            lane = event.worker if event.stream is None else f"{event.worker} · {event.stream}"
            kind = "wait" if event.kind == "grant" else "run"
            out.append(Bar(lane, event.name, kind, begin.t, event.t, event.proof, event.partition))
    return out
