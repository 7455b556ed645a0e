"""Rows of gadgets and circuits as the tests of Filecoin's implementation state them."""

import pytest

from cuzk.circuits import merkle
from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.gadgets.boolean import bit
from cuzk.circuits.gadgets.number import digest_to_number, inputize, insert, to_bits
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.gadgets.sha256 import COMPRESS, sha256
from cuzk.circuits.porep import gadgets
from cuzk.circuits.porep.circuit import emit_partition, emit_prefix
from cuzk.circuits.porep.shape import SHAPES, Shape
from cuzk.circuits.porep.template import porep_template
from cuzk.circuits.porep.values import PrefixValues

LIBRARY = Library()


def bits(cs, n):
    return [bit(cs, None) for _ in range(n)]


@pytest.mark.parametrize(("n_bits", "rows"), [(512, 44_874)])
def test_sha256_of_512_variable_bits(n_bits, rows):
    cs = Emitter(LIBRARY)
    sha256(cs, bits(cs, n_bits))
    assert cs.n_rows == n_bits + rows


def test_sha256_of_one_block_with_the_fixed_state():
    cs = Emitter(LIBRARY)
    state = [cs.constant_bit(v >> i & 1) for v in gadgets_initial_state() for i in reversed(range(32))]
    cs.call(COMPRESS, [*state, *bits(cs, 512)])
    assert cs.n_rows == 512 + 25_840


def gadgets_initial_state():
    from cuzk.circuits.gadgets.sha256 import INITIAL_STATE

    return INITIAL_STATE


def test_leaf_hash_of_sha256():
    cs = Emitter(LIBRARY)
    digest_to_number(cs, sha256(cs, bits(cs, 512)))
    assert cs.n_rows == 45_387


def test_number_to_bits():
    cs = Emitter(LIBRARY)
    to_bits(cs, cs.num(None))
    assert (cs.n_rows, cs.n_aux) == (256, 1 + 255)


@pytest.mark.parametrize(("arity", "rows"), [(2, 2), (4, 8), (8, 22)])
def test_insertion(arity, rows):
    cs = Emitter(LIBRARY)
    index = bits(cs, arity.bit_length() - 1)
    insert(cs, cs.num(None), index, [cs.num(None) for _ in range(arity - 1)])
    assert cs.n_rows == len(index) + rows


@pytest.mark.parametrize(("arity", "rows"), [(2, 311), (4, 377), (8, 505), (11, 598)])
def test_poseidon(arity, rows):
    cs = Emitter(LIBRARY)
    poseidon(cs, [cs.num(None) for _ in range(arity)])
    assert (cs.n_rows, cs.n_aux) == (rows, arity + rows)


@pytest.mark.parametrize(("layers", "rows"), [(2, 311), (11, 598)])
def test_column_hash(layers, rows):
    cs = Emitter(LIBRARY)
    gadgets.column_hash(cs, [cs.num(None) for _ in range(layers)])
    assert cs.n_rows == rows


@pytest.mark.parametrize(
    ("hash_name", "arities", "rows"),
    [
        ("sha256", (2,) * 6, 272_295), ("sha256", (4,) * 3, 216_258), ("sha256", (8,) * 2, 250_987),
        ("poseidon", (2,) * 6, 1_887), ("poseidon", (4,) * 3, 1_164), ("poseidon", (8, 8), 1_063),
        ("poseidon", (8, 8, 2), 1_377), ("poseidon", (8, 8, 4, 2), 1_764), ("poseidon", (8, 8, 8), 1_593),
        ("poseidon", (8, 8, 8, 2), 1_907), ("poseidon", (8, 8, 2, 4), 1_764),
    ],
)  # fmt: skip
def test_inclusion(hash_name, arities, rows):
    cs = Emitter(LIBRARY)
    leaf, root = cs.num(None), cs.num(None)
    inputize(cs, root)
    getattr(merkle, f"{hash_name}_inclusion")(cs, leaf, merkle.blank_path(arities), root)
    assert (cs.n_rows, cs.n_inputs) == (rows, 3)


def test_label(monkeypatch):
    cs = Emitter(LIBRARY)
    replica_id = bits(cs, 256)
    parents = [bits(cs, 256) for _ in range(37)]
    monkeypatch.setattr(gadgets, "parent_sequence", lambda layer, given: list(given))
    gadgets.label(cs, replica_id, 1, [cs.constant_bit(22 >> i & 1) for i in range(64)], parents)
    assert cs.n_rows == 532_025


@pytest.mark.parametrize(
    ("path", "rows"), [((2, 2, 2), 1_206_212), ((8,), 1_199_620), ((8, 4), 1_296_576), ((8, 4, 2), 1_346_982)]
)
def test_porep_of_two_layers_and_one_challenge(path, rows):
    cs = Emitter(LIBRARY)
    emit_partition(cs, Shape("test", path, layers=2, challenges=1, partitions=1))
    assert (cs.n_rows, cs.n_inputs) == (rows, 22)


def test_prefix():
    cs = Emitter(LIBRARY)
    emit_prefix(cs, PrefixValues())
    assert (cs.n_rows, cs.n_aux, cs.n_inputs) == (571, 571, 4)


SIZES = {
    # rows with inputs, aux, log2 of the domain, a, b, .vk bytes, .params bytes
    "2KiB": (2_687_961, 2_685_673, 22, 2_674_948, 685_522, 4_708, 1_114_707_768),
    "8MiB": (3_844_969, 3_842_449, 22, 3_815_036, 1_011_290, 4_708, 1_429_027_896),
    "512MiB": (4_423_473, 4_420_837, 23, 4_385_080, 1_174_174, 4_708, 1_988_841_144),
    "32GiB": (130_278_869, 130_169_893, 27, 129_753_620, 33_112_282, 32_356, 47_373_928_632),
    "64GiB": (131_186_177, 131_076_643, 27, 130_637_870, 33_386_944, 32_356, 47_624_967_288),
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
def test_sizes_of_registered_sectors(shape):
    from cuzk.circuits.sizes import CircuitSizes

    template = porep_template(shape, LIBRARY)
    sizes = CircuitSizes(template)
    q = sizes.queries
    got = (template.n_rows, template.n_aux, template.log2_domain, q["a"], q["b_g1"], sizes.vk_bytes, sizes.params_bytes)
    assert got == SIZES[shape.name]
    assert (q["l"], q["h"], q["b_g2"]) == (template.n_aux, (1 << template.log2_domain) - 1, q["b_g1"])
    assert template.n_inputs == shape.public_inputs + 1
    if shape.name == "32GiB":
        assert template.nonzeros() == (309_405_051, 130_327_340, 282_656_500)
        assert template.densities() == (129_753_292, 1, 33_112_281)
        assert len(template.coefficients_mont) == len(LIBRARY.coefficients.values)


def test_coefficients_of_32_gib():
    template = porep_template(SHAPES[3])
    assert len(template.coefficients_mont) == 2_466
