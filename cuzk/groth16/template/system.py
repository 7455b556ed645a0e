"""A template as the constraint system of a key: what setup and prover ask of a system, without expanding a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cuzk import native
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix
from cuzk.groth16.template.model import Template
from cuzk.groth16.template.walker import TemplateWalker


@dataclass(frozen=True)
class TemplateSystem:
    """Has the rows of the inputs, all three matrices, and no wire twice in a row. Its arrays are `template`'s."""

    template: Template

    @property
    def n_wires(self) -> int:
        return self.template.n_wires

    @property
    def n_public(self) -> int:
        return self.template.n_inputs - 1

    @property
    def n_constraints(self) -> int:
        return self.template.n_constraints

    @property
    def rows(self) -> int:
        """Those of the inputs included."""
        return self.template.n_rows

    @property
    def log_domain(self) -> int:
        return max(1, self.template.log2_domain)

    @property
    def has_c(self) -> bool:
        return True

    @property
    def nbytes(self) -> int:
        return self.template.nbytes

    def nonzeros(self) -> tuple[int, int, int]:
        """Nonzeros of A (rows of the inputs included), B, C."""
        return self.template.nonzeros()

    def used_wires(self, matrix: int) -> np.ndarray:
        """The wires (u32, rising) in some row of A (0) or B (1)."""
        return self.template.used_wires(matrix)

    def densities(self) -> tuple[int, int, int]:
        """Aux variables in A; inputs in B; aux variables in B."""
        return self.template.densities()

    @cached_property
    def walker(self) -> TemplateWalker:
        return TemplateWalker(self.template)

    def with_input_rows(self) -> TemplateSystem:
        return self

    def merged(self) -> TemplateSystem:
        return self

    def expanded(self) -> ConstraintSystem:
        """All rows: 8 bytes a nonzero, 8 a row of each matrix."""
        t = self.template
        table = CoefficientTable("std")
        numbers = table.number(native.fr_to_std(t.coefficients_mont))
        matrices = []
        for i in range(3):
            row_ptr, col, coef_id = t.expand(i)
            if i:  # B and C have no rows for the inputs
                row_ptr = row_ptr[: t.n_constraints + 1]
            matrices.append(SparseMatrix(row_ptr, col, numbers[coef_id]))
        a, b, c = matrices
        return ConstraintSystem(self.n_wires, self.n_public, self.n_constraints, table, a, b, c, True)


System = ConstraintSystem | TemplateSystem
"""The form that a key can hold."""
