"""One proving key, whatever file it came from.

What differs between the worlds is data here: the root of unity (5 in snarkjs's keys, 7 in bellman's), the form of the
H points (odd Lagrange points, monomials), whether L absorbs C (c-free), and whether the lists keep points at infinity
(snarkjs) or leave them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cuzk import native
from cuzk.errors import FormatError, InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.vk import Place, VerifyingKey
from cuzk.groth16.template.system import System

QUOTIENTS = ("c-free", "odd-coset", "bellman")
"""Ways to get Σ (A·B − C) from the key, best first: 4, 6 and 7 transforms."""

PLACES = {"alpha_g1": "alpha", "beta_g2": "beta", "gamma_g2": "gamma", "delta_g2": "delta"}
"""The verifying key's names of its points."""


@dataclass
class Query:
    """A list of key points that is multiplied by witness values.

    `points` is `(n, 12)` or `(n, 24)` mont. Row k belongs to wire `wires[k]`, or to wire `first + k` where `wires` is
    None. `infinities` says whether rows may be the point at infinity.
    """

    points: np.ndarray
    wires: np.ndarray | None = None
    first: int = 0
    infinities: bool = False

    def __len__(self) -> int:
        return len(self.points)

    def rows_of(self, wires: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of those among the rising `wires` that have one here, and which of `wires` they are."""
        if self.wires is None:
            begin, end = np.searchsorted(wires, [self.first, self.first + len(self)])
            return wires[begin:end] - self.first, np.arange(begin, end)
        rows = np.searchsorted(self.wires, wires.astype(self.wires.dtype))
        found = np.flatnonzero(self.wires[np.minimum(rows, len(self) - 1)] == wires) if len(self) else np.arange(0)
        return rows[found], found

    def wires_of(self, rows: np.ndarray) -> np.ndarray:
        """The wires of some rows."""
        return rows + self.first if self.wires is None else self.wires[rows]

    @cached_property
    def finite(self) -> np.ndarray | None:
        """A bitmap (bit k % 8 of byte k // 8) of the rows that are not infinity, or None when none is. Reads the whole list
        once.
        """
        if not self.infinities:
            return None
        finite = native.nonzero_rows(self.points)
        return None if int(np.bitwise_count(finite).sum(dtype=np.int64)) == len(self) else finite

    def finite_rows(self) -> np.ndarray:
        """The rows that are not infinity, rising."""
        if self.finite is None:
            return np.arange(len(self))
        return np.flatnonzero(np.unpackbits(self.finite, count=len(self), bitorder="little"))


@dataclass
class ProvingKey:
    """Everything a proof needs of its key. Points are mont: G1 `(1, 12)`, G2 `(1, 24)`."""

    path: Path
    kind: str
    root: int
    log_domain: int
    n_wires: int
    n_public: int
    alpha_g1: np.ndarray
    beta_g1: np.ndarray
    beta_g2: np.ndarray
    gamma_g2: np.ndarray
    delta_g1: np.ndarray
    delta_g2: np.ndarray
    ic: np.ndarray
    a_query: Query
    b_g1_query: Query
    b_g2_query: Query
    l_query: Query | None
    l_c_free_query: Query | None
    h_odd: np.ndarray | None
    h_monomial: np.ndarray | None
    read_system: Callable[[], System] = field(repr=False)
    development: bool = False
    place: Callable[[str], Place] | None = field(default=None, repr=False)
    """The place of an element, as VerifyingKey.place gives it."""

    @property
    def domain(self) -> int:
        return 1 << self.log_domain

    @cached_property
    def system(self) -> System:
        """The matrices, with input rows."""
        return self.read_system()

    @property
    def quotients(self) -> tuple[str, ...]:
        """The quotients that this key can serve, best first."""
        possible = {
            "c-free": self.h_odd is not None and self.l_c_free_query is not None,
            "odd-coset": self.h_odd is not None and self.l_query is not None,
            "bellman": self.h_monomial is not None and self.l_query is not None,
        }
        return tuple(name for name in QUOTIENTS if possible[name])

    def require_quotient(self, quotient: str | None) -> str:
        """The quotient to use; None picks the best. Raises InputError, naming the way out, if the key cannot serve it."""
        if quotient is None:
            return self.quotients[0]
        if quotient not in QUOTIENTS:
            raise InputError(f"unknown quotient {quotient!r}; there are {', '.join(QUOTIENTS)}")
        if quotient not in self.quotients:
            has = "c-free needs H on the odd coset and L with C absorbed"
            has = {"odd-coset": "odd-coset needs H on the odd coset", "bellman": "bellman needs H as monomials"}.get(
                quotient, has
            )
            raise InputError(
                f"{self.path}: this {self.kind} key serves {' and '.join(self.quotients)}; {has}. "
                f"Convert it once: cuzk key optimise {self.path} --r1cs R1CS --quotients {quotient} -o OUT.ckey"
            )
        return quotient

    def _be(self, element: str, mont: np.ndarray) -> bytes:
        try:
            return point_bytes.from_mont(mont)
        except point_bytes.PointError as error:
            message = f"{element} of the verifying key: {error}"
            if self.place is None:
                raise FormatError(self.path, message) from error
            path, section, offset = self.place(element)
            raise FormatError(path, message, section=section, offset=offset) from error

    def query(self, name: str, quotient: str) -> Query:
        """The list of a sum (l, a, b_g1, b_g2); with the c-free quotient, l is the list that has C absorbed."""
        found = self.l_c_free_query if name == "l" and quotient == "c-free" else getattr(self, f"{name}_query")
        assert found is not None  # require_quotient has seen to it
        return found

    def h_points(self, quotient: str) -> np.ndarray:
        """The H list that goes with a quotient's scalars."""
        found = self.h_monomial if quotient == "bellman" else self.h_odd
        assert found is not None  # require_quotient has seen to it
        return found

    def verifying_key(self, with_ic: bool = True) -> VerifyingKey:
        """The key's public half; without IC it takes the same time for any number of public signals."""
        names = ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2", "beta_g1", "delta_g1")
        fixed = {name: self._be(PLACES.get(name, name), getattr(self, name)) for name in names}
        ic = tuple(self._be(f"IC[{i}]", self.ic[i : i + 1]) for i in range(len(self.ic) if with_ic else 0))
        return VerifyingKey(ic=ic, development=self.development, place=self.place, **fixed)
