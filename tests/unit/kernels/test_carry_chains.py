"""The device's arithmetic, emulated 32-bit carry chains and division steps, against Python integers."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest

from .emulated import EmulatedDevice

if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
Q = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDevice:
    return EmulatedDevice(tmp_path_factory.mktemp("chains"))


def edge_values(p: int, bits: int) -> list[int]:
    runs = [(1 << k) % p for k in range(0, bits, 31)] + [((1 << k) - 1) % p for k in range(0, bits, 31)]
    return [0, 1, 2, p - 1, p - 2, p // 2, (1 << bits) % p, -(1 << bits) % p, p & ~0xFFFFFFFF, *runs]


def values(p: int, bits: int, count: int, rng: random.Random) -> list[tuple[int, int]]:
    edge = edge_values(p, bits)
    return [(a, b) for a in edge for b in edge] + [(rng.randrange(p), rng.randrange(p)) for _ in range(count)]


def packed(numbers: list[int], size: int) -> np.ndarray:
    return np.frombuffer(b"".join(v.to_bytes(size, "little") for v in numbers), dtype=np.uint8).copy()


def run(device: EmulatedDevice, name: str, a: np.ndarray, b: np.ndarray, count: int, size: int) -> list[int]:
    out = np.zeros(count * size, dtype=np.uint8)
    arguments = (out.ctypes.data, a.ctypes.data, b.ctypes.data, count)
    device.launch(device.kernel("ec/operations", name), 1, 64, arguments, None)  # also fails if a carry is lost
    return [int.from_bytes(out[i * size : (i + 1) * size].tobytes(), "little") for i in range(count)]


@pytest.mark.parametrize(("field", "p", "bits"), [("fr", R, 256), ("fq", Q, 384)])
def test_field(device, field, p, bits):
    pairs = values(p, bits, 2000, random.Random(1))
    size, inverse = bits // 8, pow(1 << bits, -1, p)
    a, b = packed([x for x, _ in pairs], size), packed([y for _, y in pairs], size)
    expected = {
        "mul": lambda x, y: x * y * inverse % p,
        "sqr": lambda x, y: x * x * inverse % p,
        "add": lambda x, y: (x + y) % p,
        "sub": lambda x, y: (x - y) % p,
        "neg": lambda x, y: -x % p,
        "inv": lambda x, y: pow(x, -1, p) * (1 << 2 * bits) % p if x else 0,
    }
    for op, reference in expected.items():
        got = run(device, f"{field}_{op}", a, b, len(pairs), size)
        assert got == [reference(x, y) for x, y in pairs], op


@pytest.mark.parametrize("name", ["mul", "sqr", "inv", "lanes_mul", "lanes_sqr", "lanes_inv", "lanes_mul_branching"])
def test_fq2(device, name):
    """One thread an element, and one element in two lanes."""
    rng = random.Random(2)
    edge = edge_values(Q, 384)
    rows = [[rng.choice(edge) if rng.random() < 0.3 else rng.randrange(Q) for _ in range(4)] for _ in range(601)]
    rows[0] = [0, 0, 0, 0]
    a, b = packed([v for r in rows for v in r[:2]], 48), packed([v for r in rows for v in r[2:]], 48)
    got = run(device, f"fq2_{name}", a, b, len(rows), 96)
    r1 = pow(1 << 384, -1, Q)
    for (a0, a1, b0, b1), value in zip(rows, got, strict=True):
        if "mul" in name:
            c0, c1 = (a0 * b0 - a1 * b1) * r1, (a0 * b1 + a1 * b0) * r1
        elif "sqr" in name:
            c0, c1 = (a0 * a0 - a1 * a1) * r1, 2 * a0 * a1 * r1
        else:
            norm = (a0 * a0 + a1 * a1) % Q
            scale = pow(norm, -1, Q) * (1 << 768) if norm else 0
            c0, c1 = a0 * scale, -a1 * scale
        assert value == c0 % Q | (c1 % Q) << 384
