"""The device's MSM and batch addition, kernels and orchestration, run on the CPU and compared with the host library."""

from __future__ import annotations

import math
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest

native = pytest.importorskip("cuzk.native")
if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.errors import OutOfMemoryError  # noqa: E402
from cuzk.gpu import msm_plan  # noqa: E402
from cuzk.gpu.batch_add import BatchAdd, plan_batch_add  # noqa: E402
from cuzk.gpu.msm import Msm, plan_bytes  # noqa: E402
from cuzk.gpu.msm_plan import plan_msm  # noqa: E402
from cuzk.gpu.segments import INDEX, SCAN_THREADS, u32  # noqa: E402
from cuzk.gpu.tables import build_pair_sums, build_tables  # noqa: E402

from .emulated import EmulatedDevice  # noqa: E402

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def scalars(values: list[int]) -> np.ndarray:
    return np.frombuffer(b"".join(v.to_bytes(32, "little") for v in values), dtype=np.uint64).reshape(-1, 4).copy()


def some_points(group: str, n: int, seed: int) -> np.ndarray:
    rng = random.Random(seed)
    return (native.fixed_base_g1 if group == "g1" else native.fixed_base_g2)(scalars([rng.randrange(R) for _ in range(n)]))


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDevice:
    return EmulatedDevice(tmp_path_factory.mktemp("emulated"))


def device_msm(device: EmulatedDevice, group: str, points: np.ndarray, values: np.ndarray, **shape) -> np.ndarray:
    mont = shape.pop("scalars_mont", False)
    tables = shape.get("tables", 1)
    plan = plan_msm(len(values), group, shape.pop("budget", 1 << 34), multiprocessors=1, **shape)
    msm = Msm(device, plan)
    held = device.upload(points), device.upload(values)
    assert len(points) == tables * len(values)
    result = msm.run(held[0].address, held[1].address, None, scalars_mont=mont, copy_stream="copies").result()
    msm.free()  # also checks that nothing was written past the plan's bytes
    return result


