"""Verbs, exit codes and errors of the command line."""

import subprocess
import sys

import pytest

from cuzk.cli.main import VERBS, main


def test_help_names_every_verb_and_exit_code(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for group in VERBS.values():
        for verb in group:
            assert f"  {verb}" in text
    assert "130 interrupted" in text


# INV-17
@pytest.mark.parametrize("verb", [verb for group in VERBS.values() for verb in group])
def test_every_verb_has_help_without_heavy_imports(verb):
    code = (
        "import sys; from cuzk.cli.main import main\n"
        f"try: main([{verb!r}, '--help'])\n"
        "except SystemExit as e: assert e.code == 0, e.code\n"
        "heavy = {'cupy', 'plotly', 'simpy', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_mistyped_verb_is_named_with_a_suggestion(capsys):
    assert main(["smi"]) == 2
    assert "did you mean 'sim'" in capsys.readouterr().err


def test_no_verb_shows_the_help_and_fails(capsys):
    assert main([]) == 2
    assert "usage" in capsys.readouterr().out


# INV-15
def test_a_missing_file_is_one_line(capsys, tmp_path):
    assert main(["sim", str(tmp_path / "none.yaml")]) == 2
    error = capsys.readouterr().err
    assert "none.yaml" in error and "Traceback" not in error
    assert len(error.strip().splitlines()) == 1


def test_doctor_runs_anywhere(capsys):
    assert main(["doctor"]) == 0
    assert "ram" in capsys.readouterr().out
