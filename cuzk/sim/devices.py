"""Streams and devices of a simulated run: work in order, events, and waits for a whole device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuzk.pipeline.arbiter import FAILED
from cuzk.sim.actors import Actor, SimToken, Stream, StreamEvent, StreamWork
from cuzk.trace.event import Event

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


class Devices:
    """What the GPUs of a run have queued, by whoever queued it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._work: list[dict[int, list[list[Any]]]] = [{} for _ in range(max(1, engine.plan.gpus))]
        """By device: number of a piece of work -> who waits for the device: [actor, pieces left]."""
        self._item = 0

    def stream_of(self, actor: Actor, label: str) -> Stream:
        if actor.streams is None:
            actor.streams = {}
        stream = actor.streams.get(label)
        if stream is None:
            stream = actor.streams[label] = Stream(label, actor.gpu, actor)
        return stream

    def queue(self, stream: Stream, kind: str, what: Any, more: Any = None) -> None:
        """Append to a stream: ("work", (cost, name, token), seconds), ("record", event), ("wait", event)."""
        if kind == "work" and what[0].device is not None:
            self._item += 1
            self._work[what[0].device][self._item] = []
            more = (more, self._item)
        elif kind == "work":
            more = (more, 0)
        stream.items.append((kind, what, more))
        if not stream.busy:
            self._advance_stream(stream)

    def _advance_stream(self, stream: Stream) -> None:
        stream.busy = True
        while stream.items:
            kind, what, more = stream.items.popleft()
            if kind == "work":
                cost, name, token = what
                work = StreamWork(stream, token, more[1], cost, name)
                if self.engine.events is not None:
                    self._stream_event("begin", work)
                if more[0] > 0.0:
                    self.engine.rates.start(cost, more[0], work)
                    return
                self._work_done(work)
            elif kind == "record":
                what.reached = True
                for waiter in what.waiters:
                    if type(waiter) is Actor:
                        self.engine.runnable.append((waiter, True))
                    else:
                        self._advance_stream(waiter)
                what.waiters.clear()
            elif not what.reached:
                what.waiters.append(stream)
                return
        stream.busy = False
        for actor in stream.on_idle:
            self.engine.runnable.append((actor, FAILED))
        stream.on_idle.clear()

    def done(self, work: StreamWork) -> None:
        self._work_done(work)
        self._advance_stream(work.stream)

    def _work_done(self, work: StreamWork) -> None:
        if self.engine.events is not None:
            self._stream_event("end", work)
        if work.item:
            self.device_done(work.cost.device, work.item)

    def _stream_event(self, kind: Any, work: StreamWork) -> None:
        events = self.engine.events
        assert events is not None
        events.append(Event(
            self.engine.now, kind, work.name, work.stream.worker.name, gpu=work.stream.gpu, stream=work.stream.label,
            proof=work.token.proof, partition=work.token.partition,
        ))  # fmt: skip

    def device_begin(self, gpu: int) -> int:
        """The number of a piece of device work that a host step launches and waits for."""
        self._item += 1
        self._work[gpu][self._item] = []
        return self._item

    def device_done(self, gpu: int, item: int) -> None:
        for waiter in self._work[gpu].pop(item):
            waiter[1] -= 1
            if not waiter[1]:
                self.engine.runnable.append((waiter[0], True))

    def synchronise(self, actor: Actor, gpu: int) -> bool:
        """Wait until the device has done what is queued on it now, whoever queued it. False if there is any."""
        work = self._work[gpu]
        if not work:
            return True
        waiter = [actor, len(work)]
        for waiters in work.values():
            waiters.append(waiter)
        return False

    def new_event(self, token: SimToken, name: str) -> StreamEvent:
        event = token.events[name] = StreamEvent()
        return event
