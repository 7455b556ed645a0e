"""One event type, written by the simulator (`clock: sim`) and by the executor (`clock: wall`).

A trace file is JSONL: the first line is the header (`{"trace": 1, "clock": ..., "scenario_hash": ..., ...}`), then one
event a line. Keys that do not apply are left out. See docs/trace.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

Kind = Literal[
    "begin",    # a run or copy step starts (name, worker, stream)
    "end",      # … and ends
    "wait",     # a claim has to wait (name = lock, permit, channel or handle)
    "grant",    # … and is granted
    "alloc",    # buffer `name` in `pool`: bytes; live/reserved after it
    "free",
    "trim",     # an allocator's cache went back to the device
    "oom",      # bytes = request, live/reserved = level, capacity, holders
    "sample",   # resident bytes of a pool as the operating system or the driver reports
    "admit",    # proof enters
    "complete",  # partition done (partition ≥ 0) or whole proof (partition = −1)
    "fail",     # scope = proof | device | run, reason
    "unwind",   # a failed set gave everything back
    "dealloc",  # a deallocation path finished (name = path)
    "restart",  # a fresh worker process goes on in place of one that was lost (name = worker, reason)
]  # fmt: skip


@dataclass(slots=True)
class Event:
    """One event. Times in seconds from the start of the run; sizes in bytes."""

    t: float
    kind: Kind
    name: str = ""
    worker: str = ""
    gpu: int | None = None
    stream: str | None = None
    proof: int | None = None
    partition: int | None = None
    cost: str | None = None
    """the cost law of a step, where it is not the step's name"""
    cpu_s: float | None = None
    """processor time that the thread of this begin or end has used so far"""
    pool: str | None = None
    bytes: int | None = None
    live: int | None = None
    reserved: int | None = None
    resident: int | None = None
    capacity: int | None = None
    holders: list[tuple[str, int, int]] | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Only the keys that are set; `t` rounded to the microsecond."""
        out: dict[str, Any] = {"t": round(self.t, 6), "kind": self.kind}
        for f in _OPTIONAL:
            value = getattr(self, f)
            if value is not None and value != "":
                out[f] = value
        return out


_OPTIONAL = tuple(f.name for f in fields(Event) if f.name not in ("t", "kind"))
EVENT_KEYS = frozenset(("t", "kind", *_OPTIONAL))
