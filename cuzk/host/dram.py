"""The DRAM's rate, measured: threads that copy, all at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cuzk.model.units import MIB

BLOCK_BYTES = 256 * MIB
"""Each thread's bytes: far beyond any cache's share."""
ROUNDS = 5
Array = np.ndarray[tuple[int], np.dtype[np.float64]]


def dram_bandwidth(threads: int, block_bytes: int = BLOCK_BYTES) -> float:
    """Bytes read and written per second while `threads` threads copy: each byte copied counts twice.

    The best of several rounds."""
    words = block_bytes // 8
    pairs = [(np.ones(words), np.zeros(words)) for _ in range(threads)]

    def copy(pair: tuple[Array, Array]) -> None:
        np.copyto(pair[1], pair[0])

    with ThreadPoolExecutor(threads) as pool:

        def all_at_once() -> None:
            list(pool.map(copy, pairs))

        return 2 * 8 * words * threads / _best(all_at_once)


def _best(work: Callable[[], None]) -> float:
    """Seconds of the fastest round, the first one left out: it touches the pages."""
    work()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)
