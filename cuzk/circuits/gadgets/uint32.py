"""32-bit words (least significant bit first) and their sums, checked through one accumulator for many sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuzk.circuits.emitter import ONE, Bit, Emitter, Terms
from cuzk.circuits.field import CAPACITY
from cuzk.circuits.gadgets.boolean import bit

Word = list[Bit]


def constant(cs: Emitter, value: int) -> Word:
    return [cs.constant_bit(value >> i & 1) for i in range(32)]


def from_bits_be(bits: Sequence[Bit]) -> Word:
    return list(reversed(bits))


def rotr(word: Word, n: int) -> Word:
    return word[n:] + word[:n]


def shr(cs: Emitter, word: Word, n: int) -> Word:
    return word[n:] + [cs.constant_bit(0)] * n


def bitwise(cs: Emitter, gate: Callable[..., Bit], *words: Word) -> Word:
    """The gate on bit 0 of all words, then bit 1, …"""
    return [gate(cs, *bits) for bits in zip(*words, strict=True)]


class MultiEq:
    """Collects equalities of narrow sums: each takes its own bits of one wide row `L · 1 = R`."""

    def __init__(self, cs: Emitter) -> None:
        self.cs, self.used = cs, 0
        self.left: Terms = []
        self.right: Terms = []

    def equal(self, bits: int, left: Terms, right: Terms) -> None:
        if self.used + bits >= CAPACITY:
            self.flush()
        scale = 1 << self.used
        self.left += [(v, k * scale) for v, k in left]
        self.right += [(v, k * scale) for v, k in right]
        self.used += bits

    def flush(self) -> None:
        if self.used:
            with self.cs.scope("sums"):
                self.cs.enforce(self.left, [(ONE, 1)], self.right)
            self.left, self.right, self.used = [], [], 0


def add_many(cs: Emitter, sums: MultiEq, words: Sequence[Word]) -> Word:
    """The sum mod 2^32 of 2 to 10 words. All constant: a constant. Else one bit (with its row) for each bit of the
    largest possible sum; the equality goes to the accumulator."""
    if all(b.var is None for w in words for b in w):
        total = sum(b.const << i for w in words for i, b in enumerate(w))
        return constant(cs, total & 0xFFFFFFFF)
    width = (len(words) * 0xFFFFFFFF).bit_length()
    values: list[Any] = [None] * width
    if cs.algebra is not None:
        values = _sum_columns([[b.value for b in w] for w in words], width)
    result = [bit(cs, v) for v in values]
    if cs.recording:
        left: Terms = []
        for word in words:
            for i, b in enumerate(word):
                left += b.terms(1 << i)
        sums.equal(width, left, [(b.variable, 1 << i) for i, b in enumerate(result)])
    return result[:32]


def _sum_columns(words: list[list[Any]], width: int) -> list[Any]:
    """Bit columns of the sum: for each weight, full adders reduce the column; carries go to the next weight. Only
    ^, & and | are used, so a column may hold any number of instances."""
    columns: list[list[Any]] = [[w[i] for w in words if not (isinstance(w[i], int) and w[i] == 0)] for i in range(32)]
    columns += [[] for _ in range(width - 32 + 1)]
    out: list[Any] = []
    for i in range(width):
        column, carry = columns[i], columns[i + 1]
        while len(column) > 2:
            a, b, c = column.pop(), column.pop(), column.pop()
            ab = a ^ b
            column.append(ab ^ c)
            carry.append((a & b) | (ab & c))
        if len(column) == 2:
            a, b = column
            column = [a ^ b]
            carry.append(a & b)
        out.append(column[0] if column else 0)
    return out
