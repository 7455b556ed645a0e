"""Axes of a sweep as they are written."""

import pytest

from cuzk.errors import InputError
from cuzk.planning.grid import Axis, count, parse_axis, settings


@pytest.mark.parametrize("text, key, values", [
    ("policy.pw=1-4", "policy.pw", ("1", "2", "3", "4")),
    ("policy.pw=2-9:3,20", "policy.pw", ("2", "5", "8", "20")),
    ("machine.ram=128GiB, 256GiB", "machine.ram", ("128GiB", "256GiB")),
    ("machine.gpus=[{card: RTX 4090, count: 2}],[]", "machine.gpus", ("[{card: RTX 4090, count: 2}]", "[]")),
    ("policy.prestage=off,off", "policy.prestage", ("off",)),
    ("workload.arrivals='a,b'", "workload.arrivals", ("'a,b'",)),
])  # fmt: skip
def test_values(text, key, values):
    assert parse_axis(text) == Axis(key, values)


@pytest.mark.parametrize(
    "text", ["policy.pw", "=1", "policy..pw=1", "policy.pw=", "policy.pw=1,,2", "policy.pw=5-1", "policy.pw=1-99999"]
)
def test_what_is_no_axis(text):
    with pytest.raises(InputError, match="--over"):
        parse_axis(text)


def test_the_grid():
    axes = [Axis("a", ("1", "2")), Axis("b", ("x", "y", "z"))]
    assert count(axes) == 6 and list(settings(axes))[1] == {"a": "1", "b": "y"}
    with pytest.raises(InputError, match="swept twice"):
        count([axes[0], axes[0]])
    with pytest.raises(InputError, match="fewer values"):
        count([Axis(str(i), tuple("0123456789")) for i in range(7)])
