"""A calibration from a daemon's log: the steps that its lines time, laid over a base calibration that says how they contend."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from cuzk.accuracy.scenarios import circuit
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration, CostLaw
from cuzk.model.circuit import Circuit
from cuzk.trace.daemon_log import DaemonLog, intervals, mean_overlap

DIRECT = {"prep_msm": "prep_msm", "b_g2_msm": "b_g2_msm", "batch_add": "batch_add", "tail_msm": "tail_msm",
          "async_dealloc": "dealloc_native", "prestage_setup": "prestage_setup"}  # fmt: skip
"""Name in the log -> cost law of the same work."""
FEWEST = 3
"""With fewer times than this, the result says so."""
OUTLIER = 5.0
"""A time this many times longer or shorter than the median is a number that lost digits, or two that ran together."""


@dataclass
class LogFit:
    calibration: Calibration
    taken: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    """law -> (times, median seconds in the log, seconds of the base)"""
    notes: list[str] = field(default_factory=list)


def fit_log(log: DaemonLog, base: Calibration, *, size: Circuit | None = None, policy: dict[str, Any] | None = None,
            name: str = "daemon-log") -> LogFit:  # fmt: skip
    """Median times in place of the base's. Each law keeps its dependence on the circuit's counts, scaled as a whole.

    Raises InputError if no step has enough times.
    """
    names = _names(base, size or circuit("porep-32g"), policy or {})
    costs: dict[str, Any] = base.model_dump(mode="json")["costs"]
    out = LogFit(base)

    def scale(law_name: str, factor: float, times: list[float], what: str) -> None:
        law: CostLaw = base.law(law_name)
        before = float(law.seconds.evaluate(names))
        origin = {"source": "measured", "note": f"{what}: median of {len(times)} times in a log"}
        kept = {k: o.model_dump(mode="json") for k, o in law.provenance.items()}
        costs[law_name]["seconds"] = f"{factor:.6g} * ({law.seconds})"
        costs[law_name]["jitter"] = round(min(0.5, _spread(times)), 4)
        costs[law_name]["provenance"] = kept | {"seconds": origin, "jitter": origin}
        out.taken[law_name] = (len(times), before * factor, before)

    for key, law_name in DIRECT.items():
        times = held_back(log, key, out)
        if times:
            before = float(base.law(law_name).seconds.evaluate(names))
            if before > 0:
                scale(law_name, statistics.median(times) / before, times, f"{key}_ms")
    kernels = held_back(log, "ntt_msm_h", out)
    if kernels:
        pair = ("ntt_h", "msm_h_each_batch" if names.get("msm_sync_each_batch") else "msm_h")
        whole = sum(float(base.law(step).seconds.evaluate(names)) for step in pair)
        for step in pair:
            scale(step, statistics.median(kernels) / whole, kernels, "ntt_msm_h_ms, divided as in the base")
    _overhead(log, base, costs, out)
    _synthesis(log, base, names, scale, out)
    if not out.taken:
        raise InputError(f"{log.path}: no line times a step of the pipeline: nothing to calibrate with")
    data = base.model_dump(mode="json") | {
        "name": name, "description": f"times of a daemon's log over {base.name}", "costs": costs, "points": [],
    }  # fmt: skip
    out.calibration = Calibration.model_validate(data)
    return out


def _names(base: Calibration, size: Circuit, policy: dict[str, Any]) -> dict[str, Any]:
    from cuzk.accuracy.scenarios import machine
    from cuzk.model.policy import Policy
    from cuzk.model.scenario import Scenario
    from cuzk.pipeline.program import bind

    scenario = Scenario(machine=machine("zen4-96c-755g-5070ti"), circuit=size, pipeline="phase12", calibration=base,
                        policy=Policy.model_validate(policy))  # fmt: skip
    return bind(scenario).names(size)


def held_back(log: DaemonLog, key: str, out: LogFit) -> list[float]:
    """Times of `key` without outliers; notes go to `out`."""
    times = [t for t in log.seconds.get(key, []) if t > 0]
    if times:
        middle = statistics.median(times)
        kept = [t for t in times if middle / OUTLIER <= t <= middle * OUTLIER]
        if len(kept) < len(times):
            out.notes.append(
                f"{key}_ms: {len(times) - len(kept)} of {len(times)} times left out, beyond {OUTLIER:g} times the median"
            )
        times = kept
    if 0 < len(times) < FEWEST:
        out.notes.append(f"{key}_ms: only {len(times)} time(s)")
    return times


def _spread(times: list[float]) -> float:
    if len(times) < 4:
        return 0.1
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / 1.349 / middle if middle > 0 else 0.0


def _overhead(log: DaemonLog, base: Calibration, costs: dict[str, Any], out: LogFit) -> None:
    """The time for which the lock was held beyond the stages that have a line of their own."""
    parts = [log.seconds.get(k, []) for k in ("mutex_held", "ntt_msm_h", "barrier_wait", "batch_add", "tail_msm")]
    if min(map(len, parts)) < FEWEST:
        return
    held, *stages = (statistics.median(times) for times in parts)
    rest = held - sum(stages)
    if rest <= 0:
        out.notes.append("the lock is held for no longer than its stages take: gpu_overhead stays as in the base")
        return
    origin = {"source": "derived", "note": "mutex_held_ms less the stages that are timed"}
    costs["gpu_overhead"]["seconds"] = f"{rest:.6f}s"
    costs["gpu_overhead"]["provenance"] = {"*": {"source": "assumed"}, "seconds": origin}
    out.taken["gpu_overhead"] = (len(parts[0]), rest, float("nan"))


def _synthesis(log: DaemonLog, base: Calibration, names: dict[str, Any], scale: Any, out: LogFit) -> None:
    """Witness and matvec from SYNTH_START to SYNTH_END, freed of the contention that the base expects among so many."""
    spans = intervals(log.moments, "SYNTH_START", "SYNTH_END")
    times = [end - start for _, _, start, end in spans if end > start]
    if len(times) < FEWEST and log.moments:
        out.notes.append(f"synthesis: {len(times)} whole interval(s)")
    if not times:
        return
    together = mean_overlap(spans)
    expected = sum(_contended(base, step, names, together) for step in ("witness", "matvec"))
    factor = statistics.median(times) / expected
    for step in ("witness", "matvec"):
        scale(step, factor, times, f"SYNTH_START to SYNTH_END with {together:.1f} at once, contention of the base taken off")


def _contended(base: Calibration, step: str, names: dict[str, Any], together: float) -> float:
    law = base.law(step)
    demand = float(law.dram_demand.evaluate(names)) * together
    return float(law.seconds.evaluate(names)) / base.contention.speed(law.dram, base.contention.dram_slowdown(demand))
