"""Fr arrays against Python integers."""

import numpy as np
import pytest

from cuzk import native
from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import FR_EDGES, R

PAIRS = [(a, b) for a in FR_EDGES for b in FR_EDGES] + [
    (r.randrange(R), r.randrange(R)) for r in [ref.rng(1)] for _ in range(300)
]
A, B = [a for a, _ in PAIRS], [b for _, b in PAIRS]


def test_std_and_mont_are_inverse_and_right():
    mont = native.fr_from_std(ref.ints_to_array(A))
    assert ref.array_to_ints(mont) == [a * ref.R_MONT % R for a in A]
    assert ref.array_to_ints(native.fr_to_std(mont)) == A


def test_mul_add_sub():
    a, b = ref.fr_mont(A), ref.fr_mont(B)
    assert ref.fr_unmont(native.fr_mul(a, b)) == [x * y % R for x, y in PAIRS]
    assert ref.fr_unmont(native.fr_add(a, b)) == [(x + y) % R for x, y in PAIRS]
    assert ref.fr_unmont(native.fr_sub(a, b)) == [(x - y) % R for x, y in PAIRS]
    assert ref.array_to_ints(native.fr_mul(a, ref.ints_to_array(B))) == [x * y % R for x, y in PAIRS]  # mont by std


@pytest.mark.parametrize("name", ["fr_mul", "fr_add", "fr_sub"])
def test_one_row_is_broadcast_and_out_may_be_an_input(name):
    op = getattr(native, name)
    a, row = ref.fr_mont(A), ref.fr_mont([R - 5])
    want = op(a, np.repeat(row, len(A), axis=0))
    assert np.array_equal(op(a, row), want)
    out = a.copy()
    assert op(out, row, out=out) is out
    assert np.array_equal(out, want)


def test_inverse_leaves_zero():
    got = ref.fr_unmont(native.fr_inv(ref.fr_mont(A)))
    assert got == [pow(a, -1, R) if a else 0 for a in A]
    long = [i % 7 for i in range(5000)]
    assert ref.fr_unmont(native.fr_inv(ref.fr_mont(long))) == [pow(a, -1, R) if a else 0 for a in long]


def test_inverse_of_every_power_of_two():
    """Walks the lengths that the approximations of the binary GCD distinguish."""
    values = [v for k in range(255) for v in ((1 << k) % R, (-(1 << k)) % R, ((1 << k) - 1) % R)]
    assert ref.array_to_ints(native.fr_inv(ref.ints_to_array(values))) == [
        pow(v, -1, R) * ref.R_MONT * ref.R_MONT % R if v else 0 for v in values
    ]


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 40000])
def test_powers(n):
    base, scale = 0x1234567, R - 3
    got = ref.fr_unmont(native.fr_powers_mont(ref.fr_mont([base]), n, ref.fr_mont([scale])))
    want, x = [], scale
    for _ in range(n):
        want.append(x)
        x = x * base % R
    assert got == want
    assert ref.fr_unmont(native.fr_powers_mont(ref.fr_mont([base]), 3)) == [1, base, base * base % R]


def test_dot():
    assert ref.fr_unmont(native.fr_dot_mont(ref.fr_mont(A), ref.fr_mont(B))) == [sum(x * y for x, y in PAIRS) % R]
    empty = np.empty((0, 4), np.uint64)
    assert ref.array_to_ints(native.fr_dot_mont(empty, empty)) == [0]


def test_first_element_not_below_r():
    values = [0, 1, R - 1, *A]
    assert native.fr_less_than_r(ref.ints_to_array(values)) == -1
    for bad in (R, R + 1, 2**256 - 1, R + (1 << 192)):
        for at in (0, 5, len(values)):
            assert native.fr_less_than_r(ref.ints_to_array([*values[:at], bad, *values[at:], bad])) == at


def test_roots_of_unity():
    for root in (5, 7):
        for log_n in range(33):
            assert ref.fr_unmont(native.root_of_unity_mont(log_n, root)) == [ref.root_of_unity(log_n, root)]


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 1000, 16384, 40001])
def test_scan_of_a_witness(n):
    r = ref.rng(n)
    values = [r.choice([0, 1, 1, 2, R - 1, 1 << 64, 1 << 128, 1 << 192, (1 << 64) + 1]) for _ in range(n)]
    ones, tail = native.scan_witness(ref.ints_to_array(values).reshape(-1, 4))
    bits = np.unpackbits(ones, bitorder="little")
    assert bits[:n].tolist() == [int(v == 1) for v in values] and not bits[n:].any()
    assert tail.dtype == np.uint32 and tail.tolist() == [i for i, v in enumerate(values) if v > 1]
