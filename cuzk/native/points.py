"""Arrays of points of G1 and G2. Every pair of functions is one implementation with a group of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._library import call, thread_count
from .arrays import U64Array, address, check, check_writable, output
from .fields import check_matrix, fr_to_std, log2_exact, root_of_unity_mont

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Group:
    """Name in the C ABI and 64-bit words of an affine point."""

    name: str
    words: int

    @property
    def compressed_bytes(self) -> int:
        return self.words * 4

    def points(self, array: Any, name: str = "points", rows: int | None = None) -> int:
        return check(array, name, self.words, rows=rows)


G1, G2 = Group("g1", 12), Group("g2", 24)
MAX_SHIFT = 1 << 16
"""A shift is a doubling each: more of them are a mistake."""


def _msm(g: Group, points: U64Array, scalars_std: U64Array, threads: int | None) -> U64Array:
    n = g.points(points)
    check(scalars_std, "scalars_std", 4, rows=n)
    out = np.empty((1, g.words), np.uint64)
    call(f"{g.name}_msm", address(out), address(points), address(scalars_std), n, thread_count(threads))
    return out


def msm_g1(points: U64Array, scalars_std: U64Array, threads: int | None = None) -> U64Array:
    """(1, 12): sum of scalars[i] * points[i]. Scalars are any 256-bit integers; n may be 0; any points of the curve.

    Memory beside the arguments: msm_bytes_g1(n, threads).
    """
    return _msm(G1, points, scalars_std, threads)


def msm_g2(points: U64Array, scalars_std: U64Array, threads: int | None = None) -> U64Array:
    """(1, 24): sum of scalars[i] * points[i]. As msm_g1; memory: msm_bytes_g2(n, threads)."""
    return _msm(G2, points, scalars_std, threads)


def msm_bytes_g1(n: int, threads: int | None = None) -> int:
    """Bytes that msm_g1 takes beside its arguments for n full-width scalars: bucket sets (more than 16 windows, or about 1.25 a
    thread), the points in work and each thread's scratch. 3 MiB at 2^12, 90 MiB at 2^20 on two threads."""
    return call("g1_msm_bytes", n, thread_count(threads))


def msm_bytes_g2(n: int, threads: int | None = None) -> int:
    """The same for msm_g2 as msm_bytes_g1."""
    return call("g2_msm_bytes", n, thread_count(threads))


def _shifted_sum(g: Group, points: U64Array, shifts: NDArray[np.uint32]) -> U64Array:
    n = g.points(points)
    check(shifts, "shifts", None, np.uint32, rows=n)
    if n and int(shifts.max()) > MAX_SHIFT:
        raise ValueError(f"shifts: {int(shifts.max())} is above {MAX_SHIFT}")
    out = np.empty((1, g.words), np.uint64)
    call(f"{g.name}_shifted_sum", address(out), address(points), address(shifts), n)
    return out


def shifted_sum_g1(points: U64Array, shifts: NDArray[np.uint32]) -> U64Array:
    """(1, 12): sum of 2^shifts[i] * points[i], in one thread: max(shifts) doublings and an addition a point, for few points."""
    return _shifted_sum(G1, points, shifts)


def shifted_sum_g2(points: U64Array, shifts: NDArray[np.uint32]) -> U64Array:
    """(1, 24): as shifted_sum_g1."""
    return _shifted_sum(G2, points, shifts)


def _batch_add(g: Group, points: U64Array, bitmap: NDArray[Any], threads: int | None) -> U64Array:
    n = g.points(points)
    words = getattr(bitmap, "dtype", None) == np.uint64
    size = check(bitmap, "bitmap", None, np.uint64 if words else np.uint8)
    if size * (64 if words else 8) < n:
        raise ValueError(f"bitmap: {size} entries are too few for {n} points")
    out = np.empty((1, g.words), np.uint64)
    call(f"{g.name}_sum", address(out), address(points), address(bitmap), n, thread_count(threads))
    return out


def batch_add_g1(points: U64Array, bitmap: NDArray[Any], threads: int | None = None) -> U64Array:
    """(1, 12): sum of the points whose bit is set; bitmap is uint8 (bit i % 8 of byte i // 8) or uint64 words likewise."""
    return _batch_add(G1, points, bitmap, threads)


def batch_add_g2(points: U64Array, bitmap: NDArray[Any], threads: int | None = None) -> U64Array:
    """(1, 24): as batch_add_g1."""
    return _batch_add(G2, points, bitmap, threads)


def _add(g: Group, a: U64Array, b: U64Array, out: U64Array | None, threads: int | None) -> U64Array:
    n = g.points(a, "a")
    g.points(b, "b", rows=n)
    out = output(out, "out", n, g.words)
    call(f"{g.name}_add", address(out), address(a), address(b), n, thread_count(threads))
    return out


