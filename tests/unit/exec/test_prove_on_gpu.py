"""`cuzk prove --device cuda` on an emulated GPU: a small circuit as one graph, any other through the pipeline."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cuzk.cli.main import main
from cuzk.exec.one import prove_on_gpu
from cuzk.groth16.load import load_key, open_witness
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove
from tests.unit.exec.test_cuda_prover import scenario_of
from tests.unit.kernels.emulated import EmulatedDevice

FIXTURES = Path(__file__).parents[2] / "fixtures"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is needed to emulate the kernels")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


# INV-13
@needs_compiler
def test_the_command_line_proves_on_the_gpu(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device = EmulatedDevice(kernels)
    monkeypatch.setattr("cuzk.exec.cuda.open_cuda", lambda index: device)
    folder = FIXTURES / "mul"
    files = [str(folder / "mul.zkey"), str(folder / "mul.wtns")]
    assert main(["prove", *files, "-o", str(tmp_path), "--device", "cuda", "--insecure-seed", "7"]) == 0
    assert "proof verified" in capsys.readouterr().out
    assert device.launches and device.live_bytes() == 0
    key = str(folder / "verification_key.json")
    assert main(["verify", key, str(tmp_path / "public.json"), str(tmp_path / "proof.json")]) == 0
    opened = load_key(files[0])
    host = prove(opened, open_witness(files[1])(opened), None, Blinding.from_seed(7), 1)
    assert (tmp_path / "proof.bin").read_bytes() == host.proof.to_bytes()


@needs_compiler
def test_what_is_no_small_circuit_goes_through_the_pipeline(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuzk.groth16.gpu.small.LARGEST_LOG_DOMAIN", 0)
    key = load_key(FIXTURES / "mul" / "mul.zkey")
    witness = open_witness(FIXTURES / "mul" / "mul.wtns")(key)
    device: Any = EmulatedDevice(kernels)
    host = lambda: scenario_of(tmp_path, "own", "{pw: 1, gw: 1, j: 1}")  # noqa: E731
    made = prove_on_gpu(key, witness, host, blinding=Blinding.from_seed(3), threads=1, open_gpu=lambda index: device)
    assert made.proof == prove(key, witness, made.quotient, Blinding.from_seed(3), 1).proof
    assert "msm_h" in made.step_s and device.launches


def test_without_a_gpu_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = FIXTURES / "mul"
    code = main(["prove", str(folder / "mul.zkey"), str(folder / "mul.wtns"), "-o", str(tmp_path / "o"), "--device", "cuda"])
    if code == 0:
        pytest.skip("there is a GPU here")
    assert code == 5 and not list((tmp_path / "o").glob("*"))
    assert "cuzk:" in capsys.readouterr().err
