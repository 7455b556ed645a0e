"""Reading the matrix files of curio's prover (`PCE\\x02`): CSR of A, B, C with Montgomery coefficients.

Header, 32 B little-endian: 4 B magic, u32 version 2, u32 inputs, u32 aux, u32 constraints, u64 nonzeros in all (at
byte 20 or, aligned, at 24). Per matrix: u64 count and row pointers u32, u64 count and columns u32, u64 count and
values 32 B. Density words follow. A column is an input's index, or inputs + aux index. Layout from that project's
published description; no file of it was at hand to check against.
"""

from __future__ import annotations

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix
from cuzk.groth16.field import FR_MODULUS, first_not_below
from cuzk.groth16.formats.files import Path, map_file, unpack

MAGIC = b"PCE\x02"
HEADER_BYTES = 32


class CurioPceFile:
    """An indexed file."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, map_file(path)
        if len(self.data) < HEADER_BYTES:
            raise FormatError(path, f"{len(self.data)} bytes cannot hold the header", offset=0)
        if self.data[:4].tobytes() != MAGIC:
            raise FormatError(path, "not a PCE file of version 2", offset=0)
        self.n_inputs: int
        self.n_aux: int
        self.n_constraints: int
        version, self.n_inputs, self.n_aux, self.n_constraints = unpack("<IIII", self.data, 4)
        if version != 2:
            raise FormatError(path, f"version {version} is not supported (expected 2)", offset=4)
        if self.n_wires > len(self.data):
            raise FormatError(path, f"claims {self.n_wires} wires, more than the file has bytes", offset=8)
        if not self.n_inputs:
            raise FormatError(path, "has no inputs, not even the constant one", offset=8)
        self._views: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._places: dict[str, tuple[int, int, int]] = {}
        at = HEADER_BYTES
        for name in "abc":
            row_ptr, col_at = self._list(name, at, "<u4", 4)
            col, values_at = self._list(name, col_at, "<u4", 4)
            values, end = self._list(name, values_at, "<u8", 32)
            self._places[name] = (at + 8, col_at + 8, values_at + 8)
            if len(row_ptr) != self.n_constraints + 1:
                message = f"has {len(row_ptr)} row pointers, expected {self.n_constraints + 1}"
                raise FormatError(path, message, section=name, offset=at)
            if len(col) != len(values):
                raise FormatError(path, f"has {len(col)} columns but {len(values)} values", section=name, offset=values_at)
            self._views[name], at = (row_ptr, col, values), end
        total = sum(len(view[1]) for view in self._views.values())
        claims = [unpack("<Q", self.data, at)[0] for at in (20, 24)]
        if total not in claims:
            raise FormatError(path, f"the matrices have {total} terms, the header claims {claims[0]} or {claims[1]}", offset=20)

    def _list(self, name: str, at: int, dtype: str, size: int) -> tuple[np.ndarray, int]:
        if len(self.data) - at < 8:
            raise FormatError(self.path, "the file ends before a count", offset=at, section=name)
        (count,) = unpack("<Q", self.data, at)
        if count * size > len(self.data) - at - 8:
            message = f"claims {count} entries of {size} bytes, the file has {len(self.data) - at - 8} bytes left"
            raise FormatError(self.path, message, offset=at, section=name)
        end = at + 8 + count * size
        view = self.data[at + 8 : end].view(dtype)
        return (view.reshape(-1, 4) if size == 32 else view), end

    @property
    def n_wires(self) -> int:
        return self.n_inputs + self.n_aux

    @property
    def nonzeros(self) -> dict[str, int]:
        return {name: len(view[1]) for name, view in self._views.items()}

    def constraints(self) -> ConstraintSystem:
        """The matrices; those of the inputs are added unless the file has them. Raises FormatError at the first bad
        index.
        """
        table = CoefficientTable("mont")
        matrices = []
        for name, (row_ptr, col, values) in self._views.items():
            places = self._places[name]
            if row_ptr[0] != 0 or row_ptr[-1] != len(col) or bool((row_ptr[1:] < row_ptr[:-1]).any()):
                message = "row pointers do not rise from 0 to the number of terms"
                raise FormatError(self.path, message, section=name, offset=places[0])
            if len(col) and int(col.max()) >= self.n_wires:
                bad = int(np.argmax(col >= self.n_wires))
                message = f"names wire {col[bad]}; there are {self.n_wires}"
                raise FormatError(self.path, message, section=name, offset=places[1] + 4 * bad)
            bad = first_not_below(values, FR_MODULUS)
            if bad >= 0:
                message = f"value {bad} is not below the field's modulus"
                raise FormatError(self.path, message, section=name, offset=places[2] + 32 * bad)
            ids = table.number(np.ascontiguousarray(values))
            matrices.append(SparseMatrix(row_ptr.astype(np.uint64), np.ascontiguousarray(col), ids))
        a, b, c = matrices
        has_input_rows = self._ends_with_input_rows(a)
        n_constraints = self.n_constraints - (self.n_inputs if has_input_rows else 0)
        system = ConstraintSystem(self.n_wires, self.n_inputs - 1, n_constraints, table, a, b, c, has_input_rows)
        return system.with_input_rows()

    def _ends_with_input_rows(self, a: SparseMatrix) -> bool:
        """Whether the last rows of A are 1·input, one for each in order: then they need not be added."""
        first = a.rows - self.n_inputs
        if first < 0:
            return False
        start = int(a.row_ptr[first])
        lengths = np.diff(a.row_ptr[first:])
        return (
            bool((lengths == 1).all()) and np.array_equal(a.col[start:], np.arange(self.n_inputs)) and not a.coef_id[start:].any()
        )
