"""Poseidon over the scalar field: round constants, MDS matrix, and the optimised form used by Filecoin.

Round constants come from the Grain LFSR of the Poseidon paper (section F of its appendix), the MDS matrix is the
Cauchy matrix 1/(i + j + t). In the optimised form the constants are moved behind the S-boxes ("compressed"), the
matrix of the last full round before the partial ones absorbs a dense factor ("pre-sparse"), and each partial round
multiplies by a sparse matrix only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from cuzk.circuits.field import MODULUS, NUM_BITS

FULL_ROUNDS = 8
RANDOMNESS_TAG = 1 << 40
"""The domain tag, in place of 2^arity - 1, of hashes that are not nodes of a tree."""
PARTIAL_ROUNDS = {2: 55, 4: 56, 8: 57, 11: 57}
"""By arity, for 128-bit security with alpha = 5."""

Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]


@dataclass(frozen=True)
class PoseidonConstants:
    arity: int
    partial_rounds: int
    domain_tag: int
    round_constants: Matrix
    """(full + partial) rounds × width, as in the paper."""
    mds: Matrix
    compressed: Vector
    """width before the first S-boxes, width behind each S-box layer of a full round but the last, 1 a partial round."""
    pre_sparse: Matrix
    sparse: tuple[tuple[Vector, Vector], ...]
    """For each partial round: the first column (width) and the rest of the first row (width - 1)."""

    @property
    def width(self) -> int:
        return self.arity + 1


def _grain(width: int, full_rounds: int, partial_rounds: int) -> Iterator[int]:
    """Bits of the self-shrinking generator."""
    state: list[int] = []
    for value, bits in ((1, 2), (1, 4), (NUM_BITS, 12), (width, 12), (full_rounds, 10), (partial_rounds, 10)):
        state += [value >> i & 1 for i in reversed(range(bits))]
    state += [1] * 30

    def step() -> int:
        new = state[62] ^ state[51] ^ state[38] ^ state[23] ^ state[13] ^ state[0]
        state.pop(0)
        state.append(new)
        return new

    for _ in range(160):
        step()
    while True:
        keep, value = step(), step()
        if keep:
            yield value


def _round_constants(width: int, full_rounds: int, partial_rounds: int) -> Matrix:
    bits = _grain(width, full_rounds, partial_rounds)

    def element() -> int:
        while True:
            value = 0
            for _ in range(NUM_BITS):
                value = value << 1 | next(bits)
            if value < MODULUS:
                return value

    return tuple(tuple(element() for _ in range(width)) for _ in range(full_rounds + partial_rounds))


def _times(v: Vector, m: Matrix) -> Vector:
    """Row vector times matrix."""
    return tuple(sum(x * row[j] for x, row in zip(v, m, strict=True)) % MODULUS for j in range(len(m[0])))


def _product(a: Matrix, b: Matrix) -> Matrix:
    return tuple(_times(row, b) for row in a)


def inverse(m: Matrix) -> Matrix:
    """Gauss-Jordan. Raises ValueError (from pow) for a singular matrix."""
    n = len(m)
    rows = [list(row) + [int(i == j) for j in range(n)] for i, row in enumerate(m)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        scale = pow(rows[i][i], -1, MODULUS)
        rows[i] = [x * scale % MODULUS for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                f = rows[k][i]
                rows[k] = [(x - f * y) % MODULUS for x, y in zip(rows[k], rows[i], strict=True)]
    return tuple(tuple(row[n:]) for row in rows)


def _compress(keys: Matrix, mds_inverse: Matrix, half: int, partial_rounds: int) -> Vector:
    """Moves each round's constants behind the S-boxes of the round before; of a partial round only one remains."""
    out = list(keys[0])
    for i in range(1, half):
        out += _times(keys[i], mds_inverse)
    carried = keys[half + partial_rounds]
    single: list[int] = []
    for i in reversed(range(half, half + partial_rounds)):
        back = _times(carried, mds_inverse)
        single.append(back[0])
        carried = tuple((k + x) % MODULUS for k, x in zip(keys[i], (0, *back[1:]), strict=True))
    out += _times(carried, mds_inverse)
    out += reversed(single)
    for i in range(half + partial_rounds + 1, len(keys)):
        out += _times(keys[i], mds_inverse)
    return tuple(out)


def _sparse_factors(mds: Matrix, n: int) -> tuple[Matrix, tuple[tuple[Vector, Vector], ...]]:
    """M^n-like chain as one dense matrix and n sparse ones: M = M'·M'', M' = diag(1, M̂), M'' sparse."""
    current, factors = mds, []
    for _ in range(n):
        minor = tuple(row[1:] for row in current[1:])
        column = tuple(row[0] for row in current[1:])
        minor_inverse = inverse(minor)
        w = tuple(sum(x * y for x, y in zip(row, column, strict=True)) % MODULUS for row in minor_inverse)
        factors.append(((current[0][0], *w), current[0][1:]))
        prime: Matrix = ((1, *([0] * len(minor))), *((0, *row) for row in minor))
        current = _product(mds, prime)
    return current, tuple(reversed(factors))


@cache
def poseidon_constants(arity: int) -> PoseidonConstants:
    """Constants for a hash of `arity` elements. Raises ValueError for an arity Filecoin does not use."""
    if arity not in PARTIAL_ROUNDS:
        raise ValueError(f"Poseidon of arity {arity}: only {sorted(PARTIAL_ROUNDS)} are defined")
    width, partial = arity + 1, PARTIAL_ROUNDS[arity]
    keys = _round_constants(width, FULL_ROUNDS, partial)
    mds: Matrix = tuple(tuple(pow(i + j + width, -1, MODULUS) for j in range(width)) for i in range(width))
    pre_sparse, sparse = _sparse_factors(mds, partial)
    compressed = _compress(keys, inverse(mds), FULL_ROUNDS // 2, partial)
    return PoseidonConstants(arity, partial, (1 << arity) - 1, keys, mds, compressed, pre_sparse, sparse)
