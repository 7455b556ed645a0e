"""An update to be proved: the circuit, emitted once for a sector size, and the vanilla proofs of a statement."""

from __future__ import annotations

from cuzk.circuits.emitter import Library
from cuzk.circuits.sizes import CircuitSizes, NamedSizes
from cuzk.circuits.update.shape import UpdateShape
from cuzk.circuits.update.template import update_template, update_witness
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Template
from cuzk.porep.published import key_stem
from cuzk.update.synthetic import synthetic_vanilla
from cuzk.update.vanilla import UpdateVanilla


class UpdateCircuit:
    """The template of a shape and the library that emitted it."""

    def __init__(self, shape: UpdateShape) -> None:
        self.shape = shape
        self.library = Library()
        self.template: Template = update_template(shape, self.library)

    @property
    def what(self) -> str:
        """The circuit's name in messages."""
        return f"the {self.shape.size} SnapDeals circuit"


class UpdateJob:
    """A vanilla proof with its circuit; see cuzk.vanilla.proving.Job."""

    def __init__(self, vanilla: UpdateVanilla, circuit: UpdateCircuit | None = None) -> None:
        self.vanilla = vanilla
        self.circuit = circuit or UpdateCircuit(vanilla.statement.shape)

    @property
    def what(self) -> str:
        return self.circuit.what

    @property
    def published(self) -> str:
        return f"{key_stem(self.circuit.shape)}.params"

    @property
    def template(self) -> Template:
        return self.circuit.template

    @property
    def partitions(self) -> int:
        return self.circuit.shape.partitions

    def witness(self, partition: int) -> BitWitness:
        """The values of a partition. What does not fit fails its row, not this call: `vanilla.check()` comes first."""
        vanilla = self.vanilla
        return update_witness(
            self.circuit.shape,
            self.template,
            self.circuit.library,
            vanilla.prefix(partition),
            vanilla.challenge_values(partition),
        )

    def public_inputs(self, partition: int) -> list[int]:
        return self.vanilla.statement.public_inputs(partition)


def update_sizes(shape: UpdateShape) -> NamedSizes:
    """The counts, with the share of ones in a partition that satisfies the circuit."""
    job = UpdateJob(synthetic_vanilla(shape))
    sizes = CircuitSizes(job.template, job.witness(0).ones_share())
    facts = {"sector_bytes": shape.sector_bytes, "challenges": shape.challenges, "apex_leaves": shape.apex_leaves}
    what = f"One partition of a SnapDeals proof (empty sector update) of a {shape.size} sector"
    return NamedSizes(sizes, shape.name, what, shape.partitions, "the prefix's and one challenge's", facts)
