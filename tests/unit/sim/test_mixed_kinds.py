"""Work of all four kinds: what a WinningPoSt waits for beside PoRep, and that every key is counted."""

import json
from pathlib import Path

import pytest

from cuzk.model import load_scenario
from cuzk.sim.run import simulate

SCENARIOS = Path(__file__).parents[3] / "scenarios"
EPOCH_S = 30.0


def latencies(name, *changes):
    """Seconds from arrival (or admission) to the proof, by circuit."""
    scenario = load_scenario(SCENARIOS / name, list(changes))
    result = simulate(scenario, trace=True)
    assert result.verdict == "fits"
    arrived = [a.at_s for a in scenario.workload.plan(scenario.seed)]
    admitted = {e.proof: e for e in result.events if e.kind == "admit"}
    done = {e.proof: e.t for e in result.events if e.kind == "complete" and e.partition == -1}
    out: dict[str, list[float]] = {}
    for proof, event in admitted.items():
        at = arrived[proof]
        out.setdefault(event.name, []).append(done[proof] - (event.t if at is None else at))
    return out, result


@pytest.mark.parametrize("name", ["winning-beside-porep.yaml", "own-mixed-h200.yaml"])
def test_a_winning_post_is_made_within_its_epoch(name):
    found, _ = latencies(name)
    assert len(found["winning-32g"]) == 4 and max(found["winning-32g"]) < EPOCH_S
    assert min(found["porep-32g"]) > max(found["winning-32g"])


def test_priority_lets_post_pass_where_all_is_full():
    first, _ = latencies("mixed-all-kinds.yaml")
    fifo, _ = latencies("mixed-all-kinds.yaml", "policy.order=fifo")
    for kind in ("winning-32g", "window-32g"):
        assert max(first[kind]) < min(fifo[kind])


def test_the_keys_of_all_kinds_are_resident():
    _, result = latencies("mixed-all-kinds.yaml")
    srs = {e.name: e.bytes for e in result.events if e.kind == "alloc" and e.pool == "pinned" and e.name.startswith("srs ")}
    names = ("porep-32g", "snap-32g", "window-32g", "winning-32g")
    assert set(srs) == {f"srs {name}" for name in names}
    for name in names:
        circuit = load_scenario(SCENARIOS / "phase12-pw10.yaml", [f"circuit=circuits/{name}.yaml"]).circuit
        assert srs[f"srs {name}"] == circuit.srs_bytes


@pytest.mark.parametrize(("circuit", "proofs"), [("winning-32g", 5), ("snap-32g", 1)])
def test_one_calibration_knows_small_and_large_circuits(circuit, proofs):
    """It was fitted to these runs: a line through three circuits is near each of them."""
    measured = json.loads((SCENARIOS.parent / "docs" / "post-h200.json").read_text())["runs"]
    run = next(r for r in measured if r["circuit"] == circuit and r["pw_gw_j"] == 1)
    changes = [f"circuit=circuits/{circuit}.yaml", "calibration=calibrations/own-h200-kinds.yaml", f"workload.proofs={proofs}"]
    alone = [f"policy.{name}=1" for name in ("pw", "gw", "j")]
    result = simulate(load_scenario(SCENARIOS / "own-h200.yaml", changes + alone))
    # the first proof of the batch also paid for what a device does once
    assert 0.95 * run["steady_s_per_proof"] < result.makespan_s / proofs < 1.05 * run["s_per_proof"]
    assert result.peaks["vram:0"].resident_bytes == pytest.approx(run["vram_resident_bytes"], rel=0.07)
