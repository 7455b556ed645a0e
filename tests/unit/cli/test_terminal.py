"""Terminals of any encoding, failures as JSON, and signals."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cuzk.cli.main import main


@pytest.mark.parametrize("encoding", ("ascii", "latin-1", "cp437", "koi8-r", "utf-8"))
@pytest.mark.parametrize(
    "arguments", (["show", "pw12.yaml"], ["explain", "pw12.yaml"], ["--help"], ["sim", "no\udcff·such.yaml"])
)
def test_every_encoding_of_a_terminal(encoding, arguments):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    arguments = [os.fsencode(a) for a in arguments]
    done = subprocess.run([sys.executable, "-m", "cuzk", *arguments], capture_output=True, env=environment)
    assert b"Unicode" not in done.stderr and b"internal" not in done.stderr
    assert done.returncode == {b"sim": 2, b"explain": 3}.get(arguments[0], 0)
    (done.stdout + done.stderr).decode(encoding)


def failing(capsys, *arguments):
    code = main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["schema_version"] == 1 and found["error"]["exit_code"] == code and err
    return code, found["error"]


def test_every_failure_is_one_json_document(capsys, tmp_path):
    code, error = failing(capsys, "inspect", tmp_path / "none")
    assert code == 2 and error["kind"] == "InputError" and "none" in error["message"]
    bad = tmp_path / "bad.zkey"
    bad.write_bytes(b"zkey\x02\0\0\0\0\0\0\0")
    code, error = failing(capsys, "inspect", bad)
    assert (code, error["file"], error["offset"]) == (2, str(bad), 4)
    scenario = tmp_path / "s.yaml"
    scenario.write_text("policy: {pw: many}\n")
    code, error = failing(capsys, "sim", scenario)
    assert code == 2 and error["problems"]
    with pytest.raises(SystemExit) as stop:
        main(["prove", "--json", "--nonsense"])
    found = json.loads(capsys.readouterr().out)
    assert stop.value.code == 2 and found["error"]["exit_code"] == 2 and found["error"]["message"]


def test_internal_faults_and_memory_are_documents_too(capsys, monkeypatch, tmp_path):
    for raised, code in ((MemoryError("1 TiB"), 3), (ValueError("odd"), 1)):

        def fail(*_, raised=raised):
            raise raised

        monkeypatch.setattr("cuzk.groth16.inspect.detect", fail)
        (tmp_path / "f").write_bytes(b"x" * 100)
        assert failing(capsys, "inspect", tmp_path / "f")[0] == code


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP))
def test_a_signal_leaves_nothing_behind(tmp_path, number):
    body = (
        "import signal, time\n"
        f"signal.signal({int(number)}, signal.SIG_DFL)\n"  # whoever runs the tests under nohup ignores one of them
        "from cuzk.cli import main\n"
        "from cuzk.outputs import file_set, atomic_write\n"
        "def work(args):\n"
        f"    with file_set({str(tmp_path / 'set')!r}, 'a') as stage, atomic_write({str(tmp_path / 'file')!r}) as file:\n"
        "        (stage / 'a').write_text('x')\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(60)\n"
        "main._run = work\n"
        "main.entry()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number and errors == f"cuzk: ended by {number.name}\n"
    assert list(tmp_path.iterdir()) == []
