"""One worker of the pipeline: walks its steps. A task or a spawned worker walks them once, a pool worker until the run ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuzk.errors import OutOfMemoryError
from cuzk.exec.claims import Claimant, SetFailed, Stopped
from cuzk.exec.device import Allocation, Stream, Work
from cuzk.exec.sets import Handle, Set
from cuzk.pipeline.steps import (
    HOST,
    Acquire,
    Alloc,
    Complete,
    Copy,
    Free,
    Get,
    Join,
    Put,
    Record,
    Release,
    Run,
    Spawn,
    Step,
    StreamWait,
    Trim,
    TryAlloc,
    Wait,
)
from cuzk.trace.event import Event

if TYPE_CHECKING:
    from cuzk.exec.engine import Engine


class Actor(Claimant):
    def __init__(self, engine: Engine, kind: str, gpu: int, set_: Set | None = None, handle: Handle | None = None,
                 label: str | None = None, pool: bool = False, on_device: int | None = None) -> None:  # fmt: skip
        """`label`: its lane in the trace; None: a numbered lane of its kind, taken with its first work. `on_device`: the device
        whose loss ends this actor's set."""
        super().__init__(engine, kind, gpu, set_, label or kind, engine.steps[kind])
        self.handle, self.pool, self.on_device = handle, pool, on_device
        self._numbered = label is None
        self._slot: int | None = None
        self._taken_s = 0.0
        self._streams: dict[str, Stream] = {}
        self._dealloc_path: str | None = None

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
                self._leave_turns()
            self.engine.ended(self, self._slot)

    def _walk(self) -> None:
        try:
            for step in self.steps:
                if self.set is not None and self.set.token.failed:
                    raise SetFailed
                self._step(step)
        except SetFailed:
            pass
        except Stopped:
            raise
        except BaseException as error:
            if self.set is None:
                raise
            self.engine.failed(self.set, error, self.name)
        finally:
            self._leave_set()

    def _leave_set(self) -> None:
        set_, self.set = self.set, None
        if set_ is None:
            return
        if self.handle is not None:
            with self.engine.mutex:
                self.handle.ended = True
                set_.condition.notify_all()
        if self.pool:
            with self.engine.mutex:
                set_.proof.gpu_call_s += self.engine.now() - self._taken_s
        self.engine.detach(set_, self.name)

    # ------------------------------------------------------------------- steps

    def _step(self, step: Step) -> None:
        match step:
            case Get():
                token = self.claim(step)
                self._leave_set()
                self.set = self.engine.set_of(token)
                self._taken_s = self.engine.now()
            case Put() | Acquire():
                self.claim(step)
            case Release(release=name):
                self._release(name)
            case Alloc(alloc=names):
                for name in names:
                    self._alloc(name)
            case TryAlloc():
                fits = self._try_alloc(step)
                for inner in step.then if fits else step.otherwise:
                    if self.own().token.failed:
                        raise SetFailed
                    self._step(inner)
            case Free(free=names, after=event):
                self._wait_event(event)
                for name in names:
                    self._free(name)
                self._note_dealloc()
            case Trim(trim=pool):
                self._trim(pool)
            case Run():
                self._run(step.on, self._work(step))
                path = step.run.removeprefix("dealloc_")
                self._dealloc_path = path if path != step.run else None
            case Copy():
                self._run(step.on, self._work(step))
            case Record(record=event, on=on):
                self.own().events[event] = self._stream(on).record()
            case Wait(wait=event):
                self._wait_event(event)
            case StreamWait(stream_wait=event, on=on):
                recorded = self.own().events.get(event)
                if recorded is not None:  # never recorded (the slow arm): nothing to wait for
                    self._stream(on).wait_for(recorded)
            case Spawn(spawn=worker, handle=handle):
                with self.engine.mutex:
                    self.engine.spawn(worker, self.own(), handle, self.gpu_here, self.on_device)
            case Join(join=handle):
                self._join(handle)
            case Complete():
                with self.engine.mutex:
                    self.engine.complete(self.own(), self.name)

    @property
    def gpu_here(self) -> int:
        return self.gpu if self.set is None else self.set.token.gpu

    def _release(self, name: str) -> None:
        engine, set_ = self.engine, self.own()
        with engine.mutex:
            if engine.arbiter.is_failed(set_.token):
                raise SetFailed  # whoever unwinds the set gives it back
            engine.arbiter.release(set_.token, engine.plan.claim_instance(name, set_.token.gpu))
            engine.deliver()

    def _join(self, handle: str) -> None:
        engine, set_ = self.engine, self.own()
        place = {"proof": set_.token.proof, "partition": set_.token.partition}
        with engine.mutex:
            waited = False
            while not set_.token.failed and not (handle in set_.handles and set_.handles[handle].ended):
                if not waited:
                    engine.emit(Event(engine.now(), "wait", name=handle, worker=self.name, **place))
                    waited = True
                self.joins = handle
                set_.condition.wait()
            self.joins = None
            if set_.token.failed:
                raise SetFailed
            if waited:
                engine.emit(Event(engine.now(), "grant", name=handle, worker=self.name, **place))

    def _wait_event(self, event: str | None) -> None:
        recorded = self.own().events.get(event) if event else None
        if recorded is not None:
            recorded.wait()

    # ------------------------------------------------------------------- memory

    def _alloc(self, name: str) -> None:
        engine, set_ = self.engine, self.own()
        request = engine.books.request(name, set_)
        if engine.plan.pipeline.buffers[name].scope == "gpu":
            engine.books.alloc_once(request, self.name)
            return
        with engine.mutex:
            if engine.arbiter.is_failed(set_.token):
                raise SetFailed
            request = engine.books.book(set_.token, request, self.name)
        self._make(set_, request)

    def _make(self, set_: Set, request: Allocation) -> None:
        """The real allocation behind a grant; what the device refuses is taken off the books again."""
        try:
            set_.real[request.buffer] = self.engine.device.allocate(request)
        except (MemoryError, OutOfMemoryError) as error:
            with self.engine.mutex:
                self.engine.books.unbook(set_.token, request.buffer, self.name)
                oom = self.engine.books.refused(request, set_.token, error)
            raise oom from error

    def _try_alloc(self, step: TryAlloc) -> bool:
        engine, set_ = self.engine, self.own()
        requests = [engine.books.request(name, set_) for name in step.try_alloc]
        with engine.mutex:
            if engine.arbiter.is_failed(set_.token):
                raise SetFailed
            if not engine.books.book_all(set_.token, requests, step.guard, self.name):
                return False
        made: list[str] = []
        try:
            for request in requests:
                set_.real[request.buffer] = engine.device.allocate(request)
                made.append(request.buffer)
        except (MemoryError, OutOfMemoryError):
            for name in made:
                engine.device.free(set_.real.pop(name))
            with engine.mutex:
                for request in reversed(requests):
                    engine.books.unbook(set_.token, request.buffer, self.name)
            return False
        return True

    def _free(self, name: str) -> None:
        engine, set_ = self.engine, self.own()
        if engine.plan.pipeline.buffers[name].scope == "gpu":
            return
        # the real memory first: the books never show room that is not there
        real = set_.real.pop(name, None)
        if real is not None:
            engine.device.free(real)
        with engine.mutex:
            engine.books.unbook(set_.token, name, self.name)

    def _trim(self, pool: str) -> None:
        engine = self.engine
        pool = pool.replace("$gpu", str(self.gpu_here))
        engine.device.trim(pool)
        with engine.mutex:
            given = engine.arbiter.trim(pool)
            level = engine.arbiter.pools[pool]
            engine.emit(Event(engine.now(), "trim", worker=self.name, pool=pool, bytes=given, live=level.live,
                              reserved=level.reserved))  # fmt: skip

    def _note_dealloc(self) -> None:
        """A deallocation path ends with the `free` behind its `dealloc_…` step."""
        if self._dealloc_path is not None:
            with self.engine.mutex:
                self.engine.deallocated(self._dealloc_path, self.own(), self.name)
            self._dealloc_path = None

    # --------------------------------------------------------------------- work

    def _work(self, step: Run | Copy) -> Work:
        engine, set_ = self.engine, self.own()
        if isinstance(step, Run):
            touched = engine.books.touched_by.get(step.run, ())
            return Work(step.run, step.law, set_, set_.circuit, set_.token.gpu, step.on,
                        touches=tuple(name for name in touched if name in set_.token.untouched),
                        touching=engine.books.touching)  # fmt: skip
        moved = sum(engine.books.size(source, set_.circuit, set_.token.gpu) for source in step.source)
        return Work(step.law, step.law, set_, set_.circuit, set_.token.gpu, step.on, True, moved,
                    step.source, step.direction)  # fmt: skip

    def _run(self, on: str, work: Work) -> None:
        if self._numbered and self._slot is None:
            with self.engine.mutex:
                self._slot = self.engine.take_slot(self.kind)
            self.name = f"{self.kind}:{self._slot}"
        begin, end = self._marks(work, None if on == HOST else on)
        if on != HOST:
            with self.engine.mutex:
                work.set.attached += 1
                self.engine.queued_work += 1
            self._stream(on).submit(
                work, begin, lambda error: self._stream_work_ended(work, error, end),
                skipped=lambda: self._stream_work_left(work),
            )  # fmt: skip
            return
        begin()
        try:
            self.engine.device.perform(work)
            self.engine.books.touch_all(work.set, work.touches)
        finally:
            end()

    def _marks(self, work: Work, stream: str | None) -> tuple[Callable[[], None], Callable[[], None]]:
        engine, token, name = self.engine, work.set.token, self.name
        moved = work.moved_bytes if work.is_copy else None
        cost = work.cost if work.cost != work.name else None

        def mark(kind: Any) -> None:
            with engine.mutex:
                engine.emit(Event(engine.now(), kind, name=work.name, worker=name, gpu=work.gpu, stream=stream,
                                  proof=token.proof, partition=token.partition, cost=cost, bytes=moved,
                                  cpu_s=round(time.thread_time(), 6) if engine.device.one_thread else None))  # fmt: skip

        return (lambda: mark("begin")), (lambda: mark("end"))

    def _stream_work_ended(self, work: Work, error: BaseException | None, end: Callable[[], None]) -> None:
        if error is None and work.touches:
            try:
                self.engine.books.touch_all(work.set, work.touches)
            except OutOfMemoryError as oom:
                error = oom
        end()
        if error is not None:
            self.engine.failed(work.set, error, self.name)
        self._stream_work_left(work)

    def _stream_work_left(self, work: Work) -> None:
        self.engine.detach(work.set, self.name)
        with self.engine.mutex:
            self.engine.queued_work -= 1

    def _stream(self, name: str) -> Stream:
        if name not in self._streams:
            self._streams[name] = self.engine.device.open_stream(self.gpu_here, f"{self.name}/{name}")
        return self._streams[name]
