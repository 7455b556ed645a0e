"""The secrets of a setup ("toxic waste"): whoever knows them can forge proofs. They live in memory only."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from cuzk.groth16.field import FR_MODULUS


@dataclass(frozen=True)
class Secrets:
    """tau, alpha, beta, gamma, delta of the paper; none zero. They are left out of `repr`."""

    tau: int = field(repr=False)
    alpha: int = field(repr=False)
    beta: int = field(repr=False)
    gamma: int = field(repr=False)
    delta: int = field(repr=False)

    @staticmethod
    def random() -> Secrets:
        """Random secrets of the operating system; gamma is 1, as in every ceremony's keys."""
        tau, alpha, beta, delta = (1 + int.from_bytes(os.urandom(64), "little") % (FR_MODULUS - 1) for _ in range(4))
        return Secrets(tau, alpha, beta, 1, delta)
