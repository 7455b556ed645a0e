"""The operator's job: a C1 output and a key in, the chain's proof out.

    c1 = read("c1.json")
    made = prove_c1(c1, key)        # checks the whole C1 output first
    made.to_bytes()                 # 192 bytes a partition, in order, verified under the sector's public inputs

Each partition is verified as it is made, and the whole once more before it is handed out. A partition whose proof does not
verify is proved again with fresh blinding, a bounded number of times; the others are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover.run import Proved, prove
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.verify import Verifier, require_valid
from cuzk.porep.c1.model import C1, Owner
from cuzk.porep.c1.opening import c1_witness
from cuzk.porep.c1.read import read
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.registered import Drawing

ATTEMPTS = 3
"""Proofs of one partition that are made at most."""
AGGREGATION = (
    "a non-interactive proof is one aggregate (SnarkPack) of its partitions' proofs for the chain, and cuzk does not aggregate: "
    "these are the single partitions"
)

_KEPT_OPEN = 64

MakeProof = Callable[[BitWitness, Verifier], Proved]
"""Makes one proof of a witness; raises ProofInvalid if it does not verify. A seam: on a device, in another process."""
Progress = Callable[[str], None]


class SectorAssignments:
    """Sectors as assignments: the seam between C1 outputs and whoever makes proofs.

    Proof p is of `sectors[p % len(sectors)]`, so that a run can repeat its sectors. All must have one circuit and number of
    partitions. See cuzk.groth16.assignments.Assignments.
    """

    def __init__(self, sectors: Sequence[C1], maker: PartitionMaker | None = None) -> None:
        self.maker = _one_circuit(sectors, maker)
        self.partitions: int | None = sectors[0].partitions
        self._sectors = list(sectors)

    def sector(self, proof: int) -> C1:
        return self._sectors[proof % len(self._sectors)]

    def witness(self, proof: int, partition: int) -> BitWitness:
        """The values of a partition, made here from its challenges; native code, one thread."""
        return c1_witness(self.maker, self.sector(proof), partition)

    def public_inputs(self, proof: int, partition: int) -> list[int]:
        """Those of the sector's statement, not those that the witness claims."""
        return self.sector(proof).public_inputs(partition)

    def examples(self) -> Sequence[BitWitness]:
        return [c1_witness(self.maker, self.sector(0), 0)]

    def done(self, proof: int) -> None:
        pass


class SectorFiles:
    """The same from files, each read and checked when the first partition of its proof is asked for, and dropped when the
    proof is done: from JSON bytes on, everything is part of the run."""

    def __init__(self, paths: Sequence[str | PathLike[str]], owner: Owner | None = None) -> None:
        """Reads and checks every file once. Raises FormatError with the place of a fault."""
        self._paths, self._owner = list(paths), owner
        first: list[C1] = []
        for path in self._paths:
            found = read(path)
            found.check(owner)
            first.append(found if not first else replace(found, hashes=found.hashes[:0], numbers=found.numbers[:0]))
        self.partitions: int | None = first[0].partitions if first else None
        if any(one.registered.partitions != self.partitions for one in first):
            raise InputError("all C1 outputs of a run must have the same number of partitions")
        self.maker = _one_circuit(first, None)
        self._examples = [c1_witness(self.maker, first[0], 0)]
        self._open: dict[int, _Opened] = {}
        self._mutex = threading.Lock()

    def sector(self, proof: int) -> C1:
        with self._mutex:
            opened = self._open.setdefault(proof, _Opened())
            for gone in [number for number in self._open if number <= proof - _KEPT_OPEN]:
                del self._open[gone]  # of a proof that failed nobody says that it is done
        with opened.mutex:  # the others of the proof wait for the one that reads
            if opened.sector is None:
                found = read(self._paths[proof % len(self._paths)])
                found.check(self._owner)
                if found.shape != self.maker.shape or found.partitions != self.partitions:
                    raise InputError(f"{found.source}: another sector than when the run began")
                opened.sector = found
            return opened.sector

    def witness(self, proof: int, partition: int) -> BitWitness:
        """The values of a partition; the first one of a proof has its C1 output read and checked too."""
        return c1_witness(self.maker, self.sector(proof), partition)

    def public_inputs(self, proof: int, partition: int) -> list[int]:
        return self.sector(proof).public_inputs(partition)

    def examples(self) -> Sequence[BitWitness]:
        return self._examples

    def done(self, proof: int) -> None:
        with self._mutex:
            self._open.pop(proof, None)


class _Opened:
    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.sector: C1 | None = None


def _one_circuit(sectors: Sequence[C1], maker: PartitionMaker | None) -> PartitionMaker:
    if not sectors:
        raise InputError("no C1 output is given")
    maker = maker or PartitionMaker(sectors[0].shape)
    for one in sectors:
        if one.shape != maker.shape:
            raise InputError(f"{one.source}: a sector of {one.shape.name}, the circuit is that of {maker.shape.name}")
    return maker


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
        proved, count = prove_partition(make, witness, public, verifier, partition, c1.partitions, attempts, progress)
        made.proofs.append(proved.proof)
        made.publics.append(public)
        made.attempts.append(count)
        made.step_s.append(proved.step_s)
    progress("verification of the whole")
    require_valid(verifier, made.proofs, made.publics)
    return made


def prove_partition(
    make: MakeProof, witness: BitWitness, public: list[int], verifier: Verifier, partition: int, partitions: int, attempts: int,
    progress: Progress,
) -> tuple[Proved, int]:  # fmt: skip
    """A proof that verifies under `public`, and how many were made. Raises PartitionFailed."""
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
