"""Poseidon with constants behind the S-boxes and sparse partial rounds, in the row layout of the existing keys.

An S-box input that is not a bare variable is first allocated (LC · 1 = v); then l², l⁴ and l⁵ + constant. The rows
are more than needed, but keys for Filecoin's circuits are made for exactly these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cuzk.circuits.emitter import ONE, Emitter, Gadget, Num, Place, Terms
from cuzk.circuits.field import MODULUS
from cuzk.circuits.gadgets.poseidon_constants import FULL_ROUNDS, RANDOMNESS_TAG, Matrix, Vector, poseidon_constants

if TYPE_CHECKING:
    from cuzk.circuits.algebra import Columns


class _Element:
    """A linear combination with its value; `bare` where it is one variable."""

    __slots__ = ("bare", "terms", "value")

    def __init__(self, terms: dict[int, int], value: Any, bare: int | None = None) -> None:
        self.terms, self.value, self.bare = terms, value, bare


def _allocated(cs: Emitter, e: _Element) -> int:
    if e.bare is not None:
        return e.bare
    v = cs.num(e.value)
    if cs.recording:
        cs.enforce(list(e.terms.items()), [(ONE, 1)], [(v.var, 1)])
    return v.var


def _s_box(cs: Emitter, e: _Element, pre: int, post: int) -> _Element:
    """(l + pre)^5 + post of an allocated l."""
    var = _allocated(cs, e)
    v2 = v4 = v5 = None
    if cs.algebra is not None:
        mul = cs.algebra.mul
        base = cs.algebra.combine([(1, e.value)], pre) if pre else e.value
        v2 = mul(base, base)
        v4 = mul(v2, v2)
        v5 = cs.algebra.combine([(1, mul(v4, base))], post) if post else mul(v4, base)
    l2, l4, l5 = cs.num(v2), cs.num(v4), cs.num(v5)
    if cs.recording:
        base_terms: Terms = [(var, 1), (ONE, pre)] if pre else [(var, 1)]
        cs.enforce(base_terms, base_terms, [(l2.var, 1)])
        cs.enforce([(l2.var, 1)], [(l2.var, 1)], [(l4.var, 1)])
        cs.enforce(base_terms, [(l4.var, 1)], [(l5.var, 1), (ONE, -post)] if post else [(l5.var, 1)])
    return _Element({l5.var: 1}, v5, l5.var)


def _combine(cs: Emitter, elements: Sequence[_Element], factors: Sequence[int]) -> _Element:
    value = None
    if cs.algebra is not None:
        value = cs.algebra.combine([(k, e.value) for k, e in zip(factors, elements, strict=True)])
    terms: dict[int, int] = {}
    if cs.recording:
        for k, e in zip(factors, elements, strict=True):
            for var, c in e.terms.items():
                terms[var] = (terms.get(var, 0) + k * c) % MODULUS
        terms = {var: c for var, c in terms.items() if c}
    return _Element(terms, value)


def _mix_dense(cs: Emitter, elements: Sequence[_Element], m: Matrix) -> list[_Element]:
    return [_combine(cs, elements, [row[j] for row in m]) for j in range(len(elements))]


def _mix_sparse(cs: Emitter, elements: Sequence[_Element], column: Vector, row: Vector) -> list[_Element]:
    first = _combine(cs, elements, column)
    rest = [_combine(cs, (e, elements[0]), (1, k)) for e, k in zip(elements[1:], row, strict=True)]
    return [first, *rest]


def _poseidon(cs: Emitter, args: Sequence[Num], domain_tag: int | None = None) -> list[Num]:
    constants = poseidon_constants(len(args))
    keys = iter(constants.compressed)
    width = constants.width
    tag = constants.domain_tag if domain_tag is None else domain_tag
    pre = [next(keys) for _ in range(width)]
    post = [next(keys) for _ in range(width)]
    folded = (pow(tag + pre[0], 5, MODULUS) + post[0]) % MODULUS
    first = _Element({ONE: folded}, None if cs.algebra is None else cs.algebra.constant(folded))
    elements = [first]
    for i, x in enumerate(args, 1):
        elements.append(_s_box(cs, _Element({x.var: 1}, x.value, x.var), pre[i], post[i]))
    half = FULL_ROUNDS // 2
    elements = _mix_dense(cs, elements, constants.mds)
    for i in range(1, half):
        elements = [_s_box(cs, e, 0, next(keys)) for e in elements]
        elements = _mix_dense(cs, elements, constants.pre_sparse if i == half - 1 else constants.mds)
    for column, row in constants.sparse:
        elements[0] = _s_box(cs, elements[0], 0, next(keys))
        elements = _mix_sparse(cs, elements, column, row)
    for i in range(half):
        elements = [_s_box(cs, e, 0, 0 if i == half - 1 else next(keys)) for e in elements]
        elements = _mix_dense(cs, elements, constants.mds)
    return [Num(_allocated(cs, elements[1]), elements[1].value)]


def _trace(algebra: Columns, args: Sequence[Num], place: Place, domain_tag: int | None = None) -> list[Any]:
    return [algebra.poseidon([a.value for a in args], place, domain_tag)]


def _poseidon_randomness(cs: Emitter, args: Sequence[Num]) -> list[Num]:
    return _poseidon(cs, args, RANDOMNESS_TAG)


def _trace_randomness(algebra: Columns, args: Sequence[Num], place: Place) -> list[Any]:
    return _trace(algebra, args, place, RANDOMNESS_TAG)


POSEIDON = Gadget("Poseidon", _poseidon, _trace)
RANDOMNESS = Gadget("randomness", _poseidon_randomness, _trace_randomness)


def poseidon(cs: Emitter, elements: Sequence[Num]) -> Num:
    """The hash of 2, 4, 8 or 11 elements."""
    (out,) = cs.call(POSEIDON, elements)
    return out


def randomness(cs: Emitter, first: Num, second: Num) -> Num:
    """The hash of two elements with the tag for arbitrary-length input: what SnapDeals draws its challenges and factors from."""
    (out,) = cs.call(RANDOMNESS, [first, second])
    return out
