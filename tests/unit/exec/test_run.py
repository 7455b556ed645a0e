"""`cuzk run`: real proofs through the pipeline, the null device, bad input, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.trace.jsonl import read_trace
from tests.unit.exec.playing import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
PROOFS = ROOT / "scenarios" / "demo-proofs.yaml"
SMALL = ("--set", "workload.proofs=2", "--set", "circuit.partitions=3")


def files(name: str) -> tuple[str, ...]:
    return ("--key", str(FIXTURES / name / f"{name}.zkey"), "--witness", str(FIXTURES / name / f"{name}.wtns"))


# INV-13
@pytest.mark.parametrize("phase", ["phase2", "phase7", "phase9", "phase12"])
def test_proofs_through_the_pipeline_verify(phase: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(PROOFS), *files("mul"), *SMALL, "--set", f"pipeline={phase}", "-o", str(tmp_path), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["verdict"] == "fits"
    assert document["measured"]["verified_partitions"] == 6
    assert document["counts"]["completions"] == 6
    assert document["counts"]["deallocations"] == {"host": 6, "native": 6}
    proof = tmp_path / "proof-001" / "proof-02.json"
    public = tmp_path / "proof-001" / "public-02.json"
    assert main(["verify", str(FIXTURES / "mul" / "verification_key.json"), str(public), str(proof)]) == 0
    assert (tmp_path / "proof-000.bin").stat().st_size == 3 * 192
    trace = read_trace(tmp_path / "trace.jsonl")
    assert trace.header["clock"] == "wall" and trace.header["scenario_hash"] == document["scenario_hash"]
    assert json.loads((tmp_path / "run.json").read_text()) == document


@pytest.mark.parametrize("quotient", ["odd-coset"])
def test_what_the_key_serves_is_used(quotient: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(PROOFS), *files("chain1k"), *SMALL, "-o", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"]["quotient"] == quotient


def test_a_quotient_that_the_key_cannot_serve_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(PROOFS), *files("mul"), "--set", "policy.quotient=c-free"]) == 2
    assert "c-free" in capsys.readouterr().err


# INV-13
def test_a_witness_that_breaks_a_constraint_fails_with_6_and_writes_no_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray((FIXTURES / "chain1k" / "chain1k.wtns").read_bytes())
    data[-32] ^= 1
    bad = tmp_path / "bad.wtns"
    bad.write_bytes(data)
    key = str(FIXTURES / "chain1k" / "chain1k.zkey")
    out = tmp_path / "out"
    assert main(["run", str(PROOFS), "--key", key, "--witness", str(bad), *SMALL, "-o", str(out)]) == 6
    assert not list(out.glob("proof-*"))
    assert "proof" in capsys.readouterr().err


def test_one_bad_witness_of_three_fails_every_proof_that_uses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Partition 1 of each proof takes the broken witness: both proofs fail, and what they held is given back."""
    good = FIXTURES / "chain1k" / "chain1k.wtns"
    data = bytearray(good.read_bytes())
    data[-32] ^= 1
    bad = tmp_path / "bad.wtns"
    bad.write_bytes(data)
    witnesses = [x for path in (good, bad, good) for x in ("--witness", str(path))]
    key = str(FIXTURES / "chain1k" / "chain1k.zkey")
    assert main(["run", str(PROOFS), "--key", key, *witnesses, *SMALL, "--json"]) == 6
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "failed"
    assert sorted(row["proof"] for row in document["failures"]) == [0, 1]  # they are in the order of time


# INV-15
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--key", "nowhere.zkey"], "goes with"),
        (["--key", "k", "--witness", "w", "--c1", "c"], "goes with"),
        (["--key", "nowhere.zkey", "--witness", "nowhere.wtns"], "nowhere.zkey"),
        (["--set", "pipeline=phase99"], "phase99"),
        (["--set", "policy.pw=0"], "policy.pw"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(PROOFS), *arguments]) == 2
    captured = capsys.readouterr()
    assert what in captured.err and "Traceback" not in captured.err and captured.out == ""


def test_witness_of_another_circuit(capsys: pytest.CaptureFixture[str]) -> None:
    key, witness = files("mul")[1], files("chain1k")[3]
    assert main(["run", str(PROOFS), "--key", key, "--witness", witness]) == 2
    assert "witness" in capsys.readouterr().err


def test_the_null_device_takes_real_memory_and_a_cap_ends_it_cleanly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = str(ROOT / "scenarios" / "demo-pile-up.yaml")
    code = main(["run", scenario, "-o", str(tmp_path), "--json", "--scale", "1/16", "--time-scale", "1/16", "--ram-cap", "2GiB"])
    document = json.loads(capsys.readouterr().out)
    assert code == 3
    assert document["verdict"] == document["predicted"]["verdict"] == "oom"
    assert document["oom"]["capacity_bytes"] == 2 << 30
    ram = document["peaks"]["ram"]
    assert ram["resident_is"] == "sampled"
    assert ram["resident_bytes"] > 2**30  # a sample now and then: on a busy machine the last one is a while before the end
    assert sum(row["bytes"] for row in document["oom"]["holders"]) == pytest.approx(document["oom"]["level_bytes"], rel=1e-6)
    events = read_trace(tmp_path / "trace.jsonl").events
    assert events[-1].kind in ("free", "sample")
    assert [e.live for e in events if e.pool == "ram" and e.live is not None][-1] == 0


def test_memory_is_flat_over_many_proofs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", str(PROOFS), *files("chain1k"), "--set", "workload.proofs=40", "--set", "circuit.partitions=2",
                 "--set", "policy.j=3", "-o", str(tmp_path), "--json"])  # fmt: skip
    assert code == 0
    assert json.loads(capsys.readouterr().out)["measured"]["verified_partitions"] == 80
    samples = [e.resident for e in read_trace(tmp_path / "trace.jsonl").events if e.kind == "sample" and e.pool == "ram"]
    levels = [level for level in samples if level is not None]
    early, late = (max(levels[len(levels) * a // 8 : len(levels) * b // 8]) for a, b in ((2, 4), (6, 8)))
    assert late - early < 8 << 20  # the events themselves are kept in memory too


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_unwinds_and_exits_130(signal_number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from cuzk.cli.main import entry; entry()", "run", str(ROOT / "scenarios/pw12.yaml"),
               "-o", str(tmp_path), "--scale", "1e-5", "--no-predict"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=os.environ | {"PYTHONPATH": str(ROOT)})  # fmt: skip
    part = tmp_path / "trace.jsonl.part"
    until = time.monotonic() + 60
    while time.monotonic() < until and not (part.exists() and part.stat().st_size > 10_000):
        time.sleep(0.02)
    process.send_signal(signal_number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err and "Traceback" not in err
    trace = read_trace(tmp_path / "trace.jsonl")
    assert any(e.kind == "fail" and e.name == "run" for e in trace.events)
    assert [e.live for e in trace.events if e.pool == "ram" and e.live is not None][-1] == 0
