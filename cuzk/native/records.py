"""JSON under a schema, straight into arrays; a document of 51 MB takes a fraction of a second and its text is not copied."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._library import call
from .arrays import U64Array, address, check, check_writable

_REPORT = struct.Struct("<qq496s512s")


@dataclass(frozen=True)
class JsonFault:
    """Why a document could not be read, and where: the place in it (such as `a.b[3]`) and the byte where reading stopped."""

    path: str
    message: str
    offset: int
    inner_offset: int | None
    """Byte of the document inside a base64 string, if that was being read."""


def json_records(
    text: NDArray[np.uint8], program: NDArray[np.int32], root: int, names: bytes, hashes: NDArray[np.uint8], numbers: U64Array
) -> JsonFault | None:
    """Fills `hashes` (n, 32) and `numbers` (m,) from a JSON text under the schema that begins at `program[root]`
    (kernels/json/records.cpp says how such a program is written). They must be zero where a key may be absent. Returns what
    is wrong with the text, or None."""
    length = check(text, "text", None, np.uint8)
    check(program, "program", None, np.int32)
    n_hashes = check(hashes, "hashes", 32, np.uint8)
    n_numbers = check(numbers, "numbers", None)
    check_writable(hashes, "hashes")
    check_writable(numbers, "numbers")
    report = np.zeros(_REPORT.size, np.uint8)
    name_bytes = np.frombuffer(names, np.uint8)
    if not call("json_records", address(text), length, address(program), root, address(name_bytes), address(hashes), n_hashes,
                address(numbers), n_numbers, address(report)):  # fmt: skip
        return None
    offset, inner, path, message = _REPORT.unpack(report.tobytes())
    words = [text.split(b"\0", 1)[0].decode("utf-8", "replace") for text in (path, message)]
    return JsonFault(words[0], words[1], offset, inner if inner >= 0 else None)
