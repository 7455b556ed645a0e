"""The journal of a run: the only maker of its events, for the simulator and for the executor.

docs/trace.md (cuzk.trace.schema) says which keys each kind of event has; here stands what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from cuzk.errors import describe
from cuzk.pipeline import ops
from cuzk.pipeline.books import Books
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.sets import PartitionSet, ProofRun
from cuzk.trace.event import Event

Sink = Callable[[Event], None]
Mark = Literal["begin", "end"]
LOAD = "load"
"""The lane of what is there before the start."""


class Journal:
    """Events go to `sink` as they happen; without one (`on` is False) nothing is made."""

    def __init__(self, books: Books, clock: Callable[[], float], sink: Sink | None,
                 resident: Callable[[str], int | None] = lambda pool: None) -> None:  # fmt: skip
        """`clock`: seconds from the start of the run. `resident`: a pool's resident level, where it is known without asking the
        system."""
        self._books, self._clock, self._resident = books, clock, resident
        self.on = sink is not None
        self.sink: Sink = sink if sink is not None else lambda event: None

    def levels(self, kind: Literal["alloc", "free"], pset: PartitionSet, buffer: str, pool: str, nbytes: int, worker: str,
               later_bytes: int = 0) -> None:  # fmt: skip
        """One event for the pool, and one for each pool that it is a part of. `later_bytes`: booked in the same stroke, and
        reported by later events."""
        if not self.on:
            return
        now = self._clock()
        proof, partition = (None, None) if pset.proof < 0 else (pset.proof, pset.partition)
        for name in self._books.chain(pool):
            level = self._books.pools[name]
            self.sink(Event(
                now, kind, buffer, worker, proof=proof, partition=partition, pool=name, bytes=nbytes,
                live=level.live - later_bytes, reserved=level.reserved - later_bytes, capacity=level.capacity,
                resident=self._resident(name),
            ))  # fmt: skip

    def step(self, kind: Mark, op: ops.Run | ops.Copy, pset: PartitionSet, worker: str, cpu_s: float | None = None) -> None:
        """A step begins or ends; `gpu` where a device or its link does it."""
        if not self.on:
            return
        if isinstance(op, ops.Run):
            name, moved, gpu = op.name, None, pset.gpu if op.at == "gpu" else None
        else:
            name, moved, gpu = op.law, op.nbytes, pset.gpu
        self.sink(Event(
            self._clock(), kind, name, worker, gpu=gpu, stream=op.stream, proof=pset.proof, partition=pset.partition,
            cost=op.law if op.law != name else None, bytes=moved, cpu_s=cpu_s,
        ))  # fmt: skip

    def wait(self, name: str, worker: str, pset: PartitionSet | None) -> None:
        """A claim has to wait. A `get` has no set yet."""
        self._claim("wait", name, worker, pset)

    def grant(self, name: str, worker: str, pset: PartitionSet | None) -> None:
        """The claim that waited is granted; when its worker wakes is what follows on its lane."""
        self._claim("grant", name, worker, pset)

    def _claim(self, kind: Literal["wait", "grant"], name: str, worker: str, pset: PartitionSet | None) -> None:
        if self.on:
            proof, partition = (None, None) if pset is None else (pset.proof, pset.partition)
            self.sink(Event(self._clock(), kind, name, worker, proof=proof, partition=partition))

    def trim(self, pset: PartitionSet, pool: str, given: int, worker: str) -> None:
        """The cache of a pool went back to its device."""
        if self.on:
            level = self._books.pools[pool]
            self.sink(Event(
                self._clock(), "trim", "", worker, proof=pset.proof, partition=pset.partition, pool=pool, bytes=given,
                live=level.live, reserved=level.reserved,
            ))  # fmt: skip

    def admit(self, proof: ProofRun) -> None:
        self.sink(Event(self._clock(), "admit", proof.circuit, proof=proof.number))

    def complete(self, pset: PartitionSet, worker: str) -> None:
        """A partition's proof (or the whole proof of a set that is one) is out."""
        if self.on:
            self.sink(Event(self._clock(), "complete", "", worker, gpu=pset.gpu, proof=pset.proof, partition=pset.partition))

    def complete_proof(self, proof: ProofRun) -> None:
        """All of a proof's sets are out."""
        self.sink(Event(self._clock(), "complete", proof=proof.number, partition=-1))

    def dealloc(self, path: str, pset: PartitionSet, worker: str) -> None:
        """A deallocation path has ended for one set."""
        if self.on:
            self.sink(Event(self._clock(), "dealloc", path, worker, proof=pset.proof, partition=pset.partition))

    def out_of_memory(self, oom: OutOfMemory, worker: str) -> None:
        level = self._books.pools[oom.pool]
        self.sink(Event(
            self._clock(), "oom", oom.buffer, worker, proof=oom.proof, partition=oom.partition, pool=oom.pool,
            bytes=oom.request_bytes, live=level.live, reserved=oom.level_bytes, capacity=oom.capacity_bytes,
            holders=oom.holders, reason=str(oom),
        ))  # fmt: skip

    def fail(
        self, scope: Literal["proof", "device", "run"], why: BaseException, proof: int | None = None, gpu: int | None = None
    ) -> None:
        """Something has failed, and its scope."""
        self.sink(Event(self._clock(), "fail", scope, gpu=gpu, proof=proof, reason=describe(why)))

    def unwind(self, pset: PartitionSet, worker: str) -> None:
        """A failed set has given back what it held."""
        self.sink(Event(self._clock(), "unwind", "", worker, proof=pset.proof, partition=pset.partition))

    def sample(self, pool: str, nbytes: int) -> None:
        """The bytes that are resident in a pool, as the system reports it or the simulator knows it."""
        self.sink(Event(self._clock(), "sample", pool=pool, resident=nbytes))
