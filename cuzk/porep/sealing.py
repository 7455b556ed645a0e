"""Replication of a sector: labels layer by layer, columns, trees, replica, commitments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cuzk import native
from cuzk.circuits.hashes import poseidon_mont
from cuzk.circuits.porep.shape import DRG_PARENTS, NODE_BYTES, Shape, parent_sequence
from cuzk.errors import FormatError, InputError
from cuzk.porep.graph import Graph
from cuzk.porep.ids import SectorIds, truncated
from cuzk.porep.trees import Tree, poseidon_tree, sha256_tree

Progress = Callable[[str], None]
_ZEROS = bytes(20)


@dataclass(frozen=True)
class Sealed:
    """A sealed sector in memory. Arrays (nodes, 4) uint64, canonical."""

    shape: Shape
    ids: SectorIds
    version: str
    labels: list[np.ndarray]
    """For each layer."""
    tree_d: Tree
    tree_c: Tree
    tree_r_last: Tree
    comm_d: bytes
    comm_r: bytes
    comm_c: bytes
    comm_r_last: bytes
    replica_id: bytes

    def data(self, nodes: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.tree_d.levels[0][nodes]
        return found

    def column(self, nodes: np.ndarray) -> list[np.ndarray]:
        """The labels of nodes, layer by layer."""
        return [layer[nodes] for layer in self.labels]


def pad_data(raw: np.ndarray, shape: Shape, name: str = "data") -> np.ndarray:
    """(n,) uint8 as (nodes, 4) uint64: exactly a sector (each 32 bytes a number below 2^254) or 127/128 of one, to which
    two zero bits are added after every 254. Raises InputError for any other length; `name` is where the data is from."""
    full, packed = shape.sector_bytes, shape.sector_bytes // 128 * 127
    if len(raw) == packed:
        bits = np.unpackbits(raw, bitorder="little").reshape(-1, 254)
        padded = np.zeros((len(bits), 256), np.uint8)
        padded[:, :254] = bits
        return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    if len(raw) != full:
        raise InputError(
            f"{name}: {len(raw):,} bytes; a {shape.name} sector takes {packed:,} of data (or {full:,} already padded)"
        )
    nodes = np.array(raw).view(np.uint64).reshape(-1, 4)
    bad = np.flatnonzero(nodes[:, 3] >> np.uint64(62))
    if len(bad):
        raise FormatError(name, "padded data: the two top bits of every 32 bytes must be zero", offset=int(bad[0]) * NODE_BYTES)
    return nodes


def label_layer(replica_id: bytes, layer: int, parents: np.ndarray, previous: bytes | bytearray, nodes: int) -> bytearray:
    """All labels of a layer (from 1), 32 bytes each; `previous` are those of the layer before."""
    labels = bytearray(NODE_BYTES * nodes)
    for node in range(nodes):
        values: list[bytes] = []
        if node:
            around = parents[node].tolist()
            values = [bytes(labels[NODE_BYTES * p : NODE_BYTES * p + NODE_BYTES]) for p in around[:DRG_PARENTS]]
            if layer > 1:
                values += [bytes(previous[NODE_BYTES * p : NODE_BYTES * p + NODE_BYTES]) for p in around[DRG_PARENTS:]]
        labels[NODE_BYTES * node : NODE_BYTES * node + NODE_BYTES] = label(replica_id, layer, node, values)
    return labels


def label(replica_id: bytes, layer: int, node: int, parents: Sequence[bytes]) -> bytes:
    """A node's label; `parents` are the labels of 6 (layer 1) or 14 nodes, none for node 0."""
    preimage = replica_id + layer.to_bytes(4, "big") + node.to_bytes(8, "big") + _ZEROS
    if parents:
        preimage += b"".join(parent_sequence(layer, parents))
    return truncated(hashlib.sha256(preimage).digest())


def _nodes(raw: bytes | bytearray) -> np.ndarray:
    return np.frombuffer(bytes(raw), np.uint64).reshape(-1, 4)


def seal(
    shape: Shape, ids: SectorIds, data: np.ndarray, version: str | None = None, progress: Progress = lambda _: None
) -> Sealed:
    """Seals (nodes, 4) padded data."""
    graph = Graph(shape, ids.porep_id, version)
    progress("tree D")
    tree_d = sha256_tree(data)
    comm_d = tree_d.root.tobytes()
    replica_id = ids.replica_id(comm_d)
    progress("graph")
    parents = graph.table()
    labels: list[np.ndarray] = []
    previous: bytes | bytearray = b""
    for layer in range(1, shape.layers + 1):
        progress(f"labels of layer {layer} of {shape.layers}")
        previous = label_layer(replica_id, layer, parents, previous, shape.nodes)
        labels.append(_nodes(previous))
    progress("tree C")
    columns = np.stack([native.fr_from_std(x) for x in labels], axis=1)
    tree_c = poseidon_tree(native.fr_to_std(poseidon_mont(columns)), shape.path)
    progress("tree R")
    tree_r_last = poseidon_tree(native.fr_add(labels[-1], data), shape.path)
    roots = native.fr_from_std(np.stack([tree_c.root[0], tree_r_last.root[0]]))
    comm_r = native.fr_to_std(poseidon_mont(roots[None])).tobytes()
    return Sealed(
        shape, ids, graph.version, labels, tree_d, tree_c, tree_r_last, comm_d, comm_r, tree_c.root.tobytes(),
        tree_r_last.root.tobytes(), replica_id,
    )  # fmt: skip
