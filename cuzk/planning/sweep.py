"""Every combination of the axes, simulated once and kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cuzk.errors import InputError, ScenarioError
from cuzk.model.scenario import Scenario, ScenarioFile
from cuzk.planning import grid
from cuzk.planning.backends import Backend
from cuzk.planning.cache import Cache, key
from cuzk.planning.grid import Axis
from cuzk.planning.row import Row, invalid

Progress = Callable[[int, int], None]
BLOCK = 64
"""Scenarios a worker between two writes of the cache."""


@dataclass
class Sweep:
    """A finished sweep: each setting with its row, in the order of the grid."""

    axes: list[Axis]
    rows: list[tuple[dict[str, str], Row]] = field(default_factory=list)
    made: int = 0
    """Rows that were simulated now; the others came from the cache."""

    def table(self) -> list[Row]:
        """Settings and figures side by side, a flat row each."""
        return [{**setting, **row} for setting, row in self.rows]


def sweep(file: ScenarioFile, axes: Sequence[Axis], backend: Backend, *, overrides: Sequence[str] = (), seeds: int = 1,
          cache_path: Path | None = None, progress: Progress | None = None) -> Sweep:  # fmt: skip
    """Simulate every combination of `axes` over `file`, each with the `overrides` beneath.

    Rows go to the cache as they are made: an interrupt (KeyboardInterrupt passes through) keeps them, and the next call goes on.
    Raises ScenarioError if the first combinations are no scenarios, InputError if none of all can run.
    """
    total, size = grid.count(axes), BLOCK * backend.workers
    out = Sweep(list(axes))
    settings = grid.settings(axes)
    with Cache(cache_path) as cache:
        while block := list(itertools.islice(settings, size)):
            if progress is not None:
                progress(len(out.rows), total)
            scenarios = [_scenario(file, overrides, setting) for setting in block]
            faults = [scenario for scenario in scenarios if isinstance(scenario, ScenarioError)]
            if not out.rows and len(faults) == len(scenarios):
                raise faults[0]
            out.made += _make(scenarios, backend, seeds, cache)
            out.rows += [(setting, _row(s, seeds, cache)) for setting, s in zip(block, scenarios, strict=True)]
    if progress is not None:
        progress(total, total)
    if all(row["verdict"] == "invalid" for _, row in out.rows):
        raise InputError(f"no combination can run: {out.rows[0][1]['error']}")
    return out


def _scenario(file: ScenarioFile, overrides: Sequence[str], setting: dict[str, str]) -> Scenario | ScenarioError:
    try:
        return file.scenario([*overrides, *grid.overrides(setting)])
    except ScenarioError as error:
        return error


def _make(scenarios: Sequence[Scenario | ScenarioError], backend: Backend, seeds: int, cache: Cache) -> int:
    """Simulate those that the cache does not have; how many they were."""
    wanted = {key(s, seeds): s for s in scenarios if isinstance(s, Scenario)}
    missing = {name: scenario for name, scenario in wanted.items() if name not in cache.rows}
    if missing:
        for name, row in zip(missing, backend.rows(list(missing.values()), seeds), strict=True):
            cache.put(name, row)
    return len(missing)


def _row(scenario: Scenario | ScenarioError, seeds: int, cache: Cache) -> Row:
    return invalid(str(scenario)) if isinstance(scenario, ScenarioError) else cache.rows[key(scenario, seeds)]
