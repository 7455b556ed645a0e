"""Sums of many lists of points: rounds of pairwise addition, enqueued without waiting for any count.

The kernels are in kernels/msm/segments.cuh.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from cuzk.gpu.msm_plan import PAIR_THREADS, SCAN_STATE, SCAN_THREADS, SCAN_TILE, Group, rounds_for, scan_state_bytes

TAIL_THREADS = 256  # as in kernels/msm/tail.cuh
XYZZ_BYTES = 192  # of one lane
INDEX = "msm/index"
MAX_GROUP_BITS = 5  # a lane of a team adds up eight points then
SMALL_BLOCKS = 16  # blocks an SM of round_pairs: it loops over a count that only the device knows


class PairShape(Protocol):
    """The part of a plan that pair_add needs."""

    @property
    def group(self) -> Group: ...
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


def list_pairs(
    device: Any, stream: Any, at: dict[str, int], n: int, count: int, *, second: int, step: int, first_step: int = 1
) -> None:
    """pairs[i] = (point first_step * i, reference second + step * i), i < n; n to address `count`.

    Streaming: 2048 threads an SM.
    """
    device.launch(
        device.kernel(INDEX, "list_pairs"),
        8 * device.multiprocessors,
        256,
        (u32(n), u32(first_step), u32(second), u32(step), at["pairs"], count, at["ticket"]),
        stream,
    )


def add_pairs(device: Any, stream: Any, plan: PairShape, at: dict[str, int], count: int, *, points: int, pool: int) -> None:
    """One pair_add over `pairs`, whose number lies at address `count`. All blocks are resident (one of 512 threads
    an SM); their warps take tiles of pairs from the counter `ticket`, which whoever lists the pairs sets to zero."""
    device.launch(
        device.kernel(points_module(plan.group), f"pair_add_{plan.group}"),
        plan.pair_blocks,
        PAIR_THREADS,
        (at["pairs"], count, points, pool, at["scratch"], u32(plan.batch), at["ticket"]),
        stream,
    )


class _Rounds:
    """The state after some rounds: which of the two buffers holds the references, and how many rounds there were."""

    def __init__(self, device: Any, stream: Any, at: dict[str, int], segments: int, points: int, rounds: int) -> None:
        self.device, self.stream, self.at, self.segments, self.points = device, stream, at, segments, points
        self.start, self.next_start = at["start_a"], at["start_b"]
        self.references, self.next_references = at["references_a"], at["references_b"]
        self.round = 0
        self.tiles = -(-segments // SCAN_TILE)
        self.tickets = at["scan_state"] + SCAN_STATE * self.tiles
        device.fill(at["scan_state"], 0, scan_state_bytes(segments, rounds), stream)

    def scan(self, bits: int) -> None:
        """Starts of this round's pairs or groups and of the next round's references; a segment of one is finished."""
        device, at, counts, round32 = self.device, self.at, self.at["counts"], u32(self.round)
        lists = (self.start, self.references, u32(self.segments), u32(bits), at["scan_state"], self.tickets)
        args: tuple[Any, ...] = (*lists, at["job_start"], self.next_start, at["result"], counts, round32)
        device.launch(device.kernel(INDEX, "round_starts"), self.tiles, SCAN_THREADS, args, self.stream)

    def turn(self) -> None:
        self.start, self.next_start = self.next_start, self.start
        self.references, self.next_references = self.next_references, self.references
        self.round += 1

    def pairs(self, plan: PairShape) -> None:
        """One round of pairs."""
        self.scan(1)
        device, at, counts = self.device, self.at, self.at["counts"]
        lists = (self.start, self.references, u32(self.segments), at["job_start"], self.next_start)
        targets = (at["pairs"], self.next_references, at["result"])
        device.launch(
            device.kernel(INDEX, "round_pairs"),
            SMALL_BLOCKS * device.multiprocessors,
            256,
            (*lists, *targets, counts, u32(self.round), at["ticket"]),
            self.stream,
        )
        count = counts + 4 * (2 * self.round + 1)
        add_pairs(device, self.stream, plan, at, count, points=self.points, pool=at["pool"])
        self.turn()

    def groups(self, group: Group, bits: int) -> None:
        """One round of groups of 2^bits. Two blocks of 256 an SM, 48 KiB of shared memory each; a team of four a group."""
        self.scan(bits)
        device, at = self.device, self.at
        lists = (self.start, self.references, u32(self.segments), at["job_start"], self.next_start)
        where = (at["counts"], u32(self.round), u32(bits), self.points, at["pool"])
        device.launch(
            device.kernel(tail_module(group), f"sum_groups_{group}"),
            2 * device.multiprocessors,
            TAIL_THREADS,
            (*lists, self.next_references, at["result"], *where),
            self.stream,
            shared_bytes=TAIL_THREADS * XYZZ_BYTES,
        )
        self.turn()


LONG_ROUNDS = 3
"""Rounds after which others may queue work: each takes half of the one before."""


def pair_references(
    device: Any, stream: Any, plan: PairShape, at: dict[str, int], *, rounds: int, points: int
) -> tuple[int, int]:
    """`rounds` rounds of pairs over the one segment in references_a; a sum that is complete lands in `result`.

    Returns the addresses of the references that are left and of their number.
    """
    state = _Rounds(device, stream, at, 1, points, rounds)
    for _ in range(rounds):
        state.pairs(plan)
    return state.references, at["counts"] + 4 * 2 * rounds


def sum_segments(
    device: Any,
    stream: Any,
    plan: PairShape,
    at: dict[str, int],
    *,
    segments: int,
    longest: int,
    pair_rounds: int,
    points: int,
    pause: Callable[[], None] | None = None,
) -> None:
    """Sums the segments in start_a / references_a into `result`: rounds of pairs, then of groups for what is left.

    `at` names the temporaries (MsmPlan.layout). `longest` bounds the length of a segment. `pair_rounds` is a matter of time
    only: enough for the usual segments, since a round that finds nothing to do costs its launches.
    """
    state = _Rounds(device, stream, at, segments, points, rounds_for(longest) + 1)
    bits_left = max(rounds_for(longest), 1)
    for number in range(min(pair_rounds, bits_left)):
        state.pairs(plan)
        bits_left -= 1
        if pause is not None and number < LONG_ROUNDS:
            pause()
    while bits_left > 0:
        bits = -(-bits_left // -(-bits_left // MAX_GROUP_BITS))  # even steps
        state.groups(plan.group, bits)
        bits_left -= bits
