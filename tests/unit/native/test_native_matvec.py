"""Sparse matrix times witness against Python integers."""

import numpy as np
import pytest

from cuzk import native
from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import R

VARIANTS = "lanes"


def random_matrix(seed, rows, columns, dtype):
    r = ref.rng(seed)
    table = [1, R - 1] + [r.choice([0, 2, R - 2, r.randrange(R)]) for _ in range(20)]
    row_ptr, col, coef = [0], [], []
    for _ in range(rows):
        for _ in range(r.choice([0, 0, 1, 2, 3, 9])):
            col.append(r.randrange(columns))
            coef.append(r.choice([0, 0, 1, 1, r.randrange(len(table))]))
        row_ptr.append(len(col))
    return np.array(row_ptr, np.uint64), np.array(col, np.uint32), np.array(coef, dtype), table


def product(row_ptr, col, coef, table, w):
    return [
        sum(table[coef[k]] * w[col[k]] for k in range(int(row_ptr[i]), int(row_ptr[i + 1]))) % R for i in range(len(row_ptr) - 1)
    ]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("rows", [0, 1, 500, 5000])
def test_product(dtype, rows):
    row_ptr, col, coef, table = random_matrix(rows, rows, 97, dtype)
    r = ref.rng(5)
    w = [r.choice([0, 1, R - 1, r.randrange(R)]) for _ in range(97)]
    want = product(row_ptr, col, coef, table, w)
    mont = native.matvec_csr(row_ptr, col, coef, ref.fr_mont(table), ref.fr_mont(w))
    assert ref.fr_unmont(mont) == want
    std = native.matvec_csr_std(row_ptr, col, coef, ref.fr_mont(table), ref.ints_to_array(w))
    assert ref.array_to_ints(std) == want
    out = np.zeros((rows, 4), np.uint64)
    assert native.matvec_csr(row_ptr, col, coef, ref.fr_mont(table), ref.fr_mont(w), out=out, threads=3) is out
    assert np.array_equal(out, mont)


def test_numbers_0_and_1_do_not_read_the_table():
    one_row = np.array([0, 2], np.uint64), np.array([0, 1], np.uint32), np.array([0, 1], np.uint16)
    got = native.matvec_csr(*one_row, ref.fr_mont([77, 88]), ref.fr_mont([9, 5]))
    assert ref.fr_unmont(got) == [4]


@pytest.mark.parametrize(
    ("row_ptr", "col", "coef"),
    [
        ([0, 1, 2], [0, 97], [0, 0]),  # column out of range
        ([0, 1, 2], [0, 1], [0, 22]),  # coefficient number out of range
        ([0, 1, 3], [0, 1], [0, 0]),  # row ends behind the matrix
        ([0, 1, 0], [0, 1], [0, 0]),  # row ends before it begins
        ([0, 1, 2**63], [0, 1], [0, 0]),
    ],
)
def test_contents_out_of_range_name_the_row(row_ptr, col, coef, group):
    matrix = np.array(row_ptr, np.uint64), np.array(col, np.uint32), np.array(coef, np.uint32)
    table = ref.fr_mont([1, R - 1] + [5] * 20)
    with pytest.raises(ValueError, match="row 1:"):
        native.matvec_csr(*matrix, table, ref.fr_mont(range(97)))
    with pytest.raises(ValueError, match="row 1:"):
        group.sparse_combine(*matrix, table, group.array(ref.multiples(group.field, 97)))


@pytest.mark.parametrize("rows", [0, 1, 60])
def test_sparse_combination_of_points(rows, group):
    row_ptr, col, coef, table = random_matrix(rows + 1, rows, 40, np.uint16)
    points = ref.multiples(group.field, 40)
    points[7] = None
    logs = [0 if i == 7 else i + 1 for i in range(40)]
    want = product(row_ptr, col, coef, table, logs)
    got = group.sparse_combine(row_ptr, col, coef, ref.fr_mont(table), group.array(points))
    assert np.array_equal(got, group.fixed_base(ref.ints_to_array(want).reshape(-1, 4)))


def test_a_row_longer_than_a_batch(group):
    n = 2500
    row_ptr = np.array([0, 1, n - 1, n], np.uint64)
    col = np.arange(n, dtype=np.uint32) % 30
    coef = (np.arange(n) % 4).astype(np.uint32)
    table = [1, R - 1, 3, R - 7]
    logs = list(range(1, 31))
    want = product(row_ptr, col, coef, table, logs)
    got = group.sparse_combine(row_ptr, col, coef, ref.fr_mont(table), group.array(ref.multiples(group.field, 30)))
    assert np.array_equal(got, group.fixed_base(ref.ints_to_array(want)))
