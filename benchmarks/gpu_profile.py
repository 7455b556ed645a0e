#!/usr/bin/env python3
"""Where one case's time goes, kernel by kernel: `python benchmarks/gpu_profile.py msm_g1_2^22 [more cases]`.

Events around every launch, so launches do not overlap: the sum is a little above the case's real time.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from gpu_cases import all_cases

from cuzk.gpu.device import CudaDevice


class ProfilingDevice(CudaDevice):
    """A CudaDevice that brackets every launch with events while `recording`."""

    def __init__(self) -> None:
        super().__init__()
        self.recording = False
        self.spans: list[tuple[str, Any, Any]] = []
        self._names: dict[int, str] = {}

    def kernel(self, module_name: str, name: str) -> Any:
        found = super().kernel(module_name, name)
        self._names[id(found)] = name
        return found

    def launch(self, kernel: Any, blocks: Any, threads: int, args: Any, stream: Any, shared_bytes: int = 0) -> None:
        if not self.recording:
            super().launch(kernel, blocks, threads, args, stream, shared_bytes)
            return
        begin, end = self.event(timing=True), self.event(timing=True)
        begin.record(stream)
        super().launch(kernel, blocks, threads, args, stream, shared_bytes)
        end.record(stream)
        self.spans.append((self._names[id(kernel)], begin, end))


def main() -> int:
    device = ProfilingDevice()
    by_name = {c.name: c for c in all_cases()}
    for wanted in sys.argv[1:]:
        prepared = by_name[wanted].prepare(device, np.random.default_rng())
        stream = device.stream()
        for recording in (False, True):
            device.recording = recording
            prepared.start(stream)
            prepared.finish()
        device.recording = False
        total, count, longest = defaultdict(float), defaultdict(int), defaultdict(list)
        for name, begin, end in device.spans:
            ms = device.cupy.cuda.get_elapsed_time(begin, end)
            total[name] += ms
            count[name] += 1
            longest[name].append(ms)
        device.spans.clear()
        print(f"{wanted}: {sum(total.values()):.3f} ms in kernels, correct: {prepared.check()}")
        for name, ms in sorted(total.items(), key=lambda item: -item[1]):
            each = " ".join(f"{v:.3f}" for v in longest[name][:24])
            print(f"  {name:22s} {ms:9.3f} ms  {count[name]:4d} launches  {each}")
        prepared.free()
    return 0


if __name__ == "__main__":
    sys.exit(main())
