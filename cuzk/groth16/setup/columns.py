"""The scalars of a key: each list of points is a list of these times the generator.

u_i, v_i, w_i are the columns of A, B, C interpolated on the domain <w> of size m and evaluated at tau (mont
`(n_wires, 4)`):

    A_i = u_i    B_i = v_i    L_i = (beta·u_i + alpha·v_i + w_i)/delta   (public wires: IC_i, /gamma)
    H_i = tau^i·Z(tau)/delta                      monomial, i < m − 1, Z = X^m − 1
    H_j = ell_{2j+1}(tau)/delta                   odd Lagrange, ell on the 2m-th roots of unity
    Q_i = w_i·(1 − tau^m)/(2·delta)               what C contributes to Σ_j C(odd_j)·H_j: C_i(tau) less its even half,
                                                  which is C_i(tau)·(tau^m + 1)/2
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.groth16.constraints import SparseMatrix
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, root_of_unity
from cuzk.groth16.setup.secrets import Secrets
from cuzk.groth16.template.system import System


def mont(value: int) -> np.ndarray:
    """One scalar as `(1, 4)` mont."""
    return fr_array([value % FR_MODULUS * FR_R % FR_MODULUS])


def inverse(value: int) -> int:
    return pow(value, -1, FR_MODULUS)


def lagrange_at(tau: int, start: int, step: int, n: int, order: int) -> np.ndarray:
    """[ell_k(tau)] for the points x_k = start·step^k, k < n, among the roots of X^order − 1; mont `(n, 4)`.

    ell_k(tau) = (tau^order − 1)/order · x_k/(tau − x_k). tau must not be one of the roots.
    """
    x = native.fr_powers_mont(mont(step), n, mont(start))
    below = native.fr_sub(x, mont(tau))
    scale = -(pow(tau, order, FR_MODULUS) - 1) * inverse(order)
    ell = native.fr_mul(x, native.fr_inv(below, out=below), out=x)
    return native.fr_mul(ell, mont(scale), out=ell)


class Columns:
    """All scalar lists of one circuit's key, canonical unless said otherwise."""

    def __init__(self, system: System, secrets: Secrets, root: int) -> None:
        self.system, self.secrets, self.root = system.with_input_rows(), secrets, root
        self.log_domain = system.log_domain
        self.m = 1 << self.log_domain
        self.tau_m = pow(secrets.tau, self.m, FR_MODULUS)
        if pow(self.tau_m, 2, FR_MODULUS) == 1:
            raise ValueError("tau is a root of unity of the domain")
        rows = lagrange_at(secrets.tau, 1, root_of_unity(self.log_domain, root), self.m, self.m)
        csr = self.system.expanded()
        self.u = self._column_sums(csr.a, rows)
        self.v = self._column_sums(csr.b, rows)
        assert csr.c is not None, "a setup needs the matrix C"
        self.w = self._column_sums(csr.c, rows)

    def _column_sums(self, matrix: SparseMatrix, rows: np.ndarray) -> np.ndarray:
        by_wire = matrix.transposed(self.system.n_wires)
        return native.matvec_csr(by_wire.row_ptr, by_wire.col, by_wire.coef_id, self.system.expanded().table_mont, rows)

    def a(self) -> np.ndarray:
        return native.fr_to_std(self.u)

    def b(self) -> np.ndarray:
        return native.fr_to_std(self.v)

    def _mixed(self, wires: slice) -> np.ndarray:
        """beta·u + alpha·v + w, mont."""
        total = native.fr_mul(self.u[wires], mont(self.secrets.beta))
        total = native.fr_add(total, native.fr_mul(self.v[wires], mont(self.secrets.alpha)), out=total)
        return native.fr_add(total, self.w[wires], out=total)

    def ic(self) -> np.ndarray:
        total = self._mixed(slice(0, self.system.n_public + 1))
        return native.fr_to_std(native.fr_mul(total, mont(inverse(self.secrets.gamma)), out=total), out=total)

    def _l_mont(self) -> np.ndarray:
        total = self._mixed(slice(self.system.n_public + 1, None))
        return native.fr_mul(total, mont(inverse(self.secrets.delta)), out=total)

    def l_odd(self) -> np.ndarray:
        """L of the private wires."""
        return native.fr_to_std(self._l_mont())

    def l_c_free(self) -> np.ndarray:
        """L − Q of the private wires behind −Q of the public ones."""
        factor = (self.tau_m - 1) * inverse(2 * self.secrets.delta)
        total = native.fr_mul(self.w, mont(factor))
        first = self.system.n_public + 1
        total[first:] = native.fr_add(total[first:], self._l_mont())
        return native.fr_to_std(total, out=total)

    def h_odd(self) -> np.ndarray:
        v = root_of_unity(self.log_domain + 1, self.root)
        ell = lagrange_at(self.secrets.tau, v, v * v % FR_MODULUS, self.m, 2 * self.m)
        return native.fr_to_std(native.fr_mul(ell, mont(inverse(self.secrets.delta)), out=ell), out=ell)

    def h_monomial(self) -> np.ndarray:
        z = (self.tau_m - 1) * inverse(self.secrets.delta)
        powers = native.fr_powers_mont(mont(self.secrets.tau), self.m - 1, mont(z))
        return native.fr_to_std(powers, out=powers)
