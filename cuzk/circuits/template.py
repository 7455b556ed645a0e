"""Templates emitted: the prefix and one copy of the body, with their columns in the template's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cuzk.circuits.emitter import Bit, Emitter, Library, Marks, MatrixRows
from cuzk.circuits.field import to_mont
from cuzk.groth16.template.model import Part, Template, TemplateMatrix

PARAMETER = 1 << 30
"""Variables from here on are parameters of the body: PARAMETER + p is the p-th."""


def parameter_bits(count: int, values: list[Any] | None = None) -> list[Bit]:
    """Bits of the prefix that each copy of the body chooses for itself."""
    return [Bit(PARAMETER + p, False, None if values is None else values[p]) for p in range(count)]


def build_template(
    name: str,
    copies: int,
    prefix: Callable[[Emitter], Any],
    body: Callable[[Emitter, Any], None],
    library: Library | None = None,
    *,
    inline: bool = False,
    choices: Callable[[Any], np.ndarray] | None = None,
    copy_name: str = "challenge",
) -> Template:
    """Emits `prefix(cs)`, then `body(cs, what prefix returned)` once, and keeps both as parts. `choices`: of what prefix
    returned, the aux variables (copies, parameters) that the parameters of each copy stand for."""
    cs = Emitter(library, inline=inline)
    shared = prefix(cs)
    inputs, aux = cs.n_inputs, cs.n_aux
    chosen = None if choices is None else (choices(shared) + inputs).astype(np.uint32)
    parameters = 0 if chosen is None else chosen.shape[1]
    first = _take_part(cs, inputs, aux, parameters, 0, 0)
    body(cs, shared)
    second = _take_part(cs, inputs, aux, parameters, inputs, aux)
    table = np.frombuffer(b"".join(to_mont(v).to_bytes(32, "little") for v in cs.library.coefficients.values), "<u8").reshape(
        -1, 4
    )
    return Template(first[0], second[0], copies, table, name, chosen, (first[1], second[1]), copy_name)


def _take_part(cs: Emitter, shared_inputs: int, shared_aux: int, parameters: int, inputs: int, aux: int) -> tuple[Part, Marks]:
    """Moves what the emitter recorded since `inputs`, `aux` into a part, and empties its rows."""

    def taken(m: MatrixRows) -> TemplateMatrix:
        lens, cols, ids = m.joined()
        m.chunks = []
        row_ptr = np.zeros(len(lens) + 1, np.uint32)
        np.cumsum(lens, out=row_ptr[1:])
        columns = _columns(cols, shared_inputs, shared_aux, parameters, cs.n_inputs)
        return TemplateMatrix(row_ptr, columns, ids)

    a, b, c = map(taken, cs.matrices)
    part = Part(cs.n_rows, cs.n_inputs - inputs, cs.n_aux - aux, (a, b, c), cs.field_mask())
    marks, cs.marks = cs.marks, Marks()
    cs.n_rows, cs.field_aux = 0, []
    return part, marks


def _columns(variables: np.ndarray, shared_inputs: int, shared_aux: int, parameters: int, n_inputs: int) -> np.ndarray:
    """The emitter's variables (aux i is i, input j is ~j) as template columns; in place where it can be."""
    columns = variables
    inputs, chosen = variables < 0, variables >= PARAMETER
    j, p = ~variables[inputs], variables[chosen] - PARAMETER
    columns += np.where(variables < shared_aux, shared_inputs, n_inputs + parameters).astype(np.int32)
    columns[inputs] = np.where(j < shared_inputs, j, j + shared_aux + parameters)
    columns[chosen] = p + shared_inputs + shared_aux
    return columns
