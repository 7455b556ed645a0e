"""Made once for fixed points: their multiples by powers of two, so that several windows of an MSM share one set of buckets; and
the sums of neighbours, of which a batch addition takes one where both are chosen.
"""

from __future__ import annotations

from typing import Any

from cuzk.gpu.arena import Layout
from cuzk.gpu.batch_add import BatchAddPlan
from cuzk.gpu.msm_plan import PAIR_THREADS, POINT_BYTES, Group, MsmPlan
from cuzk.gpu.segments import REF_POINT, add_pairs, list_pairs, tail_module, u32

PAIR_SUMS_CHUNK = 1 << 22  # pairs: full batches, and a quarter of a GiB of temporaries


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


def build_pair_sums(device: Any, group: Group, n: int, points: int, stream: Any) -> None:
    """Writes the sums of points 2i and 2i + 1, i < n // 2, behind the n points at `points`; waits until they are there.

    The block at `points` has (n + n // 2) points. An affine addition a sum; temporaries of its own.
    """
    if n < 2:
        return
    size, chunk = POINT_BYTES[group], min(n // 2, PAIR_SUMS_CHUNK)
    shape = BatchAddPlan(group, 2 * chunk, 2 * chunk, device.multiprocessors)
    scratch = 48 * shape.pair_blocks * PAIR_THREADS * shape.batch
    layout = Layout([("pairs", 8 * chunk), ("count", 4), ("ticket", 4), ("scratch", scratch)])
    work, done = device.allocate(layout.total_bytes, f"making {n // 2} sums of points"), device.event()
    at = layout.at(work.address)
    for first in range(0, n // 2, chunk):
        count = min(chunk, n // 2 - first)
        list_pairs(device, stream, at, count, at["count"], second=REF_POINT | 1, step=2, first_step=2)
        source, target = points + 2 * first * size, points + (n + first) * size
        add_pairs(device, stream, shape, at, at["count"], points=source, pool=target)
    device.record(done, stream)
    device.wait(done)
    work.free()
