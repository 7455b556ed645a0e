"""Devices that break in a worker process, on purpose. A worker finds them by name, so they live in a module of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cuzk.errors import DeviceLost, HardwareMissing, OutOfMemoryError
from cuzk.exec.cpu import CpuDevice
from cuzk.exec.device import Allocation, Work
from cuzk.exec.proving import ProvingDevice
from cuzk.pipeline.program import Program


@dataclass(frozen=True)
class Fault:
    """What happens in step `step` of one of `proofs`, in each of the first `lives` processes."""

    how: str
    proofs: tuple[int, ...] = (1,)
    step: str = "msm_h"
    lives: int = 1


class LosingDevice(CpuDevice):
    """The cpu device with a fault. Each process leaves a file `life-N` with its number in `folder`."""

    def __init__(self, folder: str, fault: Fault, *args: Any) -> None:
        super().__init__(*args)
        self.fault, self.life, self.hung = fault, len(list(Path(folder).glob("life-*"))), False
        Path(folder, f"life-{self.life}").write_text(str(os.getpid()))

    def open(self, plan: Program) -> None:
        if self._strikes("open"):
            raise HardwareMissing("no such device")
        if self.fault.how == "gone" and self.life:
            raise HardwareMissing("the device is gone")
        super().open(plan)

    def allocate(self, request: Allocation) -> Any:
        if request.buffer.startswith("srs") and self._strikes("kill-load"):
            os.kill(os.getpid(), signal.SIGKILL)
        if request.buffer.startswith("srs") and self._strikes("lost-load"):
            raise DeviceLost(0, "illegal address")
        return super().allocate(request)

    def perform(self, work: Work) -> None:
        if self.hung:
            time.sleep(3600)
        if work.name == self.fault.step and work.pset.proof in self.fault.proofs and self.life < self.fault.lives:
            self._break(work.gpu)
        super().perform(work)

    def _strikes(self, how: str) -> bool:
        return self.fault.how == how and self.life < self.fault.lives

    def _break(self, gpu: int) -> None:
        match self.fault.how:
            case "lost" | "gone":
                raise DeviceLost(0, "illegal address")
            case "lost-one" if gpu == 1:
                raise DeviceLost(1, "illegal address")
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(3600)
            case "abort":
                os.abort()
            case "exit":
                os._exit(7)
            case "hang":
                self.hung = True
                raise DeviceLost(0, "illegal address")
            case "vram":
                raise OutOfMemoryError("VRAM: nothing is left")
            case "ram":
                raise MemoryError


def losing(folder: Path, fault: Fault) -> Callable[..., ProvingDevice]:
    return partial(LosingDevice, str(folder), fault)
