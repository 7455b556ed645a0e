"""Sparse combinations of key points: Σ coefficient·point over each row of a matrix (of columns, when transposed).

A row with many wide coefficients (the constant wire of a circuit full of round constants) is a multi-scalar
multiplication of its own, which costs a small part of as many single multiplications; all other rows are combined
side by side.
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.groth16.constraints import SparseMatrix

MANY_WIDE_TERMS = 32
"""A row with at least so many coefficients other than ±1 is worth an MSM."""


def combine(matrix: SparseMatrix, table_mont: np.ndarray, points: np.ndarray, first: int, last: int) -> np.ndarray:
    """Rows first … last−1 over points of G1 (n, 12) or G2 (n, 24): one point a row."""
    pointers = matrix.row_ptr[first : last + 1]
    start, end = int(pointers[0]), int(pointers[-1])
    pointers = np.ascontiguousarray(pointers - pointers[0])
    col, coef = np.ascontiguousarray(matrix.col[start:end]), np.ascontiguousarray(matrix.coef_id[start:end])
    wide_before = np.concatenate([[0], np.cumsum(coef > 1)])
    heavy = np.flatnonzero(np.diff(wide_before[pointers.astype(np.int64)]) >= MANY_WIDE_TERMS)
    if not len(heavy):
        return _light(pointers, col, coef, table_mont, points)
    lengths = np.diff(pointers)
    lengths[heavy] = 0
    light_pointers = np.zeros_like(pointers)
    np.cumsum(lengths, out=light_pointers[1:])
    keep = np.ones(len(col), dtype=bool)
    for row in heavy:
        keep[int(pointers[row]) : int(pointers[row + 1])] = False
    result = _light(light_pointers, col[keep], coef[keep], table_mont, points)
    msm = native.msm_g1 if points.shape[1] == 12 else native.msm_g2
    for row in heavy:
        terms = slice(int(pointers[row]), int(pointers[row + 1]))
        result[row] = msm(points[col[terms]], native.fr_to_std(table_mont[coef[terms]]))[0]
    return result


def _light(pointers: np.ndarray, col: np.ndarray, coef: np.ndarray, table_mont: np.ndarray, points: np.ndarray) -> np.ndarray:
    rows = native.sparse_combine_g1 if points.shape[1] == 12 else native.sparse_combine_g2
    return rows(pointers, col, coef, table_mont, points)
