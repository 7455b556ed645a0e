"""The protocol of a device, and streams made of host threads.

The interpreter grants by the Arbiter's accounts first; only then does it ask the device for the real thing. A device never
writes events and never decides who goes next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from cuzk.model.policy import Processor
from cuzk.pipeline import ops
from cuzk.pipeline.program import Program, every_op

if TYPE_CHECKING:
    from cuzk.exec.sets import RealSet


@dataclass(frozen=True)
class Allocation:
    """A granted request for memory. `deferred`: pages become resident while a later step runs, not now."""

    buffer: str
    pool: str
    nbytes: int
    gpu: int = 0
    cached: bool = False
    deferred: bool = False
    cache_bytes: int = 0
    """Bytes that the books leave in the cache of the pool's allocator: the rest of it goes."""
    pset: RealSet | None = None
    """The set that it is for; None: resident for the whole run."""


@dataclass
class Work:
    """One `run` or `copy` step as the device gets it."""

    op: ops.Run | ops.Copy
    pset: RealSet
    touches: tuple[str, ...] = ()
    """Buffers that it fills and whose pages are not resident yet."""
    touching: Callable[[RealSet, str, int], None] | None = None
    """Told before the first so many bytes of a buffer become resident. Raises OutOfMemory."""

    @property
    def name(self) -> str:
        """The step; the cost law of a copy."""
        return self.op.name if isinstance(self.op, ops.Run) else self.op.law

    @property
    def is_copy(self) -> bool:
        return isinstance(self.op, ops.Copy)

    @property
    def source(self) -> tuple[str, ...]:
        """The host buffers of a copy."""
        return self.op.source if isinstance(self.op, ops.Copy) else ()

    @property
    def gpu(self) -> int:
        return self.pset.gpu

    @property
    def at(self) -> Processor:
        """The processor that the pipeline names."""
        return self.op.at if isinstance(self.op, ops.Run) else "gpu"

    def cancelled(self) -> bool:
        """True once the set's proof, device or run has failed: long bodies look at it now and then and return."""
        return self.pset.failed


def timed_ops(program: Program) -> Iterator[ops.Run | ops.Copy]:
    """Every bound `run` and `copy`, those in branches too, for the scenario's circuit."""
    for worker in program.pipeline.workers:
        for op in every_op(program.code(worker, program.scenario.circuit.name)):
            if isinstance(op, (ops.Run, ops.Copy)):
                yield op


class Event(Protocol):
    """Reached when everything queued on its stream before it is done."""

    def wait(self) -> None:
        """Block the calling thread until the event is reached."""


class Stream(Protocol):
    """An in-order queue of work."""

    def submit(self, work: Work, begin: Callable[[], None], end: Callable[[BaseException | None], None],
               skipped: Callable[[], None]) -> None:  # fmt: skip
        """Queue `work` and return. `begin` and `end` are called when it starts and when it has ended, or failed;
        `skipped` instead of both if its set had failed before it could start."""

    def record(self) -> Event: ...

    def wait_for(self, event: Event) -> None:
        """Work that is queued from now on starts after `event`; returns at once."""

    def close(self) -> None:
        """No more work will come. What is queued still runs."""


class Device(Protocol):
    """null, cpu, cuda. All methods are called from many threads at once."""

    name: str
    time_scale: float
    """Real seconds for one of the scenario's; 1 unless the device plays another machine."""
    one_thread: bool
    """A step does its work in the thread that performs it, so that thread's processor time is the step's."""

    def open(self, program: Program) -> None:
        """Before anything else. Raises InputError for a step that this device has no body for."""

    def allocate(self, request: Allocation) -> Any:
        """Real memory for a granted request. Raises MemoryError (or OutOfMemory) if there is none."""

    def free(self, real: Any) -> None:
        """Give back what `allocate` returned."""

    def trim(self, pool: str) -> None:
        """Give back what the pool's allocator has cached. Of a device's pool: waits for all that the device has to do."""

    def begin(self, pset: RealSet) -> None:
        """A set starts: make what the bodies of this device keep for it, in `pset.state`."""

    def perform(self, work: Work) -> None:
        """Do a step. On a stream: called by the stream, in order."""

    def open_stream(self, gpu: int, name: str) -> Stream: ...

    def resident(self) -> dict[str, int]:
        """Bytes that the operating system or the driver reports for each pool that can be told apart."""

    def close(self) -> None: ...


@dataclass
class HostEvent:
    flag: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self.flag.wait()


class Fence:
    """Work that a device has been given and has not done yet, whoever queued it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 0
        self._open: set[int] = set()

    def begin(self) -> int:
        with self._changed:
            self._next += 1
            self._open.add(self._next)
            return self._next

    def end(self, ticket: int) -> None:
        with self._changed:
            self._open.discard(ticket)
            self._changed.notify_all()

    def wait(self) -> None:
        """Until all that was begun before this call has ended."""
        with self._changed:
            last = self._next
            self._changed.wait_for(lambda: not self._open or min(self._open) > last)


class HostStream:
    """A stream whose work a thread does, in order: what the null and the cpu device use."""

    def __init__(self, perform: Callable[[Work], None], name: str, fence: Fence) -> None:
        self._perform, self._fence = perform, fence
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, begin: Callable[[], None], end: Callable[[BaseException | None], None],
               skipped: Callable[[], None]) -> None:  # fmt: skip
        ticket = self._fence.begin()

        def job() -> None:
            if work.cancelled():  # nothing has begun
                self._fence.end(ticket)
                skipped()
                return
            begin()
            error: BaseException | None = None
            try:
                self._perform(work)
            except BaseException as raised:  # whatever a body raises is the interpreter's to judge
                error = raised
            self._fence.end(ticket)
            end(error)

        self._queue.put(job)

    def record(self) -> HostEvent:
        event = HostEvent()
        self._queue.put(event.flag.set)
        return event

    def wait_for(self, event: Event) -> None:
        self._queue.put(event.wait)

    def close(self) -> None:
        self._queue.put(None)

    def _loop(self) -> None:
        while (job := self._queue.get()) is not None:
            job()
