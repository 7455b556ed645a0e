"""A prover that spoils its CUDA context on purpose, by a real fault of a real kernel, in a step of proof 1 or later."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cuzk.exec.cuda import CudaProver
from cuzk.exec.device import Device, Work

FAULTS = {
    "illegal": ("*(volatile int *)16 = 1;", "illegal memory access"),
    "misaligned": ("*(volatile int *)((char *)scratch + 1) = 1;", "misaligned address"),
    "trap": ("__trap();", "launch failure"),
}
"""Statement of the kernel, and what the driver says of it."""


class SpoilingProver(CudaProver):
    def __init__(self, marker: str, fault: str, *args: Any, lives: int = 1, step: str = "msm_h", **kwargs: Any) -> None:
        """Once in each of the first `lives` processes; each leaves `marker` with its number."""
        super().__init__(*args, **kwargs)
        self._marker, self._fault, self._lives, self._step = marker, fault, lives, step

    def perform(self, work: Work) -> None:
        if work.name == self._step and work.pset.proof >= 1:
            for life in range(self._lives):
                path = Path(f"{self._marker}-{life}")
                if not path.exists():
                    path.touch()
                    self._spoil(work.gpu)
                    break
        super().perform(work)

    def _spoil(self, gpu: int) -> None:
        import cupy

        with cupy.cuda.Device(gpu):
            source = f'extern "C" __global__ void spoil(int *scratch) {{ {FAULTS[self._fault][0]} }}'
            scratch = cupy.cuda.runtime.malloc(256)
            with cupy.cuda.Stream(non_blocking=True):
                cupy.RawKernel(source, "spoil")((1,), (1,), (cupy.uint64(scratch),))


def spoiling(marker: Path, fault: str, lives: int = 1) -> Callable[..., Device]:
    return partial(SpoilingProver, str(marker), fault, lives=lives)
