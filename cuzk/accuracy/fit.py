"""Fit of a calibration to measured points: least squares of relative errors, few parameters, all rows at once.

Each target is log(predicted / measured) over the spread that its metric is expected to have; a verdict is a hinge on the
peak's distance from the limit. The simulator runs with fixed seeds, so the function is deterministic; it has small steps
where one partition overtakes another. Parameters are fitted as logarithms.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cuzk.accuracy.backtest import scored
from cuzk.accuracy.measured_points import Points
from cuzk.accuracy.predict import Sample, sample
from cuzk.accuracy.recipe import Recipe
from cuzk.accuracy.scenarios import Case, Unscored, case
from cuzk.analysis.sweeps import in_parallel
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration
from cuzk.pipeline.program import bind
from cuzk.sim.costs import Draw

SPREAD = {"s_per_proof": 0.015, "steady_s_per_proof": 0.015, "prove_s": 0.025, "peak_ram_gib": 0.03}
"""Relative standard deviation that a measured figure is taken to have: two runs of one configuration differed by 2 %."""
HINGE = 0.05
"""A verdict's margin: the peak must lie this far on the right side of the limit to cost nothing."""
PRIOR = 1.5
"""Standard deviation of each parameter's logarithm around its start: weak, it only holds what the data leave open."""
DRAWS = 40
WIDTH = 0.15
"""Standard deviation of the draws of a round, in the parameters' logarithms."""
HUBER = 3.0
POLISH = 0.015
CLIP = 40.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """One figure to come near to."""

    point: str
    metric: str
    value: float | str
    fold: tuple[Any, ...]


@dataclass
class Problem:
    """Points, their scenarios, and what must come out of them."""

    recipe: Recipe
    cases: list[Case]
    seeds: int = 1
    processes: int | None = None
    evaluations: int = 0
    simulations: int = 0
    targets: list[Target] = field(default_factory=list)

    def calibration(self, z: Sequence[float]) -> Calibration:
        return self.recipe.calibration(self.values(z))

    def values(self, z: Sequence[float]) -> dict[str, float]:
        """Parameters from logarithms relative to their starts, kept within their bounds."""
        return {
            free.name: min(free.high, max(free.low, free.start * math.exp(step)))
            for free, step in zip(self.recipe.free, z, strict=True)
        }

    def residuals(self, draws: Sequence[Any], only: set[int] | None = None) -> list[list[float]]:
        """For each draw of the parameters: one residual a target (of the cases `only`, by index), in order."""
        calibrations = [self.calibration(list(z)) for z in draws]
        chosen = [i for i in range(len(self.cases)) if only is None or i in only]
        jobs = [
            lambda c=self.cases[i], n=n, calibration=calibration: sample(_with(c, calibration), 1 + n, Draw(), batch=c.batch)
            for calibration in calibrations
            for i in chosen
            for n in range(self.seeds)
        ]
        samples = in_parallel(jobs, self.processes)
        self.evaluations += len(draws)
        self.simulations += len(jobs)
        out: list[list[float]] = []
        for _ in draws:
            row: list[float] = []
            for i in chosen:
                mine, samples = samples[: self.seeds], samples[self.seeds :]
                row += [_residual(self.cases[i], metric, value, mine) for metric, value in scored(self.cases[i].point).items()]
            out.append(row)
        return out


def _with(found: Case, calibration: Calibration) -> Any:
    return found.scenario.model_copy(update={"calibration": calibration})


def _residual(found: Case, metric: str, value: float | str, samples: Sequence[Sample]) -> float:
    if metric == "oom":
        limit = bind(found.scenario).pools["ram"] / 2**30
        peak = statistics.fmean(s.peak_ram_gib for s in samples)
        if value == "vram":
            return 0.0
        away = (limit - peak) / limit * (-1.0 if value == "ram" else 1.0)
        return min(CLIP, max(0.0, HINGE - away) / HINGE)
    figures = [getattr(s, metric) for s in samples]
    known = [f for f in figures if f is not None and f > 0]
    if not known:
        return CLIP
    error = math.log(statistics.fmean(known) / float(value)) / SPREAD[metric]
    return max(-CLIP, min(CLIP, error))


