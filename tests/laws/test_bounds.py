"""The bound that `cuzk check` states is one: no run of a sound program ever holds more, simulated or real."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from cuzk.model.scenario import Scenario
from cuzk.pipeline.bounds import bounds
from cuzk.pipeline.check import check
from cuzk.pipeline.program import Program, bind
from cuzk.sim.options import Options
from cuzk.sim.run import run_program
from tests.faults.harness import PlannedDevice, drawn_program
from tests.laws.test_sim_laws import scenarios
from tests.unit.exec.playing import Played


def assert_bounded(program: Program, live: dict[str, int]) -> None:
    for bound in bounds(program):
        assert live[bound.pool] <= bound.at_most_bytes, bound


# INV-22
@given(scenarios())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_pipelines_stay_below_their_bound(scenario: Scenario) -> None:
    roomy = scenario.machine.model_copy(
        update={"ram": 1 << 43, "gpus": tuple(gpu.model_copy(update={"vram": 1 << 40}) for gpu in scenario.machine.gpus)}
    )
    program = bind(scenario.model_copy(update={"machine": roomy}))
    assert not [finding for finding in check(program) if finding.severity == "error"]
    for shuffle in (None, 1):
        result = run_program(program, None, Options(shuffle=shuffle))
        assert_bounded(program, {name: peak.live_bytes for name, peak in result.peaks.items()})


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_presets_under_random_policies_stay_below_their_bound(first: int) -> None:
    from cuzk.pipeline.faults import FaultPlan

    for seed in range(first, first + 20):
        program = drawn_program(seed)
        result = run_program(program, None, Options())
        assert_bounded(program, {name: peak.live_bytes for name, peak in result.peaks.items()})
        played = Played(program, PlannedDevice(FaultPlan(())))
        assert_bounded(program, {name: pool.peak_live for name, pool in played.engine.core.books.pools.items()})
