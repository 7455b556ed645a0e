"""Rates of one GPU's links and memory, measured by its own copies in about a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BLOCK_BYTES = 1 << 28
ROUNDS = 5


@dataclass(frozen=True)
class LinkRates:
    """Bytes per second, the best of several rounds."""

    h2d: float
    d2h: float
    h2d_pageable: float
    memory: float
    """Read and written, of a copy within the GPU's memory."""


def link_rates(gpu: int, block_bytes: int = BLOCK_BYTES) -> LinkRates:
    """Rates of GPU `gpu`. Raises ImportError without CuPy; errors of CUDA go through as CuPy raises them."""
    import cupy as cp

    with cp.cuda.Device(gpu):
        pinned_memory = cp.cuda.alloc_pinned_memory(block_bytes)
        pinned = np.frombuffer(pinned_memory, np.uint8, block_bytes)
        pinned[:] = 1
        pageable = np.ones(block_bytes, np.uint8)
        here, there = cp.cuda.Memory(block_bytes), cp.cuda.Memory(block_bytes)
        device, other = cp.cuda.MemoryPointer(here, 0), cp.cuda.MemoryPointer(there, 0)
        stream = cp.cuda.Stream(non_blocking=True)

        def rate(copy: Callable[[], None]) -> float:
            def whole() -> None:
                copy()
                stream.synchronize()

            return block_bytes / _best(whole)

        return LinkRates(
            h2d=rate(lambda: device.copy_from_host_async(pinned.ctypes.data, block_bytes, stream)),
            d2h=rate(lambda: device.copy_to_host_async(pinned.ctypes.data, block_bytes, stream)),
            h2d_pageable=rate(lambda: device.copy_from_host_async(pageable.ctypes.data, block_bytes, stream)),
            memory=2 * rate(lambda: other.copy_from_device_async(device, block_bytes, stream)),
        )


def _best(work: Callable[[], object]) -> float:
    """Seconds of the fastest round, the first one left out: it touches the pages."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)
