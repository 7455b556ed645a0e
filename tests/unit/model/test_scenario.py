import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from cuzk.errors import ScenarioError
from cuzk.model import Scenario, load_scenario
from cuzk.model.units import GIB, UNITS_REQUIRED

MACHINE = """machine:
  name: m
  ram: 64GiB
  reserved: 4GiB
  cores: 8
  gpus: [{name: g, vram: 16GiB, sms: 70, pcie_h2d: 50GB/s, pcie_d2h: 50GB/s}]
"""
CIRCUIT = "circuit: {name: c, constraints: 1000, aux: 900, inputs: 2, density_a_aux: 800, density_b_aux: 300}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory with the parts m.yaml and c.yaml, made the current one: messages show bare names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.yaml").write_text(MACHINE)
    (tmp_path / "c.yaml").write_text(CIRCUIT)
    return tmp_path


def load(text: str, *overrides: str) -> Scenario:
    Path("s.yaml").write_text(text)
    return load_scenario("s.yaml", overrides)


def faults(text: str, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        load(text, *overrides)
    assert error.value.exit_code == 2
    return list(error.value.problems)


BASE = "version: 1\nextends: m.yaml\ncircuit: c.yaml\npipeline: phase12\n"


def test_a_scenario_of_parts(here: Path) -> None:
    scenario = load(BASE + "policy: {pw: 3, channel_capacity: pw}\nworkload: {proofs: 4}\nseed: 7\n")
    assert scenario.name == "s" and scenario.seed == 7 and scenario.workload.proofs == 4
    assert scenario.machine.ram == 64 * GIB and scenario.circuit.domain == 1024
    assert str(scenario.where("policy", "pw")) == "s.yaml:5:14"
    assert str(scenario.where("machine", "reserved")) == "m.yaml:4:13"
    assert str(scenario.where("policy", "gw")) == "s.yaml:5:9"
    assert scenario.policy.numbers()["channel_capacity"] == 3


def test_every_fault_at_once_each_at_its_place(here: Path) -> None:
    text = BASE + (
        "polcy: {}\n"
        "policy:\n  pww: 1\n  pw: -2\n  gw: 0\n  j: 1.5\n  gt: '3'\n  permit_returns: after-sendd\n  prestage: false\n"
        "  channel_capacity: px\n  prestage_guard: 5\nworkload: {proofs: yes}\n"
    )
    assert faults(text) == [
        "s.yaml:5:1: polcy: unknown key; did you mean 'policy'?",
        "s.yaml:7:3: policy.pww: unknown key; did you mean 'pw'?",
        "s.yaml:8:7: policy.pw: must be at least 1, not -2",
        "s.yaml:9:7: policy.gw: must be at least 1, not 0",
        "s.yaml:10:6: policy.j: must be a whole number, not 1.5",
        "s.yaml:11:7: policy.gt: must be a whole number, not '3'",
        "s.yaml:12:19: policy.permit_returns: must be 'after-synthesis', 'after-send', 'after-pickup' or 'after-gpu-start', "
        "not 'after-sendd'; did you mean 'after-send'?",
        "s.yaml:13:13: policy.prestage: must be 'off', 'before-mutex' or 'inside-mutex', not false",
        "s.yaml:14:21: policy.channel_capacity: must be a whole number or 'pw', not 'px'",
        "s.yaml:15:19: policy.prestage_guard: 5 has no unit: write a size with its unit, such as 16GiB",
        "s.yaml:16:20: workload.proofs: must be a whole number, not 'yes'",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("ram: 2GiB", "m.yaml:4:13: machine.reserved: nothing is left: 4.0 GiB reserved of 2.0 GiB RAM"),
        ("ram: 0B", "s.yaml:5:16: machine.ram: must be above zero"),
        ("ram: 16", "s.yaml:5:16: machine.ram: 16 has no unit: write a size with its unit, such as 16GiB"),
        ("cores: 0", "s.yaml:5:18: machine.cores: must be at least 1, not 0"),
        ("cores: true", "s.yaml:5:18: machine.cores: must be a whole number, not true"),
        ("gpus: 3", "s.yaml:5:17: machine.gpus: must be a list, not 3"),
        ("gpus: [{name: g}]", "s.yaml:5:18: machine.gpus.0.vram: is required, and missing"),
        ("gpu: []", "s.yaml:5:11: machine.gpu: unknown key; did you mean 'gpus'?"),
        ("dram_bandwidth: 300GB", "s.yaml:5:27: machine.dram_bandwidth: '300GB' is not a rate: write a number, a unit of size "
         "and '/s', such as 55GB/s"),
    ],
)  # fmt: skip
def test_a_fault_names_the_file_that_wrote_the_value(here: Path, change: str, expected: str) -> None:
    assert expected in faults(BASE + f"machine: {{{change}}}\n")


