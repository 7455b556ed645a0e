"""Lists split by a witness on a GPU, and a template's bits by wire, against the host."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.gpu.matvec import bit_ranks, mask_words
from cuzk.gpu.split import WireIndex, flatten_bits, gather_points, list_finite
from tests.small_template import small_case
from tests.unit.kernels.splitting import check

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("n", [1, 1000, 1025, 3_000_001])
@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.47, 0.013), (0.0, 1.0)])
def test_split(device, n, shares):
    rng = np.random.default_rng()
    kind = rng.random(n)
    some = np.flatnonzero(rng.random(n) < 0.25).astype(np.uint32)
    check(device, kind < shares[0], kind > 1 - shares[1], [
        (None, 0, n, rng.random(n) < 0.9), (None, n // 3, n - n // 3, None), (some, 0, len(some), None),
    ])  # fmt: skip


def test_a_template_by_wire(device):
    template, witness = small_case(40)
    stream = device.stream()
    index = WireIndex(device, template, stream)
    fields = np.concatenate([
        np.ones(template.n_inputs, bool), template.prefix.field_aux, np.tile(template.body.field_aux, template.copies)
    ])  # fmt: skip
    words = mask_words(fields)
    assert np.array_equal(device.download(index.mask, np.empty_like(words)), words)
    assert np.array_equal(device.download(index.rank, np.empty(len(words), np.uint32)), bit_ranks(words))
    held = [device.upload(np.ascontiguousarray(a)) for a in (witness.prefix_bits, witness.body_bits)]
    out = device.allocate(words.nbytes, "bits")
    flatten_bits(device, template, held[0].address, held[1].address, witness.body_bits.shape[1], False, out.address, stream)
    stream.synchronize()
    values = witness.expand_std()
    got = np.unpackbits(device.download(out.address, np.empty(words.nbytes, np.uint8)), bitorder="little")[: len(values)]
    assert np.array_equal(got[~fields], values[~fields, 0])
    for block in (*held, out, index):
        block.free()


@pytest.mark.parametrize("group, units", [("g1", 12), ("g2", 24)])
def test_points(device, group, units):
    rng, n = np.random.default_rng(), 200_000
    points = rng.integers(0, 1 << 63, (n, units), dtype=np.uint64)
    points[rng.random(n) < 0.3] = 0
    rows = rng.integers(0, n, 70_001).astype(np.uint32)
    held, listed, stream = device.upload(points), device.upload(rows), device.stream()
    out, bitmap = device.allocate(points[rows].nbytes, "points"), device.allocate(4 * -(-n // 32), "finite")
    gather_points(device, group, listed.address, len(rows), held.address, out.address, stream)
    list_finite(device, group, n, held.address, bitmap.address, stream)
    stream.synchronize()
    assert np.array_equal(device.download(out.address, np.empty((len(rows), units), np.uint64)), points[rows])
    bits = np.unpackbits(device.download(bitmap.address, np.empty(4 * -(-n // 32), np.uint8)), bitorder="little")
    assert np.array_equal(bits[:n].astype(bool), points.any(axis=1))
    for block in (held, listed, out, bitmap):
        block.free()
