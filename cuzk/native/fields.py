"""Arrays of Fr: arithmetic, NTT, the scan of a witness, sparse products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._library import call, thread_count
from .arrays import U64Array, address, check, check_writable, output

MAX_LOG_N = 32  # r - 1 = 2^32 * odd


def _binary(name: str, a: U64Array, b: U64Array, out: U64Array | None, threads: int | None) -> U64Array:
    n = check(a, "a", 4)
    rows = check(b, "b", 4)
    if rows not in (1, n):
        raise ValueError(f"b: expected {n} rows or 1, got {rows}")
    out = output(out, "out", n, 4)
    call(name, address(out), address(a), address(b), n, int(rows == n), thread_count(threads))
    return out


def fr_mul(a: U64Array, b: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """Montgomery products a[i] b[i] / R: mont by mont is mont, mont by std is std. b may be one row. out may be a or b."""
    return _binary("fr_mul", a, b, out, threads)


def fr_add(a: U64Array, b: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """a[i] + b[i], both mont or both std. b may be one row. out may be a or b."""
    return _binary("fr_add", a, b, out, threads)


def fr_sub(a: U64Array, b: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """a[i] - b[i], both mont or both std. b may be one row. out may be a or b."""
    return _binary("fr_sub", a, b, out, threads)


def _unary(name: str, a: U64Array, out: U64Array | None, threads: int | None) -> U64Array:
    n = check(a, "a", 4)
    out = output(out, "out", n, 4)
    call(name, address(out), address(a), n, thread_count(threads))
    return out


def fr_from_std(a: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """std to mont; values must be below r (see fr_less_than_r). out may be a."""
    return _unary("fr_from_std", a, out, threads)


def fr_to_std(a: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """mont to std. out may be a."""
    return _unary("fr_to_std", a, out, threads)


def fr_inv(a: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """Inverses, mont to mont; zero stays zero. out may be a. 64 KiB of scratch a thread."""
    return _unary("fr_inv", a, out, threads)


def fr_powers_mont(base_mont: U64Array, n: int, scale_mont: U64Array | None = None, threads: int | None = None) -> U64Array:
    """(n, 4) array of scale * base^i, i < n; all mont. scale defaults to 1."""
    check(base_mont, "base_mont", 4, rows=1)
    scale = root_of_unity_mont(0) if scale_mont is None else scale_mont  # the generator of order 1 is 1
    check(scale, "scale_mont", 4, rows=1)
    out = np.empty((n, 4), np.uint64)
    call("fr_powers", address(out), address(base_mont), address(scale), n, thread_count(threads))
    return out


def fr_dot_mont(a: U64Array, b: U64Array, threads: int | None = None) -> U64Array:
    """(1, 4): sum of the Montgomery products a[i] b[i] / R; 0 for n = 0."""
    n = check(a, "a", 4)
    check(b, "b", 4, rows=n)
    out = np.empty((1, 4), np.uint64)
    call("fr_dot", address(out), address(a), address(b), n, thread_count(threads))
    return out


def fr_take(a: U64Array, wires: NDArray[np.uint32], threads: int | None = None) -> U64Array:
    """(n, 4): a[wires[k]]. IndexError naming the first k that is out of range."""
    size, n = check(a, "a", 4), check(wires, "wires", None, np.uint32)
    out = np.empty((n, 4), np.uint64)
    bad = call("fr_take", address(out), address(a), size, address(wires), n, thread_count(threads))
    if bad >= 0:
        raise IndexError(f"wire {wires[bad]} of {size}, at place {bad}")
    return out


def fr_less_than_r(a: U64Array, threads: int | None = None) -> int:
    """Index of the first element that is r or more, -1 if there is none."""
    n = check(a, "a", 4)
    return call("fr_first_not_below_r", address(a), n, thread_count(threads))


def root_of_unity_mont(log_n: int, root: int = 7) -> U64Array:
    """(1, 4): generator of order 2^log_n, root^((r-1) / 2^log_n), mont. root is 5 (circom, snarkjs) or 7 (bellman)."""
    _check_domain(log_n, root)
    out = np.empty((1, 4), np.uint64)
    call("root_of_unity", address(out), log_n, root)
    return out


def _check_domain(log_n: int, root: int) -> None:
    if not 0 <= log_n <= MAX_LOG_N:
        raise ValueError(f"log_n must be in 0..{MAX_LOG_N}, not {log_n}")
    if root not in (5, 7):
        raise ValueError(f"root must be 5 or 7, not {root}")


def log2_exact(n: int, name: str) -> int:
    if n < 1 or n & (n - 1):
        raise ValueError(f"{name}: {n} rows are not a power of two")
    return n.bit_length() - 1


def ntt(
    a_mont: U64Array,
    root: int = 7,
    inverse: bool = False,
    coset: U64Array | None = None,
    threads: int | None = None,
) -> U64Array:
    """Transform in place, natural order in and out, n a power of two; returns a_mont.

    Forward: a[k] = sum_i a[i] (g w^k)^i with w = root_of_unity_mont(log n, root) and g the coset's shift, (1, 4) mont, or 1.
    Inverse: undoes exactly that. Mont and std values both work (the transform is linear). About 0.3 MiB a thread.
    """
    log_n = log2_exact(check(a_mont, "a_mont", 4), "a_mont")
    check_writable(a_mont, "a_mont")
    _check_domain(log_n, root)
    if coset is not None:
        check(coset, "coset", 4, rows=1)
    shift = None if coset is None else address(coset)
    call("ntt", address(a_mont), log_n, root, int(inverse), shift, thread_count(threads))
    return a_mont


def scan_witness(w_std: U64Array, threads: int | None = None) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """(ones, tail): a bitmap of the values that are 1 (bit i % 8 of byte i // 8), and the ascending indices of the values
    that are neither 0 nor 1."""
    n = check(w_std, "w_std", 4)
    if n >= 2**32:
        raise ValueError(f"w_std: {n} rows do not fit 32-bit indices")
    ones = np.empty((n + 7) // 8, np.uint8)
    count = call("scan_witness", address(ones), None, address(w_std), n, thread_count(threads))
    tail = np.empty(count, np.uint32)
    call("scan_witness", None, address(tail), address(w_std), n, thread_count(threads))
    return ones, tail


def nonzero_rows(rows: U64Array, threads: int | None = None) -> NDArray[np.uint8]:
    """A bitmap (bit k % 8 of byte k // 8; zeros behind them) of the rows of an (n, words) array that are not all zero."""
    words = rows.shape[1] if getattr(rows, "ndim", 0) == 2 else 0
    n = check(rows, "rows", words)
    out = np.empty((n + 7) // 8, np.uint8)
    call("nonzero_rows", address(out), address(rows), words, n, thread_count(threads))
    return out


def gather_bits(
    bits: NDArray[np.uint8], n: int, wires: NDArray[np.uint32] | None = None, first: int = 0, threads: int | None = None
) -> NDArray[np.uint8]:
    """A bitmap of n bits (bit k % 8 of byte k // 8; zeros behind them): bit k is bit wires[k] of `bits`, or bit first + k
    without `wires`. IndexError naming the first k whose bit is not there."""
    size = 8 * check(bits, "bits", None, np.uint8)
    if wires is not None:
        check(wires, "wires", None, np.uint32, n)
    out = np.empty((n + 7) // 8, np.uint8)
    at = None if wires is None else address(wires)
    bad = call("gather_bits", address(out), address(bits), size, at, first, n, thread_count(threads))
    if bad >= 0:
        raise IndexError(f"bit {bad} of {n}: there are only {size} bits to take it from")
    return out


def check_matrix(row_ptr: Any, col: Any, coef_id: Any, coef_table: Any) -> tuple[int, int, int]:
    """Shapes of a CSR matrix: (rows, nonzeros, coefficients). Contents are checked by the library as it reads them."""
    rows = check(row_ptr, "row_ptr", None) - 1
    if rows < 0:
        raise ValueError("row_ptr: expected rows + 1 entries, got none")
    nnz = check(col, "col", None, np.uint32)
    dtype = np.uint16 if getattr(coef_id, "dtype", None) == np.uint16 else np.uint32
    check(coef_id, "coef_id", None, dtype, rows=nnz)
    return rows, nnz, check(coef_table, "coef_table_mont", 4)


def matvec_csr(
    row_ptr: U64Array,
    col: NDArray[np.uint32],
    coef_id: NDArray[Any],
    coef_table_mont: U64Array,
    w: U64Array,
    out: U64Array | None = None,
    threads: int | None = None,
) -> U64Array:
    """out[i] = sum over k in row_ptr[i]..row_ptr[i+1] of coef_table_mont[coef_id[k]] * w[col[k]].

    row_ptr u64 (rows + 1,), col u32 (nnz,), coef_id u16 or u32 (nnz,), table (k, 4) mont. Numbers 0 and 1 mean +1 and -1 and
    cost an addition; the table's first two rows exist but are not read. w mont gives mont, w std gives std.
    Raises ValueError naming the row whose pointers, columns or numbers are out of range.
    """
    rows, nnz, table_size = check_matrix(row_ptr, col, coef_id, coef_table_mont)
    w_size = check(w, "w", 4)
    out = output(out, "out", rows, 4)
    name = "matvec_u16" if coef_id.dtype == np.uint16 else "matvec_u32"
    bad = call(
        name, address(out), address(row_ptr), rows, address(col), address(coef_id), nnz,
        address(coef_table_mont), table_size, address(w), w_size, thread_count(threads),
    )  # fmt: skip
    if bad >= 0:
        raise ValueError(f"matrix row {bad}: pointer, column or coefficient number out of range")
    return out


def matvec_csr_std(
    row_ptr: U64Array,
    col: NDArray[np.uint32],
    coef_id: NDArray[Any],
    coef_table_mont: U64Array,
    w_std: U64Array,
    out: U64Array | None = None,
    threads: int | None = None,
) -> U64Array:
    """matvec_csr with w in std form: the result is std too (a mont coefficient times a std value is std)."""
    return matvec_csr(row_ptr, col, coef_id, coef_table_mont, w_std, out, threads)
