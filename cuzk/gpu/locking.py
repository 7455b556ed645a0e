"""Page-locking of large host memory: where it lies if the driver takes it, else as a copy in huge pages that threads make."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from cuzk.gpu.faults import CudaError, HostMemoryRefused
from cuzk.native.memory import PAGE, HostBuffer

PART = 64 << 20
"""Bytes that a thread copies at a time."""
SPAN = 1 << 30
"""Bytes that the driver locks in one call."""


class LockedMemory:
    """Page-locked memory and the arrays in it; `borders`: addresses that one copy must not cross, rising."""

    def __init__(self, device: Any, arrays: list[np.ndarray], spans: list[int], buffer: HostBuffer | None) -> None:
        self._device, self.arrays, self._spans, self._buffer = device, arrays, sorted(spans), buffer

    @property
    def borders(self) -> list[int]:
        return self._spans

    @property
    def copied(self) -> bool:
        """Whether it is a copy, so memory of its own."""
        return self._buffer is not None

    def free(self) -> None:
        """Nothing may be copied from it any more."""
        spans, self._spans = self._spans, []
        for address in spans:
            self._device.unregister(address)
        self.arrays = []
        if self._buffer is not None:
            self._buffer.close()


def lock_in_place(device: Any, arrays: list[np.ndarray], threads: int | None = None) -> LockedMemory | None:
    """The pages under some arrays, locked for reading; None, and nothing locked, where driver or file system refuse."""
    spans: list[list[int]] = []
    for flat in sorted((_flat(array) for array in arrays if array.nbytes), key=lambda flat: flat.ctypes.data):
        first, end = flat.ctypes.data // PAGE * PAGE, -(-(flat.ctypes.data + flat.nbytes) // PAGE) * PAGE
        if spans and first <= spans[-1][1]:
            spans[-1][1] = max(end, spans[-1][1])
        else:
            spans.append([first, end])
    parts = [(at, min(end, at + SPAN) - at) for first, end in spans for at in range(first, end, SPAN)]
    try:
        return LockedMemory(device, arrays, _lock(device, parts, True, threads), None)
    except (HostMemoryRefused, CudaError):
        return None


def locked_copy(device: Any, arrays: list[np.ndarray], threads: int | None = None) -> LockedMemory:
    """A page-locked copy of some arrays. MemoryError or HostMemoryRefused.

    In huge pages where the system has them, first touched by the threads that copy, so that zeroing, copying and reading the file
    happen side by side.
    """
    flats = [_flat(array) for array in arrays]
    starts = [0]
    for flat in flats:
        starts.append(starts[-1] + -(-flat.nbytes // PAGE) * PAGE)
    buffer = HostBuffer(starts[-1], huge=True)
    memory = buffer.array(np.uint8)

    def copy(part: tuple[int, int]) -> None:
        which, first = part
        source = flats[which][first : first + PART]
        memory[starts[which] + first : starts[which] + first + source.nbytes] = source

    try:
        with ThreadPoolExecutor(threads or _cores()) as pool:
            list(pool.map(copy, [(i, first) for i, flat in enumerate(flats) for first in range(0, flat.nbytes, PART)]))
        address = memory.ctypes.data
        parts = [(address + first, min(SPAN, starts[-1] - first)) for first in range(0, starts[-1], SPAN)]
        spans = _lock(device, parts, False, threads)
    except BaseException:
        del memory
        buffer.close()
        raise
    copies = [
        memory[start : start + flat.nbytes].view(array.dtype).reshape(array.shape)
        for start, flat, array in zip(starts, flats, arrays, strict=False)
    ]
    return LockedMemory(device, copies, spans, buffer)


def _lock(device: Any, parts: list[tuple[int, int]], read_only: bool, threads: int | None) -> list[int]:
    """Locks (address, bytes) each; all or none. The addresses."""
    locked: list[int] = []

    def lock(part: tuple[int, int]) -> None:
        device.use()
        device.register(*part, read_only=read_only)
        locked.append(part[0])

    try:
        with ThreadPoolExecutor(threads or _cores()) as pool:
            list(pool.map(lock, parts))
    except BaseException:
        for address in locked:
            device.unregister(address)
        raise
    return locked


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _cores() -> int:
    return max(1, min(16, len(os.sched_getaffinity(0))))
