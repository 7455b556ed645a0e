"""The two interpreters agree: simulated time and threads on the null device, over the same pipeline and Arbiter.

Counts and verdicts are equal. Peaks are equal where order decides them; elsewhere threads take one of the legal orders, and their
peak lies within what the simulator finds over many of them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from cuzk.exec.null import NullDevice
from cuzk.exec.result import RunResult
from cuzk.exec.run import run
from cuzk.model.scenario import Scenario, load_scenario
from cuzk.pipeline.bounds import bounds
from cuzk.pipeline.presets.reference_prover.phases import PHASES
from cuzk.pipeline.program import bind
from cuzk.sim import simulate
from cuzk.sim.options import Options
from cuzk.sim.run import run_program

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"
BYTES = 1e-6
"""Scale of the bytes: what is compared is the books, in the scenario's own bytes."""


@cache
def scenario(file: str, *overrides: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{file}.yaml", overrides)


def threads(scene: Scenario, time_scale: float) -> RunResult:
    return run(scene, NullDevice(BYTES, time_scale))


def counts(document: dict) -> dict:
    return {key: document["counts"][key] for key in ("completions", "deallocations", "failed_proofs")}


# INV-7
@pytest.mark.parametrize("phase", [name for name in PHASES if name.startswith("phase")])
def test_counts_are_equal(phase: str) -> None:
    scene = scenario("phase12-pw10", f"pipeline={phase}", "policy={pw: 4, gw: 1, j: 2}", "workload.proofs=3",
                     "circuit.partitions=4", "machine.ram=2TiB")  # fmt: skip
    simulated, real = simulate(scene).to_json(), threads(scene, 2e-4).to_json()
    assert simulated["verdict"] == real["verdict"] == "fits"
    assert counts(simulated) == counts(real)
    assert simulated["scenario_hash"] == real["scenario_hash"]
    for pool in simulated["peaks"]:
        if pool.startswith("vram"):  # one worker: nothing on the device depends on time
            assert simulated["peaks"][pool]["live_bytes"] == real["peaks"][pool]["live_bytes"]


# the two locks of phase 10 run out of memory too, but only if a set arrives in a window of two seconds
OUT_OF_MEMORY = [("phase9-before-mutex", 3, 0.02), ("container-64g", 1, 0.02), ("pw12", 20, 2e-3), ("pw15", 20, 2e-3)]


# INV-7
@pytest.mark.parametrize(("file", "proofs", "time_scale"), OUT_OF_MEMORY)
def test_what_runs_out_of_memory_does_so_in_both(file: str, proofs: int, time_scale: float) -> None:
    scene = scenario(file, f"workload.proofs={proofs}")
    simulated, real = simulate(scene).to_json(), threads(scene, time_scale).to_json()
    assert simulated["verdict"] == real["verdict"] == "oom"
    for key in ("pool", "capacity_bytes"):
        assert simulated["oom"][key] == real["oom"][key], key
    for side in (simulated, real):
        most = {row["buffer"] for row in side["oom"]["holders"][:2]}
        if file == "phase9-before-mutex":  # two pre-staged sets, whatever else is there
            assert most & {"d_a", "d_bc"}
        elif file != "container-64g":
            assert most <= {"a", "b", "c", "aux", "witness_copy"}


@pytest.mark.parametrize("gw", [1, 2])
def test_peaks_are_equal_where_order_decides_them(gw: int) -> None:
    """Ten partitions start at once and are all in matvec together: ten full sets and what is resident, neither more nor less."""
    scene = scenario("phase12-pw10", f"policy.gw={gw}", "policy.j=1", "workload.proofs=1")
    simulated, real = simulate(scene).to_json(), threads(scene, 0.04).to_json()
    own_ram = simulated_process_bytes(scene)
    assert simulated["peaks"]["ram"]["live_bytes"] - own_ram == real["peaks"]["ram"]["live_bytes"]
    assert simulated["peaks"]["vram:0"]["live_bytes"] == real["peaks"]["vram:0"]["live_bytes"]


@pytest.mark.parametrize("file", ["phase12-pw10", "phase9-gw1-j15"])
def test_peaks_are_within_the_legal_orders(file: str) -> None:
    """The lowest and highest peak over orders that other step times would give, widened by one set."""
    scene = scenario(file, "workload.proofs=3", "policy.j=2", "policy.pw=5", "circuit.partitions=6")
    plan = bind(scene)
    assert scene.calibration is not None
    # a busy machine delays steps at random: any order that such times lead to is legal
    uncertain = {name: law.model_copy(update={"jitter": 0.5}) for name, law in scene.calibration.costs.items()}
    calibration = scene.calibration.model_copy(update={"costs": uncertain})
    loose = bind(scene.model_copy(update={"calibration": calibration}))
    peaks = [run_program(loose, seed, Options(shuffle=seed)).peaks["ram"].live_bytes for seed in range(60)]
    one_set = sum(plan.size(b, scene.circuit) for b in ("a", "b", "c", "aux", "witness_copy"))
    own_ram = simulated_process_bytes(scene)
    real = threads(scene, 0.02).to_json()["peaks"]["ram"]["live_bytes"] + own_ram
    # how late threads can be has no limit, but what any order can hold has
    most = next(bound.at_most_bytes for bound in bounds(plan) if bound.pool == "ram")
    assert min(peaks) - one_set <= real <= most + own_ram


def simulated_process_bytes(scene: Scenario) -> int:
    """What the simulator books for the process itself; a run measures from its idle state on."""
    assert scene.calibration is not None
    return scene.calibration.memory.process_ram


@pytest.mark.parametrize("file", ["demo-steady", "demo-calibrate"])
def test_the_books_of_the_demo_agree(file: str) -> None:
    scene = scenario(file, "workload.proofs=2", "circuit.partitions=4")
    simulated, real = simulate(scene).to_json(), run(scene, NullDevice(1e-3, 0.2)).to_json()
    assert counts(simulated) == counts(real)
    assert simulated["peaks"]["vram:0"]["live_bytes"] == real["peaks"]["vram:0"]["live_bytes"]
