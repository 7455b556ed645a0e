"""The distance of a prediction from what was calibrated, in one word, with why and with the error that goes with it."""

from __future__ import annotations

from typing import Any, Literal

from cuzk.model.scenario import Scenario
from cuzk.model.transfer import calibrated_on, rates_of, same_card
from cuzk.pipeline.program import bind
from cuzk.sim.run import unmeasured

Basis = Literal["measured", "interpolated", "other-policy", "other-card"]
ERRORS: dict[Basis, float] = {"measured": 0.0264, "interpolated": 0.05, "other-policy": 0.2, "other-card": 0.36}
"""Standard deviation of the relative error of a pace: of rows out of the fit for `measured`; what one prover on two cards showed
for `other-card`; for `other-policy` what streamed keys showed on an H200 (3 to 24 % off); assumed for `interpolated`."""


def basis(scenario: Scenario) -> dict[str, Any]:
    """{basis, why, error} of a scenario's prediction; the farthest of all that applies."""
    found = _reasons(scenario)
    order: list[Basis] = ["measured", "interpolated", "other-policy", "other-card"]
    name: Basis = max((kind for kind, _ in found), key=order.index, default="measured")
    why = "; ".join(dict.fromkeys(text for kind, text in found if kind == name))
    error = ERRORS[name]
    calibration = scenario.calibration
    if name == "measured" and calibration is not None:
        error = calibration.parameters.get("residual_s_per_proof", error)
    return {"basis": name, "why": why or "the machine, the pipeline and the ranges that were calibrated", "error": error}


def _reasons(scenario: Scenario) -> list[tuple[Basis, str]]:
    calibration = scenario.calibration
    if calibration is None:
        return []
    plan = bind(scenario)
    found: list[tuple[Basis, str]] = []
    names = {k: v for k, v in plan.names(scenario.circuit).items() if isinstance(v, (int, float))}
    found += [("interpolated", f"outside the calibrated range: {what}") for what in calibration.outside(names)]
    if calibration.phases and isinstance(scenario.pipeline, str) and scenario.pipeline not in calibration.phases:
        found.append(("other-policy", f"'{calibration.name}' was made for {', '.join(calibration.phases)}"))
    found += [("other-policy", why) for why in dict.fromkeys(unmeasured(plan))]
    here = scenario.machine
    there = calibrated_on(calibration)
    others = {gpu.name for gpu in here.gpus if there is not None and not same_card(there, rates_of(gpu))}
    if there is None and calibration.machine != here.name:
        others = {gpu.name for gpu in here.gpus}
    if others:
        of = there.name if there is not None else "a card that is not known"
        found.append(("other-card", f"measured on {of}, not on {', '.join(sorted(others))}: GPU steps are priced from rates"))
    elif calibration.machine != here.name:
        found.append(("interpolated", f"measured on {calibration.machine}, which has the same card"))
    return found
