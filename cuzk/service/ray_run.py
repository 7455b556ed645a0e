"""`cuzk run --ray ADDRESS`: the proofs of a scenario on the hosts of a Ray cluster.

Every host opens the key and the witnesses under the same paths and runs the scenario's pipeline on its own devices; the hosts
share the partitions of each proof.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuzk.errors import CuzkError, InputError, describe
from cuzk.exec.proofs import write_proof
from cuzk.exec.run import Proving
from cuzk.groth16.formats.proof import Proof
from cuzk.model.scenario import Scenario
from cuzk.service.keys import KeyStore, Loaded
from cuzk.service.kinds import Statement
from cuzk.service.prover import Made, Slot, Task
from cuzk.service.ray_pool import RayPool

if TYPE_CHECKING:
    from cuzk.service.pipeline import PipelineProver

SCHEMA_VERSION = 1
CIRCUIT = "the key's circuit"


@dataclass(frozen=True)
class WitnessFiles:
    """One proof of a run: partition p has witness p modulo their number."""

    paths: tuple[str, ...]
    partitions: int
    circuit_id: str = CIRCUIT

    def witness(self, partition: int, circuit: Any) -> Any:
        return circuit.witnesses[partition % len(self.paths)]

    def public_inputs(self, partition: int) -> list[int]:
        """Raises InputError: a run's public inputs are its witnesses' own."""
        raise InputError("the public inputs of a run are those of its witnesses")


@dataclass(frozen=True)
class _Opened:
    witnesses: list[Any]


@dataclass(frozen=True)
class HostOfRun:
    """A host of a run."""

    scenario: Scenario
    proving: Proving
    device: str

    def prover(self) -> PipelineProver:
        from cuzk.groth16.load import load_key, open_witness
        from cuzk.service.pipeline import PipelineProver
        from cuzk.service.porep import load_porep

        make: dict[str, Any] = {}
        if self.device == "cuda":
            from cuzk.exec.cuda import CudaProver

            make = {"make_device": CudaProver}

        def load(circuit_id: str) -> Loaded:
            if self.proving.c1:
                found = load_porep(self.proving.key, circuit_id)
                assert found is not None
                return found
            key = load_key(self.proving.key, self.proving.r1cs)
            return Loaded.of(circuit_id, key, _Opened([open_witness(path)(key) for path in self.proving.witnesses]))

        slots = [Slot(number, gpu.name, gpu.vram) for number, gpu in enumerate(self.scenario.machine.gpus)]
        prover = PipelineProver(KeyStore(load), self.scenario, threads=self.proving.threads, slots=slots,
                                own_inputs=not self.proving.c1, **make)  # fmt: skip
        if not self.proving.c1:
            prover.load(CIRCUIT)
        return prover


def run_on_ray(
    scenario: Scenario,
    proving: Proving,
    address: str,
    device: str,
    out_dir: str | os.PathLike[str] | None,
    numbers: Sequence[int] = (),
) -> tuple[dict[str, Any], BaseException | None]:
    """The document of the run, and why it failed. `numbers`: proofs that are made (none: all of the workload).

    Raises InputError, HardwareMissing for what is wrong before it starts.
    """
    if proving.insecure_seed is not None:
        raise InputError("--insecure-seed is for one process: hosts blind their proofs with their own randomness")
    if scenario.workload.circuits:
        raise InputError("a run with a key proves one circuit; the scenario's workload mixes several")
    statements = [_sector(path) for path in proving.c1]
    proving = _absolute(proving)
    paths = [proving.key, *proving.witnesses, *([proving.r1cs] if proving.r1cs else [])]
    began = time.perf_counter()
    pool = RayPool(address, HostOfRun(scenario, proving, device))
    loaded = time.perf_counter()
    proofs: dict[int, dict[int, Any]] = {}
    files: list[str] = []
    error: BaseException | None = None
    try:
        for number in numbers or range(scenario.workload.proofs):
            made: list[Made] = []
            statement: Statement = WitnessFiles(proving.witnesses, scenario.circuit.partitions)
            if statements:
                statement = statements[number % len(statements)]
            pool.prove(Task(f"proof-{number}", statement, range(statement.partitions), made.append))
            proofs[number] = {one.partition: (Proof.from_bytes(one.proof), list(one.public)) for one in made}
            if out_dir is not None:  # at once, so that --resume finds it
                files.append(write_proof(Path(out_dir), number, proofs[number]))
    except CuzkError as raised:
        error = raised
    finally:
        ended = time.perf_counter()
        hosts, lost = [slot.name for slot in pool.slots()], pool.lost
        pool.close()
    done = len(proofs)
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "verdict": "fits" if error is None else "failed",
        "throughput": {"s_per_proof": round((ended - loaded) / done, 6) if done else None},
        "counts": {"proofs": done, "partitions": sum(map(len, proofs.values())), "failed_proofs": int(error is not None)},
        "makespan_s": round(ended - loaded, 6),
        "failures": [] if error is None else [{"proof": done, "why": describe(error)}],
        "ray": {"address": address, "devices": hosts, "hosts_lost": lost},
        "measured": {"device": device, "load_s": round(loaded - began, 6), "files_of_hosts": paths,
                     "verified_partitions": sum(map(len, proofs.values()))},
    }  # fmt: skip
    if out_dir is not None:
        document["measured"]["files"] = files
    return document, error


def _sector(path: str) -> Statement:
    """A C1 output, checked; hosts get it by value. Raises FormatError with the place of a fault."""
    from cuzk.porep.c1 import read
    from cuzk.service.porep import PorepStatement

    c1 = read(path)
    c1.check()
    return PorepStatement(c1)


def _absolute(proving: Proving) -> Proving:
    r1cs = os.path.abspath(proving.r1cs) if proving.r1cs else None
    witnesses = tuple(map(os.path.abspath, proving.witnesses))
    return replace(proving, key=os.path.abspath(proving.key), witnesses=witnesses, r1cs=r1cs)
