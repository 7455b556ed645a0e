"""Pools with their levels, and the request that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cuzk.errors import OutOfMemoryError

if TYPE_CHECKING:
    from cuzk.pipeline.sets import PartitionSet

CACHE = "allocator cache"
"""Holder of what an allocator keeps for itself."""


class OutOfMemory(OutOfMemoryError):
    """An allocation that does not fit. `holders`: (buffer, count, bytes), largest first; `proof`, `partition`: whose it was."""

    def __init__(self, pool: str, buffer: str, request_bytes: int, level_bytes: int, capacity_bytes: int,
                 holders: list[tuple[str, int, int]], of: PartitionSet | None = None) -> None:  # fmt: skip
        self.pool, self.buffer, self.request_bytes = pool, buffer, request_bytes
        self.level_bytes, self.capacity_bytes, self.holders = level_bytes, capacity_bytes, holders
        known = of is not None and of.proof >= 0
        self.proof: int | None = of.proof if of is not None and known else None
        self.partition: int | None = of.partition if of is not None and known else None
        super().__init__(
            f"{pool}: {buffer} needs {request_bytes / 2**30:.2f} GiB, "
            f"{level_bytes / 2**30:.2f} of {capacity_bytes / 2**30:.2f} GiB in use"
        )


class Pool:
    """A capacity in bytes. `live`: what the program holds; `cached`: freed, but kept by its allocator for itself;
    `untouched`: live, but its pages are not resident yet."""

    __slots__ = ("cached", "capacity", "held", "keeps_holders", "live", "name", "peak_held", "peak_live",
                 "peak_reserved", "peak_reserved_at", "reclaims", "touching", "untouched")  # fmt: skip

    def __init__(self, name: str, capacity: int, reclaims: bool = False) -> None:
        self.name, self.capacity, self.reclaims = name, capacity, reclaims
        self.live = self.cached = self.untouched = self.peak_live = self.peak_reserved = 0
        self.peak_reserved_at = 0.0
        self.held: dict[str, list[int]] = {}
        """buffer -> [count, bytes, bytes untouched]"""
        self.peak_held: dict[str, tuple[int, int]] = {}
        self.keeps_holders = True
        """Whether `peak_held` is wanted: who held what at the reserved peak, caches included."""
        self.touching: Callable[[], dict[str, int]] | None = None
        """The part of `untouched` that is resident by now, by buffer, for a caller that can tell while a step runs."""

    @property
    def reserved(self) -> int:
        return self.live + self.cached

    @property
    def resident(self) -> int:
        """Bytes in pages that have been touched, and what allocators keep."""
        touched = sum(self.touching().values()) if self.touching is not None else 0
        return self.live - self.untouched + self.cached + touched

    def fits(self, nbytes: int, cached: bool = False) -> bool:
        grow = max(0, nbytes - self.cached) if cached else nbytes
        if self.live + self.cached + grow <= self.capacity:
            return True
        if self.reclaims and self.live + nbytes <= self.capacity:
            return True
        return self.untouched > 0 and self.resident + grow <= self.capacity

    def holders(self) -> list[tuple[str, int, int]]:
        """(buffer, count, resident bytes), largest first."""
        touched = self.touching() if self.touching is not None else {}
        rows = [(name, count, size - lazy + touched.get(name, 0)) for name, (count, size, lazy) in self.held.items() if count]
        if self.cached:
            rows.append((CACHE, 1, self.cached))
        return sorted(rows, key=lambda row: (-row[2], row[0]))
