"""Templates emitted: the prefix and one copy of the body, with their columns in the template's order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cuzk.circuits.emitter import Emitter, Library, Marks
from cuzk.circuits.field import to_mont
from cuzk.groth16.template.model import Part, Template, TemplateMatrix


def build_template(
    name: str,
    copies: int,
    prefix: Callable[[Emitter], object],
    body: Callable[[Emitter, object], None],
    library: Library | None = None,
    *,
    inline: bool = False,
) -> Template:
    """Emits `prefix(cs)`, then `body(cs, what prefix returned)` once, and keeps both as parts."""
    cs = Emitter(library, inline=inline)
    shared = prefix(cs)
    inputs, aux = cs.n_inputs, cs.n_aux
    first = _take_part(cs, inputs, aux, 0, 0)
    body(cs, shared)
    second = _take_part(cs, inputs, aux, inputs, aux)
    table = np.frombuffer(b"".join(to_mont(v).to_bytes(32, "little") for v in cs.library.coefficients.values), "<u8").reshape(
        -1, 4
    )
    return Template(first[0], second[0], copies, table, name, (first[1], second[1]))


def _take_part(cs: Emitter, shared_inputs: int, shared_aux: int, inputs: int, aux: int) -> tuple[Part, Marks]:
    """Moves what the emitter recorded since `inputs`, `aux` into a part, and empties its rows."""
    matrices = []
    for m in cs.matrices:
        lens, cols, ids = m.joined()
        m.chunks = []
        row_ptr = np.zeros(len(lens) + 1, np.uint32)
        np.cumsum(lens, out=row_ptr[1:])
        matrices.append(TemplateMatrix(row_ptr, _columns(cols, shared_inputs, shared_aux, cs.n_inputs), ids))
    part = Part(cs.n_rows, cs.n_inputs - inputs, cs.n_aux - aux, tuple(matrices), cs.field_mask())
    marks, cs.marks = cs.marks, Marks()
    cs.n_rows, cs.field_aux = 0, []
    return part, marks


def _columns(variables: np.ndarray, shared_inputs: int, shared_aux: int, n_inputs: int) -> np.ndarray:
    """The emitter's variables (aux i is i, input j is ~j) as template columns; in place where it can be."""
    columns = variables
    inputs = variables < 0
    j = ~variables[inputs]
    columns += np.where(variables < shared_aux, shared_inputs, n_inputs).astype(np.int32)
    columns[inputs] = np.where(j < shared_inputs, j, j + shared_aux)
    return columns
