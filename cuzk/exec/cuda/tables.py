"""Made once for fixed points: their multiples 2^(c sets j), so that several windows of an MSM share one set of buckets."""

from __future__ import annotations

from typing import Any

from .arena import Layout
from .msm_plan import MAX_BATCH, PAIR_THREADS, MsmPlan
from .segments import REF_POINT, add_pairs, list_pairs

MAX_STEP = 1 << 24  # points doubled by one launch: bounds the list of pairs


def scratch_layout(plan: MsmPlan) -> Layout:
    """Temporaries of build_tables, beside the tables themselves."""
    step = max(1, min(plan.n, MAX_STEP))
    return Layout(
        [("pairs", 8 * step), ("count", 4), ("scratch", 48 * plan.pair_blocks * PAIR_THREADS * min(plan.batch, MAX_BATCH))]
    )


def build_tables(device: Any, plan: MsmPlan, points: int, stream: Any) -> None:
    """Fills tables 1 .. tables-1 behind table 0, which holds the plan's n points at `points`. Waits for completion.

    The block at `points` has tables * n * point_bytes bytes. Doubling is affine, with shared inversions.
    """
    if plan.n == 0 or plan.tables == 1:
        return
    layout = scratch_layout(plan)
    memory = device.allocate(layout.total_bytes, "scratch for tables of shifted points")
    at = layout.at(memory.address)
    table_bytes = plan.n * plan.point_bytes
    for table in range(1, plan.tables):
        target = points + table * table_bytes
        device.copy(target, target - table_bytes, table_bytes, stream)
        for first in range(0, plan.n, MAX_STEP):
            count, here = min(MAX_STEP, plan.n - first), target + first * plan.point_bytes
            list_pairs(device, stream, at, count, at["count"], second=REF_POINT, step=1)
            for _ in range(plan.table_shift_bits(1)):
                # In place: only the thread that doubles a point reads or writes it.
                add_pairs(device, stream, plan, at, at["count"], points=here, pool=here)
    done = device.event()
    device.record(done, stream)
    device.wait(done)
    memory.free()
