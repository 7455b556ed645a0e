"""Bulk point operations against plain-integer affine arithmetic and py-arkworks."""

import numpy as np
import py_arkworks_bls12381 as ark
import pytest

from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import R


def special_pairs(f):
    """Every way in which two points can meet: generic, equal, opposite, infinite on either side or both, off the subgroup."""
    p = ref.multiples(f, 4)
    o = ref.curve_points_off_subgroup(f, 2, 3)
    half = pow(2, -1, R)
    doubled_twice = ref.add(f, p[0], p[0])
    assert doubled_twice == p[1] and half
    return [
        (p[0], p[1]), (p[0], p[0]), (p[0], ref.neg(f, p[0])), (None, p[0]), (p[0], None), (None, None),
        (p[3], ref.neg(f, p[2])), (o[0], o[1]), (o[0], o[0]), (o[0], ref.neg(f, o[0])), (o[0], p[0]),
    ]  # fmt: skip


def test_addition_in_every_case(group):
    f = group.field
    pairs = special_pairs(f) * 3
    a, b = group.array([p for p, _ in pairs]), group.array([q for _, q in pairs])
    want = [ref.add(f, p, q) for p, q in pairs]
    assert group.points(group.add(a, b)) == want
    out = a.copy()
    assert group.points(group.add(out, b, out=out)) == want
    assert group.points(group.neg(a)) == [ref.neg(f, p) for p, _ in pairs]


def test_a_small_order_point_adds_and_vanishes(group):
    """3-torsion of the whole curve (the cofactor of G1 is divisible by 3): P + P = -P."""
    if group.name == "g2":
        order, cofactor = (
            13,
            0x5D543A95414E7F1091D50792876A202CD91DE4547085ABAA68A205B2E5A7DDFA628F1CB4D9E82EF21537E293A6691AE1616EC6E786F0C70CF1C38E31C7238E5,
        )
    else:
        order, cofactor = 3, 0x396C8C005555E1568C00AAAB0000AAAB
    assert cofactor % order == 0
    f = group.field
    while cofactor % order == 0:
        cofactor //= order
    small = None
    for p in ref.curve_points_off_subgroup(f, 40, 1):
        small = ref.mul(f, p, cofactor * R)
        if small is not None:
            break
    assert small is not None
    while ref.mul(f, small, order) is not None:
        small = ref.mul(f, small, order)
    points = group.array([small] * order)
    assert group.points(group.batch_add(points, np.full(2, 0xFF, np.uint8))) == [None]
    assert group.points(group.msm(points[:1], ref.ints_to_array([order]))) == [None]
    assert group.check(points[:1], subgroup=False) == -1
    assert group.check(points[:1]) == 0
    scalars = ref.ints_to_array(range(order))
    assert group.points(group.scale(points, scalars)) == [ref.mul(f, small, k) for k in range(order)]


@pytest.mark.parametrize("n", [0, 1, 2, 9, 300, 5000])
def test_batch_addition_by_bitmap(n, group):
    f = group.field
    few = ref.multiples(f, 23)
    few[5] = None
    logs = [0 if i % 23 == 5 else i % 23 + 1 for i in range(n)]
    points = group.array([few[i % 23] for i in range(n)])
    r = np.random.default_rng(n)
    for mask in (np.zeros(n, bool), np.ones(n, bool), r.random(n) < 0.5, r.random(n) < 0.01):
        bits = np.packbits(np.concatenate([mask, np.ones(-n % 64, bool)]), bitorder="little")  # bits past n are ignored
        want = ref.mul(f, few[0], int(np.dot(mask, logs)) if n else 0)
        assert group.points(group.batch_add(points, bits)) == [want]
        assert group.points(group.batch_add(points, bits.view(np.uint64), threads=3)) == [want]


def test_fixed_base(group):
    f = group.field
    r = ref.rng(7)
    scalars = [0, 1, 2, R - 1, R, R + 1, 2**256 - 1, 1 << 255, 8, 15, 16, 17, *(r.randrange(R) for _ in range(30))]
    g = ref.multiples(f, 1)[0]
    assert group.points(group.fixed_base(ref.ints_to_array(scalars))) == [ref.mul(f, g, s) for s in scalars]
    other = ref.curve_points_off_subgroup(f, 1, 2)[0]
    assert group.points(group.fixed_base(ref.ints_to_array(scalars[:14]), base=group.array([other]))) == [
        ref.mul(f, other, s) for s in scalars[:14]
    ]
    assert group.points(group.fixed_base(ref.ints_to_array(scalars), base=group.array([None]))) == [None] * len(scalars)
    assert group.fixed_base(np.empty((0, 4), np.uint64)).shape == (0, group.generator().shape[1])


