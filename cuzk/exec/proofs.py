"""Proofs on disk: each is written when it is complete, and a later run takes those that hold for done.

`proof-000/proof-07.json` and `public-07.json` for every partition, then `proof-000.bin`, the partitions' compressed proofs one
after another: a proof whose .bin is there is complete.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from cuzk.errors import InputError, ProofInvalid

if TYPE_CHECKING:
    from cuzk.groth16.assignments import Assignments
    from cuzk.groth16.prover.products import Witness
    from cuzk.groth16.verify import Verifier

Parts = dict[int, Any]
"""Partition -> its proof and public signals."""


def folder_of(directory: Path, number: int) -> Path:
    return directory / f"proof-{number:03d}"


def file_of(directory: Path, number: int) -> Path:
    return directory / f"proof-{number:03d}.bin"


def write_proof(directory: Path, number: int, parts: Parts) -> str:
    """The files of a proof; the path of its .bin. Raises InputError."""
    from cuzk.groth16.formats.proof import proof_json, public_json
    from cuzk.outputs import atomic_write, write_text

    folder = folder_of(directory, number)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for partition, (made, public) in sorted(parts.items()):
            write_text(folder / f"proof-{partition:02d}.json", proof_json(made))
            write_text(folder / f"public-{partition:02d}.json", public_json(public))
        target = file_of(directory, number)
        with atomic_write(target) as file:
            file.write(b"".join(made.to_bytes() for _, (made, _) in sorted(parts.items())))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from error
    return str(target)


class ProofWriter:
    """Writes proofs in a thread of its own: no step of the run waits for the disk. Use `with`; the end waits for it."""

    def __init__(self, directory: Path | None, numbers: Sequence[int] = ()) -> None:
        """`directory` None: nothing is written. `numbers`: the proofs' own numbers, where a run makes only some."""
        self._directory, self._numbers = directory, list(numbers)
        self._queue: SimpleQueue[tuple[int, Parts] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="proofs", daemon=True)
        self._error: BaseException | None = None
        self.files: dict[int, str] = {}

    def put(self, number: int, parts: Parts) -> None:
        """A complete proof, by its number in the run."""
        self._queue.put((self._numbers[number] if self._numbers else number, parts))

    def __enter__(self) -> ProofWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Raises what kept a proof from being written."""
        self._queue.put(None)
        self._thread.join()
        if self._error is not None and _[0] is None:
            raise self._error

    def _loop(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._directory is None or self._error is not None:
                continue
            try:
                self.files[item[0]] = write_proof(self._directory, *item)
            except BaseException as error:
                self._error = error


class Some:
    """Only some of the proofs of other assignments: proof p of the run is their number `numbers[p]`."""

    def __init__(self, whole: Assignments, numbers: Sequence[int]) -> None:
        self._whole, self._numbers = whole, list(numbers)
        self.partitions = whole.partitions

    def witness(self, proof: int, partition: int) -> Witness:
        return self._whole.witness(self._numbers[proof], partition)

    def public_inputs(self, proof: int, partition: int) -> list[int] | None:
        return self._whole.public_inputs(self._numbers[proof], partition)

    def examples(self) -> Sequence[Witness]:
        return self._whole.examples()

    def done(self, proof: int) -> None:
        self._whole.done(self._numbers[proof])


def missing(directory: Path, proofs: int, partitions: int, verifier: Verifier,
            publics_of: Callable[[int], list[list[int]]] | None = None) -> list[int]:  # fmt: skip
    """Numbers of the proofs that are not there, or do not hold: under `publics_of(number)`, else under the public signals
    beside them."""
    return [number for number in range(proofs) if not _holds(directory, number, partitions, verifier, publics_of)]


def _holds(directory: Path, number: int, partitions: int, verifier: Verifier,
           publics_of: Callable[[int], list[list[int]]] | None) -> bool:  # fmt: skip
    from cuzk.groth16.formats.proof import read_proofs, read_public

    file = file_of(directory, number)
    if not file.is_file():
        return False
    try:
        made = read_proofs(file)
        names = [folder_of(directory, number) / f"public-{part:02d}.json" for part in range(partitions)]
        publics = publics_of(number) if publics_of is not None else [read_public(name)[0] for name in names]
        return len(made) == partitions == len(publics) and verifier.first_invalid(made, publics) < 0
    except (InputError, ProofInvalid):  # cut, damaged, of another circuit: made again
        return False
