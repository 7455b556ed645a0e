"""A small template with a satisfying witness of bits: a prefix of some hundred rows, three copies of a body with bits, field
elements, inputs and shared columns; the body's aux variables are no multiple of 64."""

from cuzk.circuits.emitter import Library
from cuzk.circuits.gadgets.boolean import bit, xor
from cuzk.circuits.gadgets.number import insert, pack, pack_into_input
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.template import build_template
from cuzk.circuits.witness import build_witness

COPIES = 3


def _constant(cs, value):
    return None if cs.algebra is None else cs.algebra.combine([], value)


def small_prefix(cs):
    """A number, a bit that is set, and their hash as an input."""
    number, flag = cs.num(_constant(cs, 12345)), bit(cs, None if cs.algebra is None else cs.ones)
    pack_into_input(cs, [flag])
    return poseidon(cs, [number, number]), flag


def small_body(cs, shared):
    """Bits of its own and the shared one, field elements, an input, stamped hashes; a field element that is 1."""
    known = cs.algebra is not None
    bits = [bit(cs, (cs.ones if k % 3 else 0) if known else None) for k in range(70)]
    z = xor(cs, bits[0], xor(cs, bits[1], shared[1]))
    number = pack(cs, [*bits, z])
    unit = cs.num(_constant(cs, 1))
    pack_into_input(cs, [z, bits[2], bits[5]])
    pair = insert(cs, number, [z], [shared[0]])
    for _ in range(2):
        pair = [poseidon(cs, pair), unit]


def small_case(copies=COPIES):
    """(template, witness)"""
    library = Library()
    template = build_template("small", copies, small_prefix, small_body, library)
    return template, build_witness(template, library, small_prefix, small_body)
