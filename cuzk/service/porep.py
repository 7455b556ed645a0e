"""PoRep: the C1 output of a request, checked before anything costly, and the keys of its circuits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuzk.circuits.porep.shape import SHAPES, Shape
from cuzk.errors import InputError
from cuzk.porep.c1 import C1, Limits, Owner, read
from cuzk.porep.job import AGGREGATION
from cuzk.porep.registered import Drawing
from cuzk.porep.sizes import circuit_name
from cuzk.service.keys import Loaded
from cuzk.service.request import ProofRequest


@dataclass(frozen=True)
class PorepStatement:
    """A sector's C1 output that has passed all checks."""

    c1: C1

    @property
    def circuit_id(self) -> str:
        return circuit_name(self.c1.shape)

    @property
    def partitions(self) -> int:
        return self.c1.partitions

    def witness(self, partition: int, circuit: Any) -> Any:
        from cuzk.porep.c1.opening import c1_witness

        return c1_witness(circuit, self.c1, partition)

    def public_inputs(self, partition: int) -> list[int]:
        return self.c1.public_inputs(partition)


def read_porep(request: ProofRequest) -> PorepStatement:
    """Raises InputError that names the place in the C1 output: its form, its commitments, challenges, paths, whose it is.

    Miner 0 is the chain's own actor and has no sectors: a request that leaves it out asks for the proof of the replica id in the
    file, whoever that belongs to.
    """
    if len(request.vanilla) != 1 or not request.vanilla[0]:
        raise InputError("C1 parse failed: vanilla_proof is empty; a PoRep request carries one C1 output in it")
    try:
        c1 = read(request.vanilla[0], Limits(), name="vanilla_proof")
        if c1.registered.drawing is Drawing.NON_INTERACTIVE:
            raise InputError(f"{c1.registered.name}: {AGGREGATION}")
        c1.check(Owner.of_miner(request.miner, request.sector_number) if request.miner else None)
    except InputError as error:
        raise InputError(f"C1 parse failed: {error}") from error
    return PorepStatement(c1)


def porep_shape(circuit_id: str) -> Shape | None:
    """The sector whose circuit it is; None for another circuit."""
    return next((shape for shape in SHAPES if circuit_name(shape) == circuit_id), None)


def load_porep(directory: str, circuit_id: str) -> Loaded | None:
    """The key of a PoRep circuit from a folder of Filecoin's files; None for another circuit. Raises InputError."""
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.proving import load_porep_key

    shape = porep_shape(circuit_id)
    if shape is None:
        return None
    maker = PartitionMaker(shape)
    return Loaded.of(circuit_id, load_porep_key(directory, maker), maker)