def fold_of(found: Case) -> tuple[Any, ...]:
    """Points that differ in less than phase, pw and gw stay together when some are left out."""
    policy = bind(found.scenario).policy
    return str(found.scenario.pipeline).removesuffix("-prefix"), policy.pw, policy.gw, found.batch


def problem(points: Points, recipe: Recipe, *, seeds: int = 1, processes: int | None = None) -> Problem:
    """The usable points of a file. Raises InputError if there are none."""
    out = Problem(recipe, [], seeds, processes)
    for point in points.points:
        if not scored(point):
            continue
        try:
            found = case(point, recipe.base, points.systems)
        except (Unscored, InputError):
            continue
        out.cases.append(found)
        out.targets += [Target(point.id, m, v, fold_of(found)) for m, v in scored(point).items()]
    if not out.cases:
        raise InputError(f"{points.path}: no point that can be fitted to")
    return out


@dataclass
class Fit:
    """The outcome, and how well the data determine it."""

    values: dict[str, float]
    errors: dict[str, float]
    """Relative standard error of each parameter."""
    z: list[float]
    jacobian: Any
    residuals: list[float]
    rms: float
    """Root mean square of the residuals in units of their expected spread."""
    singular: list[tuple[float, dict[str, float]]]
    """Singular values of the Jacobian with their directions, weakest first: below about 1 the data say nothing."""
    evaluations: int
    simulations: int
    seconds: float


def cost_ahead(p: Problem, rounds: int) -> str:
    """The time that a fit will take, from one timed evaluation."""
    started = time.monotonic()
    p.residuals([[0.0] * len(p.recipe.free)])
    each = time.monotonic() - started
    n = rounds * (DRAWS + 2)
    what = f"{len(p.recipe.free)} parameters, {len(p.targets)} figures of {len(p.cases)} points, {p.seeds} seed(s)"
    return f"{what}: up to {n} evaluations, about {n * each:.0f} s"