def test_a_fault_in_a_part_names_its_file(here: Path) -> None:
    Path("c.yaml").write_text("circuit:\n  name: c\n  constraints: -5\n  aux: 10\n  density_a_aux: 11\n  densty_b_aux: 3\n")
    assert faults(BASE) == [
        "c.yaml:2:3: circuit.density_b_aux: is required, and missing",
        "c.yaml:3:16: circuit.constraints: must be at least 1, not -5",
        "c.yaml:5:18: circuit.density_a_aux: a density of 11 among 10 aux variables",
        "c.yaml:6:3: circuit.densty_b_aux: unknown key; did you mean 'density_b_aux'?",
    ]


def test_what_is_missing(here: Path) -> None:
    assert faults("version: 1\n") == [
        f"s.yaml:1:1: {key}: is required, and missing" for key in ("machine", "circuit", "pipeline")
    ]


def test_extends_is_laid_over_deep_and_the_later_wins(here: Path) -> None:
    Path("p.yaml").write_text("policy: {pw: 5, gw: 2}\nseed: 1\nmachine: {ram: 32GiB}\n")
    scenario = load("extends: [m.yaml, p.yaml]\ncircuit: c.yaml\npipeline: phase9\npolicy: {pw: 9}\n")
    assert (scenario.policy.pw, scenario.policy.gw, scenario.seed) == (9, 2, 1)
    assert scenario.machine.ram == 32 * GIB and scenario.machine.cores == 8
    assert str(scenario.where("policy", "gw")) == "p.yaml:1:21"


def test_a_named_part_takes_the_place_of_an_extended_one_whole(here: Path) -> None:
    Path("other.yaml").write_text("machine: {name: o, ram: 8GiB, cores: 4}\n")
    scenario = load(BASE + "machine: other.yaml\n")
    assert scenario.machine.name == "o" and scenario.machine.reserved == 0 and scenario.machine.gpus == ()
    changed = load(BASE + "machine: {extends: other.yaml, ram: 9GiB}\n")
    assert changed.machine.ram == 9 * GIB and changed.machine.gpus == ()


def test_files_are_relative_to_the_file_that_names_them(here: Path) -> None:
    (here / "sub" / "deep").mkdir(parents=True)
    Path("sub/base.yaml").write_text("extends: ../m.yaml\ncircuit: deep/c.yaml\npipeline: phase8\n")
    Path("sub/deep/c.yaml").write_text("extends: ../../c.yaml\ncircuit: {name: deep}\n")
    assert load("extends: sub/base.yaml\n").circuit.name == "deep"


def test_the_library_stands_behind(here: Path) -> None:
    text = "extends: machines/zen4-96c-755g-5070ti.yaml\ncircuit: scenarios/circuits/porep-32g.yaml\npipeline: phase12\n"
    scenario = load(text)
    assert scenario.machine.usable_ram == 660 * GIB and scenario.circuit.h == 2**27 - 1


def test_a_file_that_is_not_there(here: Path) -> None:
    assert faults("extends: mm.yaml\ncircuit: [no.yaml]\npipeline: phase12\n") == [
        "s.yaml:1:10: extends: no such file 'mm.yaml'; did you mean 'm.yaml'?",
        "s.yaml:2:10: circuit: must be a mapping (key: value), not a list",
    ]
    assert faults(BASE + "calibration: calibrations/reference-document.yaml\n") == [
        "s.yaml:5:14: calibration: no such file 'calibrations/reference-document.yaml'; "
        "did you mean 'calibrations/reference-documents.yaml'?"
    ]
    with pytest.raises(ScenarioError, match=r"^none\.yaml: no such file"):
        load_scenario("none.yaml")
    with pytest.raises(ScenarioError, match=r"^\.: no such file"):
        load_scenario(".")


