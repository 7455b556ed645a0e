"""The things that move through a run: proofs in flight, and their sets with what they hold.

A *set* is one partition of one proof (or the whole proof) on its way. Several actors can hold it at once: the task that handed it
over and still has a permit to release, the worker that took it, the workers it spawned, work queued on streams, or a channel.
`attached` counts them; the last one to leave ends the set.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class PartitionSet:
    """One partition of one proof (or the whole proof), with what it holds by the books."""

    proof: int
    partition: int
    circuit: str = ""
    gpu: int = 0
    failed: bool = False
    buffers: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    """name -> (pool, bytes, cached)"""
    claims: list[tuple[str, int]] = field(default_factory=list)
    """locks and permits in the order of acquisition: (name, units)"""
    untouched: set[str] = field(default_factory=set)
    """buffers whose pages nobody has touched yet"""
    priority: int = 0
    """higher goes first where the order is by proof"""
    owner: ProofRun | None = None
    """None: what is resident for the whole run."""
    attached: int = 1
    """Actors and channels that hold it; at 0 it ends."""
    completed: bool = False

    def __repr__(self) -> str:
        return f"p{self.proof}.{self.partition}"

    @property
    def run(self) -> ProofRun:
        """The proof that it is part of."""
        assert self.owner is not None
        return self.owner


@dataclass(eq=False, slots=True)
class ProofRun:
    """One proof in flight."""

    number: int
    circuit: str
    priority: int
    arrived_s: float
    admitted_s: float
    sets: int
    """Sets that it consists of: its partitions, or one for the whole proof."""
    open_sets: int
    completed: int = 0
    completed_s: float | None = None
    failure: BaseException | None = None
    gpu_call_s: float = 0.0
    """Time that pool workers held its sets, waits included."""
    left: bool = False
    """It no longer counts as in flight."""
    members: list[PartitionSet] = field(default_factory=list)
