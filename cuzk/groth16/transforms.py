"""Changing the form of a key's H points and absorbing C into L: Fourier transforms over group elements.

m is the domain, w its generator, v = sqrt(w), D = diag(v^i); NTT(X)_i = Σ_j w^(ij)·X_j over points. All follow from
the exact identities of prover/quotient.py, for keys whose secrets nobody knows:

- odd H_j to monomials:       h_i = −2·v^i·NTT(H)_i,   i ≤ m − 2
- monomials to odd:           H = −1/2·NTT^-1(D^-1·h),  with infinity for the absent h_(m−1): h has degree ≤ m − 2
- what row k of C adds:       T = NTT^-1(D·NTT(H)),     T_k = Σ_j ell_k(odd_j)·H_j; from monomials T = −1/2·NTT^-1(h)
- what wire i of C adds:      Q_i = Σ_k C_ki·T_k
"""

from __future__ import annotations

import os

import numpy as np

from cuzk import native
from cuzk.errors import InputError
from cuzk.groth16.combine import combine
from cuzk.groth16.constraints import ConstraintSystem
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, root_of_unity
from cuzk.groth16.own_thread import in_own_thread
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.prover import quotient

CHUNK = 1 << 14
MINUS_HALF = (FR_MODULUS - 1) // 2
MINUS_TWO = FR_MODULUS - 2


class FormsDisagree(InputError):
    """A converted form is not that of the key it was made from: some of the key's points are wrong."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the converted {what} points do not agree with those of the key, so some of its points are wrong "
            "(cuzk inspect --deep names them); nothing was written"
        )


def _scaled(points: np.ndarray, base: int, scale: int, what: str, progress: Progress) -> np.ndarray:
    """[scale·base^i · P_i]."""
    result = np.empty_like(points)
    mont_base = fr_array([base * FR_R % FR_MODULUS])
    for first in range(0, len(points), CHUNK):
        count = min(CHUNK, len(points) - first)
        start = scale * pow(base, first, FR_MODULUS) * FR_R % FR_MODULUS
        factors = native.fr_to_std(native.fr_powers_mont(mont_base, count, fr_array([start])))
        result[first : first + count] = native.scale_g1(np.ascontiguousarray(points[first : first + count]), factors)
        progress(what, first + count, len(points))
    return result


def _transform(points: np.ndarray, root: int, inverse: bool, progress: Progress) -> np.ndarray:
    what = f"transforming {len(points)} points"
    progress(what, 0, 1)
    points = np.array(points, dtype=np.uint64, order="C")
    in_own_thread(native.group_ntt_g1, points, root, inverse)
    progress(what, 1, 1)
    return points


def _padded(h_monomial: np.ndarray) -> np.ndarray:
    """The m − 1 monomial points and infinity."""
    return np.concatenate([h_monomial, np.zeros((1, 12), dtype=np.uint64)])


def monomial_from_odd(h_odd: np.ndarray, root: int, progress: Progress = silent) -> np.ndarray:
    """`(m, 12)` odd Lagrange points to `(m − 1, 12)` monomials."""
    v = root_of_unity(len(h_odd).bit_length(), root)
    transformed = _transform(h_odd, root, inverse=False, progress=progress)
    return _scaled(transformed[:-1], v, MINUS_TWO, "H as monomials", progress)


def odd_from_monomial(h_monomial: np.ndarray, root: int, progress: Progress = silent) -> np.ndarray:
    """`(m − 1, 12)` monomials to `(m, 12)` odd Lagrange points."""
    padded = _padded(h_monomial)
    v = root_of_unity(len(padded).bit_length(), root)
    scaled = _scaled(padded, pow(v, -1, FR_MODULUS), MINUS_HALF, "H on the odd coset", progress)
    return _transform(scaled, root, inverse=True, progress=progress)


def row_points_from_odd(h_odd: np.ndarray, root: int, progress: Progress = silent) -> np.ndarray:
    """T, one point a row of the domain, from odd Lagrange points."""
    v = root_of_unity(len(h_odd).bit_length(), root)
    scaled = _scaled(_transform(h_odd, root, inverse=False, progress=progress), v, 1, "C in the domain", progress)
    return _transform(scaled, root, inverse=True, progress=progress)


def row_points_from_monomial(h_monomial: np.ndarray, root: int, progress: Progress = silent) -> np.ndarray:
    """T from monomials."""
    scaled = _scaled(_padded(h_monomial), 1, MINUS_HALF, "C in the domain", progress)
    return _transform(scaled, root, inverse=True, progress=progress)


def wire_points(system: ConstraintSystem, row_points: np.ndarray) -> np.ndarray:
    """Q, one point a wire: the columns of C over the row points."""
    assert system.c is not None
    by_wire = system.c.transposed(system.n_wires)
    return in_own_thread(combine, by_wire, system.table_mont, row_points, 0, system.n_wires)


def absorb(l_points: np.ndarray, q_points: np.ndarray) -> np.ndarray:
    """L − Q for the private wires behind −Q for the public ones, `(n_wires, 12)`."""
    result = native.g1_neg(q_points)
    first = len(q_points) - len(l_points)
    result[first:] = native.g1_add(result[first:], np.ascontiguousarray(l_points))
    return result


def _random_scalars(n: int) -> np.ndarray:
    scalars = np.frombuffer(os.urandom(32 * n), dtype=np.uint64).reshape(n, 4).copy()
    scalars[:, 3] >>= np.uint64(2)  # below 2^254 < r
    return scalars


def check_forms_agree(h_odd: np.ndarray, h_monomial: np.ndarray, root: int) -> None:
    """Compare both forms of H on a random h of degree ≤ m − 2. Raises InputError if they differ."""
    m = len(h_odd)
    h_std = _random_scalars(m - 1)
    want = native.msm_g1(np.ascontiguousarray(h_monomial), h_std)
    values = np.zeros((m, 4), dtype=np.uint64)
    values[: m - 1] = native.fr_from_std(h_std)
    v = root_of_unity(m.bit_length(), root)
    native.ntt(values, root, coset=fr_array([v * FR_R % FR_MODULUS]))
    native.fr_mul(values, fr_array([MINUS_TWO * FR_R % FR_MODULUS]), out=values)
    found = native.msm_g1(np.ascontiguousarray(h_odd), native.fr_to_std(values, out=values))
    if not np.array_equal(want, found):
        raise FormsDisagree("H")


def check_absorbed(system: ConstraintSystem, h_odd: np.ndarray, l_points: np.ndarray, l_c_free: np.ndarray, root: int) -> None:
    """Compare Σ C(odd_j)·H_j with Σ w_i·Q_i for a random w. Raises InputError if they differ."""
    assert system.c is not None
    w_std = _random_scalars(system.n_wires)
    c = np.zeros((len(h_odd), 4), dtype=np.uint64)
    rows = native.matvec_csr(system.c.row_ptr, system.c.col, system.c.coef_id, system.table_mont, native.fr_from_std(w_std))
    c[: len(rows)] = rows
    quotient.to_coset(c, root, root_of_unity(len(h_odd).bit_length(), root), None)
    c_sum = native.msm_g1(np.ascontiguousarray(h_odd), native.fr_to_std(c, out=c))
    first = system.n_wires - len(l_points)
    l_sum = native.msm_g1(np.ascontiguousarray(l_points), np.ascontiguousarray(w_std[first:]))
    absorbed = native.msm_g1(np.ascontiguousarray(l_c_free), w_std)
    if not np.array_equal(native.g1_add(absorbed, c_sum), l_sum):
        raise FormsDisagree("L")
