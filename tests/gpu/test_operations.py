"""Every field and curve operation, GPU against host, byte by byte, on edge values and a million random ones each.

The host runs the same kernel source on its own 64-bit arithmetic (tests/unit/kernels/emulation.hpp): an independent
implementation.
`pytest tests/gpu/test_operations.py` is the whole comparison.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "kernels"))
from emulated import EmulatedDevice, build

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("g++") is None, reason="g++ builds the host's side")]

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
Q = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
COUNT = int(os.environ.get("CUZK_COMPARE_COUNT", 1 << 20))

FIELD_OPERATIONS = ("mul", "sqr", "add", "sub", "neg", "inv")
CASES = [
    *((f"fr_{op}", R, 1) for op in (*FIELD_OPERATIONS, "to_std", "to_mont")),
    *((f"fq_{op}", Q, 1) for op in FIELD_OPERATIONS),
    *((f"fq2_{op}", Q, 2) for op in FIELD_OPERATIONS),
    *((f"fq2_lanes_{op}", Q, 2) for op in ("mul", "sqr", "inv", "mul_branching")),
    *((f"{g}_{op}", Q, 2 * k) for g, k in (("g1", 1), ("g2", 2)) for op in ("add_mixed", "add", "dbl")),
]


def elements(modulus: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, limbs) uint64 below the modulus: edge values, values with long runs of ones and zeros, random ones."""
    limbs = 4 if modulus == R else 6
    shift = 64 * limbs
    edge = [0, 1, 2, modulus - 1, modulus - 2, modulus // 2, (1 << shift) % modulus, -(1 << shift) % modulus]
    edge += [(1 << k) % modulus for k in range(0, shift, 13)] + [((1 << k) - 1) % modulus for k in range(0, shift, 13)]
    edge += [modulus & ~((1 << k) - 1) for k in (32, 64, 96, 128, 192)]
    fixed = np.frombuffer(b"".join(v.to_bytes(8 * limbs, "little") for v in edge), dtype=np.uint64).reshape(-1, limbs)
    out = rng.integers(0, 1 << 64, (count, limbs), dtype=np.uint64)
    out[count // 2 :: 7] = np.where(rng.random((len(out[count // 2 :: 7]), limbs)) < 0.5, np.uint64(0), ~np.uint64(0))
    out[:, -1] %= np.uint64(modulus >> (shift - 64))
    k = min(count // 2, len(fixed) ** 2)
    grid = np.arange(k)
    out[:k] = fixed[grid % len(fixed)]
    return out


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    directory = tmp_path_factory.mktemp("host")
    build("ec/operations", directory, emulate32=False)
    return EmulatedDevice(directory, emulate32=False)


@pytest.mark.parametrize(("name", "modulus", "coordinates"), CASES, ids=[c[0] for c in CASES])
def test_operation(device, host, name, modulus, coordinates):
    rng = np.random.default_rng()
    count = COUNT if coordinates <= 2 and "inv" not in name and not name.startswith("g") else COUNT // 8
    curve = name.startswith("g")
    parts = coordinates * (2 if curve else 1)  # XYZZ has twice the coordinates of an affine point
    a = np.concatenate([elements(modulus, count, rng) for _ in range(parts)], axis=1)
    parts_b = coordinates if name.endswith("mixed") else parts
    b = np.concatenate([np.roll(elements(modulus, count, rng), rng.integers(1, count), axis=0) for _ in range(parts_b)], axis=1)
    if curve:  # equal points, opposite points, infinity on either side
        a[::5, -a.shape[1] // 2 :] = 0
        b[1::7] = a[1::7, : b.shape[1]]
        b[2::11] = 0
    kernel_args = (np.uint32(count),)
    expected = np.empty_like(a)
    host.launch(host.kernel("ec/operations", name), 1, 1, _addresses(expected, a, b) + kernel_args, None)
    held = [device.upload(x) for x in (np.full_like(a, 0xA5), a, b)]
    stream = device.stream()
    arguments = tuple(h.address for h in held) + kernel_args
    device.launch(device.kernel("ec/operations", name), 4 * device.multiprocessors, 128, arguments, stream)
    done = device.event()
    device.record(done, stream)
    device.wait(done)
    got = device.download(held[0].address, np.empty_like(a))
    for h in held:
        h.free()
    wrong = np.flatnonzero((got != expected).any(axis=1))
    assert len(wrong) == 0, f"{len(wrong)} of {count} differ, first at {wrong[0]}"


def _addresses(*arrays: np.ndarray) -> tuple[int, ...]:
    return tuple(ctypes.cast(a.ctypes.data, ctypes.c_void_p).value or 0 for a in arrays)
