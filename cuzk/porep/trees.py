"""Merkle trees of a sector: binary SHA-256 (tree D), Poseidon of arities that multiply up to the leaves (C, R)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cuzk import native
from cuzk.circuits.hashes import poseidon_mont, sha256_64

_CHUNK = 1 << 15


@dataclass(frozen=True)
class Tree:
    """`levels[0]` are the leaves, the last has one row. (n, 4) uint64, canonical."""

    arities: tuple[int, ...]
    levels: list[np.ndarray]

    @property
    def root(self) -> np.ndarray:
        return self.levels[-1]

    def leaves(self, positions: np.ndarray) -> np.ndarray:
        """(n, 4) leaves."""
        return np.asarray(self.levels[0][positions])

    def siblings(self, leaves: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each level of the paths of (n,) leaves: positions among the children (n,), siblings (n, arity-1, 4)."""
        out = []
        index = np.asarray(leaves, np.int64)
        for level, arity in zip(self.levels, self.arities, strict=False):
            parent, position = np.divmod(index, arity)
            out.append((position, level[parent[:, None] * arity + _others(position, arity)]))
            index = parent
        return out


def _others(position: np.ndarray, arity: int) -> np.ndarray:
    """(n, arity - 1): the children's positions without the given one."""
    slot = np.arange(arity - 1)[None, :]
    return slot + (slot >= position[:, None])


def _truncated_sha256(pairs: np.ndarray) -> np.ndarray:
    """(n, 8) uint64 to (n, 4): the hash with the two top bits cleared."""
    out = np.empty((len(pairs), 4), np.uint64)
    for at in range(0, len(pairs), _CHUNK):
        digest = sha256_64(pairs[at : at + _CHUNK].view(np.uint8))
        digest[:, 31] &= 0x3F
        out[at : at + _CHUNK] = digest.view(np.uint64)
    return out


def sha256_tree(leaves: np.ndarray) -> Tree:
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append(_truncated_sha256(levels[-1].reshape(-1, 8)))
    return Tree((2,) * (len(levels) - 1), levels)


def poseidon_tree(leaves: np.ndarray, arities: Sequence[int]) -> Tree:
    current = native.fr_from_std(leaves)
    levels = [leaves]
    for arity in arities:
        current = poseidon_mont(current.reshape(-1, arity, 4))
        levels.append(native.fr_to_std(current))
    return Tree(tuple(arities), levels)


Hash = Callable[[np.ndarray], np.ndarray]


def poseidon_std(children: np.ndarray) -> np.ndarray:
    """(n, arity, 4) canonical to (n, 4)."""
    n, arity, _ = children.shape
    mont = native.fr_from_std(np.ascontiguousarray(children).reshape(-1, 4))
    return native.fr_to_std(poseidon_mont(mont.reshape(n, arity, 4)))


def sha256_std(children: np.ndarray) -> np.ndarray:
    """(n, 2, 4) canonical to (n, 4)."""
    return _truncated_sha256(np.ascontiguousarray(children).reshape(-1, 8))


class SparseTree:
    """A tree of any size in which all leaves but a few are the same."""

    def __init__(
        self, arities: Sequence[int], node_hash: Hash, default: np.ndarray, leaves: np.ndarray, values: np.ndarray
    ) -> None:
        """`default` (1, 4); `leaves` (n,) distinct positions with `values` (n, 4). Canonical."""
        self.arities = tuple(arities)
        order = np.argsort(leaves)
        index, known = np.asarray(leaves, np.int64)[order], values[order]
        self._levels = [(index, known, default)]
        for arity in self.arities:
            parents, row = np.unique(index // arity, return_inverse=True)
            children = np.repeat(np.repeat(default[None], arity, axis=1), len(parents) + 1, axis=0)
            children[row, index % arity] = known
            hashed = node_hash(children)
            index, known, default = parents, hashed[:-1], hashed[-1:]
            self._levels.append((index, known, default))

    @property
    def root(self) -> np.ndarray:
        return self._levels[-1][1]

    def _at(self, level: int, positions: np.ndarray) -> np.ndarray:
        index, known, default = self._levels[level]
        at = np.minimum(np.searchsorted(index, positions), len(index) - 1)
        return np.where((index[at] == positions)[..., None], known[at], default[0])

    def leaves(self, positions: np.ndarray) -> np.ndarray:
        """(n, 4) leaves."""
        return self._at(0, positions)

    def siblings(self, leaves: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The siblings that `Tree.siblings` gives."""
        out = []
        index = np.asarray(leaves, np.int64)
        for level, arity in enumerate(self.arities):
            parent, position = np.divmod(index, arity)
            out.append((position, self._at(level, parent[:, None] * arity + _others(position, arity))))
            index = parent
        return out
