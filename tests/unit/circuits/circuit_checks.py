"""Plain-integer checks that the tests of circuits share."""

import os
from pathlib import Path

import pytest

from cuzk.circuits.emitter import Emitter
from cuzk.circuits.field import MODULUS

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("CUZK_SHARED", ROOT.parent / "shared"))


def filecoin_file(name: str) -> Path:
    """A file of other people's test data, or a skip that says which one is absent."""
    path = SHARED / "fixtures" / "filecoin" / name
    if not path.exists():
        pytest.skip(f"{path} is not there (CUZK_SHARED names another folder)")
    return path


def rows_of(cs: Emitter) -> list[list[list[tuple[int, int]]]]:
    """For each row its three lists of (variable, coefficient)."""
    table = cs.library.coefficients.values
    sides = []
    for matrix in cs.matrices:
        lens, cols, ids = matrix.joined()
        at, rows = 0, []
        for n in lens.tolist():
            rows.append([(int(v), table[k]) for v, k in zip(cols[at : at + n], ids[at : at + n], strict=True)])
            at += n
        sides.append(rows)
    return [list(row) for row in zip(*sides, strict=True)]


def first_failing_row(cs: Emitter) -> int:
    """The first row that an emitter with rows and values of one instance does not satisfy, or -1."""

    def value(terms):
        return sum(k * (cs.aux_values[v] if v >= 0 else cs.input_values[~v]) for v, k in terms) % MODULUS

    for number, (a, b, c) in enumerate(rows_of(cs)):
        if value(a) * value(b) % MODULUS != value(c):
            return number
    return -1