def test_cycles_name_both_places(here: Path) -> None:
    Path("a.yaml").write_text("extends: s.yaml\n")
    assert faults("policy: {}\nextends: a.yaml\n") == [
        "a.yaml:1:10: extends: a cycle: 's.yaml' is being read already, by way of s.yaml:2:10"
    ]
    assert faults("extends: s.yaml\n") == ["s.yaml:1:10: extends: a cycle: 's.yaml' is being read already"]
    Path("c.yaml").write_text("extends: c.yaml\n")
    assert "c.yaml:1:10: extends: a cycle: 'c.yaml' is being read already" in faults(BASE)


def test_many_files_that_extend_each_other_twice_are_read_once(here: Path) -> None:
    for i in range(24):
        Path(f"d{i}.yaml").write_text(f"extends: [d{i + 1}.yaml, d{i + 1}.yaml]\n")
    Path("d24.yaml").write_text("extends: m.yaml\n")
    assert load("extends: d0.yaml\ncircuit: c.yaml\npipeline: phase7\n").machine.name == "m"


def test_a_chain_without_end_is_cut(here: Path) -> None:
    for i in range(60):
        Path(f"e{i}.yaml").write_text(f"extends: e{i + 1}.yaml\n")
    assert any("a chain of more than" in line for line in faults("extends: e0.yaml\n"))


def test_faults_of_syntax_in_two_files(here: Path) -> None:
    Path("m.yaml").write_text("machine:\n\tname: m\n")
    found = faults("extends: m.yaml\ncircuit: {name: x, name: y}\npipeline: phase12\npolicy: {pw: 0}\n")
    assert found[0] == "m.yaml:2:1: a tab in the indentation or before a key: use spaces"
    assert "s.yaml:2:20: circuit.name: key given twice (first in line 2)" in found
    assert "s.yaml:4:14: policy.pw: must be at least 1, not 0" in found


def test_overrides(here: Path) -> None:
    scenario = load(BASE, "policy.pw=12", "policy.free_abc=after-start", "machine.gpus.0.vram=24GiB",
                    "workload.arrivals=[0s, 5s]",
                    "workload.proofs=2", "machine.ram=128GiB")  # fmt: skip
    assert scenario.policy.pw == 12 and scenario.policy.free_abc == "after-start"
    assert scenario.machine.gpus[0].vram == 24 * GIB and scenario.machine.ram == 128 * GIB
    assert scenario.workload.arrivals == (0.0, 5.0)
    assert str(scenario.where("policy", "pw")) == "--set policy.pw=12"
    assert load(BASE, "policy={pw: 3}", "policy.gw=2").policy.pw == 3
    assert load(BASE, "circuit=circuits/porep-32g.yaml").circuit.partitions == 10
    assert load(BASE, "calibration=calibrations/reference-documents.yaml").calibration is not None


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("policy.pw=-1", "policy.pw: must be at least 1, not -1"),
        ("policy.pw=twelve", "policy.pw: must be a whole number, not 'twelve'"),
        ("policy.pw=", "policy.pw"),
        ("policy.px=1", "policy.px: unknown key; did you mean 'pw'?"),
        ("policy.pw.x=1", "policy.pw: must be a whole number, not a mapping"),
        ("seed", "must be path=value, such as policy.pw=12"),
        ("=5", "must be path=value, such as policy.pw=12"),
        ("policy..pw=5", "must be path=value, such as policy.pw=12"),
        ("machine.ram=512", "machine.ram: 512 has no unit: write a size with its unit, such as 16GiB"),
        ("machine.gpus.7.vram=1GiB", "machine.gpus.7.vram: no element '7' in a list of 1"),
        ("machine.gpus.x.vram=1GiB", "machine.gpus.x.vram: no element 'x' in a list of 1"),
        ("policy=[", "policy: "),
        ("seed=.nan", "seed: .nan is not a number to calculate with"),
        ("extends=m.yaml", "extends: cannot be set: name the file's own keys"),
        ("circuit=no.yaml", "circuit: no such file 'no.yaml'"),
        ("pipeline=null", "pipeline: must be a preset's name, a file or the pipeline itself, not nothing (null)"),
        ("policy.pw={a: 1, a: 2}", "policy.pw: "),
    ],
)
def test_overrides_are_checked_alike(here: Path, setting: str, message: str) -> None:
    if setting == "policy.pw=":
        assert load(BASE, setting).policy.pw is None
        return
    found = faults(BASE, setting)
    assert all(line.startswith(f"--set {setting}: ") for line in found), found
    assert any(line.startswith(f"--set {setting}: {message}") for line in found), found


