"""Multi-scalar multiplication on the GPU: Pippenger's buckets, filled by affine additions that share inversions.

For each chunk of points and each group of bucket sets: cut the scalars into signed digits, sort references to the points
by bucket (two counting passes), add up every bucket in rounds of pairs. After the last chunk, for each fold of groups: row and
column sums of the bucket matrices by the same rounds, two weighted sums a set; and the host joins the sets:
sum of 2^(first bit of the set) * (2^column_bits * Rows + Columns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cuzk import native
from cuzk.gpu.arena import aligned
from cuzk.gpu.msm_plan import TILE, TILE_THREADS, Group, MsmPlan, Residency, plan_msm
from cuzk.gpu.segments import (
    INDEX,
    TAIL_THREADS,
    XYZZ_BYTES,
    add_pairs,
    list_pairs,
    points_module,
    scan_counts,
    sum_segments,
    tail_module,
    u32,
)


def plan_bytes(n: int, group: Group, budget_bytes: int, residency: Residency = "device", **shape: Any) -> int:
    """Exactly the bytes of VRAM that an Msm of this shape allocates for itself; OutOfMemoryError if none fits the budget."""
    return plan_msm(n, group, budget_bytes, residency=residency, **shape).workspace_bytes


PointPart = tuple[int, int, int]
"""Some of the streamed points: index of the first, their number, and where they lie on the device."""


def _nothing() -> None:
    """No pause."""


class MsmHandle:
    """A running MSM. `result()` may be called once its work is enqueued, from any thread, any number of times."""

    def __init__(self, device: Any, plan: MsmPlan, event: Any, sums: np.ndarray) -> None:
        self._device, self._plan, self._event, self._sums = device, plan, event, sums
        self._result: np.ndarray | None = None

    def result(self) -> np.ndarray:
        """Waits for the last event and joins the bucket sets on the host: (1, 12) or (1, 24) uint64, affine, mont."""
        if self._result is None:
            plan = self._plan
            limbs = plan.point_bytes // 8
            if plan.n == 0:
                self._result = np.zeros((1, limbs), dtype=np.uint64)
                return self._result
            self._device.wait(self._event)
            self._result = self.join()
        return self._result

    def join(self) -> np.ndarray:
        """The result from the bucket sets' sums as they lie on the host now: for a run that is awaited otherwise (a graph's)."""
        plan = self._plan
        points = self._sums.view(np.uint64).reshape(2 * plan.sets, -1).copy()
        shifts = [plan.first_bit(row // 2) + (0 if row % 2 else plan.column_bits) for row in range(2 * plan.sets)]
        join = native.shifted_sum_g1 if plan.group == "g1" else native.shifted_sum_g2
        return join(points, np.array(shifts, dtype=np.uint32))


class Msm:
    """One MSM's temporaries on a device. Runs one at a time: a new run may start once the last one's event has passed."""

    def __init__(self, device: Any, plan: MsmPlan, workspace: int | None = None) -> None:
        """`workspace`: address of plan.workspace_bytes of device memory; None allocates them (OutOfMemoryError)."""
        self.device, self.plan = device, plan
        self._memory = None
        if workspace is None and plan.n:
            what = f"workspace of an MSM of {plan.n} points in {plan.group.upper()}"
            self._memory = device.allocate(plan.workspace_bytes, what)
            workspace = self._memory.address
        self._at = plan.layout().at(workspace or 0)
        self._sums = device.pinned(2 * plan.sets * plan.point_bytes)
        self._copied = [device.event(), device.event()]
        self._used = [device.event(), device.event()]
        self._done = device.event()

    def free(self) -> None:
        """Gives the memory back; the last run must be complete."""
        if self._memory is not None:
            self._memory.free()
        self._sums.free()

    def run(self, points: int, scalars: int, stream: Any, *, scalars_mont: bool = False, copy_stream: Any = None) -> MsmHandle:
        """Enqueues the MSM; returns at once.

        points: address of tables * n affine points, mont (infinity = zero bytes). scalars: address of n * 32 bytes, mont
        or std. Both on the device or both in pinned host memory, as planned; then `copy_stream` carries the uploads.
        """
        plan, device, at = self.plan, self.device, self._at
        if plan.n == 0:
            return MsmHandle(device, plan, None, self._sums.array)
        if plan.residency == "pinned" and copy_stream is None:
            raise ValueError("a plan with pinned points needs a copy stream")
        for index in range(plan.chunks):
            first = index * plan.chunk
            count = min(plan.chunk, plan.n - first)
            if plan.residency == "pinned":
                self._upload(index, first, count, points, scalars, stream, copy_stream)
                side = "ab"[index % 2]
                chunk_points, chunk_scalars, stride = at[f"points_{side}"], at[f"scalars_{side}"], count
            else:
                chunk_points, chunk_scalars, stride = points + first * plan.point_bytes, scalars + first * 32, plan.n
            last = index == plan.chunks - 1
            self._add_chunk(chunk_points, chunk_scalars, count, stride, index > 0, last, scalars_mont, stream, _nothing)
            if plan.residency == "pinned":
                device.record(self._used[index % 2], stream)
        return self._end(stream)

    def run_streamed(
        self, parts: Iterable[PointPart], scalars: int, stream: Any, *, scalars_mont: bool = False, pause: Callable[[], None]
    ) -> MsmHandle:
        """Enqueues the MSM of points that come part by part, each once and in any order; returns when the last part is queued.

        A part is there for work queued until the next is asked for. scalars: address of n * 32 bytes on the device. `pause` is
        called between pieces of work of a few milliseconds.
        """
        plan, done = self.plan, 0
        if plan.residency != "streamed":
            raise ValueError("this plan is not for streamed points")
        if plan.n == 0:
            return MsmHandle(self.device, plan, None, self._sums.array)
        for first, count, points in parts:
            if plan.chunks == 1 and count < plan.n:
                raise ValueError(f"a part of {count} points for an MSM that was planned for all {plan.n} at once")
            for begin in range(0, count, plan.chunk):
                piece = min(plan.chunk, count - begin)
                last = done + piece == plan.n
                at = (points + begin * plan.point_bytes, scalars + (first + begin) * 32)
                self._add_chunk(*at, piece, plan.n, done > 0, last, scalars_mont, stream, pause)
                done += piece
        if done != plan.n:
            raise ValueError(f"{done} points came for an MSM of {plan.n}")
        return self._end(stream)

    def _add_chunk(self, points: int, scalars: int, count: int, stride: int, merge: bool, last: bool, scalars_mont: bool,
                   stream: Any, pause: Callable[[], None]) -> None:  # fmt: skip
        """A chunk into the buckets; after the `last` one they are reduced."""
        plan, at = self.plan, self._at
        whole = merge or not last  # more than this chunk: the buckets of all sets are kept
        for fold_first, fold_sets in plan.folds():
            # With one chunk, every fold begins where the one before it did.
            held = at["buckets"] + (plan.buckets(0, fold_first) * plan.point_bytes if whole else 0)
            for first_set in range(fold_first, fold_first + fold_sets, plan.group_sets):
                sets = min(plan.group_sets, plan.sets - first_set)
                buckets = held + plan.buckets(fold_first, first_set - fold_first) * plan.point_bytes
                self._sort(scalars, count, stride, first_set, sets, scalars_mont, stream)
                pause()
                self._fill(points, count, first_set, sets, buckets, merge, stream, pause)
                pause()
            if last:
                self._reduce(fold_first, fold_sets, held, stream)

    def _end(self, stream: Any) -> MsmHandle:
        plan, device = self.plan, self.device
        device.copy(self._sums.address, self._at["sums_out"], 2 * plan.sets * plan.point_bytes, stream)
        device.record(self._done, stream)
        return MsmHandle(device, plan, self._done, self._sums.array)

    def _upload(self, index: int, first: int, count: int, points: int, scalars: int, stream: Any, copy_stream: Any) -> None:
        """Chunk `index` into its side of the double buffer, once the chunk before the last has been used."""
        plan, device, side = self.plan, self.device, "ab"[index % 2]
        if index == 0:
            device.record(self._used[0], stream)  # not before earlier work on the stream is done with the workspace
            device.record(self._used[1], stream)
        device.stream_wait(copy_stream, self._used[index % 2])
        size = plan.point_bytes
        for table in range(plan.tables):
            source = points + (table * plan.n + first) * size
            device.copy(self._at[f"points_{side}"] + table * count * size, source, count * size, copy_stream)
        device.copy(self._at[f"scalars_{side}"], scalars + first * 32, count * 32, copy_stream)
        device.record(self._copied[index % 2], copy_stream)
        device.stream_wait(stream, self._copied[index % 2])

    def _sort(self, scalars: int, count: int, stride: int, first_set: int, sets: int, scalars_mont: bool, stream: Any) -> None:
        """References of the chunk sorted by bucket: start_a, references_a, counts[0]."""
        plan, device, at = self.plan, self.device, self._at
        row = plan.tables * count
        buckets = plan.buckets(first_set, sets)
        partitions, widest = buckets >> plan.low_bits, plan.buckets(first_set, 1) >> plan.low_bits
        digits = at["pool"]
        elements = digits + aligned(4 * plan.group_sets * plan.row)
        shape = tuple(
            u32(v)
            for v in (
                *(plan.narrow_bits, plan.wide_sets, plan.windows, plan.sets),
                *(first_set, sets, plan.low_bits, count, stride),
            )
        )
        device.fill(at["partition_count"], 0, 4 * partitions, stream)
        device.fill(at["bucket_count"], 0, 4 * buckets, stream)
        # Two blocks an SM that loop: each empties up to 48 KiB of counters once.
        device.launch(
            device.kernel(INDEX, "msm_digits"),
            min(2 * device.multiprocessors, -(-count // 256)),
            256,
            (*shape, scalars, u32(scalars_mont), digits, at["partition_count"]),
            stream,
            shared_bytes=4 * partitions,
        )
        starts = (at["partition_start"], at["partition_cursor"], at["tile_start"], at["counts"])
        device.launch(
            device.kernel(INDEX, "msm_partition_starts"), 1, 1024, (u32(partitions), at["partition_count"], *starts), stream
        )
        # A block a tile of 8192 digits: runs of 4 to 16 neighbours in every partition, 8 bytes each. 64 KiB of elements and at
        # most 2048 bins of 8 bytes: two blocks an SM.
        device.launch(
            device.kernel(INDEX, "msm_partition"),
            (-(-row // TILE), sets),
            TILE_THREADS,
            (*shape, digits, at["partition_cursor"], elements),
            stream,
            shared_bytes=8 * TILE + 8 * widest,
        )
        # How the tiles fall is known on the device only; every partition adds at most one that is not full.
        tiles = -(-sets * row // TILE) + partitions
        where = (elements, at["partition_start"], at["tile_start"])
        device.launch(
            device.kernel(INDEX, "msm_count_buckets"), tiles, TILE_THREADS, (*shape, *where, at["bucket_count"]), stream
        )
        scan_counts(device, stream, at["bucket_count"], buckets, at["sums"], at["counts"], at["start_a"], at["bucket_count"])
        # 64 KiB of elements and at most 4096 bins of 8 bytes: two blocks an SM. Runs of 2 to 8 neighbours, 4 bytes each; a
        # partition's references (mean bucket 16: 256 KiB) are written by a few blocks at a time and meet in L2.
        device.launch(
            device.kernel(INDEX, "msm_place"),
            tiles,
            TILE_THREADS,
            (*shape, *where, at["bucket_count"], at["references_a"]),
            stream,
            shared_bytes=8 * TILE + (8 << plan.low_bits),
        )

    def _fill(self, points: int, count: int, first_set: int, sets: int, buckets: int, merge: bool, stream: Any,
              pause: Callable[[], None]) -> None:  # fmt: skip
        """Adds up the sorted references into the bucket array, or onto what it holds from earlier chunks."""
        plan, device, at = self.plan, self.device, self._at
        total = plan.buckets(first_set, sets)
        device.fill(at["result"], 0xFF, 4 * total, stream)
        lengths = {"longest": plan.tables * count, "pair_rounds": plan.fill_rounds}
        sum_segments(device, stream, plan, at, segments=total, points=points, pause=pause, **lengths)
        target = at["merged"] if merge else buckets
        # A copy from scattered places: 2048 threads an SM.
        device.launch(
            device.kernel(points_module(plan.group), f"gather_{plan.group}"),
            8 * device.multiprocessors,
            256,
            (at["result"], u32(total), points, at["pool"], target),
            stream,
        )
        if merge:
            list_pairs(device, stream, at, total, at["counts"], second=0, step=1)
            add_pairs(device, stream, plan, at, at["counts"], points=buckets, pool=target)
            device.copy(buckets, target, total * plan.point_bytes, stream)

    def _reduce(self, first_set: int, sets: int, buckets: int, stream: Any) -> None:
        """Row and column sums of the bucket matrices, then their weighted sums into sums_out."""
        plan, device, at = self.plan, self.device, self._at
        shape = tuple(u32(v) for v in (sets, plan.wide_in(first_set, sets), plan.row_bits, plan.column_bits))
        device.launch(
            device.kernel(INDEX, "fold_segments"),
            8 * device.multiprocessors,
            256,
            (
                *shape,
                at["start_a"],
                at["references_a"],
                at["counts"],
            ),
            stream,
        )
        segments = plan.fold_segments(first_set, sets)
        lengths: dict[str, Any] = {"longest": plan.longest_fold, "pair_rounds": plan.fold_rounds(first_set, sets)}
        sum_segments(device, stream, plan, at, segments=segments, points=buckets, **lengths)
        # One block a weighted sum: its tree needs a barrier at every level.
        device.launch(
            device.kernel(tail_module(plan.group), f"weighted_sums_{plan.group}"),
            2 * sets,
            TAIL_THREADS,
            (
                at["result"],
                *shape,
                buckets,
                at["pool"],
                at["sums_out"] + 2 * first_set * plan.point_bytes,
            ),
            stream,
            shared_bytes=2 * TAIL_THREADS * XYZZ_BYTES,
        )


def msm_g1(device: Any, n: int, vram_budget_bytes: int, **shape: Any) -> Msm:
    """An Msm in G1 whose temporaries fit the budget; OutOfMemoryError names need and budget before anything is launched."""
    return Msm(device, plan_msm(n, "g1", vram_budget_bytes, multiprocessors=device.multiprocessors, **shape))


def msm_g2(device: Any, n: int, vram_budget_bytes: int, **shape: Any) -> Msm:
    """The same in G2."""
    return Msm(device, plan_msm(n, "g2", vram_budget_bytes, multiprocessors=device.multiprocessors, **shape))
