"""The plan of an MSM: digits, bucket sets, chunks of points, and the exact bytes of every temporary. Pure arithmetic.

window     one signed digit of every scalar, c bits; widths that differ by at most one and add up to 255 bits, since
           |k| <= r/2 < 2^254 after a sign change
bucket set the 2^(c-1) buckets of one window; with tables of the points times 2^(step j), of several windows
unit       the buckets of a narrow set; a wide one has two
group      the bucket sets that are filled together
fold       the groups whose buckets are reduced together
chunk      the points that are on the device together
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import Layout, aligned

Group = Literal["g1", "g2"]
Residency = Literal["device", "pinned", "streamed"]

POINT_BYTES: dict[str, int] = {"g1": 96, "g2": 192}
LANES: dict[str, int] = {"g1": 1, "g2": 2}
SCALAR_BITS = 255
MAX_DIGIT_BITS = 24
MIN_LOW_BITS = 10
TILE, TILE_THREADS = 8192, 512  # as in kernels/msm/sort.cuh
SCAN_TILE, SCAN_THREADS, SCAN_STATE = 2048, 512, 16  # as in kernels/msm/segments.cuh
MAX_PARTITION_COUNTERS = 24576  # 96 KiB of shared memory in msm_digits: two blocks an SM
PINNED_CHUNK = 1 << 22  # points: enough for full occupancy, few enough that the first copy does not delay the start
MIN_CHUNK = 1024  # points; below, chunks are not worth their overhead
MAX_INDEX = 1 << 30  # a reference has 30 bits of index
MAX_ELEMENTS = 1 << 32  # counters are u32
PAIR_THREADS, PAIR_BLOCKS_PER_SM = 512, 1  # as in kernels/msm/points.cuh
MAX_BATCH = 128  # pairs that share an inversion; as in kernels/ec/pair_add.cuh
# References of a bucket reduction that groups take over. A group's addition takes 14 multiplications instead of 6, and a team's
# latency is about 0.15 ms; a round of pairs needs 0.13 ms for its launches and an inversion.
GROUPS_AT = 1 << 18
# In additions of the accumulation (0.29 ns in G1), from kernel times of 2^24. A digit besides its addition: sorting and listing
# of pairs, 33 ps. A bucket: two additions of the reduction, gathering (0.1 ns), the scans of every round (0.05 ns).
DIGIT_COST, BUCKET_COST = 1.11, 2.5
# A round of pairs has an inversion a thread and five launches whatever it adds up: 0.12 ms on 132 multiprocessors, additions that
# a thread could do meanwhile. What a group and a fold cost besides their rounds, in rounds: the sort's small kernels and rounds
# for long buckets that find none; the latency of a round of groups and of the weighted sums. Reading a scalar once more: 9 ps.
ROUND_COST = 6
GROUP_COST, FOLD_COST = 2, 10
SCALAR_COST = 0.03


def scan_state_bytes(segments: int, rounds: int) -> int:
    """Bytes that the scans of `rounds` rounds over so many segments exchange: SCAN_STATE a tile, a word a round."""
    return SCAN_STATE * -(-segments // SCAN_TILE) + 4 * rounds


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
    sets: int
    group_sets: int
    fold_units: int  # of a fold, at most
    chunk: int

    @property
    def step_bits(self) -> int:
        """Bits of all bucket sets together, which a table of the points is beyond the one before."""
        return -(-SCALAR_BITS // self.tables)

    @property
    def narrow_bits(self) -> int:
        return self.step_bits // self.sets

    @property
    def wide_sets(self) -> int:
        """The first sets, whose digits have one bit more than narrow_bits."""
        return self.step_bits % self.sets

    @property
    def digit_bits(self) -> int:
        """Bits of the widest digit."""
        return self.narrow_bits + (self.wide_sets > 0)

    def first_bit(self, sets: int) -> int:
        """Bits of the first `sets` sets."""
        return sets * self.narrow_bits + min(sets, self.wide_sets)

    @property
    def windows(self) -> int:
        """The digits that 255 bits need; the last table may be used in part."""
        whole, rest = divmod(SCALAR_BITS, self.step_bits)
        return whole * self.sets + next(sets for sets in range(self.sets + 1) if self.first_bit(sets) >= rest)

    def wide_in(self, first_set: int, sets: int) -> int:
        """Wide ones among `sets` sets from first_set on."""
        return min(max(self.wide_sets - first_set, 0), sets)

    def units(self, sets: int) -> int:
        """Units of the first `sets` sets, the wide ones among them: one for each, two for a wide one."""
        return sets + self.wide_in(0, sets)

    def buckets(self, first_set: int, sets: int) -> int:
        return (sets + self.wide_in(first_set, sets)) << self.unit_bits

    @property
    def group_buckets(self) -> int:
        """Buckets of the largest group: the first."""
        return self.buckets(0, self.group_sets)

    def folds(self) -> list[tuple[int, int]]:
        """(first set, sets) of each: as many groups as have no more than fold_units units."""
        found: list[tuple[int, int]] = []
        for first_set in range(0, self.sets, self.group_sets):
            end = min(first_set + self.group_sets, self.sets)
            start = found[-1][0] if found else 0
            if found and self.buckets(start, end - start) <= self.fold_buckets:
                found[-1] = (start, end - start)
            else:
                found.append((first_set, end - first_set))
        return found

    @property
    def fold_buckets(self) -> int:
        """Buckets of a fold, at most."""
        return self.fold_units << self.unit_bits

    @property
    def unit_bits(self) -> int:
        """A narrow set has 2^unit_bits buckets."""
        return self.narrow_bits - 1

    @property
    def low_bits(self) -> int:
        """A partition has 2^low_bits buckets. With many bits, both passes of the sort get as many bins."""
        return min(self.unit_bits, max(MIN_LOW_BITS, self.digit_bits // 2))

    @property
    def column_bits(self) -> int:
        return (self.unit_bits + 1) // 2

    @property
    def row_bits(self) -> int:
        """Log of the rows of a narrow set's matrix of buckets; a wide one has twice the rows."""
        return self.unit_bits - self.column_bits

    @property
    def longest_fold(self) -> int:
        """Buckets of a row or a column, at most."""
        return 1 << max(self.column_bits, self.row_bits + (self.wide_sets > 0))

    def fold_segments(self, first_set: int, sets: int) -> int:
        """Rows and columns."""
        return ((sets + self.wide_in(first_set, sets)) << self.row_bits) + (sets << self.column_bits)

    @property
    def fill_rounds(self) -> int:
        """Rounds of pairs that leave no more than one reference in the buckets of random scalars: mean + 6 deviations."""
        mean = self.row / 2**self.unit_bits
        return rounds_for(math.ceil(mean + 6 * math.sqrt(mean) + 6))

    def fold_rounds(self, first_set: int, sets: int) -> int:
        """Rounds of pairs until so few references are left that groups take less time."""
        return rounds_for(-(-2 * self.buckets(first_set, sets) // GROUPS_AT))

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
        return max(-(-self.group_sets * self.row // 2), self.fold_buckets)

    @property
    def batch(self) -> int:
        """Pairs of one thread that share an inversion, at most."""
        units = self.pair_blocks * PAIR_THREADS // LANES[self.group]
        return min(MAX_BATCH, max(1, -(-self.pool_slots // units)))

    def table_shift_bits(self, table: int) -> int:
        """Table j holds the points times 2 to this power."""
        return table * self.step_bits

    def cost(self) -> float:
        """Additions, roughly, where one group holds everything."""
        buckets = self.buckets(0, self.sets)
        digits = self.n * self.windows
        occupied = buckets * -math.expm1(-digits / buckets)  # the first point of a bucket is not added to anything
        return DIGIT_COST * digits + BUCKET_COST * buckets - occupied

    def total_cost(self) -> float:
        """The same with every group, fold and chunk beyond the first, and the merging of bucket arrays between chunks."""
        groups, folds = -(-self.sets // self.group_sets), self.folds()
        chunks = max(self.chunks, 1)
        rounds = (groups * chunks - 1) * (self.fill_rounds + GROUP_COST)
        rounds += sum(self.fold_rounds(*fold) + FOLD_COST for fold in folds[1:])
        round_cost = ROUND_COST * self.pair_blocks * PAIR_THREADS // LANES[self.group]
        merging = (chunks - 1) * (self.buckets(0, self.sets) + groups * round_cost)
        return self.cost() + rounds * round_cost + merging + (groups - 1) * self.n * SCALAR_COST

    def layout(self) -> Layout:
        """All temporaries. Digits and partitioned elements live where the pool of partial sums comes later."""
        elements = self.group_sets * self.row
        buckets = self.group_buckets
        segments = max(buckets, *(self.fold_segments(*fold) for fold in self.folds()))
        references = max(elements, 2 * self.fold_buckets)
        partitions = buckets >> self.low_bits
        sort_bytes = aligned(4 * elements) + aligned(8 * elements)
        pool_slots = self.pool_slots
        rounds = max(rounds_for(self.row), rounds_for(self.longest_fold))
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
            ("job_start", 4 * (segments + 1)),
            ("result", 4 * segments),
            ("sums", 8 * -(-segments // SCAN_TILE)),
            ("scan_state", scan_state_bytes(segments, rounds + 1)),
            ("references_a", 4 * references),
            ("references_b", 4 * (-(-references // 2) + min(segments, references))),
            ("pairs", 8 * max(-(-references // 2), buckets)),
            ("scratch", 48 * self.pair_blocks * PAIR_THREADS * self.batch),
            ("pool", max(pool_slots * self.point_bytes, sort_bytes)),
            ("buckets", (self.buckets(0, self.sets) if self.chunks > 1 else self.fold_buckets) * self.point_bytes),
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

    `residency` says where points and scalars lie: "device" (the caller's memory, not counted), "pinned" (both streamed in chunks
    through memory that is counted) or "streamed" (scalars on the device, points handed over in parts of at most `max_chunk`, not
    counted). `max_chunk` bounds the points of a chunk. `tables` > 1 needs the points times 2^(table_shift_bits(j)), one table
    after another, which fixes digit_bits. `digit_bits`: of the widest digit, at most (the bits are spread evenly).
    """
    if n < 0 or n * tables > MAX_INDEX:
        raise ValueError(f"{n} points in {tables} tables are outside 0 .. 2^30")
    if tables > 1 and digit_bits is None:
        raise ValueError("tables are made for one number of digit bits: name it")
    if residency == "streamed" and (tables > 1 or max_chunk is None):
        raise ValueError("streamed points have no tables, and come in parts of a given size")
    if digit_bits is not None and not 2 <= digit_bits <= MAX_DIGIT_BITS:
        raise ValueError(f"digits of {digit_bits} bits are outside 2 .. {MAX_DIGIT_BITS}")
    if max_chunk is None:
        max_chunk = PINNED_CHUNK if residency == "pinned" else MAX_INDEX
    shape = (group, residency, multiprocessors, tables, digit_bits, max_chunk)
    near_n, near_budget = -(-n // _step(n, 4)) * _step(n, 4), budget_bytes // _step(budget_bytes, 10) * _step(budget_bytes, 10)
    try:
        near = _cheapest(near_n, near_budget, *shape)
    except OutOfMemoryError:
        return _cheapest(n, budget_bytes, *shape)
    found = replace(near, n=n, chunk=max(1, min(near.chunk, n)))
    if near.chunks > 1 or found.workspace_bytes > budget_bytes:  # memory is short: every byte counts
        return _cheapest(n, budget_bytes, *shape)
    return found


def _step(value: int, bits: int) -> int:
    """The power of two below which `value` has more than `bits` significant bits."""
    return 1 << max(0, value.bit_length() - bits)


@lru_cache(maxsize=1024)
def _cheapest(n: int, budget_bytes: int, group: Group, residency: Residency, multiprocessors: int, tables: int,
              digit_bits: int | None, max_chunk: int) -> MsmPlan:  # fmt: skip
    """The search of plan_msm. It takes 2 to 20 ms, longer than a small MSM: so near sizes share one (lists of tails differ a
    little from proof to proof)."""
    whole = MsmPlan(group, n, residency, tables, multiprocessors, 1, 1, 1, max(1, min(n, max_chunk)))
    fewest, most = -(-whole.step_bits // MAX_DIGIT_BITS), -(-whole.step_bits // 2)
    candidates = [-(-whole.step_bits // digit_bits)] if digit_bits else range(fewest, most + 1)
    best: MsmPlan | None = None
    smallest = float("inf")
    for sets in sorted(candidates, key=lambda sets: replace(whole, sets=sets).cost()):
        shape = replace(whole, sets=sets)
        if best is not None and shape.cost() >= best.total_cost():
            break
        fitted, need = _fit(shape, budget_bytes)
        smallest = min(smallest, need)
        if fitted is not None and (best is None or fitted.total_cost() < best.total_cost()):
            best = fitted
    if best is None:
        raise OutOfMemoryError(
            f"VRAM: an MSM of {n} points in {group.upper()} needs at least {smallest / 2**30:.2f} GiB of temporaries, "
            f"{budget_bytes / 2**30:.2f} GiB are granted"
        )
    return best


def _fit(shape: MsmPlan, budget_bytes: int) -> tuple[MsmPlan | None, int]:
    """The shape with the largest chunk that fits, then the cheapest groups and folds; and the bytes of the smallest tried."""
    limit = MAX_PARTITION_COUNTERS << shape.low_bits
    while True:
        least = replace(shape, group_sets=1, fold_units=shape.units(1))
        need = least.workspace_bytes
        if need <= budget_bytes and least.row < MAX_ELEMENTS:
            break
        if shape.chunk <= MIN_CHUNK:
            return None, need
        shape = replace(shape, chunk=-(-shape.chunk // 2))
    fitting = [least]
    for group_sets in _shares(shape.sets):
        if group_sets > 1 and (shape.buckets(0, group_sets) > limit or group_sets * shape.row >= MAX_ELEMENTS):
            continue
        for groups in _shares(-(-shape.sets // group_sets)):
            plan = replace(shape, group_sets=group_sets, fold_units=shape.units(min(groups * group_sets, shape.sets)))
            if plan.workspace_bytes <= budget_bytes:
                fitting.append(plan)
                break  # smaller folds of such groups cost more
    return min(fitting, key=MsmPlan.total_cost), need


def _shares(count: int) -> list[int]:
    """The sizes of one of 1, 2, ... equal parts of `count`, largest first: no last part that is much smaller."""
    return sorted({-(-count // parts) for parts in range(1, count + 1)}, reverse=True)
