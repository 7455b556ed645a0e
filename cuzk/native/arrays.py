"""Checks every array that crosses into the library: dtype, shape, contiguity, writability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

U64Array = NDArray[np.uint64]


def check(array: Any, name: str, columns: int | None, dtype: DTypeLike = np.uint64, rows: int | None = None) -> int:
    """Raises unless `array` is a C-contiguous (rows, columns) array, or (rows,) for columns=None. Returns the rows."""
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype):
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{name}: expected an array of {np.dtype(dtype)}, got {found}")
    want = "(n,)" if columns is None else f"(n, {columns})"
    if array.ndim != (1 if columns is None else 2) or (columns is not None and array.shape[1] != columns):
        raise ValueError(f"{name}: expected shape {want}, got {array.shape}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name}: not C-contiguous")
    if rows is not None and array.shape[0] != rows:
        raise ValueError(f"{name}: expected {rows} rows, got {array.shape[0]}")
    return int(array.shape[0])


def check_writable(array: NDArray[Any], name: str) -> None:
    if not array.flags.writeable:
        raise ValueError(f"{name}: read-only, but the result goes into it")


def output(out: Any, name: str, rows: int, columns: int, dtype: DTypeLike = np.uint64) -> NDArray[Any]:
    """`out` after the checks, or a fresh array."""
    if out is None:
        return np.empty((rows, columns), dtype)
    check(out, name, columns, dtype, rows)
    found: NDArray[Any] = out
    check_writable(found, name)
    return found


def address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)
