"""Bits: allocation, xor, and, ch, maj. Constants and negations cost nothing and are folded."""

from __future__ import annotations

from typing import Any

from cuzk.circuits.emitter import ONE, Bit, Emitter


def bit(cs: Emitter, value: Any) -> Bit:
    """A variable with the row (1 - x) · x = 0."""
    x = cs.bit(value)
    cs.enforce([(ONE, 1), (x.variable, -1)], [(x.variable, 1)], [])
    return x


def xor(cs: Emitter, a: Bit, b: Bit) -> Bit:
    """Two variables: (2a) · b = a + b - c."""
    if a.var is None:
        return b.invert(cs.ones) if a.const else b
    if b.var is None:
        return a.invert(cs.ones) if b.const else a
    if a.neg and not b.neg:
        a, b = b, a
    mixed = a.neg != b.neg
    value = None
    if cs.algebra is not None:
        value = a.value ^ b.value ^ (cs.ones if mixed else 0)
    c = cs.bit(value)
    if cs.recording:
        left, right = a.variable, b.variable
        cs.enforce([(left, 2)], [(right, 1)], [(left, 1), (right, 1), (c.variable, -1)])
    return c.invert(cs.ones) if mixed else c


def and_(cs: Emitter, a: Bit, b: Bit) -> Bit:
    """a · b = c, with 1 - x for a negated operand; of is and not, the variable itself is the left side."""
    if a.var is None:
        return b if a.const else a
    if b.var is None:
        return a if b.const else b
    if a.neg and not b.neg:
        a, b = b, a
    c = cs.bit(None if cs.algebra is None else a.value & b.value)
    if cs.recording:
        cs.enforce(a.terms(), b.terms(), [(c.variable, 1)])
    return c


def ch(cs: Emitter, a: Bit, b: Bit, c: Bit) -> Bit:
    """a ? b : c, the row (b - c) · a = ch - c. A constant true `a` has no shortcut."""
    ones = cs.ones
    if a.var is None and b.var is None and c.var is None:
        return b if a.const else c
    if a.var is None and not a.const:
        return c
    if b.var is None and not b.const:
        return and_(cs, a.invert(ones), c)
    if c.var is None and not c.const:
        return and_(cs, a, b)
    if b.var is None:
        return and_(cs, a.invert(ones), c.invert(ones)).invert(ones)
    if c.var is None:
        return and_(cs, a, b.invert(ones)).invert(ones)
    out = cs.bit(None if cs.algebra is None else ((b.value ^ c.value) & a.value) ^ c.value)
    if cs.recording:
        minus_c = c.terms(-1)
        cs.enforce(b.terms() + minus_c, a.terms(), [(out.variable, 1), *minus_c])
    return out


def maj(cs: Emitter, a: Bit, b: Bit, c: Bit) -> Bit:
    """The majority: variable maj, then bc = and(b, c), then the row (2bc - b - c) · a = bc - maj."""
    ones = cs.ones
    if a.var is None and b.var is None and c.var is None:
        return cs.constant_bit(int(a.const + b.const + c.const >= 2))
    for x, p, q in ((a, b, c), (b, a, c), (c, a, b)):
        if x.var is None and not x.const:
            return and_(cs, p, q)
    for x, p, q in ((c, a, b), (b, a, c), (a, b, c)):
        if x.var is None:
            return and_(cs, p.invert(ones), q.invert(ones)).invert(ones)
    out = cs.bit(None if cs.algebra is None else ((b.value | c.value) & a.value) | (b.value & c.value))
    bc = and_(cs, b, c)
    if cs.recording:
        cs.enforce(bc.terms(2) + b.terms(-1) + c.terms(-1), a.terms(), [*bc.terms(), (out.variable, -1)])
    return out
