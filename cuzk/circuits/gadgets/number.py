"""Field elements: bits of a number, packing, picking, insertion of an element among its siblings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuzk.circuits.emitter import ONE, Bit, Emitter, Num, Terms
from cuzk.circuits.field import CAPACITY, NUM_BITS
from cuzk.circuits.gadgets.boolean import and_, bit
from cuzk.circuits.gadgets.sha256 import sha256


def inputize(cs: Emitter, x: Num) -> Num:
    """A public input equal to x: the row input · 1 = x."""
    public = cs.input(x.value)
    cs.enforce([(public.var, 1)], [(ONE, 1)], [(x.var, 1)])
    return public


def equal(cs: Emitter, a: Num, b: Num) -> None:
    cs.enforce([(a.var, 1)], [(ONE, 1)], [(b.var, 1)])


def to_bits(cs: Emitter, x: Num) -> list[Bit]:
    """255 bits, least significant first, each with its row; then 0 · 0 = Σ 2^i b_i - x. Not range-checked."""
    values = [None] * NUM_BITS if cs.algebra is None else cs.algebra.bits_of(x.value, NUM_BITS)
    bits = [bit(cs, v) for v in values]
    if cs.recording:
        cs.enforce([], [], [*((b.variable, 1 << i) for i, b in enumerate(bits)), (x.var, -1)])
    return bits


def reverse_bytes_bits(bits: Sequence[Bit]) -> list[Bit]:
    """The bits of every byte in reverse: between the field's order and SHA-256's."""
    return [b for i in range(0, len(bits), 8) for b in reversed(bits[i : i + 8])]


def to_bytes_bits(cs: Emitter, x: Num) -> list[Bit]:
    """256 bits of x as SHA-256 takes them: little-endian bytes, one constant false bit of padding."""
    return reverse_bytes_bits([*to_bits(cs, x), cs.constant_bit(0)])


def _sum(bits: Sequence[Bit]) -> Terms:
    return [t for i, b in enumerate(bits) for t in b.terms(1 << i)]


def pack(cs: Emitter, bits: Sequence[Bit]) -> Num:
    """The number Σ 2^i b_i of at most 254 bits: aux x, row sum · 1 = x."""
    assert len(bits) <= CAPACITY
    x = cs.num(None if cs.algebra is None else cs.algebra.from_bits([b.value for b in bits]))
    if cs.recording:
        cs.enforce(_sum(bits), [(ONE, 1)], [(x.var, 1)])
    return x


def pack_into_input(cs: Emitter, bits: Sequence[Bit]) -> Num:
    """The same into one public input."""
    assert len(bits) <= CAPACITY
    public = cs.input(None if cs.algebra is None else cs.algebra.from_bits([b.value for b in bits]))
    if cs.recording:
        cs.enforce(_sum(bits), [(ONE, 1)], [(public.var, 1)])
    return public


def digest_to_number(cs: Emitter, digest: Sequence[Bit]) -> Num:
    """The first 254 bits of the digest's little-endian value: its top two bits are dropped."""
    return pack(cs, reverse_bytes_bits(digest)[:CAPACITY])


def sha256_of_numbers(cs: Emitter, numbers: Sequence[Num]) -> Num:
    """Every number's 256 bits, then the hash as a number."""
    bits = [b for x in numbers for b in to_bytes_bits(cs, x)]
    return digest_to_number(cs, sha256(cs, bits))


def pick(cs: Emitter, condition: Bit, a: Num, b: Num) -> Num:
    """condition ? a : b, the row (b - a) · condition = b - c."""
    value: Any = None
    if cs.algebra is not None:
        value = cs.algebra.select(condition.value, a.value, b.value)
    c = cs.num(value)
    if cs.recording:
        cs.enforce([(b.var, 1), (a.var, -1)], condition.terms(), [(b.var, 1), (c.var, -1)])
    return c


def insert(cs: Emitter, element: Num, bits: Sequence[Bit], siblings: Sequence[Num]) -> list[Num]:
    """The element at the position that `bits` give (least significant first) among 1, 3 or 7 siblings."""
    e, s = element, (element, *siblings)  # s[1] … s[arity - 1], as in the formulas

    def p(condition: Bit, a: Num, b: Num) -> Num:
        return pick(cs, condition, a, b)

    if len(siblings) == 1:
        (b0,) = bits
        return [p(b0, s[1], e), p(b0, e, s[1])]
    if len(siblings) == 3:
        b0, b1 = bits
        out = [p(b1, s[1], p(b0, s[1], e))]
        out.append(p(b1, s[2], p(b0, e, s[1])))
        out.append(p(b1, p(b0, s[3], e), s[2]))
        out.append(p(b1, p(b0, e, s[3]), s[3]))
        return out
    if len(siblings) != 7:
        raise ValueError(f"insertion among {len(siblings)} siblings is not defined: 1, 3 or 7")
    b0, b1, b2 = bits
    n = and_(cs, b0.invert(cs.ones), b1.invert(cs.ones))
    m = and_(cs, b0, b1)
    out = [p(b2, s[1], p(n, e, s[1]))]
    out.append(p(b2, s[2], p(b1, s[2], p(b0, e, s[1]))))
    out.append(p(b2, s[3], p(b1, p(b0, s[3], e), s[2])))
    out.append(p(b2, s[4], p(m, e, s[3])))
    out.append(p(b2, p(n, e, s[5]), s[4]))
    out.append(p(b2, p(b1, s[6], p(b0, e, s[5])), s[5]))
    out.append(p(b2, p(b1, p(b0, s[7], e), s[6]), s[6]))
    out.append(p(b2, p(m, e, s[7]), s[7]))
    return out
