"""Seeded spread of step times, independent of the order of events.

Each (seed, proof, partition, step) has its own normal deviate, so a change of policy meets the same luck, and the same
seed gives the same bytes. The group deviate is common to all partitions of a proof: lockstep.
"""

from __future__ import annotations

import random
from functools import lru_cache

LIMIT = 3.0
"""Deviates beyond this many standard deviations are cut: a cost law is no promise about tails."""
LEAST = 0.1
"""No step takes less than this share of its time."""

Spread = tuple[tuple[float, float], ...]
"""For each jittered step: coefficient of variation of its own and of its group's deviate."""


@lru_cache(maxsize=4096)
def factors(seed: int, proof: int, partitions: int, spread: Spread) -> tuple[tuple[float, ...], ...]:
    """For each partition of a proof, what the time of each jittered step is multiplied with."""
    if not spread:
        return ((),) * partitions
    gauss = random.Random((seed << 24) ^ (proof * 0x9E3779B1)).gauss

    def deviates() -> list[float]:
        return [max(-LIMIT, min(LIMIT, gauss(0.0, 1.0))) for _ in spread]

    group = deviates()
    return tuple(
        tuple(max(LEAST, 1.0 + cv * z + group_cv * g) for (cv, group_cv), z, g in zip(spread, deviates(), group, strict=True))
        for _ in range(partitions)
    )
