"""Updated sectors of any size that satisfy their circuit without data or a sealed replica.

The data is the same in every node and so was the old replica; the new one then differs by the factor alone, which depends on a
node's high bits: 2 or 1,024 runs of equal leaves. Commitments, challenges and public inputs are the real ones.
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.circuits.update.shape import UpdateShape
from cuzk.porep.trees import poseidon_std, sha256_std
from cuzk.update.encoding import factors_mont
from cuzk.update.statement import UpdateStatement
from cuzk.update.trees import RunsTree
from cuzk.update.vanilla import UpdatedTrees, UpdateVanilla


def synthetic_vanilla(shape: UpdateShape, rng_seed: int = 1) -> UpdateVanilla:
    """All partitions of an update."""
    rng = np.random.default_rng(rng_seed)
    values = rng.integers(0, 1 << 64, (3, 4), np.uint64)
    values[:, 3] >>= np.uint64(2)
    data, old, comm_c = values[:1], values[1:2], values[2:]
    tree_d = RunsTree((2,) * shape.node_bits, sha256_std, data)
    tree_old = RunsTree(shape.path, poseidon_std, old)
    comm_d_new = tree_d.root.tobytes()
    comm_r_old = poseidon_std(np.stack([comm_c, tree_old.root], axis=1)).tobytes()
    factors = factors_mont(shape, comm_d_new, comm_r_old)
    tree_new = RunsTree(shape.path, poseidon_std, native.fr_add(native.fr_mul(factors, data), old))
    comm_r_new = poseidon_std(np.stack([comm_c, tree_new.root], axis=1)).tobytes()
    statement = UpdateStatement(shape, comm_r_old, comm_d_new, comm_r_new)
    apex = tree_d.at(shape.data_levels, np.arange(shape.apex_leaves * shape.partitions))
    return UpdateVanilla.of_trees(UpdatedTrees(comm_c.tobytes(), tree_old, tree_d, tree_new, apex), statement)
