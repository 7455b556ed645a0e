"""Identities of a sector and what is derived from them by hashing.

PoRep id: 32 bytes, the registered proof type as u64 little-endian, then zeros; types 0..4 are API version 1.0, 5..9 are
1.1 (2 KiB, 8 MiB, 512 MiB, 32 GiB, 64 GiB in both).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

from cuzk.circuits.porep.shape import SHAPES, Shape
from cuzk.errors import InputError

MAX_SECTOR_NUMBER = (1 << 64) - 1


def hex32(text: str, what: str) -> bytes:
    """32 bytes of hexadecimal digits. Raises InputError naming `what`."""
    digits = text.strip().removeprefix("0x")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raise InputError(f"{what}: not hexadecimal digits: {text[:80]!r}") from None
    if len(raw) != 32:
        raise InputError(f"{what}: 32 bytes (64 digits) are needed, not {len(raw)}")
    return raw


def porep_id(shape: Shape, version: str) -> bytes:
    """The id of the registered proof type of a sector in API version `1.0` or `1.1`."""
    if version not in ("1.0", "1.1"):
        raise InputError(f"unknown API version {version!r}: 1.0 or 1.1")
    number = shape.registered_id + (len(SHAPES) if version == "1.1" else 0)
    return number.to_bytes(8, "little") + bytes(24)


def version_of(porep_id: bytes) -> str:
    """`1.0` or `1.1`. Raises InputError for an id of no registered type."""
    number = int.from_bytes(porep_id[:8], "little")
    if number >= 2 * len(SHAPES):
        raise InputError(f"porep id: registered types are 0 … {2 * len(SHAPES) - 1}, not {number}")
    return "1.0" if number < len(SHAPES) else "1.1"


def domain_seed(tag: bytes, porep_id: bytes) -> bytes:
    return hashlib.sha256(tag + porep_id).digest()


def truncated(digest: bytes) -> bytes:
    """A digest as a field element: the two top bits of its little-endian value cleared."""
    return digest[:31] + bytes([digest[31] & 0x3F])


@dataclass(frozen=True)
class SectorIds:
    """Who sealed what: the inputs of the replica id."""

    prover_id: bytes = bytes(32)
    sector_number: int = 0
    ticket: bytes = bytes(32)
    porep_id: bytes = bytes(32)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name != "sector_number" and len(value) != 32:
                raise InputError(f"{f.name.replace('_', ' ')}: 32 bytes are needed, not {len(value)}")
        if not 0 <= self.sector_number <= MAX_SECTOR_NUMBER:
            raise InputError(f"sector number {self.sector_number} is outside 0 … 2^64 - 1")
        version_of(self.porep_id)

    def replica_id(self, comm_d: bytes) -> bytes:
        number = self.sector_number.to_bytes(8, "big")
        return truncated(hashlib.sha256(self.prover_id + number + self.ticket + comm_d + self.porep_id).digest())


def challenges(shape: Shape, replica_id: bytes, seed: bytes, partition: int) -> list[int]:
    """The nodes that a partition (from 0) must open; never node 0."""
    first = partition * shape.challenges
    digests = (hashlib.sha256(replica_id + seed + i.to_bytes(4, "little")).digest() for i in
               range(first, first + shape.challenges))  # fmt: skip
    return [int.from_bytes(d, "little") % (shape.nodes - 1) + 1 for d in digests]
