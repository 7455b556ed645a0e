"""The circuit's hash in section 10 of a phase 2 key: snarkjs compares it when it verifies a ceremony.

BLAKE2b-512 over, all big-endian and uncompressed (infinity all zero, c1 first): alpha G1, beta G1, beta G2, gamma G2,
delta G1, delta G2; then IC, tau^(i+m) − tau^i for i < m − 1, L, A, B in G1, B in G2, each behind its u32 count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import numpy as np

from cuzk import native
from cuzk.groth16.formats.ptau import PtauFile
from cuzk.groth16.formats.zkey import ZkeyHeader

CHUNK = 1 << 16
TAU_POWERS_G1 = 2
SNARKJS_CHUNK = 1 << 14


class CircuitHash:
    """Hashes lists while they pass by on their way into the file."""

    def __init__(self, header: ZkeyHeader) -> None:
        self._hash = blake2b(digest_size=64)
        h = header
        for point in (h.alpha_g1, h.beta_g1, h.beta_g2, h.gamma_g2, h.delta_g1, h.delta_g2):
            self._add(point)

    def _add(self, points: np.ndarray) -> None:
        encode = native.g1_to_be_uncompressed if points.shape[1] == 12 else native.g2_to_be_uncompressed
        raw = np.array(encode(np.ascontiguousarray(points)))
        raw[~points.any(axis=1)] = 0
        self._hash.update(raw.data)

    def passing(self, count: int, chunks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The chunks of a list of `count` points, hashed as they go."""
        self._hash.update(struct.pack(">I", count))
        for chunk in chunks:
            self._add(chunk)
            yield chunk

    def add_monomials(self, ptau: PtauFile, m: int) -> None:
        """The H points of the other form, which the key itself does not hold.

        Their count says m − 1. snarkjs hashes them in chunks of 2^14 that are always full, so that for a larger m there
        are m. The last one needs tau^(2m−1): `needs_larger_ptau`.
        """
        count = m - 1 if m - 1 <= SNARKJS_CHUNK else m
        powers = ptau.points(TAU_POWERS_G1)
        self._hash.update(struct.pack(">I", m - 1))
        count = min(count, len(powers) - m)
        for first in range(0, count, CHUNK):
            last = min(first + CHUNK, count)
            low = np.ascontiguousarray(powers[first:last])
            high = np.ascontiguousarray(powers[first + m : last + m])
            self._add(native.g1_add(high, native.g1_neg(low)))

    def digest(self) -> bytes:
        return self._hash.digest()


def needs_larger_ptau(ptau: PtauFile, m: int) -> bool:
    """Whether the hash of a circuit of domain m cannot equal snarkjs's with this file.

    Its section of powers ends at tau^(2m−2) if its power is the circuit's; snarkjs then hashes what lies behind.
    """
    return m - 1 > SNARKJS_CHUNK and len(ptau.points(TAU_POWERS_G1)) < 2 * m
