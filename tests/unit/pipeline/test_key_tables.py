"""The sums of neighbours behind the key: what they take in the books, and where they cannot be."""

import pytest

from cuzk.cli.main import main
from cuzk.errors import ScenarioError
from cuzk.gpu.msm_plan import plan_msm
from cuzk.model.scenario import load_scenario
from cuzk.pipeline.program import bind
from cuzk.sim import simulate

ON_GPU = "srs: vram, pce: vram, quotient: c-free, matvec: gpu, prep_msm: gpu, b_g2_msm: gpu, matrices: template"


def scenario(tmp_path, policy: str):
    path = tmp_path / "s.yaml"
    path.write_text(
        "version: 1\nmachine: machines/h200-16c-126g.yaml\ncircuit: circuits/porep-32g.yaml\npipeline: own\n"
        f"calibration: calibrations/reference.yaml\npolicy: {{{policy}}}\nworkload: {{proofs: 1}}\n"
    )
    return path


def plan(tmp_path, policy: str):
    return bind(load_scenario(scenario(tmp_path, policy)))


@pytest.mark.parametrize(("b_g2", "lists"), [("gpu", ("l", "a", "b_g1", "b_g2")), ("cpu", ("l", "a", "b_g1"))])
def test_half_as_many_points_again_behind_the_lists_that_batch_additions_read(tmp_path, b_g2, lists):
    policy = ON_GPU.replace("prep_msm: gpu, b_g2_msm: gpu", f"prep_msm: cpu, b_g2_msm: {b_g2}")
    without, with_sums = plan(tmp_path, policy), plan(tmp_path, policy + ", key_tables: pair-sums")
    circuit = without.scenario.circuit
    names = circuit.names()
    sums = sum(names[name] // 2 * (192 if name == "b_g2" else 96) for name in lists)
    more = with_sums.size("srs", circuit) - without.size("srs", circuit)
    assert sums <= more <= sums + 96 * len(lists)


def test_the_simulator_has_them_in_vram(tmp_path):
    peaks = {}
    for tables in ("none", "pair-sums"):
        found = simulate(load_scenario(scenario(tmp_path, f"{ON_GPU}, key_tables: {tables}, gw: 1, pw: 1, j: 1")), trace=True)
        (peaks[tables],) = (e.bytes for e in found.events if (e.kind, e.name, e.pool) == ("alloc", "srs", "vram:0"))
    assert peaks["pair-sums"] - peaks["none"] > 10 << 30


def test_the_msm_of_the_quotient_fills_as_many_windows_at_once_beside_them(tmp_path):
    sets = []
    for tables in ("none", "pair-sums"):
        made = plan(tmp_path, f"{ON_GPU}, key_tables: {tables}, gw: 2")
        circuit = made.scenario.circuit
        room = made.size("msm_h_temps", circuit)
        sets.append(plan_msm(circuit.domain, "g1", room, residency="device", multiprocessors=132).group_sets)
    assert sets[0] == sets[1]


@pytest.mark.parametrize("srs", ["pinned", "pageable", "mmap"])
def test_they_need_the_key_in_vram(tmp_path, capsys, srs):
    path = scenario(tmp_path, f"srs: {srs}, key_tables: pair-sums")
    with pytest.raises(ScenarioError, match=rf"s\.yaml:6:\d+: policy.key_tables: .*srs: vram, not srs: {srs}"):
        bind(load_scenario(path))
    assert main(["sim", str(path)]) == 2
    assert "policy.key_tables" in capsys.readouterr().err
