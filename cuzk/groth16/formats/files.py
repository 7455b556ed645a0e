"""Files for reading: mapped, and guarded against what happens to them meanwhile; small ones also from pipes."""

from __future__ import annotations

import errno
import mmap
import os
import select
import stat
import struct
import weakref
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import outputs
from cuzk.errors import FormatError, InputError, OutOfMemoryError
from cuzk.outputs import atomic_write, require_writable, write_text

__all__ = ["Path", "atomic_write", "map_file", "read_small", "require_unchanged", "require_writable", "unpack", "write_text"]

Path = str | PathLike[str]
SMALL_BYTES = 1 << 26
"""The most that is read into memory whole."""
WRITER_WAIT_S = 2.0
"""Patience with a pipe that nobody has opened for writing yet."""


@dataclass
class _Mapped:
    """A file as it was when it was mapped. `slot` is that of the guard."""

    path: str
    size: int
    slot: int | None
    pages: weakref.ref[mmap.mmap]


_mapped: dict[int, _Mapped] = {}
_piped: dict[tuple[str, int, int], NDArray[np.uint8]] = {}
"""Content that came through pipes: they can be read once, and readers look twice."""


def map_file(path: Path) -> NDArray[np.uint8]:
    """The whole file as a read-only uint8 array over its pages; nothing is read until it is touched. What comes through a pipe is
    read, up to SMALL_BYTES.

    Raises InputError when there is no such file, FormatError when it is empty, OutOfMemoryError when there is no room for the
    mapping. Where the file shrinks later, zeros are read, and `require_unchanged` raises.
    """
    try:
        # A pipe without a writer would hold an ordinary open for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _error(path, error) from error
    try:
        status = os.fstat(handle)
        if stat.S_ISFIFO(status.st_mode):
            return _through_pipe(path, handle, status)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{fspath(path)}: not a regular file")
        if status.st_size == 0:
            raise FormatError(path, "the file is empty", offset=0)
        return _guarded(path, mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise _error(path, error) from error
    finally:
        os.close(handle)


def _error(path: Path, error: OSError) -> InputError | OutOfMemoryError:
    message = f"{fspath(path)}: {error.strerror or error}"
    return OutOfMemoryError(message) if error.errno == errno.ENOMEM else InputError(message)


def _guarded(path: Path, pages: mmap.mmap) -> NDArray[np.uint8]:
    from cuzk.native import guard

    outputs.before_commit = require_unchanged
    data = np.frombuffer(pages, dtype=np.uint8)
    slot = guard.add(data.ctypes.data, len(data))
    key = id(pages)
    _mapped[key] = _Mapped(fspath(path), len(data), slot, weakref.ref(pages))
    weakref.finalize(pages, _forget, key)
    return data


def _forget(key: int) -> None:
    from cuzk.native import guard

    gone = _mapped.pop(key)
    if gone.slot is not None:
        guard.remove(gone.slot)


def require_unchanged() -> None:
    """Raises InputError about the first of this process's mapped files that has lost bytes since it was mapped: what was read
    from it since may be zeros, and nothing that was made from it counts.
    """
    from cuzk.native import guard

    for file in list(_mapped.values()):
        pages = file.pages()
        size = file.size if pages is None else pages.size()
        if size < file.size:
            raise InputError(f"{file.path}: became shorter while it was read: {size} bytes, before {file.size}")
        if pages is not None and file.slot is not None and guard.faults(file.slot):
            raise InputError(f"{file.path}: could not be read to its end: it changed meanwhile, or its medium fails")


def _through_pipe(path: Path, handle: int, status: os.stat_result) -> NDArray[np.uint8]:
    """Everything that comes through a pipe, until its writers close it."""
    key = (fspath(path), status.st_dev, status.st_ino)
    if key in _piped:
        return _piped[key]
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    if not poll.poll(WRITER_WAIT_S * 1000):
        raise InputError(f"{fspath(path)}: not a regular file, and nobody writes to this pipe")
    os.set_blocking(handle, True)
    parts, size = [], 0
    while piece := os.read(handle, 1 << 20):
        parts.append(piece)
        size += len(piece)
        if size > SMALL_BYTES:
            message = f"more than {SMALL_BYTES >> 20} MiB through a pipe: not a regular file, which can be mapped"
            raise FormatError(path, message, offset=SMALL_BYTES)
    if not size:
        raise FormatError(path, "nothing came through this pipe, which is not a regular file", offset=0)
    found = np.frombuffer(b"".join(parts), dtype=np.uint8)
    _piped[key] = found
    return found


def read_small(path: Path, limit_bytes: int = SMALL_BYTES) -> bytes:
    """The content of a file that is held in memory whole (JSON, verifying keys, proofs)."""
    data = map_file(path)
    if len(data) > limit_bytes:
        raise FormatError(path, f"{len(data)} bytes are too many for this kind of file", offset=limit_bytes)
    found = data.tobytes()
    require_unchanged()
    return found


def unpack(layout: str, data: bytes | NDArray[np.uint8], at: int = 0) -> tuple[Any, ...]:
    """The values of a `struct` layout at byte `at`, of which the caller has seen that they are there."""
    return struct.unpack_from(layout, data if isinstance(data, bytes) else data.data, at)
