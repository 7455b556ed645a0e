"""MSM: any scalars, any points of the curve, any meeting of points in a bucket."""

import subprocess
import sys

import numpy as np
import py_arkworks_bls12381 as ark
import pytest

from tests.unit.native import native_reference as ref
from tests.unit.native.native_reference import R

VARIANTS = "lanes"


def known(group, logs):
    """Points with the given logarithms."""
    return group.fixed_base(ref.ints_to_array([v % R for v in logs]).reshape(-1, 4))


def expected(group, logs, scalars):
    return group.fixed_base(ref.ints_to_array([sum(a * b for a, b in zip(logs, scalars, strict=True)) % R]))


def check(group, logs, scalars, **kwargs):
    got = group.msm(known(group, logs), ref.ints_to_array(scalars).reshape(-1, 4), **kwargs)
    assert np.array_equal(got, expected(group, logs, scalars))


# INV-18
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 31, 32, 33, 100, 1000, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("threads", [1, 2, 9])
def test_random(n, threads, group):
    r = ref.rng(n)
    check(group, [r.randrange(R) for _ in range(n)], [r.randrange(R) for _ in range(n)], threads=threads)


CASES = {
    "all zero": lambda r, n: [0] * n,
    "all one": lambda r, n: [1] * n,
    "all two": lambda r, n: [2] * n,
    "all r-1": lambda r, n: [R - 1] * n,
    "all r": lambda r, n: [R] * n,
    "all 2^256-1": lambda r, n: [2**256 - 1] * n,
    "all 2^255": lambda r, n: [1 << 255] * n,
    "one full scalar": lambda r, n: [0] * (n - 1) + [R - 1],
    "short": lambda r, n: [r.randrange(300) for _ in range(n)],
    "bits": lambda r, n: [r.randrange(2) for _ in range(n)],
    "64 bits": lambda r, n: [r.randrange(1 << 64) for _ in range(n)],
    "around window borders": lambda r, n: [(1 << r.randrange(255)) - r.randrange(2) for _ in range(n)],
    "half of a window": lambda r, n: [sum(1 << (8 * k + 7) for k in range(31)) for _ in range(n)],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("points", ["distinct", "equal", "opposite pairs", "infinite", "few"])
def test_special_scalars_and_points(case, points, group):
    n, r = 700, ref.rng(3)
    logs = {
        "distinct": list(range(1, n + 1)),
        "equal": [5] * n,
        "opposite pairs": [x for i in range(n // 2) for x in (i + 1, -i - 1)],
        "infinite": [0 if i % 3 else i for i in range(n)],
        "few": [r.choice([1, 2, R - 1, R - 2]) for _ in range(n)],
    }[points]
    check(group, logs, CASES[case](r, n))


def test_points_off_the_subgroup(group):
    """Equal, opposite and generic points of the whole curve, against plain integers."""
    f, r = group.field, ref.rng(4)
    some = ref.curve_points_off_subgroup(f, 4, 9)
    points = [r.choice([*some, *(ref.neg(f, p) for p in some), None]) for _ in range(60)]
    scalars = [r.choice([0, 1, 2, R - 1, r.randrange(2**256)]) for _ in range(60)]
    got = group.msm(group.array(points), ref.ints_to_array(scalars))
    assert group.points(got) == [ref.msm(f, points, scalars)]


def test_against_arkworks(group):
    r, n = ref.rng(10), 200
    logs, scalars = [r.randrange(R) for _ in range(n)], [r.randrange(R) for _ in range(n)]
    cls = ark.G1Point if group.name == "g1" else ark.G2Point
    le = [ark.Scalar.from_le_bytes(v.to_bytes(32, "little")) for v in logs]
    want = cls.multiexp_unchecked([cls() * v for v in le], [ark.Scalar.from_le_bytes(v.to_bytes(32, "little")) for v in scalars])
    got = group.points(group.msm(known(group, logs), ref.ints_to_array(scalars)))[0]
    assert b"".join(c.to_bytes(48, "little") for c in ref.coordinates(group.field, got)) == bytes(want.to_xy_bytes_le())


@pytest.mark.parametrize("threads", [1, 2, 40])
def test_several_blocks_and_streams(threads, group):
    """Enough points for several blocks, chunks and parts; a tenth of them infinite, a tenth of the scalars zero."""
    n = 70_000 if group.name == "g1" else 20_000
    r = np.random.default_rng(2)
    few = known(group, range(1000))
    index = r.integers(0, 1000, n)
    scalars = r.integers(0, 2**63, (n, 4), dtype=np.uint64)
    scalars[r.random(n) < 0.1] = 0
    index[r.random(n) < 0.1] = 0
    totals = [0] * 4
    for k in range(4):  # sum index * limb by halves, exactly
        low, high = scalars[:, k] & 0xFFFFFFFF, scalars[:, k] >> 32
        totals[k] = int((low * index.astype(np.uint64)).sum()) + (int((high * index.astype(np.uint64)).sum()) << 32)
    want = sum(t << (64 * k) for k, t in enumerate(totals)) % R
    got = group.msm(few[index], scalars, threads=threads)
    assert np.array_equal(got, group.fixed_base(ref.ints_to_array([want])))


def test_everything_in_one_bucket(group):
    """A single bucket gets all of several blocks; with equal points every addition of the first level is a doubling."""
    n = 40_000 if group.name == "g1" else 10_000
    point = known(group, [3])
    got = group.msm(np.repeat(point, n, axis=0), ref.ints_to_array([1]).repeat(n, axis=0), threads=2)
    assert np.array_equal(got, known(group, [3 * n]))


PEAK = """
import re, sys
import numpy as np
from cuzk import native

def resident(what):
    return int(re.search(rf"{what}:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1)) * 1024

name, n, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
msm, bytes_of = getattr(native, f"msm_{name}"), getattr(native, f"msm_bytes_{name}")
scalars = np.random.default_rng(1).integers(0, 2**62, (n, 4), dtype=np.uint64)
points = np.repeat(getattr(native, f"{name}_generator")(), n, axis=0)
msm(points[:64], scalars[:64], threads=threads)
open("/proc/self/clear_refs", "w").write("5")  # the peak counts from here
before = resident("VmRSS")
msm(points, scalars, threads=threads)
print(resident("VmHWM") - before, bytes_of(n, threads), bytes_of(n, 1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("threads", [1, 24])
def test_memory_is_as_announced(threads, group):
    """Peak of resident memory in a process of its own, against msm_bytes.

    From below by what one thread needs: how many of them work at once is the scheduler's to say."""
    n = 1 << 15 if group.name == "g1" else 1 << 13
    command = [sys.executable, "-c", PEAK, group.name, str(n), str(threads)]
    try:
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as e:
        if "clear_refs" in e.stderr:
            pytest.skip("the peak of resident memory cannot be reset here")
        raise
    grown, announced, by_one = map(int, printed.split())
    assert by_one / 2 < grown < announced + (4 << 20) + threads * (256 << 10)  # heaps and stacks of the threads


@pytest.mark.parametrize("n", [0, 1, 2, 30, 125])
def test_shifted_sum(n, group):
    r = ref.rng(n)
    logs = [r.choice([0, 1, r.randrange(R)]) for _ in range(n)]
    shifts = [r.choice([0, 7, r.randrange(256)]) for _ in range(n)]
    got = group.shifted_sum(known(group, logs), np.array(shifts, dtype=np.uint32))
    assert np.array_equal(got, expected(group, logs, [1 << s for s in shifts]))


def test_shifted_sum_of_points_that_cancel_and_double(group):
    logs, shifts = [5, R - 5, 3, 3, 6], [9, 9, 4, 4, 4]
    got = group.shifted_sum(known(group, logs), np.array(shifts, dtype=np.uint32))
    assert np.array_equal(got, expected(group, [12 << 4], [1]))
    with pytest.raises(ValueError, match="shifts"):
        group.shifted_sum(known(group, [1]), np.array([1 << 20], dtype=np.uint32))
