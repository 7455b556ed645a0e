"""The report of a fit: parameters, what the data leave open, errors in and out of the fit."""

from __future__ import annotations

import math
import statistics
from typing import Any

from cuzk.accuracy.fit import SPREAD, Fit, Problem, Target
from cuzk.accuracy.recipe import Free

CrossRow = tuple[Target, float | None, str]
OPEN = 1.0
"""A direction whose singular value is below this moves no figure by its spread: the data leave it open."""
HOW = (
    "Each group of points that share phase, pw and gw is predicted by a fit without it (one Gauss-Newton step from the whole "
    "fit by its Jacobian without the group's rows)."
)


def _worst(errors: list[float]) -> float:
    """The error that is largest, with its sign."""
    return max(errors, key=abs)


def cross_summary(rows: list[CrossRow]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for metric in dict.fromkeys(t.metric for t, _, _ in rows):
        errors = [e for t, e, _ in rows if t.metric == metric and e is not None]
        verdicts = [w for t, e, w in rows if t.metric == metric and e is None]
        if errors:
            out[metric] = {"rows": len(errors), "median": round(statistics.median(map(abs, errors)), 5),
                           "worst": round(_worst(errors), 5), "lowest": round(min(errors), 5)}  # fmt: skip
        elif verdicts:
            out[metric] = {"rows": len(verdicts), "right": verdicts.count("right")}
    return out


def cross_validation(task: Problem, rows: list[CrossRow]) -> dict[str, Any]:
    """The document that the back-test shows beside its own rows."""
    return {
        "how": HOW,
        "summary": cross_summary(rows),
        "rows": [
            {"id": t.point, "metric": t.metric, "error": None if e is None else round(e, 5), "verdict": w or None}
            for t, e, w in rows
        ],
    }


def residual_spread(rows: list[CrossRow]) -> dict[str, float]:
    """Robust standard deviation of the errors out of the fit, by metric: what a band must add to the simulated one."""
    out = {}
    for metric in SPREAD:
        errors = [e for t, e, _ in rows if t.metric == metric and e is not None]
        if len(errors) >= 5:
            out[metric] = max(0.005, 1.4826 * statistics.median(map(abs, errors)))
    out.setdefault("steady_s_per_proof", out.get("s_per_proof", 0.02))
    return out


def _at_bound(value: float, free: Free) -> bool:
    return value >= free.high * 0.999 or value <= max(free.low, 1e-9) * 1.001


def fit_document(task: Problem, found: Fit, rows: list[CrossRow]) -> dict[str, Any]:
    in_fit = {}
    for metric in SPREAD:
        errors = [
            math.exp(r * SPREAD[metric]) - 1.0 for t, r in zip(task.targets, found.residuals, strict=True) if t.metric == metric
        ]
        if errors:
            in_fit[metric] = {"rows": len(errors), "median": round(statistics.median(map(abs, errors)), 5),
                              "worst": round(_worst(errors), 5), "lowest": round(min(errors), 5)}  # fmt: skip
    return {
        "calibration": task.recipe.name,
        "parameters": {
            free.name: {"value": found.values[free.name], "relative_error": round(found.errors[free.name], 4), "note": free.note,
                        "start": free.start, "bounds": [free.low, free.high],
                        "at_bound": _at_bound(found.values[free.name], free)}
            for free in task.recipe.free
        },
        "rms": round(found.rms, 4), "evaluations": found.evaluations, "simulations": found.simulations,
        "identifiability": [{"singular_value": round(s, 3), "direction": d, "open": s < OPEN} for s, d in found.singular],
        "in_fit": in_fit, "cross_validation": cross_validation(task, rows),
    }  # fmt: skip


def fit_lines(document: dict[str, Any]) -> list[str]:
    lines = [f"rms {document['rms']} spreads after {document['evaluations']} evaluations, {document['simulations']} simulations"]
    for name, p in document["parameters"].items():
        bound = "   at its bound" if p["at_bound"] else ""
        lines.append(f"{name:<18} {p['value']:<10.4g} ± {p['relative_error']:.0%}   {p['note']}{bound}")
    for row in document["identifiability"]:
        mixed = " ".join(f"{v:+.2f} {n}" for n, v in row["direction"].items())
        lines.append(f"{'left open' if row['open'] else 'determined'}: {row['singular_value']:>8.2f}   {mixed}")
    for label, key in (("in the fit", document["in_fit"]), ("left out", document["cross_validation"]["summary"])):
        for metric, s in key.items():
            if "right" in s:
                lines.append(f"{label:<12}{metric:<20}{s['right']} of {s['rows']} right")
            else:
                lines.append(f"{label:<12}{metric:<20}{s['rows']:>3} rows   median {s['median']:.1%}   worst {s['worst']:+.1%}   "
                             f"lowest {s['lowest']:+.1%}")  # fmt: skip
    return lines
