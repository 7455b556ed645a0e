"""The back-test: every scored row with what was measured, predicted, and how sure the prediction is."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cuzk.accuracy.measured_points import Point, Points
from cuzk.accuracy.predict import Prediction, predict
from cuzk.accuracy.scenarios import Case, Unscored, case
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration

SCHEMA_VERSION = 1
GATES = {  # metric -> (median, worst) of the absolute error
    "s_per_proof": (0.02, 0.08),
    "steady_s_per_proof": (0.02, 0.08),
    "peak_ram_gib": (0.03, 0.12),
    "prove_s": (0.03, 0.10),
    "s_per_partition": (0.06, 0.25),
    "peak_vram_bytes": (0.02, 0.05),
}
LOWEST = {"peak_ram_gib": -0.05, "peak_vram_bytes": -0.05}
"""Metrics whose prediction must never be lower than this: who deploys on it runs out of memory."""
COVERAGE, WIDTH = 0.90, 0.20
BANDED = {"s_per_proof", "steady_s_per_proof", "peak_ram_gib", "prove_s"}
"""Metrics whose bands have a goal."""

NOT_TO_BE_SCORED = {
    ("p9-iso", "s_per_proof"): "a prove time: with one proof in flight, synthesis alone takes longer",
    ("s0-p9-gw1", "s_per_proof"): "the same prove time, repeated as a throughput",
    ("lm-pw1-gw1", "peak_ram_gib"): "start-up transient suspected: the peak is 15 GiB off the line of its series",
}
"""(point, metric) that no model should be scored on, and why."""


@dataclass(frozen=True)
class Row:
    """One scored figure."""

    id: str
    metric: str
    measured: float | str
    predicted: float | str | None
    p5: float | None
    p95: float | None
    used_in_fit: bool
    rule_of_thumb: float | None = None
    note: str = ""

    @property
    def error(self) -> float | None:
        """predicted / measured - 1; None for a verdict, or where nothing was predicted."""
        if isinstance(self.measured, str) or not isinstance(self.predicted, (int, float)):
            return None
        return self.predicted / self.measured - 1.0

    @property
    def width(self) -> float | None:
        """The band's width as a share of the prediction; None for a verdict, or without a band."""
        if self.covered is None or self.p5 is None or self.p95 is None or not self.predicted or isinstance(self.predicted, str):
            return None
        return (self.p95 - self.p5) / self.predicted

    @property
    def thumb_error(self) -> float | None:
        """The rule of thumb's error, as `error`."""
        if self.rule_of_thumb is None or isinstance(self.measured, str):
            return None
        return self.rule_of_thumb / self.measured - 1.0

    @property
    def covered(self) -> bool | None:
        if isinstance(self.measured, str) or self.p5 is None or self.p95 is None:
            return None
        return self.p5 <= self.measured <= self.p95

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "id": self.id,
            "metric": self.metric,
            "measured": self.measured,
            "predicted": _rounded(self.predicted),
            "p5": _rounded(self.p5),
            "p95": _rounded(self.p95),
            "used_in_fit": self.used_in_fit,
            "error": _rounded(self.error),
            "rule_of_thumb": _rounded(self.rule_of_thumb),
        }
        return out | ({"note": self.note} if self.note else {})


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


@dataclass
class Backtest:
    """Rows, and what was left out and why."""

    source: str
    calibration: str
    rows: list[Row] = field(default_factory=list)
    not_scored: list[tuple[str, str, str]] = field(default_factory=list)
    """(point, metric or '*', reason)"""
    warnings: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "source": self.source,
            "calibration": self.calibration,
            "rows": [row.to_json() for row in self.rows],
            "summary": summary(self.rows),
            "summary_used": summary(r for r in self.rows if r.used_in_fit),
            "summary_unused": summary(r for r in self.rows if not r.used_in_fit),
            "failed_gates": failed_gates(self.rows),
            "not_scored": [{"id": i, "metric": m, "reason": why} for i, m, why in self.not_scored],
            "warnings": self.warnings,
            "faults": self.faults,
        }


