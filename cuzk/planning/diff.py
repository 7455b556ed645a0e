"""Two scenarios: where they differ, what each of them gives, and what each difference does when it alone is taken over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cuzk.analysis.sweeps import in_parallel
from cuzk.errors import InputError
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind
from cuzk.planning.row import Row, simulated

WHOLE = 2
"""Levels of a part below which values that differ count as one difference: `calibration.costs.witness`, `machine.gpus`."""
MOST = 60


@dataclass(frozen=True)
class Difference:
    """One key with its value in each scenario (None: not there), and the row of the first with the second's value."""

    key: str
    a: Any
    b: Any
    alone: Row | None = None


@dataclass(frozen=True)
class Diff:
    a: Row
    b: Row
    differences: list[Difference]
    untried: int = 0
    """Differences beyond the first so many, whose own effect was not simulated."""


def diff(a: Scenario, b: Scenario, *, processes: int | None = None) -> Diff:
    """Compare what `a` and `b` say, options of their presets included, and simulate both and every single difference."""
    left, right = _data(a), _data(b)
    keys = sorted(_differing(left, right, ()))
    tried = keys[:MOST]

    def one(path: tuple[str, ...]) -> Row:
        return _alone(left, path, _at(right, path))

    jobs = [lambda: simulated(a), lambda: simulated(b), *(lambda path=path: one(path) for path in tried)]
    rows = in_parallel(jobs, processes)
    found = [
        Difference(".".join(path), _at(left, path), _at(right, path), row)
        for path, row in zip(keys, [*rows[2:], *[None] * (len(keys) - len(tried))], strict=True)
    ]
    return Diff(rows[0], rows[1], found, len(keys) - len(tried))


def _data(scenario: Scenario) -> dict[str, Any]:
    """All that decides the result, as data: the policy with no option open, names and descriptions left out."""
    data = scenario.model_dump(mode="json", exclude={"name", "description", "checks", "version"})
    data["policy"] = bind(scenario).policy.model_dump(mode="json", exclude_none=True)
    for part in ("machine", "circuit", "calibration"):
        for field in ("provenance", "description", "points"):
            (data.get(part) or {}).pop(field, None)
    for law in ((data.get("calibration") or {}).get("costs") or {}).values():
        law.pop("provenance", None)
    for part in ("contention", "latency", "memory"):
        ((data.get("calibration") or {}).get(part) or {}).pop("provenance", None)
    return data


def _differing(a: Any, b: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if a == b:
        return []
    if not (isinstance(a, dict) and isinstance(b, dict)) or len(path) > WHOLE:
        return [path]
    found: list[tuple[str, ...]] = []
    for key in sorted(a.keys() | b.keys()):
        found += _differing(a.get(key), b.get(key), (*path, key))
    return found


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _alone(data: dict[str, Any], path: tuple[str, ...], value: Any) -> Row:
    """The row of `data` with one value changed; `invalid` where that is no scenario."""
    import copy

    changed = copy.deepcopy(data)
    place = changed
    for key in path[:-1]:
        place = place.setdefault(key, {})
    if value is None:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
    try:
        return simulated(Scenario.model_validate(_sourced(changed)))
    except (ValidationError, InputError) as error:
        return {"verdict": "invalid", "error": str(error).splitlines()[0]}


def _sourced(data: dict[str, Any]) -> dict[str, Any]:
    """With an origin for the figures whose own was left out of the comparison."""
    calibration = data.get("calibration")
    if calibration:
        origin = {"*": {"source": "assumed", "note": "of a comparison"}}
        for law in calibration.get("costs", {}).values():
            law["provenance"] = origin
        for part in ("contention", "latency", "memory"):
            if part in calibration:
                calibration[part]["provenance"] = origin
    return data
