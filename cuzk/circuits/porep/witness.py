"""The witness of a partition, all challenges at once: one lane a challenge."""

from __future__ import annotations

from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.porep.circuit import Prefix, emit_challenge, emit_prefix
from cuzk.circuits.porep.shape import Shape
from cuzk.circuits.porep.values import ChallengeValues, PrefixValues
from cuzk.circuits.witness import build_witness
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Template


def porep_witness(
    shape: Shape, template: Template, library: Library, prefix: PrefixValues, challenges: ChallengeValues
) -> BitWitness:
    """Values: field elements (challenges, 4) Montgomery, bits one integer whose k-th bit is challenge k's. The public
    inputs follow from them; a value that does not fit gives a witness that fails its row, not an error."""

    def body(cs: Emitter, shared: object) -> None:
        assert isinstance(shared, Prefix)
        emit_challenge(cs, shape, shared, challenges)

    return build_witness(template, library, lambda cs: emit_prefix(cs, prefix), body)
