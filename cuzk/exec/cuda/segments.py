"""Sums of many lists of points: rounds of pairwise addition, enqueued without waiting for any count.

The kernels are in kernels/msm/segments.cuh.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .msm_plan import PAIR_THREADS, SCAN_THREADS, SCAN_TILE, Group, rounds_for

INDEX = "msm/index"
SMALL_BLOCKS = 16  # blocks an SM of round_pairs: it loops over a count that only the device knows


class PairShape(Protocol):
    """What a plan says about pair_add."""

    group: Group

    @property
    def pair_blocks(self) -> int: ...
    @property
    def batch(self) -> int: ...


def points_module(group: Group) -> str:
    return f"msm/points_{group}"


def tail_module(group: Group) -> str:
    return f"msm/tail_{group}"


def u32(value: int) -> np.uint32:
    return np.uint32(value)


def scan_counts(device: Any, stream: Any, count: int, n: int, sums: int, total: int, start: int, cursor: int) -> None:
    """start[0..n] = exclusive prefix sums of count[0..n), also into cursor (which may be count); the sum of all at `total`."""
    tiles = -(-n // SCAN_TILE)  # a tile of 2048 a block, then one block over the tiles
    device.launch(device.kernel(INDEX, "count_tile_sums"), tiles, SCAN_THREADS, (count, u32(n), sums), stream)
    device.launch(device.kernel(INDEX, "count_scan_sums"), 1, 1024, (sums, u32(tiles), total), stream)
    device.launch(device.kernel(INDEX, "count_starts"), tiles, SCAN_THREADS, (count, u32(n), sums, start, cursor), stream)


REF_POINT = 1 << 30  # as in kernels/msm/references.cuh


def list_pairs(device: Any, stream: Any, at: dict[str, int], n: int, count: int, *, second: int, step: int) -> None:
    """pairs[i] = (point i, reference second + step * i), i < n; n to address `count`. Streaming: 2048 threads an SM."""
    device.launch(
        device.kernel(INDEX, "list_pairs"),
        8 * device.multiprocessors,
        256,
        (u32(n), u32(second), u32(step), at["pairs"], count, at["ticket"]),
        stream,
    )


def add_pairs(
    device: Any, stream: Any, plan: PairShape, at: dict[str, int], count: int, *, points: int, pool: int
) -> None:
    """One pair_add over `pairs`, whose number lies at address `count`. All blocks are resident (one of 512 threads
    an SM); their warps take tiles of pairs from the counter `ticket`, which whoever lists the pairs sets to zero."""
    device.launch(
        device.kernel(points_module(plan.group), f"pair_add_{plan.group}"),
        plan.pair_blocks,
        PAIR_THREADS,
        (at["pairs"], count, points, pool, at["scratch"], u32(plan.batch), at["ticket"]),
        stream,
    )


def sum_segments(
    device: Any,
    stream: Any,
    plan: PairShape,
    at: dict[str, int],
    *,
    segments: int,
    longest: int,
    points: int,
    stop_at: int = 1,
) -> tuple[int, int]:
    """Reduces the segments in start_a / references_a until none is longer than `stop_at`; finished ones land in `result`.

    `at` names the temporaries (MsmPlan.layout). `longest` bounds the length of a segment. Returns the addresses of the
    references after the last round and of their number.
    """
    start, next_start = at["start_a"], at["start_b"]
    references, next_references = at["references_a"], at["references_b"]
    counts, tiles = at["counts"], -(-segments // SCAN_TILE)
    rounds = max(0, rounds_for(longest) - rounds_for(stop_at))
    for r in range(rounds + 1):
        if r == rounds and stop_at > 1:
            break
        n, r32 = u32(segments), u32(r)
        device.launch(device.kernel(INDEX, "round_tile_sums"), tiles, SCAN_THREADS, (start, n, at["sums"], counts, r32), stream)
        device.launch(device.kernel(INDEX, "round_scan_sums"), 1, 1024, (at["sums"], u32(tiles), counts, r32), stream)
        here = (start, references, n)
        device.launch(
            device.kernel(INDEX, "round_starts"),
            tiles,
            SCAN_THREADS,
            (*here, at["sums"], at["pair_start"], next_start, at["result"], counts, r32),
            stream,
        )
        if r == rounds:  # only to pick up what the last additions finished
            break
        device.launch(
            device.kernel(INDEX, "round_pairs"),
            SMALL_BLOCKS * device.multiprocessors,
            256,
            (*here, at["pair_start"], next_start, at["pairs"], next_references, counts, r32, at["ticket"]),
            stream,
        )
        add_pairs(device, stream, plan, at, counts + 4 * (2 * r + 1), points=points, pool=at["pool"])
        start, next_start = next_start, start
        references, next_references = next_references, references
    return references, counts + 4 * 2 * rounds
