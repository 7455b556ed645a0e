"""A fit's recipe: a base calibration, and the free parameters by name, place, start and bounds. One YAML file.

fit:
  name: reference
  base: ../../calibrations/reference-base.yaml
  free:
    witness_demand: {at: costs.witness.dram_demand, start: 0.05, low: 0.005, high: 0.2, note: share of the DRAM bandwidth}
    hold_sync_s: {at: parameters.hold_sync_s, start: 0.8, low: 0.0, high: 3.0, laws: [gpu_sync]}
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cuzk.errors import InputError, ScenarioError
from cuzk.model.calibration import Calibration
from cuzk.model.scenario import load_part
from cuzk.model.yamlpos import Problems, read_file


@dataclass(frozen=True)
class Free:
    """One free parameter."""

    name: str
    at: tuple[str, ...]
    """Places in the calibration that take its value."""
    start: float
    low: float
    high: float
    laws: tuple[str, ...] = ()
    """Cost laws whose seconds it decides: they carry its error."""
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    path: str
    name: str
    base_path: str
    base: Calibration
    free: tuple[Free, ...]

    def calibration(self, values: dict[str, float]) -> Calibration:
        """The base with these values in their places."""
        data = self._data()
        for free in self.free:
            for place in free.at:
                put(data, place, values[free.name])
        return Calibration.model_validate(data)

    @cached_property
    def _dumped(self) -> dict[str, Any]:
        """The base as data: a fit asks for hundreds of calibrations over it."""
        return self.base.model_dump(mode="json")

    def _data(self) -> dict[str, Any]:
        data = copy.deepcopy(self._dumped)
        data["name"] = self.name
        return data

    def starts(self) -> dict[str, float]:
        return {free.name: free.start for free in self.free}


def put(data: dict[str, Any], place: str, value: Any) -> None:
    """Set the value at a dotted place. Raises InputError if there is no such place."""
    *path, last = place.split(".")
    node: Any = data
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, dict):
        raise InputError(f"the calibration has no '{place}'")
    node[last] = value


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Raises ScenarioError with all faults at once."""
    shown, problems = os.fspath(path), Problems()
    tree = read_file(Path(path), shown, problems)
    problems.raise_if_any()
    fit = tree.child("fit") if tree is not None else None
    if fit is None or not isinstance(fit.value, dict):
        raise ScenarioError([f"{shown}: 'fit' is missing"])
    row = fit.plain()
    faults = [f"{fit.pos}: fit: '{key}' is missing" for key in ("name", "base", "free") if not row.get(key)]
    if faults:
        raise ScenarioError(faults)
    base_path = os.path.normpath(Path(path).parent / row["base"])
    base = load_part(base_path, "calibration", Calibration)
    free, place = [], fit.child("free")
    where = place.pos if place is not None else fit.pos
    for name, entry in row["free"].items():
        at = entry.get("at") if isinstance(entry, dict) else None
        numbers = [entry.get(k) for k in ("start", "low", "high")] if at else []
        if not at or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in numbers):
            faults.append(f"{where}: {name}: needs at, start, low and high")
            continue
        start, low, high = map(float, numbers)
        if not low < high or not low <= start <= high or start <= 0:
            faults.append(f"{where}: {name}: start must be above zero and within its bounds")
        places = (at,) if isinstance(at, str) else tuple(at)
        free.append(Free(name, places, start, low, high, tuple(entry.get("laws") or ()), str(entry.get("note") or "")))
    if faults:
        raise ScenarioError(faults)
    recipe = Recipe(shown, str(row["name"]), base_path, base, tuple(free))
    recipe.calibration(recipe.starts())
    return recipe
