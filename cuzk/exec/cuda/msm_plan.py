"""How an MSM is cut up: digits, bucket sets, chunks of points, and the exact bytes of every temporary. Pure arithmetic.

    window     one signed digit of c bits of every scalar; ceil(255 / c) of them, since |k| <= r/2 < 2^254 after a sign change
    bucket set the 2^(c-1) buckets of one window; with tables of the points times 2^(c sets j), of several windows
    group      the bucket sets that are filled together
    chunk      the points that are on the device together
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cuzk.errors import OutOfMemoryError

from .arena import Layout, aligned

Group = Literal["g1", "g2"]
Residency = Literal["device", "pinned"]

POINT_BYTES: dict[str, int] = {"g1": 96, "g2": 192}
LANES: dict[str, int] = {"g1": 1, "g2": 2}
SCALAR_BITS = 255
MAX_DIGIT_BITS = 22
MAX_LOW_BITS = 10  # as in kernels/msm/sort.cuh
TILE, TILE_THREADS = 8192, 512  # as in kernels/msm/sort.cuh
SCAN_TILE, SCAN_THREADS = 2048, 512  # as in kernels/msm/segments.cuh
MAX_PARTITION_COUNTERS = 24576  # 96 KiB of shared memory in msm_digits: two blocks an SM
PINNED_CHUNK = 1 << 22  # points: enough for full occupancy, few enough that the first copy does not delay the start
MIN_CHUNK = 1024  # points; below, chunks are not worth their overhead
MAX_INDEX = 1 << 30  # a reference has 30 bits of index
MAX_ELEMENTS = 1 << 32  # counters are u32
PAIR_THREADS, PAIR_BLOCKS_PER_SM = 512, 1  # as in kernels/msm/points.cuh
MAX_BATCH = 128  # pairs that share an inversion; as in kernels/ec/pair_add.cuh
# Cost of one bucket in the reduction, in additions of the accumulation: two affine additions at lower occupancy.
BUCKET_COST = 2.5


def rounds_for(longest: int) -> int:
    """Rounds that reduce a segment of `longest` references to one."""
    return max(longest - 1, 0).bit_length()


@dataclass(frozen=True)
class MsmPlan:
    """The shape of one MSM. `workspace_bytes` is all it allocates beyond what the caller holds."""

    group: Group
    n: int
    residency: Residency
    tables: int
    multiprocessors: int
    digit_bits: int
    group_sets: int
    chunk: int

    @property
    def windows(self) -> int:
        return -(-SCALAR_BITS // self.digit_bits)

    @property
    def sets(self) -> int:
        """Bucket sets: windows, fewer with tables. A table step is digit_bits * sets bits."""
        return -(-self.windows // self.tables)

    @property
    def bucket_bits(self) -> int:
        return self.digit_bits - 1

    @property
    def low_bits(self) -> int:
        return min(MAX_LOW_BITS, self.bucket_bits)

    @property
    def column_bits(self) -> int:
        return (self.bucket_bits + 1) // 2

    @property
    def row_bits(self) -> int:
        return self.bucket_bits - self.column_bits

    @property
    def row(self) -> int:
        """References of one bucket set, at most, while one chunk is accumulated."""
        return self.tables * self.chunk

    @property
    def chunks(self) -> int:
        return -(-self.n // self.chunk) if self.n else 0

    @property
    def point_bytes(self) -> int:
        return POINT_BYTES[self.group]

    @property
    def pair_blocks(self) -> int:
        return self.multiprocessors * PAIR_BLOCKS_PER_SM

    @property
    def pool_slots(self) -> int:
        """Partial sums alive at once: every first pair of the accumulation, or of the bucket reduction."""
        return max(-(-self.group_sets * self.row // 2), self.group_sets << self.bucket_bits)

    @property
    def batch(self) -> int:
        """Pairs of one thread that share an inversion, at most."""
        units = self.pair_blocks * PAIR_THREADS // LANES[self.group]
        return min(MAX_BATCH, max(1, -(-self.pool_slots // units)))

    def table_shift_bits(self, table: int) -> int:
        """Table j holds the points times 2 to this power."""
        return table * self.sets * self.digit_bits

    def cost(self) -> float:
        """Additions, roughly."""
        return self.n * self.windows + BUCKET_COST * self.sets * 2**self.bucket_bits

    def layout(self) -> Layout:
        """All temporaries. Digits and partitioned elements live where the pool of partial sums comes later."""
        elements = self.group_sets * self.row
        buckets = self.group_sets << self.bucket_bits
        segments = max(buckets, (self.group_sets << self.row_bits) + (self.group_sets << self.column_bits))
        references = max(elements, 2 * buckets)
        partitions = self.group_sets << (self.bucket_bits - self.low_bits)
        sort_bytes = aligned(4 * elements) + aligned(8 * elements)
        pool_slots = self.pool_slots
        rounds = max(rounds_for(self.row), self.column_bits)
        sizes = [
            ("counts", 4 * (2 * rounds + 8)),
            ("ticket", 4),
            ("partition_count", 4 * partitions),
            ("partition_start", 4 * (partitions + 1)),
            ("partition_cursor", 4 * partitions),
            ("tile_start", 4 * (partitions + 1)),
            ("bucket_count", 4 * buckets),
            ("start_a", 4 * (segments + 1)),
            ("start_b", 4 * (segments + 1)),
            ("pair_start", 4 * (segments + 1)),
            ("result", 4 * segments),
            ("sums", 8 * -(-segments // SCAN_TILE)),
            ("references_a", 4 * references),
            ("references_b", 4 * (-(-references // 2) + min(segments, references))),
            ("pairs", 8 * max(-(-references // 2), buckets)),
            ("scratch", 48 * self.pair_blocks * PAIR_THREADS * self.batch),
            ("pool", max(pool_slots * self.point_bytes, sort_bytes)),
            ("buckets", (self.sets if self.chunks > 1 else self.group_sets) * self.point_bytes << self.bucket_bits),
            ("sums_out", 2 * self.sets * self.point_bytes),
        ]
        if self.chunks > 1:
            sizes.append(("merged", buckets * self.point_bytes))
        if self.residency == "pinned":
            for side in "ab":
                sizes.append((f"points_{side}", self.tables * self.chunk * self.point_bytes))
                sizes.append((f"scalars_{side}", self.chunk * 32))
        return Layout(sizes)

    @property
    def workspace_bytes(self) -> int:
        return self.layout().total_bytes if self.n else 0


def plan_msm(
    n: int,
    group: Group,
    budget_bytes: int,
    *,
    residency: Residency = "device",
    multiprocessors: int = 132,
    tables: int = 1,
    digit_bits: int | None = None,
    max_chunk: int | None = None,
) -> MsmPlan:
    """The cheapest plan whose temporaries fit the budget; OutOfMemoryError naming need and budget if none does.

    `residency` says where points and scalars lie: "device" (the caller's memory, not counted) or "pinned" (streamed in chunks,
    counted). `max_chunk` bounds the points of a chunk. `tables` > 1 needs the points times 2^(table_shift_bits(j)), one table
    after another, which fixes digit_bits.
    """
    if n < 0 or n * tables > MAX_INDEX:
        raise ValueError(f"{n} points in {tables} tables are outside 0 .. 2^30")
    if tables > 1 and digit_bits is None:
        raise ValueError("tables are made for one number of digit bits: name it")
    if max_chunk is None:
        max_chunk = PINNED_CHUNK if residency == "pinned" else MAX_INDEX
    whole = MsmPlan(group, n, residency, tables, multiprocessors, 2, 1, max(1, min(n, max_chunk)))
    candidates = [digit_bits] if digit_bits else range(2, MAX_DIGIT_BITS + 1)
    best: MsmPlan | None = None
    smallest: int | None = None
    for bits in sorted(candidates, key=lambda b: replace(whole, digit_bits=b).cost()):
        shape = replace(whole, digit_bits=bits)
        if best is not None and shape.cost() >= best.cost() + 2 * best.n:
            break
        fitted, need = _fit(shape, budget_bytes)
        smallest = need if smallest is None else min(smallest, need)
        if fitted is not None and (best is None or _total_cost(fitted) < _total_cost(best)):
            best = fitted
    if best is None:
        raise OutOfMemoryError(
            f"VRAM: an MSM of {n} points in {group.upper()} needs at least {smallest / 2**30:.2f} GiB of temporaries, "
            f"{budget_bytes / 2**30:.2f} GiB are granted"
        )
    return best


def _total_cost(plan: MsmPlan) -> float:
    """Additions of the plan including the merging of bucket arrays between chunks."""
    return plan.cost() + (max(plan.chunks, 1) - 1) * plan.sets * 2.0**plan.bucket_bits


def _fit(shape: MsmPlan, budget_bytes: int) -> tuple[MsmPlan | None, int]:
    """The shape with the largest group, then the largest chunk, that fits; and the bytes of the smallest tried."""
    most = min(shape.sets, max(1, MAX_PARTITION_COUNTERS >> (shape.bucket_bits - shape.low_bits)))
    chunk = shape.chunk
    need = 0
    while True:
        # equal groups: no last group of one set
        for parts in range(-(-shape.sets // most), shape.sets + 1):
            sets = -(-shape.sets // parts)
            plan = replace(shape, group_sets=sets, chunk=chunk)
            need = plan.workspace_bytes
            if need <= budget_bytes and sets * plan.row < MAX_ELEMENTS:
                return plan, need
        if chunk <= MIN_CHUNK:
            return None, need
        chunk = -(-chunk // 2)
