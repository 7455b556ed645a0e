"""Merkle proofs inside items: filled from a tree, checked, and turned into what a circuit takes; all in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cuzk.circuits.algebra import lanes_to_bits
from cuzk.circuits.merkle import PathValues
from cuzk.porep.c1.layout import MerkleAt
from cuzk.porep.trees import Hash
from cuzk.vanilla.items import Items

Elements = NDArray[np.uint64]


class AnyTree(Protocol):
    """A tree whose paths can be opened; elements canonical."""

    @property
    def root(self) -> Elements:
        """(1, 4)."""

    def leaves(self, positions: NDArray[np.int64]) -> Elements:
        """(n, 4)."""

    def siblings(self, leaves: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Elements]]:
        """For each level the positions among the children (n,) and the siblings (n, arity - 1, 4)."""


def fill(items: Items, item: int, ats: Sequence[MerkleAt], tree: AnyTree, positions: Sequence[int]) -> None:
    """Writes the proofs of these leaves into the places `ats` of an item."""
    leaves = np.array(positions, np.int64)
    values, numbers = items.values[item], items.numbers[item]
    values[[at.root for at in ats]] = tree.root
    values[[at.leaf for at in ats]] = tree.leaves(leaves)
    for level, (position, siblings) in enumerate(tree.siblings(leaves)):
        for k, at in enumerate(ats):
            first, index, arity = at.levels[level]
            numbers[index] = position[k]
            values[first : first + arity - 1] = siblings[k]


def positions(items: Items, ats: Sequence[MerkleAt]) -> NDArray[np.int64]:
    """(items, proofs): the leaf's number that the indices of a path make. Raises FormatError for an index that no child has."""
    total = np.zeros((len(items), len(ats)), np.int64)
    span = 1
    for level, (_, _, arity) in enumerate(ats[0].levels):
        index = items.numbers[:, [at.levels[level][1] for at in ats]]
        for item, k in np.argwhere(index >= arity)[:1].tolist():
            path = items.layout.number_path(ats[k].levels[level][1])
            raise items.fault(item, path, f"{index[item, k]}; the {arity} children are 0 to {arity - 1}")
        total += index.astype(np.int64) * span
        span *= arity
    return total


def computed_roots(items: Items, ats: Sequence[MerkleAt], node_hash: Hash) -> Elements:
    """(items, proofs, 4): the roots that leaves and siblings make."""
    values, count = items.values, len(items) * len(ats)
    current = values[:, [at.leaf for at in ats]].reshape(count, 4)
    rows = np.arange(count)
    for level, (_, _, arity) in enumerate(ats[0].levels):
        index = items.numbers[:, [at.levels[level][1] for at in ats]].reshape(count).astype(np.int64)
        children = np.empty((count, arity, 4), np.uint64)
        children[rows, index] = current
        for j in range(arity - 1):
            sibling = values[:, [at.levels[level][0] + j for at in ats]].reshape(count, 4)
            children[rows, j + (j >= index)] = sibling
        current = node_hash(children)
    return current.reshape(len(items), len(ats), 4)


def require_roots(items: Items, ats: Sequence[MerkleAt], root: Elements, message: str) -> None:
    """Every proof names this root, (items, 4) or (1, 4). Raises FormatError with the place of one that does not."""
    wrong = (items.values[:, [at.root for at in ats]] != root[:, None]).any(axis=-1)
    for item, k in np.argwhere(wrong)[:1].tolist():
        raise items.fault(item, f"{ats[k].path}.root", message)


def require_paths(items: Items, ats: Sequence[MerkleAt], node_hash: Hash) -> None:
    """Every leaf hashes up to its root. Raises FormatError with the place of a path that does not."""
    wrong = (computed_roots(items, ats, node_hash) != items.values[:, [at.root for at in ats]]).any(axis=-1)
    for item, k in np.argwhere(wrong)[:1].tolist():
        raise items.fault(item, ats[k].path, "leaf and siblings do not hash to the root")


def require_positions(items: Items, ats: Sequence[MerkleAt], wanted: NDArray[np.int64], source: str) -> None:
    """The paths lead to these leaves, (items, proofs), which follow from `source`. Raises FormatError."""
    found = positions(items, ats)
    for item, k in np.argwhere(found != wanted)[:1].tolist():
        text = f"the path of node {found[item, k]}, but the challenge, by {source}, is {wanted[item, k]}"
        raise items.fault(item, ats[k].path, text)


def path_values(items: Items, rows: NDArray[np.int64], ats: Sequence[MerkleAt]) -> PathValues:
    """A path a lane, with its index bits: lane i is the proof at `ats[i]` (or the only one of them) of item `rows[i]`."""
    lanes = np.arange(len(rows))
    levels = []
    for level, (_, _, arity) in enumerate(ats[0].levels):
        numbers = _of_lanes([at.levels[level][1] for at in ats], lanes)
        index = items.numbers[rows, numbers].astype(np.int64)
        bits = (index[:, None] >> np.arange(arity.bit_length() - 1)) & 1
        first = _of_lanes([at.levels[level][0] for at in ats], lanes)
        siblings = [np.ascontiguousarray(items.mont[rows, first + j]) for j in range(arity - 1)]
        levels.append((lanes_to_bits(bits.astype(np.uint8)), siblings))
    return PathValues(levels)


def leaf_values(items: Items, rows: NDArray[np.int64], ats: Sequence[MerkleAt]) -> Elements:
    """The leaf of each lane of `path_values`, Montgomery."""
    return np.ascontiguousarray(items.mont[rows, _of_lanes([at.leaf for at in ats], np.arange(len(rows)))])


def _of_lanes(places: list[int], lanes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.array(places, np.int64) if len(places) > 1 else np.full(len(lanes), places[0], np.int64)
