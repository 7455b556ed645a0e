"""Native traces of gadgets: every variable has the value that the gadget's own body gives it, whatever its arguments are."""

import random

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.algebra import Columns, Scalars
from cuzk.circuits.emitter import Bit, Emitter, Num, Place
from cuzk.circuits.field import MODULUS, from_mont, to_mont
from cuzk.circuits.gadgets.poseidon import POSEIDON, RANDOMNESS
from cuzk.circuits.gadgets.sha256 import COMPRESS

LANES = 11


def bit_arguments(rng, kinds):
    """768 bits: for each its values over the lanes, and what it is: 0, 1, b(it), n(egated)."""
    values = []
    for kind in kinds:
        values.append([int(kind)] * LANES if kind in "01" else [rng.getrandbits(1) for _ in range(LANES)])
    return values


def as_bit(kind, value, ones):
    if kind in "01":
        return Bit(None, False, ones if kind == "1" else 0, int(kind))
    return Bit(0, kind == "n", value)


PATTERNS = {
    "variables": lambda rng: "b" * 768,
    "a fixed state": lambda rng: "".join(rng.choice("01") for _ in range(256)) + "b" * 512,
    "a fixed block": lambda rng: "b" * 256 + "1" + "0" * 511,
    "all constant but one": lambda rng: "0" * 100 + "b" + "1" * 667,
    "negated": lambda rng: "n" * 768,
    "mixed": lambda rng: "".join(rng.choice("01bn") for _ in range(768)),
    "mostly constant": lambda rng: "".join(rng.choice("00001111bn") for _ in range(768)),
    "few constants": lambda rng: "".join(rng.choice("bbbbbnn01") for _ in range(768)),
    "whole words": lambda rng: "".join(rng.choice("01bn") * 32 for _ in range(24)),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("seed", [1, 2])
def test_sha256_blocks(name, seed):
    rng = random.Random(seed)
    kinds = PATTERNS[name](rng)
    values = bit_arguments(rng, kinds)
    algebra = Columns(LANES)
    columns = [sum(v << lane for lane, v in enumerate(row)) for row in values]
    inline = Emitter(rows=False, algebra=algebra, inline=True)
    outputs = COMPRESS.body(inline, [as_bit(k, v, algebra.ones) for k, v in zip(kinds, columns, strict=True)])
    count, first = inline.n_aux, 64 * seed + 37
    bits = np.zeros((LANES, (first + count) // 64 + 2), np.uint64)
    place = Place(bits, np.zeros((LANES, 0, 4), np.uint64), first, 0, count)
    got = COMPRESS.trace(algebra, [as_bit(k, v, algebra.ones) for k, v in zip(kinds, columns, strict=True)], place)
    assert list(got) == [b.value for b in outputs]
    found = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")
    wanted = np.array([[v >> lane & 1 for v in inline.aux_values] for lane in range(LANES)])
    assert np.array_equal(found[:, first : first + count], wanted)
    assert not found[:, :first].any() and not found[:, first + count :].any()


@pytest.mark.parametrize("gadget", [POSEIDON, RANDOMNESS], ids=lambda g: g.name)
@pytest.mark.parametrize("arity", [2, 4, 8, 11])
@pytest.mark.parametrize("lanes", [1, 7, 8, 19])
def test_poseidon(gadget, arity, lanes):
    rng = random.Random(arity * lanes)
    rows = [[rng.choice((0, 1, MODULUS - 1, rng.randrange(MODULUS))) for _ in range(arity)] for _ in range(lanes)]
    alone = [Emitter(rows=False, algebra=Scalars(), inline=True) for _ in range(lanes)]
    outputs = [gadget.body(cs, [Num(-9, x) for x in row])[0].value for cs, row in zip(alone, rows, strict=True)]
    count = alone[0].n_aux
    raw = b"".join(to_mont(x).to_bytes(32, "little") for row in rows for x in row)
    elements = np.frombuffer(raw, np.uint64).reshape(lanes, arity, 4)
    fields = np.zeros((lanes, count + 5, 4), np.uint64)
    place = Place(np.zeros((lanes, 0), np.uint64), fields, 0, 3, count)
    (got,) = gadget.trace(Columns(lanes), [Num(-9, np.ascontiguousarray(elements[:, i])) for i in range(arity)], place)
    for lane, cs in enumerate(alone):
        values = [from_mont(int.from_bytes(row.tobytes(), "little")) for row in fields[lane, 3 : 3 + count]]
        assert values == cs.aux_values
        assert from_mont(int.from_bytes(got[lane].tobytes(), "little")) == outputs[lane]
    assert not fields[:, :3].any() and not fields[:, 3 + count :].any()


def test_traces_that_do_not_fit_are_refused():
    words, masks = np.zeros((2, 24), np.uint32), np.full(24, 0xFFFFFFFF, np.uint32)
    bits, constants = np.zeros((2, 10), np.uint64), np.zeros(64, np.uint32)
    with pytest.raises(ValueError, match="no room for 700 bits"):
        native.sha256_trace(words, masks, np.zeros(24, np.uint32), constants, bits, 0, 700)
    with pytest.raises(ValueError, match="bits: expected 2 rows"):
        native.sha256_trace(words, masks, np.zeros(24, np.uint32), constants, np.zeros((1, 500), np.uint64), 0, 26184)
