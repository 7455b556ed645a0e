"""The self-test of a GPU on the emulated one: its kernels pass, a spoilt one is named."""

import shutil

import numpy as np
import pytest

if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.groth16.gpu import selftest

from .emulated import EmulatedDevice

pytestmark = pytest.mark.slow


def test_the_emulated_card_passes_and_a_spoilt_one_does_not(tmp_path, monkeypatch):
    device = EmulatedDevice(tmp_path)
    assert selftest.run_device(device, 3000).wrong == []
    real = device.download

    def spoilt(address, out):
        out = real(address, out)
        out.reshape(-1)[-1] ^= np.uint64(1)
        return out

    monkeypatch.setattr(device, "download", spoilt)
    wrong = selftest.run_device(device, 100).wrong
    assert {line.split(":")[0] for line in wrong} >= {"gpu fr_mul", "gpu fq_sub", "gpu ntt of 2^4 with the root of 5"}