def test_a_pipeline_of_its_own(here: Path) -> None:
    class Step(BaseModel):
        model_config = ConfigDict(extra="forbid")
        run: str

    class Pipeline(BaseModel):
        model_config = ConfigDict(extra="forbid")
        steps: list[Step]

    Path("p.yaml").write_text("pipeline:\n  steps:\n  - run: witness\n  - rum: matvec\n")
    scenario = load(BASE.replace("phase12", "p.yaml"))
    assert scenario.pipeline == {"steps": [{"run": "witness"}, {"rum": "matvec"}]}
    assert str(scenario.where("pipeline", "steps", 0, "run")) == "p.yaml:3:10"
    with pytest.raises(ScenarioError) as error:
        scenario.parse("pipeline", Pipeline)
    assert list(error.value.problems) == [
        "p.yaml:4:5: pipeline.steps.1.run: is required, and missing",
        "p.yaml:4:5: pipeline.steps.1.rum: unknown key; did you mean 'run'?",
    ]
    in_place = load(BASE.replace("phase12", "{steps: [{run: x}]}"))
    assert in_place.parse("pipeline", Pipeline).steps[0].run == "x"


def test_an_unknown_name_in_a_cost_law_is_found_at_its_line(here: Path) -> None:
    text = BASE + (
        "calibration:\n  name: k\n  software: s\n  machine: m\n  costs:\n    witness:\n      seconds: 2 * domian\n"
        "      provenance: assumed\n"
    )
    assert faults(text) == ["s.yaml:11:16: calibration.costs.witness.seconds: unknown name 'domian'; did you mean 'domain'?"]


def test_mixed_workloads(here: Path) -> None:
    text = "extends: m.yaml\npipeline: phase12\nworkload:\n  proofs: 6\n  circuits:\n  - {circuit: c.yaml, weight: 2}\n"
    scenario = load(text + "  - {circuit: circuits/winning-32g.yaml, priority: 1}\n")
    assert [c.name for c in scenario.circuits()] == ["c", "winning-32g"] and scenario.circuit.name == "c"
    assert faults(text + "  - {circuit: {extends: c.yaml, aux: 950}}\n") == [
        "s.yaml:6:3: workload.circuits: two different circuits are named 'c'"
    ]
    assert faults(text + "  - {circuit: circuits/x.yaml}\n") == [
        "s.yaml:7:15: workload.circuits.1.circuit: no such file 'circuits/x.yaml'"
    ]


def test_copies_with_another_policy(here: Path) -> None:
    scenario = load(BASE + "policy: {pw: 3, dealloc: inline}\n")
    other = scenario.with_policy(pw=12, dealloc="async")
    assert (other.policy.pw, other.policy.dealloc_native, other.policy.dealloc_host) == (12, "async", "async")
    assert scenario.policy.pw == 3 and other.machine is scenario.machine
    assert other.hash() != scenario.hash() == scenario.with_policy(pw=3).hash()


def test_the_hash_is_of_the_content(here: Path) -> None:
    one = load(BASE + "policy: {pw: 3, gw: 2}\n")
    Path("p.yaml").write_text("policy: {pw: 3}\n")
    two = load(
        "extends: [p.yaml, m.yaml]\nname: other\ncircuit: c.yaml\npipeline: phase12\npolicy: {gw: 2}\nchecks: {verdict: fits}\n"
    )
    assert one.hash() == two.hash()
    assert load(BASE + "policy: {pw: 3, gw: 2}\nseed: 1\n").hash() != one.hash()


def test_a_scenario_dumped_with_units_is_the_same(here: Path) -> None:
    scenario = load(BASE + "calibration: calibrations/reference-documents.yaml\nworkload: {arrivals: {poisson: 1.5/min}}\n")
    again = Scenario.model_validate(scenario.model_dump(mode="json"), context=UNITS_REQUIRED)
    assert again.model_dump() == scenario.model_dump() and again.hash() == scenario.hash()


def test_the_model_is_light_to_import() -> None:
    code = "import sys, cuzk.model; print(*sorted({'ruamel.yaml', 'numpy', 'scipy', 'simpy', 'plotly'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
