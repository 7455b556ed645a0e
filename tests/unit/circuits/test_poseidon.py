"""Poseidon: constants against files of other programs, the optimised form against the definition."""

import numpy as np
import pytest

from cuzk.circuits.algebra import Scalars
from cuzk.circuits.emitter import Emitter
from cuzk.circuits.field import MODULUS, from_mont, to_mont
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.gadgets.poseidon_constants import inverse, poseidon_constants
from cuzk.circuits.hashes import poseidon_mont
from tests.unit.circuits.circuit_checks import filecoin_file, first_failing_row

ARITIES = (2, 4, 8, 11)


def by_definition(elements):
    """Rounds as in the paper: add constants, S-boxes, MDS."""
    c = poseidon_constants(len(elements))
    state = [c.domain_tag, *elements]
    for number, keys in enumerate(c.round_constants):
        state = [(x + k) % MODULUS for x, k in zip(state, keys, strict=True)]
        full = number < 4 or number >= 4 + c.partial_rounds
        state = [pow(x, 5, MODULUS) if full or i == 0 else x for i, x in enumerate(state)]
        state = [sum(x * row[j] for x, row in zip(state, c.mds, strict=True)) % MODULUS for j in range(c.width)]
    return state[1]


@pytest.mark.parametrize("arity", ARITIES)
def test_constants_equal_the_published_files(arity):
    raw = filecoin_file(f"poseidon_constants_{arity}.bin").read_bytes()
    published = [from_mont(int.from_bytes(raw[i : i + 32], "little")) for i in range(0, len(raw), 32)]
    c = poseidon_constants(arity)
    mine = list(c.compressed) + [x for m in (c.mds, c.pre_sparse) for row in m for x in row]
    mine += [x for column, row in c.sparse for x in (*column, *row)]
    assert mine == published


@pytest.mark.parametrize("arity", ARITIES)
def test_gadget_library_and_definition_agree(arity):
    elements = list(range(arity))
    wanted = by_definition(elements)
    cs = Emitter(algebra=Scalars())
    assert poseidon(cs, [cs.num(x) for x in elements]).value == wanted
    assert first_failing_row(cs) == -1
    limbs = b"".join(to_mont(x).to_bytes(32, "little") for x in elements * 3)
    hashed = poseidon_mont(np.frombuffer(limbs, np.uint64).reshape(3, arity, 4))
    assert {from_mont(int.from_bytes(h.tobytes(), "little")) for h in hashed} == {wanted}


def test_a_hash_of_one_flipped_input_differs_and_a_wrong_value_fails_its_row():
    cs = Emitter(algebra=Scalars())
    poseidon(cs, [cs.num(x) for x in (5, 6)])
    cs.aux_values[10] = (cs.aux_values[10] + 1) % MODULUS
    assert first_failing_row(cs) >= 0
    assert by_definition([5, 6]) != by_definition([6, 5])


def test_inverse_of_a_matrix():
    m = poseidon_constants(2).mds
    inv = inverse(m)
    product = [[sum(m[i][k] * inv[k][j] for k in range(3)) % MODULUS for j in range(3)] for i in range(3)]
    assert product == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_only_the_defined_arities():
    with pytest.raises(ValueError, match="arity 3"):
        poseidon_constants(3)
