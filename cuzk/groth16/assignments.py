"""Assignments: the values of each partition of each proof of a run, made when they are asked for.

A run asks for a partition's values in the step `witness`, in the thread that will go on with it, so making them is a stage
of the pipeline with its own time. Values are the asker's: they may be changed and are dropped after use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cuzk.groth16.prover.products import Witness


class Assignments(Protocol):
    """The values of proofs from 0 on; methods are called from many threads at once."""

    partitions: int | None
    """Partitions of a proof, where the source says how many; None: as many as the run wants."""

    def witness(self, proof: int, partition: int) -> Witness:
        """All values of a partition. Raises InputError where its source is wrong."""

    def public_inputs(self, proof: int, partition: int) -> list[int] | None:
        """The public inputs under which its proof must hold, from the statement; None: those of its witness."""

    def examples(self) -> Sequence[Witness]:
        """Values from which the shares of zeros, ones and others are counted, before the run."""

    def done(self, proof: int) -> None:
        """Nothing of this proof will be asked for again; it may be called more than once."""


class Ready:
    """Witnesses that are there: partition p of any proof takes number p modulo their number, a copy each time."""

    partitions: int | None = None

    def __init__(self, witnesses: Sequence[Witness]) -> None:
        self._witnesses = list(witnesses)

    def witness(self, proof: int, partition: int) -> Witness:
        return self._witnesses[partition % len(self._witnesses)].copy()

    def public_inputs(self, proof: int, partition: int) -> list[int] | None:
        return None

    def examples(self) -> Sequence[Witness]:
        return self._witnesses

    def done(self, proof: int) -> None:
        pass
