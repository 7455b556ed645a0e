"""Witnesses of a template filled: the gadgets run on columns, one lane a copy of the body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from cuzk.circuits.algebra import Columns, bits_to_lanes
from cuzk.circuits.emitter import Bit, Emitter, Library, Place, Traced
from cuzk.errors import ProofInvalid
from cuzk.groth16.template.bits import BitWitness, FieldIndex
from cuzk.groth16.template.model import Part, Template
from cuzk.groth16.template.walker import TemplateWalker


def build_witness(
    template: Template, library: Library, prefix: Callable[[Emitter], Any], body: Callable[[Emitter, Any], None]
) -> BitWitness:
    """Runs `prefix(cs)` in one lane and `body(cs, prefix's result)` on columns, one lane a copy. `library` is the one that
    emitted the template; what prefix returns is made of dataclasses and sequences of bits and numbers."""
    lanes = template.copies
    cs = Emitter(library, rows=False, algebra=Columns(1))
    cs.sink = first = _Filler(template.prefix, 1, 0)
    shared = prefix(cs)
    first.fill(cs.aux_values)
    inputs, aux = cs.n_inputs, cs.n_aux
    second = _Filler(template.body, lanes, aux)
    cs.aux_values, cs.sink = [], second
    cs.algebra = Columns(lanes)
    cs.ones = cs.algebra.ones
    body(cs, in_all_lanes(shared, cs.ones))
    if (inputs, aux, cs.n_inputs - inputs, cs.n_aux - aux) != (
        template.prefix.inputs, template.prefix.aux, template.body.inputs, template.body.aux
    ):  # fmt: skip
        raise AssertionError("values and structure allocate different variables")
    public = np.stack([np.broadcast_to(v, (lanes, 4)) for v in cs.input_values])
    inputs_mont = np.concatenate([public[:inputs, 0], public[inputs:].transpose(1, 0, 2).reshape(-1, 4)])
    second.fill(cs.aux_values)
    return BitWitness(
        template, np.ascontiguousarray(inputs_mont),
        first.bits, first.fields, second.bits, second.fields,
    )  # fmt: skip


def in_all_lanes(shared: Any, ones: int) -> Any:
    """One lane's values as every lane sees them: bits become masks; (1, 4) field elements stand for all as they are."""
    if isinstance(shared, Bit):
        return Bit(shared.var, shared.neg, ones if shared.value else 0, shared.const)
    if is_dataclass(shared) and not isinstance(shared, type):
        return replace(shared, **{f.name: in_all_lanes(getattr(shared, f.name), ones) for f in fields(shared)})
    if isinstance(shared, (list, tuple)):
        return [in_all_lanes(x, ones) for x in shared]
    return shared


def require_satisfied(template: Template, witness: BitWitness, what: str) -> None:
    """Raises ProofInvalid that names the gadget of the first row that does not hold; `what` does not satisfy its circuit."""
    row = TemplateWalker(template).first_unsatisfied(witness)
    if row >= 0:
        raise ProofInvalid(f"{what} does not satisfy its circuit: row {row} fails, in {template.row_name(row)}")


class _Filler:
    """The values of one part, all lanes; what an emitter's traces go into. `base`: the emitter's variable that is the first."""

    def __init__(self, part: Part, lanes: int, base: int) -> None:
        self.part, self.lanes, self.base = part, lanes, base
        self.bits = np.zeros((lanes, (part.aux + 63) // 64), np.uint64)
        self.index = FieldIndex.of(part)
        self.fields = np.zeros((lanes, self.index.count, 4), np.uint64)

    def place(self, var: int, count: int) -> Place:
        at = var - self.base
        return Place(self.bits, self.fields, at, self.index.before(at), count)

    def fill(self, values: Sequence[Any]) -> None:
        """All values in the order of the aux variables, but for those that are here already."""
        at = 0
        positions: list[int] = []
        columns: list[int] = []
        for value in values:
            if isinstance(value, Traced):
                at += value.count
                continue
            if isinstance(value, int):
                positions.append(at)
                columns.append(value)
            else:
                self.fields[:, self.index.before(at)] = value
            at += 1
        if columns:
            self._set(np.array(positions, np.int64), bits_to_lanes(columns, self.lanes))

    def _set(self, positions: np.ndarray, values: np.ndarray) -> None:
        """Rising positions of bits; their values (lanes, n)."""
        shifted = values << (positions & 7).astype(np.uint8)
        at = positions >> 3
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        self.bits.view(np.uint8)[:, at[starts]] |= np.bitwise_or.reduceat(shifted, starts, axis=1)
