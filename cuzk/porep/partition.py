"""A partition's witness of a sector: the template and its library, emitted once for a size."""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.circuits.emitter import Library
from cuzk.circuits.porep.shape import Shape
from cuzk.circuits.porep.template import porep_template
from cuzk.circuits.porep.values import ChallengeValues, PrefixValues
from cuzk.circuits.porep.witness import porep_witness
from cuzk.circuits.witness import require_satisfied
from cuzk.groth16.template.bits import BitWitness
from cuzk.porep.opening import challenge_values, prefix_values
from cuzk.porep.sealing import Sealed
from cuzk.porep.synthetic import SyntheticSector


class PartitionMaker:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.library = Library()
        self.template = porep_template(shape, self.library)

    def witness(self, sector: Sealed | SyntheticSector, nodes: Sequence[int]) -> BitWitness:
        """The values of a partition that opens `nodes`. What does not fit fails its row, not this call."""
        return self.of_values(prefix_values(sector), challenge_values(sector, nodes))

    def of_values(self, prefix: PrefixValues, challenges: ChallengeValues) -> BitWitness:
        """The values of a partition from what its circuit is given."""
        return porep_witness(self.shape, self.template, self.library, prefix, challenges)

    def require_satisfied(self, witness: BitWitness) -> None:
        """Raises ProofInvalid that names the gadget of the first row that does not hold."""
        require_satisfied(self.template, witness, "the sector")
