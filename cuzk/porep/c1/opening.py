"""A partition of a C1 output as values of its circuit.

What the circuit takes from the file: the commitments, the data leaf, the paths with their indices, the parents' labels and
the challenge's number. Labels of the node itself, lists of parents and leaves of R and C follow from these.
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.circuits.algebra import lanes_to_bits
from cuzk.circuits.merkle import PathValues
from cuzk.circuits.porep.values import ChallengeValues, ParentValues, PrefixValues
from cuzk.groth16.template.bits import BitWitness
from cuzk.porep.c1.layout import MerkleAt
from cuzk.porep.c1.model import C1
from cuzk.porep.partition import PartitionMaker


def c1_witness(maker: PartitionMaker, c1: C1, partition: int) -> BitWitness:
    """The values of a partition. What does not fit fails its row, not this call: `c1.check()` comes first."""
    values = _Values(c1, partition)
    return maker.of_values(values.prefix(), values.challenges())


class _Values:
    def __init__(self, c1: C1, partition: int) -> None:
        self.c1, self.at = c1, c1.layout
        # one column of values after the other, each over all challenges
        turned = np.ascontiguousarray(c1.hashes[partition].transpose(1, 0, 2))
        self.numbers = c1.numbers[partition]
        mont = native.fr_from_std(turned.reshape(-1).view(np.uint64).reshape(-1, 4))
        self.mont = mont.reshape(self.at.hashes, c1.shape.challenges, 4)

    def prefix(self) -> PrefixValues:
        c1 = self.c1
        ids = [native.fr_from_std(np.frombuffer(x, np.uint64).reshape(1, 4)) for x in (c1.replica_id, c1.comm_d, c1.comm_r)]
        roots = [self.mont[at.root, :1] for at in (self.at.replica, self.at.columns[0].proof)]
        replica_id, comm_d, comm_r, comm_r_last, comm_c = [*ids, *roots]
        return PrefixValues(replica_id, comm_d, comm_r, comm_r_last, comm_c)

    def challenges(self) -> ChallengeValues:
        at, layers = self.at, self.c1.shape.layers
        own, parents = at.columns[0], at.columns[1:]
        node = self.numbers[:, at.labels[0].node]
        node_bits = (node[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        columns = [ParentValues([self.mont[p.rows + k] for k in range(layers)], self._path(p.proof)) for p in parents]
        return ChallengeValues(
            self.mont[at.data.leaf], self._path(at.data), columns, lanes_to_bits(node_bits.astype(np.uint8)),
            self._path(at.replica), self._path(own.proof),
        )  # fmt: skip

    def _path(self, merkle: MerkleAt) -> PathValues:
        levels = []
        for first, index, arity in merkle.levels:
            bits = (self.numbers[:, index, None] >> np.arange(arity.bit_length() - 1, dtype=np.uint64)) & np.uint64(1)
            levels.append((lanes_to_bits(bits.astype(np.uint8)), [self.mont[first + i] for i in range(arity - 1)]))
        return PathValues(levels)
