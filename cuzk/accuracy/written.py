"""Calibrations as files: whole ones, and fitted values over the base that they were fitted on."""

from __future__ import annotations

import io
import os
from typing import Any

from cuzk.accuracy.fit import Fit
from cuzk.accuracy.recipe import Recipe
from cuzk.model.calibration import Calibration


def whole(calibration: Calibration, head: str) -> str:
    """The file of a calibration that stands for itself."""
    data = {"calibration": _trimmed(calibration.model_dump(mode="json"))}
    return _comment(head) + _yaml(data)


def fitted(recipe: Recipe, found: Fit, points: list[str], residual: dict[str, float], place: str, head: str) -> str:
    """The file that lays the fitted values over the recipe's base. `place`: where it will lie, for the base's relative name."""
    calibration: dict[str, Any] = {"name": recipe.name, "points": points}
    for free in recipe.free:
        value = float(f"{found.values[free.name]:.5g}")
        # of a parameter alone; together they are known better, so bands draw from what the whole has been wrong by instead
        note = f"{free.name}: {free.note}; ± {found.errors[free.name]:.0%} by itself"
        for at in free.at:
            *path, last = at.split(".")
            node = calibration
            for key in path:
                node = node.setdefault(key, {})
            node[last] = f"{value}s" if path == ["latency"] else value
            if path and path[0] in ("costs", "contention", "latency"):
                node.setdefault("provenance", {})[last] = {"source": "fit", "note": note}
    calibration.setdefault("parameters", {}).update({f"residual_{metric}": round(v, 5) for metric, v in residual.items()})
    base = os.path.relpath(recipe.base_path, os.path.dirname(os.path.abspath(place)))
    return _comment(head) + _yaml({"extends": base, "calibration": calibration})


def _trimmed(data: Any) -> Any:
    """Without what says nothing: nulls, empty mappings."""
    if isinstance(data, dict):
        return {k: t for k, v in data.items() if (t := _trimmed(v)) not in (None, {}, [], "") or k == "provenance"}
    return [_trimmed(v) for v in data] if isinstance(data, list) else data


def _comment(head: str) -> str:
    return "".join(f"# {line}\n" for line in head.splitlines())


def _yaml(data: Any) -> str:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    out = io.StringIO()
    yaml.dump(data, out)
    return out.getvalue()
