"""A run as a service: latency, arrivals beyond capacity, a fix that is not sure, reservations; questions with a known answer."""

import json
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.model.scenario import load_scenario
from cuzk.planning.service import keeping_up, latency, reservations
from cuzk.sim import simulate

PLACE = Path(__file__).parents[3] / "scenarios"
FIXED = str(PLACE / "phase12-pw10.yaml")


def run(*sets):
    scenario = load_scenario(FIXED, sets)
    return scenario, simulate(scenario)


@pytest.mark.parametrize("interval, state", [("200s", "stable"), ("20s", "overloaded")])
def test_arrivals_beyond_capacity_are_an_overload(interval, state):
    scenario, result = run("workload.proofs=12", f"workload.arrivals={{interval: {interval}}}", "policy.j=40")
    found = keeping_up(scenario, result)
    assert found is not None and found["state"] == state, found


def test_a_burst_is_a_backlog_and_a_closed_loop_says_nothing():
    times = "[" + ",".join(["0s"] + [f"{600 * i}s" for i in range(1, 8)] + ["4201s", "4202s", "4203s", "4204s"]) + "]"
    scenario, result = run(f"workload.arrivals={times}", "workload.proofs=12", "policy.j=40")
    assert keeping_up(scenario, result)["state"] == "backlogged"
    assert keeping_up(*run("workload.proofs=6")) is None


def test_latency_differs_by_order():
    """By proof the first one comes out early; at random all of them late: throughput alone does not tell."""
    slow = ["workload.proofs=6", "policy.j=6", "policy.pw=6"]
    fifo, mixed = (latency(run(*slow, f"policy.order={order}")[1]) for order in ("by-proof", "random"))
    assert mixed["first_s"] > 1.5 * fifo["first_s"]


def test_reservations_are_whole_and_above_the_peak():
    _, result = run("workload.proofs=2")
    found = reservations(result)
    assert found.keys() == {"ram", "vram:0"} and all(size % (1 << 30) == 0 for size in found.values())
    assert all(found[pool] >= result.peaks[pool].resident_bytes for pool in found)


def test_a_fix_that_is_not_sure_says_so(capsys):
    sets = ["--set", "machine.ram=300GiB", "--set", "workload.proofs=20", "--set", "workload.arrivals={poisson: 3/min}"]
    assert main(["sim", FIXED, *sets, "--json"]) == 3
    fix = json.loads(capsys.readouterr().out)["smallest_change"]
    assert fix["verdict"] == "risky" and 0 < fix["p_oom"] < 1
    assert main(["sim", FIXED, *sets]) == 3
    text = capsys.readouterr().out
    assert "RISKY: ram runs out in" in text and "machine.reserved keeps 95 of 300 GiB" in text


def test_a_domain_that_the_field_does_not_have(capsys):
    assert main(["sim", FIXED, "--set", "circuit.constraints=8589934592"]) == 2
    assert "no domain above 2^32" in capsys.readouterr().err
