"""Mapping files for reading."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import FormatError, InputError
from cuzk.outputs import atomic_write, require_writable, write_text

__all__ = ["Path", "atomic_write", "map_file", "read_small", "require_writable", "unpack", "write_text"]

Path = str | PathLike[str]


def map_file(path: Path) -> NDArray[np.uint8]:
    """The whole file as a read-only uint8 array over its pages; nothing is read until it is touched.

    Raises InputError when there is no such regular file, FormatError when it is empty.
    """
    try:
        # A pipe without a writer would hold an ordinary open for ever.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InputError(f"{fspath(path)}: not a regular file")
            if status.st_size == 0:
                raise FormatError(path, "the file is empty")
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
    except OSError as error:
        raise InputError(f"{fspath(path)}: {error.strerror or error}") from error


def read_small(path: Path, limit_bytes: int = 1 << 26) -> bytes:
    """The content of a file that is held in memory whole (JSON, verifying keys, proofs)."""
    data = map_file(path)
    if len(data) > limit_bytes:
        raise FormatError(path, f"{len(data)} bytes are too many for this kind of file")
    return data.tobytes()


def unpack(layout: str, data: bytes | NDArray[np.uint8], at: int = 0) -> tuple[Any, ...]:
    """The values of a `struct` layout at byte `at`, of which the caller has seen that they are there."""
    return struct.unpack_from(layout, data if isinstance(data, bytes) else data.data, at)
