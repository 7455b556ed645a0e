"""WinningPoSt and WindowPoSt: counts that Filecoin's implementation asserts, every size, digests of whole systems."""

import dataclasses

import pytest

from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.post.circuit import emit_partition, post_template
from cuzk.circuits.post.shape import POST_SHAPES, PostShape, post_shape
from cuzk.circuits.sizes import CircuitSizes
from tests.unit.circuits.circuit_checks import system_digest
from tests.unit.circuits.test_template import assert_equals_full_emission

LIBRARY = Library()


def window(path, sectors, challenges):
    return PostShape("window", "test", path, sectors, challenges)


@pytest.mark.parametrize(
    ("path", "sectors", "challenges", "rows", "inputs"),
    [
        ((8, 8), 3, 5, 16_869, 19), ((8, 8, 4), 3, 5, 22_674, 19), ((8, 8, 4, 2), 3, 5, 27_384, 19),
        ((8, 8), 2, 5, 11_246, 13), ((8,) * 10, 5, 10, 266_665, 56),
    ],
)  # fmt: skip
def test_rows_of_small_systems(path, sectors, challenges, rows, inputs):
    shape = window(path, sectors, challenges)
    cs = Emitter(LIBRARY)
    emit_partition(cs, shape)
    assert (cs.n_rows, cs.n_inputs) == (rows, inputs)
    template = post_template(shape, LIBRARY)
    assert (template.n_constraints, template.n_inputs, template.n_aux) == (rows, inputs, cs.n_aux)


def test_template_equals_full_emission():
    shape = window((8, 4, 2), 3, 2)
    cs = Emitter(inline=True)
    emit_partition(cs, shape)
    assert_equals_full_emission(post_template(shape), cs)


SIZES = {
    # rows without those of the inputs, inputs with ONE, aux, log2 of the domain, a, b, .vk bytes, .params bytes
    "winning-2k": (90_750, 133, 91_674, 17, 69_433, 66_793, 13_636, 47_299_128),
    "winning-8m": (230_670, 133, 233_442, 18, 176_881, 169_489, 13_636, 113_383_224),
    "winning-512m": (300_630, 133, 304_326, 19, 230_605, 220_837, 13_636, 165_299_640),
    "winning-32g": (370_590, 133, 375_210, 19, 284_329, 272_185, 13_636, 192_050_232),
    "winning-64g": (391_314, 133, 396_000, 19, 299_971, 287_695, 13_636, 200_014_584),
    "window-2k": (21_866, 23, 22_128, 15, 16_793, 16_029, 3_076, 11_501_496),
    "window-8m": (64_266, 23, 65_088, 16, 49_353, 47_149, 3_076, 30_859_704),
    "window-512m": (85_466, 23, 86_568, 17, 65_633, 62_709, 3_076, 45_257_400),
    "window-32g": (125_279_217, 25_840, 126_902_376, 27, 96_205_645, 91_925_767, 2_481_508, 60_780_374_232),
    "window-64g": (129_887_900, 25_301, 131_500_200, 27, 99_649_801, 95_413_201, 2_429_764, 62_556_733_560),
}


@pytest.mark.parametrize("shape", POST_SHAPES, ids=lambda s: s.name)
def test_sizes_of_registered_proofs(shape):
    t = post_template(shape, LIBRARY)
    sizes = CircuitSizes(t)
    q = sizes.queries
    got = (t.n_constraints, t.n_inputs, t.n_aux, t.log2_domain, q["a"], q["b_g1"], sizes.vk_bytes, sizes.params_bytes)
    assert got == SIZES[shape.name]
    assert t.n_inputs == shape.public_inputs + 1
    if shape.name == "window-32g":
        assert t.nonzeros() == (862_390_719 + t.n_inputs, 127_398_015, 157_401_792)
        assert t.densities() == (96_179_805, 1, 91_925_766)


def test_coefficients_of_32_gib():
    assert len(post_template(post_shape("winning", "32GiB")).coefficients_mont) == 985


@pytest.mark.parametrize(
    ("kind", "size", "sectors", "digest"),
    [
        ("window", "2KiB", None, "8a2c0d48ccf8b908cc1f015ea64e386a11e0349a5c94a30aa34a8f8e5f37f779"),
        ("winning", "2KiB", None, "a770d642c8b6425a6f575cc4e8812bb7d57030c907a260100880ea83edebcb71"),
        ("winning", "32GiB", None, "952195f3ab45afe853212e9fa8e11d7ed4bec4122ba263e426ccd3fba1278f94"),
        ("winning", "64GiB", None, "d3982b0761ee9e1663e6f04e10da16fc51f7d9b58f951ce2e8989719055968bd"),
        ("window", "32GiB", 1, "45c31cdb6c4de975a1cd42fb26aa4838ec303371a76d9de508cf37733710e3e9"),
    ],
)
def test_digest_of_all_rows(kind, size, sectors, digest):
    """The same rows as another emitter, written from the same description, had."""
    shape = post_shape(kind, size)
    shape = dataclasses.replace(shape, sectors=sectors) if sectors else shape
    assert system_digest(post_template(shape)) == digest
