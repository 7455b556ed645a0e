"""Mapping files for reading, and writing them so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import BinaryIO

import numpy as np

from cuzk.errors import FormatError, InputError

Path = str | PathLike[str]


def map_file(path: Path) -> np.ndarray:
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


@contextlib.contextmanager
def atomic_write(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A binary file that appears under `path` only when the block ends without an exception."""
    target = os.path.abspath(fspath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=os.path.basename(target) + ".", suffix=".part", dir=os.path.dirname(target))
    except OSError as error:
        raise InputError(f"{fspath(path)}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        if not private:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise InputError(f"{fspath(path)}: {error.strerror or error}") from error
        raise


def require_writable(*paths: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Check before long work that files can be written there, and that none takes the place of another or of an input.

    Raises InputError.
    """
    taken = {os.path.realpath(path): f"{fspath(path)} is read" for path in inputs if path is not None}
    for path in paths:
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise InputError(f"{fspath(path)}: cannot be written, {taken[place]} by the same command")
        taken[place] = f"{fspath(path)} is written"
        folder = os.path.dirname(os.path.abspath(fspath(path)))
        if os.path.isdir(path):
            raise InputError(f"{fspath(path)}: is a directory")
        if not os.path.isdir(folder):
            raise InputError(f"{fspath(path)}: there is no directory {folder}")
        if not os.access(folder, os.W_OK):
            raise InputError(f"{fspath(path)}: {folder} is not writable")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_write(path) as file:
        file.write(text.encode())
