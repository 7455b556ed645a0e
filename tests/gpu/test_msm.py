"""MSM and batch addition on a GPU against the host library: random, skewed, degenerate, chunked, streamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cuzk import native
from cuzk.gpu.batch_add import BatchAdd, plan_batch_add
from cuzk.gpu.msm import Msm
from cuzk.gpu.msm_plan import plan_msm
from cuzk.gpu.tables import build_pair_sums

pytestmark = pytest.mark.gpu

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def random_scalars(n: int, rng: np.random.Generator) -> np.ndarray:
    out = rng.integers(0, 1 << 64, (n, 4), dtype=np.uint64)
    out[:, 3] %= np.uint64(R >> 192)
    return out


def constant_scalars(n: int, value: int) -> np.ndarray:
    return np.tile(np.frombuffer(value.to_bytes(32, "little"), dtype=np.uint64), (n, 1))


def some_points(group: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Distinct points with infinities, repeats and opposites among them."""
    points = (native.fixed_base_g1 if group == "g1" else native.fixed_base_g2)(random_scalars(n, rng))
    if n > 64:
        points[::17] = 0
        points[5::31] = points[4]
        points[6::37] = (native.g1_neg if group == "g1" else native.g2_neg)(points[4:5])
    return points


def host_msm(group: str, points: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    return (native.msm_g1 if group == "g1" else native.msm_g2)(points, scalars)


def device_msm(device, group: str, points: np.ndarray, scalars: np.ndarray, budget: int = 8 << 30, **shape) -> np.ndarray:
    msm = Msm(device, plan_msm(len(scalars), group, budget, multiprocessors=device.multiprocessors, **shape))
    if shape.get("residency") == "pinned":
        held = [device.pinned(points.nbytes), device.pinned(scalars.nbytes)]
        for block, array in zip(held, (points, scalars), strict=True):
            block.array[:] = array.reshape(-1).view(np.uint8)
    else:
        held = [device.upload(points), device.upload(scalars)]
    handle = msm.run(held[0].address, held[1].address, device.stream(), copy_stream=device.stream())
    result = handle.result()
    for block in held:
        block.free()
    msm.free()
    return result


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 4097, 50_001])
def test_random(device, group, n):
    rng = np.random.default_rng()
    points, scalars = some_points(group, n, rng), random_scalars(n, rng)
    assert np.array_equal(device_msm(device, group, points, scalars), host_msm(group, points, scalars))


@pytest.mark.parametrize("kind", ["zero", "one", "r-1", "equal", "99 % zero", "bits"])
def test_skewed(device, kind):
    rng = np.random.default_rng()
    n = 30_011
    points = some_points("g1", n, rng)
    scalars = {
        "zero": lambda: constant_scalars(n, 0),
        "one": lambda: constant_scalars(n, 1),
        "r-1": lambda: constant_scalars(n, R - 1),
        "equal": lambda: np.tile(random_scalars(1, rng), (n, 1)),
        "99 % zero": lambda: random_scalars(n, rng) * (rng.random((n, 1)) < 0.01).astype(np.uint64),
        "bits": lambda: constant_scalars(n, 1) * (rng.random((n, 1)) < 0.5).astype(np.uint64),
    }[kind]()
    assert np.array_equal(device_msm(device, "g1", points, scalars), host_msm("g1", points, scalars))


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("kind", ["random", "equal"])
def test_equal_points(device, group, kind):
    """Nothing but doublings and cancellations, in every round and in groups."""
    rng = np.random.default_rng()
    n = 20_001
    points = some_points(group, 1, rng)[[0] * n]
    scalars = random_scalars(n, rng) if kind == "random" else np.tile(random_scalars(1, rng), (n, 1))
    assert np.array_equal(device_msm(device, group, points, scalars), host_msm(group, points, scalars))


@pytest.mark.parametrize("bits", [2, 3, 4, 9, 17, 22, 23, 24])
def test_digit_widths(device, bits):
    """The sort divides narrow and wide ones differently; with 3 bits, the highest digit needs one value more."""
    rng = np.random.default_rng()
    n = 5000
    points, scalars = some_points("g1", n, rng), random_scalars(n, rng)
    scalars[:3] = [np.frombuffer((R // 2 + i).to_bytes(32, "little"), dtype=np.uint64) for i in (-1, 0, 1)]
    got = device_msm(device, "g1", points, scalars, budget=32 << 30, digit_bits=bits)
    assert np.array_equal(got, host_msm("g1", points, scalars))


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_chunks_groups_and_residency_do_not_matter(device, group):
    rng = np.random.default_rng()
    n = 20_000
    points, scalars = some_points(group, n, rng), random_scalars(n, rng)
    expected = host_msm(group, points, scalars)
    for residency in ("device", "pinned"):
        for shape in ({}, {"max_chunk": 3000}, {"digit_bits": 13, "max_chunk": 7001}, {"budget": 400 << 20}):
            assert np.array_equal(device_msm(device, group, points, scalars, residency=residency, **shape), expected)


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(("group_sets", "fold_units"), [(1, 2), (1, 4), (3, 7), (2, 35)])
def test_folds_do_not_matter(device, group, group_sets, fold_units):
    rng = np.random.default_rng()
    n = 30_000
    points, scalars = some_points(group, n, rng), random_scalars(n, rng)
    plan = plan_msm(n, group, 8 << 30, multiprocessors=device.multiprocessors, digit_bits=13)
    assert plan.sets == 20 and plan.wide_sets == 15
    msm = Msm(device, replace(plan, group_sets=group_sets, fold_units=fold_units))
    held = device.upload(points), device.upload(scalars)
    got = msm.run(held[0].address, held[1].address, device.stream()).result()
    for block in (msm, *held):
        block.free()
    assert np.array_equal(got, host_msm(group, points, scalars))


@pytest.mark.parametrize("pair_sums", [False, True])
@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(
    ("n", "share"), [(1, 1.0), (1000, 0.5), (100_003, 0.5), (100_003, 0.001), (100_003, 0.0), (700_001, 0.9)]
)
def test_batch_add(device, group, n, share, pair_sums):
    rng = np.random.default_rng()
    points = some_points(group, n, rng)
    packed = np.packbits(rng.random(n) < share, bitorder="little")
    words = np.zeros(-(-n // 32) * 4, dtype=np.uint8)
    words[: len(packed)] = packed
    expected = (native.batch_add_g1 if group == "g1" else native.batch_add_g2)(points, packed)
    plan = plan_batch_add(n, group, 8 << 30, multiprocessors=device.multiprocessors, pair_sums=pair_sums)
    add = BatchAdd(device, plan)
    held = device.upload(np.concatenate([points, points[: n // 2]])), device.upload(words)
    if pair_sums:
        build_pair_sums(device, group, n, held[0].address, device.stream())
    got = add.run(held[0].address, held[1].address, device.stream()).result()
    for block in held:
        block.free()
    add.free()
    assert np.array_equal(got, expected)
