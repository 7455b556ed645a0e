"""A partition of PoSt: sectors of the same form, without a prefix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.gadgets.number import equal, inputize
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.merkle import PathValues, blank_path, poseidon_inclusion
from cuzk.circuits.post.shape import PostShape
from cuzk.circuits.template import build_template
from cuzk.circuits.witness import build_witness
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Template


@dataclass(frozen=True)
class SectorValues:
    """Values of any algebra, or None while only structure is emitted."""

    comm_r_last: Any
    comm_c: Any
    comm_r: Any
    openings: Sequence[tuple[Any, PathValues]]
    """The leaf of tree R of each challenge and its path."""


def blank_sector(shape: PostShape) -> SectorValues:
    """The shape of a sector without values."""
    return SectorValues(None, None, None, [(None, blank_path(shape.path))] * shape.challenges)


def emit_sector(cs: Emitter, v: SectorValues) -> None:
    """Inputs: comm_r, then the position of each challenge."""
    with cs.scope("comm_r"):
        comm_r_last = cs.num(v.comm_r_last)
        comm_c = cs.num(v.comm_c)
        comm_r = cs.num(v.comm_r)
        inputize(cs, comm_r)
        equal(cs, comm_r, poseidon(cs, [comm_c, comm_r_last]))
    for i, (leaf, path) in enumerate(v.openings):
        with cs.scope(f"challenge {i}"):
            poseidon_inclusion(cs, cs.num(leaf), path, comm_r_last)


def emit_partition(cs: Emitter, shape: PostShape, sectors: Sequence[SectorValues] | None = None) -> None:
    """A whole partition, without the rows of the inputs that the proof system appends."""
    for i, values in enumerate(sectors or [blank_sector(shape)] * shape.sectors):
        with cs.scope(f"sector {i}"):
            emit_sector(cs, values)


def post_template(shape: PostShape, library: Library | None = None) -> Template:
    """One sector, as often as the circuit has it."""

    def body(cs: Emitter, _: object) -> None:
        emit_sector(cs, blank_sector(shape))

    return build_template(shape.name, shape.sectors, lambda cs: None, body, library, copy_name="sector")


def post_witness(template: Template, library: Library, sectors: SectorValues) -> BitWitness:
    """Values: field elements (sectors, 4) Montgomery, bits one integer whose k-th bit is sector k's. A value that does not
    fit gives a witness that fails its row, not an error."""
    return build_witness(template, library, lambda cs: None, lambda cs, _: emit_sector(cs, sectors))
