"""A context that a kernel spoils: its proofs fail, and a fresh process goes on. Run on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.errors import DeviceLost
from cuzk.exec.result import RunResult
from cuzk.exec.run import Proving, prepare, prove_with
from cuzk.model import load_scenario
from tests.gpu.spoiling import FAULTS, spoiling
from tests.unit.exec.test_cuda_prover import FIXTURES, SCENARIO

pytestmark = pytest.mark.gpu


def prove(device, out: Path, fault: str, lives: int = 1, proofs: int = 4) -> RunResult:
    path = out / "s.yaml"
    path.write_text(SCENARIO.format(vram="8GiB", phase="phase12", policy="{pw: 1, gw: 1, j: 1}", proofs=proofs))
    files = FIXTURES / "mul" / "mul"
    scenario = load_scenario(path, ["circuit.partitions=2", f"machine.gpus.0.sms={device.multiprocessors}"])
    device = spoiling(out / "spoiled", fault, lives)
    prepared = prepare(scenario, Proving(f"{files}.zkey", (f"{files}.wtns",)), make_device=device, worker=True)
    return prove_with(prepared, out / "proofs", trace_path=out / "trace.jsonl")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_spoiled_context_fails_its_proof_and_a_fresh_process_goes_on(device, fault, tmp_path):
    result = prove(device, tmp_path, fault)
    assert isinstance(result.error, DeviceLost), result.error
    assert [row["proof"] for row in result.document["failures"]] == [1]
    assert FAULTS[fault][1] in result.document["failures"][0]["why"]
    assert len(result.document["measured"]["worker_restarts"]) == 1
    assert result.document["measured"]["verified_partitions"] == 6
    assert len(list((tmp_path / "proofs").glob("*.bin"))) == 3


def test_the_process_that_supervises_keeps_its_own_context(device, tmp_path):
    free_before, _ = device.memory_info()
    prove(device, tmp_path, "illegal")
    memory = device.upload(__import__("numpy").arange(8))
    memory.free()
    assert device.memory_info()[0] >= free_before - (64 << 20)
