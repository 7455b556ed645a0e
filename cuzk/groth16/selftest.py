"""Arithmetic of this machine's library against independent ones: Python's integers for the fields, arkworks for the curve.

Edge values (0, 1, 2, r − 1, runs of ones and zeros) against one another, then random ones; points with infinity, equal and
opposite ones among them; small MSMs and transforms. Every difference is counted, and named by operation and operands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, root_of_unity

Limbs = NDArray[np.uint64]
OPERATIONS = 10_000_000
CHUNK = 1 << 17


@dataclass
class Report:
    """Counts of what was compared, and the first difference of each operation."""

    compared: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    took_s: float = 0.0

    def count(self, name: str, n: int, first_wrong: str | None) -> None:
        """Note n comparisons; `first_wrong` says where the first difference lies."""
        self.compared[name] = self.compared.get(name, 0) + n
        if first_wrong is not None:
            self.wrong.append(f"{name}: {first_wrong}")


def edge_values() -> list[int]:
    """Field elements at which carries and reductions change."""
    runs = [(1 << k) - 1 for k in (32, 63, 64, 65, 127, 128, 192, 254)] + [1 << k for k in (31, 32, 64, 128, 192, 254)]
    special = [0, 1, 2, 3, FR_R, -FR_R, FR_MODULUS - 1, FR_MODULUS - 2, FR_MODULUS // 2, FR_MODULUS // 2 + 1]
    return sorted({v % FR_MODULUS for v in (*special, *runs, *(-v for v in runs))})


def integers(array: Limbs) -> Iterator[int]:
    """The values of `(n, 4)` limbs, one after the other."""
    raw = np.ascontiguousarray(array).tobytes()
    return (int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32))


def random_elements(n: int, rng: np.random.Generator) -> Limbs:
    """`(n, 4)` limbs below r."""
    out = rng.integers(0, 1 << 64, (n, 4), dtype=np.uint64)
    out[:, 3] %= np.uint64(FR_MODULUS >> 192)
    return out


def run_host(operations: int = OPERATIONS, progress: Callable[[str, int, int], None] = lambda *_: None) -> Report:
    """Compare about `operations` field operations and a fixed set of everything else."""
    report, start = Report(), time.perf_counter()
    _fields(report, operations, progress)
    _curve(report)
    _sums(report)
    _transforms(report)
    report.took_s = time.perf_counter() - start
    return report


def _fields(report: Report, operations: int, progress: Callable[[str, int, int], None]) -> None:
    rng = np.random.default_rng()
    edges = edge_values()
    grid = [(a, b) for a in edges for b in edges]
    binary: dict[str, tuple[Callable[..., Limbs], Callable[[int, int], int]]] = {
        # Montgomery: the product carries one factor R^-1 too many, which is what makes it a test of the reduction.
        "fr_mul": (native.fr_mul, lambda a, b: a * b * R_INVERSE % FR_MODULUS),
        "fr_add": (native.fr_add, lambda a, b: (a + b) % FR_MODULUS),
        "fr_sub": (native.fr_sub, lambda a, b: (a - b) % FR_MODULUS),
    }
    each = max(1, operations // len(binary))
    done = 0
    for name, (ours, theirs) in binary.items():
        pairs = [(fr_array([a for a, _ in grid]), fr_array([b for _, b in grid]))]
        left = each
        while left > 0 or pairs:
            n = min(CHUNK, left)
            if not pairs:
                pairs, left = [(random_elements(n, rng), random_elements(n, rng))], left - n
            a, b = pairs.pop()
            wanted = [theirs(x, y) for x, y in zip(integers(a), integers(b), strict=True)]
            report.count(name, len(a), _difference(ours(a, b), wanted, a, b))
            done += len(a)
            progress("field operations", done, operations)
    values = fr_array(edges + [int(v) for v in integers(random_elements(2000, rng))])
    wanted = [pow(v, -1, FR_MODULUS) * FR_R * FR_R % FR_MODULUS if v else 0 for v in integers(values)]
    report.count("fr_inv", len(values), _difference(native.fr_inv(values), wanted, values))
    wanted = [v * FR_R % FR_MODULUS for v in integers(values)]
    report.count("fr_from_std", len(values), _difference(native.fr_from_std(values), wanted, values))
    report.count("fr_to_std", len(values), _difference(native.fr_to_std(fr_array(wanted)), list(integers(values)), values))


R_INVERSE = pow(FR_R, -1, FR_MODULUS)


def _difference(found: Limbs, wanted: Sequence[int], *operands: Limbs) -> str | None:
    for k, (ours, theirs) in enumerate(zip(integers(found), wanted, strict=True)):
        if ours != theirs:
            given = ", ".join(hex(next(integers(each[k : k + 1]))) for each in operands)
            return f"of {given}: {ours:#x}, not {theirs:#x}"
    return None


def _points(group: int, scalars: Limbs) -> tuple[Limbs, list[Any]]:
    from py_arkworks_bls12381 import G1Point, G2Point, Scalar

    fixed = native.fixed_base_g1 if group == 1 else native.fixed_base_g2
    kind: Any = G1Point if group == 1 else G2Point
    theirs = [kind() * Scalar.from_le_bytes(v.to_bytes(32, "little")) for v in integers(scalars)]
    return fixed(scalars), theirs


def _same(mont: Limbs, point: Any) -> bool:
    be = point_bytes.from_mont(mont)
    xy = bytes(point.to_compressed_bytes())
    return point_bytes.compress(be) == xy


def _curve(report: Report) -> None:
    rng = np.random.default_rng()
    edges = fr_array([0, 1, 2, FR_MODULUS - 1, FR_MODULUS - 2, (1 << 128) - 1])
    scalars = np.concatenate([edges, random_elements(20, rng)])
    for group, name in ((1, "g1"), (2, "g2")):
        ours, theirs = _points(group, scalars)
        _compare_points(report, f"{name}_fixed_base", ours, theirs)
        n = len(theirs)
        left, right = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
        add = native.g1_add if group == 1 else native.g2_add
        sums = add(np.ascontiguousarray(ours[left]), np.ascontiguousarray(ours[right]))
        _compare_points(report, f"{name}_add", sums, [theirs[i] + theirs[j] for i, j in zip(left, right, strict=True)])
        neg = native.g1_neg if group == 1 else native.g2_neg
        _compare_points(report, f"{name}_neg", neg(ours), [-p for p in theirs])
        packed = (native.g1_compress if group == 1 else native.g2_compress)(ours)
        encoded = [bytes(point.to_compressed_bytes()) for point in theirs]
        wrong = next((k for k in range(n) if packed[k].tobytes() != encoded[k]), None)
        report.count(f"{name}_compress", n, None if wrong is None else f"point {wrong}")
        given = np.frombuffer(b"".join(encoded), np.uint8).reshape(n, -1)
        back = (native.g1_decompress if group == 1 else native.g2_decompress)(given)
        wrong = next((k for k in range(n) if not np.array_equal(back[k], ours[k])), None)
        report.count(f"{name}_decompress", n, None if wrong is None else f"point {wrong}")


def _compare_points(report: Report, name: str, ours: Limbs, theirs: list[Any]) -> None:
    wrong = next((k for k, point in enumerate(theirs) if not _same(ours[k : k + 1], point)), None)
    report.count(name, len(theirs), None if wrong is None else f"point {wrong}")


def _sums(report: Report) -> None:
    from py_arkworks_bls12381 import G1Point, G2Point, Scalar

    rng = np.random.default_rng()
    for group, name, n in ((1, "g1", 700), (2, "g2", 200)):
        points, theirs = _points(group, random_elements(n, rng))
        points[3], theirs[3] = points[2], theirs[2]
        points[4] = (native.g1_neg if group == 1 else native.g2_neg)(points[2:3])[0]
        theirs[4] = -theirs[2]
        points[5], theirs[5] = 0, (G1Point if group == 1 else G2Point).identity()
        scalars = random_elements(n, rng)
        scalars[: len(edge_values())] = fr_array(edge_values())
        ours = (native.msm_g1 if group == 1 else native.msm_g2)(points, scalars)
        kind: Any = G1Point if group == 1 else G2Point
        total = kind.multiexp_unchecked(theirs, [Scalar.from_le_bytes(v.to_bytes(32, "little")) for v in integers(scalars)])
        _compare_points(report, f"{name}_msm of {n}", ours, [total])


def _transforms(report: Report) -> None:
    rng = np.random.default_rng()
    for root in (5, 7):
        for log_n in (1, 4, 7):
            n, w = 1 << log_n, root_of_unity(log_n, root)
            values = random_elements(n, rng)
            std = list(integers(values))
            wanted = [sum(v * pow(w, i * j, FR_MODULUS) for j, v in enumerate(std)) % FR_MODULUS for i in range(n)]
            mont = native.fr_from_std(values)
            native.ntt(mont, root)
            report.count(f"ntt with the root of {root}", n, _difference(native.fr_to_std(mont), wanted, values))
            native.ntt(mont, root, inverse=True)
            report.count(f"inverse ntt with the root of {root}", n, _difference(native.fr_to_std(mont), std, values))