def backtest(
    points: Points,
    calibration: Calibration,
    seeds: int = 21,
    *,
    processes: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Backtest:
    """Predict every point that a pipeline describes. Faulty points are listed, the others predicted."""
    out = Backtest(points.path, calibration.name, warnings=list(points.warnings), faults=list(points.faults))
    cases: list[Case] = []
    for point in points.points:
        metrics = point.metrics
        if not metrics:
            out.not_scored.append((point.id, "*", "no figure of a whole run"))
            continue
        try:
            found = case(point, calibration, points.systems)
        except Unscored as reason:
            out.not_scored.append((point.id, "*", str(reason)))
            continue
        except InputError as error:
            out.faults.append(str(error))
            continue
        out.warnings += found.warnings
        cases.append(found)
    used = set(calibration.points)
    for found, prediction in zip(cases, predict(cases, seeds, processes=processes, progress=progress), strict=True):
        if prediction.fault:
            out.not_scored.append((found.point.id, "*", f"cannot be simulated: {prediction.fault}"))
            continue
        for metric, measured in found.point.metrics.items():
            why = NOT_TO_BE_SCORED.get((found.point.id, metric))
            if why is not None:
                out.not_scored.append((found.point.id, metric, why))
            else:
                out.rows.append(_row(found, metric, measured, prediction, used))
    lost = [why for _, metric, why in out.not_scored if why.startswith("cannot be simulated")]
    if lost and not out.rows:
        raise InputError(f"calibration '{calibration.name}' predicts none of the points: {lost[0]}")
    return out


def _row(found: Case, metric: str, measured: float | str, prediction: Prediction, used: set[str]) -> Row:
    name = found.point.id
    in_fit = name in used or f"{name}:{metric}" in used
    note = "; ".join(prediction.outside)
    if metric == "oom":
        return Row(name, metric, measured, prediction.oom, None, None, in_fit, note=note)
    bands = prediction.bands[metric]
    p50, p5, p95 = (bands.p50, bands.p5, bands.p95) if bands else (None, None, None)
    return Row(name, metric, measured, p50, p5, p95, in_fit, rule_of_thumb(found, metric), note)


def rule_of_thumb(found: Case, metric: str) -> float | None:
    """The rule that operators reckon with: 69 + 20·pw GiB; for the pace, the slower of synthesis (36.5 s a partition, pw at once)
    and the GPU (the kernels' printed time a partition)."""
    from cuzk.pipeline.program import bind

    policy, pipeline = bind(found.scenario).policy, found.scenario.pipeline
    if pipeline == "phase2" or policy.pw is None:
        return None
    if metric == "peak_ram_gib":
        return 69.0 + 20.0 * policy.pw
    if metric in ("s_per_proof", "steady_s_per_proof"):
        kernels_s = 1.824 if policy.prestage != "off" else 3.746
        return found.scenario.circuit.partitions * max(36.5 / policy.pw, kernels_s)
    return None


def summary(rows: Iterable[Row]) -> dict[str, Any]:
    """By metric: rows, median and worst absolute error, lowest error, share of rows in the band, median width."""
    by_metric: dict[str, list[Row]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    return {metric: _summary(metric, found) for metric, found in by_metric.items()}


def _summary(metric: str, rows: Sequence[Row]) -> dict[str, Any]:
    if isinstance(rows[0].measured, str):
        return {"rows": len(rows), "right": sum(r.measured == r.predicted for r in rows)}
    errors = [e for r in rows if (e := r.error) is not None]
    covered = [c for r in rows if (c := r.covered) is not None]
    widths = [w for r in rows if (w := r.width) is not None]
    thumb = [abs(e) for r in rows if (e := r.thumb_error) is not None]
    out: dict[str, Any] = {"rows": len(rows), "predicted": len(errors)}
    if errors:
        out |= {"median": statistics.median(map(abs, errors)), "worst": max(errors, key=abs), "lowest": min(errors)}
    if covered:
        out |= {"in_band": sum(covered) / len(covered), "median_width": statistics.median(widths)}
    if thumb:
        out["rule_of_thumb"] = {"rows": len(thumb), "median": statistics.median(thumb), "worst": max(thumb)}
    return {k: _rounded(v) for k, v in out.items()}


def failed_gates(rows: Sequence[Row]) -> list[str]:
    """The goals that these rows miss, in words; empty: all met."""
    failed: list[str] = []
    for metric, s in summary(rows).items():
        if "right" in s:
            if s["right"] < s["rows"]:
                failed.append(f"{metric}: {s['rows'] - s['right']} of {s['rows']} verdicts wrong")
            continue
        if s["predicted"] < s["rows"]:
            failed.append(f"{metric}: {s['rows'] - s['predicted']} rows without a prediction")
        if metric in GATES and "median" in s:
            for name, limit, value in zip(("median", "worst"), GATES[metric], (s["median"], abs(s["worst"])), strict=True):
                if value > limit:
                    failed.append(f"{metric}: {name} error {value:.1%} is above {limit:.0%}")
        if metric in LOWEST and s.get("lowest", 0.0) < LOWEST[metric]:
            failed.append(f"{metric}: {-s['lowest']:.1%} too low, at most {-LOWEST[metric]:.0%} is allowed")
    banded = [row for row in rows if row.covered is not None and row.metric in BANDED]
    if banded:
        share = sum(bool(row.covered) for row in banded) / len(banded)
        width = statistics.median(w for r in banded if (w := r.width) is not None)
        if share < COVERAGE:
            failed.append(f"bands: {share:.0%} of the rows lie in theirs, {COVERAGE:.0%} must")
        if width > WIDTH:
            failed.append(f"bands: median width {width:.0%} is above {WIDTH:.0%}")
    return failed


def scored(point: Point) -> dict[str, float | str]:
    """The metrics of a point that a model may be scored on (and fitted to)."""
    return {m: v for m, v in point.metrics.items() if (point.id, m) not in NOT_TO_BE_SCORED}
