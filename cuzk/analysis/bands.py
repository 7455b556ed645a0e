"""The certainty of a prediction: bands over seeds and over the stated errors of the cost laws; the worst of many orders."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import Any

from cuzk.analysis.draws import draws
from cuzk.analysis.sweeps import Progress, bare, in_parallel
from cuzk.model.calibration import Calibration
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import Program, bind
from cuzk.sim.costs import Draw
from cuzk.sim.options import Options
from cuzk.sim.result import SimResult, Verdict
from cuzk.sim.run import run_program

PACES = ("s_per_proof", "steady_s_per_proof", "prove_s")
ORDERS = 20
"""Legal orders of events that a verdict on VRAM looks at, beside the seeds."""
RACE_ERROR = 0.1
RACES_FROM = 0.6
"""Share of a GPU's memory from which on they are looked at."""
OUTSIDE_ERROR = 0.05
"""Further relative error of every cost law outside the calibrated range."""


@dataclass(frozen=True)
class Band:
    """Percentiles; None where no run gave a value."""

    p5: float
    p50: float
    p95: float

    def to_json(self) -> dict[str, float]:
        return {"p5": round(self.p5, 6), "p50": round(self.p50, 6), "p95": round(self.p95, 6)}


def band(values: Sequence[float | None]) -> Band | None:
    """Percentiles by linear interpolation; None if a value is missing."""
    known = sorted(value for value in values if value is not None)
    if not known or len(known) < len(values):
        return None

    def at(share: float) -> float:
        place = share * (len(known) - 1)
        low = int(place)
        high = min(low + 1, len(known) - 1)
        return known[low] + (known[high] - known[low]) * (place - low)

    return Band(at(0.05), at(0.5), at(0.95))


def widened(values: Sequence[float | None], metric: str, calibration: Calibration | None) -> list[float | None]:
    """The values of one metric over seeds, with what the model itself has been wrong by where it was tested on points out of the
    fit (`residual_METRIC` of the calibration's parameters, a standard deviation). The plain run, the first, stays as it is.
    """
    spread = calibration.parameters.get(f"residual_{metric}", 0.0) if calibration else 0.0
    n = len(values) - 1
    if not spread or n < 1:
        return list(values)
    # normal scores in a fixed order: as wide for few seeds as for many
    scores = [NormalDist().inv_cdf((k + 0.5) / n) for k in range(n)]
    random.Random(f"residual {metric}").shuffle(scores)
    return [v if v is None or z is None else v * math.exp(spread * z) for v, z in zip(values, [None, *scores], strict=True)]


@dataclass(frozen=True)
class Uncertainty:
    """Bands over `n` runs. RAM peaks are those that would be reached if there were enough."""

    n: int
    s_per_proof: Band | None
    steady_s_per_proof: Band | None
    prove_s: Band | None
    peaks: dict[str, Band]
    p_oom: float
    verdict: Verdict
    reason: str

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"n": self.n, "p_oom": round(self.p_oom, 6), "verdict": self.verdict, "reason": self.reason}
        for name in PACES:
            value: Band | None = getattr(self, name)
            out[name] = value.to_json() if value else None
        out["peaks"] = {pool: value.to_json() for pool, value in self.peaks.items()}
        out["peak_ram_bytes"] = out["peaks"]["ram"]
        return out

    def apply_to(self, result: SimResult) -> None:
        """Put the bands into a result's document; its verdict becomes theirs."""
        result.verdict = self.verdict
        result.extra["uncertainty"] = self.to_json()
        if self.reason:
            result.extra["reason"] = self.reason


