"""Proofs in a worker process: the same results as in this one, and what happens when it loses its device or its life."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuzk.errors import CuzkError, DeviceLost, FormatError, HardwareMissing, InputError, OutOfMemoryError, ScenarioError
from cuzk.exec import supervisor
from cuzk.exec.result import RunResult
from cuzk.exec.run import Proving, prepare, prove_with
from cuzk.exec.supervisor import WorkerDied
from cuzk.model.scenario import load_scenario
from cuzk.pipeline.pools import OutOfMemory
from cuzk.pipeline.sets import PartitionSet
from cuzk.trace.compare import compare, side_of_trace
from cuzk.trace.costs import cost_table
from cuzk.trace.jsonl import read_trace
from cuzk.trace.perfetto import perfetto
from tests.unit.exec.losing import Fault, losing
from tests.unit.exec.playing import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
PROOFS = ROOT / "scenarios" / "demo-proofs.yaml"
WAIT_S = 60


@pytest.fixture(autouse=True)
def no_process_is_left() -> Any:
    before = psutil.Process().children(recursive=True)
    yield
    assert psutil.Process().children(recursive=True) == before


def prove(out: Path, fault: Fault | None = None, proofs: int = 4, j: int = 2, worker: bool = True,
          fixture: str = "mul", gpus: int = 1) -> RunResult:  # fmt: skip
    scenario = load_scenario(PROOFS, [f"workload.proofs={proofs}", "circuit.partitions=2", f"policy.j={j}"])
    machine = scenario.machine.model_copy(update={"gpus": scenario.machine.gpus * gpus})
    scenario = scenario.model_copy(update={"machine": machine})
    files = FIXTURES / fixture / fixture
    proving = Proving(f"{files}.zkey", (f"{files}.wtns",), insecure_seed=7)
    lives = out / "lives"
    lives.mkdir(parents=True)
    prepared = prepare(scenario, proving, make_device=losing(lives, fault) if fault else None, worker=worker)
    return prove_with(prepared, out / "proofs", trace_path=out / "trace.jsonl")


def written(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def whole(result: RunResult) -> list[int]:
    return sorted(e.proof for e in result.events if e.kind == "complete" and e.partition == -1 and e.proof is not None)


def failed(result: RunResult) -> dict[int | None, str]:
    return {row["proof"]: row["why"] for row in result.document["failures"]}


def assert_one_run(result: RunResult, out: Path, proofs: int) -> None:
    """One clock, every proof admitted once and accounted for, everything given back, and files of whole proofs only."""
    events = read_trace(out / "trace.jsonl").events
    raw = [json.loads(line)["t"] for line in (out / "trace.jsonl").read_text().splitlines()[1:]]
    assert raw == sorted(raw) and len(events) == len(result.events)
    assert [e.proof for e in events if e.kind == "admit"] == list(range(proofs))
    assert sorted([*whole(result), *failed(result)]) == list(range(proofs))
    held: dict[tuple[Any, ...], int] = {}
    for event in events:
        if event.kind in ("alloc", "free"):
            key = (event.pool, event.name, event.proof, event.partition)
            held[key] = held.get(key, 0) + (1 if event.kind == "alloc" else -1)
            assert held[key] in (0, 1), event
    assert not any(held.values())
    for pool in {e.pool for e in events if e.kind == "free"}:
        assert [e.live for e in events if e.kind in ("alloc", "free") and e.pool == pool][-1] == 0
    assert sorted(path.name for path in (out / "proofs").glob("*.bin")) == [f"proof-{n:03d}.bin" for n in whole(result)]
    assert not list(out.rglob("*.part"))
    restarts = [e for e in events if e.kind == "restart"]
    assert [(e.t, e.reason) for e in restarts] == [
        (row["at_s"], row["reason"]) for row in result.document["measured"]["worker_restarts"]
    ]
    assert len(list((out / "lives").iterdir())) == len(restarts) + 1
    # whoever reads traces reads this one
    side = side_of_trace("run", events)
    assert side.completions == result.document["counts"]["completions"]
    assert compare(side, side)["counts"]["completions"]["error"] in (0, None)
    assert cost_table([events], cores=2)
    assert perfetto({}, events)["traceEvents"]


def test_the_same_files_and_the_same_document_as_in_this_process(tmp_path: Path) -> None:
    here, there = (prove(tmp_path / str(worker), worker=worker) for worker in (False, True))
    assert here.error is None and there.error is None
    assert written(tmp_path / "False" / "proofs") == written(tmp_path / "True" / "proofs")
    assert there.document["measured"].pop("worker_restarts") == []
    assert there.document.keys() == here.document.keys()
    assert list(there.document["measured"]) == list(here.document["measured"])
    for key in ("verdict", "oom", "counts", "failures", "seed", "scenario_hash", "schema_version"):
        assert there.document[key] == here.document[key], key
    assert there.document["peaks"].keys() == here.document["peaks"].keys()
    headers = [read_trace(tmp_path / str(worker) / "trace.jsonl").header for worker in (False, True)]
    for header in headers:
        assert header.pop("idle_bytes") > 0
    assert headers[0] == headers[1]


def test_a_lost_device_fails_what_is_in_flight_and_a_fresh_process_goes_on(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("lost"), proofs=6)
    assert_one_run(result, tmp_path, 6)
    assert isinstance(result.error, DeviceLost) and result.exit_code == 1
    assert 1 in failed(result) and len(failed(result)) <= 2
    assert set(failed(result).values()) == {"device 0 is lost: illegal address"}
    assert result.document["verdict"] == "failed"
    assert len(result.document["measured"]["worker_restarts"]) == 1
    kinds = [(e.kind, e.name) for e in result.events]
    assert kinds.index(("fail", "device")) < kinds.index(("restart", "worker"))
    assert ("fail", "run") not in kinds
    assert result.document["measured"]["verified_partitions"] == 2 * len(whole(result))


@pytest.mark.parametrize(("how", "why"), [("kill", "SIGKILL"), ("abort", "SIGABRT"), ("exit", "exit code 7")])
def test_a_worker_that_dies_is_replaced(how: str, why: str, tmp_path: Path) -> None:
    result = prove(tmp_path, Fault(how), proofs=6)
    assert_one_run(result, tmp_path, 6)
    assert isinstance(result.error, WorkerDied)
    assert 1 in failed(result) and len(failed(result)) <= 2
    assert all(why in reason for reason in failed(result).values())
    assert any(e.kind == "free" and e.worker == "system" for e in result.events)
    assert result.document["peaks"]["ram"]["holders"]


def test_a_device_that_is_lost_again_and_again_ends_the_run(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("lost", proofs=tuple(range(20)), lives=99), proofs=20)
    assert isinstance(result.error, DeviceLost) and result.exit_code == 1
    assert failed(result)[None] == "device 0 is lost: illegal address"
    assert whole(result) == [] and not list(tmp_path.rglob("*.bin"))
    assert len(result.document["measured"]["worker_restarts"]) == 1
    admitted = [e.proof for e in result.events if e.kind == "admit"]
    assert admitted == list(range(len(admitted))) and len(admitted) <= 4
    assert result.events[-1].kind == "fail" and result.events[-1].name == "run"


def test_a_completed_proof_in_between_is_progress(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("lost", proofs=(1, 3, 5), lives=99), proofs=6, j=1)
    assert_one_run(result, tmp_path, 6)
    assert whole(result) == [0, 2, 4]
    assert len(result.document["measured"]["worker_restarts"]) == 2  # nothing was left to do after the third


def test_one_of_two_devices_is_lost(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("lost-one", proofs=tuple(range(2, 12))), proofs=12, j=3, gpus=2)
    assert_one_run(result, tmp_path, 12)
    assert 0 < len(failed(result)) <= 3
    (lost,) = [e for e in result.events if e.kind == "fail" and e.name == "device"]
    assert lost.gpu == 1
    (again,) = [e for e in result.events if e.kind == "restart"]
    assert not any(lost.t < e.t < again.t for e in result.events if e.kind == "admit")
    assert any(e.gpu == 1 and e.t > again.t for e in result.events if e.kind == "begin")


@pytest.mark.parametrize("how", ["kill-load", "lost-load"])
def test_lost_while_the_key_is_loaded(how: str, tmp_path: Path) -> None:
    result = prove(tmp_path, Fault(how))
    assert result.error is None
    assert_one_run(result, tmp_path, 4)
    assert len(result.document["measured"]["worker_restarts"]) == 1


def test_a_device_that_never_loads_ends_the_run(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("lost-load", lives=99))
    assert isinstance(result.error, DeviceLost)
    assert failed(result) == {None: "device 0 is lost: illegal address"}


def test_too_little_vram_is_no_reason_for_another_process(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("vram"))
    assert_one_run(result, tmp_path, 4)
    assert result.exit_code == 3 and isinstance(result.error, OutOfMemory)
    assert (whole(result), list(failed(result))) == ([0, 2, 3], [1])
    assert result.document["oom"]["pool"] == "vram:0" and result.document["oom"]["proof"] == 1
    assert result.document["measured"]["worker_restarts"] == []


def test_too_little_ram_ends_the_run_in_its_worker(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("ram"))
    assert result.exit_code == 3 and isinstance(result.error, OutOfMemory)
    assert result.document["oom"]["pool"] == "ram" and None in failed(result)
    assert result.document["measured"]["worker_restarts"] == []


def test_a_driver_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PATIENCE_S", 1.0)
    result = prove(tmp_path, Fault("hang"), proofs=6)
    assert_one_run(result, tmp_path, 6)
    assert 1 in failed(result)
    assert len(result.document["measured"]["worker_restarts"]) == 1


def test_what_stands_in_the_way_of_a_run_is_raised_here(tmp_path: Path) -> None:
    with pytest.raises(HardwareMissing, match="no such device"):
        prove(tmp_path / "a", Fault("open"))
    with pytest.raises(InputError, match=r"nowhere\.zkey"):
        prove(tmp_path / "b", fixture="nowhere")
    assert not (tmp_path / "a" / "trace.jsonl").exists()


def test_a_device_that_is_gone_for_good_ends_the_run(tmp_path: Path) -> None:
    result = prove(tmp_path, Fault("gone"), proofs=6)
    assert result.exit_code == 5
    assert failed(result)[None] == "the device is gone"


def test_a_worker_that_is_not_used_is_not_left_behind() -> None:
    files = FIXTURES / "mul" / "mul"
    prepared = prepare(load_scenario(PROOFS), Proving(f"{files}.zkey", (f"{files}.wtns",)), worker=True)
    (process,) = psutil.Process().children()
    del prepared
    assert not process.is_running()


def test_a_worker_that_dies_before_its_turn_is_replaced() -> None:
    files = FIXTURES / "mul" / "mul"
    prepared = prepare(load_scenario(PROOFS, ["circuit.partitions=1"]), Proving(f"{files}.zkey", (f"{files}.wtns",)), worker=True)
    (process,) = psutil.Process().children()
    process.kill()
    result = prove_with(prepared)
    assert result.error is None and result.document["measured"]["verified_partitions"] == result.document["counts"]["proofs"]
    assert len(result.document["measured"]["worker_restarts"]) == 1


@pytest.mark.parametrize(
    "error",
    [
        DeviceLost(3, "why"), FormatError("a.zkey", "odd", offset=7, section=2), ScenarioError(["f:1:2: x", "f:2:2: y"]),
        OutOfMemory("ram", "a", 5, 6, 7, [("a", 1, 5)], PartitionSet(1, 2)), InputError("no"), OutOfMemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_errors_cross_processes_as_they_are(error: CuzkError) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.args == error.args
    assert {k: str(v) for k, v in vars(again).items()} == {k: str(v) for k, v in vars(error).items()}


# -------------------------------------------------------------------------- the command, and signals to it


def start(out: Path, *extra: str) -> subprocess.Popen[str]:
    """`cuzk run --worker` with more proofs than anybody waits for, in a process group of its own."""
    files = FIXTURES / "chain1k" / "chain1k"
    command = [sys.executable, "-m", "cuzk", "run", str(PROOFS), "--key", f"{files}.zkey", "--witness", f"{files}.wtns",
               "--worker", "-o", str(out), "--no-predict", *extra]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip


def under_way(process: subprocess.Popen[str], out: Path) -> psutil.Process:
    """Its worker, once that proves."""
    part = out / "trace.jsonl.part"
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until and not (part.exists() and part.stat().st_size > 20_000):
        time.sleep(0.02)
    (worker,) = psutil.Process(process.pid).children()
    return worker


def ends(worker: psutil.Process) -> bool:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        if not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("group", [False, True], ids=["alone", "terminal"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_unwinds_the_worker(number: signal.Signals, group: bool, tmp_path: Path) -> None:
    process = start(tmp_path, "--set", "workload.proofs=100000")
    worker = under_way(process, tmp_path)
    os.killpg(process.pid, number) if group else process.send_signal(number)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130, err
    assert "cuzk: interrupted" in err and "Traceback" not in err and "verdict" not in err
    assert not worker.is_running()
    assert "interrupted" in out.lower()
    events = read_trace(tmp_path / "trace.jsonl").events
    assert [e.name for e in events if e.kind == "fail"] == ["run"]
    assert [e.live for e in events if e.pool == "ram" and e.live is not None][-1] == 0
    assert json.loads((tmp_path / "run.json").read_text())["verdict"] == "interrupted"
    assert not list(tmp_path.rglob("*.part"))


def test_the_worker_ends_with_its_parent(tmp_path: Path) -> None:
    process = start(tmp_path, "--set", "workload.proofs=100000")
    worker = under_way(process, tmp_path)
    process.kill()
    process.communicate(timeout=WAIT_S)
    assert ends(worker)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl.part"]
    assert read_trace(tmp_path / "trace.jsonl.part").events


def test_a_killed_worker_is_replaced_under_the_command(tmp_path: Path) -> None:
    process = start(tmp_path, "--json", "--set", "workload.proofs=12", "--set", "circuit.partitions=4")
    under_way(process, tmp_path).kill()
    out, err = process.communicate(timeout=WAIT_S)
    document = json.loads(out)
    assert process.returncode == 1, err
    assert "SIGKILL" in err
    assert len(document["measured"]["worker_restarts"]) == 1
    assert document["counts"]["proofs"] + document["counts"]["failed_proofs"] == 12 and document["counts"]["proofs"] > 0


def test_the_default_is_a_worker_for_the_gpu_alone() -> None:
    from cuzk.exec.cpu import CpuDevice
    from cuzk.exec.cuda import CudaProver

    made: list[Callable[..., Any]] = [device for device in (CpuDevice, CudaProver) if device.in_worker]
    assert made == [CudaProver]
