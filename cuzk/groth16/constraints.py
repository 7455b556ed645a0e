"""Rank-1 constraint systems as sparse matrices: (A·w) ∘ (B·w) = C·w, row by row.

Coefficients are few and most are ±1, so a matrix holds a number for each (its *coefficient id*), and one table holds
the values. Ids 0 and 1 are always +1 and −1: the kernels add and subtract there instead of multiplying.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from cuzk.groth16.field import FR_MODULUS, FR_R, FR_R2, fr_array

FORM_SCALE = {"std": 1, "mont": FR_R, "mont2": FR_R2}
"""Forms of a coefficient in files: canonical (.r1cs), Montgomery (our own) and value·R² (.zkey)."""


@dataclass(frozen=True)
class SparseMatrix:
    """Compressed rows. Row k has the terms `row_ptr[k]:row_ptr[k+1]` of `col` (u32 wires) and `coef_id` (u32)."""

    row_ptr: np.ndarray
    col: np.ndarray
    coef_id: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.row_ptr) - 1

    @property
    def nonzeros(self) -> int:
        return len(self.col)

    def row_of_term(self) -> np.ndarray:
        """The row number of each term, u32."""
        return np.repeat(np.arange(self.rows, dtype=np.uint32), np.diff(self.row_ptr).astype(np.int64))

    def transposed(self, columns: int) -> SparseMatrix:
        """The same terms by column; `col` of the result holds rows of this one."""
        order = np.argsort(self.col, kind="stable")
        counts = np.bincount(self.col, minlength=columns)
        return SparseMatrix(_pointers(counts), self.row_of_term()[order], self.coef_id[order])

    def used_columns(self, columns: int) -> np.ndarray:
        """A bool for each of `columns` wires: whether it occurs in some term."""
        used = np.zeros(columns, dtype=bool)
        used[self.col] = True
        return used


def _pointers(counts: np.ndarray) -> np.ndarray:
    pointers = np.zeros(len(counts) + 1, dtype=np.uint64)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def matrix_from_rows(rows: int, row: np.ndarray, col: np.ndarray, coef_id: np.ndarray) -> SparseMatrix:
    """CSR from terms with their row numbers, in any order; terms of a row keep their order."""
    if len(row) and bool(np.any(row[1:] < row[:-1])):
        order = np.argsort(row, kind="stable")
        row, col, coef_id = row[order], col[order], coef_id[order]
    return SparseMatrix(_pointers(np.bincount(row, minlength=rows)), np.ascontiguousarray(col), coef_id)


class CoefficientTable:
    """Numbers coefficient values in order of first appearance; ids 0 and 1 are +1 and −1.

    Values are compared through a random 64-bit linear hash and then checked one by one, so an (adversarial) collision
    costs another pass and never a wrong id.
    """

    def __init__(self, form: str = "std") -> None:
        self.form = form
        scale = FORM_SCALE[form]
        self.values = fr_array([scale % FR_MODULUS, -scale % FR_MODULUS])
        self._rehash()

    @staticmethod
    def from_mont(values: np.ndarray) -> CoefficientTable:
        """A table that is read as a whole; `values[0]` and `values[1]` are +1 and −1."""
        table = CoefficientTable("mont")
        table.values = values
        table._rehash()
        return table

    def _rehash(self) -> None:
        self._salt = np.frombuffer(os.urandom(32), dtype=np.uint64) | np.uint64(1)
        hashes = self._hash(self.values)
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._ids = hashes[order], order.astype(np.uint32)

    def _hash(self, values: np.ndarray) -> np.ndarray:
        mixed = values ^ (values >> np.uint64(29))
        hashes: np.ndarray = (mixed * self._salt).sum(axis=1, dtype=np.uint64)
        return hashes

    def __len__(self) -> int:
        return len(self.values)

    def number(self, values: np.ndarray) -> np.ndarray:
        """The ids (u32) of `(n, 4)` values, adding those not seen before."""
        ids = np.zeros(len(values), dtype=np.uint32)
        rest = np.arange(len(values))
        for known in (0, 1):
            hit = (values[rest] == self.values[known]).all(axis=1)
            ids[rest[hit]] = known
            rest = rest[~hit]
        if len(rest):
            ids[rest] = self._number_rest(np.ascontiguousarray(values[rest]))
        return ids

    def _number_rest(self, values: np.ndarray) -> np.ndarray:
        while True:
            hashes, first, inverse = np.unique(self._hash(values), return_index=True, return_inverse=True)
            at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            known = self._hashes[at] == hashes
            ids = np.empty(len(hashes), dtype=np.uint32)
            ids[known] = self._ids[at[known]]
            new = np.flatnonzero(~known)
            new = new[np.argsort(first[new])]
            ids[new] = np.arange(len(self.values), len(self.values) + len(new), dtype=np.uint32)
            table = np.concatenate([self.values, values[first[new]]])
            result = ids[inverse]
            if (table[result] == values).all():
                self.values = table
                hashes = np.concatenate([self._hashes, hashes[new]])
                order = np.argsort(hashes, kind="stable")
                self._hashes = hashes[order]
                self._ids = np.concatenate([self._ids, ids[new]])[order]
                return result
            self._rehash()

    def mont(self) -> np.ndarray:
        """The table in Montgomery form, `(k, 4)`."""
        from cuzk import native

        if self.form == "mont":
            return self.values
        if self.form == "std":
            return native.fr_from_std(self.values)
        return native.fr_to_std(self.values)  # value·R² times R^-1


@dataclass
class ConstraintSystem:
    """A, B and (where the source has it) C over wires 0 … n_wires−1; wire 0 is the constant one, 1 … n_public are
    public.

    `a` and `b` have `n_constraints` rows, or more when `has_input_rows`: then the rows (wire i, 0, 0) of the inputs
    follow.
    """

    n_wires: int
    n_public: int
    n_constraints: int
    table: CoefficientTable
    a: SparseMatrix
    b: SparseMatrix
    c: SparseMatrix | None
    has_input_rows: bool = False
    _mont: np.ndarray | None = field(default=None, repr=False)

    @property
    def log_domain(self) -> int:
        """log2 of the FFT domain: the least power of two ≥ constraints + public + 1, at least 2."""
        return max(1, (self.n_constraints + self.n_public).bit_length())

    @property
    def rows(self) -> int:
        """Rows of A: those of the inputs included where they are there."""
        return self.a.rows

    @property
    def has_c(self) -> bool:
        return self.c is not None

    @property
    def nbytes(self) -> int:
        matrices = [m for m in (self.a, self.b, self.c) if m is not None]
        return sum(a.nbytes for m in matrices for a in (m.row_ptr, m.col, m.coef_id))

    def nonzeros(self) -> tuple[int, int, int]:
        """Nonzeros of A, B and C (0 where there is no C)."""
        return self.a.nonzeros, self.b.nonzeros, self.c.nonzeros if self.c is not None else 0

    def used_wires(self, matrix: int) -> np.ndarray:
        """The wires (u32, rising) in some row of A (0) or B (1)."""
        return np.flatnonzero((self.a, self.b)[matrix].used_columns(self.n_wires)).astype(np.uint32)

    def densities(self) -> tuple[int, int, int]:
        """Aux variables in A; inputs in B; aux variables in B."""
        a, b = (m.used_columns(self.n_wires) for m in (self.a, self.b))
        inputs = self.n_public + 1
        return int(a[inputs:].sum()), int(b[:inputs].sum()), int(b[inputs:].sum())

    def expanded(self) -> ConstraintSystem:
        """The system itself: its rows are there."""
        return self

    @property
    def table_mont(self) -> np.ndarray:
        if self._mont is None:
            self._mont = self.table.mont()
        return self._mont

    def with_input_rows(self) -> ConstraintSystem:
        """The system with a row A = wire i for ONE and every public wire behind the constraints (as bellman and snarkjs
        do).
        """
        if self.has_input_rows:
            return self
        inputs = np.arange(self.n_public + 1, dtype=np.uint32)
        last = self.a.row_ptr[-1]
        a = SparseMatrix(
            np.concatenate([self.a.row_ptr, last + 1 + inputs.astype(np.uint64)]),
            np.concatenate([self.a.col, inputs]),
            np.concatenate([self.a.coef_id, np.zeros_like(inputs)]),
        )
        return ConstraintSystem(
            self.n_wires,
            self.n_public,
            self.n_constraints,
            self.table,
            a,
            self.b,
            self.c,
            has_input_rows=True,
            _mont=self._mont,
        )

    def merged(self) -> ConstraintSystem:
        """The system with repeated wires of a row added up and terms that sum to zero dropped.

        Densities of bellman keys count syntax in the prover and values in the setup; after this the two agree.
        """
        matrices = [None if m is None else _merge(m, self) for m in (self.a, self.b, self.c)]
        a, b, c = matrices
        assert a is not None and b is not None
        if a is self.a and b is self.b and c is self.c:
            return self
        return ConstraintSystem(self.n_wires, self.n_public, self.n_constraints, self.table, a, b, c, self.has_input_rows)


def _merge(matrix: SparseMatrix, system: ConstraintSystem) -> SparseMatrix:
    """Merge repeated wires of each row of one matrix; new sums enter the table of the system."""
    table = system.table
    zero_ids = np.flatnonzero(~table.values.any(axis=1))
    row = matrix.row_of_term()
    order = np.lexsort((matrix.col, row))
    same = np.zeros(len(order), dtype=bool)
    same[1:] = (row[order][1:] == row[order][:-1]) & (matrix.col[order][1:] == matrix.col[order][:-1])
    has_zero = bool(len(zero_ids)) and bool(np.isin(matrix.coef_id, zero_ids).any())
    if not same.any() and not has_zero:
        return matrix
    starts = np.flatnonzero(~same)
    heads = order[starts]
    coef_id = matrix.coef_id[heads].copy()
    keep = ~np.isin(coef_id, zero_ids)
    lengths = np.diff(np.append(starts, len(order)))
    repeated = np.flatnonzero(lengths > 1)
    totals = []
    for group in repeated:
        ids = matrix.coef_id[order[starts[group] : starts[group] + lengths[group]]]
        totals.append(sum(int.from_bytes(table.values[i].tobytes(), "little") for i in ids) % FR_MODULUS)
    if totals:
        keep[repeated] = np.array(totals, dtype=object) != 0
        coef_id[repeated] = table.number(fr_array(totals))
    # Surviving terms stand where the first of their wire stood.
    place = np.argsort(heads[keep], kind="stable")
    chosen = heads[keep][place]
    return matrix_from_rows(matrix.rows, row[chosen], matrix.col[chosen], coef_id[keep][place])
