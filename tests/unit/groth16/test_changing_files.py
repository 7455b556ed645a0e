"""Files that shrink while they are read, pipes, and mappings for which there is no room."""

import contextlib
import errno
import gc
import mmap
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

from cuzk import native
from cuzk.cli.main import main
from cuzk.errors import FormatError, InputError, OutOfMemoryError
from cuzk.groth16.formats import files
from cuzk.groth16.formats.files import map_file, require_unchanged
from cuzk.groth16.load import load_key, open_witness
from cuzk.groth16.prover import run as prover

PAGE = mmap.PAGESIZE


@pytest.fixture(autouse=True)
def _nothing_mapped_before():
    gc.collect()
    files._piped.clear()
    yield
    gc.collect()


@pytest.mark.parametrize("read", ("numpy", "native", "write"))
def test_a_mapped_file_that_shrinks_is_named(tmp_path, read):
    path, other = tmp_path / "big", tmp_path / "other"
    values = np.ones((4 * PAGE, 4), dtype=np.uint64)
    path.write_bytes(values.tobytes())
    other.write_bytes(b"x" * PAGE)
    data, intact = map_file(path), map_file(other)
    require_unchanged()
    os.truncate(path, PAGE)
    if read == "numpy":
        assert int(data.view(np.uint64).sum()) == PAGE // 8  # the rest reads as zeros
    elif read == "native":
        assert native.fr_less_than_r(data.view(np.uint64).reshape(-1, 4)) == -1
    else:
        with pytest.raises(InputError, match="big: became shorter"), files.atomic_write(tmp_path / "copy") as copy:
            copy.write(data.data)
        assert not (tmp_path / "copy").exists()
    with pytest.raises(InputError, match=f"{path}: became shorter while it was read: {PAGE} bytes"):
        require_unchanged()
    del data
    gc.collect()
    require_unchanged()
    assert bytes(intact[:1]) == b"x"


def test_a_bus_error_elsewhere_still_ends_the_process(tmp_path):
    body = (
        "import mmap, os, sys\n"
        "from cuzk.groth16.formats.files import map_file\n"
        "path = sys.argv[1]\n"
        "open(path, 'wb').write(bytes(3 * mmap.PAGESIZE))\n"
        "guarded = map_file(path)\n"
        "with open(path, 'r+b') as file: own = mmap.mmap(file.fileno(), 0)\n"
        "os.truncate(path, 1)\n"
        "print(guarded[-1], flush=True)\n"
        "own[-1]\n"
    )
    done = subprocess.run([sys.executable, "-c", body, str(tmp_path / "f")], capture_output=True, text=True)
    assert done.stdout == "0\n" and done.returncode == -7


@pytest.mark.parametrize("which", ("key", "witness"))
def test_a_proof_from_a_file_that_shrank_names_it_and_the_next_proof_is_made(circuits, tmp_path, monkeypatch, which):
    chain = circuits["chain1k"]
    paths = {"key": tmp_path / "k.zkey", "witness": tmp_path / "w.wtns"}
    for name, suffix in (("key", "zkey"), ("witness", "wtns")):
        shutil.copy(chain.path(suffix), paths[name])
    key = load_key(paths["key"])
    witness = open_witness(paths["witness"])(key)
    real = prover.steps.matvec

    def shrink(state):
        os.truncate(paths[which], 3 * PAGE)
        real(state)

    monkeypatch.setattr(prover.steps, "matvec", shrink)
    with pytest.raises(InputError, match=f"{paths[which]}: became shorter"):
        prover.prove(key, witness)
    monkeypatch.setattr(prover.steps, "matvec", real)
    del witness
    gc.collect()
    if which == "witness":
        made = prover.prove(key, open_witness(chain.path("wtns"))(key))
        assert len(made.public) == 2


def test_the_command_line_says_so_whatever_it_concluded(circuits, tmp_path, capsys, monkeypatch):
    path = tmp_path / "k.zkey"
    shutil.copy(circuits["chain1k"].path("zkey"), path)
    kept = []

    def inspect(name):
        kept.append(map_file(name))
        os.truncate(name, PAGE)
        assert not kept[0][-1]
        return {"file": str(name), "kind": "odd", "size_bytes": 1, "curve": ""}

    monkeypatch.setattr("cuzk.groth16.inspect.inspect", inspect)
    assert main(["inspect", str(path)]) == 2
    assert f"cuzk: {path}: became shorter" in capsys.readouterr().err


def test_no_room_for_a_mapping_is_out_of_memory(tmp_path, monkeypatch, capsys):
    path = tmp_path / "f.zkey"
    path.write_bytes(b"zkey")

    def refuse(*_, **__):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(OutOfMemoryError, match=r"f\.zkey: Cannot allocate"):
        map_file(path)
    assert main(["inspect", str(path)]) == 3


def test_small_inputs_come_through_pipes(circuits, tmp_path, capsys):
    mul = circuits["mul"]
    sources = [mul.file(name) for name in ("verification_key.json", "public.json", "proof.json")]
    pipes = [tmp_path / f"pipe{i}" for i in range(3)]
    for pipe in pipes:
        os.mkfifo(pipe)
    feeders = [threading.Thread(target=p.write_bytes, args=(s.read_bytes(),)) for p, s in zip(pipes, sources, strict=True)]
    for feeder in feeders:
        feeder.start()
    assert main(["verify", *map(str, pipes)]) == 0
    for feeder in feeders:
        feeder.join(10)
    done = subprocess.run(
        f"cat {mul.path('wtns')} | {sys.executable} -m cuzk inspect /dev/stdin --json", shell=True, capture_output=True, text=True
    )
    assert done.returncode == 0 and f'"size_bytes": {mul.path("wtns").stat().st_size}' in done.stdout, done.stderr


def test_too_much_through_a_pipe_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SMALL_BYTES", 1 << 16)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed():
        with contextlib.suppress(BrokenPipeError):
            pipe.write_bytes(bytes(1 << 20))

    feeder = threading.Thread(target=feed)
    feeder.start()
    with pytest.raises(FormatError, match="through a pipe"):
        map_file(pipe)
    feeder.join(10)
