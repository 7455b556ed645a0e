"""Transforms and quotients on a GPU against the host library, all sizes and orders, and two plans on two streams at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cuzk import native
from cuzk.gpu import ntt, ntt_plan, quotient

pytestmark = pytest.mark.gpu

R = ntt_plan.FR_MODULUS


def mont(value: int) -> np.ndarray:
    return np.frombuffer(ntt_plan.to_mont(value).to_bytes(32, "little"), np.uint64).reshape(1, 4).copy()


def random_fr(n: int, rng: np.random.Generator) -> np.ndarray:
    out = rng.integers(0, 1 << 64, (n, 4), dtype=np.uint64)
    out[:, 3] %= np.uint64(R >> 192)
    out[rng.integers(0, n, n // 50)] = 0
    out[rng.integers(0, n, n // 50)] = np.frombuffer((R - 1).to_bytes(32, "little"), np.uint64)
    return out


def bit_reversal(log_n: int) -> np.ndarray:
    index, out = np.arange(1 << log_n), np.zeros(1 << log_n, np.int64)
    for bit in range(log_n):
        out |= (index >> bit & 1) << (log_n - 1 - bit)
    return out


def run(device, plan, values: np.ndarray) -> np.ndarray:
    data, stream = device.upload(values), device.stream()
    plan.run(data.address, stream)
    stream.synchronize()
    out = device.download(data.address, np.empty_like(values))
    data.free()
    return out


@pytest.mark.parametrize("log_n", [*range(1, 21), 22])
def test_against_host(device, log_n):
    rng = np.random.default_rng()
    reversal = bit_reversal(log_n)
    for inverse, coset, order in itertools.product((False, True), (None, 7, int(rng.integers(2, 2**62))), ("nn", "nr", "rn")):
        root = int(rng.choice((5, 7)))
        values = random_fr(1 << log_n, rng)
        want = native.ntt(values.copy(), root, inverse, None if coset is None else mont(coset))
        plan = ntt.Ntt(device, log_n, root=root, inverse=inverse, coset=coset, order=order)
        got = run(device, plan, values[reversal] if order == "rn" else values)
        plan.free()
        assert np.array_equal(got, want[reversal] if order == "nr" else want), (root, inverse, coset, order)
        if log_n == 22:
            break


@pytest.mark.slow
@pytest.mark.parametrize("log_n", [21, 23, 24, 25, 26, 27, 28])
def test_large_by_evaluation(device, log_n):
    """Forward on a coset: some values against the polynomial on the CPU. Then the inverse gives every coefficient back."""
    n, chunk = 1 << log_n, 1 << 20
    rng = np.random.default_rng()
    seeds = random_fr(chunk, rng)
    stream, data = device.stream(), device.allocate(32 * n, "data")

    def part(i: int) -> np.ndarray:  # distinct in every chunk
        return native.fr_mul(seeds, mont(i + 2))

    for i in range(n // chunk):
        device.copy(data.address + 32 * chunk * i, (held := part(i)).ctypes.data, held.nbytes, stream)
        stream.synchronize()
    plan = ntt.Ntt(device, log_n, coset=7)
    plan.run(data.address, stream)
    stream.synchronize()
    for k in rng.integers(0, n, 2):
        x = 7 * pow(ntt_plan.root_of_unity(log_n, 7), int(k), R) % R
        # the same polynomial in every chunk, but for a factor
        first = int.from_bytes(native.fr_dot_mont(seeds, native.fr_powers_mont(mont(x), chunk)).tobytes(), "little")
        want = first * sum((i + 2) * pow(x, chunk * i, R) for i in range(n // chunk)) % R
        got = device.download(data.address + 32 * int(k), np.empty((1, 4), np.uint64))
        assert int.from_bytes(got.tobytes(), "little") == want
    plan.free()
    plan = ntt.Ntt(device, log_n, coset=7, inverse=True)
    plan.run(data.address, stream)
    stream.synchronize()
    for i in range(n // chunk):
        assert np.array_equal(device.download(data.address + 32 * chunk * i, np.empty((chunk, 4), np.uint64)), part(i)), i
    plan.free()
    data.free()


def test_two_streams_at_once(device):
    rng = np.random.default_rng()
    n = 1 << 16
    plan = ntt.Ntt(device, 16, coset=7)
    inputs = [random_fr(n, rng) for _ in range(2)]
    blocks, streams = [device.upload(v) for v in inputs], [device.stream() for _ in range(2)]
    for _ in range(3):
        for block, stream in zip(blocks, streams, strict=True):
            plan.run(block.address, stream)
    for values, block, stream in zip(inputs, blocks, streams, strict=True):
        stream.synchronize()
        want = values.copy()
        for _ in range(3):
            native.ntt(want, 7, False, mont(7))
        assert np.array_equal(device.download(block.address, np.empty_like(values)), want)
        block.free()
    plan.free()


@pytest.mark.parametrize("log_n", [1, 2, 4, 9, 13, 17, 20])
@pytest.mark.parametrize("kind", quotient.KINDS)
def test_quotients(device, log_n, kind):
    rng = np.random.default_rng()
    n, root = 1 << log_n, 7 if kind == "bellman" else 5
    a, b = random_fr(n, rng), random_fr(n, rng)
    c = native.fr_mul(a, b)
    shift = mont(7 if kind == "bellman" else ntt_plan.root_of_unity(log_n + 1, root))
    on = [native.ntt(native.ntt(v.copy(), root, True), root, False, shift) for v in (a, b, c)]
    want = native.fr_mul(on[0], on[1])
    if kind != "c-free":
        want = native.fr_sub(want, on[2])
    if kind == "bellman":
        want = native.ntt(native.fr_mul(want, mont(pow(pow(7, n, R) - 1, -1, R))), root, True, shift)
    q = quotient.Quotient(device, kind, log_n, root=root)
    blocks, stream = [device.upload(v) for v in (a, b, c)], device.stream()
    q.run(blocks[0].address, blocks[1].address, 0 if kind == "c-free" else blocks[2].address, stream)
    stream.synchronize()
    assert np.array_equal(device.download(blocks[0].address, np.empty_like(a)), native.fr_to_std(want))
    q.free()
    for block in blocks:
        block.free()
