"""Trees of any size whose leaves are equal in each of 2^k runs of the same length: computed without their leaves."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from cuzk.porep.trees import Hash

Elements = NDArray[np.uint64]


class RunsTree:
    """`values` (2^k, 4) canonical: the leaf of each run. Opened as `cuzk.porep.trees.Tree` is."""

    def __init__(self, arities: Sequence[int], node_hash: Hash, values: Elements) -> None:
        self.arities = tuple(arities)
        self._run = prod(self.arities) // len(values)
        self._levels = [values]
        """Per level one node a run as long as a node spans at most a run, then all nodes."""
        self._spans = [1]
        for arity in self.arities:
            below, span = self._levels[-1], self._spans[-1]
            above = span * arity
            if above <= self._run:
                children = np.repeat(below[:, None], arity, axis=1)
            else:
                nodes = np.arange(prod(self.arities) // span)
                children = below[self._rows(nodes, span)].reshape(-1, arity, 4)
            self._levels.append(node_hash(np.ascontiguousarray(children)))
            self._spans.append(above)

    def _rows(self, nodes: NDArray[np.int64], span: int) -> NDArray[np.int64]:
        """The rows of a level's nodes in its array."""
        return nodes * span // self._run if span <= self._run else nodes

    @property
    def root(self) -> Elements:
        return self._levels[-1]

    def at(self, level: int, nodes: NDArray[np.int64]) -> Elements:
        """Nodes of a level, 0 the leaves."""
        return self._levels[level][self._rows(nodes, self._spans[level])]

    def leaves(self, positions: NDArray[np.int64]) -> Elements:
        return self.at(0, positions)

    def siblings(self, leaves: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Elements]]:
        out = []
        index = np.asarray(leaves, np.int64)
        for level, arity in enumerate(self.arities):
            parent, position = np.divmod(index, arity)
            slot = np.arange(arity - 1)[None, :]
            others = slot + (slot >= position[:, None])
            out.append((position, self.at(level, parent[:, None] * arity + others)))
            index = parent
        return out
