"""The statement of a PoSt, as a JSON file: randomness, and the sectors with their commitments.

Keys: `registered_post` (0-14), or `kind` and `sector` (and `api_version`) instead; `randomness_hex`; `sectors`, an array of
`{"sector_number": N, "comm_r_hex": HEX}` by rising number; `partition` where the sectors are those of one later partition.
Curio's public side of a PoSt (`Randomness`, `Proofs`, `ChallengedSectors`) is read too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from cuzk.circuits.post.shape import PostShape
from cuzk.errors import FormatError, InputError
from cuzk.porep.ids import hex32
from cuzk.porep.statement import element_bytes, read_json
from cuzk.post.challenges import place_challenges, sector_leaves
from cuzk.post.registered import RegisteredPost, registered_post

MAX_NUMBER = (1 << 64) - 1
MAX_FILE_BYTES = 1 << 26


@dataclass(frozen=True)
class PostSector:
    number: int
    comm_r: bytes


@dataclass(frozen=True)
class PostStatement:
    registered: RegisteredPost
    randomness: bytes
    sectors: tuple[PostSector, ...]
    first_partition: int = 0
    """The number of the partition that the first sectors are in; only API version 1.0 of WindowPoSt depends on it."""

    def __post_init__(self) -> None:
        element_bytes(self.randomness, "randomness")
        if not self.sectors:
            raise InputError("sectors: there are none")
        if self.shape.kind == "winning" and len(self.sectors) != 1:
            raise InputError(f"sectors: {len(self.sectors)}; a WinningPoSt is of one sector")
        for i, sector in enumerate(self.sectors):
            element_bytes(sector.comm_r, f"sectors[{i}].comm_r")
            if i and sector.number <= self.sectors[i - 1].number:
                raise InputError(f"sectors[{i}].sector_number: {sector.number} does not rise: the order is that of the numbers")

    @property
    def shape(self) -> PostShape:
        return self.registered.shape

    @property
    def partitions(self) -> int:
        return -(-len(self.sectors) // self.shape.real_sectors)

    def partition_sectors(self, k: int) -> Sequence[PostSector]:
        """The sectors of the k-th of these partitions."""
        most = self.shape.real_sectors
        return self.sectors[k * most : (k + 1) * most]

    def leaves(self, i: int) -> list[int]:
        """The leaves that the vanilla proof of sector i of the list opens."""
        k, place = divmod(i, self.shape.real_sectors)
        number = self.sectors[i].number
        return sector_leaves(self.shape, self.registered.version, self.randomness, number, place, self.first_partition + k)

    def public_inputs(self, k: int) -> list[int]:
        """The k-th partition's, without ONE: of each sector comm_r and its leaves. Places behind the last sector of a
        WindowPoSt repeat it."""
        real = self.partition_sectors(k)
        out: list[int] = []
        for place in range(self.shape.sectors):
            its = min(place, len(real) - 1)
            drawn_at = place if self.shape.kind == "winning" else its
            out.append(int.from_bytes(real[its].comm_r, "little"))
            out += place_challenges(
                self.shape, self.registered.version, self.randomness, real[its].number, drawn_at, self.first_partition + k
            )
        return out

    def all_public_inputs(self) -> list[list[int]]:
        return [self.public_inputs(k) for k in range(self.partitions)]

    def document(self) -> dict[str, Any]:
        shape = self.shape
        out: dict[str, Any] = {
            "registered_post": self.registered.number, "kind": shape.kind, "sector": shape.size,
            "api_version": self.registered.version, "randomness_hex": self.randomness.hex(),
            "sectors": [{"sector_number": s.number, "comm_r_hex": s.comm_r.hex()} for s in self.sectors],
        }  # fmt: skip
        if self.first_partition:
            out["partition"] = self.first_partition
        return out


def _number(value: Any, what: str, most: int = MAX_NUMBER) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise InputError(f"{what}: {'missing' if value is None else f'must be a whole number from 0 to {most}, not {value!r}'}")
    return value


def _hex(value: Any, what: str) -> bytes:
    if not isinstance(value, str):
        raise InputError(f"{what}: {'missing' if value is None else 'must be a string of hexadecimal digits'}")
    return hex32(value, what)


def _registered(document: dict[str, Any]) -> RegisteredPost:
    if "registered_post" in document:
        found = RegisteredPost(_number(document["registered_post"], "registered_post"))
        for key, ours in (("kind", found.shape.kind), ("sector", found.shape.size), ("api_version", found.version)):
            if document.get(key) not in (None, ours):
                raise InputError(f"{key}: {document[key]!r}, but registered_post {found.number} is {found.name}")
        return found
    kind, size, version = (document.get(k) for k in ("kind", "sector", "api_version"))
    if not isinstance(kind, str) or not isinstance(size, str) or not isinstance(version, str | None):
        raise InputError("registered_post: missing (or kind and sector in its place, which are strings)")
    return registered_post(kind, size, version)


def parse_statement(document: Any) -> PostStatement:
    """Raises InputError naming the key."""
    if not isinstance(document, dict):
        raise InputError("a statement is a JSON object")
    if "ChallengedSectors" in document:
        return _parse_curio(document)
    registered = _registered(document)
    listed = document.get("sectors")
    if not isinstance(listed, list) or not all(isinstance(s, dict) for s in listed):
        raise InputError("sectors: must be an array of objects")
    sectors = tuple(
        PostSector(_number(s.get("sector_number"), f"{at}.sector_number"), _hex(s.get("comm_r_hex"), f"{at}.comm_r_hex"))
        for at, s in ((f"sectors[{i}]", s) for i, s in enumerate(listed))
    )
    first = _number(document.get("partition", 0), "partition", 1 << 32)
    return PostStatement(registered, _hex(document.get("randomness_hex"), "randomness_hex"), sectors, first)


SEALED_CID = bytes((0x01, 0x82, 0xE2, 0x03, 0x81, 0xE8, 0x02, 0x20))
"""CID version 1, codec fil-commitment-sealed (0xf102), multihash poseidon-bls12_381-a2-fc1 (0xb401) of 32 bytes."""


def sealed_cid(text: str, what: str) -> bytes:
    """comm_r in a CID as the chain writes it. Raises InputError."""
    try:
        if text[:1] != "b":
            raise ValueError("it must begin with b, for base32")
        raw = base64.b32decode(text[1:].upper() + "=" * (-len(text[1:]) % 8))
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{what}: not a CID: {error}") from None
    if raw[: len(SEALED_CID)] != SEALED_CID or len(raw) != len(SEALED_CID) + 32:
        raise InputError(f"{what}: not the CID of a sealed sector (Poseidon, 32 bytes)")
    return raw[len(SEALED_CID) :]


def _parse_curio(document: dict[str, Any]) -> PostStatement:
    proofs, listed = document.get("Proofs"), document["ChallengedSectors"]
    if not isinstance(proofs, list) or len(proofs) != 1 or not isinstance(proofs[0], dict):
        raise InputError("Proofs: must be an array of one object")
    if not isinstance(listed, list) or not all(isinstance(s, dict) for s in listed):
        raise InputError("ChallengedSectors: must be an array of objects")
    try:
        randomness = base64.b64decode(document.get("Randomness", ""), validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise InputError(f"Randomness: not base64: {error}") from None
    if len(randomness) != 32:
        raise InputError(f"Randomness: 32 bytes are needed, not {len(randomness)}")
    sectors = []
    for i, entry in enumerate(listed):
        at, cid = f"ChallengedSectors[{i}]", entry.get("SealedCID")
        text = cid.get("/") if isinstance(cid, dict) else None
        if not isinstance(text, str):
            raise InputError(f"{at}.SealedCID: must be an object with the CID under '/'")
        sectors.append(PostSector(_number(entry.get("SectorNumber"), f"{at}.SectorNumber"), sealed_cid(text, f"{at}.SealedCID")))
    registered = RegisteredPost(_number(proofs[0].get("PoStProof"), "Proofs[0].PoStProof"))
    return PostStatement(registered, randomness, tuple(sectors))


def read_statement(path: str | PathLike[str]) -> PostStatement:
    """Raises InputError that begins with the file."""
    document = read_json(path, MAX_FILE_BYTES)
    try:
        return parse_statement(document)
    except InputError as error:
        raise FormatError(path, str(error)) from error
