"""The books: every allocation of a run by the Arbiter's accounts, with its event, and the real memory of what is resident.

The Arbiter grants first, then the device allocates; the device frees first, then the Arbiter takes it off. So the
books never show room that is not there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from cuzk.errors import OutOfMemoryError
from cuzk.exec.device import Allocation, Device
from cuzk.exec.sets import Set
from cuzk.model.circuit import Circuit
from cuzk.pipeline.arbiter import Arbiter, OutOfMemory, Token
from cuzk.pipeline.plan import Plan
from cuzk.pipeline.steps import Acquire
from cuzk.trace.event import Event, Kind


class Books:
    """`mutex` guards the Arbiter; `emit` and the methods that say so are called with it held."""

    def __init__(self, plan: Plan, device: Device, arbiter: Arbiter, mutex: threading.Lock, emit: Callable[[Event], None],
                 now: Callable[[], float]) -> None:  # fmt: skip
        self.plan, self.device, self.arbiter, self.mutex, self.emit, self.now = plan, device, arbiter, mutex, emit, now
        self._residents: list[tuple[Token, str, Any]] = []
        self._sizes: dict[tuple[str, str, int], int] = {}
        self._once: set[tuple[int, str]] = set()
        self._touching: dict[tuple[Token, str], int] = {}
        """Buffers whose pages are becoming resident -> bytes so far."""
        for name, pool in arbiter.pools.items():
            pool.touching = partial(self._touched_in, name)
        self.touched_by: dict[str, tuple[str, ...]] = {}
        """Step -> the buffers that it fills."""
        for buffer, spec in plan.pipeline.buffers.items():
            if spec.touched_by:
                self.touched_by[spec.touched_by] = (*self.touched_by.get(spec.touched_by, ()), buffer)

    def size(self, buffer: str, circuit: Circuit, gpu: int) -> int:
        key = (buffer, circuit.name, gpu)
        if key not in self._sizes:
            self._sizes[key] = self.plan.size(buffer, circuit, gpu)
        return self._sizes[key]

    def units(self, step: Acquire, set_: Set) -> int:
        """How many units a claim asks for."""
        return 1 if step.n is None else step.n.size(self.plan.names(set_.circuit, set_.token.gpu))

    def request(self, buffer: str, set_: Set) -> Allocation:
        spec = self.plan.pipeline.buffers[buffer]
        gpu = set_.token.gpu
        pool = spec.pool.replace("$gpu", str(gpu))
        return Allocation(
            buffer, pool, self.size(buffer, set_.circuit, gpu), set_.circuit, gpu,
            spec.allocator == "cached", deferred=spec.touched_by is not None and pool == "ram", set=set_,
        )  # fmt: skip

    def book(self, token: Token, request: Allocation, worker: str) -> Allocation:
        """Account for a buffer (mutex held); the request with what is left of its pool's cache. Raises OutOfMemory."""
        self.arbiter.now = self.now()
        self.arbiter.alloc(token, request.buffer, request.pool, request.nbytes, request.cached, lazy=request.deferred)
        self.emit_levels("alloc", token, request.buffer, request.pool, request.nbytes, worker)
        return replace(request, cache_bytes=self.arbiter.pools[request.pool].cached)

    def book_all(self, token: Token, requests: list[Allocation], guard: int, worker: str) -> bool:
        """Account for all of them if `guard` bytes stay free, else for none (mutex held)."""
        wants = [(r.buffer, r.pool, r.nbytes, r.cached) for r in requests]
        if not self.arbiter.try_alloc(token, wants, guard):
            return False
        later: dict[str, int] = {}
        for request in reversed(requests):
            later[request.pool] = later.get(request.pool, 0) + request.nbytes
        for request in requests:
            later[request.pool] -= request.nbytes
            self.emit_levels("alloc", token, request.buffer, request.pool, request.nbytes, worker, later[request.pool])
        return True

    def _touched_in(self, pool: str) -> dict[str, int]:
        rows: dict[str, int] = {}
        for (token, buffer), nbytes in self._touching.items():
            if buffer in token.untouched and pool in self.arbiter.chain(token.buffers[buffer][0]):
                rows[buffer] = rows.get(buffer, 0) + nbytes
        return rows

    def touching(self, set_: Set, buffer: str, nbytes: int) -> None:
        """The first `nbytes` of a buffer are about to be resident. Raises OutOfMemory if that is more than there is."""
        token = set_.token
        with self.mutex:
            if token.failed or buffer not in token.untouched:
                return
            pool_name, whole, _ = token.buffers[buffer]
            before = self._touching.get((token, buffer), 0)
            for name in self.arbiter.chain(pool_name):
                pool = self.arbiter.pools[name]
                if pool.live + pool.cached > pool.capacity and pool.resident + nbytes - before > pool.capacity:
                    raise OutOfMemory(name, buffer, whole, pool.resident, pool.capacity, pool.holders(), token)
            self._touching[token, buffer] = nbytes
            if nbytes >= whole:
                self._touching.pop((token, buffer))
                self.arbiter.touched(token, buffer)

    def touch_all(self, set_: Set, buffers: Iterable[str]) -> None:
        """The step that touches these buffers has ended: what it did not report is resident now."""
        for buffer in buffers:
            if buffer in set_.token.untouched:
                self.touching(set_, buffer, set_.token.buffers[buffer][1])

    def unbook(self, token: Token, buffer: str, worker: str) -> None:
        pool, nbytes, _ = token.buffers[buffer]
        self._touching.pop((token, buffer), None)
        self.arbiter.free(token, buffer)
        self.emit_levels("free", token, buffer, pool, nbytes, worker)

    def emit_levels(self, kind: Kind, token: Token, buffer: str, pool: str, nbytes: int, worker: str,
                    later_bytes: int = 0) -> None:  # fmt: skip
        """One event for the pool, and one for each pool that it is a part of. `later_bytes`: booked in the same stroke,
        and reported by later events."""
        now = self.now()
        proof, partition = (None, None) if token.proof < 0 else (token.proof, token.partition)
        for name in self.arbiter.chain(pool):
            level = self.arbiter.pools[name]
            self.emit(Event(now, kind, name=buffer, worker=worker, proof=proof, partition=partition, pool=name, bytes=nbytes,
                            live=level.live - later_bytes, reserved=level.reserved - later_bytes,
                            capacity=level.capacity))  # fmt: skip

    def refused(self, request: Allocation, token: Token, error: BaseException) -> OutOfMemory:
        """The books had room and the device had none."""
        if isinstance(error, OutOfMemory):
            return error
        pool = self.arbiter.pools[request.pool]
        oom = OutOfMemory(request.pool, request.buffer, request.nbytes, pool.reserved, pool.capacity, pool.holders(), token)
        oom.args = (f"{oom} ({error})" if str(error) else f"{oom} (refused by the system)",)
        return oom

    def met(self, error: BaseException, worker: str, set_: Set) -> OutOfMemory:
        """Memory that a body was refused in the middle of a step: a device's (OutOfMemoryError, with the pool's name if it is not
        VRAM), or the system's (mutex held)."""
        of_device = isinstance(error, OutOfMemoryError)
        name = getattr(error, "pool", f"vram:{set_.token.gpu}") if of_device else "ram"
        pool = self.arbiter.pools[name]
        oom = OutOfMemory(name, worker, 0, pool.reserved, pool.capacity, pool.holders(), set_.token)
        why = f" ({error})" if str(error) else ""
        oom.args = (str(error) if of_device else f"ram: the system refused memory to {worker}{why}",)
        return oom

    # --------------------------------------------------------------- residents

    def load_residents(self, cancelled: Callable[[], bool]) -> None:
        """Keys, matrices, contexts: what is there before the start. Raises OutOfMemory."""
        for buffer, pool, nbytes in self.plan.residents():
            if cancelled():
                return
            gpu = int(pool.partition(":")[2] or 0)
            spec = self.plan.pipeline.buffers.get(buffer.split(" ")[0])
            cached = spec is not None and spec.allocator == "cached"
            self._reside(Allocation(buffer, pool, nbytes, self.plan.scenario.circuit, gpu, cached), "load")

    def unload_residents(self) -> None:
        for token, buffer, real in reversed(self._residents):
            self.device.free(real)
            with self.mutex:
                self.unbook(token, buffer, worker="load")
        self._residents.clear()

    def alloc_once(self, request: Allocation, worker: str) -> None:
        """A buffer that each device makes at its first use and keeps. Raises OutOfMemory."""
        key = (request.gpu, request.buffer)
        with self.mutex:
            if key in self._once:
                return
            self._once.add(key)
        try:
            self._reside(request, worker)
        except Exception:
            self._once.discard(key)
            raise

    def _reside(self, request: Allocation, worker: str) -> None:
        token = Token(-1, -1, gpu=request.gpu)
        with self.mutex:
            request = self.book(token, request, worker)
        try:
            real = self.device.allocate(request)
        except Exception as error:
            with self.mutex:
                self.unbook(token, request.buffer, worker)
                if not isinstance(error, (MemoryError, OutOfMemoryError)):
                    raise
                oom = self.refused(request, token, error)
            raise oom from error
        with self.mutex:
            self._residents.append((token, request.buffer, real))
