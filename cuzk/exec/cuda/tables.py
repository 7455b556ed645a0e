"""Made once for fixed points: their multiples 2^(c sets j), so that several windows of an MSM share one set of buckets."""

from __future__ import annotations

from typing import Any

from .msm_plan import MsmPlan
from .segments import tail_module, u32


def build_tables(device: Any, plan: MsmPlan, points: int, stream: Any) -> None:
    """Enqueues tables 1 .. tables-1 behind table 0, which holds the plan's n points at `points`. No temporaries.

    The block at `points` has tables * n * point_bytes bytes. About 9 multiplications a bit and point, and an inversion a point.
    """
    kernel = device.kernel(tail_module(plan.group), f"shift_points_{plan.group}")
    for table in range(1, plan.tables):
        target = points + table * plan.n * plan.point_bytes
        # All resident: 3 blocks of 128 an SM, a point a thread (G2: a pair of threads), looping.
        device.launch(
            kernel,
            3 * device.multiprocessors,
            128,
            (target - plan.n * plan.point_bytes, u32(plan.n), u32(plan.table_shift_bits(1)), target),
            stream,
        )
