"""Setup and proofs of a sector's circuit with the project's own prover."""

from __future__ import annotations

from os import PathLike

from cuzk.circuits.porep.shape import Shape
from cuzk.errors import InputError
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.progress import Progress as Report
from cuzk.groth16.progress import silent
from cuzk.groth16.prover.run import Proved, prove
from cuzk.groth16.verify import Verifier
from cuzk.porep import keys
from cuzk.porep.opening import sector_challenges
from cuzk.porep.parameters import PUBLISHED
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.registered import partitions_of, registered_id
from cuzk.porep.sealing import Progress, Sealed


def require_small(shape: Shape) -> None:
    if shape.layers > 2:
        raise InputError(
            f"{shape.name}: too large to be sealed here, or its 130 million rows expanded; this is for 2KiB, 8MiB and 512MiB "
            "sectors (a synthetic witness and a key of the template are made at any size)"
        )


def circuit_text(maker: PartitionMaker) -> str:
    """The circuit's name in messages."""
    return f"the {maker.shape.name} PoRep circuit"


def find_params(folder: str | PathLike[str], maker: PartitionMaker) -> str:
    """The .params in a folder of Filecoin's key files that has the counts of the sector's circuit. A .vk of the same name
    must be the head of it. Raises InputError that says what is there."""
    return keys.find_params(folder, maker.template, circuit_text(maker))


def load_porep_key(path: str | PathLike[str], maker: PartitionMaker, progress: Report = silent) -> ProvingKey:
    """A key for a sector's circuit; see `cuzk.porep.keys.load_circuit_key`."""
    one = PUBLISHED.get(maker.shape.name)
    return keys.load_circuit_key(path, maker.template, circuit_text(maker), one.name() if one else None, progress)


def prove_sector(
    sealed: Sealed, key: ProvingKey, maker: PartitionMaker, seed: bytes, threads: int | None = None,
    quotient: str | None = None, progress: Progress = lambda _: None,
) -> list[Proved]:  # fmt: skip
    """One verified proof for each partition. Raises ProofInvalid that names the gadget where the sector does not satisfy
    the circuit, before anything costly."""
    verifier = Verifier(key.verifying_key(), f"the verifying key in {key.path}")
    made = []
    for partition in range(partitions_of(maker.shape, registered_id(sealed.ids.porep_id).drawing)):
        progress(f"witness of partition {partition}")
        nodes = sector_challenges(sealed, seed, partition)
        witness = maker.witness(sealed, nodes)
        maker.require_satisfied(witness)
        progress(f"proof of partition {partition}")
        made.append(prove(key, witness, quotient, None, threads, verifier))
    return made
