"""The weight of each figure of a scenario in the answer: one at a time (a tornado), or all together (Sobol indices)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cuzk.analysis.sweeps import Progress, in_parallel
from cuzk.errors import HardwareMissing, InputError
from cuzk.model.formula import Formula
from cuzk.model.scenario import Scenario
from cuzk.planning.row import Row, simulated

METRICS = ("s_per_proof", "peak_ram_bytes", "peak_vram_bytes", "prove_s", "makespan_s")
MOST_RUNS = 200_000
Change = Callable[[Scenario, float], Scenario]


@dataclass(frozen=True)
class Factor:
    """A figure that can be scaled."""

    name: str
    change: Change


@dataclass(frozen=True)
class Bar:
    """The metric with one figure lower and higher by a share; None where a run gave none (it runs out of memory)."""

    factor: str
    low: Row
    high: Row

    def swing(self, metric: str) -> float:
        values = [row.get(metric) for row in (self.low, self.high)]
        known = [float(value) for value in values if value is not None]
        return max(known) - min(known) if len(known) == 2 else math.inf if any(v is None for v in values) else 0.0


@dataclass(frozen=True)
class Index:
    """Sobol indices of one figure: its own share of the variance, and with all that it interacts with; ± half a 95 % interval."""

    factor: str
    first: float
    first_conf: float
    total: float
    total_conf: float


def factors(scenario: Scenario) -> list[Factor]:
    """Every cost law with a time, the machine's rates and limits, as far as they are known."""
    if scenario.calibration is None:
        raise InputError("the scenario has no calibration: there is nothing to vary")
    found = [Factor(f"cost of {name}", _law(name)) for name, law in scenario.calibration.costs.items() if law.seconds.text != "0"]
    machine = scenario.machine
    if machine.gpus:
        found += [
            Factor("link up", lambda s, f: _gpus(s, "pcie_h2d", f)),
            Factor("VRAM", lambda s, f: _gpus(s, "vram", f)),
        ]
        if all(gpu.pcie_h2d_pageable for gpu in machine.gpus):
            found.append(Factor("link up, pageable", lambda s, f: _gpus(s, "pcie_h2d_pageable", f)))
    found += [
        Factor("cores", lambda s, f: _machine(s, cores=max(1, round(s.machine.cores * f)))),
        Factor("RAM", lambda s, f: _machine(s, ram=max(s.machine.reserved + s.machine.hugepages + 1, round(s.machine.ram * f)))),
        Factor("DRAM demand of all steps", _demand),
    ]
    return found


def _law(name: str) -> Change:
    def change(scenario: Scenario, factor: float) -> Scenario:
        calibration = scenario.calibration
        assert calibration is not None
        law = calibration.costs[name]
        scaled = law.model_copy(update={"seconds": Formula(f"{factor:.9g} * ({law.seconds})")})
        return _calibrated(scenario, {name: scaled})

    return change


def _demand(scenario: Scenario, factor: float) -> Scenario:
    calibration = scenario.calibration
    assert calibration is not None
    changed = {
        name: law.model_copy(update={"dram_demand": Formula(f"{factor:.9g} * ({law.dram_demand})")})
        for name, law in calibration.costs.items()
    }
    return _calibrated(scenario, changed)


def _calibrated(scenario: Scenario, laws: dict[str, Any]) -> Scenario:
    assert scenario.calibration is not None
    calibration = scenario.calibration.model_copy(update={"costs": scenario.calibration.costs | laws})
    return scenario.model_copy(update={"calibration": calibration})


def _machine(scenario: Scenario, **changes: Any) -> Scenario:
    return scenario.model_copy(update={"machine": scenario.machine.model_copy(update=changes)})


def _gpus(scenario: Scenario, field: str, factor: float) -> Scenario:
    scaled = [
        gpu.model_copy(update={field: type(getattr(gpu, field))(getattr(gpu, field) * factor)}) for gpu in scenario.machine.gpus
    ]
    return _machine(scenario, gpus=tuple(scaled))


def tornado(scenario: Scenario, by: float = 0.1, chosen: Sequence[Factor] | None = None, *, processes: int | None = None,
            progress: Progress | None = None) -> tuple[Row, list[Bar]]:  # fmt: skip
    """The plain run, and each figure lower and higher by the share `by`."""
    found = list(chosen if chosen is not None else factors(scenario))
    changed = [factor.change(scenario, 1 + sign * by) for factor in found for sign in (-1, 1)]
    rows = in_parallel([partial(simulated, s) for s in (scenario, *changed)], processes, progress)
    bars = [Bar(factor.name, rows[2 * i + 1], rows[2 * i + 2]) for i, factor in enumerate(found)]
    return rows[0], bars


def sobol(scenario: Scenario, by: float = 0.1, metric: str = "s_per_proof", samples: int = 64,
          chosen: Sequence[Factor] | None = None, *, processes: int | None = None,
          progress: Progress | None = None) -> list[Index]:  # fmt: skip
    """First and total Sobol indices of `metric`, every figure uniform within ± `by`. Runs: samples · (figures + 2).

    Raises HardwareMissing without SALib, InputError where some run has no value of the metric, or none of the figures moves it.
    """
    try:
        from SALib.analyze import sobol as analyse
        from SALib.sample import sobol as sample
    except ImportError as error:
        raise HardwareMissing(f"Sobol indices need SALib: pip install 'cuzk[sweep]' ({error})") from None
    found = list(chosen if chosen is not None else factors(scenario))
    problem = {"num_vars": len(found), "names": [f.name for f in found], "bounds": [[1 - by, 1 + by]] * len(found)}
    if samples * (len(found) + 2) > MOST_RUNS:
        raise InputError(f"{samples * (len(found) + 2):,} runs are more than {MOST_RUNS:,}: fewer samples")
    points = sample.sample(problem, samples, calc_second_order=False, seed=scenario.seed)

    def one(point: Sequence[float]) -> float | None:
        changed = scenario
        for factor, scale in zip(found, point, strict=True):
            changed = factor.change(changed, float(scale))
        value = simulated(changed).get(metric)
        return None if value is None else float(value)

    values = in_parallel([partial(one, p) for p in points], processes, progress)
    missing = sum(value is None for value in values)
    if missing:
        raise InputError(f"{missing} of {len(values)} runs have no {metric}: they run out of memory within ± {by:.0%}")
    import numpy as np

    outcome = np.array(values, dtype=float)
    if float(outcome.std()) == 0.0:
        raise InputError(f"no figure moves {metric} within ± {by:.0%}")
    indices = analyse.analyze(problem, outcome, calc_second_order=False, seed=scenario.seed)
    rows = zip(found, indices["S1"], indices["S1_conf"], indices["ST"], indices["ST_conf"], strict=True)
    return [Index(factor.name, *(float(value) for value in figures)) for factor, *figures in rows]
