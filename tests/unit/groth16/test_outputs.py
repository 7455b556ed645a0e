"""What the command line does to files that are there already, to pipes, and when it is interrupted."""

import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from cuzk.cli.main import main
from cuzk.errors import FormatError
from cuzk.groth16.formats.proof import read_bundle
from cuzk.groth16.formats.r1cs import R1csFile, write_r1cs
from cuzk.groth16.load import first_difference, load_key, read_any_vk, read_r1cs_system
from cuzk.groth16.own_thread import in_own_thread
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.verify import Verifier


def refused(capsys, *arguments, message):
    assert main([str(a) for a in arguments]) == 2
    assert message in capsys.readouterr().err


def test_no_output_takes_the_place_of_an_input_or_of_another_output(circuits, tmp_path, capsys):
    r1cs, key, link = tmp_path / "c.r1cs", tmp_path / "k.ckey", tmp_path / "link.ckey"
    r1cs.write_bytes(circuits["mul"].path("r1cs").read_bytes())
    setup_development(read_r1cs_system(r1cs), key)
    link.symlink_to(key)
    before = {path: path.read_bytes() for path in (r1cs, key)}
    zkey = tmp_path / "k.zkey"
    refused(capsys, "setup", r1cs, "-o", zkey, "--vkey", r1cs, message="is read by the same command")
    refused(capsys, "setup", r1cs, "-o", zkey, "--vkey", zkey, message="is written by the same command")
    refused(capsys, "key", "convert", key, "--quotients", "c-free", "-o", key, message="is read by the same command")
    refused(capsys, "key", "optimise", link, "-o", key, message="is read by the same command")
    same = tmp_path / "same"
    refused(capsys, "circuit", "mimc", "--constraints", 9, "--r1cs", same, "--wtns", same, message="is written by")
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.r1cs", "k.ckey", "link.ckey"]


def test_a_proof_that_cannot_be_written_is_refused_before_the_work(circuits, tmp_path, capsys):
    (tmp_path / "proof.bin").mkdir()
    mul = circuits["mul"]
    refused(capsys, "prove", mul.path("zkey"), mul.path("wtns"), "-o", tmp_path, message="proof.bin: is a directory")
    assert [path.name for path in tmp_path.iterdir()] == ["proof.bin"]


@pytest.mark.parametrize("verb", ("inspect", "verify", "prove", "setup"))
def test_a_pipe_without_a_writer_does_not_hold_the_reader(tmp_path, verb):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    rest = {"prove": [pipe, "-o", tmp_path / "out"], "setup": ["-o", tmp_path / "k.zkey"]}.get(verb, [])
    command = [sys.executable, "-m", "cuzk", verb, pipe, *rest]
    done = subprocess.run([str(a) for a in command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "not a regular file" in done.stderr


def test_a_bundle_of_no_proofs_is_not_valid(circuits, tmp_path, capsys):
    mul, path = circuits["mul"], tmp_path / "empty.prf"
    key = setup_development(read_r1cs_system(mul.path("r1cs")), tmp_path / "k.ckey")
    path.write_bytes(struct.pack(">QQ", 0, key.n_public) + key.to_bytes())
    with pytest.raises(FormatError, match="no proofs"):
        read_bundle(path)
    refused(capsys, "verify", path, message="no proofs")


@pytest.mark.parametrize("suffix", ("zkey", "params", "ckey"))
def test_a_bad_point_of_the_verifying_key_is_named_with_its_place(circuits, tmp_path, suffix):
    """Every byte offset that is named is that of the point which was broken."""
    mul = circuits["mul"]
    good, bad = tmp_path / f"good.{suffix}", tmp_path / f"bad.{suffix}"
    setup_development(read_r1cs_system(mul.path("r1cs")), good)
    key, data = load_key(good, mul.path("r1cs")), good.read_bytes()
    place = key.verifying_key().place
    assert place is not None
    raw = {"alpha": key.alpha_g1, "beta": key.beta_g2, "gamma": key.gamma_g2, "delta": key.delta_g2}
    raw |= {f"IC[{i}]": key.ic[i : i + 1] for i in range(key.n_public + 1)}
    for element, points in raw.items():
        _, section, at = place(element)
        if suffix != "params":
            assert data[at : at + points.nbytes] == points.tobytes(), element
        broken = bytearray(data)
        broken[at + points.nbytes - 40] ^= 1
        bad.write_bytes(broken)
        with pytest.raises(FormatError) as caught:
            Verifier(read_any_vk(bad))
        assert (caught.value.offset, caught.value.section) == (at, section)
        assert str(caught.value).startswith(f"{bad}: section {section} at byte {at}: {element}")


def test_ctrl_c_ends_a_long_native_call(tmp_path):
    """A call that would take minutes, in a process that gets SIGINT."""
    body = (
        "import numpy as np, time\n"
        "from cuzk import native\n"
        "from cuzk.groth16.own_thread import in_own_thread\n"
        "points = np.repeat(native.g1_generator(), 1 << 18, axis=0)\n"
        "print('ready', flush=True)\n"
        "in_own_thread(native.group_ntt_g1, points, 7, False, 1)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors and process.returncode != 0


def test_interruptible_passes_results_and_errors_on():
    assert in_own_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        in_own_thread(divmod, 7, 0)


def test_where_an_r1cs_differs_from_the_key_is_named(circuits, tmp_path, capsys):
    mul = circuits["mul"]
    key, other = tmp_path / "k.zkey", tmp_path / "other.r1cs"
    assert main(["setup", str(mul.path("r1cs")), "-o", str(key)]) == 0
    system = read_r1cs_system(mul.path("r1cs"))
    assert first_difference(system, system) is None
    for name in "ab":
        for row in range(system.n_constraints):
            changed = np.array(getattr(system, name).coef_id)
            term = int(getattr(system, name).row_ptr[row])
            if term == int(getattr(system, name).row_ptr[row + 1]):
                continue
            changed[term] ^= 1  # +1 and −1 are numbers 0 and 1
            theirs = replace(system, **{name: replace(getattr(system, name), coef_id=changed)})
            assert first_difference(system, theirs) == (name.upper(), row)
    header = R1csFile(mul.path("r1cs")).header
    write_r1cs(other, replace(system, a=replace(system.a, coef_id=np.array(system.a.coef_id) ^ 1)), header)
    refused(
        capsys,
        "prove",
        key,
        mul.path("wtns"),
        "-o",
        tmp_path / "o",
        "--r1cs",
        other,
        message="matrix A differs in row 0",
    )
    assert not (tmp_path / "o").exists()


def test_a_file_that_is_no_key_is_not_taken_for_params(tmp_path):
    """Without a magic it could only be .params: what is wrong with it is said before an R1CS is asked for."""
    path = tmp_path / "k.ckey"
    path.write_bytes(b"cuzk-kez" + bytes(5000))
    with pytest.raises(FormatError, match="at byte"):
        load_key(path)


def test_running_out_of_memory_is_said_with_its_exit_code(circuits, tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate 1. TiB")

    monkeypatch.setattr("cuzk.groth16.load.load_key", fail)
    mul = circuits["mul"]
    assert main(["prove", str(mul.path("zkey")), str(mul.path("wtns")), "-o", str(tmp_path / "out")]) == 3
    assert "memory does not suffice" in capsys.readouterr().err
