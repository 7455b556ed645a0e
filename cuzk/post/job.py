"""A PoSt to be proved: the circuit, emitted once for a kind and size, and the vanilla proofs of a statement."""

from __future__ import annotations

from dataclasses import replace

from cuzk.circuits.emitter import Library
from cuzk.circuits.post.circuit import post_template, post_witness
from cuzk.circuits.post.shape import WINNING_CHALLENGES, PostShape
from cuzk.circuits.sizes import CircuitSizes, NamedSizes
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Template
from cuzk.porep.published import key_stem
from cuzk.post.registered import registered_post
from cuzk.post.synthetic import synthetic_vanilla
from cuzk.post.vanilla import PostVanilla


class PostCircuit:
    """The template of a shape and the library that emitted it."""

    def __init__(self, shape: PostShape) -> None:
        self.shape = shape
        self.library = Library()
        self.template: Template = post_template(shape, self.library)

    @property
    def what(self) -> str:
        """The circuit's name in messages."""
        return f"the {self.shape.size} {self.shape.kind.capitalize()}PoSt circuit"


class PostJob:
    """A vanilla proof with its circuit; see cuzk.vanilla.proving.Job."""

    def __init__(self, vanilla: PostVanilla, circuit: PostCircuit | None = None) -> None:
        self.vanilla = vanilla
        self.circuit = circuit or PostCircuit(vanilla.statement.shape)

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
        return self.vanilla.statement.partitions

    def witness(self, partition: int) -> BitWitness:
        """The values of a partition. What does not fit fails its row, not this call: `vanilla.check()` comes first."""
        return post_witness(self.template, self.circuit.library, self.vanilla.partition(partition))

    def public_inputs(self, partition: int) -> list[int]:
        return self.vanilla.statement.public_inputs(partition)


def post_sizes(shape: PostShape) -> NamedSizes:
    """The counts, with the share of ones in a few sectors that satisfy the circuit: all sectors are alike."""
    places = min(shape.sectors, WINNING_CHALLENGES)
    few = PostCircuit(replace(shape, sectors=places))
    vanilla = synthetic_vanilla(registered_post(shape.kind, shape.size), bytes(32), min(places, shape.real_sectors))
    witness = post_witness(few.template, few.library, vanilla.partition(0, places))
    sizes = CircuitSizes(PostCircuit(shape).template, witness.ones_share())
    of = "One partition of a WindowPoSt" if shape.kind == "window" else "A WinningPoSt"
    facts = {"sector_bytes": shape.sector_bytes, "sectors": shape.sectors, "challenges": shape.challenges}
    return NamedSizes(sizes, shape.name, f"{of} over {shape.size} sectors", 1, "one sector's", facts)
