"""Errors that all steps of a kind share: bands see the pile-up that the difference of two paces makes; the plain run stays."""

import statistics

import pytest

from cuzk.analysis.bands import uncertainty
from cuzk.analysis.draws import draws
from cuzk.cli.main import main
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate
from cuzk.sim.costs import Draw


def scenario(*sets):
    return load_scenario("scenarios/phase9-gw1-j15.yaml", sets)


def test_the_first_is_plain_and_the_others_are_mirrored():
    calibration = scenario().calibration
    for runs in (1, 2, 5, 21):
        found = draws(calibration, 7, runs)
        assert len(found) == runs and found[0] == Draw()
        product = statistics.geometric_mean([d.gpu_pace for d in found[1:]] or [1.0])
        assert product == pytest.approx(1.0, abs=1e-9)
    spread = statistics.stdev(d.gpu_pace for d in draws(calibration, 7, 201))
    assert spread == pytest.approx(calibration.parameters["residual_s_per_proof"], rel=0.1)
    paces = [(d.gpu_pace, d.synthesis_pace) for d in draws(calibration, 7, 201)[1:]]
    assert abs(statistics.correlation(*zip(*paces, strict=True))) < 0.25


def test_a_pace_moves_every_step_of_its_kind_and_no_other():
    from cuzk.pipeline.program import bind
    from cuzk.sim.options import Options
    from cuzk.sim.run import run_program
    from cuzk.trace.spans import step_times

    program = bind(scenario("workload.proofs=1", "policy.pw=1", "machine.dram_bandwidth=300GB/s"))
    plain, slow = (run_program(program, 1, Options(trace=True, draw=draw)) for draw in (Draw(), Draw(gpu_pace=1.5)))
    before, after = step_times(plain.events), step_times(slow.events)
    assert after["msm_h"].median_s > 1.3 * before["msm_h"].median_s
    assert after["witness"].median_s == pytest.approx(before["witness"].median_s, rel=0.2)


def test_the_run_that_crashed_in_the_field_is_risky():
    """phase9, one worker, j 20, 30 proofs: the plain run fits, and a pace that is off by a hundredth fills the memory."""
    crashed = scenario("policy.j=20", "workload.proofs=30")
    assert simulate(crashed).fits
    found = uncertainty(crashed, 20)
    assert found.verdict == "risky" and found.p_oom > 0


def test_a_run_that_is_far_from_its_limits_stays_safe():
    assert uncertainty(scenario("workload.proofs=4", "policy.pw=4"), 8).verdict == "fits"


def test_plan_and_sim_share_the_rule(capsys):
    arguments = ["scenarios/phase9-gw1-j15.yaml", "--set", "workload.proofs=30"]
    assert main(["plan", *arguments, "--pw", "10", "--gw", "1", "--j", "20", "--over", "channel_capacity=1",
                 "--over", "permit_returns=after-synthesis", "--json"]) == 3  # fmt: skip
    assert "runs out in" in capsys.readouterr().out
