"""The random numbers of snarkjs's ceremonies: ChaCha20 words, field elements and group elements from a seed.

Every value is part of the format: the key of a beacon and the point that a transcript is hashed to must come out the same
everywhere. A field element is a run of 64-bit numbers (high word first), cut to the field's bits, drawn again while not below
the modulus, and taken *as Montgomery form*. A point is an x of that kind and a bit for the larger y, drawn until x is on the
curve, times the cofactor. Source: snarkjs 0.7 and ffjavascript, whose results the tests compare with.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from cuzk.groth16.field import FQ_MODULUS, FQ_R_INV, FR_MODULUS, FR_R

Fq2 = tuple[int, int]
Point = tuple[Fq2, Fq2] | None
"""Affine over Fq2 (G1 has zero second coordinates); None is infinity."""
G1_COFACTOR = 0x396C8C005555E1568C00AAAB0000AAAB
G2_COFACTOR = int(
    "5d543a95414e7f1091d50792876a202cd91de4547085abaa68a205b2e5a7ddfa628f1cb4d9e82ef21537e293a6691ae1616ec6e786f0c70cf1c38e31c7238e5",
    16,
)
_Q = FQ_MODULUS
_SIGMA = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_WORD = 0xFFFFFFFF


def _block(state: list[int]) -> list[int]:
    """The 16 words that ChaCha20 makes of a state."""
    x = list(state)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for first, second, third, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[first] = (x[first] + x[second]) & _WORD
            turned = x[third] ^ x[first]
            x[third] = ((turned << bits) | (turned >> (32 - bits))) & _WORD

    for _ in range(10):
        for column in range(4):
            quarter(column, 4 + column, 8 + column, 12 + column)
        for k in range(4):
            quarter(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    return [(a + b) & _WORD for a, b in zip(x, state, strict=True)]


class Randomness:
    """A stream of words from 32 bytes of seed."""

    def __init__(self, seed: bytes) -> None:
        self._key = struct.unpack(">8I", seed[:32])
        self._words = self._stream()

    def _stream(self) -> Iterator[int]:
        counter = 0
        while True:
            yield from _block([*_SIGMA, *self._key, *((counter >> (32 * k)) & _WORD for k in range(4))])
            counter += 1

    @staticmethod
    def of_beacon(beacon: bytes, iterations_exp: int) -> Randomness:
        """The stream of a public value: SHA-256, 2^iterations_exp times."""
        digest = beacon
        for _ in range(1 << iterations_exp):
            digest = hashlib.sha256(digest).digest()
        return Randomness(digest)

    def bit(self) -> bool:
        """One bit of a word."""
        return bool(next(self._words) & 1)

    def _below(self, modulus: int) -> int:
        bits = modulus.bit_length()
        while True:
            value = 0
            for k in range((bits + 63) // 64):
                high, low = next(self._words), next(self._words)
                value += ((high << 32) | low) << (64 * k)
            value &= (1 << bits) - 1
            if value < modulus:
                return value

    def fr(self) -> int:
        """A scalar, canonical."""
        return self._below(FR_MODULUS) * pow(FR_R, -1, FR_MODULUS) % FR_MODULUS

    def fq(self) -> int:
        """An element of the base field, canonical."""
        return self._below(FQ_MODULUS) * FQ_R_INV % _Q

    def g1(self) -> bytes:
        """A point of G1, *be*."""
        while True:
            x, larger = (self.fq(), 0), self.bit()
            y = _sqrt(_add(_mul(_mul(x, x), x), (4, 0)))
            if y is not None and y[1] == 0:
                return _encode(_times(G1_COFACTOR, (x, _signed(y, larger))), 1)

    def g2(self) -> bytes:
        """A point of G2, *be*."""
        while True:
            x, larger = (self.fq(), self.fq()), self.bit()
            y = _sqrt(_add(_mul(_mul(x, x), x), (4, 4)))
            if y is not None:
                return _encode(_times(G2_COFACTOR, (x, _signed(y, larger))), 2)


def hash_to_g2(transcript: bytes) -> bytes:
    """The point of G2 that belongs to a transcript of 64 bytes, *be*."""
    return Randomness(transcript).g2()


def _add(a: Fq2, b: Fq2) -> Fq2:
    return (a[0] + b[0]) % _Q, (a[1] + b[1]) % _Q


def _sub(a: Fq2, b: Fq2) -> Fq2:
    return (a[0] - b[0]) % _Q, (a[1] - b[1]) % _Q


def _mul(a: Fq2, b: Fq2) -> Fq2:
    return (a[0] * b[0] - a[1] * b[1]) % _Q, (a[0] * b[1] + a[1] * b[0]) % _Q


def _inverse(a: Fq2) -> Fq2:
    norm = pow(a[0] * a[0] + a[1] * a[1], -1, _Q)
    return a[0] * norm % _Q, -a[1] * norm % _Q


def _sqrt_fq(a: int) -> int | None:
    root = pow(a, (_Q + 1) // 4, _Q)  # q is 3 modulo 4
    return root if root * root % _Q == a % _Q else None


def _sqrt(a: Fq2) -> Fq2 | None:
    """A square root in Fq2, or None. With a second coordinate of zero it is one in Fq, or u times one."""
    if a[1] == 0:
        real = _sqrt_fq(a[0])
        if real is not None:
            return real, 0
        imaginary = _sqrt_fq(-a[0] % _Q)
        return None if imaginary is None else (0, imaginary)
    norm = _sqrt_fq((a[0] * a[0] + a[1] * a[1]) % _Q)
    if norm is None:
        return None
    half = (_Q + 1) // 2
    real = _sqrt_fq((a[0] + norm) * half % _Q)
    if real is None:
        real = _sqrt_fq((a[0] - norm) * half % _Q)
    if real is None:
        return None
    return real, a[1] * pow(2 * real, -1, _Q) % _Q


def _signed(y: Fq2, larger: bool) -> Fq2:
    """±y, the larger or the smaller one: by the second coordinate, by the first where that is zero."""
    decisive = y[1] or y[0]
    return y if (decisive > (_Q - 1) // 2) == larger else _sub((0, 0), y)


def _sum(p: Point, q: Point) -> Point:
    if p is None or q is None:
        return p or q
    (x1, y1), (x2, y2) = p, q
    if x1 == x2:
        if y1 != y2 or y1 == (0, 0):
            return None
        square = _mul(x1, x1)
        slope = _mul(_add(_add(square, square), square), _inverse(_add(y1, y1)))
    else:
        slope = _mul(_sub(y2, y1), _inverse(_sub(x2, x1)))
    x3 = _sub(_sub(_mul(slope, slope), x1), x2)
    return x3, _sub(_mul(slope, _sub(x1, x3)), y1)


def _times(scalar: int, p: Point) -> Point:
    total: Point = None
    for bit in bin(scalar)[2:]:
        total = _sum(total, total)
        total = _sum(total, p) if bit == "1" else total
    return total


def _encode(p: Point, group: int) -> bytes:
    if p is None:
        return bytes(96 * group)
    return b"".join(c.to_bytes(48, "big") for coordinate in p for c in coordinate[:group])
