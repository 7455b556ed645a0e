"""A·w, B·w, C·w straight from a template: the matrices are never expanded, nor the bits of the witness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzk import native
from cuzk.groth16.field import FR_CAPACITY, FR_MODULUS, fr_ints
from cuzk.groth16.template.bits import BitWitness, FieldIndex
from cuzk.groth16.template.model import Part, Template

_CHECKED_ROWS = 1 << 17


class TemplateWalker:
    """Products of a template's matrices with witnesses; keeps what all witnesses share."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self._indices = (FieldIndex.of(template.prefix), FieldIndex.of(template.body))
        self._table = template.coefficients_mont, powers_of_two(template.coefficients_mont)

    def product(self, matrix: int, witness: BitWitness, out: np.ndarray | None = None, threads: int | None = None) -> np.ndarray:
        """(rows, 4) Montgomery: matrix 0 (A), 1 (B), 2 (C) times the witness, rows of the inputs included. `out` may be
        longer (a padded domain); what lies behind the rows is left alone."""
        t = self.template
        if out is None:
            out = np.empty((t.n_rows, 4), np.uint64)
        at = 0
        for view in self._views(witness):
            view.product(matrix, 0, view.part.rows, out[at : at + view.part.rows], threads)
            at += view.part.rows
        out[t.n_constraints : t.n_rows] = witness.inputs_mont if matrix == 0 else 0
        return out

    def first_unsatisfied(self, witness: BitWitness, threads: int | None = None) -> int:
        """The first row with a · b != c, or -1. Works in pieces: no vector of all rows is made."""
        at = 0
        a, b, c = (np.empty((_CHECKED_ROWS, 4), np.uint64) for _ in range(3))
        for view in self._views(witness):
            for first in range(0, view.part.rows, _CHECKED_ROWS):
                n = min(_CHECKED_ROWS, view.part.rows - first)
                for matrix, out in enumerate((a, b, c)):
                    view.product(matrix, first, first + n, out[:n], threads)
                row = native.first_unsatisfied(a[:n], b[:n], c[:n], threads)
                if row >= 0:
                    return at + first + row
            at += view.part.rows
        return -1

    def _views(self, witness: BitWitness) -> Iterator[_View]:
        """Prefix, then each copy of the body, with the values that its columns have there; a view lasts until the next."""
        t, table = self.template, self._table
        shared = _shared_values(witness)
        yield _View(t.prefix, self._indices[0], table, shared, witness.prefix_bits[0], witness.prefix_fields_mont[0])
        small = np.concatenate([shared, np.empty((t.body_aux_column - t.shared, 4), np.uint64)])
        for copy in range(t.copies):
            first = t.prefix.inputs + copy * t.body.inputs
            if t.choices is not None:
                small[t.shared : t.body_input_column] = shared[t.choices[copy]]
            small[t.body_input_column :] = witness.inputs_mont[first : first + t.body.inputs]
            yield _View(t.body, self._indices[1], table, small, witness.body_bits[copy], witness.body_fields_mont[copy])


@dataclass(frozen=True)
class _View:
    """One copy of a part."""

    part: Part
    index: FieldIndex
    table: tuple[np.ndarray, np.ndarray]
    """Coefficients, and which of them are powers of two."""
    small: np.ndarray
    """Values of the columns below the part's own aux variables (for the prefix: its aux variables too)."""
    bits: np.ndarray
    fields: np.ndarray

    def product(self, matrix: int, first: int, last: int, out: np.ndarray, threads: int | None) -> None:
        """Rows [first, last) of one matrix."""
        m = self.part.matrices[matrix]
        native.template_matvec(
            m.row_ptr[first : last + 1], m.col, m.coef_id, *self.table, self.small, self.bits, self.index.mask,
            self.index.rank, self.fields, out, threads,
        )  # fmt: skip


def _shared_values(witness: BitWitness) -> np.ndarray:
    """Values of the shared columns: the prefix's inputs, then its aux variables; Montgomery."""
    prefix = witness.template.prefix
    values = np.zeros((prefix.aux, 4), np.uint64)
    set_bits = np.unpackbits(witness.prefix_bits[0].view(np.uint8), count=prefix.aux, bitorder="little").astype(bool)
    values[set_bits] = witness.inputs_mont[0]
    values[prefix.field_aux] = witness.prefix_fields_mont[0]
    return np.concatenate([witness.inputs_mont[: prefix.inputs], values])


def powers_of_two(coefficients_mont: np.ndarray) -> np.ndarray:
    """Per coefficient: j + 1 where it is 2^j, -(j + 1) where it is -2^j, else 0. int16."""
    known = {(sign << j) % FR_MODULUS: sign * (j + 1) for j in range(FR_CAPACITY) for sign in (1, -1)}
    return np.array([known.get(v, 0) for v in fr_ints(native.fr_to_std(coefficients_mont))], np.int16)
