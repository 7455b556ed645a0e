"""Lists that lie in the host's memory, a few of their chunks at a time in device memory.

A chunk is fetched ahead of its use, while the device works on those before. What was used last stays until its place is needed,
so the next pass begins with what is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import CuzkError
from cuzk.gpu.feed import Feed, Sent


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some neighbouring points of a list. `resident`: their address where they stay on the device, else 0."""

    list: str
    first: int
    count: int
    source: np.ndarray | None = None
    """Bytes of the host, flat."""
    resident: int = 0

    @property
    def id(self) -> Hashable:
        return self.list, self.first

    @property
    def nbytes(self) -> int:
        return 0 if self.source is None else self.source.nbytes


class _Slot:
    def __init__(self, address: int) -> None:
        self.address = address
        self.holds: Hashable = None
        self.sent: Sent | None = None
        self.used: Any = None
        """Event behind the last work that reads it."""
        self.busy = False
        """Fetched for a use that has not ended."""
        self.turn = 0
        """When it was used last: the smaller, the longer ago."""


class KeyRing:
    """`slots` places of `slot_bytes` each at address `base`. Used by one thread at a time."""

    def __init__(self, device: Any, feed: Feed, base: int, slot_bytes: int, slots: int) -> None:
        if slots < 2:
            raise ValueError("a ring has two places at least: one to work on, one to fill")
        self.device, self.feed, self.slot_bytes = device, feed, slot_bytes
        self._slots = [_Slot(base + i * slot_bytes) for i in range(slots)]
        self._turn = 0
        self.fetched_bytes = 0
        """That went over the link so far."""

    @property
    def slots(self) -> int:
        return len(self._slots)

    def holds(self, chunk: Chunk) -> bool:
        """Whether a chunk is there, or on its way."""
        return bool(chunk.resident) or self._slot_of(chunk) is not None

    def _slot_of(self, chunk: Chunk) -> _Slot | None:
        return next((slot for slot in self._slots if slot.holds == chunk.id), None)

    def fetch(self, chunk: Chunk, keep: Sequence[Chunk] = ()) -> bool:
        """Begins to bring a chunk, unless it is there. False if no place is free: all are busy, or hold chunks of `keep`."""
        if chunk.resident:
            return True
        if chunk.nbytes > self.slot_bytes:
            raise ValueError(f"a chunk of {chunk.nbytes} bytes for places of {self.slot_bytes}")
        slot = self._slot_of(chunk)
        if slot is None:
            kept = {other.id for other in keep}
            free = [slot for slot in self._slots if not slot.busy and (slot.holds is None or slot.holds not in kept)]
            if not free:
                return False
            slot = min(free, key=lambda slot: (slot.holds is not None, slot.turn))
            slot.holds = None
            assert chunk.source is not None
            slot.sent = self.feed.send(slot.address, chunk.source, slot.used)
            slot.holds = chunk.id
            self.fetched_bytes += chunk.nbytes
        slot.busy = True
        return True

    def take(self, chunk: Chunk) -> int:
        """The address of a chunk that was fetched, once it has arrived."""
        if chunk.resident:
            return chunk.resident
        slot = self._slot_of(chunk)
        assert slot is not None, f"{chunk.id} was not fetched"
        if slot.sent is not None:
            slot.sent.wait()
            slot.sent = None
        return slot.address

    def release(self, chunk: Chunk, stream: Any) -> None:
        """The chunk may go once all that is queued on `stream` so far is done."""
        slot = None if chunk.resident else self._slot_of(chunk)
        if slot is not None:
            slot.used = self.device.event()
            self.device.record(slot.used, stream)
            self._turn += 1
            slot.turn, slot.busy = self._turn, False

    def settle(self, stream: Any) -> None:
        """After a failure: nothing that is queued later than now reads a place. What is on its way is awaited."""
        for slot in self._slots:
            if slot.sent is not None:
                try:
                    slot.sent.wait()
                except Exception:  # whoever asked for it has been told, or has failed for another reason
                    slot.holds = None
                slot.sent = None
            if slot.busy:
                slot.busy = False
                try:
                    slot.used = self.device.event()
                    self.device.record(slot.used, stream)
                except CuzkError:  # the device is lost: nobody will fetch either
                    slot.holds = None


class ListPass:
    """One list, again and again, forwards and backwards in turn: the last chunks of a pass are the first of the next."""

    def __init__(self, ring: KeyRing, chunks: Sequence[Chunk]) -> None:
        self._ring, self._chunks = ring, list(chunks)
        self.alone = threading.Lock()
        """To be held by whoever walks, and taken before the right to queue work."""

    def walk(
        self, stream: Any, aside: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Generator[tuple[int, int, int], None, None]:
        """(first point, points, address) of every chunk, there for work queued on `stream` before the next is asked for. Waiting
        happens within `aside`."""
        order, ring = self._chunks, self._ring
        try:
            for index, chunk in enumerate(order):
                window = order[index : index + ring.slots]
                for ahead in window:  # as far ahead as there are places
                    if not ring.fetch(ahead, window):
                        break
                with aside():
                    address = ring.take(chunk)
                yield chunk.first, chunk.count, address
                ring.release(chunk, stream)
            self._chunks = order[::-1]
        except BaseException:
            ring.settle(stream)
            raise


def cut(name: str, points: np.ndarray, chunk_points: int, resident: int = 0, resident_points: int = 0) -> list[Chunk]:
    """The chunks of a list: the first `resident_points` (a multiple of chunk_points, or all) stay at address `resident`."""
    size, chunks = points.itemsize * points.shape[1], []
    flat = points.reshape(-1).view(np.uint8)
    for first in range(0, len(points), chunk_points):
        count = min(chunk_points, len(points) - first)
        stays = first + count <= resident_points
        source = None if stays else flat[first * size : (first + count) * size]
        chunks.append(Chunk(name, first, count, source, resident + first * size if stays else 0))
    return chunks
