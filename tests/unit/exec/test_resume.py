"""`cuzk run --resume`: proofs are written as they are complete, and a later run makes only what is missing or does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuzk.cli.main import main
from tests.unit.exec.test_run import FIXTURES, PROOFS, files

FOUR = ("--set", "workload.proofs=4", "--set", "circuit.partitions=2", "--no-predict", "--json")


def run(out: Path, capsys: pytest.CaptureFixture[str], *extra: str) -> dict:
    assert main(["run", str(PROOFS), *files("mul"), *FOUR, "-o", str(out), *extra]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("worker", [(), ("--worker",)])
def test_what_is_missing_or_damaged_is_made_again_and_no_more(
    worker: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(tmp_path, capsys, *worker)
    assert first["measured"]["files"] == [str(tmp_path / f"proof-{n:03d}.bin") for n in range(4)]
    kept = {n: (tmp_path / f"proof-{n:03d}.bin").read_bytes() for n in range(4)}
    (tmp_path / "proof-001.bin").unlink()
    (tmp_path / "proof-003.bin").write_bytes(kept[3][:-1] + b"\0")
    again = run(tmp_path, capsys, "--resume", *worker)
    assert again["measured"]["files"] == [str(tmp_path / f"proof-{n:03d}.bin") for n in (1, 3)]
    assert again["measured"]["verified_partitions"] == 4 and again["counts"]["completions"] == 4
    for n in (0, 2):
        assert (tmp_path / f"proof-{n:03d}.bin").read_bytes() == kept[n]
    for n in range(4):
        for part in range(2):
            names = [str(tmp_path / f"proof-{n:03d}" / f"{what}-{part:02d}.json") for what in ("public", "proof")]
            assert main(["verify", str(FIXTURES / "mul" / "verification_key.json"), *names]) == 0
    capsys.readouterr()
    assert run(tmp_path, capsys, "--resume") == {"schema_version": 1, "resumed": 4, "made": 0, "output": str(tmp_path)}


def test_a_proof_under_other_public_signals_is_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, capsys)
    public = tmp_path / "proof-002" / "public-01.json"
    public.write_text(json.dumps([str(int(v) + 1) for v in json.loads(public.read_text())]))
    assert run(tmp_path, capsys, "--resume")["measured"]["files"] == [str(tmp_path / "proof-002.bin")]


def test_an_empty_folder_is_a_fresh_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(run(tmp_path / "new", capsys, "--resume")["measured"]["files"]) == 4


def test_resume_needs_proofs_and_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([*files("mul"), "--resume"], ["--resume", "-o", "x"]):
        assert main(["run", str(PROOFS), *arguments]) == 2
        assert "--resume" in capsys.readouterr().err


def test_a_proof_that_cannot_be_written_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proof-000").write_text("a file in the way")
    assert main(["run", str(PROOFS), *files("mul"), *FOUR, "-o", str(tmp_path)]) == 2
    assert "proof-000" in capsys.readouterr().err
