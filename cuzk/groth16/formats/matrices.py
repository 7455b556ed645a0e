"""Matrices in cuzk's mapped files: `.pce` alone, and as a part of `.ckey`.

For X in a, b, c: X_row_ptr (rows+1) u64, X_col u32, X_coef u16 or u32; coef_table (k, 4) mont with +1 and −1 first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix
from cuzk.groth16.field import FR_MODULUS, FR_R, first_not_below, fr_array
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.mapped import MappedArray, MappedFile, write_mapped
from cuzk.groth16.template.system import System

PCE_MAGIC = b"cuzk-pce"


def coef_id_dtype(table_size: int) -> type[np.unsignedinteger]:
    """The narrower of u16 and u32 that numbers all coefficients."""
    return np.uint16 if table_size <= 1 << 16 else np.uint32


def matrix_arrays(system: ConstraintSystem, names: str = "abc") -> dict[str, MappedArray]:
    """The arrays of a system with input rows, to write."""
    table = system.table_mont
    arrays = {"coef_table": MappedArray.of(table)}
    for name in names:
        matrix = getattr(system, name)
        if matrix is None:
            continue
        arrays[f"{name}_row_ptr"] = MappedArray.of(matrix.row_ptr)
        arrays[f"{name}_col"] = MappedArray.of(matrix.col)
        arrays[f"{name}_coef"] = MappedArray.of(matrix.coef_id.astype(coef_id_dtype(len(table)), copy=False))
    return arrays


def system_metadata(system: System) -> dict[str, Any]:
    """The header fields that `read_system` needs."""
    return {"n_wires": system.n_wires, "n_public": system.n_public, "n_constraints": system.n_constraints}


def read_system(mapped: MappedFile) -> ConstraintSystem:
    """The matrices of a mapped file. Raises FormatError at the first index that is out of range."""
    n_public = mapped.integer("n_public", 0, 2**32 - 2)
    n_wires = mapped.integer("n_wires", n_public + 1, 2**32)
    n_constraints = mapped.integer("n_constraints", 0, 2**32)
    if n_wires > len(mapped.data):
        raise FormatError(mapped.path, f"the header claims {n_wires} wires, more than the file has bytes", offset=16)
    table = read_table(mapped)
    rows = {"a": n_constraints + n_public + 1, "b": None, "c": n_constraints}
    matrices: list[SparseMatrix | None] = []
    for name, count in rows.items():
        if name == "c" and "c_row_ptr" not in mapped:
            matrices.append(None)
            continue
        matrices.append(_read_matrix(mapped, name, count, n_wires, len(table)))
    a, b, c = matrices
    assert a is not None and b is not None
    if b.rows not in (n_constraints, a.rows):
        raise mapped.error("b_row_ptr", f"has {b.rows} rows, expected {n_constraints}")
    coefficients = CoefficientTable.from_mont(table)
    return ConstraintSystem(n_wires, n_public, n_constraints, coefficients, a, b, c, has_input_rows=True)


def read_table(mapped: MappedFile) -> np.ndarray:
    """The coefficients, `(k, 4)` mont. Raises FormatError unless all are below r and the first are +1 and −1."""
    table = mapped.array("coef_table", "u8", (-1, 4))
    bad = first_not_below(table, FR_MODULUS)
    if bad >= 0:
        raise mapped.error("coef_table", f"value {bad} is not below the field's modulus", 32 * bad)
    if len(table) < 2 or not np.array_equal(table[:2], fr_array([FR_R, -FR_R % FR_MODULUS])):
        raise mapped.error("coef_table", "does not begin with +1 and −1")
    return table


def _read_matrix(mapped: MappedFile, name: str, rows: int | None, n_wires: int, table_size: int) -> SparseMatrix:
    row_ptr = mapped.array(f"{name}_row_ptr", "u8", (-1,))
    col = mapped.array(f"{name}_col", "u4", (-1,))
    coef = mapped.array(f"{name}_coef", "u2" if coef_id_dtype(table_size) is np.uint16 else "u4", (len(col),))
    if len(row_ptr) == 0 or (rows is not None and len(row_ptr) != rows + 1):
        raise mapped.error(f"{name}_row_ptr", f"has {len(row_ptr)} entries, expected {rows} and one")
    if row_ptr[0] != 0 or row_ptr[-1] != len(col) or bool((row_ptr[1:] < row_ptr[:-1]).any()):
        falls = np.flatnonzero(row_ptr[1:] < row_ptr[:-1])
        at = 0 if row_ptr[0] != 0 else 8 * (int(falls[0]) + 1 if len(falls) else len(row_ptr) - 1)
        raise mapped.error(f"{name}_row_ptr", "does not rise from 0 to the number of terms", at)
    if len(col) and int(col.max()) >= n_wires:
        bad = int(np.argmax(col >= n_wires))
        raise mapped.error(f"{name}_col", f"names wire {col[bad]}; there are {n_wires}", 4 * bad)
    if len(coef) and int(coef.max()) >= table_size:
        bad = int(np.argmax(coef >= table_size))
        raise mapped.error(f"{name}_coef", f"names coefficient {coef[bad]}; there are {table_size}", coef.itemsize * bad)
    return SparseMatrix(row_ptr, col, coef)


def write_pce(path: Path, system: System) -> None:
    """Write the matrices of a system (input rows are added, a template is expanded) as a mapped file."""
    system = system.with_input_rows().expanded()
    write_mapped(path, PCE_MAGIC, {"kind": "matrices", **system_metadata(system)}, matrix_arrays(system))


def read_pce(path: Path) -> ConstraintSystem:
    """Map a `.pce` file."""
    return read_system(MappedFile(path, PCE_MAGIC, "matrix file (.pce)"))
