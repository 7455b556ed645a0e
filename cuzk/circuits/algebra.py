"""Values of a run: one instance as Python integers, or many instances as columns, for the same gadget code.

Bits are integers whose k-th bit belongs to the k-th instance, so ^, & and | serve one instance and five thousand.
Field elements are integers in [0, r), or (instances, 4) uint64 arrays in Montgomery form; (1, 4) stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from cuzk import native
from cuzk.circuits.emitter import Place
from cuzk.circuits.field import MODULUS, to_mont
from cuzk.circuits.hashes import poseidon_mont, sha256_trace


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


@cache
def mont_row(x: int) -> np.ndarray:
    """A constant as (1, 4) Montgomery limbs."""
    row = np.frombuffer(to_mont(x % MODULUS).to_bytes(32, "little"), np.uint64).reshape(1, 4)
    return row


def bits_to_lanes(columns: Sequence[int], lanes: int) -> np.ndarray:
    """(lanes, columns) uint8 of bit columns."""
    width = (lanes + 7) // 8
    raw = np.frombuffer(b"".join([c.to_bytes(width, "little") for c in columns]), np.uint8).reshape(-1, width)
    return np.unpackbits(raw, axis=1, count=lanes, bitorder="little").T


def lanes_to_bits(values: np.ndarray) -> list[int]:
    """The inverse: (lanes, n) of 0 and 1 to n bit columns."""
    packed = np.packbits(values.T, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


class Columns:
    """Many instances ("lanes") at once. Gadgets that have a trace run natively, all lanes of a call together."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.ones = (1 << lanes) - 1

    def constant(self, x: int) -> np.ndarray:
        return mont_row(x)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return native.fr_add(b, a) if len(a) < len(b) else native.fr_add(a, b)

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return native.fr_mul(b, a) if len(a) < len(b) else native.fr_mul(a, b)

    def combine(self, terms: Sequence[tuple[int, np.ndarray]], constant: int = 0) -> np.ndarray:
        """Σ coefficient · value + constant."""
        total = mont_row(constant) if constant else None
        for k, v in terms:
            term = v if k == 1 else native.fr_mul(v, mont_row(k))
            total = term if total is None else self.add(total, term)
        return mont_row(0) if total is None else total

    def select(self, bit: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        chosen = bits_to_lanes([bit], self.lanes).astype(bool)
        return np.where(chosen, a, b)

    def bits_of(self, x: np.ndarray, n: int) -> list[int]:
        std = np.broadcast_to(native.fr_to_std(x), (self.lanes, 4))
        raw = np.ascontiguousarray(std).view(np.uint8)
        return lanes_to_bits(np.unpackbits(raw, axis=1, count=n, bitorder="little"))

    def from_bits(self, bits: Sequence[int]) -> np.ndarray:
        raw = np.zeros((self.lanes, 32), np.uint8)
        packed = np.packbits(bits_to_lanes(bits, self.lanes), axis=1, bitorder="little")
        raw[:, : packed.shape[1]] = packed
        return native.fr_from_std(raw.view(np.uint64))

    def poseidon(self, elements: Sequence[np.ndarray], place: Place, domain_tag: int | None = None) -> np.ndarray:
        rows = np.stack([np.broadcast_to(e, (self.lanes, 4)) for e in elements], axis=1)
        return poseidon_mont(rows, 1, domain_tag, place)

    def sha256_block(self, bits: Sequence[int], variable: np.ndarray, negated: np.ndarray, place: Place) -> list[int]:
        """The next state of 256 bits of state and 512 of block, all big-endian; `variable` and `negated` are masks of words."""
        packed = np.ascontiguousarray(np.packbits(bits_to_lanes(bits, self.lanes), axis=1))
        state = sha256_trace(packed.view(">u4").astype(np.uint32), variable, negated, place)
        return lanes_to_bits(np.unpackbits(state.astype(">u4").view(np.uint8), axis=1))
