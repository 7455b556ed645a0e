"""Plain-integer checks that the tests of circuits share."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from cuzk import native
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


def system_digest(template, chunk_rows=1 << 18) -> str:
    """SHA-256 over all rows in order without those of the inputs. For A, B, C of each row: u32 number of terms, then the terms
    by kind and number: u8 kind (0 input, 1 aux), u32 number in its kind, 32 bytes of coefficient; all little-endian."""
    digest = hashlib.sha256()
    table = native.fr_to_std(template.coefficients_mont).view(np.uint8).reshape(-1, 32)
    matrices = [template.expand(m) for m in range(3)]
    for first in range(0, template.n_constraints, chunk_rows):
        last = min(first + chunk_rows, template.n_constraints)
        lens = np.stack([np.diff(ptr[first : last + 1].astype(np.int64)) for ptr, _, _ in matrices], axis=1)
        sizes = 4 + 37 * lens
        starts = np.cumsum(sizes.reshape(-1)).reshape(sizes.shape) - sizes
        out = np.zeros(int(sizes.sum()), np.uint8)
        out[starts.reshape(-1)[:, None] + np.arange(4)] = lens.astype("<u4").reshape(-1)[:, None].view(np.uint8)
        for m, (ptr, col, ids) in enumerate(matrices):
            terms = slice(int(ptr[first]), int(ptr[last]))
            row = np.repeat(np.arange(last - first), lens[:, m])
            order = np.lexsort((col[terms], row))
            wires, numbers, row = col[terms][order].astype(np.int64), ids[terms][order], row[order]
            within = np.arange(len(row)) - np.repeat(np.cumsum(lens[:, m]) - lens[:, m], lens[:, m])
            at = starts[row, m] + 4 + 37 * within
            is_aux = wires >= template.n_inputs
            out[at] = is_aux
            index = (wires - np.where(is_aux, template.n_inputs, 0)).astype("<u4")
            out[at[:, None] + np.arange(1, 5)] = index[:, None].view(np.uint8)
            out[at[:, None] + np.arange(5, 37)] = table[numbers]
        digest.update(out)
    return digest.hexdigest()
