"""`cuzk explain`: the exit code says what `cuzk sim` says."""

from pathlib import Path

import pytest

from cuzk.cli.main import main

SCENARIOS = Path(__file__).parents[3] / "scenarios"


@pytest.mark.parametrize("name", ["pw12", "phase12-pw10"])
def test_an_explanation_exits_as_the_simulation(name, capsys):
    path = str(SCENARIOS / f"{name}.yaml")
    codes = [main([verb, path, *more]) for verb, more in (("sim", ["--no-fix"]), ("explain", ["--no-changes"]))]
    assert codes[0] == codes[1] == (3 if name == "pw12" else 0)
