"""Proofs of the partitions of a statement, each verified under the public inputs that the statement gives it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from cuzk.circuits.witness import require_satisfied
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover.run import Proved, prove
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Template
from cuzk.groth16.verify import Verifier, require_valid
from cuzk.porep.job import ATTEMPTS, MakeProof, prove_partition

Progress = Callable[[str], None]


class Job(Protocol):
    """A checked vanilla proof and its circuit."""

    @property
    def what(self) -> str:
        """The circuit's name in messages."""

    @property
    def published(self) -> str:
        """The name of the circuit's published .params."""

    @property
    def template(self) -> Template: ...

    @property
    def partitions(self) -> int: ...

    def witness(self, partition: int) -> BitWitness:
        """The values of a partition's circuit."""

    def public_inputs(self, partition: int) -> list[int]:
        """Those of the statement, not those that the witness claims."""


@dataclass
class JobProof:
    """The proofs of all partitions, in order, with what was verified."""

    quotient: str
    proofs: list[Proof] = field(default_factory=list)
    publics: list[list[int]] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    step_s: list[dict[str, float]] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """192 bytes a partition."""
        return b"".join(proof.to_bytes() for proof in self.proofs)


def prove_job(
    job: Job, key: ProvingKey, *, attempts: int = ATTEMPTS, threads: int | None = None, quotient: str | None = None,
    make: MakeProof | None = None, progress: Progress = lambda _: None,
) -> JobProof:  # fmt: skip
    """Raises ProofInvalid naming the gadget where a partition does not satisfy the circuit, PartitionFailed for one whose proof
    does not verify in so many attempts."""
    verifier = Verifier(key.verifying_key(), f"the verifying key in {key.path}")

    def prove_here(witness: BitWitness, verifier: Verifier) -> Proved:
        return prove(key, witness, quotient, None, threads, verifier)

    made = JobProof(key.require_quotient(quotient))
    for k in range(job.partitions):
        progress(f"witness of partition {k}")
        witness, public = job.witness(k), job.public_inputs(k)
        require_satisfied(job.template, witness, f"partition {k}")
        proved, count = prove_partition(make or prove_here, witness, public, verifier, k, job.partitions, attempts, progress)
        made.proofs.append(proved.proof)
        made.publics.append(public)
        made.attempts.append(count)
        made.step_s.append(proved.step_s)
    progress("verification of the whole")
    require_valid(verifier, made.proofs, made.publics)
    return made
