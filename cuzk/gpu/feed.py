"""Bytes of the host to a device at the link's speed, again and again: from page-locked memory as it is, from any other through
page-locked blocks that threads fill, which are locked once.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np

from cuzk.errors import CuzkError
from cuzk.gpu.staging import BLOCKS_EACH, THREADS
from cuzk.native.memory import HostBuffer

BLOCK = 16 << 20
"""Bytes of a block: few enough of them that Python's part in each does not hold up who launches kernels."""


class Sent(Protocol):
    """Bytes on their way."""

    def wait(self) -> None:
        """Until they have arrived. Raises what the device said of the copy."""


class Feed(Protocol):
    """Safe for one thread at a time."""

    def send(self, target: int, source: np.ndarray, after: Any) -> Sent:
        """Begins to copy contiguous bytes of the host to device memory once the event `after` (None: at once) is reached."""

    def close(self) -> None:
        """Waits for what was sent, and gives the memory back."""


@dataclass
class _Recorded:
    device: Any
    event: Any

    def wait(self) -> None:
        self.device.wait(self.event)


class LockedFeed:
    """The source is page-locked: the device copies it as it is."""

    def __init__(self, device: Any, borders: Sequence[int] = ()) -> None:
        """`borders`: addresses, rising, that one copy must not cross: where the driver has locked pages in several calls."""
        self._device, self._stream, self._borders = device, device.stream(), borders

    def send(self, target: int, source: np.ndarray, after: Any) -> Sent:
        device, arrived = self._device, self._device.event()
        if after is not None:
            device.stream_wait(self._stream, after)
        at, end = source.ctypes.data, source.ctypes.data + source.nbytes
        while at < end:
            border = bisect_right(self._borders, at)
            upto = min(end, self._borders[border]) if border < len(self._borders) else end
            device.copy(target, at, upto - at, self._stream)
            target, at = target + upto - at, upto
        device.record(arrived, self._stream)
        return _Recorded(device, arrived)

    def close(self) -> None:
        with suppress(CuzkError):  # a lost device copies nothing any more
            event = self._device.event()
            self._device.record(event, self._stream)
            self._device.wait(event)


@dataclass
class _Pieces:
    """Pieces of some bytes, `left` of them not queued yet; `events`: one for each that is."""

    device: Any
    left: int
    events: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    queued: threading.Event = field(default_factory=threading.Event)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def ended(self, event: Any, error: BaseException | None) -> None:
        with self.mutex:
            self.left -= 1
            self.error = self.error or error
            if event is not None:
                self.events.append(event)
            if self.left <= 0:
                self.queued.set()

    def wait(self) -> None:
        self.queued.wait()
        if self.error is not None:
            raise self.error
        for event in self.events:
            self.device.wait(event)


class StagedFeed:
    """The source is any memory, pages of a mapped file say: threads copy it into their blocks, one at a time."""

    def __init__(self, device: Any, threads: int | None = None) -> None:
        """Raises MemoryError or HostMemoryRefused where the system gives no memory for the blocks."""
        self._device = device
        self._threads_n = threads or max(1, min(THREADS, len(os.sched_getaffinity(0))))
        self._buffer = HostBuffer(self._threads_n * BLOCKS_EACH * BLOCK)
        self._blocks = self._buffer.array(np.uint8)
        self._address = self._blocks.ctypes.data
        try:
            device.register(self._address, self._blocks.nbytes)
        except BaseException:
            del self._blocks
            self._buffer.close()
            raise
        self._queue: SimpleQueue[tuple[int, np.ndarray, Any, _Pieces] | None] = SimpleQueue()
        parts = np.split(self._blocks, self._threads_n)
        self._threads = [threading.Thread(target=self._work, args=(p,), daemon=True, name="key feed") for p in parts]
        for thread in self._threads:
            thread.start()

    def send(self, target: int, source: np.ndarray, after: Any) -> Sent:
        firsts = range(0, source.nbytes, BLOCK)
        pieces = _Pieces(self._device, len(firsts))
        if not firsts:
            pieces.queued.set()
        for first in firsts:
            self._queue.put((target + first, source[first : first + BLOCK], after, pieces))
        return pieces

    def _work(self, memory: np.ndarray) -> None:
        device = self._device
        device.use()
        stream = device.stream()
        blocks = np.split(memory, BLOCKS_EACH)
        fetched: list[Any] = [None] * BLOCKS_EACH
        turn = 0
        while (job := self._queue.get()) is not None:
            target, source, after, pieces = job
            event, error = None, None
            try:
                block = blocks[turn % BLOCKS_EACH]
                if fetched[turn % BLOCKS_EACH] is not None:
                    device.wait(fetched[turn % BLOCKS_EACH])
                    fetched[turn % BLOCKS_EACH] = None
                block[: source.nbytes] = source  # other threads run meanwhile
                if after is not None:
                    device.stream_wait(stream, after)
                device.copy(target, block.ctypes.data, source.nbytes, stream)
                event = device.event()
                device.record(event, stream)
                fetched[turn % BLOCKS_EACH] = event
                turn += 1
            except BaseException as raised:  # whoever waits for the bytes learns of it
                error = raised
            pieces.ended(event, error)
        for event in fetched:
            if event is not None:
                with suppress(CuzkError):  # whoever waits for the bytes has been told
                    device.wait(event)

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._device.unregister(self._address)
        del self._blocks
        self._buffer.close()
