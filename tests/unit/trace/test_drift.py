"""The cause of a difference between a run and its prediction is the step that was changed, whatever waits follow from it."""

import pytest

from cuzk.model.formula import Formula
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate
from cuzk.trace.compare import compare, side_of_trace


def scenario(**factors):
    given = load_scenario("scenarios/phase12-pw10.yaml", ["workload.proofs=3", "policy.pw=6", "policy.j=3"])
    costs = dict(given.calibration.costs)
    for law, factor in factors.items():
        costs[law] = costs[law].model_copy(update={"seconds": Formula(f"{factor} * ({costs[law].seconds})")})
    return given.model_copy(update={"calibration": given.calibration.model_copy(update={"costs": costs})})


def side(label, given):
    return side_of_trace(label, simulate(given, trace=True).events)


@pytest.mark.parametrize("law", ["batch_add", "witness", "msm_h"])
def test_the_step_that_was_slower_is_named(law):
    drift = compare(side("predicted", scenario()), side("measured", scenario(**{law: 1.5})))["drift"]
    assert drift["cause"]["kind"] == "step" and drift["cause"]["name"] == law
    assert drift["cause"]["seconds_a_proof"] > 0
    assert drift["worst_under"]["name"] == law and drift["worst_under"]["error"] == pytest.approx(-1 / 3, abs=0.06)


def test_a_step_that_was_faster_is_no_under_prediction_and_equal_runs_have_no_drift():
    drift = compare(side("predicted", scenario()), side("measured", scenario(batch_add=0.5)))["drift"]
    assert drift["cause"]["name"] == "batch_add" and drift["cause"]["seconds_a_proof"] < 0
    assert drift["worst_under"] is None or drift["worst_under"]["name"] != "batch_add"
    same = compare(side("predicted", scenario()), side("measured", scenario()))["drift"]
    assert same["cause"]["seconds_a_proof"] == 0
