"""The lists of a key split on the device by the values of their wires: bitmaps of the ones, rows and scalars of the rest.

Reads the wire numbers of a list once (4 bytes a row, none where they follow each other) and two bits a row of the witness; writes
two bits a row, and 36 bytes for each scalar that is neither 0 nor 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import Layout
from cuzk.gpu.matvec import FR_BYTES, BitWitness, mask_words
from cuzk.gpu.msm_plan import POINT_BYTES, SCAN_TILE, Group
from cuzk.gpu.segments import scan_counts, u32

SPLIT_ROWS = 1024  # of a block, as in kernels/r1cs/split.cu
MODULE = "r1cs/split"
UNIT_BYTES = 16


@dataclass(frozen=True)
class KeyRows:
    """The wires that the rows of a list belong to. Addresses on the device; 0 for none.

    wires: (rows,) uint32, or 0: row i belongs to wire first + i. finite: a bitmap of the rows that are not infinity, or 0: all.
    """

    rows: int
    first: int = 0
    wires: int = 0
    finite: int = 0


@dataclass(frozen=True)
class RowSplit:
    """A list split: a bitmap of the rows whose scalar is one, and row numbers (uint32) and scalars of the tail, on the device."""

    ones: int
    n_ones: int
    tail_rows: int
    tail_scalars: int
    n_tail: int


@dataclass(frozen=True)
class SplitPlan:
    """Memory of a split of lists of `rows` rows each, of which at most `capacity` have a scalar that is neither 0 nor 1."""

    rows: tuple[int, ...]
    capacity: int

    @property
    def longest(self) -> int:
        return max(self.rows, default=0)

    @property
    def layout(self) -> Layout:
        blocks = _blocks(self.longest)
        sizes = [
            ("others", 4 * _words(self.longest)), ("counts", 4 * blocks), ("starts", 4 * (blocks + 1)),
            ("sums", 8 * -(-blocks // SCAN_TILE)), ("found", 8 * len(self.rows)),
        ]  # fmt: skip
        for i, rows in enumerate(self.rows):
            tail = min(rows, self.capacity)
            sizes += [(f"ones{i}", 4 * _words(rows)), (f"rows{i}", 4 * tail), (f"scalars{i}", FR_BYTES * tail)]
        return Layout(sizes)

    @property
    def total_bytes(self) -> int:
        return self.layout.total_bytes


def capacity_within(rows: tuple[int, ...], extra_bytes: int, room_bytes: int) -> int:
    """The largest capacity of a plan that fits, where each of its scalars takes `extra_bytes` elsewhere in the same room."""
    low, high = 0, max(rows, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if SplitPlan(rows, middle).total_bytes + extra_bytes * middle <= room_bytes:
            low = middle
        else:
            high = middle - 1
    return low


class Splitting:
    """A split under way; its results are valid in stream order, their numbers once `result` has returned."""

    def __init__(self, device: Any, plan: SplitPlan, base: int, host: Any, done: Any) -> None:
        self._device, self._plan, self._at, self._host, self._done = device, plan, plan.layout.at(base), host, done

    def result(self) -> list[RowSplit]:
        """One for each list; waits for the split. OutOfMemoryError if a tail did not fit."""
        self._device.wait(self._done)
        found = self._host.array[: 8 * len(self._plan.rows)].view(np.uint32).reshape(-1, 2).tolist()
        splits = []
        for i, (rows, (ones, tail)) in enumerate(zip(self._plan.rows, found, strict=True)):
            if tail > min(rows, self._plan.capacity):
                raise OutOfMemoryError(
                    f"VRAM: {tail} scalars of a list are neither 0 nor 1, the memory of the split was planned for "
                    f"{min(rows, self._plan.capacity)}"
                )
            at = self._at
            splits.append(RowSplit(at[f"ones{i}"], ones, at[f"rows{i}"], at[f"scalars{i}"], tail))
        return splits


def split(
    device: Any, plan: SplitPlan, base: int, lists: list[KeyRows], witness: BitWitness, stream: Any, host: Any
) -> Splitting:
    """Enqueues the split of `lists` (rows as in the plan) into the plan's block at `base`; returns at once.

    host: pinned memory (device.pinned) of 8 bytes a list for the numbers found. Scalars have the form of the witness's values.
    """
    at = plan.layout.at(base)
    device.fill(at["found"], 0, 8 * len(lists), stream)
    for i, rows in enumerate(lists):
        if rows.rows == 0:
            continue
        blocks, words = _blocks(rows.rows), u32(_words(rows.rows))
        found = at["found"] + 8 * i
        where = (rows.wires, u32(rows.first))
        # 1024 rows a block of 256 threads: a wire number a thread and round, its two bits mostly from the same cache line
        device.launch(
            device.kernel(MODULE, "split_classify"), blocks, 256,
            (*where, u32(rows.rows), rows.finite, witness.ones, witness.mask, at[f"ones{i}"], at["others"], words, at["counts"],
             found), stream,
        )  # fmt: skip
        scan_counts(device, stream, at["counts"], blocks, at["sums"], found + 4, at["starts"], at["counts"])
        device.launch(
            device.kernel(MODULE, "split_gather"), blocks, 256,
            (*where, at["others"], words, at["starts"], witness.mask, witness.rank, witness.fields, at[f"rows{i}"],
             at[f"scalars{i}"], u32(min(rows.rows, plan.capacity))), stream,
        )  # fmt: skip
    device.copy(host.address, at["found"], 8 * len(lists), stream)
    done = device.event()
    device.record(done, stream)
    return Splitting(device, plan, base, host, done)


def gather_points(device: Any, group: Group, rows: int, count: int, points: int, out: int, stream: Any) -> None:
    """Enqueues out[i] = points[rows[i]], i < count; all three are device addresses."""
    if count:
        # streaming copies of whole points: 2048 threads an SM, looping
        device.launch(
            device.kernel(MODULE, "gather_rows"), 8 * device.multiprocessors, 256,
            (rows, u32(count), u32(POINT_BYTES[group] // UNIT_BYTES), points, out), stream,
        )  # fmt: skip


def gather_points_within(
    device: Any, group: Group, rows: int, count: int, first: int, n: int, points: int, out: int, stream: Any
) -> None:
    """Enqueues out[i] = points[rows[i] - first] for rows among first .. first + n - 1; the others' places stay as they are."""
    if count and n:
        # a list of rows is read once for every part of the points: 4 bytes a row against 96 or 192 a point
        device.launch(
            device.kernel(MODULE, "gather_rows_within"), 8 * device.multiprocessors, 256,
            (rows, u32(count), u32(first), u32(n), u32(POINT_BYTES[group] // UNIT_BYTES), points, out), stream,
        )  # fmt: skip


def list_finite(device: Any, group: Group, rows: int, points: int, finite: int, stream: Any) -> None:
    """Enqueues the bitmap of the points that are not infinity: ceil(rows / 32) words at `finite`."""
    if rows:
        device.launch(
            device.kernel(MODULE, "finite_rows"), -(-rows // 256), 256,
            (points, u32(POINT_BYTES[group] // UNIT_BYTES), u32(rows), finite), stream,
        )  # fmt: skip


def flatten_bits(
    device: Any, template: Any, prefix: int, body: int, body_words: int, input_bit: bool, out: int, stream: Any
) -> None:
    """Enqueues one bitmap over all wires at `out` from those of a template's parts: `prefix`, and `body` of copy 0, the next
    `body_words` words on. Inputs, which are first, get `input_bit`."""
    words = bitmap_words(template.n_inputs + template.n_aux)
    shape = (template.n_inputs, template.prefix.aux, template.body.aux, template.copies)
    device.launch(
        device.kernel(MODULE, "flatten_bits"), max(1, min(8 * device.multiprocessors, -(-words // 256))), 256,
        (prefix, body, u32(body_words), *map(u32, shape), u32(input_bit), out, u32(words)), stream,
    )  # fmt: skip


class WireIndex:
    """The wires of a template that are field elements: the same for all its witnesses. `mask` and `rank` as in BitWitness;
    inputs count as field elements."""

    def __init__(self, device: Any, template: Any, stream: Any) -> None:
        """Waits for the work; OutOfMemoryError."""
        words = bitmap_words(template.n_inputs + template.n_aux)
        layout = Layout([("mask", 8 * words), ("rank", 4 * (words + 1))])
        scratch = Layout([("counts", 4 * words), ("sums", 8 * -(-words // SCAN_TILE)), ("total", 4)])
        parts = [mask_words(part.field_aux) for part in (template.prefix, template.body)]
        self._memory = device.allocate(layout.total_bytes, "an index of a template's wires")
        self.device_bytes = layout.total_bytes
        at = layout.at(self._memory.address)
        self.mask, self.rank = at["mask"], at["rank"]
        held = [device.allocate(scratch.total_bytes, "scratch of an index")]
        held += [device.upload(part, "a template's mask") for part in parts]
        tmp = scratch.at(held[0].address)
        flatten_bits(device, template, held[1].address, held[2].address, 0, True, self.mask, stream)
        device.launch(
            device.kernel(MODULE, "count_bits"), 8 * device.multiprocessors, 256, (self.mask, u32(words), tmp["counts"]), stream
        )
        scan_counts(device, stream, tmp["counts"], words, tmp["sums"], tmp["total"], self.rank, tmp["counts"])
        done = device.event()
        device.record(done, stream)
        device.wait(done)
        for block in held:
            block.free()

    def free(self) -> None:
        self._memory.free()


def bitmap_words(bits: int) -> int:
    """64-bit words of a bitmap."""
    return -(-bits // 64)


def _words(rows: int) -> int:
    return -(-rows // 32)


def _blocks(rows: int) -> int:
    return -(-rows // SPLIT_ROWS)
