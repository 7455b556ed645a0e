"""Three ways to the same sum Σ (A·B − C)(tau)/delta, with A, B, C interpolated from the rows (a, b, c) on the domain
<w>, |w| = m.

P = A·B − C vanishes on the domain, so P = h·Z with Z = X^m − 1. Write v for a square root of w: on the odd coset
v·<w>, Z = −2.

- bellman: evaluate on a coset g·<w>, divide by Z there (a constant), go back to the coefficients of h:
  the scalars of tau^i·Z(tau)/delta. Seven transforms.
- odd-coset: P has degree ≤ 2m − 2 and is zero at the even points of <v>, so it is fixed by the odd ones:
  P(tau) = Σ_j P(v·w^j)·L_{2j+1}(tau) with the Lagrange polynomials of <v>. Six transforms, and no division.
- c-free: P ↦ Σ_j P(v·w^j)·H_j is linear, and C = Σ_i w_i·C_i is linear in the witness, so
  Σ_j C(v·w^j)·H_j = Σ_i w_i·Q_i with points Q_i of the key. The key's L points take Q in (L_i − Q_i), and only A·B is
  left to transform. Four transforms, and no c. For a satisfied circuit the sum is the same group element.

All functions work in place on mont vectors of the domain's length and return canonical scalars.
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, root_of_unity

COSET_GENERATOR = 7
"""Generates the multiplicative group, hence lies in no domain; bellman's choice."""
TRANSFORMS = {"bellman": 7, "odd-coset": 6, "c-free": 4}
NEEDS_C = {"bellman": True, "odd-coset": True, "c-free": False}


def _mont(value: int) -> np.ndarray:
    return fr_array([value * FR_R % FR_MODULUS])


def to_coset(vector: np.ndarray, root: int, shift: int, threads: int | None) -> None:
    """Values on <w> to values on shift·<w>."""
    native.ntt(vector, root, inverse=True, threads=threads)
    native.ntt(vector, root, coset=_mont(shift), threads=threads)


def bellman(a: np.ndarray, b: np.ndarray, c: np.ndarray, root: int, threads: int | None = None) -> np.ndarray:
    """The m − 1 coefficients of h."""
    m = len(a)
    for vector in (a, b, c):
        to_coset(vector, root, COSET_GENERATOR, threads)
    _product_minus(a, b, c, threads)
    z_inverse = pow(pow(COSET_GENERATOR, m, FR_MODULUS) - 1, -1, FR_MODULUS)
    native.fr_mul(a, _mont(z_inverse), out=a, threads=threads)
    native.ntt(a, root, inverse=True, coset=_mont(COSET_GENERATOR), threads=threads)
    return native.fr_to_std(a, out=a, threads=threads)[: m - 1]


def odd_coset(a: np.ndarray, b: np.ndarray, c: np.ndarray, root: int, threads: int | None = None) -> np.ndarray:
    """The m values of A·B − C on the odd coset."""
    shift = root_of_unity(len(a).bit_length(), root)
    for vector in (a, b, c):
        to_coset(vector, root, shift, threads)
    _product_minus(a, b, c, threads)
    return native.fr_to_std(a, out=a, threads=threads)


def c_free(a: np.ndarray, b: np.ndarray, root: int, threads: int | None = None) -> np.ndarray:
    """The m values of A·B on the odd coset."""
    shift = root_of_unity(len(a).bit_length(), root)
    for vector in (a, b):
        to_coset(vector, root, shift, threads)
    native.fr_mul(a, b, out=a, threads=threads)
    return native.fr_to_std(a, out=a, threads=threads)


def _product_minus(a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: int | None) -> None:
    """a ← a∘b − c."""
    native.fr_mul(a, b, out=a, threads=threads)
    native.fr_sub(a, c, out=a, threads=threads)
