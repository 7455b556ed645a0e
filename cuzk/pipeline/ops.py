"""Bound steps: what the lines of a worker become for one circuit on one GPU. Every name is an instance, every formula a number.

One class a verb, as in steps.py. Whoever walks them is a `Visitor`: it says what each verb means to it, and a verb that it
forgets is a type error, here and there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, assert_never

from cuzk.model.policy import Processor
from cuzk.pipeline.prices import Price

Place = tuple[str | int, ...]
"""Keys of a step in the pipeline: ("workers", "gpu", "steps", 3)."""
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Want:
    """One buffer as it is allocated: how much, from which pool, by which allocator."""

    buffer: str
    pool: str
    nbytes: int
    cached: bool
    lazy: bool
    """Its pages become resident while a later step runs, not at once."""
    kept: bool
    """Made once a device, and kept; else it belongs to the set."""


@dataclass(frozen=True, slots=True)
class Read:
    """Bytes that a step reads of something resident."""

    resident: str
    pool: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Get:
    place: Place
    channel: str


@dataclass(frozen=True, slots=True)
class Put:
    place: Place
    channel: str


@dataclass(frozen=True, slots=True)
class Acquire:
    place: Place
    name: str
    """The lock or permit in the pipeline; `instance`: that of this GPU."""
    instance: str
    units: int


@dataclass(frozen=True, slots=True)
class Release:
    place: Place
    name: str
    instance: str


@dataclass(frozen=True, slots=True)
class Alloc:
    place: Place
    wants: tuple[Want, ...]


@dataclass(frozen=True, slots=True)
class TryAlloc:
    place: Place
    wants: tuple[Want, ...]
    guard: int
    then: tuple[Op, ...]
    otherwise: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Free:
    place: Place
    buffers: tuple[str, ...]
    """Those that belong to the set; what a device keeps is never freed."""
    after: str | None
    path: str | None
    """The deallocation path that ends here."""
    host: bool
    """Whether any of it is the host's memory."""


@dataclass(frozen=True, slots=True)
class Trim:
    place: Place
    pool: str


@dataclass(frozen=True, slots=True)
class Run:
    place: Place
    name: str
    law: str
    at: Processor
    stream: str | None
    """The stream that it is queued on; None: the worker waits for it."""
    touches: tuple[Want, ...]
    """Buffers of the set whose pages become resident while it runs."""
    reads: tuple[Read, ...]
    uses: tuple[str, ...]
    price: Price | None
    """None: the scenario has no calibration, or it has no law for this step."""


@dataclass(frozen=True, slots=True)
class Copy:
    place: Place
    law: str
    target: str
    source: tuple[str, ...]
    direction: Literal["h2d", "d2h"]
    stream: str | None
    nbytes: int
    price: Price | None


@dataclass(frozen=True, slots=True)
class Record:
    place: Place
    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class Wait:
    place: Place
    event: str


@dataclass(frozen=True, slots=True)
class StreamWait:
    place: Place
    event: str
    stream: str


@dataclass(frozen=True, slots=True)
class Spawn:
    place: Place
    worker: str
    handle: str | None
    moves: bool


@dataclass(frozen=True, slots=True)
class Join:
    place: Place
    handle: str


@dataclass(frozen=True, slots=True)
class Complete:
    place: Place


Op = (
    Get
    | Put
    | Acquire
    | Release
    | Alloc
    | TryAlloc
    | Free
    | Trim
    | Run
    | Copy
    | Record
    | Wait
    | StreamWait
    | Spawn
    | Join
    | Complete
)


class Visitor(ABC, Generic[R]):
    """One meaning of every verb."""

    @abstractmethod
    def get(self, op: Get) -> R: ...
    @abstractmethod
    def put(self, op: Put) -> R: ...
    @abstractmethod
    def acquire(self, op: Acquire) -> R: ...
    @abstractmethod
    def release(self, op: Release) -> R: ...
    @abstractmethod
    def alloc(self, op: Alloc) -> R: ...
    @abstractmethod
    def try_alloc(self, op: TryAlloc) -> R: ...
    @abstractmethod
    def free(self, op: Free) -> R: ...
    @abstractmethod
    def trim(self, op: Trim) -> R: ...
    @abstractmethod
    def run(self, op: Run) -> R: ...
    @abstractmethod
    def copy(self, op: Copy) -> R: ...
    @abstractmethod
    def record(self, op: Record) -> R: ...
    @abstractmethod
    def wait(self, op: Wait) -> R: ...
    @abstractmethod
    def stream_wait(self, op: StreamWait) -> R: ...
    @abstractmethod
    def spawn(self, op: Spawn) -> R: ...
    @abstractmethod
    def join(self, op: Join) -> R: ...
    @abstractmethod
    def complete(self, op: Complete) -> R: ...

    def visit(self, op: Op) -> R:
        """The meaning of `op` to this visitor."""
        match op:
            case Get():
                return self.get(op)
            case Put():
                return self.put(op)
            case Acquire():
                return self.acquire(op)
            case Release():
                return self.release(op)
            case Alloc():
                return self.alloc(op)
            case TryAlloc():
                return self.try_alloc(op)
            case Free():
                return self.free(op)
            case Trim():
                return self.trim(op)
            case Run():
                return self.run(op)
            case Copy():
                return self.copy(op)
            case Record():
                return self.record(op)
            case Wait():
                return self.wait(op)
            case StreamWait():
                return self.stream_wait(op)
            case Spawn():
                return self.spawn(op)
            case Join():
                return self.join(op)
            case Complete():
                return self.complete(op)
            case _:
                assert_never(op)
