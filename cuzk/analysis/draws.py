"""Errors drawn for the runs of a band: each law's own, and those that all steps of a kind share.

The paces of the GPU's path and of synthesis are off together, step by step with their kind: a finished set that waits is the
difference of the two, so 1 % of one pace is tens of GiB of a long pile-up. Their spread is what predictions of points out of the
fit were wrong by (`residual_s_per_proof` of a calibration).
"""

from __future__ import annotations

import math
import random
from statistics import NormalDist

from cuzk.model.calibration import Calibration
from cuzk.sim.costs import Draw

SHARED = "residual_s_per_proof"


def draws(calibration: Calibration | None, seed: int, runs: int, extra_error: float = 0.0) -> list[Draw]:
    """One draw a run: the first as the laws are stated, the others as wide for few as for many."""
    spread = calibration.parameters.get(SHARED, 0.0) if calibration else 0.0
    shared = _pairs(runs - 1)
    drawn = [
        Draw(seed + n, extra_error, math.exp(spread * gpu), math.exp(spread * synthesis))
        for n, (gpu, synthesis) in enumerate(shared, 1)
    ]
    return [Draw(), *drawn]


def _pairs(n: int) -> list[tuple[float, float]]:
    """Normal scores of both paces for `n` runs. Each pair comes with its mirror image, so that the middle of the runs stays."""
    half = n // 2
    scores = [NormalDist().inv_cdf((k + 0.5) / n) for k in range(half)]
    rng = random.Random("paces")
    others = [score * rng.choice((-1, 1)) for score in rng.sample(scores, half)]
    both = list(zip(scores, others, strict=True))
    rng.shuffle(both)
    mirrored = [(sign * a, sign * b) for a, b in both for sign in (1, -1)]
    return [*mirrored, *[(0.0, 0.0)] * (n - 2 * half)] if n > 0 else []
