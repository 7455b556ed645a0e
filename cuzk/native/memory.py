"""Host memory that returns to the system the moment it is freed.

malloc keeps freed memory for later (and numpy goes through malloc), so a freed buffer would stay resident and the measured curve
would show the allocator, not the pipeline. Each buffer here is a mapping of its own: `close` unmaps it, and the pages are gone.

Memory that stands in for a device's is a memory file (memfd): the kernel counts its pages apart from the process's anonymous
memory, so host and device pools are told apart in what it reports.
"""

from __future__ import annotations

import contextlib
import mmap
import os

import numpy as np

PAGE = mmap.PAGESIZE
CHUNK = 4 << 20
"""Bytes touched between two looks at the clock."""


class HostBuffer:
    """`nbytes` of anonymous memory, or of a memory file if `device_like`. No page is resident before it is touched."""

    __slots__ = ("_fd", "_map", "nbytes", "touched")

    def __init__(self, nbytes: int, device_like: bool = False, huge: bool = False) -> None:
        """`huge`: in huge pages, where the system has them. Raises MemoryError if the system refuses."""
        self.nbytes, self.touched = nbytes, 0
        self._fd = -1
        length = max(nbytes, 1)
        try:
            if device_like:
                self._fd = os.memfd_create("cuzk-device", os.MFD_CLOEXEC)
                os.ftruncate(self._fd, length)
                self._map = mmap.mmap(self._fd, length)
            else:
                self._map = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                if huge:
                    with contextlib.suppress(OSError, AttributeError):
                        self._map.madvise(mmap.MADV_HUGEPAGE)
        except OSError as error:
            if self._fd >= 0:
                os.close(self._fd)
            raise MemoryError(f"the system refuses {nbytes} bytes: {error.strerror}") from error

    def touch(self, upto: int) -> None:
        """Make the pages below `upto` bytes resident; the interpreter lock is free meanwhile. Raises MemoryError.

        Of a memory file the kernel is asked for the pages at once, a quarter of the time of faulting them in.
        """
        upto = min(upto, self.nbytes)
        if upto <= self.touched:
            return
        if self._fd >= 0:
            try:
                os.posix_fallocate(self._fd, self.touched, upto - self.touched)
            except OSError as error:
                raise MemoryError(f"the system refuses {upto - self.touched} bytes: {error.strerror}") from error
        else:
            pages = np.frombuffer(self._map, dtype=np.uint8)[self.touched : upto : PAGE]
            pages[:] = 1
            del pages
        self.touched = upto

    def resident(self) -> int:
        """Bytes that the kernel holds for it. Exact for device-like memory, what was touched for the rest."""
        return os.fstat(self._fd).st_blocks * 512 if self._fd >= 0 else self.touched

    def array(self, dtype: type[np.generic]) -> np.ndarray:
        """The memory as a flat array. `close` wants every view of it gone."""
        return np.frombuffer(self._map, dtype=dtype)

    def shrink(self, nbytes: int) -> None:
        """Give the pages from `nbytes` on back to the system; the mapping stays."""
        start = -(-nbytes // PAGE) * PAGE
        if start < self.touched:
            self._map.madvise(mmap.MADV_REMOVE if self._fd >= 0 else mmap.MADV_DONTNEED, start)
            self.touched = start

    def close(self) -> None:
        """Unmap. The pages return to the system, at the latest when the last view of them goes."""
        try:
            self._map.close()
        except BufferError:  # a view lives on, in the traceback of a failed step, say: the pages go now, the mapping then
            self._map.madvise(mmap.MADV_REMOVE if self._fd >= 0 else mmap.MADV_DONTNEED)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def process_anonymous_bytes() -> int:
    """Resident anonymous memory of this process: its heap and mappings, without files and without device-like memory."""
    return _status_bytes(b"RssAnon:")


def process_resident_bytes() -> int:
    """Anonymous memory and mapped files, without device-like memory."""
    return _status_bytes(b"RssAnon:", b"RssFile:")


def _status_bytes(*rows: bytes) -> int:
    with open("/proc/self/status", "rb", buffering=0) as status:
        return sum(int(line.split()[1]) * 1024 for line in status.read().splitlines() if line.startswith(rows))
