"""Every scenario file that ships holds what it claims; the document has the keys that scripts rely on."""

import json
from pathlib import Path

import pytest

from cuzk.analysis.bands import explore, uncertainty
from cuzk.analysis.checks import judge
from cuzk.analysis.explanation import explain
from cuzk.analysis.fixes import nearest_changes, suggest_fix
from cuzk.analysis.replays import replay
from cuzk.analysis.sweeps import sweep
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate
from cuzk.trace.curves import pool_curves

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FILES = sorted(path.name for path in SCENARIOS.glob("*.yaml"))


def load(name, *settings):
    return load_scenario(SCENARIOS / name, settings)


@pytest.mark.parametrize("name", FILES)
def test_a_scenario_comes_out_as_it_claims(name):
    scenario = load(name)
    failed = [str(claim) for claim in judge(scenario, simulate(scenario)) if not claim.holds]
    assert not failed


@pytest.mark.parametrize("name", ["pw12.yaml", "pw15.yaml", "pw12-fixed.yaml", "phase9-before-mutex.yaml",
                                  "phase9-free-after-unlock.yaml", "phase9-free-before-unlock.yaml"])  # fmt: skip
def test_the_verdict_does_not_hang_on_the_seed(name):
    scenario = load(name)
    assert {simulate(scenario, seed=seed).verdict for seed in range(100, 105)} == {scenario.checks.verdict}


def test_the_document_of_an_oom():
    document = json.loads(json.dumps(simulate(load("pw12.yaml")).to_json()))
    assert document["schema_version"] == 1 and document["verdict"] == "oom"
    assert document["oom"]["pool"] == "ram"
    assert document["oom"]["capacity_bytes"] == 660 << 30
    assert document["oom"]["level_bytes"] + document["oom"]["request_bytes"] > document["oom"]["capacity_bytes"]
    assert sum(row["bytes"] for row in document["oom"]["holders"]) == pytest.approx(document["oom"]["level_bytes"], abs=1000)
    assert document["throughput"] == {"s_per_proof": None, "steady_s_per_proof": None, "prove_s": None}
    assert document["rule_of_thumb"]["peak_ram_bytes"] == (69 + 20 * 12) << 30


def test_the_document_of_a_run_that_fits():
    document = simulate(load("pw12-fixed.yaml")).to_json()
    assert document["verdict"] == "fits" and document["oom"] is None
    assert set(document["peaks"]) == {"ram", "pinned", "vram:0"}
    for peak in document["peaks"].values():
        assert 0 < peak["resident_bytes"] <= peak["reserved_bytes"] <= peak["capacity_bytes"]
        assert peak["live_bytes"] <= peak["reserved_bytes"]
    assert document["counts"]["completions"] == 200
    assert document["counts"]["deallocations"] == {"host": 200, "native": 200}
    assert set(document["bottleneck"]) == {"resource", "why"}
    assert 30 < document["throughput"]["steady_s_per_proof"] < document["throughput"]["s_per_proof"] < 45


def test_the_smallest_change_fits_and_was_simulated():
    scenario = load("pw12.yaml")
    change = suggest_fix(scenario)
    assert change.result.fits
    again = simulate(scenario.with_policy(**change.settings))
    assert again.to_json()["peaks"] == change.result.to_json()["peaks"]


def test_the_nearest_changes_are_tried_whether_they_fit_or_not():
    changes = {change.set: change.result.verdict for change in nearest_changes(load("pw12.yaml"))}
    assert changes["policy.permit_returns=after-send"] == "fits"
    assert changes["policy.pw=13"] == "oom"
    assert {"policy.pw=11", "policy.gw=1", "policy.gw=3", "policy.free_abc=after-start"} <= set(changes)


# INV-9
def test_a_sweep_equals_single_runs_bit_for_bit():
    scenario = load("pw12-fixed.yaml", "workload.proofs=3")
    rows = sweep(scenario, {"pw": [2, 9], "gw": [1, 2], "j": [1, 4]}, processes=2)
    assert len(rows) == 8
    for row in rows:
        single = simulate(scenario.with_policy(**row.settings))
        assert json.dumps(row.result.to_json()) == json.dumps(single.to_json())


def test_bands_over_seeds_and_the_risky_verdict():
    scenario = load("phase12-pw10.yaml", "workload.proofs=6")
    found = uncertainty(scenario, 8, processes=1)
    assert found.verdict == "fits" and found.p_oom == 0
    ram = found.peaks["ram"]
    assert ram.p5 <= ram.p50 <= ram.p95
    # a limit inside the band makes it risky, and the peaks in the band are those that would have been
    kept = 755 * 2**30 - int(ram.p50)
    tight = scenario.model_copy(update={"machine": scenario.machine.with_(reserved=kept)})
    risky = uncertainty(tight, 8, processes=1)
    assert risky.verdict == "risky" and 0 < risky.p_oom < 1
    assert risky.peaks["ram"].p95 > tight.machine.usable_ram
    result = simulate(tight)
    risky.apply_to(result)
    assert result.to_json()["verdict"] == "risky"


