"""Single curve points as bytes, and their encodings.

The working form here is *be*: affine, canonical, big-endian; G1 `x‖y` (96 B), G2 `x.c0‖x.c1‖y.c0‖y.c1` (192 B),
infinity all zero. It is what the pairing library reads. Files use other forms: *mont* (snarkjs keys: Montgomery,
little-endian, c0 first), *zcash* (bellman, Filecoin: big-endian, c1 first, flags in the first byte) and decimal
strings (JSON).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from cuzk.groth16.field import FQ_MODULUS, FQ_R, FQ_R_INV

if TYPE_CHECKING:
    from py_arkworks_bls12381 import G1Point, G2Point

Point = TypeVar("Point")

FQ_BYTES = 48
G1_INFINITY = bytes(96)
COMPRESSED, INFINITY, LARGER_Y = 0x80, 0x40, 0x20

G1_GENERATOR = bytes.fromhex(
    "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
    "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1"
)
G2_GENERATOR = bytes.fromhex(
    "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
    "13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
    "0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"
    "0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be"
)


class PointError(ValueError):
    """An encoding that is not a point; the caller knows the file."""


class NotInGroup(PointError):
    """A well-formed encoding whose point is not on the curve, or outside the subgroup of order r: a proof that holds one is
    invalid, a key is malformed.
    """


def coordinates(be: bytes) -> list[int]:
    """The 2 or 4 coordinates of a *be* point."""
    return [int.from_bytes(be[i : i + FQ_BYTES], "big") for i in range(0, len(be), FQ_BYTES)]


def from_coordinates(values: list[int]) -> bytes:
    """A *be* point from 2 or 4 coordinates below q. Raises PointError."""
    for value in values:
        if not 0 <= value < FQ_MODULUS:
            raise PointError("a coordinate is not below the modulus of the base field")
    return b"".join(v.to_bytes(FQ_BYTES, "big") for v in values)


def from_mont(array: np.ndarray) -> bytes:
    """One mont point, `(12,)` or `(24,)` limbs (or (1, …)), as *be*. Raises PointError for coordinates ≥ q."""
    raw = np.ascontiguousarray(array).tobytes()
    values = [int.from_bytes(raw[i : i + FQ_BYTES], "little") for i in range(0, len(raw), FQ_BYTES)]
    if any(v >= FQ_MODULUS for v in values):
        raise PointError("a coordinate is not below the modulus of the base field")
    return b"".join((v * FQ_R_INV % FQ_MODULUS).to_bytes(FQ_BYTES, "big") for v in values)


def to_mont(be: bytes) -> np.ndarray:
    """A *be* point as `(1, 12)` or `(1, 24)` mont limbs."""
    raw = b"".join((v * FQ_R % FQ_MODULUS).to_bytes(FQ_BYTES, "little") for v in coordinates(be))
    return np.frombuffer(raw, dtype="<u8").reshape(1, -1).copy()


def _swap(be: bytes) -> bytes:
    """c0 first ↔ c1 first; G1 is left alone."""
    if len(be) == 96:
        return be
    return be[48:96] + be[:48] + be[144:] + be[96:144]


def to_zcash(be: bytes) -> bytes:
    """Uncompressed ZCash encoding."""
    if not any(be):
        return bytes([INFINITY]) + be[1:]
    return _swap(be)


def from_zcash(data: bytes) -> bytes:
    """A *be* point from its uncompressed ZCash encoding (96 or 192 B). Raises PointError; curve membership is not
    checked.
    """
    flags = data[0] & 0xE0
    if flags & COMPRESSED:
        raise PointError("the compressed flag is set where an uncompressed point belongs")
    if flags & LARGER_Y:
        raise PointError("the sign flag is set on an uncompressed point")
    if flags & INFINITY:
        if any(data[1:]) or data[0] != INFINITY:
            raise PointError("the infinity flag is set but the rest is not zero")
        return bytes(len(data))
    be = _swap(data)
    if not any(be):
        raise PointError("all zero, without the infinity flag")
    from_coordinates(coordinates(be))
    return be


def compress(be: bytes) -> bytes:
    """The 48- or 96-byte ZCash encoding."""
    half = len(be) // 2
    if not any(be):
        return bytes([COMPRESSED | INFINITY]) + bytes(half - 1)
    zcash = _swap(be)
    y = int.from_bytes(zcash[half:], "big")
    negated = [-v % FQ_MODULUS for v in (coordinates(zcash[half:]))]
    larger = y > int.from_bytes(b"".join(v.to_bytes(FQ_BYTES, "big") for v in negated), "big")
    return bytes([zcash[0] | COMPRESSED | (LARGER_Y if larger else 0)]) + zcash[1:half]


def decompress(data: bytes) -> bytes:
    """A *be* point from 48 or 96 compressed bytes; it is on the curve and in the subgroup. Raises PointError."""
    from py_arkworks_bls12381 import G1Point, G2Point

    if not data[0] & COMPRESSED:
        raise PointError("the compressed flag is not set")
    try:
        point = (G1Point if len(data) == 48 else G2Point).from_compressed_bytes(bytes(data))
    except ValueError as error:
        from_coordinates(coordinates(bytes([data[0] & 0x1F]) + bytes(data[1:])))
        if data[0] & INFINITY:
            raise PointError("the infinity flag is set but the rest is not zero") from error
        raise NotInGroup("not the encoding of a point of the subgroup") from error
    if point.to_compressed_bytes() != bytes(data):
        raise PointError("not the canonical encoding of its point")
    return bytes(point.to_xy_bytes_be())


def pairing_tower(g1: bytes, g2: bytes) -> list[list[list[str]]]:
    """e(g1, g2) as snarkjs writes an element of Fq12: 2 × 3 × 2 decimal strings, lowest coefficients first. Raises PointError."""
    from py_arkworks_bls12381 import GT

    raw = bytes.fromhex(str(GT.pairing(load_g1(g1), load_g2(g2))))
    flat = [str(int.from_bytes(raw[i : i + FQ_BYTES], "little")) for i in range(0, len(raw), FQ_BYTES)]
    return [[flat[6 * i + 2 * j : 6 * i + 2 * j + 2] for j in range(3)] for i in range(2)]


def load(be: bytes) -> G1Point | G2Point:
    """The pairing library's point. Raises PointError when it is off the curve or outside the subgroup of order r."""
    return load_g1(be) if len(be) == 96 else load_g2(be)


def load_g1(be: bytes) -> G1Point:
    """`load` for G1."""
    from py_arkworks_bls12381 import G1Point

    return _loaded(be, G1Point.from_xy_bytes_be)


def load_g2(be: bytes) -> G2Point:
    """`load` for G2."""
    from py_arkworks_bls12381 import G2Point

    return _loaded(be, G2Point.from_xy_bytes_be)


def _loaded(be: bytes, read: Callable[[bytes], Point]) -> Point:
    from_coordinates(coordinates(be))
    try:
        return read(be)
    except ValueError as error:
        where = "outside the subgroup of order r" if "subgroup" in str(error) else "not on the curve"
        raise NotInGroup(f"the point is {where}") from error
