"""The lists of a key that are multiplied by the witness pass by on a GPU, chunk by chunk, and serve every set that rides along.

A set may get on at any chunk and gets off when all have passed it: sums do not depend on the order. So however many sets ride, a
chunk comes over the link once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk.gpu.arena import Layout
from cuzk.gpu.batch_add import BatchAdd, BatchAddPlan, add_up, sum_parts
from cuzk.gpu.key_ring import Chunk, KeyRing
from cuzk.gpu.msm_plan import POINT_BYTES, Group
from cuzk.gpu.split import RowSplit, gather_points_within
from cuzk.gpu.turns import Turn, Turns

AHEAD = 8
"""Chunks whose work is queued and not done: it is short, and what has arrived should not hold up what comes."""


@dataclass
class Ride:
    """One set on a pass. After `KeyPass.ride`: `sums[name]` is the sum of a list's points whose scalar is one, and the points
    of its tail lie at device address `tails[name]`, in the order of the tail's rows."""

    splits: Mapping[str, RowSplit]
    tails: dict[str, int]
    partials: dict[str, int]
    totals: dict[str, int]
    todo: set[Any]
    host: Any
    sums: dict[str, np.ndarray] = field(default_factory=dict)
    queued: threading.Event = field(default_factory=threading.Event)
    ended: Any = None
    error: BaseException | None = None


def _group(name: str) -> Group:
    return "g2" if name == "b_g2" else "g1"


