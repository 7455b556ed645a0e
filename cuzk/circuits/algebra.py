"""Values of a run: one instance as Python integers, or many instances as columns, for the same gadget code.

Bits are integers whose k-th bit belongs to the k-th instance, so ^, & and | serve one instance and five thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
import hashlib  # noqa: F401

from cuzk.circuits.field import MODULUS


class Scalars:
    """One instance. Field elements are integers in [0, r)."""

    lanes = 1
    ones = 1

    def constant(self, x: int) -> int:
        return x % MODULUS

    def add(self, a: int, b: int) -> int:
        return (a + b) % MODULUS

    def mul(self, a: int, b: int) -> int:
        return a * b % MODULUS

    def combine(self, terms: Sequence[tuple[int, int]], constant: int = 0) -> int:
        """Σ coefficient · value + constant."""
        return (sum(k * v for k, v in terms) + constant) % MODULUS

    def select(self, bit: int, a: int, b: int) -> int:
        return a if bit else b

    def bits_of(self, x: int, n: int) -> list[int]:
        return [x >> i & 1 for i in range(n)]

    def from_bits(self, bits: Sequence[int]) -> int:
        return sum(b << i for i, b in enumerate(bits)) % MODULUS
