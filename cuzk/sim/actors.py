"""The things that move through a simulated run: sets, the workers that act on them, streams and events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cuzk.pipeline import ops
from cuzk.pipeline.sets import PartitionSet
from cuzk.sim.rates import Cost

SimOp = Callable[["Actor"], Any]
"""One compiled step. True: go on; False: the actor waits and is resumed behind it; a number: go on there."""


class SetFailed(Exception):
    """The set of the actor has failed: it leaves it here."""


@dataclass(eq=False, slots=True, repr=False)
class SimSet(PartitionSet):
    """A set, with what the simulator needs to know of it."""

    spread: tuple[float, ...] = ()
    """The factor of the times of its jittered steps."""
    handles: dict[str, Handle] = field(default_factory=dict)
    events: dict[str, StreamEvent] = field(default_factory=dict)
    taken_s: float = 0.0


class Actor:
    """One worker at work: where it stands in its code, and on which set."""

    __slots__ = ("asked", "at_end", "code", "gpu", "handle", "kind", "name", "owns", "pc", "pool", "pset", "ramp", "since",
                 "slot", "started_v", "streams", "waits_for", "work_s")  # fmt: skip

    def __init__(self, kind: str, code: list[SimOp], pset: Any, gpu: int, pool: bool = False) -> None:
        self.kind, self.code, self.pset, self.gpu, self.pool = kind, code, pset, gpu, pool
        self.pc = 0
        self.owns = pset is not None
        self.handle: Handle | None = None
        self.at_end: SimOp | None = None
        """The call that must be made when the work in progress ends, even if its set has failed meanwhile."""
        self.streams: dict[str, Stream] | None = None
        self.waits_for: str | None = None
        self.asked: str | None = None
        """The claim whose wait is in the journal, and whose grant is not yet."""
        self.since = self.started_v = self.work_s = 0.0
        self.slot: int | None = None
        self.name = kind
        self.ramp: Any = None

    def __repr__(self) -> str:
        return f"{self.name} on {self.pset}"


class Handle:
    """A spawned worker, as others wait for it."""

    __slots__ = ("ended", "waiters")

    def __init__(self) -> None:
        self.ended = False
        self.waiters: list[Actor] = []


class StreamEvent:
    """Recorded behind the work of a stream; reached when that is done."""

    __slots__ = ("reached", "waiters")

    def __init__(self) -> None:
        self.reached = False
        self.waiters: list[Any] = []
        """Actors and streams."""


class Stream:
    """Work in order. Items: work, an event to reach, or (event,) to wait for."""

    __slots__ = ("busy", "gpu", "items", "label", "on_idle", "worker")

    def __init__(self, label: str, gpu: int, worker: Actor) -> None:
        self.label, self.gpu, self.worker = label, gpu, worker
        self.items: deque[Any] = deque()
        self.busy = False
        self.on_idle: list[Actor] = []


@dataclass(eq=False, slots=True)
class StreamWork:
    """A piece of a stream's work in progress."""

    stream: Stream
    pset: SimSet
    item: int
    """Number of the device's work, 0 if it is none."""
    cost: Cost
    op: ops.Run | ops.Copy
    seconds: float