class KeyPass:
    """The lists of one GPU. A thread of its own fetches chunks and queues work while somebody rides."""

    def __init__(self, turns: Turns, ring: KeyRing, lists: Mapping[str, Sequence[Chunk]], workspace: int) -> None:
        """`workspace`: device memory of `workspace_bytes`."""
        self._turns, self._ring, self._workspace = turns, ring, workspace
        self._lists = {name: list(chunks) for name, chunks in lists.items()}
        self._rows = {name: sum(chunk.count for chunk in chunks) for name, chunks in lists.items()}
        self._order = [chunk for chunks in self._lists.values() for chunk in chunks]
        self._at = 0
        self._riders: list[Ride] = []
        self._changed = threading.Condition()
        self._closing = False
        self._queued: deque[Any] = deque()
        self._additions: dict[tuple[str, int], BatchAdd] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True, name="key pass")
        self._thread.start()

    @staticmethod
    def workspace_bytes(chunk_points: Mapping[Group, int], multiprocessors: int) -> int:
        """For batch additions of chunks of that many points."""
        return max(BatchAddPlan(group, n, n, multiprocessors).workspace_bytes for group, n in chunk_points.items())

    # -- for who rides -----------------------------------------------------------------------------------

    def ride_bytes(self, splits: Mapping[str, RowSplit]) -> int:
        """Device memory that a ride with these splits needs."""
        return self._layout(splits).total_bytes

    def most_ride_bytes(self, tail_points: int) -> int:
        """The same where no list has a tail of more than so many."""
        return self._layout({name: RowSplit(0, 0, 0, 0, tail_points) for name in self._lists}).total_bytes

    def _layout(self, splits: Mapping[str, RowSplit]) -> Layout:
        sizes: list[tuple[str, int]] = []
        for name, chunks in self._lists.items():
            size = POINT_BYTES[_group(name)]
            sizes += [(f"partials {name}", len(chunks) * sum_parts() * size), (f"tail {name}", splits[name].n_tail * size)]
        return Layout([*sizes, *((f"total {name}", POINT_BYTES[_group(name)]) for name in self._lists)])

    def ride(self, splits: Mapping[str, RowSplit], base: int) -> Ride:
        """Rides once round with memory of `ride_bytes` at `base`, where it leaves the points of the tails; waits for the end.

        Raises what the device says of the work."""
        device, at = self._turns.device, self._layout(splits).at(base)
        names = list(self._lists)
        some = [name for name in names if splits[name].n_ones or splits[name].n_tail]
        host = device.pinned(sum(POINT_BYTES[_group(name)] for name in names))
        ride = Ride(
            splits, {name: at[f"tail {name}"] for name in names}, {name: at[f"partials {name}"] for name in names},
            {name: at[f"total {name}"] for name in names},
            {chunk.id for name in some for chunk in self._lists[name]}, host,
        )  # fmt: skip
        try:
            if ride.todo:
                with self._changed:
                    if self._closing:
                        raise RuntimeError("the key is being given back")
                    self._riders.append(ride)
                    self._changed.notify()
                ride.queued.wait()
                if ride.error is not None:
                    raise ride.error
                device.wait(ride.ended)
            offset = 0
            for name in names:
                size = POINT_BYTES[_group(name)]
                found = host.array[offset : offset + size].view(np.uint64).reshape(1, -1).copy()
                ride.sums[name] = found if splits[name].n_ones else np.zeros_like(found)
                offset += size
        finally:
            host.free()
        return ride

    def close(self) -> None:
        """Nobody rides any more."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        for addition in self._additions.values():
            addition.free()

    # -- the thread --------------------------------------------------------------------------------------

    def _serve(self) -> None:
        self._turns.device.use()
        while True:
            with self._changed:
                while not self._riders and not self._closing:
                    self._changed.wait()
                if self._closing:
                    return
            try:
                self._pass_one()
            except BaseException as error:  # all who ride learn of it; the next may try again
                self._ring.settle(self._turns.stream)
                with self._changed:
                    riders, self._riders = self._riders, []
                for ride in riders:
                    ride.error = error
                    ride.queued.set()

    def _window(self) -> list[int]:
        """Places in the order of the next chunks that somebody needs, as many as the ring has places."""
        with self._changed:
            needed = set().union(*(ride.todo for ride in self._riders))
        n = len(self._order)
        found = [i % n for i in range(self._at, self._at + n) if self._order[i % n].id in needed]
        return found[: self._ring.slots]

    def _pass_one(self) -> None:
        """The next chunk, for all who ride."""
        window = self._window()
        chunks = [self._order[i] for i in window]
        for chunk in chunks:
            if not self._ring.fetch(chunk, chunks):
                break
        chunk = chunks[0]
        address = self._ring.take(chunk)
        with self._changed:
            served = [ride for ride in self._riders if chunk.id in ride.todo]
        with self._turns.turn(self._queued, AHEAD) as turn:
            for ride in served:
                self._add(ride, chunk, address, turn)
                ride.todo.discard(chunk.id)
                if not ride.todo:
                    self._finish(ride, turn)
            self._ring.release(chunk, turn.stream)
            turn.pause()
        self._at = (window[0] + 1) % len(self._order)
        with self._changed:
            done = [ride for ride in self._riders if not ride.todo]
            self._riders = [ride for ride in self._riders if ride.todo]
            if not self._riders:  # what is left in the ring is where the next one begins
                held = [i for i in range(self._at - self._ring.slots, self._at) if self._ring.holds(self._order[i])]
                self._at = held[0] % len(self._order) if held else self._at
        for ride in done:
            ride.queued.set()

    def _add(self, ride: Ride, chunk: Chunk, address: int, turn: Turn) -> None:
        name, group = chunk.list, _group(chunk.list)
        split, device, index = ride.splits[name], self._turns.device, self._lists[name].index(chunk)
        if split.n_ones:
            out = ride.partials[name] + index * sum_parts() * POINT_BYTES[group]
            expected = max(1, split.n_ones * chunk.count // self._rows[name])
            addition = self._addition(group, chunk.count)
            addition.add_parts(address, split.ones + chunk.first // 8, out, turn.stream, expected=expected)
        gather_points_within(
            device, group, split.tail_rows, split.n_tail, chunk.first, chunk.count, address, ride.tails[name], turn.stream
        )

    def _addition(self, group: Group, count: int) -> BatchAdd:
        if (group, count) not in self._additions:
            device = self._turns.device
            plan = BatchAddPlan(group, count, count, device.multiprocessors)
            self._additions[group, count] = BatchAdd(device, plan, workspace=self._workspace)
        return self._additions[group, count]

    def _finish(self, ride: Ride, turn: Turn) -> None:
        """All has passed: the partial sums become one a list."""
        device, offset = self._turns.device, 0
        for name, chunks in self._lists.items():
            size = POINT_BYTES[_group(name)]
            if ride.splits[name].n_ones:
                add_up(device, _group(name), ride.partials[name], len(chunks) * sum_parts(), ride.totals[name], turn.stream)
                device.copy(ride.host.address + offset, ride.totals[name], size, turn.stream)
            offset += size
        ride.ended = device.event()
        device.record(ride.ended, turn.stream)
