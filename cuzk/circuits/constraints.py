"""A template as the constraint system of the proof system, with its rows of the inputs."""

from __future__ import annotations

from cuzk import native
from cuzk.circuits.template import Template
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix


def template_system(template: Template) -> ConstraintSystem:
    """All rows expanded: 8 bytes a nonzero, 8 a row of each matrix. No row repeats a wire."""
    table = CoefficientTable("std")
    numbers = table.number(native.fr_to_std(template.coefficients_mont))
    matrices = []
    for i in range(3):
        row_ptr, col, coef_id = template.expand(i)
        if i:  # B and C have no rows for the inputs
            row_ptr = row_ptr[: template.n_constraints + 1]
        matrices.append(SparseMatrix(row_ptr, col, numbers[coef_id]))
    a, b, c = matrices
    return ConstraintSystem(
        template.n_inputs + template.n_aux, template.n_inputs - 1, template.n_constraints, table, a, b, c, True
    )
