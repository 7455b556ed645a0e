"""Transforms and quotients: the kernels and plans of the device, run on the CPU, against plain integers and the host library."""

from __future__ import annotations

import itertools
import random
import shutil

import numpy as np
import pytest

native = pytest.importorskip("cuzk.native")
if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.errors import OutOfMemoryError  # noqa: E402
from cuzk.gpu import ntt, ntt_plan, quotient  # noqa: E402

from .emulated import EmulatedDevice  # noqa: E402

R = ntt_plan.FR_MODULUS


def array(values: list[int]) -> np.ndarray:
    return np.frombuffer(b"".join(v.to_bytes(32, "little") for v in values), dtype=np.uint64).reshape(-1, 4).copy()


def integers(a: np.ndarray) -> list[int]:
    raw = a.tobytes()
    return [int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32)]


def random_values(n: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    edge = [0, 1, R - 1, 2**128, 2**128 - 1, R - 2**128]
    return [rng.choice(edge) if rng.random() < 0.2 else rng.randrange(R) for _ in range(n)]


def bit_reversed(values: list) -> list:
    bits = len(values).bit_length() - 1
    return [values[int(format(i, f"0{bits}b")[::-1], 2)] for i in range(len(values))]


def by_definition(values: list[int], root: int, inverse: bool, shift: int) -> list[int]:
    """forward: y_k = sum_j x_j (g w^k)^j; inverse: the coefficients of the values."""
    n = len(values)
    w = ntt_plan.root_of_unity(n.bit_length() - 1, root)
    if inverse:
        scale, back, step = pow(n, -1, R), pow(shift, -1, R), pow(w, -1, R)
        return [sum(y * pow(step, j * k, R) for k, y in enumerate(values)) * scale * pow(back, j, R) % R for j in range(n)]
    return [sum(x * pow(shift * pow(w, k, R), j, R) for j, x in enumerate(values)) % R for k in range(n)]


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDevice:
    return EmulatedDevice(tmp_path_factory.mktemp("emulated"))


def transformed(device: EmulatedDevice, values: np.ndarray, log_n: int, **options) -> np.ndarray:
    plan = ntt.Ntt(device, log_n, **options)
    data = device.upload(values)
    plan.run(data.address, None)
    out = device.download(data.address, np.empty_like(values))
    data.free()
    plan.free()
    return out


def host(values: np.ndarray, root: int, inverse: bool, coset: int | None) -> np.ndarray:
    shift = None if coset is None else array([ntt_plan.to_mont(coset)])
    return native.ntt(values.copy(), root, inverse, shift)


@pytest.mark.parametrize("log_n", range(1, 7))
@pytest.mark.parametrize("root", [5, 7])
def test_small_by_definition(device, log_n, root):
    for inverse, coset, order in itertools.product((False, True), (None, 7), ("nn", "nr", "rn")):
        values = random_values(1 << log_n, log_n)
        given = bit_reversed(values) if order == "rn" else values
        got = integers(transformed(device, array(given), log_n, root=root, inverse=inverse, coset=coset, order=order))
        want = by_definition(values, root, inverse, coset or 1)
        assert got == (bit_reversed(want) if order == "nr" else want), (inverse, coset, order)


@pytest.mark.parametrize("log_n", [7, 9, 10, 11, 12, 14])
@pytest.mark.parametrize("inverse", [False, True])
def test_against_host(device, log_n, inverse):
    rng = random.Random(log_n)
    for order, coset in (("nn", rng.randrange(2, R)), ("rn", None), ("nr", 7)):
        root = rng.choice((5, 7))
        values = array(random_values(1 << log_n, log_n))
        index = bit_reversed(list(range(1 << log_n)))
        given = values[index] if order == "rn" else values
        want = host(values, root, inverse, coset)
        got = transformed(device, given, log_n, root=root, inverse=inverse, coset=coset, order=order)
        assert np.array_equal(got, want[index] if order == "nr" else want), (order, coset, root)


@pytest.mark.slow
@pytest.mark.parametrize("log_n", [18, 19, 20])
def test_three_passes_and_cut_tables(device, log_n):
    values = array(random_values(1 << log_n, log_n))
    assert np.array_equal(transformed(device, values, log_n, coset=7), host(values, 7, False, 7))


def test_batch_keeps_its_distance(device):
    n, stride = 1 << 7, (1 << 7) + 3
    values = array(random_values(3 * stride, 1))
    plan, data = ntt.Ntt(device, 7), device.upload(values)
    plan.run(data.address, None, batch=3, batch_stride=stride)
    got = device.download(data.address, np.empty_like(values))
    for i in range(3):
        assert np.array_equal(got[i * stride : i * stride + n], host(values[i * stride : i * stride + n], 7, False, None))
        assert np.array_equal(got[i * stride + n : (i + 1) * stride], values[i * stride + n : (i + 1) * stride])


def on_coset(values: list[int], root: int, shift: int) -> list[int]:
    a = host(array(values), root, True, None)
    return integers(host(a, root, False, shift))


@pytest.mark.parametrize("log_n", [1, 2, 3, 5, 9, 11])
@pytest.mark.parametrize("kind", quotient.KINDS)
@pytest.mark.parametrize("mont", [True, False])
def test_quotients(device, log_n, kind, mont):
    n, root = 1 << log_n, 5 if log_n % 2 else 7
    a, b, c = (random_values(n, seed) for seed in (1, 2, 3))
    if kind == "bellman":
        c = [x * y % R for x, y in zip(a, b, strict=True)]  # a satisfied circuit: h is a polynomial
    shift = 7 if kind == "bellman" else ntt_plan.root_of_unity(log_n + 1, root)
    on_a, on_b, on_c = (on_coset(v, root, shift) for v in (a, b, c))
    want = [x * y % R for x, y in zip(on_a, on_b, strict=True)]
    if kind != "c-free":
        want = [x - y for x, y in zip(want, on_c, strict=True)]
    if kind == "bellman":
        vanishing = pow(pow(shift, n, R) - 1, -1, R)
        want = integers(host(array([x * vanishing % R for x in want]), root, True, shift))
        assert want[-1] == 0
    blocks = [device.upload(array([ntt_plan.to_mont(v) if mont else v for v in values])) for values in (a, b, c)]
    q = quotient.Quotient(device, kind, log_n, root=root, mont=mont)
    q.run(blocks[0].address, blocks[1].address, blocks[2].address if kind != "c-free" else 0, None)
    got = integers(device.download(blocks[0].address, np.empty((n, 4), np.uint64)))
    assert got == [x % R for x in want]
    q.free()
    for block in blocks:
        block.free()  # checks the guards behind them


@pytest.mark.parametrize("log_n", range(1, 29))
def test_plans_of_all_sizes(log_n):
    passes = ntt_plan.split_passes(log_n)
    assert sum(p.digits for p in passes) == log_n and passes[-1].lo == 0
    for p in passes:
        assert 1 <= p.threads <= 128 and p.shared_bytes <= 48 << 10
        assert p.digits + p.cols <= ntt_plan.TILE_BITS and p.blocks << (p.digits + p.cols) >= 1 << log_n
    assert ntt.plan_bytes(log_n)["tables"] <= max(1 << 10, 4 * 32 << log_n, 96 << 20)


def test_out_of_memory_before_a_launch(device, monkeypatch):
    monkeypatch.setattr(device, "memory_info", lambda: (1000, 2000))
    launches = device.launches
    with pytest.raises(OutOfMemoryError, match="tables of a transform need"):
        ntt.Ntt(device, 12)
    assert device.launches == launches


@pytest.mark.parametrize("wrong", [{"order": "rr"}, {"root": 3}, {"coset": 0}, {"coset": R}])
def test_refused(device, wrong):
    with pytest.raises(ValueError):
        ntt.Ntt(device, 3, **wrong)


@pytest.mark.parametrize("log_n", [0, 29, -1])
def test_sizes_refused(device, log_n):
    with pytest.raises(ValueError, match="2\\^1 to 2\\^28"):
        ntt.Ntt(device, log_n)
