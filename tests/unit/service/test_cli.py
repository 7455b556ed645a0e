"""`cuzk serve` as a process."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cuzk.cli.main import main
from cuzk.service.proto import cuzk_pb2 as pb

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def service(tmp_path: Path, *options: str, params: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service on a port of its own; killed at the end if it lives."""
    folder = params or tmp_path / "params"
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "cuzk", "serve", "--listen", "127.0.0.1:0", "--params", str(folder),
               "--state", str(tmp_path / "state"), *options]  # fmt: skip
    log = open(tmp_path / "log", "a+")  # noqa: SIM115
    process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "serving gRPC" in line:
                break
        else:
            raise AssertionError(f"it ended with {process.wait()}")
        yield process, "127.0.0.1:" + line.partition("(port ")[2].partition(")")[0]
    finally:
        process.kill()
        process.communicate()
        log.close()


def call(target: str, name: str, message: object, answer: type, timeout_s: float = 20.0):
    with grpc.insecure_channel(target) as channel:
        ask = channel.unary_unary(f"/cuzk.v1.ProvingEngine/{name}", request_serializer=lambda m: m.SerializeToString(),
                                  response_deserializer=answer.FromString)  # fmt: skip
        return ask(message, timeout=timeout_s, wait_for_ready=True)


def test_a_service_answers_and_ends_politely(tmp_path):
    with service(tmp_path, "--http", "127.0.0.1:0") as (process, target):
        status = call(target, "GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)
        assert {queue.proof_kind for queue in status.queues} == {"porep-c2", "snap-update", "window-post", "winning-post"}
        asked = pb.SubmitProofRequest(request_id="a", proof_kind=1, vanilla_proof=b"{}", miner_id=1000)
        found = call(target, "Prove", pb.ProveRequest(submit=asked), pb.ProveResponse).result
        assert found.status == pb.AwaitProofResponse.FAILED and found.error_message.startswith("C1 parse failed: ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--listen", "0.0.0.0:0"], "it listens beyond this host"),
        (["--listen", "nonsense"], "must be IP:port or unix://PATH"),
        (["--params", "/nowhere/at/all"], "no such folder"),
        (["--config", "/nowhere.toml"], "/nowhere.toml: No such file"),
        (["--token-file", "/nowhere"], "/nowhere: No such file"),
        (["--scenario", "/nowhere.yaml"], "/nowhere.yaml"),
    ],
)
def test_wrong_options_are_errors_with_exit_code_2(tmp_path, capsys, options, says):
    fixed = ["--listen", "127.0.0.1:0", "--params", str(tmp_path), "--state", str(tmp_path / "state")]
    assert main(["serve", *fixed, *options]) == 2
    assert says in capsys.readouterr().err


def test_a_port_that_is_taken_and_a_state_that_is_in_use(tmp_path, capsys):
    with service(tmp_path) as (_, target):
        fixed = ["serve", "--params", str(tmp_path / "params")]
        assert main([*fixed, "--listen", target, "--state", str(tmp_path / "other")]) == 2
        assert main([*fixed, "--listen", "127.0.0.1:0", "--state", str(tmp_path / "state")]) == 2
        assert "another service" in capsys.readouterr().err


@pytest.mark.slow
def test_a_porep_proof_survives_a_killed_service(tmp_path):
    """A C1 output of a made-up sector over gRPC, the service killed while it proves; the next one proves it, and an independent
    verifier agrees."""
    params = tmp_path / "params"
    params.mkdir()
    key, c1 = params / "porep.params", tmp_path / "c1.json"
    assert main(["porep", "setup", "--sector", "2KiB", "-o", str(key)]) == 0
    assert main(["porep", "c1", "--synthetic", "2KiB", "-o", str(c1), "--miner", "1234", "--sector-number", "9"]) == 0
    asked = pb.SubmitProofRequest(request_id="porep-1234-9", proof_kind=1, vanilla_proof=c1.read_bytes(), miner_id=1234,
                                  sector_number=9, sector_size=2048, registered_proof=5, priority=2)  # fmt: skip
    with service(tmp_path, params=params) as (process, target):
        assert call(target, "SubmitProof", asked, pb.SubmitProofResponse).job_id == "porep-1234-9"
        deadline = time.monotonic() + 60
        while not any(q.in_progress for q in call(target, "GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse).queues):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.kill()
    with service(tmp_path, params=params) as (process, target):
        found = call(target, "Prove", pb.ProveRequest(submit=asked), pb.ProveResponse, 120).result
        assert found.status == pb.AwaitProofResponse.COMPLETED, found.error_message
        wrong = pb.SubmitProofRequest()
        wrong.CopyFrom(asked)
        wrong.request_id, wrong.miner_id = "other", 1235
        refused = call(target, "Prove", pb.ProveRequest(submit=wrong), pb.ProveResponse).result
        assert "replica_id" in refused.error_message
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    from cuzk.groth16.formats.proof import Proof
    from cuzk.groth16.load import read_any_vk
    from cuzk.groth16.verify import Verifier
    from cuzk.porep.c1 import read

    assert Verifier(read_any_vk(key)).accepts(Proof.from_bytes(found.proof), read(c1).public_inputs(0))