def uncertainty(scenario: Scenario, seeds: int = 20, *, processes: int | None = None,
                progress: Progress | None = None) -> Uncertainty:  # fmt: skip
    """Run `seeds` seeds, each with the cost laws drawn within their errors. The first is the plain run's."""
    program = bind(scenario)
    names = {k: v for k, v in program.names(scenario.circuit).items() if isinstance(v, (int, float))}
    outside = bool(scenario.calibration and scenario.calibration.outside(names))

    limit, calibration = program.pools["ram"], scenario.calibration
    drawn = draws(calibration, scenario.seed, seeds, OUTSIDE_ERROR if outside else 0.0)

    def job(number: int) -> SimResult:
        options = Options(unlimited_ram=True, draw=drawn[number])
        return bare(run_program(program, scenario.seed + number, options))

    runs = in_parallel([partial(job, n) for n in range(seeds)], processes, progress)
    values: dict[str, list[float | None]] = {pool: [run.peaks[pool].resident_bytes for run in runs] for pool in runs[0].peaks}
    values["ram"] = widened(values["ram"], "peak_ram_gib", calibration)
    bad = [run for run, peak in zip(runs, values["ram"], strict=True) if run.verdict == "oom" or (peak or 0) > limit]
    p_oom = len(bad) / len(runs)
    verdict, reason = _verdict(p_oom, len(runs), bad)
    if verdict == "fits" and seeds > 1 and _close(runs[0]):
        lost = sum(in_parallel([partial(race_lost, program, 1 + k) for k in range(ORDERS)], processes))
        if lost:
            p_oom, verdict = lost / ORDERS, "risky"
            reason = f"VRAM runs out in {lost} of {ORDERS} orders of events"
    paces = {name: band([getattr(run, name) for run in runs]) for name in PACES}
    peaks = {pool: found for pool, levels in values.items() if (found := band(levels))}
    return Uncertainty(len(runs), peaks=peaks, p_oom=p_oom, verdict=verdict, reason=reason, **paces)


def _close(plain: SimResult) -> bool:
    """Whether some GPU is full enough that workers can come into each other's way."""
    return any(
        peak.resident_bytes > RACES_FROM * peak.capacity_bytes for pool, peak in plain.peaks.items() if pool.startswith("vram")
    )


def race_lost(program: Program, k: int) -> bool:
    """Whether VRAM runs out in another legal order, with step times that nobody knows better than by a tenth."""
    options = Options(unlimited_ram=True, draw=Draw(k, RACE_ERROR), shuffle=k)
    return run_program(program, k, options).oom is not None


def _verdict(p_oom: float, n: int, bad: list[SimResult]) -> tuple[Verdict, str]:
    if not bad:
        return "fits", ""
    if len(bad) == n:
        return "oom", ""
    pools = sorted({run.oom.pool if run.oom else "ram" for run in bad})
    return "risky", f"{', '.join(pools)} runs out in {len(bad)} of {n} runs ({p_oom:.0%})"


@dataclass(frozen=True)
class Exploration:
    """The worst over legal orders: of wake-ups at one instant, of how long they take, of delays of runnable threads."""

    n: int
    worst: SimResult
    peaks: dict[str, int]
    """Highest resident level of each pool in any order."""
    oom_orders: int

    @property
    def verdict(self) -> Verdict:
        return self.worst.verdict

    def to_json(self) -> dict[str, Any]:
        oom = self.worst.oom
        return {
            "n": self.n, "verdict": self.worst.verdict, "oom_orders": self.oom_orders, "peaks": self.peaks,
            "oom": oom.to_json() if oom else None,
        }  # fmt: skip

    def apply_to(self, result: SimResult) -> None:
        """Put the outcome into a result's document. What some order can run out of is risky, even if this one fits."""
        result.extra["explore"] = self.to_json()
        if self.oom_orders and result.verdict == "fits":
            result.verdict = "risky"
            pool = self.worst.oom.pool if self.worst.oom else "memory"
            result.extra["reason"] = f"{pool} runs out in {self.oom_orders} of {self.n} orders of events"


def explore(scenario: Scenario, n: int = 20, *, processes: int | None = None,
            progress: Progress | None = None) -> Exploration:  # fmt: skip
    """Run `n` legal orders of events; the first is the plain run."""
    program = bind(scenario)
    jobs = [lambda k=k: bare(run_program(program, None, Options(shuffle=k or None))) for k in range(n)]
    runs = in_parallel(jobs, processes, progress)
    for run in runs:
        run.scenario = scenario
    peaks = {pool: max(run.peaks[pool].resident_bytes for run in runs) for pool in runs[0].peaks}

    def badness(run: SimResult) -> tuple[bool, float]:
        return run.verdict == "oom", max(p.resident_bytes / p.capacity_bytes for p in run.peaks.values())

    return Exploration(len(runs), max(runs, key=badness), peaks, sum(run.verdict == "oom" for run in runs))
