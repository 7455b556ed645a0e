"""Batch addition on the GPU: the sum of the points whose bit is set, by rounds of affine additions that share inversions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import Layout
from cuzk.gpu.msm_plan import (
    LANES,
    MAX_BATCH,
    MAX_INDEX,
    PAIR_BLOCKS_PER_SM,
    PAIR_THREADS,
    POINT_BYTES,
    SCAN_TILE,
    Group,
    rounds_for,
    scan_state_bytes,
)
from cuzk.gpu.segments import INDEX, TAIL_THREADS, XYZZ_BYTES, pair_references, points_module, scan_counts, tail_module, u32

# References left when the rounds end and plain additions take over: a round of few pairs costs an inversion's latency.
FINISH_AT = 1 << 18
FINISH_BLOCKS = 128


def sum_parts() -> int:
    """Points that a sum is left as before they are added up."""
    return FINISH_BLOCKS + 1


@dataclass(frozen=True)
class BatchAddPlan:
    """The shape of one batch addition over n points of which at most `selected` are chosen.

    With `pair_sums`, the n // 2 sums of points 2i and 2i + 1 lie behind them (tables.build_pair_sums), and two neighbours that
    are both chosen cost one addition: of half of the points, three quarters as many.
    """

    group: Group
    n: int
    selected: int
    multiprocessors: int
    pair_sums: bool = False

    @property
    def references(self) -> int:
        """Points and sums to add, at most."""
        return min(self.selected, -(-self.n // 2)) if self.pair_sums else self.selected

    @property
    def words(self) -> int:
        return -(-self.n // 32)

    @property
    def pair_blocks(self) -> int:
        return self.multiprocessors * PAIR_BLOCKS_PER_SM

    @property
    def batch(self) -> int:
        units = self.pair_blocks * PAIR_THREADS // LANES[self.group]
        return min(MAX_BATCH, max(1, -(-self.references // 2 // units)))

    def layout(self) -> Layout:
        """All temporaries."""
        pairs = max(1, -(-self.references // 2))
        return Layout(
            [
                ("counts", 4 * (2 * rounds_for(self.references) + 8)),
                ("ticket", 4),
                ("word_count", 4 * self.words),
                ("word_start", 4 * (self.words + 1)),
                ("sums", 8 * -(-max(self.words, 1) // SCAN_TILE)),
                ("scan_state", scan_state_bytes(1, rounds_for(self.references))),
                ("start_a", 8),
                ("start_b", 8),
                ("job_start", 8),
                ("result", 4),
                ("references_a", 4 * self.references),
                ("references_b", 4 * (pairs + 1)),
                ("pairs", 8 * pairs),
                ("scratch", 48 * self.pair_blocks * PAIR_THREADS * self.batch),
                ("pool", pairs * POINT_BYTES[self.group]),
                ("partial", sum_parts() * POINT_BYTES[self.group]),
                ("sum", POINT_BYTES[self.group]),
            ]
        )

    @property
    def workspace_bytes(self) -> int:
        return self.layout().total_bytes if self.n else 0


def plan_batch_add(
    n: int,
    group: Group,
    budget_bytes: int,
    *,
    selected: int | None = None,
    multiprocessors: int = 132,
    pair_sums: bool = False,
) -> BatchAddPlan:
    """`selected`: bits set, where known (they size the temporaries), else up to n. OutOfMemoryError names need and budget."""
    if not 0 <= n + pair_sums * (n // 2) <= MAX_INDEX:
        raise ValueError(f"{n} points {'and sums of pairs ' if pair_sums else ''}are outside 0 .. 2^30")
    plan = BatchAddPlan(group, n, n if selected is None else selected, multiprocessors, pair_sums)
    if plan.workspace_bytes > budget_bytes:
        raise OutOfMemoryError(
            f"VRAM: batch addition of {plan.selected} points in {group.upper()} needs "
            f"{plan.workspace_bytes / 2**30:.2f} GiB of temporaries, {budget_bytes / 2**30:.2f} GiB are granted"
        )
    return plan


def plan_bytes(n: int, group: Group, *, selected: int | None = None, multiprocessors: int = 132, pair_sums: bool = False) -> int:
    """Exactly the bytes of VRAM that a BatchAdd of this shape allocates for itself."""
    return BatchAddPlan(group, n, n if selected is None else selected, multiprocessors, pair_sums).workspace_bytes


class BatchAddHandle:
    def __init__(self, device: Any, plan: BatchAddPlan, event: Any, sum_bytes: np.ndarray) -> None:
        self._device, self._plan, self._event, self._sum = device, plan, event, sum_bytes

    def result(self) -> np.ndarray:
        """Waits for the last event: (1, 12) or (1, 24) uint64, affine, mont."""
        if self._plan.n == 0:
            return np.zeros((1, POINT_BYTES[self._plan.group] // 8), dtype=np.uint64)
        self._device.wait(self._event)
        return self._sum.view(np.uint64).reshape(1, -1).copy()


class BatchAdd:
    """One batch addition's temporaries on a device. Runs one at a time."""

    def __init__(self, device: Any, plan: BatchAddPlan, workspace: int | None = None) -> None:
        """`workspace`: address of plan.workspace_bytes of device memory; None allocates them (OutOfMemoryError)."""
        self.device, self.plan = device, plan
        self._memory = None
        if workspace is None and plan.n:
            what = f"workspace of a batch addition of {plan.selected} points in {plan.group.upper()}"
            self._memory = device.allocate(plan.workspace_bytes, what)
            workspace = self._memory.address
        self._at = plan.layout().at(workspace or 0)
        self._sum = device.pinned(POINT_BYTES[plan.group])
        self._done = device.event()

    def free(self) -> None:
        """Gives the memory back; the last run must be complete."""
        if self._memory is not None:
            self._memory.free()
        self._sum.free()

    def run(self, points: int, bitmap: int, stream: Any, first_sum: int | None = None) -> BatchAddHandle:
        """Enqueues the sum; returns at once. Arguments as of `add`."""
        plan, device, at = self.plan, self.device, self._at
        if plan.n == 0:
            return BatchAddHandle(device, plan, None, self._sum.array)
        self.add(points, bitmap, at["sum"], stream, first_sum)
        device.copy(self._sum.address, at["sum"], POINT_BYTES[plan.group], stream)
        device.record(self._done, stream)
        return BatchAddHandle(device, plan, self._done, self._sum.array)

    def add(self, points: int, bitmap: int, out: int, stream: Any, first_sum: int | None = None) -> None:
        """Enqueues the sum, which comes to the device address `out`. Arguments as of `add_parts`."""
        self.add_parts(points, bitmap, self._at["partial"], stream, first_sum=first_sum)
        add_up(self.device, self.plan.group, self._at["partial"], sum_parts(), out, stream)

    def add_parts(
        self, points: int, bitmap: int, out: int, stream: Any, *, first_sum: int | None = None, expected: int | None = None
    ) -> None:
        """Enqueues sum_parts() points at device address `out` whose sum is the sum; returns at once.

        points: device address of n affine points, mont. bitmap: device address of ceil(n / 32) words, bit i of word i // 32 for
        point i; later bits are ignored. No more than plan.selected bits may be set. first_sum: with plan.pair_sums, how many
        points behind `points` the sums begin; None: n. expected: points that are chosen, about; a matter of time only.
        """
        plan, device, at = self.plan, self.device, self._at
        first_sum = (plan.n if first_sum is None else first_sum) if plan.pair_sums else 0
        if first_sum + plan.n // 2 > MAX_INDEX:
            raise ValueError(f"sums of pairs {first_sum} points on are outside 0 .. 2^30")
        shape = (u32(plan.words), u32(plan.n), u32(first_sum))
        blocks = 8 * device.multiprocessors  # streaming: 2048 threads an SM, looping over words
        device.launch(device.kernel(INDEX, "bitmap_counts"), blocks, 256, (bitmap, *shape, at["word_count"]), stream)
        scan_counts(device, stream, at["word_count"], plan.words, at["sums"], at["counts"], at["word_start"], at["word_count"])
        device.launch(
            device.kernel(INDEX, "bitmap_references"),
            blocks,
            256,
            (bitmap, *shape, at["word_start"], at["references_a"], at["start_a"]),
            stream,
        )
        device.fill(at["result"], 0xFF, 4, stream)
        rounds = max(0, rounds_for(min(plan.references, expected or plan.references)) - rounds_for(FINISH_AT))
        references, count = pair_references(device, stream, plan, at, rounds=rounds, points=points)
        kernel = device.kernel(tail_module(plan.group), f"sum_points_{plan.group}")
        shared = TAIL_THREADS * XYZZ_BYTES
        # What is left: a block an SM, a few references a thread. If few bits were set, the rounds finished and the
        # sum is in `result`. Then one block over all.
        size = POINT_BYTES[plan.group]
        left = (references, count, u32(0), points, at["pool"], out)
        device.launch(kernel, FINISH_BLOCKS, TAIL_THREADS, left, stream, shared_bytes=shared)
        finished = (at["result"], u32(1), points, at["pool"], out + FINISH_BLOCKS * size)
        device.launch(device.kernel(points_module(plan.group), f"gather_{plan.group}"), 1, 32, finished, stream)


def add_up(device: Any, group: Group, points: int, count: int, out: int, stream: Any) -> None:
    """Enqueues the sum of `count` points at address `points`, a few hundred, to address `out`: one block."""
    kernel = device.kernel(tail_module(group), f"sum_points_{group}")
    args = (0, 0, u32(count), points, points, out)
    device.launch(kernel, 1, TAIL_THREADS, args, stream, shared_bytes=TAIL_THREADS * XYZZ_BYTES)