def fit(p: Problem, *, rounds: int = 5, say: Say | None = None) -> Fit:
    """Rounds of: draw parameters around the best so far, fit each residual as linear in them, go to the minimum of that.

    A line through many draws is blind to the steps of single ones, where a finite difference would take them for slopes.
    """
    import numpy as np
    from scipy.optimize import least_squares

    started, k = time.monotonic(), len(p.recipe.free)
    low = np.array([math.log(f.low / f.start) if f.low > 0 else -6.0 for f in p.recipe.free])
    high = np.array([math.log(f.high / f.start) for f in p.recipe.free])
    luck = np.random.default_rng(1)
    best = np.clip(np.zeros(k), low, high)
    best_cost, width, weight = math.inf, WIDTH, np.ones(len(p.targets))
    jacobian, at_best = np.zeros((len(p.targets), k)), np.zeros(len(p.targets))
    for n in range(rounds):
        half = luck.normal(0.0, width, (DRAWS // 2, k))
        draws = np.clip(best + np.vstack([half, -half]), low, high)
        found = np.array(p.residuals([best, *draws]))
        x = np.vstack([best, *draws]) - best
        # a little ridge: directions that no draw moves stay where they are
        a = np.column_stack([np.ones(len(x)), x])
        solution = np.linalg.solve(a.T @ a + np.diag([0.0, *[width**2] * k]), a.T @ found)
        noise = np.sqrt(np.mean((found - a @ solution) ** 2, axis=0))
        weight = 1.0 / np.sqrt(1.0 + noise**2)
        centre, slope = solution[0], solution[1:].T

        def model(step: Any, centre: Any = centre, slope: Any = slope, weight: Any = weight, best: Any = best) -> Any:
            return np.concatenate([(centre + slope @ step) * weight, (best + step) / PRIOR])

        reach = 2.0 * width
        bounds = (np.maximum(low - best, -reach) - 1e-9, np.minimum(high - best, reach) + 1e-9)
        step = least_squares(model, np.zeros(k), bounds=bounds, loss="huber", f_scale=HUBER).x
        candidates = [best, best + 0.5 * step, best + step]
        values = [found[0], *np.array(p.residuals(candidates[1:]))]
        costs = [_cost(v * weight) for v in values]
        chosen = int(np.argmin(costs))
        if chosen == 0:
            width *= 0.6
        best, at_best, jacobian, best_cost = candidates[chosen], values[chosen], slope * weight[:, None], costs[chosen]
        if say is not None:
            rms = math.sqrt(float(np.mean(at_best**2)))
            say(f"round {n + 1} of {rounds}: rms {rms:.3f} spreads, cost {best_cost:.2f}")
    best, at_best = _polish(p, best, at_best, weight, low, high)
    z = [float(v) for v in best]
    return _described(p, z, jacobian, [float(r) for r in at_best], time.monotonic() - started)


def _polish(p: Problem, best: Any, at_best: Any, weight: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Move one parameter at a time by a little while that helps: where residuals are steep, a round's line is too coarse."""
    import numpy as np

    cost = _cost(at_best * weight)
    for i in range(len(best)):
        for step in (POLISH, -POLISH):
            moved = np.array(best)
            moved[i] = min(high[i], max(low[i], moved[i] + step))
            found = np.array(p.residuals([moved])[0])
            if _cost(found * weight) < cost:
                best, at_best, cost = moved, found, _cost(found * weight)
                break
    return best, at_best


def _cost(residuals: Any) -> float:
    """Huber: squares near zero, lines beyond."""
    return sum(r * r / 2 if abs(r) <= HUBER else HUBER * (abs(r) - HUBER / 2) for r in map(float, residuals))


def _described(p: Problem, z: list[float], jacobian: Any, residuals: list[float], seconds: float) -> Fit:
    import numpy as np

    rms = math.sqrt(statistics.fmean(r * r for r in residuals))
    scale = max(1.0, rms)
    information = jacobian.T @ jacobian / scale**2 + np.eye(len(z)) / PRIOR**2
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    _, singular, directions = np.linalg.svd(jacobian / scale, full_matrices=False)
    names = [free.name for free in p.recipe.free]
    weak = [
        (float(s), {n: round(float(v), 2) for n, v in zip(names, row, strict=True) if abs(v) > 0.2})
        for s, row in sorted(zip(singular, directions, strict=True), key=lambda pair: float(pair[0]))
    ]
    return Fit(
        p.values(z),
        dict(zip(names, map(float, errors), strict=True)),
        z,
        jacobian,
        residuals,
        rms,
        weak,
        p.evaluations,
        p.simulations,
        seconds,
    )


def cross_validate(p: Problem, found: Fit, say: Say | None = None) -> list[tuple[Target, float | None, str]]:
    """Each fold predicted by a fit without it: (target, relative error or None for verdicts, verdict in words).

    The fit without a fold is one Gauss-Newton step from the whole fit, by its Jacobian without the fold's rows.
    """
    import numpy as np

    out: list[tuple[Target, float | None, str]] = []
    folds = sorted({t.fold for t in p.targets}, key=str)
    r, j, z = np.array(found.residuals), found.jacobian, np.array(found.z)
    weights = 1.0 / np.sqrt(np.sqrt(1.0 + r**2))
    for n, fold in enumerate(folds):
        if say is not None:
            say(f"cross-validation {n + 1} of {len(folds)}")
        kept = np.array([t.fold != fold for t in p.targets])
        a = np.vstack([j[kept] * weights[kept, None], np.eye(len(z)) / PRIOR])
        b = np.concatenate([-r[kept] * weights[kept], -z / PRIOR])
        step = np.linalg.lstsq(a, b, rcond=None)[0]
        moved = replace(p, evaluations=0, simulations=0)
        only = {i for i, c in enumerate(p.cases) if fold_of(c) == fold}
        values = moved.residuals([z + step], only)[0]
        targets = [t for t, k in zip(p.targets, kept, strict=True) if not k]
        for target, value in zip(targets, values, strict=True):
            if target.metric == "oom":
                # the hinge costs 1 at the limit itself: beyond that the verdict is wrong
                out.append((target, None, "right" if value <= 1.0 else "wrong"))
            else:
                out.append((target, math.exp(value * SPREAD[target.metric]) - 1.0, ""))
    return out
