"""Witness scan on the device: a bitmap of the ones, and the values that are neither 0 nor 1 with their indices.

Moves 32 bytes a value once, and once more for what it gathers; 12 bytes are written for 64 values, 36 for a gathered one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import Layout
from cuzk.gpu.matvec import FR_BYTES

BLOCK_VALUES = 1024


@dataclass(frozen=True)
class ScanPlan:
    """Memory of a scan of `count` values of which at most `capacity` are neither 0 nor 1.

    One block: ones and mask (bitmaps, u64 words), rank (u32: set bits of the mask before a word), tail (u32 indices),
    values (32 bytes each), and the counters.
    """

    count: int
    capacity: int

    @property
    def words(self) -> int:
        """64-bit words of a bitmap."""
        return -(-self.count // 64)

    @property
    def blocks(self) -> int:
        return -(-self.count // BLOCK_VALUES)

    @property
    def layout(self) -> Layout:
        return Layout([
            ("ones", 8 * self.words), ("mask", 8 * self.words), ("rank", 4 * self.words), ("tail", 4 * self.capacity),
            ("values", FR_BYTES * self.capacity), ("offsets", 4 * self.blocks), ("total", 4),
        ])  # fmt: skip


def plan_bytes(count: int, capacity: int) -> int:
    """Device bytes of a scan and its results."""
    return ScanPlan(count, capacity).layout.total_bytes


class Scanned:
    """The results of a scan, valid on the device once `count()` has returned, or in stream order."""

    def __init__(self, device: Any, plan: ScanPlan, base: int, host: Any, done: Any) -> None:
        self._device, self.plan, self._host, self._done = device, plan, host, done
        at = plan.layout.at(base)
        self.ones, self.mask, self.rank, self.tail, self.values = (at[n] for n in ("ones", "mask", "rank", "tail", "values"))

    def count(self) -> int:
        """Values that are neither 0 nor 1; waits for the scan. OutOfMemoryError if they did not fit."""
        self._device.wait(self._done)
        found = int(self._host.array.view(np.uint32)[0])
        if found > self.plan.capacity:
            raise OutOfMemoryError(
                f"VRAM: the witness has {found} values that are neither 0 nor 1, "
                f"the scan's memory was planned for {self.plan.capacity}"
            )
        return found


def scan(device: Any, plan: ScanPlan, base: int, values: int, stream: Any, *, mont: bool, host: Any) -> Scanned:
    """Enqueues a scan of `plan.count` values at address `values` into the plan's block at `base`; returns at once.

    mont: the form of the values. host: pinned memory of at least 4 bytes (device.pinned) for the number found.
    """
    at = plan.layout.at(base)
    n, words32 = np.uint64(plan.count), np.uint64(2 * plan.words)
    if plan.count:
        # 1024 values a block of 256 threads: 32 KiB read, enough blocks in flight to fill memory's bandwidth
        device.launch(
            device.kernel("r1cs/scan", "scan_classify"), plan.blocks, 256,
            (values, n, np.uint32(mont), at["ones"], at["mask"], words32, at["offsets"]), stream,
        )  # fmt: skip
    # one block: 4 bytes for every 32 KiB scanned
    device.launch(
        device.kernel("r1cs/scan", "scan_offsets"), 1, 1024, (at["offsets"], np.uint64(plan.blocks), at["total"]), stream
    )
    if plan.count:
        device.launch(
            device.kernel("r1cs/scan", "scan_gather"), plan.blocks, 256,
            (values, at["mask"], words32, at["offsets"], at["rank"], at["tail"], at["values"], np.uint32(plan.capacity)), stream,
        )  # fmt: skip
    device.copy(host.address, at["total"], 4, stream)
    done = device.event()
    device.record(done, stream)
    return Scanned(device, plan, base, host, done)
