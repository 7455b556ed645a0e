"""A sector of any size that satisfies its circuit without having been sealed.

The circuit checks the labels of the challenged nodes, not those of their parents. So the parents' columns are random, the
challenged nodes' labels follow from them, all other leaves of the trees are equal, and only the paths needed are
computed. Ids, graph, challenges and public inputs are the real ones: such a partition exercises a prover like a sealed
sector, at sizes that nobody seals for a test.
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.circuits.hashes import poseidon_mont
from cuzk.circuits.porep.shape import DRG_PARENTS, Shape
from cuzk.errors import InputError
from cuzk.porep.challenges import challenges
from cuzk.porep.graph import Graph
from cuzk.porep.ids import SectorIds
from cuzk.porep.registered import Drawing, registered_id
from cuzk.porep.sealing import label
from cuzk.porep.trees import SparseTree, poseidon_std, sha256_std


class SyntheticSector:
    """Fits the challenges that `seed` gives `partition`, or all partitions where that is None; and no others.

    Raises InputError for a registered type whose challenges depend on comm_r: this sector has it only once they are known.
    """

    def __init__(
        self, shape: Shape, ids: SectorIds, seed: bytes, partition: int | None = 0, version: str | None = None, rng_seed: int = 1
    ) -> None:
        if registered_id(ids.porep_id).drawing is not Drawing.INTERACTIVE:
            raise InputError("a synthetic sector has interactive challenges only (API version 1.0 or 1.1): seal a small one")
        rng = np.random.default_rng(rng_seed)
        self.shape, self.ids = shape, ids
        graph = Graph(shape, ids.porep_id, version)
        self.version = graph.version
        self._default_data = _random(rng, 1)
        # tree D is uniform, so that the replica id, and with it the challenges, need no leaf of it
        nowhere = np.zeros(1, np.int64)
        self.tree_d = SparseTree([2] * shape.tree_d_levels, sha256_std, self._default_data, nowhere, self._default_data)
        self.comm_d = self.tree_d.root.tobytes()
        self.replica_id = ids.replica_id(self.comm_d)
        wanted = range(shape.partitions) if partition is None else [partition]
        self.nodes = [node for k in wanted for node in challenges(shape, self.replica_id, seed, k)]
        around = [graph.parents(n) for n in self.nodes]
        special = sorted({p for row in around for p in row} | set(self.nodes))
        self._row = {node: i for i, node in enumerate(special)}
        self._labels = [_random(rng, len(special)) for _ in range(shape.layers)]
        self._label_challenged(around)
        index = np.array(special, np.int64)
        columns = poseidon_mont(np.stack([native.fr_from_std(x) for x in self._labels], axis=1))
        self.tree_c = SparseTree(shape.path, poseidon_std, _random(rng, 1), index, native.fr_to_std(columns))
        data = np.repeat(self._default_data, len(special), axis=0)
        encoded = native.fr_add(self._labels[-1], data)
        self.tree_r_last = SparseTree(shape.path, poseidon_std, _random(rng, 1), index, encoded)
        self.comm_c, self.comm_r_last = self.tree_c.root.tobytes(), self.tree_r_last.root.tobytes()
        self.comm_r = poseidon_std(np.stack([self.tree_c.root, self.tree_r_last.root], axis=1)).tobytes()

    def _label_challenged(self, around: list[list[int]]) -> None:
        # A challenged node may be another's parent in the same layer: parents come first, as when sealing.
        order = sorted(range(len(self.nodes)), key=lambda k: self.nodes[k])
        for layer in range(1, self.shape.layers + 1):
            for k in order:
                values = [self._labels[layer - 1][self._row[p]].tobytes() for p in around[k][:DRG_PARENTS]]
                if layer > 1:
                    values += [self._labels[layer - 2][self._row[p]].tobytes() for p in around[k][DRG_PARENTS:]]
                made = label(self.replica_id, layer, self.nodes[k], values)
                self._labels[layer - 1][self._row[self.nodes[k]]] = np.frombuffer(made, np.uint64)

    def data(self, nodes: np.ndarray) -> np.ndarray:
        return np.repeat(self._default_data, len(nodes), axis=0)

    def column(self, nodes: np.ndarray) -> list[np.ndarray]:
        rows = [self._row[int(n)] for n in nodes]
        return [layer[rows] for layer in self._labels]


def _random(rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, 4) numbers below 2^254."""
    values = rng.integers(0, 1 << 64, (n, 4), np.uint64)
    values[:, 3] >>= np.uint64(2)
    return values
