"""A constraint system that repeats one block: its matrices and its file follow from the block by shifting wires.

Wires: 0 = ONE, 1 = the public output, 2 = the first accumulator, then `stride` wires a block; the last wire of a
block is its accumulator. Rows: the blocks', a shorter rest so that any number of rows is possible, and at last
(accumulator)·1 = output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix
from cuzk.groth16.field import FR_MODULUS, fr_array
from cuzk.groth16.formats.r1cs import R1csHeader

ONE_WIRE, OUTPUT_WIRE, FIRST_BLOCK = 0, 1, 3  # 2: the first accumulator
CONSTANT = -2
"""The constant one as a local wire. −1 is the accumulator of the block before; 0 … stride−1 are the block's own wires."""

Term = tuple[int, int]
"""(local wire, coefficient)."""
Row = tuple[tuple[Term, ...], tuple[Term, ...], tuple[Term, ...]]


@dataclass(frozen=True)
class Block:
    """Constraints over `stride` wires of its own and the accumulator before it."""

    rows: tuple[Row, ...]
    stride: int


@dataclass(frozen=True)
class Tiling:
    """`blocks` copies of a block, then the rest (a block of its own) and the output row."""

    block: Block
    blocks: int
    rest: Block
    """Rows that fill up to the size asked for; its −1 is the accumulator of the last block."""

    @property
    def n_constraints(self) -> int:
        return self.blocks * len(self.block.rows) + len(self.rest.rows) + 1

    @property
    def n_wires(self) -> int:
        return FIRST_BLOCK + self.blocks * self.block.stride + self.rest.stride

    @property
    def last_accumulator(self) -> int:
        return FIRST_BLOCK + self.blocks * self.block.stride - 1

    def header(self) -> R1csHeader:
        return R1csHeader(self.n_wires, 1, 0, 1, self.n_wires, self.n_constraints)

    def system(self) -> ConstraintSystem:
        """The whole system. About 8 bytes a term and 8 a row and matrix."""
        table = CoefficientTable("std")
        a, b, c = (self._matrix(number, table) for number in range(3))
        return ConstraintSystem(self.n_wires, 1, self.n_constraints, table, a, b, c)

    def _matrix(self, number: int, table: CoefficientTable) -> SparseMatrix:
        parts = [_tiled(self.block, number, FIRST_BLOCK, self.blocks, table)]
        parts.append(_tiled(self.rest, number, self.last_accumulator + 1, 1, table))
        output = ((self.last_accumulator, ONE_WIRE, OUTPUT_WIRE)[number],)
        parts.append((np.array([1]), np.array(output, dtype=np.uint32), np.zeros(1, dtype=np.uint32)))
        counts = np.concatenate([p[0] for p in parts])
        pointers = np.zeros(len(counts) + 1, dtype=np.uint64)
        np.cumsum(counts, out=pointers[1:])
        return SparseMatrix(pointers, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts]))


def _tiled(
    block: Block, number: int, base: int, copies: int, table: CoefficientTable
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Terms a row, columns and coefficient ids of one matrix of `copies` blocks from wire `base` on."""
    terms = [term for row in block.rows for term in row[number]]
    counts = np.tile(np.array([len(row[number]) for row in block.rows], dtype=np.int64), copies)
    local = np.array([wire for wire, _ in terms], dtype=np.int64)
    ids = np.zeros(0, dtype=np.uint32)
    if terms:
        ids = table.number(fr_array([coefficient % FR_MODULUS for _, coefficient in terms]))
    shifts = base + block.stride * np.arange(copies, dtype=np.int64)
    col = local[None, :] + shifts[:, None]
    col[:, local == CONSTANT] = ONE_WIRE
    return counts, col.astype(np.uint32).reshape(-1), np.tile(ids, copies)
