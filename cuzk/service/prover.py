"""The service's side of an engine that makes partitions. Small, so that an engine on other machines fits as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cuzk.service.kinds import Statement
from cuzk.trace.event import Event


@dataclass(frozen=True)
class Made:
    """One partition: 192 bytes that an independent pairing has accepted under the public inputs of its statement."""

    partition: int
    proof: bytes
    synth_s: float = 0.0
    gpu_s: float = 0.0
    """Time in the hands of a GPU worker, waits included."""
    public: tuple[int, ...] = ()
    """The public inputs that it was accepted under, without ONE."""


@dataclass
class Task:
    """Some partitions of one job. Callbacks come from threads of the engine, one at a time for a task."""

    job_id: str
    statement: Statement
    partitions: Sequence[int]
    on_made: Callable[[Made], None]
    on_begin: Callable[[], None] = lambda: None
    """The key is there and the first partition begins."""
    priority: int = 2
    cancelled: Callable[[], bool] = lambda: False
    emit: Callable[[Event], None] = field(default=lambda event: None)
    """Gets every event of the run, with the partition's own number."""


@dataclass(frozen=True)
class Slot:
    """A device that proves, for status pages."""

    ordinal: int
    name: str
    vram_total_bytes: int = 0
    vram_free_bytes: int = 0


class Prover(Protocol):
    """Makes partitions. `prove` is called in a thread of its own; up to `width` calls at once."""

    name: str
    width: int

    def prove(self, task: Task) -> None:
        """Returns when every partition of the task has been handed to `on_made`. Raises Cancelled when the task was
        cancelled, ProofInvalid or another CuzkError where a partition cannot be made; what was handed over stays good."""

    def bad_partitions(self, statement: Statement, proofs: Sequence[bytes]) -> list[int]:
        """Numbers of a job's proofs (192 bytes each, in order) that do not hold under its public inputs."""

    def load(self, circuit_id: str) -> float:
        """Have a circuit's key ready; returns the seconds that it took, 0.0 if it was there. Raises InputError."""

    def evict(self, circuit_id: str) -> int | None:
        """Let a key go; returns its bytes, None if it was not there. Raises InUse."""

    def loaded(self) -> list[dict[str, Any]]:
        """`circuit_id`, `bytes`, `users`, `idle_s`, `load_s` of each key that is there."""

    def slots(self) -> list[Slot]: ...

    def scenario_of(self, statement: Statement) -> Any:
        """The scenario of a run of this statement (cuzk.model.Scenario), for forecasts; None: unknown."""

    def close(self) -> None:
        """No task runs any more."""
