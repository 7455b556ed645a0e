"""Measured runs of the stand-alone reference prover: runs.yaml beside one timeline a run."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuzk.errors import InputError, ScenarioError
from cuzk.model.yamlpos import Node, Problems, read_file
from cuzk.trace.timelines import Partition, Timeline, read_timeline

__all__ = ["Partition", "Run", "Runs", "Timeline", "read_runs", "read_timeline"]

SCORED = {"s_per_partition_overall", "peak_vram_bytes", "peak_vram_minus_hold_bytes", "rss_at_start_bytes", "peak_rss_bytes"}
"""Figures under `measured` that predictions are compared with."""


@dataclass
class Run:
    """One entry of runs.yaml with its timeline, if there is one."""

    id: str
    settings: dict[str, Any]
    measured: dict[str, Any]
    where: str
    timeline: Timeline | None = None


@dataclass
class Runs:
    path: str
    machine: dict[str, Any]
    setups: list[dict[str, Any]]
    runs: list[Run] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def setup(self, run: Run) -> dict[str, Any] | None:
        """The setup that a run was made with: its domain, and as many shared sets as it says."""
        same = [s for s in self.setups if s.get("lgd") == run.settings.get("domain_log2")]
        exact = [s for s in same if s.get("nsets") == run.settings.get("distinct_witnesses")]
        return next(iter(exact or same), None)


def read_runs(folder: str | os.PathLike[str]) -> Runs:
    """Raises InputError if the folder has no readable runs.yaml, or no usable run."""
    path = Path(folder)
    if path.is_file():
        path = path.parent
    if not (path / "runs.yaml").is_file():
        raise InputError(f"{os.fspath(folder)}: there is no runs.yaml in this folder")
    problems = Problems()
    tree = read_file(path / "runs.yaml", str(path / "runs.yaml"), problems)
    problems.raise_if_any()
    assert tree is not None
    machine, setups = tree.child("machine"), tree.child("setups")
    out = Runs(str(path), machine.plain() if machine and isinstance(machine.value, dict) else {}, [])
    if setups is not None and isinstance(setups.value, list):
        out.setups = [s for s in setups.plain() if isinstance(s, dict)]
    rows = tree.child("runs")
    if rows is None or not isinstance(rows.value, list):
        raise ScenarioError([f"{rows.pos if rows else tree.pos}: runs: must be a list of measured runs"])
    seen: set[str] = set()
    for node in rows.value:
        _run(node, path, out, seen)
    if not out.runs:
        raise ScenarioError(out.faults or [f"{rows.pos}: runs: no run"])
    return out


def _run(node: Node, folder: Path, out: Runs, seen: set[str]) -> None:
    row = node.plain() if isinstance(node.value, dict) else {}
    name, settings, measured = row.get("id"), row.get("settings"), row.get("measured")
    if not isinstance(name, str) or not isinstance(settings, dict) or not isinstance(measured, dict):
        out.faults.append(f"{node.pos}: a run needs id, settings and measured")
        return
    if name in seen:
        out.faults.append(f"{node.pos}: {name}: this id is used before")
        return
    seen.add(name)
    bad = [
        f"{node.pos}: {name}: {k} must be above zero, not {settings.get(k)!r}"
        for k in ("domain_log2", "gw", "partitions")
        if not _whole(settings.get(k))
    ]
    bad += [
        f"{node.pos}: {name}: {k} must not be negative, not {v!r}"
        for k, v in measured.items()
        if k in SCORED and isinstance(v, (int, float)) and not isinstance(v, bool) and (not math.isfinite(v) or v < 0)
    ]
    if bad:
        out.faults += bad
        return
    timeline = None
    file = folder / f"{name}.jsonl"
    if file.is_file():
        try:
            timeline = read_timeline(file)
        except InputError as error:
            out.warnings.append(str(error))
        else:
            out.warnings += timeline.dropped
    out.runs.append(Run(name, settings, measured, str(node.pos), timeline))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