def test_exploring_finds_an_overlap_that_the_plain_order_may_hide():
    # waking takes longer than the free: in the plain run the next worker comes too late to meet d_bc
    scenario = load("phase9-free-after-unlock.yaml", "calibration.latency.lock_wake=150ms")
    assert simulate(scenario).verdict == "fits"
    found = explore(scenario, 20, processes=1)
    assert found.verdict == "oom" and found.worst.oom.pool == "vram:0"


@pytest.mark.parametrize(
    ("name", "pool"),
    [("pw12", "ram"), ("budget-256g", "ram"), ("three-gpus-128g", "ram"), ("phase9-free-after-unlock", "vram:0"),
     ("phase12-pw10", "vram:0"), ("container-64g", "ram")],
)  # fmt: skip
def test_the_explanation_adds_up_to_the_level_that_it_explains(name, pool):
    found = explain(load(f"{name}.yaml"), changes=False)
    oom = found.result.oom
    assert found.pool == pool
    level = found.result.peaks[pool].resident_bytes if oom is None else oom.level_bytes
    assert found.to_json()["peak"]["resident_bytes"] == level <= found.peak.capacity_bytes
    assert oom is None or found.at_s == oom.at_s
    assert sum(row["bytes"] for row in found.composition) == pytest.approx(level, abs=64)
    for row in found.composition:
        assert row["bytes"] == sum(buffer["bytes"] for buffer in row["buffers"])


def test_holders_add_up_to_the_levels_that_they_are_given_for():
    for name in ("pw12", "phase9-before-mutex", "phase12-pw10", "three-gpus-128g"):
        document = simulate(load(f"{name}.yaml")).to_json()
        for peak in document["peaks"].values():
            assert sum(row["bytes"] for row in peak["holders"]) == pytest.approx(peak["resident_bytes"], abs=64)
            assert peak["resident_bytes"] <= peak["capacity_bytes"]
        if document["oom"]:
            level = document["oom"]["level_bytes"]
            assert sum(row["bytes"] for row in document["oom"]["holders"]) == pytest.approx(level, abs=64)
            assert level <= document["oom"]["capacity_bytes"] < level + document["oom"]["request_bytes"]


def test_what_allocators_take_is_a_holder_too():
    scenario = load("pw12.yaml")
    memory = scenario.calibration.memory.model_copy(update={"allocator_slack": 0.05})
    scenario = scenario.model_copy(update={"calibration": scenario.calibration.model_copy(update={"memory": memory})})
    oom = simulate(scenario).oom
    assert ("allocator slack", 1) in [row[:2] for row in oom.holders]
    assert sum(row[2] for row in oom.holders) == pytest.approx(oom.level_bytes, abs=64)
    assert oom.capacity_bytes == 660 << 30


def test_a_mix_stands_alone_beside_the_circuit_of_an_extended_file():
    mix = "[{circuit: circuits/window-32g.yaml}, {circuit: circuits/snap-32g.yaml, weight: 2, priority: 3}]"
    scenario = load_scenario(SCENARIOS / "phase12-pw10.yaml",
                             [f"workload.circuits={mix}", "workload.mix=rotate", "workload.proofs=3"])  # fmt: skip
    result = simulate(scenario)
    assert scenario.circuit.name == "window-32g"
    assert result.verdict == "fits" and result.completions == 1 + 2 * 16


def test_the_curve_of_a_run_that_runs_out_reaches_the_limit():
    result = simulate(load("pw12.yaml"), trace=True)
    assert pool_curves(result.events)["ram"].peaks["resident"] == pytest.approx(result.oom.level_bytes, abs=64)


def test_the_explanation_of_the_pile_up_names_it():
    found = explain(load("pw12.yaml"), changes=False)
    waiting = next(row for row in found.composition if row["stage"] == "waits for synthesized")
    assert waiting["sets"] > 15  # the pile-up behind the channel
    assert {row["what"] for row in found.waits} >= {"synthesis", "synthesized"}
    assert found.binding[-1]["to_s"] == pytest.approx(found.at_s)


def test_replaying_a_simulated_trace_gives_its_times_again():
    scenario = load("phase9-free-after-ntt.yaml")
    first = simulate(scenario, trace=True)
    again = replay(scenario, first.events)
    assert again.makespan_s == pytest.approx(first.makespan_s, rel=1e-6)
    assert again.peaks["ram"].live_bytes == first.peaks["ram"].live_bytes


# INV-8
def test_a_trace_changes_nothing():
    scenario = load("pw12-fixed.yaml", "workload.proofs=3")
    plain, traced = simulate(scenario), simulate(scenario, trace=True)
    assert json.dumps(plain.to_json()) == json.dumps(traced.to_json())
