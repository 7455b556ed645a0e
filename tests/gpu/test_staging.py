"""A large upload from a mapped file, through page-locked blocks: every byte arrives; the rate is printed."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cuzk.gpu.staging import STAGED_FROM

pytestmark = pytest.mark.gpu


def test_a_mapped_file(device, tmp_path):
    nbytes = 4 * STAGED_FROM + 4104
    values = np.random.default_rng(1).integers(0, 2**63, nbytes // 8, dtype=np.uint64)
    values.tofile(tmp_path / "points")
    mapped = np.memmap(tmp_path / "points", np.uint64, "r")
    start_s = time.perf_counter()
    memory = device.upload(mapped, "points", behind_bytes=96)
    took_s = time.perf_counter() - start_s
    print(f"{nbytes / took_s / 1e9:.1f} GB/s")
    assert np.array_equal(device.download(memory.address, np.empty_like(values)), values)
    memory.free()
