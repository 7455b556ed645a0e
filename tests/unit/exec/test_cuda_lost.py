"""A GPU that is lost in the middle of a step, on the emulated one: in this process, and in a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.errors import DeviceLost
from cuzk.exec.result import RunResult
from cuzk.exec.run import Proving, prepare, prove_with
from cuzk.model import load_scenario
from tests.unit.exec.spoiled import spoiled
from tests.unit.exec.test_cuda_prover import FIXTURES, SCENARIO


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


def prove(kernels: Path, out: Path, step: str, worker: bool) -> RunResult:
    path = out / "s.yaml"
    path.write_text(SCENARIO.format(vram="1GiB", phase="phase12", policy="{pw: 1, gw: 1, j: 1}", proofs=3))
    scenario = load_scenario(path, ["circuit.partitions=1"])
    files = FIXTURES / "mul" / "mul"
    device = spoiled(kernels, out / "spoiled", step)
    prepared = prepare(scenario, Proving(f"{files}.zkey", (f"{files}.wtns",)), make_device=device, worker=worker)
    return prove_with(prepared, out / "proofs", trace_path=out / "trace.jsonl")


def assert_struck_in(step: str, result: RunResult) -> None:
    """When the device was lost the step was under way, and nothing on the device is held any more."""
    lost_at = next(i for i, e in enumerate(result.events) if e.kind == "fail")
    marks = [(e.kind, e.name) for e in result.events[:lost_at] if e.kind in ("begin", "end")]
    assert marks.count(("begin", step)) == 1
    assert "epilogue" not in [name for _, name in marks]
    assert [e.live for e in result.events if e.kind in ("alloc", "free") and e.pool == "vram:0"][-1] == 0


LATER = [pytest.param(step, marks=pytest.mark.slow) for step in ("ntt_h", "batch_add", "tail_msm")]


@pytest.mark.parametrize("step", ["msm_h", *LATER])
def test_lost_in_the_middle_of_a_step_and_replaced(step, kernels, tmp_path):
    result = prove(kernels, tmp_path, step, worker=True)
    assert isinstance(result.error, DeviceLost)
    assert_struck_in(step, result)
    assert [row["proof"] for row in result.document["failures"]] == [0]
    assert "cudaErrorIllegalAddress" in result.document["failures"][0]["why"]
    assert len(result.document["measured"]["worker_restarts"]) == 1
    assert result.document["measured"]["verified_partitions"] == 2
    assert sorted(path.name for path in (tmp_path / "proofs").glob("*.bin")) == ["proof-001.bin", "proof-002.bin"]


@pytest.mark.slow
def test_lost_in_this_process_ends_the_run(kernels, tmp_path):
    result = prove(kernels, tmp_path, "msm_h", worker=False)
    assert isinstance(result.error, DeviceLost) and result.exit_code == 1
    assert_struck_in("msm_h", result)
    assert result.document["measured"]["verified_partitions"] == 0
