"""The leaves that a PoSt opens: SHA-256 of randomness, sector and a running number.

    c = LE64(first 8 bytes of SHA-256(randomness | sector number, u64 LE | j, u64 LE)) mod nodes

API version 1.0 (every WinningPoSt, and the first WindowPoSt) counts j over the whole proof, 1.2 within each sector.
"""

from __future__ import annotations

import hashlib

from cuzk.circuits.post.shape import PostShape


def challenge(randomness: bytes, sector_number: int, j: int, nodes: int) -> int:
    digest = hashlib.sha256(randomness + sector_number.to_bytes(8, "little") + j.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:8], "little") % nodes


def place_challenges(
    shape: PostShape, version: str, randomness: bytes, sector_number: int, place: int, partition: int = 0
) -> list[int]:
    """The leaves that the sector at a place of the circuit opens, in a partition (both from 0)."""
    first = 0 if version == "1.2" else (partition * shape.sectors + place) * shape.challenges
    return [challenge(randomness, sector_number, first + m, shape.nodes) for m in range(shape.challenges)]


def sector_leaves(
    shape: PostShape, version: str, randomness: bytes, sector_number: int, place: int, partition: int = 0
) -> list[int]:
    """The leaves in a sector's vanilla proof: of a WinningPoSt those of all places, else those of its own place."""
    places = range(shape.sectors) if shape.kind == "winning" else [place]
    return [c for p in places for c in place_challenges(shape, version, randomness, sector_number, p, partition)]
