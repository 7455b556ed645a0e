"""Time a proof, from the times at which sets (partitions) were completed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Throughput:
    """None where too little was completed to say."""

    s_per_proof: float | None = None
    """Seconds a proof of the whole batch: from the start to the last completion, over the proofs."""
    steady_s_per_proof: float | None = None
    """Without filling and draining: the slope from completion w to completion P - w of the P sets, w = GPU workers."""


def throughput(completed_s: Sequence[float], proofs: int, workers: int) -> Throughput:
    """`completed_s`: when each set was completed, from the start of the run; `proofs`: how many they make up."""
    done = sorted(completed_s)
    if not done or not proofs:
        return Throughput()
    first, last = workers, len(done) - workers
    steady = None
    if first < last < len(done):
        steady = (done[last] - done[first]) / (last - first) * len(done) / proofs
    return Throughput(done[-1] / proofs, steady)
