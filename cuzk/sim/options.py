"""The choices of a simulated run beside the plain one."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.pipeline.faults import FaultPlan
from cuzk.sim.costs import Draw

Durations = dict[tuple[int, int, str], list[float]]
"""(proof, partition, step) -> seconds of its runs in order: measured ones, for a replay."""


AS_STATED = Draw()


@dataclass(frozen=True, slots=True)
class Options:
    """The extras of a run beside the plain one."""

    trace: bool = False
    """Keep every event."""
    shuffle: int | None = None
    """Seed of another legal order: of actors that can go on at one instant, and of how long wake-ups take."""
    durations: Durations | None = None
    """Step times of a measured run instead of the cost laws."""
    unlimited_ram: bool = False
    """Go on beyond the host's memory: for bands of peaks."""
    faults: FaultPlan | None = None
    """Faults that are planted in the run."""
    draw: Draw = AS_STATED
    """The way in which each cost law is drawn within its stated error."""
