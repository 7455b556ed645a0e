"""Challenges as Filecoin's implementation tests them, the encoding against plain integers, statements."""

import json

import numpy as np
import pytest

from cuzk.circuits.field import MODULUS
from cuzk.circuits.update.shape import UPDATE_SHAPES, update_shape
from cuzk.errors import InputError
from cuzk.porep.trees import poseidon_std, poseidon_tree, sha256_std, sha256_tree
from cuzk.update import encoding
from cuzk.update.statement import parse_statement
from cuzk.update.trees import RunsTree
from tests.unit.update.update_files import SMALL, vanilla

COMM_R_NEW = bytes.fromhex("101cbe4b9c42604f04c703c396f788c6cb2d6d7d58f45430b12eb2edd640076c")


def number(row):
    return int.from_bytes(row.tobytes(), "little")


def test_the_randomness_hash():
    got = encoding.randomness_hash(encoding.elements_of([0]), encoding.elements_of([1]))
    assert got.tobytes().hex() == "587707bcc44ea7e5c7677339ea0b58e325fea03481c51fad4e92f0e7c4354a31"
    got = encoding.randomness_hash(encoding.element(COMM_R_NEW), encoding.elements_of([0]))
    assert got.tobytes().hex() == "f58c0f801cacc62a930e0a332c4253a93662416412bc1f9a0678e9cca731b661"


@pytest.mark.parametrize(
    ("size", "partition", "first"),
    [
        ("32GiB", 0, [1019125, 27985696, 15282860, 11586600, 44651330]),
        ("32GiB", 1, [109168525, 127316247, 80331041, 97065716, 72310052]),
        ("32GiB", 15, [1038629497, 1053983614, 1030421316, 1027373887, 1068685433]),
        ("64GiB", 0, [1019125, 13992848, 3820715, 18225541, 57316660]),
        ("64GiB", 15, [2045262457, 2036941247, 2136653521, 2091356007, 2147167623]),
        ("512MiB", 15, [16388544, 15794686, 16637142, 16319148, 16328348]),
        ("8MiB", 1, [78878, 130797, 112892, 93994, 78379]), ("16KiB", 1, [286, 308, 493, 510, 508]),
        ("2KiB", 0, [53, 51, 56, 3, 0]), ("1KiB", 0, [21, 7, 3, 31, 0]),
    ],
)  # fmt: skip
def test_challenges(size, partition, first):
    shape = update_shape(size)
    got = encoding.challenges(shape, COMM_R_NEW, partition)
    assert got[:5] == first and len(got) == shape.challenges
    if size == "32GiB" and not partition:
        assert (got[8], got[9], got[85]) == (27774185, 49099806, 33773211)


@pytest.mark.parametrize("shape", UPDATE_SHAPES, ids=lambda s: s.size)
def test_challenges_lie_in_their_partition(shape):
    for k in {0, shape.partitions - 1}:
        assert {c >> shape.challenge_bits for c in encoding.challenges(shape, COMM_R_NEW, k)} == {k}


def random_elements(n, seed):
    values = np.random.default_rng(seed).integers(0, 1 << 64, (n, 4), np.uint64)
    values[:, 3] >>= np.uint64(2)
    return values


def test_encoding_by_the_book_and_back():
    old, data = random_elements(64, 1), random_elements(64, 2)
    factors = encoding.factors_mont(SMALL, bytes(32), COMM_R_NEW)
    new = encoding.encode(SMALL, old, data, factors)
    phi = encoding.randomness_hash(encoding.elements_of([0]), encoding.element(COMM_R_NEW))
    for i in (0, 31, 32, 63):
        rho = number(encoding.randomness_hash(phi, encoding.elements_of([i >> 5])))
        assert number(new[i]) == (number(old[i]) + number(data[i]) * rho) % MODULUS
    assert np.array_equal(encoding.decode(SMALL, old, new, factors), data)
    assert np.array_equal(encoding.remove(SMALL, new, data, factors), old)


@pytest.mark.parametrize("runs", [1, 2, 8])
@pytest.mark.parametrize(
    ("arities", "node_hash", "make"),
    [((2,) * 6, sha256_std, sha256_tree), ((8, 8), poseidon_std, lambda x: poseidon_tree(x, (8, 8))),
     ((8, 4, 2), poseidon_std, lambda x: poseidon_tree(x, (8, 4, 2)))],
)  # fmt: skip
def test_trees_of_equal_runs_are_the_full_ones(runs, arities, node_hash, make):
    values = random_elements(runs, 3)
    full, short = make(np.repeat(values, 64 // runs, axis=0)), RunsTree(arities, node_hash, values)
    asked = np.array([0, 5, 31, 32, 63])
    assert np.array_equal(full.root, short.root) and np.array_equal(full.leaves(asked), short.leaves(asked))
    for (p, s), (q, t) in zip(full.siblings(asked), short.siblings(asked), strict=True):
        assert np.array_equal(p, q) and np.array_equal(s, t)


def test_public_inputs():
    statement = vanilla(SMALL).statement
    comms = [int.from_bytes(x, "little") for x in (statement.comm_r_old, statement.comm_d_new, statement.comm_r_new)]
    assert statement.all_public_inputs() == [[1, *comms]]
    heads = {s.size: s.partition_and_h(s.partitions - 1) for s in UPDATE_SHAPES}
    assert (heads["32GiB"], heads["512MiB"], heads["8MiB"], heads["32KiB"]) == (128 + 15, 128 + 15, 32 + 3, 2 + 1)
    assert parse_statement(json.loads(json.dumps(statement.document()))) == statement


@pytest.mark.parametrize(
    ("change", "word"),
    [({"sector": "3KiB"}, "3KiB"), ({"sector": None}, "sector"), ({"comm_r_old_hex": "00"}, "comm_r_old_hex"),
     ({"comm_d_new_hex": None}, "comm_d_new_hex: missing"), ({"comm_r_new_hex": "ff" * 32}, "comm_r_new: not below")],
)  # fmt: skip
def test_wrong_statements_name_the_key(change, word):
    with pytest.raises(InputError, match=word):
        parse_statement(vanilla(SMALL).statement.document() | change)
