"""The books: every pool's level, and who holds what. Pure: no clock of its own, nothing real behind it.

Invariants (each has a law test): levels never negative; every buffer freed once; what does not fit changes nothing.

An *allocation* never waits: it fits, or `OutOfMemory` names pool, request, level and holders. `cached`: freed bytes stay with
their allocator for its later allocations, until a `trim`; `lazy`: pages become resident later, by `touch`.
"""

from __future__ import annotations

from collections.abc import Iterable

from cuzk.pipeline.pools import CACHE, OutOfMemory, Pool
from cuzk.pipeline.sets import PartitionSet


class Books:
    """The pools of one run, by instance name (`vram:1`, `ram`)."""

    def __init__(self, pools: dict[str, int], parents: dict[str, str], reclaiming: Iterable[str] = ()) -> None:
        """`pools`: bytes; `parents`: a pool that is part of another (`pinned` → `ram`): charged to both; `reclaiming`: pools
        whose cache gives way to an allocation that would not fit beside it."""
        kept = set(reclaiming)
        self.pools = {name: Pool(name, capacity, name in kept) for name, capacity in pools.items()}
        self._chains = {name: self._chain(name, parents) for name in pools}
        self.now = 0.0
        """Stamped on peaks; whoever has a clock sets it before it calls."""

    def _chain(self, name: str, parents: dict[str, str]) -> tuple[Pool, ...]:
        chain = [self.pools[name]]
        while name in parents:
            name = parents[name]
            chain.append(self.pools[name])
        return tuple(chain)

    def chain(self, pool: str) -> tuple[str, ...]:
        """The pools that are charged for `pool`: itself and what it is a part of."""
        return tuple(target.name for target in self._chains[pool])

    def alloc(self, pset: PartitionSet, buffer: str, pool: str, nbytes: int, cached: bool = False, lazy: bool = False) -> None:
        """Account for a buffer of `pset`. Raises OutOfMemory; then nothing has changed.

        `lazy`: its pages become resident later, by `touch`; until then it cannot run out of memory (the kernel overcommits).
        """
        if buffer in pset.buffers:
            raise ValueError(f"{pset} allocates {buffer} twice")
        chain = self._chains[pool]
        if lazy:
            pset.untouched.add(buffer)
        else:
            for target in chain:
                if target.live + target.cached + nbytes > target.capacity and not target.fits(nbytes, cached):
                    raise OutOfMemory(target.name, buffer, nbytes, target.resident, target.capacity, target.holders(), pset)
        pset.buffers[buffer] = (pool, nbytes, cached)
        for target in chain:
            if cached:
                target.cached -= min(target.cached, nbytes)
            if target.reclaims and target.live + target.cached + nbytes > target.capacity:
                target.cached = max(0, target.capacity - target.live - nbytes)
            row = target.held.get(buffer)
            if row is None:
                row = target.held[buffer] = [0, 0, 0]
            row[0] += 1
            row[1] += nbytes
            if lazy:
                row[2] += nbytes
                target.untouched += nbytes
            live = target.live = target.live + nbytes
            if live > target.peak_live:
                target.peak_live = live
            if live + target.cached > target.peak_reserved:
                target.peak_reserved, target.peak_reserved_at = live + target.cached, self.now
                if target.keeps_holders:
                    target.peak_held = {name: (held[0], held[1]) for name, held in target.held.items() if held[0]}
                    if target.cached:
                        target.peak_held[CACHE] = (1, target.cached)

    def touch(self, pset: PartitionSet, buffer: str) -> None:
        """The pages of a lazy buffer are resident now. Raises OutOfMemory if that is more than there is."""
        if buffer not in pset.untouched:
            return
        pool, nbytes, _ = pset.buffers[buffer]
        for target in self._chains[pool]:
            if target.live + target.cached > target.capacity and target.resident + nbytes > target.capacity:
                raise OutOfMemory(target.name, buffer, nbytes, target.resident, target.capacity, target.holders(), pset)
        self.touched(pset, buffer)

    def touched(self, pset: PartitionSet, buffer: str) -> None:
        """The same as `touch`, for a caller that has watched the level while the pages came."""
        pool, nbytes, _ = pset.buffers[buffer]
        pset.untouched.discard(buffer)
        for target in self._chains[pool]:
            target.untouched -= nbytes
            target.held[buffer][2] -= nbytes

    def try_alloc(self, pset: PartitionSet, wants: Iterable[tuple[str, str, int, bool]], guard: int = 0) -> bool:
        """All of `wants` (buffer, pool, bytes, cached), if `guard` bytes stay free in each pool; else nothing."""
        wants = tuple(wants)
        need: dict[str, int] = {}
        for _, pool, nbytes, cached in wants:
            if cached and pool not in need:
                nbytes = max(0, nbytes - self.pools[pool].cached)
            need[pool] = need.get(pool, 0) + nbytes
        for pool, nbytes in need.items():
            for target in self._chains[pool]:
                if not target.fits(nbytes + guard):
                    return False
        for buffer, pool, nbytes, cached in wants:
            self.alloc(pset, buffer, pool, nbytes, cached)
        return True

    def free(self, pset: PartitionSet, buffer: str) -> None:
        """Raises KeyError if `pset` does not hold `buffer`."""
        if buffer not in pset.buffers:
            raise KeyError(f"{pset} frees {buffer}, which it does not hold")
        if buffer in pset.untouched:
            self.touched(pset, buffer)
        pool, nbytes, cached = pset.buffers.pop(buffer)
        for target in self._chains[pool]:
            target.live -= nbytes
            if cached:
                target.cached += nbytes
            row = target.held[buffer]
            row[0] -= 1
            row[1] -= nbytes

    def trim(self, pool: str) -> int:
        """Give the cache of a pool back; returns its bytes."""
        given = self.pools[pool].cached
        self.pools[pool].cached = 0
        return given

    def free_all(self, pset: PartitionSet) -> list[tuple[str, str, int]]:
        """Take off all that a failed set holds, in reverse order: (buffer, pool, bytes)."""
        given = [(buffer, pool, nbytes) for buffer, (pool, nbytes, _) in reversed(pset.buffers.items())]
        for buffer, _, _ in given:
            self.free(pset, buffer)
        return given
