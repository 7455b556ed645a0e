"""Sectors of any size that satisfy a PoSt without having been sealed: random leaves where a statement opens them.

All other leaves of tree R are equal, and only the paths needed are computed: numbers, randomness, challenges and public inputs
are the real ones.
"""

from __future__ import annotations

import numpy as np

from cuzk.porep.trees import SparseTree, poseidon_std
from cuzk.post.challenges import sector_leaves
from cuzk.post.registered import RegisteredPost
from cuzk.post.statement import PostSector, PostStatement
from cuzk.post.vanilla import PostVanilla, Replica


def synthetic_vanilla(
    registered: RegisteredPost, randomness: bytes, sectors: int = 1, first_number: int = 1, rng_seed: int = 1
) -> PostVanilla:
    """Sectors `first_number`, `first_number` + 1, … with their proofs. Raises InputError for a number that does not fit."""
    shape, rng = registered.shape, np.random.default_rng(rng_seed)
    replicas = []
    for i in range(sectors):
        partition, place = divmod(i, shape.real_sectors)
        number = first_number + i
        leaves = np.unique(sector_leaves(shape, registered.version, randomness, number, place, partition))
        values = random_elements(rng, len(leaves) + 2)
        tree = SparseTree(shape.path, poseidon_std, values[:1], leaves, values[2:])
        comm_r = poseidon_std(np.stack([values[1:2], tree.root], axis=1)).tobytes()
        replicas.append(Replica(number, comm_r, values[1].tobytes(), tree.root.tobytes(), tree))
    statement = PostStatement(registered, randomness, tuple(PostSector(r.number, r.comm_r) for r in replicas))
    return PostVanilla.of_replicas(replicas, statement)


def random_elements(rng: np.random.Generator, n: int) -> np.ndarray:
    """(n, 4) numbers below 2^254."""
    values = rng.integers(0, 1 << 64, (n, 4), np.uint64)
    values[:, 3] >>= np.uint64(2)
    return values
