"""A calibration from a daemon's log and the scenario that it ran: times under load are compared with simulated times under load.

A log's medians contain what slowed the steps: taken for times alone they would be slowed twice. Here each law is scaled until the
simulation of that very run, contention and waiting included, gives the medians of the log.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from cuzk.accuracy.log_laws import FEWEST, LogFit, held_back
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration
from cuzk.model.formula import Formula
from cuzk.model.scenario import Scenario
from cuzk.sim import simulate
from cuzk.trace.composites import composites
from cuzk.trace.daemon_log import DaemonLog, intervals
from cuzk.trace.event import Event
from cuzk.trace.spans import spans, step_times

ROUNDS = 5
MOST_PROOFS = 20
FASTEST, SLOWEST = 1 / 50, 50.0
"""A law is scaled by no more than this: beyond it the log is of another circuit or machine."""
_SINGLE = {"prep_msm": "prep_msm", "b_g2_msm": "b_g2_msm", "batch_add": "batch_add", "tail_msm": "tail_msm",
           "async_dealloc": "dealloc_native", "prestage_setup": "prestage_setup"}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A time of the log, and the laws that make it up."""

    what: str
    laws: tuple[str, ...]
    seconds: float
    times: int


def fit_log_in_scenario(log: DaemonLog, base: Calibration, scenario: Scenario, name: str = "daemon-log") -> LogFit:
    """Laws of `base`, scaled so that simulating `scenario` gives the log's medians.

    Raises InputError: no usable time, or times that no scaling explains (a log of another circuit).
    """
    out = LogFit(base)
    targets = _targets(log, out)
    if not targets:
        raise InputError(f"{log.path}: no line times a step of the pipeline: nothing to calibrate with")
    scenario = scenario.model_copy(update={"workload": _workload(log, scenario)})
    factors = {law: 1.0 for target in targets for law in target.laws if law in base.costs}
    found = base
    error = 0.0
    for _ in range(ROUNDS):
        found = _scaled(base, factors, targets, scenario, name)
        result = simulate(scenario.model_copy(update={"calibration": found}), trace=True, unlimited_ram=True)
        said = _said(result.events or [])
        error = 0.0
        for target in targets:
            predicted = said.get(target.what)
            if not predicted:
                continue
            ratio = target.seconds / predicted
            error = max(error, abs(ratio - 1))
            for law in target.laws:
                if law in factors:
                    factors[law] *= ratio
    for law, factor in factors.items():
        if not FASTEST <= factor <= SLOWEST:
            raise InputError(f"{log.path}: {law} would be {factor:.3g} times that of '{base.name}': a log of another circuit?")
    out.calibration = _scaled(base, factors, targets, scenario, name)
    names = _numbers(scenario)
    for target in targets:
        for law in target.laws:
            if law in factors:
                before = float(base.law(law).seconds.evaluate(names | base.parameters))
                out.taken[law] = (target.times, before * factors[law], before)
    out.notes.append(f"simulated and measured medians under load differ by at most {error:.1%} after {ROUNDS} rounds")
    return out


def _targets(log: DaemonLog, out: LogFit) -> list[Target]:
    found = []
    for key, law in _SINGLE.items():
        if times := held_back(log, key, out):
            found.append(Target(law, (law,), statistics.median(times), len(times)))
    if times := held_back(log, "ntt_msm_h", out):
        found.append(Target("ntt_msm_h", ("ntt_h", "msm_h", "msm_h_each_batch"), statistics.median(times), len(times)))
    synthesis = [end - start for _, _, start, end in intervals(log.moments, "SYNTH_START", "SYNTH_END") if end > start]
    if synthesis:
        if len(synthesis) < FEWEST:
            out.notes.append(f"synthesis: {len(synthesis)} whole interval(s)")
        found.append(Target("synthesis", ("witness", "matvec", "synthesis"), statistics.median(synthesis), len(synthesis)))
    stages = ("ntt_msm_h", "barrier_wait", "batch_add", "tail_msm")
    held = held_back(log, "mutex_held", out)
    if held and all(log.seconds.get(stage) for stage in stages):
        rest = statistics.median(held) - sum(statistics.median(log.seconds[stage]) for stage in stages)
        if rest > 0:
            found.append(Target("beside the stages", ("gpu_overhead", "gpu_sync"), rest, len(held)))
        else:
            out.notes.append("the lock is held for no longer than its stages take: gpu_overhead stays as in the base")
    return found


def _said(events: list[Event]) -> dict[str, float]:
    """Medians of the simulated run under the names of the targets."""
    steps = {name: times.median_s for name, times in step_times(events).items()}
    steps |= {name: times.median_s for name, times in composites(events).items()}
    per_set: dict[tuple[int | None, int | None], float] = {}
    for span in spans(events):
        if span.name == "gpu_overhead":
            key = (span.proof, span.partition)
            per_set[key] = per_set.get(key, 0.0) + span.seconds
    if per_set:
        steps["beside the stages"] = statistics.median(per_set.values())
    return steps


def _workload(log: DaemonLog, scenario: Scenario) -> Any:
    """The log's own proofs, arriving when they did."""
    first: dict[str, float] = {}
    for moment in log.moments:
        first.setdefault(moment.job, moment.t_s)
    times = sorted(first.values())[:MOST_PROOFS]
    if not times:
        return scenario.workload
    arrivals = tuple(t - times[0] for t in times)
    return scenario.workload.with_(proofs=len(times), arrivals=arrivals)


def _numbers(scenario: Scenario) -> dict[str, Any]:
    from cuzk.pipeline.program import bind

    return bind(scenario).names(scenario.circuit)


def _scaled(base: Calibration, factors: dict[str, float], targets: list[Target], scenario: Scenario, name: str) -> Calibration:
    by_law = {law: target for target in targets for law in target.laws}
    costs = dict(base.costs)
    for law_name, factor in factors.items():
        law, target = costs[law_name], by_law[law_name]
        note = f"{target.what}: median of {target.times} times in a log, met by simulating that run"
        origin = {"source": "fit", "note": note}
        text = f"{factor:.6g} * ({law.seconds})"
        provenance = {key: value for key, value in law.provenance.items() if key != "seconds"}
        costs[law_name] = law.with_(seconds=Formula(text), provenance={**provenance, "seconds": origin})
    return base.model_copy(
        update={
            "name": name, "description": f"times of a daemon's log over {base.name}", "costs": costs, "points": (),
            "machine": scenario.machine.name, "gpu": scenario.machine.gpus[0].name if scenario.machine.gpus else "",
        }
    )  # fmt: skip
