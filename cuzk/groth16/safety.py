"""Verifying keys under which a proof proves nothing, and how that shows.

Soundness rests on alpha, beta, delta (and tau) that nobody knows, and on delta not being a known multiple of gamma: with
delta = k·gamma anybody sets A = alpha, B = beta, C = −1/k·IC(x), which verifies for any public input x. [Groth 2016, §3.2:
e(A, B) = e(alpha, beta)·e(IC(x), gamma)·e(C, delta).] The first key of a phase 2 has delta = gamma = 1.
"""

from __future__ import annotations

import numpy as np

from cuzk.errors import ProofInvalid
from cuzk.groth16 import point_bytes
from cuzk.groth16.formats.vk import VerifyingKey

MULTIPLES = 1 << 10
"""Secrets up to this size, of either sign, are looked for."""
NO_CONTRIBUTION = (
    "has no phase 2 contribution: its delta is that of gamma, so anyone can forge a proof for any public input "
    "(cuzk key contribute, or snarkjs zkey contribute, makes it a key)"
)
DEVELOPMENT = "is a development key: whoever made it can forge proofs"


def weaknesses(key: VerifyingKey) -> list[str]:
    """Why proofs under this key can be forged, each as the end of a sentence that begins with the key; empty if nothing shows.

    What cannot show: secrets that somebody kept. Points must be valid (see verify.Verifier).
    """
    found = [DEVELOPMENT] if key.development else []
    gamma = _Multiples(key.gamma_g2)
    of_gamma = gamma.of(key.delta_g2)
    if of_gamma == 1:
        found.append(NO_CONTRIBUTION)
    elif of_gamma:
        found.append(f"has no secret delta: it is {of_gamma}·gamma, so anyone can forge a proof for any public input")
    one = gamma if key.gamma_g2 == point_bytes.G2_GENERATOR else _Multiples(point_bytes.G2_GENERATOR)
    secrets = {"gamma": key.gamma_g2, "beta": key.beta_g2, **({} if of_gamma else {"delta": key.delta_g2})}
    known = {name: one.of(point) for name, point in secrets.items()}
    known["alpha"] = _Multiples(point_bytes.G1_GENERATOR).of(key.alpha_g1)
    if known["gamma"] == 1:
        known["gamma"] = 0  # so it is in every ceremony's keys, and does no harm beside a secret delta
    found += [f"has no secret {name}: it is {value}·generator, which no ceremony gives" for name, value in known.items() if value]
    return found


class _Multiples:
    """The points ±1·base … ±MULTIPLES·base, to be recognised."""

    def __init__(self, base: bytes) -> None:
        from cuzk import native

        add = native.g1_add if len(base) == 96 else native.g2_add
        table = point_bytes.to_mont(base)
        while len(table) < MULTIPLES:
            table = np.concatenate([table, add(table, np.repeat(table[-1:], len(table), axis=0))])
        self._xs = {row.tobytes(): k for k, row in enumerate(table[:, : table.shape[1] // 2], 1)}
        self._points = table

    def of(self, be: bytes) -> int:
        """The small k with point = k·base, or 0; 0 too where either is infinity, which no reader of keys lets pass."""
        point = point_bytes.to_mont(be)
        k = self._xs.get(point[0, : point.shape[1] // 2].tobytes(), 0) if any(be) else 0
        return k if k == 0 or np.array_equal(point[0], self._points[k - 1]) else -k


def unsafe_key(name: object, found: list[str]) -> ProofInvalid:
    """The error for a proof that verifies under a key with weaknesses."""
    return ProofInvalid(f"the equation holds, but {name} {'; it '.join(found)} (--allow-unsafe-key accepts that)")
