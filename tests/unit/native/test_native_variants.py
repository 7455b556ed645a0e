"""All variants that this CPU can run give the same bytes, on inputs too large for the plain-integer references."""

import numpy as np
import pytest

from cuzk import native
from cuzk.native import _library

VARIANTS = "best"


@pytest.fixture
def each_variant(monkeypatch):
    directory = _library.library_directory()
    features = _library.load("portable").cuzk_cpu_features()
    names = [v for v, need in _library.VARIANTS.items() if features & need == need and (directory / f"libcuzk_{v}.so").is_file()]

    def results(compute):
        out = []
        for name in names:
            monkeypatch.setenv("CUZK_NATIVE_VARIANT", name)
            _library.load.cache_clear()
            assert native.info()["variant"] == name
            out.append(compute())
        return out

    return results


def random_words(seed, n, columns=4):
    return np.random.default_rng(seed).integers(0, 2**62, (n, columns), dtype=np.uint64)


def assert_all_equal(results):
    for r in results[1:]:
        assert np.array_equal(r, results[0])


def test_ntt(each_variant):
    data, shift = random_words(1, 1 << 13), random_words(2, 1)
    for inverse in (False, True):
        assert_all_equal(each_variant(lambda i=inverse: native.ntt(data.copy(), inverse=i, coset=shift)))


def test_points(each_variant, group):
    scalars = random_words(3, 4000)
    points = group.fixed_base(scalars)
    points[::17] = 0
    points[1::31] = points[1]
    assert_all_equal(each_variant(lambda: group.fixed_base(scalars)))
    assert_all_equal(each_variant(lambda: group.msm(points, scalars[::-1].copy())))
    assert_all_equal(each_variant(lambda: group.scale(points[:700], scalars[:700])))
    assert_all_equal(each_variant(lambda: group.batch_add(points, np.packbits(scalars[:, 0] & 1 == 1, bitorder="little"))))
