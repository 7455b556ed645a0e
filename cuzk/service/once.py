"""One sector's proof by the service's prover, without a service: partitions side by side through the pipeline of this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuzk.errors import CuzkError, DeviceLost, ProofInvalid, describe
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.verify import Verifier, require_valid
from cuzk.porep.c1 import C1
from cuzk.porep.job import ATTEMPTS, PartitionFailed, SectorProof
from cuzk.porep.partition import PartitionMaker
from cuzk.service.config import GIB, Settings
from cuzk.service.keys import KeyStore, Loaded
from cuzk.service.porep import PorepStatement
from cuzk.service.prover import Made, Prover, Task

MARGIN_BYTES = GIB
"""RAM that stays free, at least."""


def local_prover(circuit_id: str, key: ProvingKey, maker: PartitionMaker, device: str, threads: int | None = None) -> Prover:
    """A prover of this machine for one key that is open: `cpu` or `cuda`. Raises InputError, HardwareMissing."""
    from cuzk.service.pipeline import PipelineProver
    from cuzk.service.standard import host_scenario

    extra: dict[str, Any] = {}
    if device == "cuda":
        from cuzk.exec.cuda import CudaProver

        extra["make_device"] = CudaProver
    loaded = Loaded.of(circuit_id, key, maker)
    scenario = host_scenario(Settings(margin_bytes=MARGIN_BYTES, threads=threads), device)
    return PipelineProver(KeyStore(lambda _: loaded), scenario, threads=threads, **extra)


def prove_sector(c1: C1, prover: Prover, key: ProvingKey, *, attempts: int = ATTEMPTS,
                 progress: Callable[[str], None] = lambda _: None) -> SectorProof:  # fmt: skip
    """The proofs of a checked C1 output. What a run did not make, because a partition did not verify or a device was lost, the
    next one makes; the other partitions are kept. Raises PartitionFailed after so many runs."""
    statement = PorepStatement(c1)
    made: dict[int, Made] = {}
    tries = dict.fromkeys(range(c1.partitions), 0)

    def take(one: Made) -> None:
        made[one.partition] = one
        progress(f"partition {one.partition} verified, {len(made)} of {c1.partitions}")

    failure: CuzkError | None = None
    for attempt in range(attempts):
        numbers = [number for number in tries if number not in made]
        if not numbers:
            break
        if attempt:
            progress(f"again: partitions {', '.join(map(str, numbers))} ({failure})")
        for number in numbers:
            tries[number] += 1
        try:
            prover.prove(Task(c1.source, statement, numbers, take))
        except (ProofInvalid, DeviceLost) as error:
            failure = error
    left = [number for number in tries if number not in made]
    if left:
        raise PartitionFailed(left[0], c1.partitions, tries[left[0]], describe(failure) if failure else "it was not made")
    proofs = [Proof.from_bytes(made[number].proof) for number in sorted(made)]
    publics = [c1.public_inputs(number) for number in sorted(made)]
    require_valid(Verifier(key.verifying_key(), f"the verifying key in {key.path}"), proofs, publics)
    times = [{"synthesis": made[n].synth_s, "gpu": made[n].gpu_s} for n in sorted(made)]
    return SectorProof(c1, proofs, publics, key.require_quotient(None), list(tries.values()), times)
