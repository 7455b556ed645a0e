"""What differs between two scenarios and what each difference does; which figures move the answer."""

import json
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.model.scenario import load_scenario
from cuzk.planning.diff import diff
from cuzk.planning.sensitivity import Factor, factors, sobol, tornado
from cuzk.sim import simulate

PLACE = Path(__file__).parents[3] / "scenarios"
QUICK = ["workload.proofs=2"]


def load(*more, name="phase12-pw10"):
    return load_scenario(PLACE / f"{name}.yaml", [*QUICK, *more])


def test_a_difference_alone_is_what_it_says():
    found = diff(load(), load("policy.pw=4", "machine.ram=512GiB"))
    alone = {d.key: d.alone for d in found.differences}
    assert alone.keys() == {"policy.pw", "machine.ram"}
    assert alone["policy.pw"]["s_per_proof"] == pytest.approx(simulate(load("policy.pw=4")).s_per_proof, abs=1e-6)
    assert alone["machine.ram"]["ram_limit_bytes"] == (512 - 95) << 30


def test_presets_show_their_options():
    found = diff(load(), load("pipeline=phase12"))
    assert "policy.permit_returns" in {d.key for d in found.differences}


def test_what_does_not_decide_does_not_differ():
    a = load()
    assert diff(a, a.model_copy(update={"name": "other", "description": "words"})).differences == []


def test_the_largest_swing_is_what_binds():
    slow = load("machine.gpus.0.pcie_h2d=1GB/s")
    _, bars = tornado(slow, 0.1, [f for f in factors(slow) if f.name in ("link up", "cost of tail_msm", "RAM")])
    swings = {bar.factor: bar.swing("s_per_proof") for bar in bars}
    assert swings["link up"] > 10 * swings["cost of tail_msm"] and swings["RAM"] == 0


def test_running_out_on_one_side_is_an_infinite_swing():
    ram = load().machine.reserved + simulate(load()).peaks["ram"].reserved_bytes + (4 << 30)
    tight = load(f"machine.ram={ram}B")
    assert simulate(tight).fits
    _, bars = tornado(tight, 0.3, [f for f in factors(tight) if f.name == "RAM"])
    assert bars[0].low["verdict"] == "oom" and bars[0].swing("s_per_proof") == float("inf")


@pytest.mark.filterwarnings("ignore")
def test_sobol_finds_the_only_cause():
    pytest.importorskip("SALib")
    scenario = load("workload.proofs=1")
    chosen = [f for f in factors(scenario) if f.name == "cost of witness"]
    chosen.append(Factor("nothing", lambda s, f: s))
    witness, nothing = sobol(scenario, 0.1, "s_per_proof", 16, chosen)
    assert witness.total > 0.9 and abs(nothing.total) < 0.05


def test_the_commands(capsys):
    a, b = str(PLACE / "phase12-pw10.yaml"), str(PLACE / "pw12-fixed.yaml")
    assert main(["diff", a, b, "--set-a", "workload.proofs=2", "--set-b", "workload.proofs=2", "--json"]) == 0
    keys = {row["key"] for row in json.loads(capsys.readouterr().out)["differences"]}
    assert "policy.pw" in keys
    assert main(["sensitivity", a, "--set", "workload.proofs=1", "--metric", "peak_ram_bytes", "--top", "3"]) == 0
    assert "peak_ram_bytes" in capsys.readouterr().out
    assert main(["sensitivity", a, "--metric", "speed"]) == 2
    assert "no metric 'speed'" in capsys.readouterr().err
    assert main(["sensitivity", a, "--sobol", "3"]) == 2
