"""The operator's job: a C1 output and a key in, the chain's proof out.

    c1 = read("c1.json")
    made = prove_c1(c1, key)        # checks the whole C1 output first
    made.to_bytes()                 # 192 bytes a partition, in order, verified under the sector's public inputs

Each partition is verified as it is made, and the whole once more before it is handed out. A partition whose proof does not
verify is proved again with fresh blinding, a bounded number of times; the others are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cuzk.circuits.porep.shape import Shape
from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover.run import Proved, prove
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.verify import Verifier, require_valid
from cuzk.porep.c1.model import C1, Owner
from cuzk.porep.c1.opening import c1_witness
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.registered import Drawing

ATTEMPTS = 3
"""Proofs of one partition that are made at most."""
AGGREGATION = (
    "a non-interactive proof is one aggregate (SnarkPack) of its partitions' proofs for the chain, and cuzk does not aggregate: "
    "these are the single partitions"
)

MakeProof = Callable[[BitWitness, Verifier], Proved]
"""Makes one proof of a witness; raises ProofInvalid if it does not verify. A seam: on a device, in another process."""
Progress = Callable[[str], None]


class SectorAssignments:
    """The sources of the proofs of some sectors: the seam between a C1 output and whoever makes proofs.

    Proof p is of `sectors[p % len(sectors)]`, so that a run can repeat its sectors. All must have one shape.
    """

    def __init__(self, sectors: list[C1], maker: PartitionMaker | None = None) -> None:
        if not sectors:
            raise InputError("no C1 output is given")
        self.maker = maker or PartitionMaker(sectors[0].shape)
        for one in sectors:
            if one.shape != self.maker.shape:
                raise InputError(f"{one.source}: a sector of {one.shape.name}, the circuit is that of {self.maker.shape.name}")
        self.sectors = sectors

    @property
    def shape(self) -> Shape:
        return self.maker.shape

    def partitions(self, proof: int) -> int:
        return self.sector(proof).partitions

    def sector(self, proof: int) -> C1:
        return self.sectors[proof % len(self.sectors)]

    def witness(self, proof: int, partition: int) -> BitWitness:
        """The values of a partition, made here from its challenges; native code, one thread."""
        return c1_witness(self.maker, self.sector(proof), partition)

    def public_inputs(self, proof: int, partition: int) -> list[int]:
        """Those of the sector's statement, not those that the witness claims."""
        return self.sector(proof).public_inputs(partition)


@dataclass
class SectorProof:
    """The proofs of all partitions, in order, with what was verified."""

    c1: C1
    proofs: list[Proof]
    publics: list[list[int]]
    quotient: str
    attempts: list[int] = field(default_factory=list)
    """Proofs made of each partition; 1 where the first one verified."""
    step_s: list[dict[str, float]] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """192 bytes a partition."""
        return b"".join(proof.to_bytes() for proof in self.proofs)

    @property
    def note(self) -> str | None:
        """The things that the chain needs beyond these bytes, in words."""
        return AGGREGATION if self.c1.registered.drawing is Drawing.NON_INTERACTIVE else None


class PartitionFailed(ProofInvalid):
    """A partition that cannot be proved: which one, and why."""

    def __init__(self, partition: int, partitions: int, attempts: int, reason: str) -> None:
        self.partition, self.partitions, self.attempts, self.reason = partition, partitions, attempts, reason
        tried = "" if attempts == 1 else f" in {attempts} attempts"
        super().__init__(f"partition {partition} (of {partitions}, from 0) was not proved{tried}: {reason}")


def prove_c1(
    c1: C1, key: ProvingKey, maker: PartitionMaker | None = None, *, owner: Owner | None = None, checked: bool = False,
    attempts: int = ATTEMPTS, threads: int | None = None, quotient: str | None = None, make: MakeProof | None = None,
    progress: Progress = lambda _: None,
) -> SectorProof:  # fmt: skip
    """Checks a C1 output (unless it is `checked`), proves its partitions one after the other, and verifies the whole.

    `owner`: whose sector it must be. `make` makes one proof; the host's prover if it is None. Raises FormatError for a fault
    of the file, PartitionFailed for a partition that does not verify in so many attempts.
    """
    if not checked:
        progress("checks")
        c1.check(owner, threads=threads)
    assignments = SectorAssignments([c1], maker)
    verifier = Verifier(key.verifying_key(), f"the verifying key in {key.path}")
    if make is None:

        def make(witness: BitWitness, verifier: Verifier) -> Proved:
            return prove(key, witness, quotient, None, threads, verifier)

    made = SectorProof(c1, [], [], key.require_quotient(quotient))
    for partition in range(c1.partitions):
        progress(f"witness of partition {partition}")
        witness = assignments.witness(0, partition)
        public = assignments.public_inputs(0, partition)
        proved, count = _proved(make, witness, public, verifier, partition, c1.partitions, attempts, progress)
        made.proofs.append(proved.proof)
        made.publics.append(public)
        made.attempts.append(count)
        made.step_s.append(proved.step_s)
    progress("verification of the whole")
    require_valid(verifier, made.proofs, made.publics)
    return made


def _proved(
    make: MakeProof, witness: BitWitness, public: list[int], verifier: Verifier, partition: int, partitions: int, attempts: int,
    progress: Progress,
) -> tuple[Proved, int]:  # fmt: skip
    reason = ""
    for attempt in range(1, attempts + 1):
        progress(f"proof of partition {partition}" + (f", attempt {attempt}: {reason}" if attempt > 1 else ""))
        try:
            proved = make(witness, verifier)
        except ProofInvalid as error:
            reason = str(error)
            continue
        if verifier.accepts(proved.proof, public):
            return proved, attempt
        reason = "it does not verify under the sector's public inputs"
    raise PartitionFailed(partition, partitions, attempts, reason)
