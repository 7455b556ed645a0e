"""The kernel of template products on random rows against Python integers."""

import random

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.field import MODULUS, from_mont, to_mont
from cuzk.groth16.template.walker import powers_of_two


def limbs(values):
    return np.frombuffer(b"".join(to_mont(v).to_bytes(32, "little") for v in values), np.uint64).reshape(-1, 4)


def coefficients(rng):
    """±1, ±2^j of every j, neighbours of powers, and numbers of any size."""
    fixed = [1, MODULUS - 1, 0, 3, MODULUS - 3]
    powers = [s * 2**j % MODULUS for j in range(255) for s in (1, -1)]
    near = [(2**j + d) % MODULUS for j in (31, 32, 63, 64, 253, 254) for d in (-1, 1)]
    return list(dict.fromkeys(fixed + powers + near + [rng.randrange(MODULUS) for _ in range(50)]))


@pytest.mark.parametrize("longest", [3, 40, 3000])
@pytest.mark.parametrize("ones", [0.0, 0.5, 1.0])
def test_random_rows(longest, ones):
    rng = random.Random(longest + int(10 * ones))
    table = coefficients(rng)
    n_small, n_aux, rows = 7, 300, 60
    small = [1] + [rng.randrange(MODULUS) for _ in range(n_small - 1)]
    is_field = [rng.random() < 0.3 for _ in range(n_aux)]
    aux = [rng.choice((MODULUS - 1, rng.randrange(MODULUS))) if f else int(rng.random() < ones) for f in is_field]
    lengths = [rng.randrange(longest + 1) for _ in range(rows - 2)] + [0, longest]
    total = sum(lengths)
    cols = [rng.randrange(n_small + n_aux) for _ in range(total)]
    ids = [rng.randrange(len(table)) for _ in range(total)]
    row_ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)

    words = (n_aux + 63) // 64
    packed = np.zeros((2, 64 * words), np.uint8)
    packed[0, :n_aux], packed[1, :n_aux] = [int(v == 1 and not f) for v, f in zip(aux, is_field, strict=True)], is_field
    bits, mask = np.packbits(packed, axis=1, bitorder="little").view(np.uint64)
    rank = (np.cumsum(np.bitwise_count(mask)) - np.bitwise_count(mask)).astype(np.uint32)
    table_mont = limbs(table)
    out = np.empty((rows, 4), np.uint64)
    native.template_matvec(
        row_ptr, np.array(cols, np.int32), np.array(ids, np.uint16), table_mont, powers_of_two(table_mont),
        limbs(small), bits.copy(), mask.copy(), rank, limbs([v for v, f in zip(aux, is_field, strict=True) if f]), out, 2,
    )  # fmt: skip
    values = small + aux
    for i, row in enumerate(out):
        terms = range(row_ptr[i], row_ptr[i + 1])
        wanted = sum(table[ids[k]] * values[cols[k]] for k in terms) % MODULUS
        assert from_mont(int.from_bytes(row.tobytes(), "little")) == wanted, i


def test_first_unsatisfied_row():
    rng = random.Random(8)
    a, b = ([rng.randrange(MODULUS) for _ in range(1000)] for _ in range(2))
    c = [x * y % MODULUS for x, y in zip(a, b, strict=True)]
    assert native.first_unsatisfied(limbs(a), limbs(b), limbs(c)) == -1
    for wrong in (999, 500, 3):
        c[wrong] = (c[wrong] + 1) % MODULUS
        assert native.first_unsatisfied(limbs(a), limbs(b), limbs(c)) == wrong


@pytest.mark.parametrize("change", ["rows", "coef", "powers", "mask", "out"])
def test_arrays_of_other_lengths_are_refused(change):
    n = {"rows": 2, "coef": 3, "powers": 2, "mask": 1, "out": 1}
    n[change] += 1
    with pytest.raises(ValueError):
        native.template_matvec(
            np.zeros(n["rows"], np.uint32), np.zeros(3, np.int32), np.zeros(n["coef"], np.uint16),
            np.zeros((2, 4), np.uint64), np.zeros(n["powers"], np.int16), np.zeros((1, 4), np.uint64),
            np.zeros(1, np.uint64), np.zeros(n["mask"], np.uint64), np.zeros(1, np.uint32), np.zeros((0, 4), np.uint64),
            np.zeros((n["out"], 4), np.uint64),
        )  # fmt: skip
