"""Boolean gates over words of WORD bits: about 99 % of the witness is 0 or 1, as in circuits made of SHA-256.

A block takes WORD bits (a row b·(1 − b) = 0 each), their exclusive ors with the next bit, their ands with the bit
STEP further, packs the ors into a number, and adds that to the accumulator. The public output is the last
accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuzk.circuits.builtin.tiling import CONSTANT, Block, Row, Tiling
from cuzk.groth16.field import FR_MODULUS, fr_array

WORD, STEP = 64, 7
CHUNK_BLOCKS = 1 << 14


def _boolean(bit: int) -> Row:
    return ((bit, 1),), ((CONSTANT, 1), (bit, -1)), ()


def tiling(n_constraints: int) -> Tiling:
    """The circuit with exactly this many constraints (at least 1)."""
    rows = [_boolean(i) for i in range(WORD)]
    for i in range(WORD):
        left, right, result = i, (i + 1) % WORD, WORD + i
        rows.append((((left, 2),), ((right, 1),), ((left, 1), (right, 1), (result, -1))))
    for i in range(WORD):
        rows.append((((i, 1),), (((i + STEP) % WORD, 1),), ((2 * WORD + i, 1),)))
    number = 3 * WORD
    rows.append((tuple((WORD + i, 1 << i) for i in range(WORD)), ((CONSTANT, 1),), ((number, 1),)))
    rows.append((((-1, 1), (number, 1)), ((CONSTANT, 1),), ((number + 1, 1),)))
    block = Block(tuple(rows), number + 2)
    blocks, rest = divmod(n_constraints - 1, len(rows))
    return Tiling(block, blocks, Block(tuple(_boolean(i) for i in range(rest)), rest))


def witness(tiling: Tiling, seed: int) -> Iterator[np.ndarray]:
    """The assignment in chunks of canonical `(n, 4)` values, from random bits of this seed."""
    accumulators = _accumulators(tiling, seed)
    yield fr_array([1, accumulators[-1], accumulators[0]])
    at = 0
    for bits in _words(tiling, seed):
        xor, both = bits ^ np.roll(bits, -1, axis=1), bits & np.roll(bits, -STEP, axis=1)
        values = np.zeros((len(bits), tiling.block.stride, 4), dtype=np.uint64)
        values[:, : 3 * WORD, 0] = np.concatenate([bits, xor, both], axis=1)
        values[:, 3 * WORD, 0] = _packed(xor)
        values[:, 3 * WORD + 1] = fr_array(accumulators[at + 1 : at + 1 + len(bits)])
        at += len(bits)
        yield values.reshape(-1, 4)
    rest = np.zeros((tiling.rest.stride, 4), dtype=np.uint64)
    rest[:, 0] = np.random.default_rng([seed, 1]).integers(0, 2, size=tiling.rest.stride)
    yield rest


def _words(tiling: Tiling, seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    for first in range(0, tiling.blocks, CHUNK_BLOCKS):
        yield rng.integers(0, 2, size=(min(CHUNK_BLOCKS, tiling.blocks - first), WORD), dtype=np.uint8)


def _packed(bits: np.ndarray) -> np.ndarray:
    """Rows of 64 bits, least significant first, as u64."""
    return np.packbits(bits, axis=1, bitorder="little").view("<u8")[:, 0]


def _accumulators(tiling: Tiling, seed: int) -> list[int]:
    """The first accumulator (1: nothing is added yet) and that of each block."""
    values = [1]
    for bits in _words(tiling, seed):
        for number in _packed(bits ^ np.roll(bits, -1, axis=1)).tolist():
            values.append((values[-1] + number) % FR_MODULUS)
    return values
