"""SnapDeals: counts that Filecoin's implementation asserts, every size, digests of whole systems."""

from dataclasses import replace

import numpy as np
import pytest

from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.sizes import CircuitSizes
from cuzk.circuits.update.circuit import blank_prefix, emit_partition, emit_prefix
from cuzk.circuits.update.shape import SMALL_HS, UPDATE_SHAPES, UpdateShape, update_shape
from cuzk.circuits.update.template import update_template
from tests.unit.circuits.circuit_checks import system_digest
from tests.unit.circuits.test_template import assert_equals_full_emission

LIBRARY = Library()
SIZES = {
    # rows without those of the inputs, aux, log2 of the domain, a, b, .params bytes
    "snap-1k": (1_248_389, 1_247_309, 21, 1_241_654, 327_404, 534_560_664),
    "snap-2k": (1_705_039, 1_703_569, 21, 1_697_194, 444_404, 655_789_464),
    "snap-4k": (2_165_109, 2_163_189, 22, 2_155_234, 564_064, 979_673_496),
    "snap-8k": (2_620_359, 2_618_009, 22, 2_609_694, 680_064, 1_100_372_376),
    "snap-16k": (6_300_021, 6_293_944, 23, 6_284_887, 1_613_423, 2_477_541_240),
    "snap-32k": (6_760_091, 6_753_564, 23, 6_742_927, 1_733_083, 2_600_098_680),
    "snap-8m": (10_007_503, 9_998_039, 24, 9_981_020, 2_567_922, 4_268_165_208),
    "snap-512m": (57_450_479, 57_401_314, 26, 57_212_322, 14_916_880, 21_741_422_712),
    "snap-32g": (81_049_499, 80_978_488, 27, 80_743_586, 20_983_608, 34_453_501_368),
    "snap-64g": (85_006_101, 84_931_220, 27, 84_682_730, 22_012_684, 35_507_495_352),
}
FAST = {"snap-1k", "snap-2k", "snap-8k", "snap-32g"}


def sizes_param(name):
    return pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow])


@pytest.mark.parametrize("name", [sizes_param(name) for name in SIZES])
def test_sizes(name):
    t = update_template(update_shape(name.removeprefix("snap-")), LIBRARY)
    sizes = CircuitSizes(t)
    q = sizes.queries
    assert (t.n_constraints, t.n_aux, t.log2_domain, q["a"], q["b_g1"], sizes.params_bytes) == SIZES[name]
    assert (t.n_inputs, sizes.vk_bytes) == (5, 1_348)
    if name == "snap-32g":
        assert t.nonzeros() == (190_374_907 + t.n_inputs, 81_118_127, 172_187_492)
        assert (t.prefix.rows, t.body.rows, t.prefix.aux, t.body.aux) == (5_951_289, 873_235, 5_945_122, 872_481)
        fields = int(t.prefix.field_aux.sum()) + t.copies * int(t.body.field_aux.sum())
        assert fields == 965_038


def test_every_shape_has_a_name_of_its_own():
    assert len({s.name for s in UPDATE_SHAPES}) == len(UPDATE_SHAPES)
    assert {s.partitions * s.challenges for s in UPDATE_SHAPES} == {10, 20, 40, 1376}


@pytest.mark.parametrize(("apex_bits", "partition_bits", "rows"), [(3, 0, 317_654), (4, 2, 771_448), (3, 3, 453_797)])
def test_apex_tree(apex_bits, partition_bits, rows):
    shape = UpdateShape("test", (8, 8, 8), partition_bits, 10, apex_bits, SMALL_HS)
    without = UpdateShape("test", (8, 8, 8), partition_bits, 10, 0, SMALL_HS)
    counts = []
    for s in (shape, without):
        cs = Emitter(LIBRARY)
        emit_prefix(cs, s, blank_prefix(s))
        counts.append(cs.n_rows)
    path = partition_bits * 45_381 + 1
    assert counts[0] - counts[1] + path == rows
    assert counts[1] == 6 + (partition_bits + 6) + 311 + 624 + path + 568


@pytest.mark.parametrize(("size", "rows"), [("16KiB", 568), ("512MiB", 4_544), ("32GiB", 5_680), ("64GiB", 5_680)])
def test_rows_of_challenge_bits(size, rows):
    assert 568 * update_shape(size).digests == rows


@pytest.mark.slow
def test_template_equals_full_emission():
    shape = UpdateShape("test", (8, 2), 1, 2, 2, SMALL_HS)
    cs = Emitter(inline=True)
    emit_partition(cs, shape)
    assert_equals_full_emission(update_template(shape), cs)


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        pytest.param("2KiB", "6f0a47653f0fffd394bcaf873ab5de46b36b55733124a377b2991e1312ea7292"),
        pytest.param("8MiB", "a60438d64628f6f3e44fcad7099209ee6d15d816baf24e85f1a27aa3b914ad52", marks=pytest.mark.slow),
    ],
)
def test_digest_of_all_rows(size, digest):
    """The same rows as another emitter, written from the same description, had; it kept a term 0 · ONE in one row."""
    t = update_template(update_shape(size))
    names = t.marks[0]
    row = next(s for s, (label, _) in zip(names.starts, names.labels, strict=True) if label == "challenge bits / digest 0")
    a = t.prefix.matrices[0]
    at = int(a.row_ptr[row])
    pointers = a.row_ptr + (np.arange(len(a.row_ptr)) > row).astype(np.uint32)
    ids = np.insert(a.coef_id, at, len(t.coefficients_mont))
    with_zero = replace(a, row_ptr=pointers, col=np.insert(a.col, at, 0), coef_id=ids)
    table = np.concatenate([t.coefficients_mont, np.zeros((1, 4), np.uint64)])
    prefix = replace(t.prefix, matrices=(with_zero, *t.prefix.matrices[1:]))
    assert system_digest(replace(t, prefix=prefix, coefficients_mont=table)) == digest
