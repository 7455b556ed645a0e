from __future__ import annotations

import pytest

from cuzk.errors import HardwareMissing


@pytest.fixture(scope="session")
def device():
    """The first GPU; skipped with the reason where there is none."""
    from cuzk.gpu.device import CudaDevice

    try:
        return CudaDevice()
    except HardwareMissing as fault:
        pytest.skip(str(fault))
