"""Fits find what made the data; calibrations from traces predict what the trace was of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuzk.accuracy import fit as fitting
from cuzk.accuracy.fit import cross_validate, fit, problem
from cuzk.accuracy.fit_report import fit_document, fit_lines
from cuzk.accuracy.library import place
from cuzk.accuracy.measured_points import read_points
from cuzk.accuracy.predict import sample
from cuzk.accuracy.recipe import read_recipe
from cuzk.accuracy.scenarios import case
from cuzk.cli.main import main
from cuzk.errors import InputError, ScenarioError
from cuzk.model.calibration import Calibration
from cuzk.model.scenario import load_part, load_scenario
from cuzk.sim import simulate
from cuzk.sim.costs import Draw
from cuzk.trace.jsonl import write_trace

RECIPE = """fit:
  name: little
  base: {base}
  free:
    hold_sync_s: {{at: parameters.hold_sync_s, start: 0.5, low: 0.1, high: 3.0, note: under the mutex}}
    witness_cores: {{at: costs.witness.cores, start: 5.0, low: 1.0, high: 12.0, note: no point shows it}}
"""
POINTS = """measurements:
- {{id: x, config: {{phase: 11, pw: 10, gw: 2, c: 2, j: 2}}, measured: {{prove_s: {x}}}}}
- {{id: y, config: {{phase: 11, pw: 10, gw: 3, c: 2, j: 2}}, measured: {{prove_s: {y}}}}}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "recipe.yaml"
    file.write_text(RECIPE.format(base=place("calibrations", "reference-base.yaml")), encoding="utf-8")
    return file


def test_a_fit_finds_the_parameter_that_made_the_points(tmp_path: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "DRAWS", 8)
    known = read_recipe(recipe)
    truth = known.calibration({"hold_sync_s": 0.8, "witness_cores": 5.0})
    file = tmp_path / "points.yaml"
    file.write_text(POINTS.format(x=1.0, y=1.0), encoding="utf-8")
    made = [sample(case(p, truth, {}).scenario, 1, Draw()).prove_s for p in read_points(file).points]
    file.write_text(POINTS.format(x=made[0], y=made[1]), encoding="utf-8")
    task = problem(read_points(file), known, processes=1)
    found = fit(task, rounds=5)
    assert found.values["hold_sync_s"] == pytest.approx(0.8, rel=0.05)
    assert found.errors["witness_cores"] > 5 * found.errors["hold_sync_s"], "the data leave it open, and the fit says so"
    document = fit_document(task, found, cross_validate(task, found))
    assert [row["open"] for row in document["identifiability"]] == [True, False]
    assert any(line.startswith("left open") and "witness_cores" in line for line in fit_lines(document))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("start: 0.5, low: 0.1", "start: 9.5, low: 0.1"),
        ("parameters.hold_sync_s, start: 0.5", "parameters.hold_sync_s, start: soon"),
        ("at: costs.witness.cores", "at: costs.witnes.cores"),
    ],
)
def test_a_recipe_that_cannot_be(recipe: Path, change: str, says: str) -> None:
    recipe.write_text(recipe.read_text().replace(change, says), encoding="utf-8")
    with pytest.raises((ScenarioError, InputError)):
        read_recipe(recipe)


def test_a_traces_calibration_predicts_the_run_it_is_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Within 3 % of the peak and 5 % of the pace, from the events alone."""
    scenario = load_scenario(place("demo-calibrate.yaml"))
    ran = simulate(scenario, trace=True)
    header = {"clock": "wall", "machine": scenario.machine.name, "device": "null", "host": {"cpus": scenario.machine.cores}}
    write_trace(tmp_path / "trace.jsonl", header, ran.events or [])
    out = tmp_path / "made.yaml"
    base = str(place("calibrations", "demo.yaml"))
    assert main(["calibrate", str(tmp_path / "trace.jsonl"), "--base", base, "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema_version"] == 1
    predicted = simulate(scenario.model_copy(update={"calibration": load_part(out, "calibration", Calibration)}))
    assert predicted.peak_ram_bytes == pytest.approx(ran.peak_ram_bytes, rel=0.03)
    assert predicted.s_per_proof == pytest.approx(ran.s_per_proof, rel=0.05)


def test_a_predicted_trace_says_nothing_of_a_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path / "trace.jsonl", {"clock": "sim"}, [])
    assert main(["calibrate", str(tmp_path / "trace.jsonl")]) == 2
    assert "a predicted trace" in capsys.readouterr().err


@pytest.mark.parametrize("args", [["calibrate"], ["calibrate", "--log", "a", "b.jsonl"], ["calibrate", "--log", "nowhere.log"]])
def test_one_source_that_exists(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2 and capsys.readouterr().err.startswith("cuzk: ")


def test_recipes_of_different_bases_do_not_share_what_they_remember(recipe: Path) -> None:
    """Each base is gone when the next is made, so the next may lie where it lay."""
    known = read_recipe(recipe)
    for name in ("one", "two", "three"):
        base = known.base.model_copy(update={"software": name})
        assert replace(known, base=base).calibration(known.starts()).software == name
        del base
