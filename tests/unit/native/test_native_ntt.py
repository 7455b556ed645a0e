"""NTT against its definition, for both roots, with and without a coset."""

import numpy as np
import pytest

from cuzk import native
from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import R


def naive(values, w, shift=1):
    """Horner at shift * w^k for every k: the definition."""
    out = []
    for k in range(len(values)):
        x, acc = shift * pow(w, k, R) % R, 0
        for v in reversed(values):
            acc = (acc * x + v) % R
        out.append(acc)
    return out


def fast(values, w):
    """Recursive transform, itself checked against `naive`."""
    if len(values) == 1:
        return list(values)
    even, odd = fast(values[0::2], w * w % R), fast(values[1::2], w * w % R)
    out, t = [0] * len(values), 1
    for k, (e, o) in enumerate(zip(even, odd, strict=True)):
        out[k], out[k + len(even)] = (e + t * o) % R, (e - t * o) % R
        t = t * w % R
    return out


def with_shift(values, shift):
    out, g = [], 1
    for v in values:
        out.append(v * g % R)
        g = g * shift % R
    return out


def test_the_reference_is_the_definition():
    values = [ref.rng(0).randrange(R) for _ in range(32)]
    assert fast(with_shift(values, 7), ref.root_of_unity(5, 7)) == naive(values, ref.root_of_unity(5, 7), 7)


# INV-18
@pytest.mark.parametrize("log_n", range(13))
@pytest.mark.parametrize("root", [5, 7])
@pytest.mark.parametrize("shift", [None, 7, R - 2])
def test_forward_and_inverse(log_n, root, shift):
    r, n = ref.rng(log_n), 1 << log_n
    values = [r.choice([0, 1, R - 1, r.randrange(R), r.randrange(R)]) for _ in range(n)]
    array = ref.fr_mont(values)
    coset = None if shift is None else ref.fr_mont([shift])
    assert native.ntt(array, root=root, coset=coset) is array
    assert ref.fr_unmont(array) == fast(with_shift(values, shift or 1), ref.root_of_unity(log_n, root))
    native.ntt(array, root=root, inverse=True, coset=coset)
    assert ref.fr_unmont(array) == values


@pytest.mark.parametrize("log_n", [14, 15, 17])
@pytest.mark.parametrize("threads", [1, 3])
def test_larger_sizes_at_single_points_and_back(log_n, threads):
    n, r = 1 << log_n, ref.rng(log_n)
    seed = np.random.default_rng(log_n).integers(0, 2**62, (n, 4), dtype=np.uint64)
    values, shift = ref.fr_unmont(seed), 11
    array = seed.copy()
    native.ntt(array, root=5, coset=ref.fr_mont([shift]), threads=threads)
    w = ref.root_of_unity(log_n, 5)
    for k in (0, 1, n - 1, r.randrange(n)):
        x, acc = shift * pow(w, k, R) % R, 0
        for v in reversed(values):
            acc = (acc * x + v) % R
        assert ref.fr_unmont(array[k : k + 1]) == [acc]
    native.ntt(array, root=5, inverse=True, coset=ref.fr_mont([shift]), threads=threads)
    assert np.array_equal(array, seed)


@pytest.mark.slow
@pytest.mark.parametrize("log_n", [21, 22])
def test_three_passes(log_n):
    seed = np.random.default_rng(log_n).integers(0, 2**62, (1 << log_n, 4), dtype=np.uint64)
    array = seed.copy()
    native.ntt(array, coset=ref.fr_mont([7]))
    # Value at the coset's first point, by powers and a dot product.
    powers = native.fr_powers_mont(ref.fr_mont([7]), 1 << log_n)
    assert np.array_equal(native.fr_dot_mont(seed, powers), array[:1])
    native.ntt(array, inverse=True, coset=ref.fr_mont([7]))
    assert np.array_equal(array, seed)


def test_std_values_transform_too():
    values = list(range(1, 65))
    array = ref.ints_to_array(values)
    native.ntt(array)
    assert ref.array_to_ints(array) == fast(values, ref.root_of_unity(6, 7))


def test_products_at_the_top_of_their_range():
    """Values that the vector form keeps above r (it reduces lazily) meet in one sum over seven stages, against a zero partner.

    At 2^16 points the first pass has 256 rows. Row j below 128 holds x w^-j and its partner 0, so the first step gives x by a
    product of factors d = x w^-j + 2r and b = w^j 2^260 mod r. With x below d b / 2^260 that lazy product is x + r. All of
    them at odd j add up; those at even j are zero.
    """
    w = ref.root_of_unity(8, 7)
    column = [0] * 256
    for j in range(1, 128, 2):
        inverse, b = pow(w, -j, R), pow(w, j, R) * 2**260 % R
        x = 295 * R // 100 * b >> 260
        while x * inverse % R < R - R // 20:
            x -= 1
        column[j] = x * inverse % R
    values = [v for v in column for _ in range(256)]
    array = ref.fr_mont([v * ref.R_MONT_INV % R for v in values])  # the raw words are what reaches the lanes
    assert ref.array_to_ints(array) == values
    native.ntt(array)
    assert ref.array_to_ints(array) == fast(values, ref.root_of_unity(16, 7))
