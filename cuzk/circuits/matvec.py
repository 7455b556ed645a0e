"""A·w, B·w, C·w straight from a template: the matrices are never expanded, nor the bits of the witness."""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.circuits.template import Part, Template
from cuzk.circuits.witness import BitWitness, FieldIndex


class TemplateWalker:
    """Products of a template's matrices with witnesses; keeps what all witnesses share."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self._indices = (FieldIndex.of(template.prefix), FieldIndex.of(template.body))

    def product(
        self, matrix: int, witness: BitWitness, out: np.ndarray | None = None, threads: int | None = None
    ) -> np.ndarray:
        """(rows, 4) Montgomery: matrix 0 (A), 1 (B), 2 (C) times the witness, rows of the inputs included. `out` may be
        longer (a padded domain); what lies behind the rows is left alone."""
        t = self.template
        if out is None:
            out = np.empty((t.n_rows, 4), np.uint64)
        shared = _shared_values(witness, self._indices[0])
        self._part(t.prefix, self._indices[0], matrix, shared, witness.prefix_bits[0],
                   witness.prefix_fields_mont[0], out[: t.prefix.rows], threads)  # fmt: skip
        for copy in range(t.copies):
            first = t.prefix.inputs + copy * t.body.inputs
            small = np.concatenate([shared, witness.inputs_mont[first : first + t.body.inputs]])
            at = t.prefix.rows + copy * t.body.rows
            self._part(t.body, self._indices[1], matrix, small, witness.body_bits[copy],
                       witness.body_fields_mont[copy], out[at : at + t.body.rows], threads)  # fmt: skip
        out[t.n_constraints : t.n_rows] = witness.inputs_mont if matrix == 0 else 0
        return out

    def _part(
        self, part: Part, index: FieldIndex, matrix: int, small: np.ndarray, bits: np.ndarray, fields: np.ndarray,
        out: np.ndarray, threads: int | None,
    ) -> None:  # fmt: skip
        m = part.matrices[matrix]
        native.template_matvec(
            m.row_ptr, m.col, m.coef_id, self.template.coefficients_mont, small, bits, index.mask, index.rank, fields, out,
            threads,
        )  # fmt: skip

    def first_unsatisfied(self, witness: BitWitness) -> int:
        """The first row with a · b != c, or -1. Takes 96 bytes a row."""
        n = self.template.n_constraints
        a, b, c = (self.product(m, witness)[:n] for m in range(3))
        return native.first_unsatisfied(a, b, c)


def _shared_values(witness: BitWitness, index: FieldIndex) -> np.ndarray:
    """Values of the shared columns: the prefix's inputs, then its aux variables; Montgomery."""
    prefix = witness.template.prefix
    values = np.zeros((prefix.aux, 4), np.uint64)
    one = witness.inputs_mont[0]
    set_bits = np.unpackbits(witness.prefix_bits[0].view(np.uint8), count=prefix.aux, bitorder="little").astype(bool)
    values[set_bits] = one
    values[prefix.field_aux] = witness.prefix_fields_mont[0]
    return np.concatenate([witness.inputs_mont[: prefix.inputs], values])
