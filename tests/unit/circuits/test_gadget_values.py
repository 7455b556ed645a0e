"""Values of gadgets against plain Python, every row satisfied, and scalars against columns."""

import hashlib
import itertools
import random

import numpy as np
import pytest

from cuzk.circuits.algebra import Columns, Scalars
from cuzk.circuits.emitter import Bit, Emitter
from cuzk.circuits.field import MODULUS, from_mont, to_mont
from cuzk.circuits.gadgets import uint32
from cuzk.circuits.gadgets.boolean import and_, bit, ch, maj, xor
from cuzk.circuits.gadgets.number import digest_to_number, insert, pack_into_input, to_bits, to_bytes_bits
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.gadgets.sha256 import INITIAL_STATE, ROUND_CONSTANTS, sha256
from cuzk.circuits.gadgets.uint32 import MultiEq, add_many
from tests.unit.circuits.circuit_checks import first_failing_row

KINDS = ("0", "1", "is", "not")


def operand(cs: Emitter, kind: str, value: int) -> Bit:
    if kind in "01":
        return cs.constant_bit(int(kind))
    variable = bit(cs, value if kind == "is" else 1 - value)
    return variable if kind == "is" else variable.invert(1)


@pytest.mark.parametrize(
    ("gate", "arity", "truth"),
    [
        (xor, 2, lambda a, b: a ^ b),
        (and_, 2, lambda a, b: a & b),
        (ch, 3, lambda a, b, c: b if a else c),
        (maj, 3, lambda a, b, c: int(a + b + c >= 2)),
    ],
)
def test_gates_for_every_mix_of_constants_and_negations(gate, arity, truth):
    for kinds in itertools.product(KINDS, repeat=arity):
        for values in itertools.product((0, 1), repeat=arity):
            actual = [int(k) if k in "01" else v for k, v in zip(kinds, values, strict=True)]
            cs = Emitter(algebra=Scalars())
            out = gate(cs, *(operand(cs, k, v) for k, v in zip(kinds, actual, strict=True)))
            assert out.value == truth(*actual), (kinds, values)
            assert first_failing_row(cs) == -1, (kinds, values)
            if out.var is None:
                assert out.const == out.value
            else:
                assert cs.aux_values[out.var] ^ int(out.neg) == out.value


def test_constants_of_sha256_are_those_of_the_standard():
    assert (INITIAL_STATE[0], INITIAL_STATE[7]) == (0x6A09E667, 0x5BE0CD19)
    assert (ROUND_CONSTANTS[0], ROUND_CONSTANTS[63]) == (0x428A2F98, 0xC67178F2)


def sha256_bits(cs: Emitter, data: bytes) -> list[Bit]:
    return [bit(cs, data[i // 8] >> (7 - i % 8) & 1) for i in range(8 * len(data))]


@pytest.mark.parametrize("length", [0, 3, 55, 56, 64, 119])
def test_sha256_equals_hashlib_and_satisfies_its_rows(length):
    data = random.Random(length).randbytes(length)
    cs = Emitter(algebra=Scalars())
    out = sha256(cs, sha256_bits(cs, data))
    got = int("".join(str(b.value) for b in out), 2).to_bytes(32, "big")
    assert got == hashlib.sha256(data).digest()
    assert first_failing_row(cs) == -1


def test_sha256_takes_whole_bytes():
    cs = Emitter()
    with pytest.raises(ValueError, match="whole bytes"):
        sha256(cs, [bit(cs, None) for _ in range(7)])


@pytest.mark.parametrize("words", [2, 4, 6, 7])
def test_sums_of_words(words):
    rng = random.Random(words)
    cs = Emitter(algebra=Scalars())
    sums = MultiEq(cs)
    for _ in range(9):  # more than one row of the accumulator can hold
        numbers = [rng.getrandbits(32) for _ in range(words)]
        given = [[bit(cs, n >> i & 1) for i in range(32)] for n in numbers[1:]] + [uint32.constant(cs, numbers[0])]
        out = add_many(cs, sums, given)
        assert sum(b.value << i for i, b in enumerate(out)) == sum(numbers) % 2**32
    sums.flush()
    assert first_failing_row(cs) == -1
    cs.aux_values[out[3].var] ^= 1
    assert first_failing_row(cs) >= 0


def test_number_bits_and_their_packing():
    x = random.Random(5).randrange(MODULUS)
    cs = Emitter(algebra=Scalars())
    number = cs.num(x)
    bits = to_bits(cs, number)
    pack_into_input(cs, bits[:64])
    assert cs.input_values == [1, x % 2**64]
    as_bytes = "".join(str(b.value) for b in to_bytes_bits(cs, number))
    assert int(as_bytes, 2).to_bytes(32, "big") == x.to_bytes(32, "little")
    digest = [cs.constant_bit(1)] * 256
    assert digest_to_number(cs, digest).value == (2**254 - 1) % MODULUS
    assert first_failing_row(cs) == -1


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_insertion_at_every_position(arity):
    for position in range(arity):
        cs = Emitter(algebra=Scalars())
        width = arity.bit_length() - 1
        index = [bit(cs, position >> i & 1) for i in range(width)]
        siblings = [cs.num(100 + i) for i in range(arity - 1)]
        out = [x.value for x in insert(cs, cs.num(7), index, siblings)]
        wanted = [100 + i for i in range(arity - 1)]
        wanted.insert(position, 7)
        assert out == wanted
        assert first_failing_row(cs) == -1


def test_insertion_of_another_arity_is_refused():
    cs = Emitter()
    with pytest.raises(ValueError, match="2 siblings"):
        insert(cs, cs.num(None), [], [cs.num(None)] * 2)


def test_equal_variables_of_a_row_are_merged():
    cs = Emitter()
    x = cs.num(None)
    cs.enforce([(x.var, 2), (x.var, 3)], [(x.var, 1), (x.var, -1)], [])
    lens, cols, ids = cs.matrices[0].joined()
    assert (lens.tolist(), cols.tolist(), cs.library.coefficients.values[ids[0]]) == ([1], [0], 5)
    assert cs.matrices[1].joined()[0].tolist() == [0]


def mont_columns(values):
    return np.frombuffer(b"".join(to_mont(v).to_bytes(32, "little") for v in values), np.uint64).reshape(-1, 4)


def test_columns_equal_scalars_lane_by_lane():
    """The same gadget code on 5 instances at once and on each alone: every variable, in order."""
    rng = random.Random(3)
    lanes = 5
    numbers = [[rng.randrange(MODULUS) for _ in range(lanes)] for _ in range(2)]
    choice = [rng.getrandbits(1) for _ in range(lanes)]

    def emit(cs, x, y, chosen):
        a, b = cs.num(x), cs.num(y)
        pair = insert(cs, a, [bit(cs, chosen)], [b])
        digest = sha256(cs, [z for n in pair for z in to_bytes_bits(cs, n)])
        poseidon(cs, [digest_to_number(cs, digest), a])

    together = Emitter(rows=False, algebra=Columns(lanes), inline=True)
    emit(together, *map(mont_columns, numbers), sum(c << i for i, c in enumerate(choice)))
    for lane in range(lanes):
        alone = Emitter(rows=False, algebra=Scalars())
        emit(alone, numbers[0][lane], numbers[1][lane], choice[lane])
        assert len(alone.aux_values) == len(together.aux_values)
        for column, value in zip(together.aux_values, alone.aux_values, strict=True):
            if isinstance(column, int):
                assert column >> lane & 1 == value
            else:
                row = np.broadcast_to(column, (lanes, 4))[lane]
                assert from_mont(int.from_bytes(row.tobytes(), "little")) == value
