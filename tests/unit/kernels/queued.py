"""An emulated GPU whose streams really are queues: what is queued runs when somebody waits for it, or when a coin says so, in any
order that streams and events allow. Work that does not wait for what it needs meets memory that is not there yet, or is gone.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from pathlib import Path
from typing import Any

from cuzk.errors import CuzkError
from tests.unit.kernels.emulated import EmulatedDevice


class Queue:
    def __init__(self) -> None:
        self.work: deque[Any] = deque()


class Mark:
    """An event. `number` counts its recordings: who waits for one waits for the recording that was last when it asked."""

    def __init__(self) -> None:
        self.recorded, self.reached = 0, 0


class QueuedDevice(EmulatedDevice):
    """`eager`: the chance that queued work of a stream goes on whenever something is queued. `fails_at`: the number of the copy
    that raises `fault` when it is queued."""

    def __init__(self, directory: Path, seed: int = 0, eager: float = 0.5, fails_at: int = -1,
                 fault: CuzkError | None = None, **kwargs: Any) -> None:  # fmt: skip
        super().__init__(directory, **kwargs)
        self._rng, self._eager, self._all = random.Random(seed), eager, list[Queue]()
        self._mutex = threading.RLock()
        self.copies, self.fails_at, self.fault = 0, fails_at, fault

    def stream(self) -> Queue:
        queue = Queue()
        with self._mutex:
            self._all.append(queue)
        return queue

    def event(self, timing: bool = False) -> Mark:  # type: ignore[override]
        return Mark()

    def _put(self, stream: Queue, job: Any) -> None:
        with self._mutex:
            stream.work.append(job)
            for other in self._rng.sample(self._all, min(3, len(self._all))):
                while other.work and self._rng.random() < self._eager and self._step(other):
                    pass

    def _step(self, stream: Queue) -> bool:
        """Does the first job of a stream; False if it has to wait for another one."""
        kind, *args = stream.work[0]
        if kind == "wait":
            mark, number = args
            if mark.reached < number:
                return False
        stream.work.popleft()
        if kind == "record":
            mark, number = args
            mark.reached = max(mark.reached, number)
        elif kind == "do":
            args[0]()
        return True

    def launch(self, kernel: Any, blocks: Any, threads: int, args: tuple[Any, ...], stream: Any, shared_bytes: int = 0) -> None:
        self._put(stream, ("do", lambda: EmulatedDevice.launch(self, kernel, blocks, threads, args, None, shared_bytes)))

    def fill(self, address: int, byte: int, size_bytes: int, stream: Any) -> None:
        self._put(stream, ("do", lambda: EmulatedDevice.fill(self, address, byte, size_bytes, None)))

    def copy(self, target: int, source: int, size_bytes: int, stream: Any) -> None:
        with self._mutex:
            self.copies += 1
            if self.copies == self.fails_at:
                assert self.fault is not None
                raise self.fault
        self._put(stream, ("do", lambda: EmulatedDevice.copy(self, target, source, size_bytes, None)))

    def record(self, event: Any, stream: Any) -> None:
        with self._mutex:
            event.recorded += 1
            self._put(stream, ("record", event, event.recorded))

    def stream_wait(self, stream: Any, event: Any) -> None:
        self._put(stream, ("wait", event, event.recorded))

    def wait(self, event: Any) -> None:
        """Streams go on until the event is reached, one step of a random one at a time."""
        number = event.recorded
        while True:
            with self._mutex:
                if event.reached >= number:
                    return
                ready = [queue for queue in self._all if queue.work]
                self._rng.shuffle(ready)
                moved = any(self._step(queue) for queue in ready)
            assert moved, "nothing can go on: work waits for itself"

    def reached(self, event: Any) -> bool:
        """A look lets queued work go on, as time would."""
        number = event.recorded
        with self._mutex:
            ready = [queue for queue in self._all if queue.work]
            self._rng.shuffle(ready)
            for queue in ready:
                if self._rng.random() < 0.5:
                    self._step(queue)
            return bool(event.reached >= number)

    def idle(self) -> bool:
        return not any(queue.work for queue in self._all)
