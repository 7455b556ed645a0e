"""Seeded spread of step times, independent of the order of events.

Each (seed, proof, partition, step) has its own normal deviate, so a change of policy meets the same luck, and the same
seed gives the same bytes. The group deviate is common to all partitions of a proof: lockstep.
"""

from __future__ import annotations

import random
from functools import lru_cache

LIMIT = 3.0
"""Deviates beyond this many standard deviations are cut: a cost law is no promise about tails."""


@lru_cache(maxsize=4096)
def deviates(seed: int, proof: int, partitions: int, steps: int) -> tuple[tuple[float, ...], ...]:
    """Row 0: the group's deviate of each step; row 1 + p: those of partition p."""
    if steps == 0:
        return ((),) * (partitions + 1)
    gauss = random.Random((seed << 24) ^ (proof * 0x9E3779B1)).gauss
    return tuple(
        tuple([max(-LIMIT, min(LIMIT, gauss(0.0, 1.0))) for _ in range(steps)]) for _ in range(partitions + 1)
    )


def factor(cv: float, group_cv: float, own: float, group: float) -> float:
    """What a step's time is multiplied with."""
    value = 1.0 + cv * own + group_cv * group
    return value if value > 0.1 else 0.1