def host_msm(group: str, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (native.msm_g1 if group == "g1" else native.msm_g2)(points, values)


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(("n", "bits"), [(0, 5), (1, 2), (2, 7), (63, 5), (150, 9)])
def test_random(device, group, n, bits):
    rng = random.Random(n)
    points, values = some_points(group, n, n), scalars([rng.randrange(R) for _ in range(n)])
    assert np.array_equal(device_msm(device, group, points, values, digit_bits=bits), host_msm(group, points, values))


def digits(value: int, widths: list[int]) -> list[int]:
    """Signed digits of a scalar, lowest first: -2^(c-1) .. 2^(c-1) - 1 each, the highest up to 2^(c-1)."""
    sign = -1 if 2 * value > R else 1
    rest, found = min(value, R - value), []
    for width in widths[:-1]:
        digit = (rest + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
        found.append(sign * digit)
        rest = (rest - digit) >> width
    return [*found, sign * rest]


@pytest.mark.parametrize(
    ("bits", "tables"),
    [(2, 1), (3, 1), (4, 1), (13, 1), (17, 1), (6, 3), (13, 20), (3, 7), pytest.param(24, 11, marks=pytest.mark.slow)],
)
def test_sorted_references(device, bits, tables):
    """Every bucket of every group of sets gets exactly the references whose digit names it; digits wide and narrow."""
    values = [0, 1, R - 1, R // 2, R // 2 + 1, *(random.Random(bits).randrange(R) for _ in range(60))]
    n = len(values)
    plan = plan_msm(n, "g1", 1 << 34, multiprocessors=1, digit_bits=bits, tables=tables)
    widths = [plan.narrow_bits + (w % plan.sets < plan.wide_sets) for w in range(plan.windows)]
    assert max(widths) == plan.digit_bits and sum(widths) >= 255 > sum(widths[:-1])
    expected: dict[tuple[int, int], set[int]] = {}
    for i, value in enumerate(values):
        found = digits(value, widths)
        assert sum(d << sum(widths[:w]) for w, d in enumerate(found)) == (value if 2 * value <= R else value - R)
        for w, d in enumerate(found):
            if d:
                reference = (1 << 31 if d < 0 else 0) | 1 << 30 | (w // plan.sets * n + i)
                expected.setdefault((w % plan.sets, abs(d) - 1), set()).add(reference)
    msm, held = Msm(device, plan), device.upload(scalars(values))
    per_call = max(1, plan.sets // 2)
    for first_set in range(0, plan.sets, per_call):
        sets = min(per_call, plan.sets - first_set)
        msm._sort(held.address, n, n, first_set, sets, False, None)
        start = device.download(msm._at["start_a"], np.empty(plan.buckets(first_set, sets) + 1, dtype=np.uint32))
        references = device.download(msm._at["references_a"], np.empty(start[-1], dtype=np.uint32))
        got = {}
        for s in range(first_set, first_set + sets):
            base = plan.buckets(first_set, s - first_set)
            for b in np.flatnonzero(np.diff(start[base : base + plan.buckets(s, 1) + 1])):
                got[s, int(b)] = set(references[start[base + b] : start[base + b + 1]].tolist())
        assert got == {key: refs for key, refs in expected.items() if first_set <= key[0] < first_set + sets}
    msm.free()


@pytest.mark.parametrize("complete", [0, 5, 37, 38, 69])
def test_a_tile_looks_back_as_far_as_it_must(device, complete):
    """Tile 70 of a scan, where only tile `complete` has published the sum of all before it."""
    rng, tile, per_tile = np.random.default_rng(complete), 70, 2048
    lengths = rng.integers(0, 6, 71 * per_tile).astype(np.uint32)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    left, pairs = np.where(lengths > 2, (lengths + 1) // 2, 0), lengths // 2  # a pair's sum is finished
    sums = np.stack([left, pairs]).reshape(2, -1, per_tile).sum(axis=2)
    state = np.zeros((tile + 1, 2), dtype=np.uint64)
    state[:tile] = (2 << 32) + sums[:, :tile].T  # epoch 1
    state[complete] = (3 << 32) + sums[:, : complete + 1].sum(axis=1)
    arrays = [start, start, state, np.full(1, tile, dtype=np.uint32), *[0 * start] * 3, np.ones(3, dtype=np.uint32)]
    held = [device.upload(a.view(np.uint8).reshape(-1)) for a in arrays]
    at = [block.address for block in held]
    args = (at[0], at[1], u32(len(lengths)), u32(1), *at[2:], u32(0))
    device.launch(device.kernel(INDEX, "round_starts"), 1, SCAN_THREADS, args, None)
    jobs, following = (device.download(address, np.empty_like(start)) for address in at[4:6])
    assert np.array_equal(following[tile * per_tile :], np.cumsum([left[: tile * per_tile].sum(), *left[tile * per_tile :]]))
    assert np.array_equal(jobs[tile * per_tile :], np.cumsum([pairs[: tile * per_tile].sum(), *pairs[tile * per_tile :]]))
    assert device.download(at[7], np.empty(3, dtype=np.uint32)).tolist() == [1, pairs.sum(), left.sum()]
    published = device.download(at[2], np.empty_like(state))[tile]
    assert published.tolist() == [(3 << 32) + int(left.sum()), (3 << 32) + int(pairs.sum())]
    for block in held:
        block.free()


SKEWED = {
    "all zero": lambda i, n: 0,
    "all one": lambda i, n: 1,
    "all r-1": lambda i, n: R - 1,
    "all equal": lambda i, n: R // 3,
    "two values": lambda i, n: (R // 3, R // 5)[i % 3 == 0],
    "mostly zero": lambda i, n: 5**100 % R if i % 100 == 7 else 0,
    "half of r and its neighbours": lambda i, n: (R - 1) // 2 + i % 3 - 1,
    "digits at their limits": lambda i, n: sum(1 << 9 * w + 8 for w in range(28)) + i % 3 - 1,
}


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("points", ["distinct", "identical", "two", "infinite"])
@pytest.mark.parametrize(("pair_rounds", "group_bits"), [(0, 2), (1, 5), (3, 2), (20, 5)])
def test_long_buckets_by_any_rounds(device, group, points, pair_rounds, group_bits, monkeypatch):
    """Whatever is left after the rounds of pairs is summed in groups: a bucket of all points, also if every sum is a doubling."""
    monkeypatch.setattr("cuzk.gpu.msm_plan.MsmPlan.fill_rounds", pair_rounds)
    monkeypatch.setattr("cuzk.gpu.msm_plan.GROUPS_AT", 1 << 4 * min(pair_rounds, 3))
    monkeypatch.setattr("cuzk.gpu.segments.MAX_GROUP_BITS", group_bits)
    n = 200
    p = some_points(group, 2, 5)
    p = {
        "distinct": some_points(group, n, 6),
        "identical": p[[0] * n],
        "two": p[[0, 1] * (n // 2)],
        "infinite": 0 * p[[0] * n],
    }[points]
    values = scalars([5 if i < 190 else 2 + 4 * (i % 3) for i in range(n)])
    values[::70] = scalars([R - 5])[0]
    assert np.array_equal(device_msm(device, group, p, values, digit_bits=4), host_msm(group, p, values))


def test_doublings_in_every_round_and_batch(device, monkeypatch):
    """Nothing but equal points, and batches that mix them with others: the inversions of doublings are shared as well."""
    monkeypatch.setattr("cuzk.gpu.msm_plan.PAIR_THREADS", 32)
    monkeypatch.setattr("cuzk.gpu.segments.PAIR_THREADS", 32)
    n = 300
    equal = some_points("g1", 1, 7)[[0] * n]
    mixed = some_points("g1", n, 8)
    mixed[: n // 2] = mixed[0]
    rng = random.Random(9)
    values = scalars([rng.randrange(R) for _ in range(n)])
    for points in (equal, mixed):
        assert np.array_equal(device_msm(device, "g1", points, values, digit_bits=5), host_msm("g1", points, values))


@pytest.mark.parametrize("kind", SKEWED)
def test_skewed_scalars(device, kind):
    n = 130
    points, values = some_points("g1", n, 3), scalars([SKEWED[kind](i, n) for i in range(n)])
    assert np.array_equal(device_msm(device, "g1", points, values, digit_bits=9), host_msm("g1", points, values))


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_infinity_repeats_and_opposites(device, group):
    """Buckets that meet infinity, doublings and cancellations in every round."""
    a = some_points(group, 4, 5)
    minus = (native.g1_neg if group == "g1" else native.g2_neg)(a)
    zero = np.zeros_like(a[:1])
    rows = [a[0], a[0], minus[0], a[1], zero[0], a[1], a[1], a[1], minus[1], minus[1], zero[0], zero[0], a[2], minus[2]] * 6
    points = np.ascontiguousarray(rows)
    for pattern in ([1], [3, R - 3], [2, 2, 5], [R - 1, 1, 0]):
        values = scalars([pattern[i % len(pattern)] for i in range(len(points))])
        assert np.array_equal(device_msm(device, group, points, values, digit_bits=4), host_msm(group, points, values))


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_long_batches_and_several_turns(device, group, monkeypatch):
    """One warp does all pairs: batches beyond 64, pairs left out in either half of a batch, more than one tile."""
    monkeypatch.setattr("cuzk.gpu.msm_plan.PAIR_THREADS", 32)
    monkeypatch.setattr("cuzk.gpu.segments.PAIR_THREADS", 32)
    n = 260 if group == "g1" else 130
    points = some_points(group, n, 6)
    points[::9] = 0
    points[5::7] = points[4]
    points[6::11] = (native.g1_neg if group == "g1" else native.g2_neg)(points[4:5])
    rng = random.Random(6)
    values = scalars([rng.randrange(R) for _ in range(n)])
    plan = plan_msm(n, group, 1 << 34, multiprocessors=1, digit_bits=5)
    assert plan.batch == 128 and plan.pool_slots > 32 * 128 // (1 if group == "g1" else 2)
    assert np.array_equal(device_msm(device, group, points, values, digit_bits=5), host_msm(group, points, values))


def test_points_with_a_zero_coordinate(device):
    """(0, +-2) lie on the curve: x = 0 alone does not mean infinity."""
    q = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
    y = [(v << 384) % q for v in (2, q - 2)]
    special = np.zeros((2, 12), dtype=np.uint64)
    for row in range(2):
        special[row, 6:] = np.frombuffer(y[row].to_bytes(48, "little"), dtype=np.uint64)
    points = np.concatenate([special, special[:1], some_points("g1", 20, 1), special[1:]])
    values = scalars([1] * len(points))
    assert np.array_equal(device_msm(device, "g1", points, values, digit_bits=4), host_msm("g1", points, values))


@pytest.mark.parametrize("residency", ["device", "pinned"])
def test_result_does_not_depend_on_chunks_or_groups(device, residency, monkeypatch):
    monkeypatch.setattr("cuzk.gpu.msm_plan.MIN_CHUNK", 32)
    rng = random.Random(8)
    n = 200
    points, values = some_points("g1", n, 8), scalars([rng.randrange(R) for _ in range(n)])
    expected = host_msm("g1", points, values)
    budgets = [1 << 34, *(plan_bytes(n, "g1", 1 << 34, multiprocessors=1, digit_bits=6, max_chunk=m) for m in (60, 120))]
    seen = set()
    for budget in budgets:
        for max_chunk in (None, 64):
            shape = {"residency": residency, "digit_bits": 6, "max_chunk": max_chunk}
            plan = plan_msm(n, "g1", budget, multiprocessors=1, **shape)
            assert plan.workspace_bytes <= budget
            seen.add((plan.chunks, plan.group_sets))
            assert np.array_equal(device_msm(device, "g1", points, values, budget=budget, **shape), expected)
    assert len(seen) > 1 and max(chunks for chunks, _ in seen) > 1, seen


@pytest.mark.parametrize(("bits", "group_sets", "folds"), [(6, 5, 3), (6, 5, 1), (7, 1, 6), (7, 2, 19), (7, 37, 1)])
@pytest.mark.parametrize("chunk", [50, 120])
def test_result_does_not_depend_on_folds(device, bits, group_sets, folds, chunk):
    """Wide sets end inside a group, a last group and a last fold are smaller, or everything is one of each."""
    rng = random.Random(bits)
    n = 120
    points, values = some_points("g1", n, 10), scalars([rng.randrange(R) for _ in range(n)])
    plan = plan_msm(n, "g1", 1 << 34, multiprocessors=1, digit_bits=bits)
    plan = replace(plan, group_sets=group_sets, fold_units=-(-plan.units(plan.sets) // folds), chunk=chunk)
    assert sum(sets for _, sets in plan.folds()) == plan.sets
    assert all(plan.buckets(*fold) <= plan.fold_buckets for fold in plan.folds())
    msm, held = Msm(device, plan), (device.upload(points), device.upload(values))
    assert np.array_equal(msm.run(held[0].address, held[1].address, None).result(), host_msm("g1", points, values))
    msm.free()


def test_plans_weigh_memory():
    """More memory never makes a plan dearer; where not all sets fit, folds hold several groups."""
    n, seen, cost = 1 << 24, set(), math.inf
    for per_point in (80, 100, 120, 160, 200, 300, 500, 900):
        plan = plan_msm(n, "g1", per_point * n)
        assert plan.workspace_bytes <= per_point * n and plan.total_cost() <= cost
        cost = plan.total_cost()
        seen.add((plan.group_sets, len(plan.folds()), plan.sets))
    assert plan.group_sets == plan.sets and any(group < sets // folds for group, folds, sets in seen), seen


@pytest.mark.parametrize("tables", [2, 3])
def test_tables_of_shifted_points(device, tables):
    rng = random.Random(4)
    n, bits = 60, 6
    points, values = some_points("g1", n, 9), scalars([rng.randrange(R) for _ in range(n)])
    plan = plan_msm(n, "g1", 1 << 34, multiprocessors=1, digit_bits=bits, tables=tables)
    held = device.allocate(tables * points.nbytes, "tables")
    device.copy(held.address, points.ctypes.data, points.nbytes, None)
    build_tables(device, plan, held.address, None)
    shifted = device.download(held.address, np.empty((tables * n, 12), dtype=np.uint64))
    for j in range(tables):
        factor = scalars([pow(2, plan.table_shift_bits(j), R)] * n)
        assert np.array_equal(shifted[j * n : (j + 1) * n], native.scale_g1(points, factor))
    for max_chunk in (None, 25):
        shape = {"digit_bits": bits, "tables": tables, "max_chunk": max_chunk}
        assert np.array_equal(device_msm(device, "g1", shifted, values, **shape), host_msm("g1", points, values))


def test_montgomery_scalars(device):
    rng = random.Random(2)
    points, values = some_points("g1", 40, 2), scalars([rng.randrange(R) for _ in range(40)])
    mont = native.fr_from_std(values)
    assert np.array_equal(device_msm(device, "g1", points, mont, digit_bits=5, scalars_mont=True), host_msm("g1", points, values))


def test_too_small_a_budget_is_refused_before_any_launch(device):
    before = device.launches
    with pytest.raises(OutOfMemoryError, match=r"MSM of 1048576 points in G1 needs at least .* GiB .*granted"):
        plan_msm(1 << 20, "g1", 1 << 20)
    with pytest.raises(OutOfMemoryError, match="batch addition"):
        plan_batch_add(1 << 20, "g2", 1 << 20)
    assert device.launches == before


@pytest.mark.parametrize("pair_sums", [False, True])
@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize(
    ("n", "share"), [(0, 1.0), (1, 1.0), (2, 1.0), (77, 0.5), (501, 0.9), (2500, 0.5), (500, 0.0), (400, 0.01), (95, 1.0)]
)
def test_batch_add(device, group, n, share, pair_sums, monkeypatch):
    monkeypatch.setattr("cuzk.gpu.batch_add.FINISH_AT", 32)
    monkeypatch.setattr("cuzk.gpu.batch_add.FINISH_BLOCKS", 2)
    points = some_points(group, n, n)
    points[::9] = 0
    points[5::12] = points[4::12][: len(points[5::12])]  # equal neighbours, of one pair and of two
    points[6::24] = points[5::24][: len(points[6::24])]
    negate = native.g1_neg if group == "g1" else native.g2_neg
    points[15::24] = negate(points[14::24][: len(points[15::24])].copy())
    bits = np.random.default_rng(n).random(n) < share
    words = np.zeros(-(-n // 32) * 4, dtype=np.uint8)
    packed = np.packbits(bits, bitorder="little")
    words[: len(packed)] = packed
    if n % 32:
        words[-1] |= 0x80  # a bit past the last point
        words[n // 8] |= 1 << n % 8  # and one beside it
    expected = (native.batch_add_g1 if group == "g1" else native.batch_add_g2)(points, packed)
    plan = plan_batch_add(n, group, 1 << 34, selected=int(bits.sum()), multiprocessors=1, pair_sums=pair_sums)
    add = BatchAdd(device, plan)
    held = device.upload(np.concatenate([points, 0 * points[: n // 2] if pair_sums else points[:0]])), device.upload(words)
    if pair_sums:
        build_pair_sums(device, group, n, held[0].address, None)
    got = add.run(held[0].address, held[1].address, None).result()
    for block in (add, *held):
        block.free()
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("group", ["g1", "g2"])
def test_sums_of_neighbouring_points(device, group, monkeypatch):
    monkeypatch.setattr("cuzk.gpu.tables.PAIR_SUMS_CHUNK", 7)
    n = 45
    points = some_points(group, n, 3)
    points[4] = points[5]
    points[6:9] = 0
    points[11] = (native.g1_neg if group == "g1" else native.g2_neg)(points[10:11])[0]
    held = device.upload(np.concatenate([points, points[: n // 2]]))
    build_pair_sums(device, group, n, held.address, None)
    got = device.download(held.address, np.empty((n + n // 2, points.shape[1]), dtype=np.uint64))
    add = native.batch_add_g1 if group == "g1" else native.batch_add_g2
    both = np.array([3], dtype=np.uint8)
    assert np.array_equal(got, np.concatenate([points, *(add(points[2 * i : 2 * i + 2], both) for i in range(n // 2))]))
    held.free()


def test_plans_of_near_sizes_are_one_search_and_never_take_more_than_granted():
    rng = random.Random(7)
    for _ in range(60):
        n, budget = int(2 ** rng.uniform(0, 24)), int(2 ** rng.uniform(24, 36))
        plan = plan_msm(n, "g1", budget)
        assert plan.n == n and plan.workspace_bytes <= budget and plan.chunk * plan.chunks >= n
    searches = msm_plan._cheapest.cache_info().misses
    for n in range(100_001, 100_001 + 50):
        assert plan_msm(n, "g1", 1 << 30).chunks == 1
    assert msm_plan._cheapest.cache_info().misses <= searches + 1
