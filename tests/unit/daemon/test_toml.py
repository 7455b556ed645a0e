"""A daemon's configuration: what it really does with each key; as a scenario and back."""

from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.daemon.emit import toml_text
from cuzk.daemon.scenario import scenario_of
from cuzk.daemon.toml import KEYS, read_toml
from cuzk.errors import InputError
from cuzk.model import Circuit, Machine, Policy, load_part
from cuzk.model.scenario import load_scenario
from cuzk.pipeline.presets import preset_policy

MACHINE_FILE = "machines/zen4-96c-755g-5070ti.yaml"
MACHINE = load_part(MACHINE_FILE, "machine", Machine)
CIRCUIT = load_part("circuits/porep-32g.yaml", "circuit", Circuit)
FILES = {
    "machine_file": MACHINE_FILE,
    "circuit_file": "circuits/porep-32g.yaml",
    "calibration_file": "calibrations/reference.yaml",
}
GIB = 1 << 30


def settings(tmp_path: Path, text: str):
    path = tmp_path / "cuzk.toml"
    path.write_text(text)
    return read_toml(path)


def imported(tmp_path: Path, text: str, machine: Machine = MACHINE, **more):
    return scenario_of(settings(tmp_path, text), machine, CIRCUIT, **FILES, **more)


def test_an_empty_file_is_all_defaults(tmp_path):
    found = settings(tmp_path, "")
    assert found.notes == [] and found["gpus.gpu_workers_per_device"] == 2 and found["memory.safety_margin"] == 5 * GIB
    assert found.values.keys() == KEYS.keys()


@pytest.mark.parametrize("text, size", [("250GiB", 250 * GIB), ("250 GiB", 250 * GIB), ("4GB", 4 * 10**9), ("123", 123),
                                        ("1TiB", 50 * GIB), ("1.5GiB", 50 * GIB), ("x MiB", 0), ("auto", "auto")])  # fmt: skip
def test_sizes_as_the_daemon_reads_them(tmp_path, text, size):
    found = settings(tmp_path, f'[memory]\ntotal_budget = "{text}"\n')
    assert found["memory.total_budget"] == size
    assert bool(found.notes) == (text in ("1TiB", "1.5GiB", "x MiB"))


@pytest.mark.parametrize("text, seconds", [("5m", 300), ("90s", 90), ("45", 45), ("1h", 300), ("xm", 300)])
def test_durations_as_the_daemon_reads_them(tmp_path, text, seconds):
    assert settings(tmp_path, f'[memory]\neviction_min_idle = "{text}"\n')["memory.eviction_min_idle"] == seconds


def test_ignored_and_deprecated_keys_are_named_at_their_line(tmp_path):
    found = settings(
        tmp_path, "[synthesis]\npartition_workers = 12\n\n[scheduler]\nsort_by_type = false\n[pipeline]\nslotsize = 2\n"
    )
    assert [(note.line, note.key, note.fate) for note in found.notes] == [
        (2, "synthesis.partition_workers", "deprecated"), (5, "scheduler.sort_by_type", "never-read"),
        (7, "pipeline.slotsize", "ignored")]  # fmt: skip
    assert "did you mean 'pipeline.slot_size'" in found.notes[2].message


def test_deprecated_workers_never_become_concurrency(tmp_path):
    text = "[memory]\ntotal_budget = '500GiB'\n"
    plain = imported(tmp_path, text)
    assert imported(tmp_path, text + "[synthesis]\npartition_workers = 3\n").data == plain.data
    assert plain.data["policy"]["pw"] == 18


@pytest.mark.parametrize("text, message", [
    ("[gpus]\ngpu_threads = \"32\"\n", r"cuzk\.toml:2: gpus\.gpu_threads: must be a whole number, not '32'"),
    ("[pipeline]\n\nenabled = 1\n", r"cuzk\.toml:3: pipeline\.enabled: must be true or false"),
    ("[gpus]\ndevices = [0, true]\n", r"cuzk\.toml:2: gpus\.devices: must be a list of device numbers"),
    ("[gpus\n", r"cuzk\.toml:1:6: "),
    ("[package]\nname = 'x'\n[dependencies]\nserde = '1'\n", "not a configuration of the daemon"),
])  # fmt: skip
def test_what_the_daemon_would_not_start_with(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        settings(tmp_path, text)


def test_the_budget_bounds_the_sets(tmp_path):
    found = imported(tmp_path, "[memory]\ntotal_budget = '250GiB'\n")
    assert found.synthesis_workers == 17 and found.data["policy"]["admission"] == "byte-budget"
    scenario = tmp_path / "s.yaml"
    scenario.write_text(found.text("x"))
    from cuzk.sim import simulate

    result = simulate(load_scenario(scenario, ["workload.proofs=2"]))
    assert result.admitted == (250 * GIB - CIRCUIT.srs_bytes - CIRCUIT.pce_bytes - (1 << 30)) // (14 * GIB) == 12


def test_devices_and_environment(tmp_path):
    three = load_part("machines/three-24g-128g.yaml", "machine", Machine)
    found = imported(
        tmp_path, "[gpus]\ndevices = [2, 0]\n", three, environment={"CUZK_GPU_THREADS": "16", "CUZK_DISABLE_SPLIT_PROVE": "1"}
    )
    assert len(found.data["machine"]["gpus"]) == 2 and found.data["policy"]["gt"] == 16 and found.data["pipeline"] == "phase11"
    with pytest.raises(InputError, match=r"cuzk\.toml:2: gpus\.devices: no GPU 3"):
        imported(tmp_path, "[gpus]\ndevices = [3]\n", three)
    with pytest.raises(InputError, match="CUZK_X is no variable"):
        imported(tmp_path, "", environment={"CUZK_X": "1"})


def test_what_is_emitted_is_read_back_as_the_same_settings(tmp_path):
    policy = preset_policy("phase12", Policy(pw=9, gw=3, gt=24, j=10))
    found = imported(tmp_path, toml_text(policy, MACHINE, CIRCUIT, "a comment"))
    mine = found.data["policy"]
    assert (mine["pw"], mine["gw"], mine["gt"], mine["j"]) == (9, 3, 24, 10)
    assert [note.fate for note in found.notes if note.fate != "modelled"] == []


def test_the_command_writes_a_scenario_that_loads(tmp_path, capsys):
    path, out = tmp_path / "cuzk.toml", tmp_path / "s.yaml"
    path.write_text("[memory]\ntotal_budget = '600GiB'\n[synthesis]\npartition_workers = 4\n")
    assert main(["import", str(path), "-o", str(out)]) == 2
    assert "--machine is needed" in capsys.readouterr().err and not out.exists()
    assert main(["import", str(path), "--machine", MACHINE_FILE, "-o", str(out)]) == 0
    assert f"{path}:4: synthesis.partition_workers: deprecated" in capsys.readouterr().err
    assert load_scenario(out).policy.pw == 18
