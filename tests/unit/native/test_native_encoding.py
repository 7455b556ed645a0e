"""ZCash encodings against py-arkworks and against every malformed variant."""

import numpy as np
import py_arkworks_bls12381 as ark
import pytest

from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import Q, R

VARIANTS = "lanes"


def some_points(group):
    f = group.field
    points = ref.multiples(f, 12)
    return [*points, *(ref.neg(f, p) for p in points), None]


def ark_point(group, p):
    cls = ark.G1Point if group.name == "g1" else ark.G2Point
    if p is None:
        return cls.identity()
    return cls.from_xy_bytes_unchecked_le(b"".join(c.to_bytes(48, "little") for c in ref.coordinates(group.field, p)))


def test_compressed_bytes_are_arkworks(group):
    points = some_points(group)
    got = group.compress(group.array(points))
    assert [bytes(row) for row in got] == [bytes(ark_point(group, p).to_compressed_bytes()) for p in points]
    assert group.points(group.decompress(got)) == points


def test_uncompressed_layout(group):
    points = some_points(group)
    got = group.to_be_uncompressed(group.array(points))
    for row, p in zip(got, points, strict=True):
        c = ref.coordinates(group.field, p)
        order = [0, 1] if group.name == "g1" else [1, 0, 3, 2]
        want = b"".join(c[i].to_bytes(48, "big") for i in order)
        if p is None:
            want = b"\x40" + want[1:]
        assert bytes(row) == want
    assert group.points(group.from_be_uncompressed(got)) == points


def test_points_off_the_subgroup_decompress(group):
    """The encoding says nothing about the subgroup."""
    points = ref.curve_points_off_subgroup(group.field, 8, 5)
    array = group.array(points)
    assert group.points(group.decompress(group.compress(array))) == points


def test_square_roots_with_one_zero_coordinate(group):
    """x in Fq: y^2 = x^3 + 4(1+u) over Fq2 has no zero coordinate, so walk many small x instead and compare with arkworks."""
    size = 48 if group.name == "g1" else 96
    cls = ark.G1Point if group.name == "g1" else ark.G2Point
    seen = set()
    for x in range(60):
        for sign in (0x80, 0xA0):
            raw = bytearray(x.to_bytes(size, "big"))
            raw[0] |= sign
            data = np.frombuffer(bytes(raw), np.uint8).reshape(1, size)
            try:
                want = bytes(cls.from_compressed_bytes_unchecked(bytes(raw)).to_xy_bytes_le())
            except ValueError:
                want = None
            try:
                got = group.points(group.decompress(data))[0]
                got = b"".join(c.to_bytes(48, "little") for c in ref.coordinates(group.field, got))
            except ValueError:
                got = None
            assert got == want, (x, sign)
            seen.add(want is None)
    assert seen == {True, False}


def mutate(row, at, value):
    out = row.copy()
    out[at] = value
    return out


def test_malformed_compressed(group):
    good = group.compress(group.array(some_points(group)))
    q = np.frombuffer(Q.to_bytes(48, "big"), np.uint8)
    with_q = good[0].copy()
    with_q[:48] = q
    with_q[0] |= 0x80
    with_q_second = good[0].copy()
    with_q_second[-48:] = q
    if group.name == "g1":
        with_q_second[0] |= 0x80
    bad = {
        "no compressed flag": mutate(good[0], 0, good[0][0] & 0x7F),
        "infinity with larger y": mutate(good[-1], 0, 0xE0),
        "infinity with a coordinate": mutate(good[-1], -1, 1),
        "coordinate q": with_q,
        "last coordinate q": with_q_second,
        "all ones": np.full_like(good[0], 0xFF),
        "all zero": np.zeros_like(good[0]),
    }
    for name, row in bad.items():
        data = np.concatenate([good, row[None], good, row[None]])
        with pytest.raises(ValueError, match=f"point {len(good)}:"):
            group.decompress(data)
        assert name


def test_malformed_uncompressed(group):
    good = group.to_be_uncompressed(group.array(some_points(group)))
    q = np.frombuffer(Q.to_bytes(48, "big"), np.uint8)
    bad = {
        "compressed flag": mutate(good[0], 0, good[0][0] | 0x80),
        "sign flag": mutate(good[0], 0, good[0][0] | 0x20),
        "infinity with a coordinate": mutate(good[-1], -1, 1),
        "infinity without its flag": np.zeros_like(good[0]),
    }
    for at in range(0, good.shape[1], 48):
        row = good[0].copy()
        row[at : at + 48] = q
        bad[f"coordinate q at {at}"] = row
    for row in bad.values():
        data = np.concatenate([good, row[None], good])
        with pytest.raises(ValueError, match=f"point {len(good)}:"):
            group.from_be_uncompressed(data)


def test_many_on_several_threads(group):
    array = group.fixed_base(ref.ints_to_array([pow(3, i, R) for i in range(1500)]))
    assert np.array_equal(group.decompress(group.compress(array), threads=3), array)
    assert np.array_equal(group.from_be_uncompressed(group.to_be_uncompressed(array, threads=3), threads=2), array)
