"""One worker of the pipeline: it walks its bound steps, a task or a spawned worker once, a pool worker until the run ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from cuzk.errors import OutOfMemoryError
from cuzk.exec.claims import Claimant, SetFailed, Stopped
from cuzk.exec.device import Allocation, Stream, Work
from cuzk.exec.sets import Handle, RealSet
from cuzk.pipeline import ops

if TYPE_CHECKING:
    from cuzk.exec.engine import Engine


class Actor(Claimant, ops.Visitor[None]):
    def __init__(self, engine: Engine, kind: str, gpu: int, pset: RealSet | None = None, handle: Handle | None = None,
                 label: str | None = None, pool: bool = False, on_device: int | None = None) -> None:  # fmt: skip
        """`label`: its lane in the trace; None: a numbered lane of its kind, taken with its first work. `on_device`: the device
        whose loss ends this actor's set."""
        super().__init__(engine, kind, gpu, pset, label or kind, engine.code_of(kind, pset, gpu))
        self.handle, self.pool, self.on_device = handle, pool, on_device
        self._numbered = label is None
        self._slot: int | None = None
        self._taken_s = 0.0
        self._streams: dict[str, Stream] = {}

    # ---------------------------------------------------------------- the thread

    def live(self) -> None:
        try:
            self._walk()
            while self.pool:
                self._walk()
        except Stopped:
            pass
        except BaseException as error:
            self.engine.internal_fault(error)
        finally:
            for stream in self._streams.values():
                stream.close()
            with self.engine.mutex:
                self.leave_turns()
            self.engine.ended(self, self._slot)

    def _walk(self) -> None:
        try:
            if self.pool:  # its `get` first: the set that it brings decides the rest
                self.visit(self.code[0])
                self._all(self.engine.code_of(self.kind, self.pset, self.gpu)[1:])
            else:
                self._all(self.code)
        except SetFailed:
            pass
        except Stopped:
            raise
        except BaseException as error:
            if self.pset is None:
                raise
            self.engine.failed(self.pset, error, self.name)
        finally:
            self.leave_set()

    def _all(self, code: Iterable[ops.Op]) -> None:
        for op in code:
            if self.pset is not None and self.pset.failed:
                raise SetFailed
            self.visit(op)

    def leave_set(self) -> None:
        """Let go of the set."""
        pset, self.pset = self.pset, None
        if pset is None:
            return
        with self.engine.mutex:
            if self.handle is not None:
                self.handle.ended = True
                pset.condition.notify_all()
            if self.pool:
                pset.run.gpu_call_s += self.engine.now() - self._taken_s
        self.engine.detach(pset, self.name)

    # ------------------------------------------------------------------ claims

    def get(self, op: ops.Get) -> None:
        pset = self.claim(op)
        self.leave_set()
        self.pset = pset
        self._taken_s = self.engine.now()

    def put(self, op: ops.Put) -> None:
        self.claim(op)

    def acquire(self, op: ops.Acquire) -> None:
        self.claim(op)

    def release(self, op: ops.Release) -> None:
        engine, pset = self.engine, self.own()
        with engine.mutex:
            if engine.core.arbiter.is_failed(pset):
                raise SetFailed  # whoever unwinds the set gives it back
            engine.core.arbiter.release(pset, op.instance)
            engine.deliver()

    # ------------------------------------------------------------------- memory

    def alloc(self, op: ops.Alloc) -> None:
        for want in op.wants:
            self._take(want)

    def _take(self, want: ops.Want) -> None:
        engine, pset = self.engine, self.own()
        with engine.mutex:
            if engine.core.arbiter.is_failed(pset):
                raise SetFailed
            engine.core.books.now = engine.now()
            holder = engine.core.alloc(pset, want, self.name)
            if holder is None:  # the device has it already
                return
            request = self._request(want, pset)
        try:
            real = engine.device.allocate(request)
        except (MemoryError, OutOfMemoryError) as error:  # what the device refuses is taken off the books again
            with engine.mutex:
                if want.kept:
                    engine.core.refused_kept(holder, want, self.name)
                else:
                    engine.core.free(pset, want.buffer, self.name)
                oom = engine.core.refused(want.buffer, want.pool, want.nbytes, pset, error)
            raise oom from error
        if want.kept:
            with engine.mutex:
                engine.keep(holder, want.buffer, real)
        else:
            pset.real[want.buffer] = real

    def _request(self, want: ops.Want, pset: RealSet) -> Allocation:
        cache = self.engine.core.books.pools[want.pool].cached
        owner = None if want.kept else pset
        return Allocation(want.buffer, want.pool, want.nbytes, pset.gpu, want.cached, want.lazy, cache, owner)

    def try_alloc(self, op: ops.TryAlloc) -> None:
        fits = self._try(op)
        if fits:
            for want in op.wants:
                if want.kept:
                    self._take(want)
        self._all(op.then if fits else op.otherwise)

    def _try(self, op: ops.TryAlloc) -> bool:
        engine, pset = self.engine, self.own()
        wants = [want for want in op.wants if not want.kept]
        with engine.mutex:
            if engine.core.arbiter.is_failed(pset):
                raise SetFailed
            engine.core.books.now = engine.now()
            if not engine.core.try_alloc(pset, wants, op.guard, self.name):
                return False
            requests = [self._request(want, pset) for want in wants]
        made: list[str] = []
        try:
            for request in requests:
                pset.real[request.buffer] = engine.device.allocate(request)
                made.append(request.buffer)
        except (MemoryError, OutOfMemoryError):
            for name in made:
                engine.device.free(pset.real.pop(name))
            with engine.mutex:
                for request in reversed(requests):
                    engine.core.free(pset, request.buffer, self.name)
            return False
        return True

    def free(self, op: ops.Free) -> None:
        engine, pset = self.engine, self.own()
        self._await(op.after)
        for name in op.buffers:
            # the real memory first: the books never show room that is not there
            real = pset.real.pop(name, None)
            if real is not None:
                engine.device.free(real)
            with engine.mutex:
                engine.touching.forget(pset, name)
                engine.core.free(pset, name, self.name)
        if op.path is not None:
            with engine.mutex:
                engine.core.deallocated(op.path, pset, self.name)

    def trim(self, op: ops.Trim) -> None:
        engine = self.engine
        engine.device.trim(op.pool)
        with engine.mutex:
            engine.core.trim(self.own(), op.pool, self.name)

    # --------------------------------------------------------------------- work

    def run(self, op: ops.Run) -> None:
        pset, touching = self.own(), self.engine.touching
        touches = tuple(want.buffer for want in op.touches if want.buffer in pset.untouched)
        self._work(Work(op, pset, touches, touching.upto), op.stream)

    def copy(self, op: ops.Copy) -> None:
        self._work(Work(op, self.own()), op.stream)

    def _work(self, work: Work, stream: str | None) -> None:
        if self._numbered and self._slot is None:
            with self.engine.mutex:
                self._slot = self.engine.take_slot(self.kind)
            self.name = f"{self.kind}:{self._slot}"
        begin, end = self._mark(work, "begin"), self._mark(work, "end")
        if stream is not None:
            queue = self._stream(stream)
            with self.engine.mutex:
                work.pset.attached += 1
                self.engine.queued_work += 1
            queue.submit(
                work, begin, lambda error: self._stream_work_ended(work, error, end),
                skipped=lambda: self._stream_work_left(work),
            )  # fmt: skip
            return
        begin()
        try:
            self.engine.device.perform(work)
            self.engine.touching.all(work.pset, work.touches)
        finally:
            end()

    def _mark(self, work: Work, kind: Literal["begin", "end"]) -> Callable[[], None]:
        engine, name = self.engine, self.name

        def mark() -> None:
            cpu_s = round(time.thread_time(), 6) if engine.device.one_thread else None
            with engine.mutex:
                engine.core.journal.step(kind, work.op, work.pset, name, cpu_s)

        return mark

    def _stream_work_ended(self, work: Work, error: BaseException | None, end: Callable[[], None]) -> None:
        if error is None and work.touches:
            try:
                self.engine.touching.all(work.pset, work.touches)
            except OutOfMemoryError as oom:
                error = oom
        end()
        if error is not None:
            self.engine.failed(work.pset, error, self.name)
        self._stream_work_left(work)

    def _stream_work_left(self, work: Work) -> None:
        self.engine.detach(work.pset, self.name)
        with self.engine.mutex:
            self.engine.queued_work -= 1

    def _stream(self, name: str) -> Stream:
        if name not in self._streams:
            self._streams[name] = self.engine.device.open_stream(self.own().gpu, f"{self.name}/{name}")
        return self._streams[name]

    # -------------------------------------------------------------------- order

    def record(self, op: ops.Record) -> None:
        self.own().events[op.event] = self._stream(op.stream).record()

    def wait(self, op: ops.Wait) -> None:
        self._await(op.event)

    def _await(self, event: str | None) -> None:
        recorded = self.own().events.get(event) if event else None
        if recorded is not None:
            recorded.wait()

    def stream_wait(self, op: ops.StreamWait) -> None:
        recorded = self.own().events.get(op.event)
        if recorded is not None:  # never recorded (the slow arm): nothing to wait for
            self._stream(op.stream).wait_for(recorded)

    def spawn(self, op: ops.Spawn) -> None:
        with self.engine.mutex:
            self.engine.spawn(op.worker, self.own(), op.handle, self.on_device)

    def join(self, op: ops.Join) -> None:
        engine, pset, handle = self.engine, self.own(), op.handle
        with engine.mutex:
            waited = False
            while not pset.failed and not (handle in pset.handles and pset.handles[handle].ended):
                if not waited:
                    engine.core.journal.wait(handle, self.name, pset)
                    waited = True
                self.joins = handle
                pset.condition.wait()
            self.joins = None
            if pset.failed:
                raise SetFailed
            if waited:
                engine.core.journal.grant(handle, self.name, pset)

    def complete(self, op: ops.Complete) -> None:
        with self.engine.mutex:
            self.engine.complete(self.own(), self.name)
