"""The mapped container of cuzk's own files: a JSON header, then page-aligned arrays that are used where they lie.

    8 B magic | u32 version | u32 header bytes | header (UTF-8 JSON) | arrays at multiples of 4096   (little-endian)

The header is an object with free metadata and `arrays`: name → {offset, dtype, shape}.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import numpy as np

from cuzk import strict_json
from cuzk.errors import FormatError
from cuzk.groth16.formats.files import Path, atomic_write, map_file, unpack

VERSION = 1
ALIGNMENT = 4096
MAX_HEADER_BYTES = 1 << 20
DTYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "u8": np.uint64}


class MappedFile:
    """An indexed file; `array(name)` is a read-only view."""

    def __init__(self, path: Path, magic: bytes, what: str) -> None:
        self.path, self.what = path, what
        self.data = map_file(path)
        size = len(self.data)
        if size < 16:
            raise FormatError(path, f"{size} bytes cannot hold the header of a {what}", offset=0)
        if self.data[:8].tobytes() != magic:
            raise FormatError(path, f"not a {what}: magic is {self.data[:8].tobytes()!r}", offset=0)
        version, length = unpack("<II", self.data, 8)
        if version != VERSION:
            raise FormatError(path, f"version {version} is not supported (expected {VERSION})", offset=8)
        if length > min(MAX_HEADER_BYTES, size - 16):
            raise FormatError(path, f"the header claims {length} bytes, the file has {size - 16} left", offset=12)
        header = strict_json.loads(path, self.data[16 : 16 + length].tobytes(), base=16)
        if not isinstance(header, dict) or not isinstance(header.get("arrays"), dict):
            raise FormatError(path, "the header lists no arrays", offset=16)
        self.header = header
        self._arrays: dict[str, np.ndarray] = {}
        self._end = 16 + length
        for name, entry in header["arrays"].items():
            self._arrays[name] = self._view(name, entry)
        if size != self._end:
            raise FormatError(path, f"{size - self._end} bytes after the last array", offset=self._end)

    def _view(self, name: str, entry: object) -> np.ndarray:
        def bad(message: str) -> FormatError:
            return FormatError(self.path, message, offset=16, section=name)

        if not isinstance(entry, dict):
            raise bad("the header's entry is not an object")
        offset, dtype, shape = entry.get("offset"), entry.get("dtype"), entry.get("shape")
        if not isinstance(offset, int) or offset < 0 or offset % ALIGNMENT or not isinstance(dtype, str) or dtype not in DTYPES:
            raise bad("the header's entry has no usable offset and dtype")
        if not isinstance(shape, list) or not 1 <= len(shape) <= 2:
            raise bad("the header's entry has no usable shape")
        if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 48 for n in shape):
            raise bad("the header's entry has no usable shape")
        kind = np.dtype(DTYPES[dtype])
        size = math.prod(shape) * kind.itemsize
        if offset + size > len(self.data):
            raise bad(f"claims {size} bytes at byte {offset}, the file has {len(self.data)}")
        self._end = max(self._end, offset + size)
        return self.data[offset : offset + size].view(kind).reshape(shape)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """The array of this name. Raises FormatError unless it has this dtype and shape (-1 leaves a length open)."""
        if name not in self._arrays:
            raise self.error(name, "this array is missing")
        found = self._arrays[name]
        fits = len(found.shape) == len(shape) and all(w in (-1, n) for n, w in zip(found.shape, shape, strict=True))
        if found.dtype != DTYPES[dtype] or not fits:
            message = f"has dtype {found.dtype} and shape {list(found.shape)}, expected {dtype} {list(shape)}"
            raise self.error(name, message)
        return found

    def error(self, name: str, message: str, at: int = 0) -> FormatError:
        """A FormatError at byte `at` of an array; at the header, which places them, where there is no such array."""
        return FormatError(self.path, message, section=name, offset=self.offset(name) + at if name in self._arrays else 16)

    def offset(self, name: str) -> int:
        """The byte at which an array begins in the file."""
        return int(self.header["arrays"][name]["offset"])

    def nbytes(self, name: str) -> int:
        """Size of an array."""
        return self._arrays[name].nbytes

    def names(self) -> list[str]:
        return list(self._arrays)

    def integer(self, name: str, low: int, high: int) -> int:
        """A header field. Raises FormatError unless it is an integer in low … high."""
        value = self.header.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise FormatError(self.path, f"header field {name} is {value!r}, expected {low} … {high}", offset=16)
        return value


class MappedArray:
    """An array to write: its shape, dtype, and its content: chunks along the first axis, or a function that fills the array
    where it lies in the file, for content that many threads make at once.
    """

    def __init__(
        self, dtype: str, shape: tuple[int, ...], chunks: Iterable[np.ndarray] = (),
        fill: Callable[[np.ndarray], None] | None = None,
    ) -> None:  # fmt: skip
        self.dtype, self.shape, self.chunks, self.fill = dtype, shape, chunks, fill

    @staticmethod
    def of(array: np.ndarray) -> MappedArray:
        name = f"{array.dtype.kind}{array.dtype.itemsize}"
        return MappedArray(name, array.shape, [array])

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(DTYPES[self.dtype]).itemsize


def _fill(file: BinaryIO, start: int, array: MappedArray) -> None:
    """Have an array filled in place. Its room is reserved first: a full disk is told here and not by a signal."""
    if array.size_bytes == 0:
        return
    file.flush()
    os.posix_fallocate(file.fileno(), start, array.size_bytes)
    pages = mmap.mmap(file.fileno(), array.size_bytes, offset=start)
    assert array.fill is not None
    array.fill(np.frombuffer(pages, DTYPES[array.dtype]).reshape(array.shape))
    file.seek(start + array.size_bytes)


def write_mapped(path: Path, magic: bytes, metadata: dict[str, Any], arrays: dict[str, MappedArray]) -> None:
    """Write a mapped file atomically, array by array."""
    placed: dict[str, dict[str, Any]] = {}

    def layout(base: int) -> int:
        at = base
        for name, array in arrays.items():
            at = -(-at // ALIGNMENT) * ALIGNMENT
            placed[name] = {"offset": at, "dtype": array.dtype, "shape": list(array.shape)}
            at += array.size_bytes
        return at

    # The header's length depends on the offsets that it holds; a page more than its first draft leaves room for
    # their digits.
    layout(0)
    length = len(json.dumps({**metadata, "arrays": placed}))
    layout(16 + length + 24 * len(arrays))
    header = json.dumps({**metadata, "arrays": placed}).encode()
    with atomic_write(path) as file:
        file.write(magic + struct.pack("<II", VERSION, len(header)) + header)
        for name, array in arrays.items():
            file.seek(placed[name]["offset"])
            start = file.tell()
            file.truncate(start)  # an empty array at the end has a place too
            if array.fill is not None:
                _fill(file, start, array)
                continue
            for chunk in array.chunks:
                file.write(np.ascontiguousarray(chunk, dtype=DTYPES[array.dtype]).data)
            if file.tell() - start != array.size_bytes:
                raise ValueError(f"array {name}: {file.tell() - start} bytes written, {array.size_bytes} announced")
