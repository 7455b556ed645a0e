"""Pages that become resident while a step fills them, told to the books before they are there."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial

from cuzk.pipeline.books import Books
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.sets import PartitionSet


class Touching:
    """`mutex` guards the books; the methods take it themselves."""

    def __init__(self, books: Books, mutex: threading.Lock) -> None:
        self._books, self._mutex = books, mutex
        self._bytes: dict[tuple[PartitionSet, str], int] = {}
        """Buffers whose pages are becoming resident -> bytes so far."""
        for name, pool in books.pools.items():
            pool.touching = partial(self._touched_in, name)

    def _touched_in(self, pool: str) -> dict[str, int]:
        rows: dict[str, int] = {}
        for (pset, buffer), nbytes in self._bytes.items():
            if buffer in pset.untouched and pool in self._books.chain(pset.buffers[buffer][0]):
                rows[buffer] = rows.get(buffer, 0) + nbytes
        return rows

    def upto(self, pset: PartitionSet, buffer: str, nbytes: int) -> None:
        """The first `nbytes` of a buffer are about to be resident. Raises OutOfMemory if that is more than there is."""
        books = self._books
        with self._mutex:
            if pset.failed or buffer not in pset.untouched:
                return
            pool_name, whole, _ = pset.buffers[buffer]
            before = self._bytes.get((pset, buffer), 0)
            for name in books.chain(pool_name):
                pool = books.pools[name]
                if pool.live + pool.cached > pool.capacity and pool.resident + nbytes - before > pool.capacity:
                    raise OutOfMemory(name, buffer, whole, pool.resident, pool.capacity, pool.holders(), pset)
            self._bytes[pset, buffer] = nbytes
            if nbytes >= whole:
                self._bytes.pop((pset, buffer))
                books.touched(pset, buffer)

    def all(self, pset: PartitionSet, buffers: Iterable[str]) -> None:
        """The step that fills these buffers has ended: what it did not report is resident now."""
        for buffer in buffers:
            if buffer in pset.untouched:
                self.upto(pset, buffer, pset.buffers[buffer][1])

    def forget(self, pset: PartitionSet, buffer: str) -> None:
        """The buffer is about to be taken off the books (mutex held)."""
        self._bytes.pop((pset, buffer), None)
