"""SHA-256: the compression function and the padded hash, bits big-endian as in FIPS 180-4."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cuzk.circuits.emitter import Bit, Emitter, Gadget, Place
from cuzk.circuits.gadgets import uint32
from cuzk.circuits.gadgets.boolean import ch, maj, xor
from cuzk.circuits.gadgets.uint32 import MultiEq, Word, add_many, bitwise, rotr, shr

if TYPE_CHECKING:
    from cuzk.circuits.algebra import Columns


def _primes(n: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < n:
        if all(candidate % p for p in found):
            found.append(candidate)
        candidate += 1
    return found


def _root_fraction(x: int, degree: int) -> int:
    """First 32 bits of the fraction of the degree-th root of x."""
    target, low, high = x << (32 * degree), 0, 1 << 40
    while low < high:
        mid = (low + high + 1) // 2
        low, high = (mid, high) if mid**degree <= target else (low, mid - 1)
    return low & 0xFFFFFFFF


ROUND_CONSTANTS = tuple(_root_fraction(p, 3) for p in _primes(64))
INITIAL_STATE = tuple(_root_fraction(p, 2) for p in _primes(8))


class _Deferred:
    """A word not yet summed: its operands are kept until the word is used, so that sums merge."""

    def __init__(self, operands: list[Word]) -> None:
        self.operands = operands

    def compute(self, cs: Emitter, sums: MultiEq, extra: Sequence[Word] = ()) -> Word:
        operands = [*self.operands, *extra]
        return operands[0] if len(operands) == 1 else add_many(cs, sums, operands)


def _xor3(cs: Emitter, a: Word, b: Word, c: Word) -> Word:
    return bitwise(cs, xor, bitwise(cs, xor, a, b), c)


def _compress(cs: Emitter, args: Sequence[Bit]) -> list[Bit]:
    state = [uint32.from_bits_be(args[32 * i : 32 * i + 32]) for i in range(8)]
    w = [uint32.from_bits_be(args[256 + 32 * i : 288 + 32 * i]) for i in range(16)]
    sums = MultiEq(cs)
    for i in range(16, 64):
        with cs.scope(f"message word {i}"):
            x, y = w[i - 15], w[i - 2]
            s0 = _xor3(cs, rotr(x, 7), rotr(x, 18), shr(cs, x, 3))
            s1 = _xor3(cs, rotr(y, 17), rotr(y, 19), shr(cs, y, 10))
            w.append(add_many(cs, sums, [w[i - 16], s0, w[i - 7], s1]))
    a_sum, b, c, d = _Deferred([state[0]]), state[1], state[2], state[3]
    e_sum, f, g, h = _Deferred([state[4]]), state[5], state[6], state[7]
    for i in range(64):
        with cs.scope(f"round {i}"):
            e = e_sum.compute(cs, sums)
            s1 = _xor3(cs, rotr(e, 6), rotr(e, 11), rotr(e, 25))
            first = [h, s1, bitwise(cs, ch, e, f, g), uint32.constant(cs, ROUND_CONSTANTS[i]), w[i]]
            a = a_sum.compute(cs, sums)
            s0 = _xor3(cs, rotr(a, 2), rotr(a, 13), rotr(a, 22))
            second = [s0, bitwise(cs, maj, a, b, c)]
            h, g, f, e_sum = g, f, e, _Deferred([*first, d])
            d, c, b, a_sum = c, b, a, _Deferred([*first, *second])
    with cs.scope("final sums"):
        out = [a_sum.compute(cs, sums, [state[0]])]
        out += [add_many(cs, sums, [s, x]) for s, x in zip(state[1:4], (b, c, d), strict=True)]
        out.append(e_sum.compute(cs, sums, [state[4]]))
        out += [add_many(cs, sums, [s, x]) for s, x in zip(state[5:], (f, g, h), strict=True)]
    sums.flush()
    return [b for word in out for b in reversed(word)]


@lru_cache(64)
def _masks(pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """24 words each: which of 768 bits are variables, by their patterns, and which of these are negated."""
    marks = np.frombuffer(pattern.encode(), np.uint8)
    both = [np.packbits(np.isin(marks, list(letters))).view(">u4").astype(np.uint32) for letters in (b"bn", b"n")]
    return both[0], both[1]


def _trace(algebra: Columns, args: Sequence[Bit], place: Place) -> list[int]:
    masks = _masks("".join([b.pattern for b in args]))
    return algebra.sha256_block([b.value for b in args], *masks, place)


COMPRESS = Gadget("sha256 block", _compress, _trace)
"""Arguments: 256 bits of the state, 512 of the block; outputs: 256 bits of the next state."""


def pad(cs: Emitter, bits: Sequence[Bit]) -> list[Bit]:
    """Standard padding, its bits constant."""
    n = len(bits)
    tail = [1] + [0] * ((447 - n) % 512) + [n >> i & 1 for i in reversed(range(64))]
    return [*bits, *map(cs.constant_bit, tail)]


def sha256(cs: Emitter, bits: Sequence[Bit]) -> list[Bit]:
    """256 bits of the digest of `bits` (a whole number of bytes, most significant bit of each byte first)."""
    if len(bits) % 8:
        raise ValueError("SHA-256 takes whole bytes")
    padded = pad(cs, bits)
    state: Sequence[Bit] = [cs.constant_bit(v >> i & 1) for v in INITIAL_STATE for i in reversed(range(32))]
    for start in range(0, len(padded), 512):
        state = cs.call(COMPRESS, [*state, *padded[start : start + 512]])
    return list(state)
