"""SnapDeals: one vanilla proof a partition, the commitments of the request, and the keys of its circuits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuzk.circuits.porep.shape import SHAPES
from cuzk.circuits.update.shape import UpdateShape, update_shape
from cuzk.errors import InputError
from cuzk.service.keys import Loaded
from cuzk.service.request import ProofRequest
from cuzk.update.job import UpdateCircuit, UpdateJob
from cuzk.update.statement import COMMITMENTS, UpdateStatement
from cuzk.update.vanilla import UpdateVanilla


@dataclass(frozen=True)
class UpdateOfRequest:
    """An update whose vanilla proofs have passed all checks."""

    vanilla: UpdateVanilla

    @property
    def circuit_id(self) -> str:
        return self.vanilla.statement.shape.name

    @property
    def partitions(self) -> int:
        return self.vanilla.statement.shape.partitions

    def witness(self, partition: int, circuit: Any) -> Any:
        return UpdateJob(self.vanilla, circuit).witness(partition)

    def public_inputs(self, partition: int) -> list[int]:
        return self.vanilla.statement.public_inputs(partition)


def read_update(request: ProofRequest) -> UpdateOfRequest:
    """Raises InputError that names the item and the place in it. The sector's size is that of registered_proof (0 to 4)."""
    try:
        if not 0 <= request.registered_proof < len(SHAPES):
            raise InputError(f"registered_proof: 0 to {len(SHAPES) - 1}, not {request.registered_proof}")
        for name in COMMITMENTS:
            if len(getattr(request, name)) != 32:
                raise InputError(f"{name}: 32 bytes are needed")
        shape = update_shape(SHAPES[request.registered_proof].name)
        statement = UpdateStatement(shape, request.comm_r_old, request.comm_d_new, request.comm_r_new)
        vanilla = UpdateVanilla.of_bytes(request.vanilla, statement, "vanilla_proofs")
        vanilla.check()
    except InputError as error:
        raise InputError(f"SnapDeals parse failed: {error}") from error
    return UpdateOfRequest(vanilla)


def update_circuit(circuit_id: str) -> UpdateShape | None:
    """The shape of a circuit id such as `snap-32g`; None for another circuit."""
    names = (shape.name for shape in SHAPES if circuit_id == f"snap-{shape.name.lower().removesuffix('ib')}")
    return next((update_shape(name) for name in names), None)


def load_update(directory: str, circuit_id: str) -> Loaded | None:
    """The key of an update circuit from a folder of Filecoin's files; None for another circuit. Raises InputError."""
    from cuzk.porep.keys import load_circuit_key

    shape = update_circuit(circuit_id)
    if shape is None:
        return None
    circuit = UpdateCircuit(shape)
    return Loaded.of(circuit_id, load_circuit_key(directory, circuit.template, circuit.what), circuit)
