"""Measured points of a running system: what was configured, what came out. One YAML file, read and checked.

    measurements:
    - id: p9-gw1
      config: {phase: 9, pw: 10, gw: 1, c: 15, j: 15}
      measured: {s_per_proof: 41.3, prove_s: 36.1, oom: none}

A fault of one row does not lose the others: rows that are right are kept, faults are listed with their place.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzk.errors import ScenarioError
from cuzk.model.formula import suggestion
from cuzk.model.yamlpos import BROKEN, Node, Pos, Problems, describe, read_file

METRIC_OF = {
    "s_per_proof": "s_per_proof",
    "steady_s_per_proof": "steady_s_per_proof",
    "prove_s": "prove_s",
    "peak_rss_gib": "peak_ram_gib",
    "peak_ram_gib": "peak_ram_gib",
    "oom": "oom",
}
"""Key under `measured` -> metric that it is scored as."""

OOM_OF = {"none": "none", "no": "none", "false": "none", "ram": "ram", "crash": "ram", "vram": "vram"}
SPREAD = 0.5
"""`total_s` and c·`s_per_proof` of one row may differ by this much before they contradict each other."""
_KNOWN = {"id", "source", "system", "config", "measured", "notes", "note", "circuit"}


@dataclass(frozen=True)
class Point:
    """One measured run (or one step of it)."""

    id: str
    pos: Pos
    config: dict[str, Any]
    measured: dict[str, Any]
    system: str | None = None
    notes: str = ""

    @property
    def metrics(self) -> dict[str, float | str]:
        """The figures that can be scored: metric -> measured value."""
        found: dict[str, float | str] = {}
        for key, metric in METRIC_OF.items():
            value = self.measured.get(key)
            if value is not None:
                found[metric] = OOM_OF[str(value).lower()] if metric == "oom" else float(value)
        return found


@dataclass
class Points:
    """A file of points."""

    path: str
    points: list[Point] = field(default_factory=list)
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """Rows that cannot be used, `file:line:col: …`."""
    warnings: list[str] = field(default_factory=list)


def read_points(path: str | os.PathLike[str]) -> Points:
    """The points of a file. Raises ScenarioError if it is no such file at all, or if no row of it is usable."""
    shown, problems = os.fspath(path), Problems()
    tree = read_file(Path(path), shown, problems)
    if tree is None:
        problems.raise_if_any()
        raise ScenarioError([f"{shown}: empty"])
    if problems.found:
        problems.raise_if_any()
    rows = tree.child("measurements")
    if rows is None or not isinstance(rows.value, list):
        raise ScenarioError([f"{rows.pos if rows else tree.pos}: measurements: must be a list of measured points"])
    out = Points(shown)
    systems = tree.child("systems")
    if systems is not None and isinstance(systems.value, dict):
        out.systems = {str(name): node.plain() for name, node in systems.value.items() if isinstance(node.value, dict)}
    seen: dict[str, Pos] = {}
    for node in rows.value:
        _row(node, out, seen)
    if not out.points:
        raise ScenarioError(out.faults or [f"{rows.pos}: measurements: no point"])
    return out


def _row(node: Node, out: Points, seen: dict[str, Pos]) -> None:
    faults: list[str] = []
    if not isinstance(node.value, dict):
        out.faults.append(f"{node.pos}: a point is a mapping, not {describe(node.value)}")
        return
    row = node.plain()
    name = row.get("id")
    if not isinstance(name, str) or not name:
        out.faults.append(f"{node.pos}: a point without an id")
        return
    if name in seen:
        faults.append(f"{node.pos}: {name}: this id is used before, at {seen[name]}")
    seen.setdefault(name, node.pos)
    for key in row.keys() - _KNOWN:
        child = node.child(key)
        out.warnings.append(f"{child.pos if child else node.pos}: {name}: unknown key '{key}'{suggestion(str(key), _KNOWN)}")
    for part in ("config", "measured"):
        if not isinstance(row.get(part), dict):
            faults.append(f"{node.pos}: {name}: '{part}' is missing")
    if faults:
        out.faults += faults
        return
    config, measured = dict(row["config"]), dict(row["measured"])
    if row.get("circuit") is not None:
        config.setdefault("circuit", row["circuit"])
    found = node.child("measured")
    assert found is not None
    _check_figures(name, measured, found, faults)
    if not faults:
        _check_agreement(name, config, measured, node, faults, out.warnings)
    if faults:
        out.faults += faults
        return
    out.points.append(Point(name, node.pos, config, measured, row.get("system"), str(row.get("notes") or "")))


def _check_figures(name: str, measured: dict[str, Any], node: Node, faults: list[str]) -> None:
    for key, value in measured.items():
        child = node.child(key)
        where = f"{child.pos if child else node.pos}: {name}: {key}"
        if value is None or value is BROKEN:
            continue
        if key == "oom":
            if str(value).lower() not in OOM_OF:
                faults.append(f"{where}: must be none, ram or vram, not {value!r}")
        elif key in METRIC_OF:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                faults.append(f"{where}: must be a number, not {describe(value)}")
            elif not math.isfinite(value) or value <= 0:
                faults.append(f"{where}: must be above zero, not {value!r}")


def _check_agreement(
    name: str, config: dict[str, Any], measured: dict[str, Any], node: Node, faults: list[str], warnings: list[str]
) -> None:
    if "peak_rss_gib" in measured and "peak_ram_gib" in measured and measured["peak_rss_gib"] != measured["peak_ram_gib"]:
        faults.append(f"{node.pos}: {name}: peak_rss_gib and peak_ram_gib contradict each other")
    total, proofs, each = measured.get("total_s"), config.get("c"), measured.get("s_per_proof")
    numbers = [v for v in (total, proofs, each) if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) == 3 and min(numbers) > 0:
        ratio = numbers[0] / (numbers[1] * numbers[2])
        if abs(ratio - 1.0) > SPREAD:
            faults.append(f"{node.pos}: {name}: total_s {total:g} contradicts {proofs} proofs at {each:g} s_per_proof")
        elif abs(ratio - 1.0) > 0.02:
            warnings.append(f"{node.pos}: {name}: total_s is {ratio:.2f} times c·s_per_proof")
