"""The template of a partition of SnapDeals, whose copies choose their challenge's bits among the prefix's, and its witness."""

from __future__ import annotations

import numpy as np

from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.template import build_template, parameter_bits
from cuzk.circuits.update.circuit import (
    ChallengeValues,
    Prefix,
    PrefixValues,
    blank_challenge,
    blank_prefix,
    emit_challenge,
    emit_prefix,
)
from cuzk.circuits.update.shape import UpdateShape
from cuzk.circuits.witness import build_witness
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Template


def update_template(shape: UpdateShape, library: Library | None = None) -> Template:
    """Emits the prefix and one challenge."""

    def body(cs: Emitter, prefix: Prefix) -> None:
        emit_challenge(cs, shape, prefix, parameter_bits(shape.challenge_bits), blank_challenge(shape))

    def choices(prefix: Prefix) -> np.ndarray:
        return np.array([[b.var for b in drawn] for drawn in prefix.challenge_bits])

    return build_template(
        shape.name, shape.challenges, lambda cs: emit_prefix(cs, shape, blank_prefix(shape)), body, library, choices=choices
    )


def update_witness(
    shape: UpdateShape, template: Template, library: Library, prefix: PrefixValues, challenges: ChallengeValues
) -> BitWitness:
    """Values: the prefix's (1, 4) Montgomery, a challenge's (challenges, 4). The challenges' positions follow from comm_r_new
    and the partition; a value that does not fit gives a witness that fails its row, not an error."""

    def body(cs: Emitter, shared: Prefix) -> None:
        drawn = [sum((1 if b.value else 0) << i for i, b in enumerate(bits)) for bits in zip(*shared.challenge_bits, strict=True)]
        emit_challenge(cs, shape, shared, parameter_bits(shape.challenge_bits, drawn), challenges)

    return build_witness(template, library, lambda cs: emit_prefix(cs, shape, prefix), body)
