"""Identities of a sector and what is derived from them by hashing.

PoRep id: 32 bytes, the number of the registered proof type as u64 little-endian, then zeros (cuzk/porep/registered.py).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

from cuzk.circuits.porep.shape import Shape
from cuzk.errors import InputError
from cuzk.porep.registered import Registered, registered_id, variant_option

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
    """The id of a sector's registered proof type: API version `1.0`, `1.1`, or `synthetic`, `non-interactive`."""
    return Registered(shape, variant_option(version)).porep_id


def version_of(porep_id: bytes) -> str:
    """The API version whose graph the type has, `1.0` or `1.1`. Raises InputError for an id of no registered type."""
    return registered_id(porep_id).variant.graph


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
