"""Splitting a key's lists by the witness, and the bits of a template by wire: the device's kernels run on the CPU."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

native = pytest.importorskip("cuzk.native")
if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.errors import OutOfMemoryError  # noqa: E402
from cuzk.gpu.matvec import bit_ranks, mask_words  # noqa: E402
from cuzk.gpu.split import (  # noqa: E402
    SplitPlan,
    WireIndex,
    capacity_within,
    flatten_bits,
    gather_points,
    list_finite,
)

from .emulated import EmulatedDevice  # noqa: E402
from .splitting import check  # noqa: E402


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDevice:
    return EmulatedDevice(tmp_path_factory.mktemp("emulated"))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("shares", [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.45, 0.05)])
def test_lists_of_all_shapes(device, n, shares):
    rng = np.random.default_rng(n)
    kind = rng.random(n)
    ones, others = kind < shares[0], kind > 1 - shares[1]
    some = np.flatnonzero(rng.random(n) < 0.7).astype(np.uint32)
    check(device, ones, others, [
        (None, 0, n, None), (None, n // 3, n - n // 3, rng.random(n - n // 3) < 0.8), (some, 0, len(some), None),
        (some, 0, len(some), rng.random(len(some)) < 0.5), (None, 0, 0, None),
    ])  # fmt: skip


def test_tails_at_the_borders_of_words(device):
    n = 2200
    others = np.zeros(n, bool)
    others[[0, 31, 32, 63, 64, 127, 1023, 1024, 1055, 2047, 2048, n - 1]] = True
    backwards = np.arange(n, dtype=np.uint32)[::-1].copy()
    check(device, ~others, others, [(None, 0, n, None), (None, 1, n - 1, None), (backwards, 0, n, None)])


def test_a_tail_beyond_its_plan_is_refused_and_nothing_is_written_past_it(device):
    others = np.ones(100, bool)
    with pytest.raises(OutOfMemoryError, match="100 scalars of a list are neither 0 nor 1"):
        check(device, ~others, others, [(None, 0, 100, None)], capacity=99)


def test_capacity_of_a_granted_block():
    rows = (1000, 700, 300)
    for room in (SplitPlan(rows, 0).total_bytes, 20_000, 60_000, 10**6):
        capacity = capacity_within(rows, 36, room)
        assert SplitPlan(rows, capacity).total_bytes + 36 * capacity <= room
        assert capacity == 1000 or SplitPlan(rows, capacity + 1).total_bytes + 36 * (capacity + 1) > room


@pytest.mark.parametrize("group, units", [("g1", 12), ("g2", 24)])
def test_points_are_gathered_and_infinity_is_seen(device, group, units):
    rng = np.random.default_rng(3)
    points = rng.integers(1, 2**63, (500, units), dtype=np.uint64)
    infinite = rng.random(500) < 0.3
    points[infinite] = 0
    points[~infinite & (rng.random(500) < 0.3), :-1] = 0  # a single word tells them from infinity
    rows = rng.integers(0, 500, 333).astype(np.uint32)
    held, listed = device.upload(points), device.upload(rows)
    out, bitmap = device.allocate(points[rows].nbytes, "points"), device.allocate(64, "finite")
    gather_points(device, group, listed.address, 333, held.address, out.address, None)
    assert np.array_equal(device.download(out.address, np.empty((333, units), np.uint64)), points[rows])
    list_finite(device, group, 500, held.address, bitmap.address, None)
    bits = np.unpackbits(device.download(bitmap.address, np.empty(64, np.uint8)), bitorder="little")
    assert np.array_equal(bits[:500].astype(bool), ~infinite)
    for block in (held, listed, out, bitmap):
        block.free()


class Shape:
    """What flattening needs of a template."""

    class Part:
        def __init__(self, field_aux: np.ndarray) -> None:
            self.field_aux, self.aux = field_aux, len(field_aux)

    def __init__(self, rng: np.random.Generator, inputs: int, prefix: int, body: int, copies: int) -> None:
        self.prefix, self.body = (self.Part(rng.random(n) < 0.2) for n in (prefix, body))
        self.n_inputs, self.copies, self.n_aux = inputs, copies, prefix + copies * body


@pytest.mark.parametrize(
    "sizes", [(1, 0, 1, 1), (3, 64, 64, 5), (65, 1, 100, 7), (64, 63, 3, 60), (2, 130, 1000, 3), (5, 70, 0, 4), (1, 64, 65, 33)]
)
def test_bits_of_a_template_by_wire(device, sizes):
    rng = np.random.default_rng(sum(sizes))
    shape = Shape(rng, *sizes)
    wires = shape.n_inputs + shape.n_aux
    prefix, body = rng.random(shape.prefix.aux) < 0.5, rng.random((shape.copies, shape.body.aux)) < 0.5
    stride = -(-shape.body.aux // 64)
    copies = np.concatenate([np.pad(mask_words(b), (0, stride - len(mask_words(b)))) for b in body])
    held = [device.upload(mask_words(prefix)), device.upload(copies)]
    out = device.allocate(8 * -(-wires // 64), "bits")
    flatten_bits(device, shape, held[0].address, held[1].address, stride, False, out.address, None)
    want = np.concatenate([np.zeros(shape.n_inputs, bool), prefix, body.reshape(-1)])
    assert np.array_equal(device.download(out.address, np.empty(-(-wires // 64), np.uint64)), mask_words(want))

    index = WireIndex(device, shape, None)
    want = np.concatenate([np.ones(shape.n_inputs, bool), shape.prefix.field_aux, np.tile(shape.body.field_aux, shape.copies)])
    words = mask_words(want)
    assert np.array_equal(device.download(index.mask, np.empty_like(words)), words)
    assert np.array_equal(device.download(index.rank, np.empty(len(words), np.uint32)), bit_ranks(words))
    index.free()
    for block in (out, *held):
        block.free()
