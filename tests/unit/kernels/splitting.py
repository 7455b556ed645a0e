"""A split on a device, emulated or real, against the same with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.gpu.matvec import BitWitness, bit_ranks, mask_words
from cuzk.gpu.split import KeyRows, SplitPlan, split


class Held:
    """A witness on the device, from flags by wire: the value of tail wire k is (k, k + 1, k + 2, k + 3)."""

    def __init__(self, device: Any, ones: np.ndarray, others: np.ndarray) -> None:
        mask = mask_words(others)
        self.values = np.flatnonzero(others).astype(np.uint64)[:, None] + np.arange(4, dtype=np.uint64)
        self.blocks = [device.upload(a) for a in (mask_words(ones), mask, bit_ranks(mask), np.ascontiguousarray(self.values))]
        self.bits = BitWitness(*(block.address for block in self.blocks))


def check(device: Any, ones: np.ndarray, others: np.ndarray, lists: list, capacity: int | None = None) -> None:
    """lists: (wires or None, first, rows, finite flags or None)."""
    held, uploads, rows_of = Held(device, ones, others), [], []
    for wires, first, rows, finite in lists:
        at = []
        for array in (wires, None if finite is None else mask_words(finite)):
            uploads.append(None if array is None else device.upload(array))
            at.append(uploads[-1].address if uploads[-1] else 0)
        rows_of.append(KeyRows(rows, first, *at))
    plan = SplitPlan(tuple(rows for _, _, rows, _ in lists), len(ones) if capacity is None else capacity)
    memory, host = device.allocate(plan.total_bytes, "split"), device.pinned(8 * len(lists))
    results = split(device, plan, memory.address, rows_of, held.bits, device.stream(), host).result()
    for (wires, first, rows, finite), got in zip(lists, results, strict=True):
        of = np.arange(first, first + rows) if wires is None else wires
        finite = np.ones(rows, bool) if finite is None else finite
        is_one, is_other = ones[of] & ~others[of] & finite, others[of] & finite
        tail = np.flatnonzero(is_other)
        assert (got.n_ones, got.n_tail) == (is_one.sum(), len(tail))
        bitmap = device.download(got.ones, np.empty(4 * -(-rows // 32), np.uint8))
        unpacked = np.unpackbits(bitmap, bitorder="little")
        assert np.array_equal(unpacked[:rows], is_one) and not unpacked[rows:].any()
        assert np.array_equal(device.download(got.tail_rows, np.empty(len(tail), np.uint32)), tail)
        want = of[tail].astype(np.uint64)[:, None] + np.arange(4, dtype=np.uint64)
        assert np.array_equal(device.download(got.tail_scalars, np.empty((len(tail), 4), np.uint64)), want)
    for block in (memory, *held.blocks, *(u for u in uploads if u)):
        block.free()
