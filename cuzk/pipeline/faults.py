"""Faults planted in a run, one seed deciding where: for the simulator and, by the same plan, for the executor.

A plan names steps and allocations of a program's own sets; each strikes once. Whoever walks the program asks it when a step has
been done and when a buffer is about to be real: the simulator in its compiled steps (`Options.faults`), a device of the executor
around its own `perform` and `allocate`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cuzk.errors import CuzkError
from cuzk.pipeline import ops
from cuzk.pipeline.program import Program, every_op
from cuzk.pipeline.sets import PartitionSet

Kind = Literal["step", "alloc"]


class InjectedFault(CuzkError):
    """A step that failed because a plan said so."""


@dataclass(frozen=True)
class Fault:
    """A place in a run: a step of one set, done and then failed; or a buffer of it, which the system refuses."""

    kind: Kind
    name: str
    proof: int
    partition: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of p{self.proof}.{self.partition}"


class FaultPlan:
    """Faults that strike once each. Asked from many threads at once."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        self._struck: dict[Fault, object] = {}

    @property
    def struck(self) -> list[Fault]:
        """Those that have struck, in order."""
        return list(self._struck)

    @staticmethod
    def drawn(program: Program, seed: int) -> FaultPlan:
        """One to three faults anywhere in a program that proves one circuit."""
        rng, circuit = random.Random(f"faults {seed}"), program.scenario.circuit
        places: list[tuple[Kind, str]] = []
        for worker in program.pipeline.workers:
            for op in every_op(program.code(worker, circuit.name)):
                if isinstance(op, ops.Run):
                    places.append(("step", op.name))
                elif isinstance(op, ops.Alloc):
                    places += [("alloc", want.buffer) for want in op.wants if not want.kept]
        places = sorted(set(places))
        partitions = 1 if program.whole else circuit.partitions
        faults = {
            Fault(*rng.choice(places), rng.randrange(program.scenario.workload.proofs), rng.randrange(partitions))
            for _ in range(rng.randint(1, 3))
        }
        return FaultPlan(sorted(faults, key=str))

    def again(self) -> FaultPlan:
        """The same faults, none of which has struck."""
        return FaultPlan(self.faults)

    def step_done(self, pset: PartitionSet, name: str) -> InjectedFault | None:
        """The error of a step that has just been done; None: it goes well."""
        fault = self._strike("step", pset, name)
        return InjectedFault(f"planted: {fault}") if fault is not None else None

    def refused(self, pset: PartitionSet, buffer: str) -> MemoryError | None:
        """The system's refusal of a buffer; None: it has it."""
        fault = self._strike("alloc", pset, buffer)
        return MemoryError(f"planted: {fault}") if fault is not None else None

    def _strike(self, kind: Kind, pset: PartitionSet, name: str) -> Fault | None:
        fault, mine = Fault(kind, name, pset.proof, pset.partition), object()
        if fault not in self.faults:
            return None
        return fault if self._struck.setdefault(fault, mine) is mine else None  # one step of the interpreter: once only
