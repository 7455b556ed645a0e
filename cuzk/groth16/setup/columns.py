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
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, root_of_unity
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.setup.secrets import Secrets
from cuzk.groth16.setup.sums import column_sums
from cuzk.groth16.template.system import System

ALL = slice(None)


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


def _std_of(column: np.ndarray, wires: slice | np.ndarray) -> np.ndarray:
    if isinstance(wires, slice):
        return native.fr_to_std(column[wires])
    taken = native.fr_take(column, wires)
    return native.fr_to_std(taken, out=taken)


class Columns:
    """All scalar lists of one circuit's key, canonical unless said otherwise; those of points in any piece of a list."""

    def __init__(self, system: System, secrets: Secrets, root: int, progress: Progress = silent) -> None:
        self.system, self.secrets, self.root = system.with_input_rows(), secrets, root
        self.log_domain = system.log_domain
        self.m = 1 << self.log_domain
        self.tau_m = pow(secrets.tau, self.m, FR_MODULUS)
        if pow(self.tau_m, 2, FR_MODULUS) == 1:
            raise ValueError("tau is a root of unity of the domain")
        self.u, self.v, self.w = column_sums(self.system, self._lagrange, progress)
        self.first_private = system.n_public + 1

    def _lagrange(self, first: int, last: int) -> np.ndarray:
        step = root_of_unity(self.log_domain, self.root)
        return lagrange_at(self.secrets.tau, pow(step, first, FR_MODULUS), step, last - first, self.m)

    def a(self, wires: slice | np.ndarray = ALL) -> np.ndarray:
        """The values of a range of wires, or of those in an array (u32)."""
        return _std_of(self.u, wires)

    def b(self, wires: slice | np.ndarray = ALL) -> np.ndarray:
        """The same for B."""
        return _std_of(self.v, wires)

    def _combined(self, wires: slice, *factors: int) -> np.ndarray:
        """Σ factor·list over u, v, w; canonical."""
        lists = [column[wires] for column in (self.u, self.v, self.w)]
        total = native.fr_mul(lists[0], mont(factors[0]))
        for column, factor in zip(lists[1:], factors[1:], strict=True):
            total = native.fr_add(total, native.fr_mul(column, mont(factor)), out=total)
        return native.fr_to_std(total, out=total)

    def ic(self) -> np.ndarray:
        s, by_gamma = self.secrets, inverse(self.secrets.gamma)
        return self._combined(slice(0, self.first_private), s.beta * by_gamma, s.alpha * by_gamma, by_gamma)

    def l_odd(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """L of the private wires."""
        s, by_delta = self.secrets, inverse(self.secrets.delta)
        last = len(self.u) - self.first_private if last is None else last
        wires = slice(self.first_private + first, self.first_private + last)
        return self._combined(wires, s.beta * by_delta, s.alpha * by_delta, by_delta)

    def l_c_free(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """L − Q of the private wires behind −Q of the public ones."""
        s, by_delta = self.secrets, inverse(self.secrets.delta)
        minus_q = (self.tau_m - 1) * inverse(2 * s.delta)
        last = len(self.u) if last is None else last
        middle = min(max(first, self.first_private), last)
        public = native.fr_to_std(native.fr_mul(self.w[first:middle], mont(minus_q)))
        private = self._combined(slice(middle, last), s.beta * by_delta, s.alpha * by_delta, by_delta + minus_q)
        return np.concatenate([public, private]) if len(public) else private

    def h_odd(self, first: int = 0, last: int | None = None) -> np.ndarray:
        v = root_of_unity(self.log_domain + 1, self.root)
        step, count = v * v % FR_MODULUS, (self.m if last is None else last) - first
        start = v * pow(step, first, FR_MODULUS) % FR_MODULUS
        ell = lagrange_at(self.secrets.tau, start, step, count, 2 * self.m)
        return native.fr_to_std(native.fr_mul(ell, mont(inverse(self.secrets.delta)), out=ell), out=ell)

    def h_monomial(self, first: int = 0, last: int | None = None) -> np.ndarray:
        z = (self.tau_m - 1) * inverse(self.secrets.delta) * pow(self.secrets.tau, first, FR_MODULUS)
        powers = native.fr_powers_mont(mont(self.secrets.tau), (self.m - 1 if last is None else last) - first, mont(z))
        return native.fr_to_std(powers, out=powers)
