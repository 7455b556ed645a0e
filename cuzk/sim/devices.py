"""Streams and devices of a simulated run: work in order, events, and waits for a whole device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuzk.pipeline import ops
from cuzk.pipeline.arbiter import FAILED
from cuzk.sim.actors import Actor, SimSet, Stream, StreamEvent, StreamWork
from cuzk.sim.rates import Cost

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


class Devices:
    """The work that the GPUs of a run have queued, by whoever queued it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._work: list[dict[int, list[list[Any]]]] = [{} for _ in range(max(1, engine.program.gpus))]
        """By device: number of a piece of work -> who waits for the device: [actor, pieces left]."""
        self._item = 0

    def stream_of(self, actor: Actor, label: str) -> Stream:
        if actor.streams is None:
            actor.streams = {}
        stream = actor.streams.get(label)
        if stream is None:
            stream = actor.streams[label] = Stream(label, actor.gpu, actor)
        return stream

    def queue_work(self, stream: Stream, cost: Cost, op: ops.Run | ops.Copy, pset: SimSet, seconds: float) -> None:
        item = 0
        if cost.device is not None:
            item = self.device_begin(cost.device)
        work = StreamWork(stream, pset, item, cost, op, seconds)
        if stream.busy:
            stream.items.append(work)
        else:
            stream.busy = True
            if not self._begin(work):
                self._go_on(stream)

    def record(self, stream: Stream, pset: SimSet, name: str) -> None:
        event = pset.events[name] = StreamEvent()
        if stream.busy:
            stream.items.append(event)
        else:
            event.reached = True

    def queue_wait(self, stream: Stream, event: StreamEvent) -> None:
        stream.items.append((event,))
        if not stream.busy:
            self._go_on(stream)

    def _begin(self, work: StreamWork) -> bool:
        """False if it is done at once."""
        if self.engine.traced:
            self.engine.core.journal.step("begin", work.op, work.pset, work.stream.worker.name)
        if work.seconds > 0.0:
            self.engine.rates.start(work.cost, work.seconds, work)
            return True
        self._end(work)
        return False

    def _end(self, work: StreamWork) -> None:
        if self.engine.traced:
            self.engine.core.journal.step("end", work.op, work.pset, work.stream.worker.name)
        error = self.engine.planted(work.pset, work.op)
        if error is not None:
            self.engine.core.fail_proof(work.pset.run, error)
        if work.item:
            self.device_done(work.cost.device, work.item)  # type: ignore[arg-type]

    def _go_on(self, stream: Stream) -> None:
        """Take what is queued, up to the next work or an event that is not reached."""
        stream.busy = True
        items, runnable = stream.items, self.engine.runnable
        while items:
            item = items.popleft()
            if type(item) is StreamWork:
                if self._begin(item):
                    return
            elif type(item) is StreamEvent:
                item.reached = True
                for waiter in item.waiters:
                    if type(waiter) is Actor:
                        runnable.append((waiter, True))
                    else:
                        self._go_on(waiter)
                item.waiters.clear()
            elif not item[0].reached:
                item[0].waiters.append(stream)
                return
        stream.busy = False
        for actor in stream.on_idle:
            runnable.append((actor, FAILED))
        stream.on_idle.clear()

    def done(self, work: StreamWork) -> None:
        """A piece of a stream's work has ended."""
        self._end(work)
        self._go_on(work.stream)

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
