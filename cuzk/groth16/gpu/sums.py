"""The sums of a proof on a GPU: one MSM over the quotient's scalars, and of every other list the ones and the tail.

Temporaries lie in a buffer that the pipeline has granted, and are cut to fit it: chunks of a list, pieces of a tail. Work of one
buffer is queued one after another and awaited at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuzk import native
from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import aligned
from cuzk.gpu.batch_add import BatchAdd, plan_batch_add
from cuzk.gpu.batch_add import plan_bytes as batch_add_bytes
from cuzk.gpu.msm import Msm
from cuzk.gpu.msm_plan import POINT_BYTES, Group, MsmPlan, plan_msm
from cuzk.gpu.split import RowSplit, gather_points
from cuzk.groth16.gpu.proving_gpu import ProvingGpu
from cuzk.groth16.key import Query
from cuzk.groth16.prover.state import Split

CHUNK_STEP = 32
"""Chunks of a bitmap begin at a word."""
Pending = Callable[[], np.ndarray]
"""A sum that is queued: a call waits for it."""
_ADD = {"g1": native.g1_add, "g2": native.g2_add}


class Sums:
    """Sums with temporaries in `block`, queued on this thread's stream. `close` after the last result."""

    def __init__(self, gpu: ProvingGpu, block: Any) -> None:
        self._gpu, self._block = gpu, block
        self._device, self._multiprocessors = gpu.device, gpu.device.multiprocessors
        self._operations: list[Any] = []
        self._kept: list[np.ndarray] = []

    def __enter__(self) -> Sums:
        return self

    def __exit__(self, *_: Any) -> None:
        self._gpu.finish()
        for operation in self._operations:
            operation.free()

    # -- MSMs --------------------------------------------------------------------------------------------

    def msm(self, group: Group, n: int, points: int, scalars: int, *, on_device: bool, mont: bool = False) -> Pending:
        """Σ scalar·point of two lists on the device, or in the host's memory."""
        plan = self._msm_plan(group, n, self._block.size_bytes, on_device)
        return self._msm(plan, self._block.address, points, scalars, mont)

    def streamed_h(self, n: int, scalars: int) -> Pending:
        """The MSM over the key's list of h, whose points pass by; scalars (std) are on the device. Returns once all is queued."""
        key, turns = self._gpu.streamed, self._gpu.turns
        assert key is not None and turns is not None
        plan = plan_msm(
            n, "g1", self._block.size_bytes, residency="streamed", multiprocessors=self._multiprocessors, max_chunk=key.h_part
        )
        msm = Msm(self._device, plan, workspace=self._block.address)
        self._operations.append(msm)
        with key.h.alone, turns.turn() as turn:
            walk = key.h.walk(turn.stream, turn.aside)
            try:
                return msm.run_streamed(walk, scalars, turn.stream, pause=turn.pause).result
            finally:
                walk.close()

    def _msm_plan(self, group: Group, n: int, room: int, on_device: bool) -> MsmPlan:
        residency: Any = "device" if on_device else "pinned"
        return plan_msm(n, group, room, residency=residency, multiprocessors=self._multiprocessors)

    def _msm(self, plan: MsmPlan, workspace: int, points: int, scalars: int, mont: bool) -> Pending:
        msm = Msm(self._device, plan, workspace=workspace)
        self._operations.append(msm)
        copies = self._gpu.stream("copies") if plan.residency == "pinned" else None
        return msm.run(points, scalars, self._gpu.stream(), scalars_mont=mont, copy_stream=copies).result

    def tail(self, name: str, group: Group, split: RowSplit, rows: int, mont: bool) -> Pending:
        """The MSM over the tail of a list on the device: its points are gathered first, piece by piece where they do not fit."""
        size, points = POINT_BYTES[group], self._gpu.points[name]
        if split.n_tail == 0:
            return _added(group, [])
        if split.n_tail == rows:  # all of them: used where they lie
            return self.msm(group, rows, points, split.tail_scalars, on_device=True, mont=mont)
        piece, plan = self._piece(group, split.n_tail)
        parts: list[Pending] = []
        for first in range(0, split.n_tail, piece):
            count = min(piece, split.n_tail - first)
            if count != plan.n:
                plan = self._msm_plan(group, count, self._block.size_bytes - aligned(piece * size), True)
            gathered = self._block.address
            gather_points(self._device, group, split.tail_rows + 4 * first, count, points, gathered, self._gpu.stream())
            parts.append(self._msm(plan, gathered + aligned(piece * size), gathered, split.tail_scalars + 32 * first, mont))
        return _added(group, parts)

    def _piece(self, group: Group, n: int) -> tuple[int, MsmPlan]:
        """Points of the largest piece of a tail that fits with its MSM, and the MSM's plan. OutOfMemoryError."""
        piece, size = n, POINT_BYTES[group]
        while True:
            try:
                return piece, self._msm_plan(group, piece, max(0, self._block.size_bytes - aligned(piece * size)), True)
            except OutOfMemoryError:
                if piece <= CHUNK_STEP:
                    raise
                piece = -(-piece // 2)

    def tail_from_host(self, group: Group, split: Split, query: Query) -> Pending:
        """The same for a split on the host: its points are gathered there."""
        bases = np.ascontiguousarray(query.points[split.tail_rows])
        scalars = np.ascontiguousarray(split.tail_scalars)
        self._kept += [bases, scalars]
        return self.msm(group, len(bases), bases.ctypes.data, scalars.ctypes.data, on_device=False)

    # -- batch additions ---------------------------------------------------------------------------------

    def ones(self, name: str, group: Group, split: RowSplit, rows: int) -> Pending:
        """The sum of the points of a list on the device whose scalar is one."""
        points, size, room = self._gpu.points[name], POINT_BYTES[group], self._block.size_bytes
        if split.n_ones == 0:
            return _added(group, [])
        chunk = rows
        if self._addition_bytes(name, group, rows, split.n_ones) > room:
            chunk = self._chunk(rows, lambda count: self._addition_bytes(name, group, count, min(count, split.n_ones)))
        parts = []
        for first in range(0, rows, chunk):
            count = min(chunk, rows - first)
            addition = self._addition(name, group, count, min(count, split.n_ones), self._block.address, room)
            bitmap, first_sum = split.ones + first // 8, self._first_sum(name, first)
            parts.append(addition.run(points + first * size, bitmap, self._gpu.stream(), first_sum).result)
        return _added(group, parts)

    def ones_from_host(self, name: str, group: Group, split: Split, rows: int) -> Pending:
        """The same for a split on the host, and for lists that lie there: their points go through the block, chunk by chunk."""
        here, stream, size = self._gpu.key_on_device, self._gpu.stream(), POINT_BYTES[group]

        def before(count: int) -> tuple[int, int]:
            """Bytes of a chunk's bitmap, and of its points."""
            return aligned(-(-count // 8) + 4), 0 if here else aligned(count * size)

        chunk = self._chunk(rows, lambda count: sum(before(count)) + self._addition_bytes(name, group, count, count))
        parts = []
        for first in range(0, rows, chunk):
            count = min(chunk, rows - first)
            bits = split.ones[first // 8 : -(-(first + count) // 8)]
            selected = int(np.bitwise_count(bits).sum())
            if selected == 0:
                continue
            bitmap_bytes, points_bytes = before(count)
            bitmap, points = self._block.address, self._gpu.points[name] + first * size
            self._device.copy(bitmap, bits.ctypes.data, bits.nbytes, stream)
            if not here:
                self._device.copy(bitmap + bitmap_bytes, points, count * size, stream)
                points = bitmap + bitmap_bytes
            used = bitmap_bytes + points_bytes
            addition = self._addition(name, group, count, selected, bitmap + used, self._block.size_bytes - used)
            parts.append(addition.run(points, bitmap, stream, self._first_sum(name, first)).result)
        return _added(group, parts)

    def _first_sum(self, name: str, first: int) -> int | None:
        """Points from row `first` (a word begins there) of a list to the sum of it and the next; None where none are kept."""
        return self._gpu.first_sum[name] - first // 2 if name in self._gpu.first_sum else None

    def _addition_bytes(self, name: str, group: Group, count: int, selected: int) -> int:
        shape: Any = {"multiprocessors": self._multiprocessors, "pair_sums": name in self._gpu.first_sum}
        return batch_add_bytes(count, group, selected=selected, **shape)

    def _addition(self, name: str, group: Group, count: int, selected: int, workspace: int, room: int) -> BatchAdd:
        shape: Any = {"multiprocessors": self._multiprocessors, "pair_sums": name in self._gpu.first_sum}
        plan = plan_batch_add(count, group, room, selected=selected, **shape)
        addition = BatchAdd(self._device, plan, workspace=workspace)
        self._operations.append(addition)
        return addition

    def _chunk(self, n: int, need: Callable[[int], int]) -> int:
        """Points of the largest chunk for which `need` bytes fit the block. OutOfMemoryError."""
        chunk = max(CHUNK_STEP, -(-n // CHUNK_STEP) * CHUNK_STEP)
        while need(chunk) > self._block.size_bytes:
            if chunk == CHUNK_STEP:
                raise OutOfMemoryError(
                    f"VRAM: batch addition needs {need(chunk)} bytes of temporaries, {self._block.size_bytes} are granted"
                )
            chunk = max(CHUNK_STEP, chunk // 2 // CHUNK_STEP * CHUNK_STEP)
        return chunk


def _added(group: Group, parts: list[Pending]) -> Pending:
    """The sum of some sums."""

    def result() -> np.ndarray:
        total = np.zeros((1, POINT_BYTES[group] // 8), dtype=np.uint64)
        for part in parts:
            total = _ADD[group](total, part())
        return total

    return result
