"""kill -9 at random moments of prove and setup: whole files or none, and the next start leaves no leftover."""

import random
import signal
import subprocess
import sys
import time

import pytest

from cuzk.cli.main import main
from cuzk.groth16.load import load_key

FILES = ("proof.bin", "proof.json", "public.json")


def killed(command, after_s):
    command = [sys.executable, "-m", "cuzk", *map(str, command)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    return process.returncode


@pytest.mark.parametrize("rounds", (4, pytest.param(100, marks=pytest.mark.slow)))
def test_proofs_are_whole_or_absent(circuits, tmp_path, rounds):
    chain, out = circuits["chain1k"], tmp_path / "out"
    command = ["prove", chain.path("zkey"), chain.path("wtns"), "-o", out]
    start = time.monotonic()
    assert main([str(a) for a in command]) == 0
    took_s, draw = max(time.monotonic() - start, 0.5), random.Random()
    for number in range(rounds):
        if number % 2:
            for name in FILES:
                (out / name).unlink(missing_ok=True)
            if out.exists():
                out.rmdir()
        killed(command, draw.uniform(0, 1.6 * took_s))
        found = sorted(p.name for p in out.iterdir() if not p.name.endswith(".cuzk-part")) if out.exists() else []
        assert found in ([], list(FILES)), found
        if found:
            arguments = [chain.file("verification_key.json"), out / "public.json", out / "proof.json"]
            assert main(["verify", *map(str, arguments)]) == 0
    done = subprocess.run([sys.executable, "-m", "cuzk", *map(str, command)], capture_output=True)
    assert done.returncode == 0
    assert sorted(p.name for p in out.iterdir()) == list(FILES) and [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("rounds", (3, pytest.param(60, marks=pytest.mark.slow)))
def test_keys_are_whole_or_absent(circuits, tmp_path, rounds):
    chain, key = circuits["chain1k"], tmp_path / "k.ckey"
    command = ["setup", chain.path("r1cs"), "-o", key]
    draw = random.Random()
    for _ in range(rounds):
        killed(command, draw.uniform(0.1, 1.5))
        if key.exists():
            assert load_key(key).n_wires == 1023
            key.unlink()
    done = subprocess.run([sys.executable, "-m", "cuzk", *map(str, command)], capture_output=True)
    assert done.returncode == 0 and [p.name for p in tmp_path.iterdir()] == ["k.ckey"]
