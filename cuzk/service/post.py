"""WinningPoSt and WindowPoSt: one vanilla proof a sector, the randomness of the request, and the keys of their circuits."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from cuzk.circuits.porep.shape import SHAPES
from cuzk.circuits.post.shape import PostShape, post_shape
from cuzk.errors import InputError
from cuzk.post.job import PostCircuit, PostJob
from cuzk.post.registered import RegisteredPost
from cuzk.post.statement import PostSector, PostStatement
from cuzk.post.vanilla import PostVanilla
from cuzk.service.keys import Loaded
from cuzk.service.request import ProofRequest

HEAD = struct.Struct("<Q32s")
"""The head of an item: the sector's number and its comm_r."""
NAMES = {"winning": "winning", "window": "wpost"}
"""Kind -> its name in circuit ids, as the daemon has them: `winning-32g`, `wpost-32g`."""


@dataclass(frozen=True)
class PostOfRequest:
    """The sectors of a PoSt that have passed all checks."""

    vanilla: PostVanilla

    @property
    def circuit_id(self) -> str:
        shape = self.vanilla.statement.shape
        return f"{NAMES[shape.kind]}-{shape.size.lower().removesuffix('ib')}"

    @property
    def partitions(self) -> int:
        return self.vanilla.statement.partitions

    def witness(self, partition: int, circuit: Any) -> Any:
        return PostJob(self.vanilla, circuit).witness(partition)

    def public_inputs(self, partition: int) -> list[int]:
        return self.vanilla.statement.public_inputs(partition)


def read_post(request: ProofRequest) -> PostOfRequest:
    """Raises InputError that names the item and the place in it."""
    kind = {3: "window", 4: "winning"}[request.kind]
    what = f"{kind.capitalize()}PoSt parse failed"
    try:
        registered = RegisteredPost(request.registered_proof)
        if registered.shape.kind != kind:
            raise InputError(f"registered_proof {request.registered_proof} is {registered.name}, no {kind.capitalize()}PoSt")
        if len(request.randomness) != 32:
            raise InputError("randomness: 32 bytes are needed")
        if not request.vanilla:
            raise InputError("vanilla_proofs: there are none")
        short = next((n for n, item in enumerate(request.vanilla) if len(item) < HEAD.size), None)
        if short is not None:
            raise InputError(f"vanilla_proofs[{short}]: {len(request.vanilla[short])} bytes are no vanilla proof")
        items = sorted(request.vanilla, key=lambda item: int(HEAD.unpack_from(item)[0]))
        sectors = tuple(PostSector(*HEAD.unpack_from(item)) for item in items)
        statement = PostStatement(registered, request.randomness, sectors, request.partition_index)
        vanilla = PostVanilla.of_bytes(items, statement, "vanilla_proofs")
        vanilla.check()
    except InputError as error:
        raise InputError(f"{what}: {error}") from error
    return PostOfRequest(vanilla)


def post_circuit(circuit_id: str) -> PostShape | None:
    """The shape of a circuit id; None for another circuit."""
    for kind, name in NAMES.items():
        for size in SHAPES:
            if circuit_id == f"{name}-{size.name.lower().removesuffix('ib')}":
                return post_shape(kind, size.name)
    return None


def load_post(directory: str, circuit_id: str) -> Loaded | None:
    """The key of a PoSt circuit from a folder of Filecoin's files; None for another circuit. Raises InputError."""
    from cuzk.porep.keys import load_circuit_key

    shape = post_circuit(circuit_id)
    if shape is None:
        return None
    circuit = PostCircuit(shape)
    return Loaded.of(circuit_id, load_circuit_key(directory, circuit.template, circuit.what), circuit)
