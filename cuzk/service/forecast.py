"""The simulator as admission control: what fits beside what runs, what can never fit, and when everybody will be done.

A forecast is the pipeline of the prover itself, walked in simulated time with the costs of this machine. Where nothing has been
measured here yet, memory is still predicted (it follows from the sizes of the buffers), and times are not.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from cuzk.errors import CuzkError
from cuzk.model.calibration import Calibration
from cuzk.model.units import fmt_gib
from cuzk.service.failures import NeverFits
from cuzk.trace.event import Event

SEEDS = 9
MOST_JOBS = 24
"""Jobs ahead that are simulated."""


@dataclass(frozen=True)
class Load:
    """The rest of a job."""

    job_id: str
    scenario: Any
    """cuzk.model.Scenario of its circuit; None: the one that was last given for `circuit_id`, if any."""
    partitions: int
    priority: int = 2
    circuit_id: str = ""


@dataclass(frozen=True)
class Fit:
    """Whether a job can start now."""

    now: bool = True
    why: str = ""
    never: NeverFits | None = None
    predicted: dict[str, Any] | None = None
    """`peaks` (bytes by pool), `p50_s`, `p95_s` (None without a calibration), `calibration`."""
    events: list[Event] | None = None
    """The predicted trace, for the status page."""


class Forecaster:
    """Thread-safe. `calibration`: this machine's; None until one has been measured."""

    def __init__(self, calibration: Calibration | None = None, *, width: int = 1, seeds: int = SEEDS) -> None:
        self._calibration, self._width, self._seeds = calibration, width, seeds
        self._of_circuit: dict[str, Any] = {}
        self._mutex = threading.Lock()
        self._fits: dict[tuple[Any, ...], Fit] = {}

    @property
    def calibration(self) -> Calibration | None:
        return self._calibration

    def learn(self, calibration: Calibration) -> None:
        """Take a calibration that has been measured on this machine meanwhile."""
        with self._mutex:
            self._calibration = calibration
            self._fits.clear()

    def fits(self, load: Load, beside: list[Load]) -> Fit:
        """Whether `load` can start while `beside` runs. A machine whose pipeline cannot be simulated says yes: then the books
        of the run itself are what keeps it within its memory."""
        scenario = load.scenario
        if scenario is None:
            return Fit()
        with self._mutex:
            self._of_circuit[load.circuit_id] = scenario
        key = (load.circuit_id, load.partitions, tuple(sorted((b.circuit_id, b.partitions) for b in beside)))
        with self._mutex:
            if key in self._fits:
                return self._fits[key]
        try:
            fit = self._judge(load, beside)
        except CuzkError as error:
            return Fit(predicted={"unknown": str(error)})
        with self._mutex:
            if len(self._fits) > 256:
                self._fits.clear()
            self._fits[key] = fit
        return fit

    def _judge(self, load: Load, beside: list[Load]) -> Fit:
        alone = self._peaks([load])
        over = _over(alone)
        if over:
            return Fit(False, never=NeverFits(f"{load.circuit_id} can never run here: {over}"))
        if beside and (over := _over(self._peaks([*beside, load]))):
            return Fit(False, f"memory beside the {len(beside)} job(s) that run: {over}")
        ends, events = self._ends([load], trace=True)
        band = ends.get(load.job_id)
        predicted: dict[str, Any] = {"peaks": {pool: peak for pool, (peak, _) in alone.items()}}
        predicted |= {"p50_s": band[0] if band else None, "p95_s": band[1] if band else None}
        predicted["calibration"] = self._calibration.name if self._calibration else None
        return Fit(predicted=predicted, events=events if band else None)

    def when(self, loads: list[Load]) -> dict[str, tuple[float, float]]:
        """Job -> seconds from now until it is done (P50, P95), for jobs in the order in which they go; empty without a
        calibration."""
        with self._mutex:
            known = [replace(x, scenario=x.scenario or self._of_circuit.get(x.circuit_id)) for x in loads]
        known = [x for x in known if x.scenario is not None and x.partitions][:MOST_JOBS]
        if not known:
            return {}
        try:
            return self._ends(known, trace=False)[0]
        except CuzkError:
            return {}

    # ------------------------------------------------------------------ simulation

    def _peaks(self, loads: list[Load]) -> dict[str, tuple[int, int]]:
        """Pool -> (predicted peak, capacity), in bytes."""
        from cuzk.sim import simulate

        result = simulate(self._scenario(loads, len(loads)), unlimited_ram=True)
        peaks = {pool: (peak.resident_bytes, peak.capacity_bytes) for pool, peak in result.peaks.items()}
        if result.oom is not None:  # of a pool that has a hard end, such as VRAM
            oom = result.oom
            peaks[oom.pool] = (max(oom.level_bytes + oom.request_bytes, oom.capacity_bytes + 1), oom.capacity_bytes)
        return peaks

    def _ends(self, loads: list[Load], trace: bool) -> tuple[dict[str, tuple[float, float]], list[Event]]:
        from cuzk.analysis.bands import band
        from cuzk.pipeline.program import bind
        from cuzk.sim.costs import Draw
        from cuzk.sim.options import Options
        from cuzk.sim.run import run_program

        if self._calibration is None:
            return {}, []
        plan = bind(self._scenario(loads, self._width))
        times: list[list[float]] = [[] for _ in loads]
        first: list[Event] = []
        for seed in range(self._seeds):
            options = Options(trace=True, unlimited_ram=True, draw=Draw(seed or None))
            events = run_program(plan, seed, options).events or []
            if not seed:
                first = events
            for event in events:
                if event.kind == "complete" and event.partition == -1 and event.proof is not None:
                    times[event.proof].append(event.t)
        out = {}
        for load, found in zip(loads, times, strict=True):
            if len(found) == self._seeds and (spread := band(found)) is not None:
                out[load.job_id] = (spread.p50, spread.p95)
        return out, first if trace else []

    def _scenario(self, loads: list[Load], width: int) -> Any:
        """The jobs as one workload: proof k is of the k-th of them, with the partitions that are left."""
        from cuzk.accuracy.library import load_calibration
        from cuzk.model.workload import MixEntry, Workload

        entries, first = [], None
        for number, load in enumerate(loads):
            of_job = load.scenario or self._of_circuit.get(load.circuit_id)
            if of_job is None:
                raise CuzkError(f"nothing is known of {load.circuit_id}")
            first = first or of_job
            circuit = of_job.circuit.model_copy(update={"name": f"job{number}", "partitions": max(1, load.partitions)})
            entries.append(MixEntry(circuit=circuit, priority=load.priority))
        workload = Workload(proofs=len(entries), circuits=tuple(entries), mix="rotate")
        update = {"workload": workload, "circuit": entries[0].circuit,
                  "calibration": self._calibration or load_calibration("own-cpu")}  # fmt: skip
        assert first is not None
        return first.model_copy(update=update).with_policy(j=max(1, width))


def _over(peaks: dict[str, tuple[int, int]]) -> str:
    """The pools that would run out, with the numbers."""
    return "; ".join(
        f"{pool} needs {fmt_gib(peak)} of {fmt_gib(capacity)}" for pool, (peak, capacity) in peaks.items() if peak > capacity
    )
