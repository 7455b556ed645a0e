"""A small Python interface: load a key, prove, verify, predict. The command line uses it too.

    from cuzk import api

    key = api.load_key("K.params", sector="32GiB")      # or a folder of Filecoin's parameters, .ckey, .zkey
    c1 = api.read_c1("c1.json")
    made = api.prove(key, c1)                           # checked, proved, verified under the sector's public inputs
    made.to_bytes()                                     # 192 bytes a partition
    api.verify(key, made.to_bytes(), made.publics)      # raises ProofInvalid
    api.predict("scenario.yaml")["throughput"]

Errors are those of `cuzk.errors`: InputError for a wrong file (its text begins with the file and the place), ProofInvalid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from cuzk.groth16.formats.vk import VerifyingKey
    from cuzk.groth16.key import ProvingKey
    from cuzk.groth16.prover.blinding import Blinding
    from cuzk.groth16.prover.run import Proved
    from cuzk.model.scenario import Scenario
    from cuzk.porep.c1 import C1, Limits, Owner
    from cuzk.porep.job import SectorProof
    from cuzk.porep.partition import PartitionMaker

PathName = str | PathLike[str]
KeyProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Key:
    """An open proving key; its points are used where they lie in the file if that is a .ckey."""

    proving_key: ProvingKey
    circuit: PartitionMaker | None = None
    """The circuit of a sector, where it is a key of PoRep."""

    @property
    def verifying_key(self) -> VerifyingKey:
        return self.proving_key.verifying_key()

    @property
    def weaknesses(self) -> list[str]:
        """Reasons why proofs under this key can be forged, such as that it is a development key."""
        from cuzk.groth16.safety import weaknesses

        return weaknesses(self.verifying_key)


def load_key(
    path: PathName, *, sector: str | None = None, circuit: PartitionMaker | None = None, r1cs: PathName | None = None,
    progress: KeyProgress | None = None,
) -> Key:  # fmt: skip
    """A .zkey, .ckey or .params. `sector` (such as `32GiB`): the key of that sector's PoRep circuit, also from a folder of
    Filecoin's files, whose digests are checked once; or `circuit`, if it has been emitted already. `r1cs`: the circuit of
    other .params, or where C is wanted. Raises InputError, FormatError."""
    from cuzk.groth16.load import load_key as load_any

    if sector is None and circuit is None:
        return Key(load_any(path, r1cs))
    from cuzk.circuits.porep.shape import shape
    from cuzk.groth16.progress import silent
    from cuzk.porep.partition import PartitionMaker
    from cuzk.porep.proving import load_porep_key

    circuit = circuit or PartitionMaker(shape(str(sector)))
    return Key(load_porep_key(path, circuit, progress or silent), circuit)


def read_c1(
    source: bytes | bytearray | memoryview | PathName, limits: Limits | None = None, *, registered: str | None = None
) -> C1:
    """A C1 output (wrapper JSON, inner JSON or bincode) from a file or from its bytes. Raises FormatError with the place."""
    from cuzk.porep.c1 import read

    return read(source, limits, registered=registered)


@overload
def prove(key: Key, source: C1, *, owner: Owner | None = None, checked: bool = False, attempts: int | None = None,
          device: str | None = None, quotient: str | None = None, threads: int | None = None,
          progress: Callable[[str], None] | None = None) -> SectorProof: ...  # fmt: skip
@overload
def prove(key: Key, source: PathName, *, device: str | None = None, blinding: Blinding | None = None,
          quotient: str | None = None, threads: int | None = None) -> Proved: ...  # fmt: skip
def prove(
    key: Key, source: C1 | PathName, *, owner: Owner | None = None, checked: bool = False, attempts: int | None = None,
    device: str | None = None, blinding: Blinding | None = None, quotient: str | None = None, threads: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> SectorProof | Proved:  # fmt: skip
    """The proofs of a C1 output's partitions, in order, or one proof of a witness (.wtns, .cwit; on a GPU with `device`:
    `cuda`); verified.

    A C1 output is checked first unless it is `checked`; `owner`: whose sector it must be. A partition that does not verify is
    proved again, `attempts` times in all. `device`: `cpu` or `cuda`, partitions side by side through the pipeline of this
    machine; None: one after the other by the host's prover, with `quotient`.

    Raises FormatError with the place of a fault, ProofInvalid (PartitionFailed, which
    says which partition and why), InputError for a key that does not go with it.
    """
    from cuzk.groth16.load import open_witness
    from cuzk.groth16.prover.run import prove as prove_one

    if isinstance(source, (str, PathLike)):
        witness = open_witness(source)(key.proving_key)
        if device == "cuda":
            from cuzk.exec.one import prove_on_gpu

            return prove_on_gpu(
                key.proving_key, witness, lambda: this_machine(threads), quotient=quotient, blinding=blinding, threads=threads
            )
        return prove_one(key.proving_key, witness, quotient, blinding, threads)
    from cuzk.porep.job import ATTEMPTS, prove_c1

    if device is not None:
        from cuzk.service.once import local_prover, prove_sector

        assert key.circuit is not None, "the key of a sector's circuit: load_key(…, sector=…)"
        if not checked:
            source.check(owner, threads=threads)
        prover = local_prover(source.registered.name, key.proving_key, key.circuit, device, threads)
        return prove_sector(source, prover, key.proving_key, attempts=attempts or ATTEMPTS, progress=progress or (lambda _: None))

    return prove_c1(
        source, key.proving_key, key.circuit, owner=owner, checked=checked, attempts=attempts or ATTEMPTS, threads=threads,
        quotient=quotient, progress=progress or (lambda _: None),
    )  # fmt: skip


def this_machine(threads: int | None) -> Scenario:
    """This host with its GPUs, as a scenario of our own pipeline."""
    from cuzk.service.config import GIB, Settings
    from cuzk.service.standard import host_scenario

    return host_scenario(Settings(margin_bytes=GIB, threads=threads), "cuda")


def verify(
    key: Key | VerifyingKey | PathName, proof: bytes, publics: Sequence[Sequence[int]], *, allow_unsafe_key: bool = False
) -> None:
    """Checks proofs, 192 bytes each, under their public inputs by an independent pairing. Raises ProofInvalid that names the
    first bad one, or says why proofs under this key mean nothing, unless `allow_unsafe_key`; InputError for counts."""
    from os import fspath

    from cuzk.errors import ProofInvalid
    from cuzk.groth16.formats.proof import PROOF_BYTES, Proof
    from cuzk.groth16.formats.vk import VerifyingKey
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.point_bytes import PointError
    from cuzk.groth16.safety import unsafe_key, weaknesses
    from cuzk.groth16.verify import Verifier, require_valid

    name = fspath(key) if isinstance(key, (str, PathLike)) else "the verifying key"
    vk = key if isinstance(key, VerifyingKey) else key.verifying_key if isinstance(key, Key) else read_any_vk(key)
    pieces = [proof[at : at + PROOF_BYTES] for at in range(0, len(proof), PROOF_BYTES)]
    try:
        made = [Proof.from_bytes(piece) for piece in pieces]
    except PointError as error:
        raise ProofInvalid(f"{name}: {error}") from error
    require_valid(Verifier(vk, name), made, publics)
    reasons = weaknesses(vk)
    if reasons and not allow_unsafe_key:
        raise unsafe_key(name, reasons)


def predict(scenario: Scenario | PathName, *, seed: int | None = None) -> dict[str, Any]:
    """The simulator's word on a scenario: verdict, throughput, peaks, as `cuzk sim --json` prints it. Raises ScenarioError."""
    from cuzk.model import load_scenario
    from cuzk.sim import simulate

    found = load_scenario(scenario) if isinstance(scenario, (str, PathLike)) else scenario
    document: dict[str, Any] = simulate(found, seed=seed).to_json()
    return document
