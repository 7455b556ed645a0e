"""Large arrays to a device: threads copy them into page-locked blocks, from where the device fetches them.

The driver itself stages a copy from pageable memory by one thread, 7 GB/s; eight threads and DMA behind them come to 37 GB/s. Of
a mapped file the threads read the pages side by side.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from cuzk.gpu.faults import CudaError, HostMemoryRefused
from cuzk.native.memory import HostBuffer

BLOCK = 8 << 20
"""Bytes of a block: its copy takes the device 0.15 ms, more than Python takes to queue it."""
THREADS = 8
BLOCKS_EACH = 2
"""One is filled while the device fetches the other."""
STAGED_FROM = 1 << 28
"""Bytes from which on an array is worth the locking of all blocks: 20 ms, and the copy without them takes 40."""


def copy_staged(device: Any, target: int, array: np.ndarray) -> bool:
    """Copies a contiguous array to device memory at `target` and waits for it, through 128 MiB of page-locked memory at most.

    False, and nothing is copied, where the system refuses that memory. Raises what the device says of the copies.
    """
    source = array.reshape(-1).view(np.uint8)
    threads = max(1, min(THREADS, len(os.sched_getaffinity(0)), -(-source.nbytes // BLOCK)))
    try:
        buffer = HostBuffer(threads * BLOCKS_EACH * BLOCK)
    except MemoryError:
        return False
    try:
        return _copy_through(device, target, source, buffer.array(np.uint8), threads)
    finally:
        buffer.close()


def _copy_through(device: Any, target: int, source: np.ndarray, blocks: np.ndarray, threads: int) -> bool:
    address = blocks.ctypes.data
    try:
        device.register(address, blocks.nbytes)
    except (HostMemoryRefused, CudaError):
        return False
    try:
        firsts = iter(range(0, source.nbytes, BLOCK))  # whichever thread is free takes the next
        with ThreadPoolExecutor(threads, thread_name_prefix="upload") as pool:
            shares = [pool.submit(_feed, device, target, source, firsts, part) for part in np.split(blocks, threads)]
        for share in shares:
            share.result()
    finally:
        device.unregister(address)
    return True


def _feed(device: Any, target: int, source: np.ndarray, firsts: Iterator[int], memory: np.ndarray) -> None:
    """One thread's share, through its part of the blocks; ends when the device has fetched it all."""
    device.use()
    stream = device.stream()
    blocks = [(block, device.event()) for block in np.split(memory, BLOCKS_EACH)]
    busy: list[Any] = []
    try:
        for turn, first in enumerate(firsts):
            block, fetched = blocks[turn % BLOCKS_EACH]
            if len(busy) == BLOCKS_EACH:
                device.wait(busy.pop(0))
            part = source[first : first + BLOCK]
            block[: part.nbytes] = part  # other threads run meanwhile
            device.copy(target + first, block.ctypes.data, part.nbytes, stream)
            device.record(fetched, stream)
            busy.append(fetched)
    except BaseException:
        for _ in firsts:  # nobody needs to go on
            pass
        raise
    finally:
        for fetched in busy:
            device.wait(fetched)
