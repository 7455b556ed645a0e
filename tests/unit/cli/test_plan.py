"""`cuzk plan`: what it recommends, it has simulated, and it fits."""

import json
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def test_every_recommendation_fits_when_it_is_applied_and_is_beaten_by_none(capsys):
    path = str(SCENARIOS / "pw12.yaml")
    assert main(["plan", path, "--set", "workload.proofs=4", "--pw", "4,8", "--gw", "1-2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == 1 and document["tried"] == 4 and document["policies"]
    peaks = [row["peaks"]["ram"]["resident_bytes"] for row in document["policies"]]
    paces = [row["s_per_proof"] for row in document["policies"]]
    assert paces == sorted(paces) and peaks == sorted(peaks, reverse=True)
    for row in document["policies"]:
        result = simulate(load_scenario(path, ["workload.proofs=4", *row["set"]]))
        assert result.fits and result.s_per_proof == pytest.approx(row["s_per_proof"], abs=1e-6)


def test_nothing_that_fits_is_said_and_exits_3(capsys):
    assert main(["plan", str(SCENARIOS / "container-64g.yaml"), "--pw", "1-2", "--gw", "1"]) == 3
    assert "none of the 2 policies tried fits" in capsys.readouterr().out


@pytest.mark.parametrize("values", ["0", "x", "5-1", "1-9999", "", "1,,2"])
def test_values_are_vetted(values, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["plan", "s.yaml", f"--pw={values}"])
    assert stop.value.code == 2
