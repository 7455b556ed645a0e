"""Where output goes: pipes that close, full disks, devices, names that no file can have; Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from cuzk.cli.main import main
from cuzk.report.files import write_text

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FITS, OOM = str(SCENARIOS / "phase12-pw10.yaml"), str(SCENARIOS / "pw12.yaml")


def cuzk(*args, **more):
    return subprocess.Popen([sys.executable, "-m", "cuzk", *args], stderr=subprocess.PIPE, text=True, **more)


@pytest.mark.parametrize("args", [["--help"], ["schema"], ["sim", FITS, "--json"], ["show", FITS, "--yaml"], ["sim", "--help"]])
def test_a_reader_that_leaves_early_ends_it_silently(args):
    read, write = os.pipe()
    os.close(read)
    process = cuzk(*args, stdout=write)
    os.close(write)
    assert process.communicate()[1] == ""
    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("args", [["--help"], ["schema"], ["sim", FITS]])
def test_a_full_disk_is_one_line(args):
    with open("/dev/full", "w") as full:
        process = cuzk(*args, stdout=full)
        error = process.communicate()[1]
    assert process.returncode == 2
    assert error == "cuzk: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("option", ["--trace", "--html"])
@pytest.mark.parametrize("name", ["", ".", "none/there.x"])
def test_an_output_that_cannot_be_is_refused_before_the_work(option, name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sim", "no-such-scenario.yaml", option, name]) == 2
    error = capsys.readouterr().err
    assert (name or "''") in error and "no-such-scenario" not in error
    assert list(tmp_path.iterdir()) == []


def test_a_fifo_stays_a_fifo(tmp_path):
    fifo = tmp_path / "out"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE, text=True)
    write_text(fifo, "text")
    assert reader.communicate()[0] == "text"
    assert fifo.is_fifo() and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("option", ["--seeds", "--explore", "--bench"])
@pytest.mark.parametrize("count", ["0", "-1", "1e3", "99999999999", "²"])
def test_counts_are_whole_numbers_within_reason(option, count, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sim", FITS, f"{option}={count}"])
    assert stop.value.code == 2
    assert "from 1 to 100,000" in capsys.readouterr().err


def test_ctrl_c_ends_every_process_with_one_line():
    process = cuzk("sim", FITS, "--seeds", "100000", "--json", stdout=subprocess.PIPE, start_new_session=True)
    time.sleep(3.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, error) == ("", "cuzk: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_who_is_killed_leaves_no_process_behind():
    process = cuzk("sim", FITS, "--seeds", "100000", "--json", stdout=subprocess.PIPE, start_new_session=True)
    with process:
        deadline = time.monotonic() + 30
        while not psutil.Process(process.pid).children() and time.monotonic() < deadline:
            time.sleep(0.1)
        children = psutil.Process(process.pid).children()
        process.kill()
        assert process.wait(30) == -signal.SIGKILL
        if len(os.sched_getaffinity(0)) > 1:
            assert children
        assert psutil.wait_procs(children, timeout=30)[1] == []


@pytest.mark.parametrize("more", [[], ["--seeds", "3"], ["--explore", "3"], ["--check"]])
def test_the_document_is_alone_on_stdout_and_the_same_each_time(more, capsys):
    texts = []
    for _ in range(2):
        code = main(["sim", OOM, "--json", "--no-fix", *more])
        assert code == (0 if more == ["--check"] else 3)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["schema_version"] == 1
