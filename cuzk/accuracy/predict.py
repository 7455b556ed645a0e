"""Predictions for measured points: each simulated over many seeds, with the cost laws drawn within their stated errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cuzk.accuracy.scenarios import Case
from cuzk.analysis.bands import ORDERS, OUTSIDE_ERROR, RACE_ERROR, Band, band, widened
from cuzk.analysis.draws import draws
from cuzk.analysis.sweeps import in_parallel
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.sim.costs import Draw
from cuzk.sim.options import Options
from cuzk.sim.run import run_program

GIB = 1 << 30
DURATIONS = ("s_per_proof", "steady_s_per_proof", "prove_s")
METRICS = (*DURATIONS, "peak_ram_gib")


@dataclass(frozen=True)
class Sample:
    """The outcome of one run of one seed. None where not all proofs came out."""

    s_per_proof: float | None
    steady_s_per_proof: float | None
    prove_s: float | None
    peak_ram_gib: float
    oom: str
    """none, ram or vram"""


@dataclass(frozen=True)
class Prediction:
    """Bands over the samples; `oom` is what most of them say."""

    bands: dict[str, Band | None]
    oom: str
    p_oom: float
    outside: tuple[str, ...] = ()
    """The parts of the scenario that lie outside the calibrated range."""
    fault: str = ""
    """Why it cannot be simulated; then there are no bands."""


def sample(scenario: Scenario, seed: int, draw: Draw, batch: int = 1, order: int | None = None) -> Sample:
    """One run, as if there were RAM enough; it is out of memory if its peak exceeds what there is.

    `order`: seed of another legal order of what happens at one instant.
    """
    program = bind(scenario)
    result = run_program(program, seed, Options(unlimited_ram=True, draw=draw, shuffle=order))
    oom = "vram" if result.oom else "ram" if result.peak_ram_bytes > program.pools["ram"] else "none"

    def a_proof(batch_s: float | None) -> float | None:
        return None if batch_s is None else batch_s / batch

    pace, steady = a_proof(result.s_per_proof), a_proof(result.steady_s_per_proof)
    return Sample(pace, steady, result.prove_s, result.peak_ram_bytes / GIB, oom)


def predict(
    cases: Sequence[Case], seeds: int, *, processes: int | None = None, progress: Callable[[str], None] | None = None
) -> list[Prediction]:
    """One prediction a case. Runs whose laws err alone give the middle; runs in which the paces of all steps of a kind err
    together give the band and how likely memory runs out. The first run of both is the plain one.
    """
    outside = [_outside(case.scenario) for case in cases]
    jobs: list[Callable[[], Sample | str]] = []
    for case, far in zip(cases, outside, strict=True):
        extra, seed = OUTSIDE_ERROR if far else 0.0, case.scenario.seed
        alone = [Draw(), *(Draw(seed + n, extra) for n in range(1, seeds))]
        shared = draws(case.scenario.calibration, seed, seeds, extra)
        jobs += [partial(_nth, case, n, draw) for drawn in (alone, shared) for n, draw in enumerate(drawn)]
    judged = [i for i, case in enumerate(cases) if "oom" in case.point.metrics]
    races = [partial(_race, cases[i].scenario, 1 + k) for i in judged for k in range(ORDERS)]
    if progress:
        progress(f"{len(cases)} points: {len(jobs) + len(races)} simulations")
    both: list[Callable[[], Sample | str]] = [*jobs, *races]
    found = in_parallel(both, processes)
    words = [str(word) for word in found[len(jobs) :]]
    lost = {i: words[n * ORDERS : (n + 1) * ORDERS] for n, i in enumerate(judged)}
    return [
        _of(found[2 * i * seeds : 2 * (i + 1) * seeds], lost.get(i, []), tuple(outside[i]), case.scenario.calibration)
        for i, case in enumerate(cases)
    ]


def _race(scenario: Scenario, k: int) -> str:
    """The verdict in another legal order, with step times that nobody knows better than by a tenth: a race may go either way."""
    try:
        return sample(scenario, k, Draw(k, RACE_ERROR), order=k).oom
    except InputError:
        return "none"


def _nth(case: Case, n: int, draw: Draw) -> Sample | str:
    try:
        return sample(case.scenario, case.scenario.seed + n, draw, case.batch)
    except InputError as error:
        return str(error)


def _outside(scenario: Scenario) -> list[str]:
    names = {k: v for k, v in bind(scenario).names(scenario.circuit).items() if isinstance(v, (int, float))}
    return scenario.calibration.outside(names) if scenario.calibration else []


def _of(
    found: Sequence[Sample | str], orders: Sequence[str], outside: tuple[str, ...], calibration: Calibration | None
) -> Prediction:
    faults = [s for s in found if isinstance(s, str)]
    if faults:
        return Prediction({}, "none", 0.0, outside, faults[0])
    samples = [s for s in found if isinstance(s, Sample)]
    half = len(samples) // 2
    alone, shared = samples[:half], samples[half:]
    words = [s.oom for s in alone]
    bands = {m: _around([getattr(s, m) for s in alone], [getattr(s, m) for s in shared], m, calibration) for m in METRICS}
    # a peak of RAM is a level, and most runs say how high it is; VRAM runs out in a race, which a long run loses if any does
    most = "vram" if "vram" in (*words, *orders) else max(("none", "ram"), key=words.count)
    return Prediction(bands, most, 1.0 - [s.oom for s in shared].count("none") / len(shared), outside)


def _around(
    alone: Sequence[float | None], shared: Sequence[float | None], metric: str, calibration: Calibration | None
) -> Band | None:
    """The middle of the runs whose laws err alone, with the width of those whose paces err together."""
    middle = band(alone)
    wide = band(shared if metric in DURATIONS else widened(shared, metric, calibration))
    if middle is None or wide is None or wide.p50 <= 0:
        return middle
    return Band(middle.p50 * wide.p5 / wide.p50, middle.p50, middle.p50 * wide.p95 / wide.p50)


def banded(values: Sequence[float | None], metric: str, calibration: Calibration | None) -> Band | None:
    """The median of the runs, between percentiles that know of the model's own error."""
    plain, wide = band(values), band(widened(values, metric, calibration))
    return Band(min(plain.p50, wide.p5), plain.p50, max(plain.p50, wide.p95)) if plain and wide else None
