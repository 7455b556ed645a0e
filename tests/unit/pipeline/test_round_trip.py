"""`cuzk show --yaml` > file, `pipeline: file`: the same pipeline, the same run."""

import re
from pathlib import Path

import pytest

from cuzk.analysis.bands import explore
from cuzk.cli.main import main
from cuzk.errors import ScenarioError
from cuzk.model.scenario import load_scenario
from cuzk.pipeline.check import check
from cuzk.pipeline.presets import PRESETS
from cuzk.pipeline.program import bind
from cuzk.sim import simulate

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def settings(phase):
    parts = []
    if phase.startswith("supraseal"):
        parts = ["calibration=calibrations/h200-supraseal.yaml", "machine=machines/h200-16c-126g.yaml"]
    return [f"pipeline={phase}", "workload.proofs=3", "policy={replaced: 1}", *parts]


def base(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "version: 1\nmachine: machines/zen4-96c-755g-5070ti.yaml\ncircuit: circuits/porep-32g.yaml\npipeline: phase12\n"
        "calibration: calibrations/reference.yaml\nworkload: {proofs: 3}\n"
    )
    return path


def dumped(path, overrides, tmp_path, capsys):
    arguments = [part for setting in overrides for part in ("--set", setting)]
    assert main(["show", str(path), "--yaml", *arguments]) == 0
    out = tmp_path / "p.yaml"
    out.write_text(capsys.readouterr().out)
    return out


# INV-10
@pytest.mark.parametrize("phase", PRESETS)
def test_every_preset_survives_its_dump(phase, tmp_path, capsys):
    path = base(tmp_path)
    overrides = [s for s in settings(phase) if not s.startswith("policy")]
    original = load_scenario(path, overrides)
    out = dumped(path, overrides, tmp_path, capsys)
    again = load_scenario(path, [*overrides, f"pipeline={out}"])
    assert bind(again).pipeline == bind(original).pipeline
    assert bind(again).policy == bind(original).policy
    assert [f for f in check(bind(again)) if f.severity == "error"] == []
    one, other = simulate(original).to_json(), simulate(again).to_json()
    del one["scenario_hash"], other["scenario_hash"]
    assert one == other


def test_a_free_moved_across_a_release_reproduces_the_oom(tmp_path, capsys):
    path = SCENARIOS / "phase9-free-before-unlock.yaml"
    out = dumped(path, [], tmp_path, capsys)
    lines = out.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == "- d_bc" and "free" in lines[i - 1])
    block = lines[start - 1 : start + 1]
    del lines[start - 1 : start + 1]
    release = next(i for i, line in enumerate(lines) if i >= start - 1 and "release: gpu_mutex" in line)
    lines[release + 1 : release + 1] = block
    edited = tmp_path / "edited.yaml"
    edited.write_text("\n".join(lines) + "\n")
    assert simulate(load_scenario(path, [f"pipeline={out}"])).verdict == "fits"
    worse = load_scenario(path, [f"pipeline={edited}"])
    main(["check", str(path), "--set", f"pipeline={edited}"])
    told = capsys.readouterr().out
    assert re.search(r"edited\.yaml:\d+:\d+: warning: d_bc .* outlives its release", told), told
    assert explore(worse, 20).verdict == "oom"
    assert explore(worse, 10).verdict == "oom"


def test_an_unknown_preset_behind_a_pipeline_file_is_named_at_its_line(tmp_path, capsys):
    path = base(tmp_path)
    out = dumped(path, [], tmp_path, capsys)
    out.write_text(out.read_text() + "preset: phase99\n")
    with pytest.raises(ScenarioError, match=r"p\.yaml:\d+:\d+: pipeline\.preset: no preset 'phase99'"):
        bind(load_scenario(path, [f"pipeline={out}"]))


def test_a_name_that_no_formula_may_use_is_told_at_its_place(tmp_path, capsys):
    path = base(tmp_path)
    out = dumped(path, [], tmp_path, capsys)
    out.write_text(out.read_text().replace("size: 64*domain", "size: 64*domian"))
    with pytest.raises(ScenarioError, match=r"p\.yaml:\d+:\d+: pipeline\.buffers\.d_bc\.size: .*'domian'; did you mean 'domain'"):
        simulate(load_scenario(path, [f"pipeline={out}"]))
