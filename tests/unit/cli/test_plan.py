"""`cuzk plan`: what it recommends it has simulated, it fits with the margins, nothing near beats it; else what is nearest."""

import json
import re
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.daemon.toml import read_toml
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate

SCENARIOS = Path(__file__).parents[3] / "scenarios"
PHASE12 = [str(SCENARIOS / "pw12.yaml"), "--set", "pipeline=phase12", "--set", "workload.proofs=4"]
FEW = ["--pw", "2,6,10", "--gw", "1-2", "--j", "2", "--seeds", "3", "--over", "permit_returns=after-send,after-synthesis",
       "--over", "channel_capacity=1"]  # fmt: skip


def plan(capsys, *arguments, code=0):
    assert main(["plan", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_every_recommendation_is_what_its_own_run_says(capsys):
    document = plan(capsys, *PHASE12, *FEW)
    assert document["recommendations"] and document["considered"] == 12
    paces = [row["steady_s_per_proof"] for row in document["recommendations"]]
    assert paces == sorted(paces)
    for row in document["recommendations"]:
        sets = [part for setting in row["set"] for part in [setting]]
        result = simulate(load_scenario(PHASE12[0], ["pipeline=phase12", "workload.proofs=4", *sets]))
        assert result.fits and result.s_per_proof == pytest.approx(row["s_per_proof"], abs=1e-6)
        assert row["verdict"] == "fits" and row["margin"]["ram"] >= 0.05 and row["margin"]["vram:0"] >= 0.02
        band = row["s_per_proof_band"]
        assert band["p5"] <= row["s_per_proof"] <= band["p95"]


def test_it_finds_what_the_whole_grid_has(capsys):
    """The search walks lines and cuts; a brute force over the same grid has no better setting."""
    document = plan(capsys, *PHASE12, *FEW)
    best = document["recommendations"][0]["steady_s_per_proof"]
    paces = []
    for pw in (2, 6, 10):
        for gw in (1, 2):
            for permit in ("after-send", "after-synthesis"):
                sets = [f"policy.pw={pw}", f"policy.gw={gw}", "policy.j=2", f"policy.permit_returns={permit}"]
                sets += ["pipeline=phase12", "workload.proofs=4", "policy.channel_capacity=1"]
                run = simulate(load_scenario(PHASE12[0], sets))
                paces.append(run.steady_s_per_proof if run.fits else float("inf"))
    assert best == pytest.approx(min(paces), rel=0.006)


def test_a_setting_at_97_percent_is_not_recommended(capsys):
    document = plan(capsys, *PHASE12, *FEW, "--set", "machine.ram=256GiB", "--set", "machine.reserved=5GiB", "--pw", "8-9")
    assert [row["policy"]["pw"] for row in document["recommendations"]] == [8] * len(document["recommendations"])
    assert any("stay free at the peak" in row["why"] for row in document["rejected"])
    assert {row["policy"]["pw"] for row in document["rejected"]} == {9}


def test_goals_and_deadlines(capsys):
    least = plan(capsys, *PHASE12, *FEW, "--goal", "ram")["recommendations"][0]
    assert least["policy"]["pw"] == 2
    makespan = plan(capsys, *PHASE12, *FEW)["recommendations"][0]["makespan_s"]
    document = plan(capsys, *PHASE12, *FEW, "--deadline", f"{makespan / 2}s", code=3)
    assert document["recommendations"] == [] and "beyond the deadline" in document["rejected"][0]["why"]
    assert plan(capsys, *PHASE12, *FEW, "--deadline", f"{2 * makespan}s")["recommendations"]


def test_nothing_fits_names_the_pool_the_need_and_the_nearest_machine(capsys):
    document = plan(capsys, str(SCENARIOS / "container-64g.yaml"), "--pw", "1-2", "--gw", "1", code=3)
    near = document["nearest"]
    assert near["pool"] == "ram" and near["need_bytes"] > near["limit_bytes"] == 64 << 30
    limit = near["machine"]["cgroup_limit_bytes"]
    arguments = [f"machine.cgroup_limit={limit}B", "policy.pw=1", "policy.gw=1", "policy.j=1", "policy.channel_capacity=1"]
    assert simulate(load_scenario(SCENARIOS / "container-64g.yaml", [*arguments, "workload.proofs=1"])).fits
    assert main(["plan", str(SCENARIOS / "container-64g.yaml"), "--pw", "1", "--gw", "1"]) == 3
    assert "nearest    a machine with" in capsys.readouterr().out


def test_an_11_gib_card_is_told_of_the_option_that_fits(capsys):
    document = plan(capsys, *PHASE12, "--set", "machine.gpus=[{card: RTX 2080 Ti}]", "--pw", "1-2", "--gw", "1", code=3)
    near = document["nearest"]
    assert near["pool"] == "vram:0" and "policy.quotient=c-free" in near["change"]
    sets = ["pipeline=phase12", "workload.proofs=1", "machine.gpus=[{card: RTX 2080 Ti}]", *near["change"]]
    assert simulate(load_scenario(PHASE12[0], sets)).fits


def test_neighbours_are_simulated_and_say_why_they_lose(capsys):
    document = plan(capsys, *PHASE12, *FEW)
    changes = {row["change"][0]: row for row in document["neighbours"]}
    best = document["recommendations"][0]
    lower = f"policy.pw={best['policy']['pw'] - 1}"
    assert changes[lower]["why"] and changes[lower]["verdict"] == "fits"


def test_what_is_emitted_loads_and_says_the_same(capsys, tmp_path):
    document = plan(capsys, *PHASE12, *FEW)
    path, toml = tmp_path / "best.yaml", tmp_path / "cuzk.toml"
    assert main(["plan", *PHASE12, *FEW, "--emit", "scenario", "-o", str(path)]) == 0
    assert simulate(load_scenario(path)).s_per_proof == pytest.approx(document["recommendations"][0]["s_per_proof"], abs=1e-6)
    assert main(["plan", *PHASE12, *FEW, "--emit", "cuzk-toml", "-o", str(toml)]) == 0
    assert read_toml(toml)["pipeline.max_parallel_synthesis"] == document["recommendations"][0]["policy"]["pw"]


def test_the_page_holds_all_of_it(capsys, tmp_path):
    page = tmp_path / "plan.html"
    assert main(["plan", *PHASE12, *FEW, "--html", str(page)]) == 0
    text = page.read_text()
    assert 'name="viewport"' in text and "max_parallel_synthesis" in text and "<svg" in text
    assert not re.search(r"(src|href)\s*=\s*[\"']https?:", text)


def test_the_card_decides_the_pace_and_the_basis(capsys):
    slow = plan(capsys, *PHASE12, *FEW, "--set", "machine.gpus=[{card: T4}]")["recommendations"][0]
    fast = plan(capsys, *PHASE12, *FEW)["recommendations"][0]
    assert slow["basis"] == "other-card" and fast["basis"] == "measured"
    assert slow["steady_s_per_proof"] > 1.5 * fast["steady_s_per_proof"]
    width = [r["s_per_proof_band"]["p95"] / r["s_per_proof"] for r in (slow, fast)]
    assert width[0] > 1.5 > width[1]


@pytest.mark.parametrize("values", ["0", "x", "5-1", "1-9999", "", "1,,2"])
def test_values_are_vetted(values, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["plan", "s.yaml", f"--pw={values}"])
    assert stop.value.code == 2


WRONG = {
    ("--over", "srss=vram"): "no option 'srss' of the policy; did you mean 'srs'",
    ("-o", "x"): "--emit",
    ("--set", "machine.gpus=[{card: RTX 9999}]"): "no card 'RTX 9999'",
    ("--catalogue", "none.yaml"): "none.yaml",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_bad_input(arguments, capsys):
    assert main(["plan", PHASE12[0], *arguments]) == 2
    assert WRONG[arguments] in capsys.readouterr().err
