"""Chains x ↦ (x + c_j)^5 with full-width values: the witness has next to no zeros and ones.

A block is one chain of ROUNDS rounds from a start of its own (so that blocks can be computed side by side), three
rows a round, and a row that adds its end to the accumulator. The public output is the last accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from cuzk import native
from cuzk.circuits.builtin.tiling import CONSTANT, Block, Row, Tiling
from cuzk.groth16.field import FR_MODULUS, fr_array, fr_ints

ROUNDS = 64
CHUNK_BLOCKS = 1 << 12


def round_constant(j: int) -> int:
    """c_j: BLAKE2b of the round's number, below 2^254."""
    return int.from_bytes(blake2b(j.to_bytes(4, "little"), digest_size=32, person=b"cuzk-mimc").digest(), "little") >> 2


def _chain(rounds: int) -> list[Row]:
    """Rows of a chain from local wire 0; round j writes wires 3j+1 … 3j+3."""
    rows: list[Row] = []
    for j in range(rounds):
        start = 3 * j
        shifted = ((start, 1), (CONSTANT, round_constant(j)))
        rows.append((shifted, shifted, ((start + 1, 1),)))
        rows.append((((start + 1, 1),), ((start + 1, 1),), ((start + 2, 1),)))
        rows.append((((start + 2, 1),), shifted, ((start + 3, 1),)))
    return rows


def tiling(n_constraints: int) -> Tiling:
    """The circuit with exactly this many constraints (at least 1)."""
    end = 3 * ROUNDS
    rows = [*_chain(ROUNDS), (((-1, 1), (end, 1)), ((CONSTANT, 1),), ((end + 1, 1),))]
    block = Block(tuple(rows), end + 2)
    blocks, rest = divmod(n_constraints - 1, len(rows))
    rest_rows = _chain(-(-rest // 3))[:rest]
    return Tiling(block, blocks, Block(tuple(rest_rows), rest + 1 if rest else 0))


def witness(tiling: Tiling, seed: int) -> Iterator[np.ndarray]:
    """The assignment in chunks of canonical `(n, 4)` values, from random starts of this seed."""
    rng = np.random.default_rng(seed)
    constants = native.fr_from_std(fr_array([round_constant(j) for j in range(ROUNDS)]))
    accumulator = fr_ints(_random(rng, 1))[0]
    chunks: list[np.ndarray] = []
    # The output comes second in the file but last in time: it needs the accumulators only.
    head = fr_array([1, 0, accumulator])
    for first in range(0, tiling.blocks, CHUNK_BLOCKS):
        count = min(CHUNK_BLOCKS, tiling.blocks - first)
        values = _chains(_random(rng, count), ROUNDS, constants)
        sums = []
        for end in fr_ints(values[:, -1]):
            accumulator = (accumulator + end) % FR_MODULUS
            sums.append(accumulator)
        whole = np.concatenate([values, fr_array(sums)[:, None, :]], axis=1)
        chunks.append(whole.reshape(-1, 4))
    if tiling.rest.stride:
        rounds = -(-len(tiling.rest.rows) // 3)
        chunks.append(_chains(_random(rng, 1), rounds, constants)[0, : tiling.rest.stride])
    head[1] = fr_array([accumulator])[0]
    yield head
    yield from chunks


def _random(rng: np.random.Generator, n: int) -> np.ndarray:
    values = rng.integers(0, 2**64, size=(n, 4), dtype=np.uint64)
    values[:, 3] >>= np.uint64(2)  # below 2^254 < r
    return values


def _chains(starts_std: np.ndarray, rounds: int, constants: np.ndarray) -> np.ndarray:
    """All values of chains from these starts, `(chains, 3·rounds + 1, 4)` canonical; one column at a time."""
    values = np.empty((len(starts_std), 3 * rounds + 1, 4), dtype=np.uint64)
    state = native.fr_from_std(starts_std)
    values[:, 0] = starts_std
    for j in range(rounds):
        shifted = native.fr_add(state, constants[j : j + 1])
        square = native.fr_mul(shifted, shifted)
        fourth = native.fr_mul(square, square)
        state = native.fr_mul(fourth, shifted)
        for k, column in enumerate((square, fourth, state)):
            values[:, 3 * j + 1 + k] = native.fr_to_std(column)
    return values
