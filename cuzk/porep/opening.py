"""The openings of a sealed sector that a partition needs, as values of its circuit; and the public inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuzk import native
from cuzk.circuits.algebra import lanes_to_bits
from cuzk.circuits.merkle import PathValues
from cuzk.circuits.porep.shape import Shape
from cuzk.circuits.porep.values import ChallengeValues, ParentValues, PrefixValues
from cuzk.porep.challenges import drawn
from cuzk.porep.graph import Graph
from cuzk.porep.ids import SectorIds
from cuzk.porep.sealing import Sealed
from cuzk.porep.synthetic import SyntheticSector
from cuzk.porep.trees import SparseTree, Tree


def public_inputs(
    shape: Shape,
    ids: SectorIds,
    comm_d: bytes,
    comm_r: bytes,
    seed: bytes,
    partition: int = 0,
    version: str | None = None,
    replica_id: bytes | None = None,
) -> list[int]:
    """A partition's public inputs, without ONE: replica id, comm_d, comm_r; then for each challenge the tree-D index, 14
    parents, the challenge, the index in R and in C. `replica_id`: where it is known without the ids."""
    replica_id = replica_id or ids.replica_id(comm_d)
    nodes = drawn(shape, ids.porep_id, replica_id, comm_r, seed, partition)
    return opened_inputs(Graph(shape, ids.porep_id, version), replica_id, comm_d, comm_r, nodes)


def opened_inputs(graph: Graph, replica_id: bytes, comm_d: bytes, comm_r: bytes, nodes: Sequence[int]) -> list[int]:
    """The public inputs of a partition that opens `nodes`, in the order of `public_inputs`."""
    out = [int.from_bytes(x, "little") for x in (replica_id, comm_d, comm_r)]
    for node, parents in zip(nodes, graph.parents_of(nodes), strict=True):
        out += [node, *parents, node, node, node]
    return out


def sector_challenges(sector: Sealed | SyntheticSector, seed: bytes, partition: int) -> list[int]:
    """The nodes that a partition opens."""
    return drawn(sector.shape, sector.ids.porep_id, sector.replica_id, sector.comm_r, seed, partition)


def mont(values: np.ndarray) -> np.ndarray:
    """Canonical (n, 4) to Montgomery."""
    return native.fr_from_std(np.ascontiguousarray(values))


def tree_path(tree: Tree | SparseTree, leaves: np.ndarray) -> PathValues:
    """Columns over (n,) leaves of a tree."""
    levels = []
    for arity, (position, others) in zip(tree.arities, tree.siblings(leaves), strict=True):
        bits = (position[:, None] >> np.arange(arity.bit_length() - 1)) & 1
        levels.append((lanes_to_bits(bits.astype(np.uint8)), [mont(others[:, i]) for i in range(arity - 1)]))
    return PathValues(levels)


def prefix_values(sealed: Sealed | SyntheticSector) -> PrefixValues:
    names = ("replica_id", "comm_d", "comm_r", "comm_r_last", "comm_c")
    return PrefixValues(**{n: mont(np.frombuffer(getattr(sealed, n), np.uint64).reshape(1, 4)) for n in names})


def challenge_values(sealed: Sealed | SyntheticSector, nodes: Sequence[int]) -> ChallengeValues:
    """Columns over the challenged nodes."""
    graph = Graph(sealed.shape, sealed.ids.porep_id, sealed.version)
    leaves = np.array(nodes, np.int64)
    parents = []
    for around in np.array(graph.parents_of(nodes), np.int64).T:
        parents.append(ParentValues([mont(x) for x in sealed.column(around)], tree_path(sealed.tree_c, around)))
    node_bits = (leaves[:, None] >> np.arange(64)) & 1
    return ChallengeValues(
        mont(sealed.data(leaves)), tree_path(sealed.tree_d, leaves), parents,
        lanes_to_bits(node_bits.astype(np.uint8)), tree_path(sealed.tree_r_last, leaves), tree_path(sealed.tree_c, leaves),
    )  # fmt: skip
