"""Rows of the matrices times a witness, whichever form either has: CSR or template, field elements or bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuzk import native
from cuzk.errors import ProofInvalid
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.system import System, TemplateSystem

Witness = np.ndarray | BitWitness
"""All wires: `(n_wires, 4)` canonical, or bits with the field elements apart."""


def multiplier(system: System, witness: Witness, threads: int | None) -> Callable[[int], np.ndarray]:
    """A function that gives the rows of A (0), B (1) or C (2) times the witness, mont. What does not go with the matrices as
    it is (bits with CSR, field elements with a template) is converted here once. Raises ProofInvalid as BitWitness.of_std.
    """
    if isinstance(system, TemplateSystem):
        bits = witness if isinstance(witness, BitWitness) else BitWitness.of_std(system.template, witness)
        return lambda matrix: system.walker.product(matrix, bits, threads=threads)
    values = witness.expand_std() if isinstance(witness, BitWitness) else witness
    w = native.fr_from_std(values, threads=threads)

    def rows(number: int) -> np.ndarray:
        matrix = (system.a, system.b, system.c)[number]
        assert matrix is not None, "asked for C, which this system lacks"
        return native.matvec_csr(matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont, w, threads=threads)

    return rows


def first_unsatisfied(a: np.ndarray, b: np.ndarray, c: np.ndarray, threads: int | None = None) -> int:
    """The first row with a·b ≠ c, or -1; rows behind the end of b and c are zero."""
    rows = min(len(a), len(b), len(c))
    return native.first_unsatisfied(a[:rows], b[:rows], c[:rows], threads)


def require_satisfied(system: System, witness: Witness, threads: int | None) -> None:
    """Raises ProofInvalid naming the first constraint that does not hold. The system must have C."""
    if isinstance(system, TemplateSystem) and isinstance(witness, BitWitness):
        row = system.walker.first_unsatisfied(witness, threads)  # without vectors of all rows
    else:
        product = multiplier(system, witness, threads)
        row = first_unsatisfied(product(0), product(1), product(2), threads)
    if row >= 0:
        raise unsatisfied(system, row)


def unsatisfied(system: System, row: int) -> ProofInvalid:
    """The error for a row that does not hold."""
    return ProofInvalid(f"the witness does not satisfy constraint {row} (counted from 0) of {system.n_constraints}")
