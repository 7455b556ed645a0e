"""The two random field elements that make a proof zero-knowledge."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cuzk.groth16.field import FR_MODULUS


@dataclass(frozen=True)
class Blinding:
    """r and s of the paper, below the modulus of the scalar field. `private` is False when they can be guessed."""

    r: int
    s: int
    private: bool

    @staticmethod
    def random() -> Blinding:
        """Random numbers of the operating system; 512 bits are reduced, so that the bias is below 2^-256."""
        r, s = (int.from_bytes(os.urandom(64), "little") % FR_MODULUS for _ in range(2))
        return Blinding(r, s, private=True)

    @staticmethod
    def from_seed(seed: int) -> Blinding:
        """The same pair for the same seed, for tests and comparisons: such a proof hides nothing."""
        from hashlib import blake2b

        digest = [blake2b(f"{seed}".encode(), person=person).digest() for person in (b"cuzk-seed-r", b"cuzk-seed-s")]
        r, s = (int.from_bytes(d, "little") % FR_MODULUS for d in digest)
        return Blinding(r, s, private=False)
