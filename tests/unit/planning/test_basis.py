"""The basis of a prediction says what was not measured: a card, a placement, a range."""

import pytest

from cuzk.model.scenario import load_scenario
from cuzk.planning.basis import basis


@pytest.mark.parametrize("file, sets, expected", [
    ("phase12-pw10", [], "measured"),
    ("phase12-pw10", ["policy.gt=8"], "interpolated"),
    ("phase12-pw10", ["machine.gpus=[{card: L4}]"], "other-card"),
    ("own-h200", [], "measured"),
    ("own-h200", ["policy.srs=pinned"], "other-policy"),
    ("own-h200", ["policy.srs=mmap", "policy.prep_msm=cpu"], "other-policy"),
])  # fmt: skip
def test_what_was_not_measured_is_said(file, sets, expected):
    found = basis(load_scenario(f"scenarios/{file}.yaml", sets))
    assert found["basis"] == expected and found["why"] and 0 < found["error"] < 1