def test_fixed_base_many_against_arkworks(group):
    scalars = [ref.rng(8).randrange(R) for _ in range(3)] + list(range(3000))
    got = group.fixed_base(ref.ints_to_array(scalars), threads=2)
    point = ark.G1Point() if group.name == "g1" else ark.G2Point()
    raw = ref.Q_MONT_INV
    for i in (0, 1, 2, 3, 4, 1000, 3002):
        want = (point * ark.Scalar.from_le_bytes(scalars[i].to_bytes(32, "little"))).to_xy_bytes_le()
        std = b"".join((v * raw % ref.Q).to_bytes(48, "little") for v in ref.array_to_ints(got[i].reshape(-1, 6)))
        assert std == bytes(want), i


def test_scaling(group):
    f = group.field
    r = ref.rng(9)
    points = [*ref.multiples(f, 6), None, *ref.curve_points_off_subgroup(f, 3, 4)]
    for scalars in (
        [0] * 10,
        [1] * 10,
        [R - 1, R, 2, 3, 2**256 - 1, 1 << 200, r.randrange(R), 5, 8, R + 1],
        [7, 8, 9, 15, 16, 17, 0, 1, 127, 128],
    ):
        got = group.scale(group.array(points), ref.ints_to_array(scalars))
        assert group.points(got) == [ref.mul(f, p, s) for p, s in zip(points, scalars, strict=True)]
    one = group.scale(group.array(points), ref.ints_to_array([R - 2]), threads=3)
    assert group.points(one) == [ref.mul(f, p, R - 2) for p in points]
    many = np.tile(group.array(points), (130, 1))
    assert np.array_equal(group.scale(many, ref.ints_to_array([R - 2]), out=many), np.tile(one, (130, 1)))


@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("root", [5, 7])
def test_group_ntt(log_n, root, group):
    n, r = 1 << log_n, ref.rng(log_n)
    logs = [r.choice([0, 1, 1, R - 1, r.randrange(R)]) for _ in range(n)]
    points = group.fixed_base(ref.ints_to_array(logs))
    before = points.copy()
    w = ref.root_of_unity(log_n, root)
    want = [sum(v * pow(w, i * k, R) for i, v in enumerate(logs)) % R for k in range(n)]
    assert group.group_ntt(points, root) is points
    assert np.array_equal(points, group.fixed_base(ref.ints_to_array(want)))
    group.group_ntt(points, root, inverse=True)
    assert np.array_equal(points, before)


def test_check(group):
    f = group.field
    good = [*ref.multiples(f, 5), None] * 250
    array = group.array(good)
    assert group.check(array) == -1 and group.check(array, subgroup=False) == -1
    off = group.array(ref.curve_points_off_subgroup(f, 1, 6))
    wrong_y = array[3:4].copy()
    wrong_y[0, -6] ^= 1
    not_canonical = array[:1].copy()  # x + q fits 384 bits and is the same residue
    x = ref.array_to_ints(array[0, :6].reshape(1, 6))[0] + ref.Q
    not_canonical[0, :6] = ref.ints_to_array([x], 6)
    for at in (0, 700, len(good) - 1):
        for bad, needs_subgroup in ((off, True), (wrong_y, False), (not_canonical, False)):
            mixed = array.copy()
            mixed[at] = bad
            mixed[-1] = bad
            assert group.check(mixed, threads=2) == at
            assert group.check(mixed, subgroup=False) == (-1 if needs_subgroup else at)


def test_check_agrees_with_multiplication_by_r(group):
    """Random points, cleared partly of their cofactor: some in the subgroup, most not."""
    f = group.field
    points = ref.curve_points_off_subgroup(f, 6, 12)
    h = 0x396C8C005555E1568C00AAAB0000AAAB if group.name == "g1" else None
    if h:
        points += [ref.mul(f, p, h) for p in points] + [ref.mul(f, p, h // 3) for p in points]
    for p in points:
        inside = ref.mul(f, p, R) is None
        assert (group.check(group.array([p])) == -1) == inside
