"""Columns of A, B, C evaluated at tau: for every wire Σ coefficient · ell_row(tau) over the rows that it occurs in.

Of a template nothing is expanded: each part's matrices are transposed once and multiplied, copy after copy, with the Lagrange
values of the copy's own rows. Memory: the three results, and of one copy the Lagrange values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuzk import native
from cuzk.groth16.constraints import ConstraintSystem
from cuzk.groth16.progress import Progress
from cuzk.groth16.template.model import Part, Template
from cuzk.groth16.template.system import System, TemplateSystem

LagrangeRows = Callable[[int, int], np.ndarray]
"""ell_k(tau) for k from first to last − 1; mont `(last − first, 4)`."""
SEGMENT = 1 << 12
"""Terms of a long column that one thread adds up."""
Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


def column_sums(system: System, lagrange: LagrangeRows, progress: Progress) -> Sums:
    """u, v, w: mont `(n_wires, 4)` each, of A, B, C. The system must have its input rows, and C."""
    if isinstance(system, TemplateSystem):
        return _of_template(system.template, lagrange, progress)
    return _of_rows(system, lagrange, progress)


def _of_rows(system: ConstraintSystem, lagrange: LagrangeRows, progress: Progress) -> Sums:
    rows = lagrange(0, max(system.a.rows, system.b.rows))
    sums = []
    for done, matrix in enumerate((system.a, system.b, system.c)):
        assert matrix is not None, "a setup needs the matrix C"
        by_wire = matrix.transposed(system.n_wires)
        sums.append(native.matvec_csr(by_wire.row_ptr, by_wire.col, by_wire.coef_id, system.table_mont, rows))
        progress("columns", done + 1, 3)
    u, v, w = sums
    return u, v, w


def _of_template(t: Template, lagrange: LagrangeRows, progress: Progress) -> Sums:
    sums = tuple(np.empty((t.n_inputs + t.n_aux, 4), np.uint64) for _ in range(3))
    table = t.coefficients_mont
    rows = lagrange(0, t.prefix.rows)
    shared = [_Transposed.of(t.prefix, m, t.shared).long_columns(t.shared, table, rows) for m in range(3)]
    parts = [_Transposed.of(t.body, m, t.body_aux_column + t.body.aux) for m in range(3)]
    for copy in range(t.copies):
        first_row = t.prefix.rows + copy * t.body.rows
        rows = lagrange(first_row, first_row + t.body.rows)
        first_input = t.prefix.inputs + copy * t.body.inputs
        first_aux = t.n_inputs + t.prefix.aux + copy * t.body.aux
        for part, total, out in zip(parts, shared, sums, strict=True):
            found = part.long_columns(t.body_input_column, table, rows)
            native.fr_add(total, np.ascontiguousarray(found[: t.shared]), out=total)
            if t.choices is not None:
                for column, extra in zip(t.choices[copy], found[t.shared :, None], strict=True):
                    total[column] = native.fr_add(total[column][None], extra)[0]
            part.columns(t.body_input_column, t.body_aux_column, table, rows, out[first_input : first_input + t.body.inputs])
            last = t.body_aux_column + t.body.aux
            part.columns(t.body_aux_column, last, table, rows, out[first_aux : first_aux + t.body.aux])
        progress("columns", copy + 1, t.copies)
    for total, out in zip(shared, sums, strict=True):
        out[: t.prefix.inputs] = total[: t.prefix.inputs]
        out[t.n_inputs : t.n_inputs + t.prefix.aux] = total[t.prefix.inputs :]
    own_rows = sums[0][: t.n_inputs]
    native.fr_add(own_rows, lagrange(t.n_constraints, t.n_rows), out=own_rows)
    u, v, w = sums
    return u, v, w


@dataclass(frozen=True)
class _Transposed:
    """A part's matrix by template column: `row` (u32) counts from the part's first row."""

    column_ptr: np.ndarray
    row: np.ndarray
    coef_id: np.ndarray

    @staticmethod
    def of(part: Part, matrix: int, columns: int) -> _Transposed:
        m = part.matrices[matrix]
        order = np.argsort(m.col, kind="stable")
        pointers = np.zeros(columns + 1, np.uint64)
        np.cumsum(np.bincount(m.col, minlength=columns), out=pointers[1:])
        row = np.repeat(np.arange(part.rows, dtype=np.uint32), np.diff(m.row_ptr))
        return _Transposed(pointers, row[order], m.coef_id[order])

    def columns(self, first: int, last: int, table: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
        """The sums of columns first … last − 1."""
        native.matvec_csr(self.column_ptr[first : last + 1], self.row, self.coef_id, table, rows, out=out)

    def long_columns(self, count: int, table: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The sums of the first `count` columns, which may have most of the terms: those of ONE alone are millions."""
        ends = self.column_ptr[: count + 1]
        cuts = np.unique(np.concatenate([ends, np.arange(0, ends[-1], SEGMENT, dtype=np.uint64)]))
        pieces = native.matvec_csr(cuts, self.row, self.coef_id, table, rows)
        numbers = np.arange(len(pieces), dtype=np.uint32)
        of_column = np.searchsorted(cuts, ends).astype(np.uint64)
        return native.matvec_csr(of_column, numbers, np.zeros(len(pieces), np.uint16), table, pieces)
