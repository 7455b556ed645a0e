"""An emulated GPU whose context is spoiled in the middle of a step: the launch that does it, and every call after it, says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cuzk.errors import DeviceLost
from cuzk.exec.cuda import CudaProver
from cuzk.exec.device import Device, Work
from tests.unit.kernels.emulated import EmulatedDevice


class SpoiledDevice(EmulatedDevice):
    lost = False
    spoiled_by: int | None = None
    """The number of the launch that does it."""

    def launch(self, *args: Any, **kwargs: Any) -> None:
        self.lost = self.lost or self.launches == self.spoiled_by
        self._ask()
        super().launch(*args, **kwargs)

    def _ask(self) -> None:
        if self.lost:
            raise DeviceLost(0, "a kernel launch: cudaErrorIllegalAddress")

    def allocate(self, *args: Any, **kwargs: Any) -> Any:
        self._ask()
        return super().allocate(*args, **kwargs)

    def copy(self, *args: Any) -> None:
        self._ask()
        super().copy(*args)

    def memory_info(self) -> tuple[int, int]:
        self._ask()
        return super().memory_info()

    def wait(self, event: Any) -> None:
        self._ask()


class SpoiledProver(CudaProver):
    """Spoils its device with the third launch of step `step` of proof 0; `marker` is there from then on, and it is done once."""

    def __init__(self, kernels: Path, marker: Path, step: str, *args: Any) -> None:
        self._device, self._marker, self._step = SpoiledDevice(kernels), marker, step
        super().__init__(*args, open_gpu=lambda index: self._device)

    def perform(self, work: Work) -> None:
        if work.name == self._step and work.pset.proof == 0 and not self._marker.exists():
            self._marker.touch()
            self._device.spoiled_by = self._device.launches + 2
        super().perform(work)


def spoiled(kernels: Path, marker: Path, step: str) -> Callable[..., Device]:
    return partial(SpoiledProver, kernels, marker, step)
