"""Log records of a run as the daemon writes them, so that whoever reads its logs reads ours (`cuzk import`, `calibrate --log`).

TIMELINE,15321,SYNTH_START,porep-1000-7,partition=3
CUZK_TIMING: prep_msm_ms=842
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from cuzk.trace.event import Event

STEPS = {
    "prep_msm": "prep_msm_ms={ms}", "b_g2_msm": "b_g2_msm_ms={ms} num_circuits=1", "batch_add": "gpu_tid=0 batch_add_ms={ms}",
    "tail_msm": "gpu_tid=0 tail_msm_ms={ms}", "dealloc_native": "async_dealloc_ms={ms}",
}  # fmt: skip


@dataclass
class _Partition:
    """The state of one partition's records; milliseconds."""

    worker: str = ""
    synth_ms: float | None = None
    synth_end_ms: float = 0.0
    gpu_ms: float | None = None
    ntt_h_ms: float = 0.0


class Timeline:
    """Turns events into records. `now`: seconds since the service began."""

    def __init__(self, now: Callable[[], float], out: TextIO | None = None) -> None:
        self._now, self._out = now, out
        self._mutex = threading.Lock()
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._begun: dict[tuple[str, str, str | None, int], float] = {}
        self.enabled = out is not None

    def take(self, job: str, event: Event) -> None:
        if not self.enabled or event.partition is None or event.partition < 0 or event.kind not in ("begin", "end", "complete"):
            return
        with self._mutex:
            self._take(job, event.partition, event, 1000 * self._now())

    def _take(self, job: str, partition: int, event: Event, at: float) -> None:
        known = self._partitions.setdefault((job, partition), _Partition())
        step = (event.worker, event.name, event.stream, partition)
        if event.kind == "begin":
            self._begun[step] = at
            if event.worker.startswith("synthesis") and known.synth_ms is None:
                known.synth_ms = at
                self._tell(at, "SYNTH_START", job, f"partition={partition}")
            elif event.worker.startswith("gpu") and known.gpu_ms is None:
                known.gpu_ms, known.worker = at, _number(event.worker)
                if known.synth_ms is not None:
                    end = known.synth_end_ms or at
                    self._tell(end, "SYNTH_END", job, f"partition={partition},synth_ms={round(end - known.synth_ms)}")
                    self._tell(end, "GPU_QUEUE", job, f"partition={partition}")
                for name in ("GPU_PICKUP", "GPU_START"):
                    self._tell(at, name, job, f"worker={known.worker},partition={partition}")
        elif event.kind == "end":
            took = at - self._begun.pop(step, at)
            if event.worker.startswith("synthesis"):
                known.synth_end_ms = at
            if event.name == "ntt_h":
                known.ntt_h_ms = took
            elif event.name == "msm_h":
                self._say(f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={round(known.ntt_h_ms + took)}")
            elif event.name in STEPS:
                self._say("CUZK_TIMING: " + STEPS[event.name].format(ms=round(took)))
        else:
            del self._partitions[job, partition]
            start = known.gpu_ms if known.gpu_ms is not None else at
            self._tell(at, "GPU_END", job, f"worker={known.worker or 0},partition={partition},gpu_ms={round(at - start)}")

    def _tell(self, at: float, name: str, job: str, detail: str) -> None:
        self._say(f"TIMELINE,{round(at)},{name},{job},{detail}")

    def _say(self, line: str) -> None:
        out = self._out or sys.stderr
        try:
            out.write(line + "\n")
            out.flush()
        except (OSError, ValueError):  # a full disk or a closed pipe under the log stops no proof
            self.enabled = False


def _number(worker: str) -> str:
    """`gpu:0.1` -> worker 1."""
    return worker.rpartition(".")[2] if "." in worker else worker.rpartition(":")[2] or "0"