def g1_add(a: U64Array, b: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """a[i] + b[i], all cases. out may be a or b."""
    return _add(G1, a, b, out, threads)


def g2_add(a: U64Array, b: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """a[i] + b[i], all cases. out may be a or b."""
    return _add(G2, a, b, out, threads)


def _neg(g: Group, a: U64Array, out: U64Array | None, threads: int | None) -> U64Array:
    n = g.points(a, "a")
    out = output(out, "out", n, g.words)
    call(f"{g.name}_neg", address(out), address(a), n, thread_count(threads))
    return out


def g1_neg(a: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """-a[i]. out may be a."""
    return _neg(G1, a, out, threads)


def g2_neg(a: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """-a[i]. out may be a."""
    return _neg(G2, a, out, threads)


def _generator(g: Group) -> U64Array:
    out = np.empty((1, g.words), np.uint64)
    call(f"{g.name}_generator", address(out))
    return out


def g1_generator() -> U64Array:
    """(1, 12): the standard generator of G1."""
    return _generator(G1)


def g2_generator() -> U64Array:
    """(1, 24): the standard generator of G2."""
    return _generator(G2)


def _fixed_base(g: Group, scalars_std: U64Array, base: U64Array | None, threads: int | None, out: U64Array | None) -> U64Array:
    n = check(scalars_std, "scalars_std", 4)
    base = _generator(g) if base is None else base
    g.points(base, "base", rows=1)
    out = output(out, "out", n, g.words)
    call(f"{g.name}_fixed_base", address(out), address(base), address(scalars_std), n, thread_count(threads))
    return out


def fixed_base_g1(
    scalars_std: U64Array, base: U64Array | None = None, threads: int | None = None, out: U64Array | None = None
) -> U64Array:
    """(n, 12): scalars[i] * base, the generator by default. Each call builds a table of up to 10 MiB, worth it from about
    2^14 scalars on: cut longer work into chunks of 2^16 or more."""
    return _fixed_base(G1, scalars_std, base, threads, out)


def fixed_base_g2(
    scalars_std: U64Array, base: U64Array | None = None, threads: int | None = None, out: U64Array | None = None
) -> U64Array:
    """(n, 24): scalars[i] * base, the generator by default. As fixed_base_g1, table up to 20 MiB."""
    return _fixed_base(G2, scalars_std, base, threads, out)


def _scale(g: Group, points: U64Array, scalars_std: U64Array, out: U64Array | None, threads: int | None) -> U64Array:
    n = g.points(points)
    rows = check(scalars_std, "scalars_std", 4)
    if rows == 1 and n != 1:
        scalars_std = np.ascontiguousarray(np.broadcast_to(scalars_std, (n, 4)))
    elif rows != n:
        raise ValueError(f"scalars_std: expected {n} rows or 1, got {rows}")
    out = output(out, "out", n, g.words)
    call(f"{g.name}_scale", address(out), address(points), address(scalars_std), n, thread_count(threads))
    return out


def scale_g1(points: U64Array, scalars_std: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """(n, 12): scalars[i] * points[i]; one row of scalars serves all. out may be points. 1.5 MiB a thread."""
    return _scale(G1, points, scalars_std, out, threads)


def scale_g2(points: U64Array, scalars_std: U64Array, out: U64Array | None = None, threads: int | None = None) -> U64Array:
    """(n, 24): scalars[i] * points[i]; one row of scalars serves all. out may be points. 1.5 MiB a thread."""
    return _scale(G2, points, scalars_std, out, threads)


def _group_ntt(g: Group, points: U64Array, root: int | U64Array, inverse: bool, threads: int | None) -> U64Array:
    log_n = log2_exact(g.points(points), "points")
    check_writable(points, "points")
    generator = root_of_unity_mont(log_n, root) if isinstance(root, int) else root
    check(generator, "root", 4, rows=1)
    call(f"{g.name}_ntt", address(points), log_n, address(generator), int(inverse), thread_count(threads))
    return points


def group_ntt_g1(points: U64Array, root: int | U64Array = 7, inverse: bool = False, threads: int | None = None) -> U64Array:
    """In-place FFT over group elements, natural order: points[k] = sum_i w^(ik) points[i]; the inverse undoes it.

    root: 5 or 7, or a generator of order n as (1, 4) mont. Memory: 144 bytes a point and 4 MiB a thread. Returns points.
    A point of the whole curve outside the subgroup of order r is fine, and makes all of it 1.6 times as long.
    """
    return _group_ntt(G1, points, root, inverse, threads)


def group_ntt_g2(points: U64Array, root: int | U64Array = 7, inverse: bool = False, threads: int | None = None) -> U64Array:
    """The transform of group_ntt_g1 over G2 (272 bytes a point)."""
    return _group_ntt(G2, points, root, inverse, threads)


def _sparse_combine(
    g: Group, row_ptr: U64Array, col: Any, coef_id: Any, table_mont: U64Array, points: U64Array, threads: int | None
) -> U64Array:
    rows, nnz, table_size = check_matrix(row_ptr, col, coef_id, table_mont)
    n = g.points(points)
    numbers = np.ascontiguousarray(coef_id, np.uint32)
    table = fr_to_std(table_mont)
    out = np.empty((rows, g.words), np.uint64)
    bad = call(
        f"{g.name}_sparse_combine", address(out), address(row_ptr), rows, address(col), address(numbers), nnz,
        address(table), table_size, address(points), n, thread_count(threads),
    )  # fmt: skip
    if bad >= 0:
        raise ValueError(f"matrix row {bad}: pointer, column or coefficient number out of range")
    return out


def sparse_combine_g1(
    row_ptr: U64Array,
    col: NDArray[np.uint32],
    coef_id: NDArray[Any],
    coef_table_mont: U64Array,
    points: U64Array,
    threads: int | None = None,
) -> U64Array:
    """(rows, 12): sums of coef_table_mont[coef_id[k]] * points[col[k]] over each row; matrix as in matvec_csr.

    uint16 coefficient numbers are copied to uint32. 2 MiB a thread.
    """
    return _sparse_combine(G1, row_ptr, col, coef_id, coef_table_mont, points, threads)


def sparse_combine_g2(
    row_ptr: U64Array,
    col: NDArray[np.uint32],
    coef_id: NDArray[Any],
    coef_table_mont: U64Array,
    points: U64Array,
    threads: int | None = None,
) -> U64Array:
    """(rows, 24): as sparse_combine_g1."""
    return _sparse_combine(G2, row_ptr, col, coef_id, coef_table_mont, points, threads)


def check_g1(points: U64Array, subgroup: bool = True, threads: int | None = None) -> int:
    """Index of the first point with a coordinate of q or more, off the curve, or (subgroup=True) outside the subgroup of
    order r; -1 if all are fine. Infinity is fine."""
    return call("g1_check", address(points), G1.points(points), int(subgroup), thread_count(threads))


def check_g2(points: U64Array, subgroup: bool = True, threads: int | None = None) -> int:
    """The check of check_g1, for G2."""
    return call("g2_check", address(points), G2.points(points), int(subgroup), thread_count(threads))


def _encode(g: Group, name: str, points: U64Array, size: int, threads: int | None) -> Bytes:
    n = g.points(points)
    out = np.empty((n, size), np.uint8)
    call(f"{g.name}_{name}", address(out), address(points), n, thread_count(threads))
    return out


def _decode(g: Group, name: str, data: Bytes, size: int, complain: Callable[[int], str], threads: int | None) -> U64Array:
    n = check(data, "data", size, np.uint8)
    out = np.empty((n, g.words), np.uint64)
    bad = call(f"{g.name}_{name}", address(out), address(data), n, thread_count(threads))
    if bad >= 0:
        raise ValueError(complain(bad))
    return out


def _not_compressed(i: int) -> str:
    return f"point {i}: not the compressed encoding of a point on the curve"


def _not_uncompressed(i: int) -> str:
    return f"point {i}: not an uncompressed encoding (flags, or a coordinate of q or more)"


def g1_compress(points: U64Array, threads: int | None = None) -> Bytes:
    """(n, 48) uint8, ZCash encoding: big-endian std x, flags 0x80 compressed, 0x40 infinity, 0x20 larger y."""
    return _encode(G1, "compress", points, G1.compressed_bytes, threads)


def g2_compress(points: U64Array, threads: int | None = None) -> Bytes:
    """(n, 96) uint8, ZCash encoding, c1 first."""
    return _encode(G2, "compress", points, G2.compressed_bytes, threads)


def g1_decompress(data: Bytes, threads: int | None = None) -> U64Array:
    """(n, 48) uint8 to points. ValueError with the index of the first that is not canonical or not on the curve.
    The subgroup is not checked: see check_g1."""
    return _decode(G1, "decompress", data, G1.compressed_bytes, _not_compressed, threads)


def g2_decompress(data: Bytes, threads: int | None = None) -> U64Array:
    """(n, 96) uint8 to points; as g1_decompress."""
    return _decode(G2, "decompress", data, G2.compressed_bytes, _not_compressed, threads)


def g1_to_be_uncompressed(points: U64Array, threads: int | None = None) -> Bytes:
    """(n, 96) uint8: big-endian std x || y; infinity is 0x40 and zeros."""
    return _encode(G1, "to_uncompressed", points, 2 * G1.compressed_bytes, threads)


def g2_to_be_uncompressed(points: U64Array, threads: int | None = None) -> Bytes:
    """(n, 192) uint8: big-endian std x.c1 || x.c0 || y.c1 || y.c0; infinity is 0x40 and zeros."""
    return _encode(G2, "to_uncompressed", points, 2 * G2.compressed_bytes, threads)


def g1_from_be_uncompressed(data: Bytes, threads: int | None = None) -> U64Array:
    """(n, 96) uint8 to points. ValueError with the index of the first with wrong flags or a coordinate of q or more.
    Neither curve nor subgroup is checked: see check_g1."""
    return _decode(G1, "from_uncompressed", data, 2 * G1.compressed_bytes, _not_uncompressed, threads)


def g2_from_be_uncompressed(data: Bytes, threads: int | None = None) -> U64Array:
    """(n, 192) uint8 to points; as g1_from_be_uncompressed."""
    return _decode(G2, "from_uncompressed", data, 2 * G2.compressed_bytes, _not_uncompressed, threads)
