"""The stacked graph: 6 parents of a depth-robust graph in the same layer, 8 of an expander in the layer before.

DRG: bucket sampling (Alwen, Blocki, Pietrzak: Sustained space complexity) with ChaCha8 as generator. Expander: a
Feistel permutation over the edges, with cycle walking. API version 1.0 puts the predecessor last instead of first
and cuts expander edges to 32 bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from cuzk.circuits.porep.shape import DRG_PARENTS, EXPANDER_PARENTS, Shape
from cuzk.porep.chacha import chacha8
from cuzk.porep.ids import domain_seed, version_of

_SAMPLED = DRG_PARENTS - 1


class Graph:
    """Parents of the nodes of one sector. `version`: API version, by default that of the registered type."""

    def __init__(self, shape: Shape, porep_id: bytes, version: str | None = None) -> None:
        self.nodes = shape.nodes
        self.version = version or version_of(porep_id)
        self.legacy = self.version == "1.0"
        self._drg_seed = domain_seed(b"Filecoin_DRSample", porep_id)[:28]
        raw = domain_seed(b"Filecoin_Feistel", porep_id)
        # little-endian numbers, hashed as big-endian ones
        self._feistel_keys = [raw[8 * i : 8 * i + 8][::-1] for i in range(3)]

    def drg_parents(self, nodes: np.ndarray) -> np.ndarray:
        """(n, 6) uint32 for (n,) nodes. Nodes 0 and 1 have node 0 six times."""
        nodes = np.asarray(nodes, np.uint32)
        keys = np.empty((len(nodes), 8), np.uint32)
        keys[:, :7] = np.frombuffer(self._drg_seed, np.uint32)
        keys[:, 7] = nodes
        words = np.ascontiguousarray(chacha8(keys, 2)[:, : 4 * _SAMPLED]).view("<u8")
        node = nodes.astype(np.uint64)
        meta = node * np.uint64(_SAMPLED)
        sampled = meta > 5
        safe = np.where(sampled, meta, 10)
        buckets = np.ceil(np.log2(safe.astype(np.float64))).astype(np.uint64)
        parents = np.zeros((len(nodes), DRG_PARENTS), np.uint32)
        first = 0 if self.legacy else 1
        for k in range(_SAMPLED):
            bucket = words[:, 2 * k] % buckets + np.uint64(1)
            largest = np.minimum(safe, np.uint64(1) << bucket)
            smallest = np.maximum(np.uint64(2), largest >> np.uint64(1))
            distance = smallest + words[:, 2 * k + 1] % (largest - smallest + np.uint64(1))
            parent = (safe - distance) // np.uint64(_SAMPLED)
            parent = np.where(parent == node, node - np.uint64(1), parent)
            parents[:, first + k] = np.where(sampled, parent, 0)
        parents[:, _SAMPLED if self.legacy else 0] = np.where(sampled, node - np.uint64(1), 0)
        return parents

    @cached_property
    def _half_bits(self) -> int:
        edges, log4 = self.nodes * EXPANDER_PARENTS, 0
        while 1 << 2 * log4 < edges:
            log4 += 1
        return log4

    def _permuted(self, edge: int) -> int:
        edges, half = self.nodes * EXPANDER_PARENTS, self._half_bits
        mask = (1 << half) - 1
        blake2b = hashlib.blake2b
        while True:
            left, right = edge >> half, edge & mask
            for key in self._feistel_keys:
                digest = blake2b(right.to_bytes(8, "big") + key).digest()
                left, right = right, left ^ int.from_bytes(digest[:8], "big") & mask
            edge = left << half | right
            if edge < edges:
                return edge

    def expander_parents(self, node: int) -> list[int]:
        first = node * EXPANDER_PARENTS
        edges = [self._permuted(first + i) for i in range(EXPANDER_PARENTS)]
        if self.legacy:
            edges = [e & 0xFFFFFFFF for e in edges]
        return [e // EXPANDER_PARENTS for e in edges]

    def parents_of(self, nodes: Sequence[int]) -> list[list[int]]:
        """Six DRG parents, then eight expander parents, of each node."""
        drg = self.drg_parents(np.asarray(nodes, np.int64)).tolist()
        return [[*near, *self.expander_parents(node)] for node, near in zip(nodes, drg, strict=True)]

    def parents(self, node: int) -> list[int]:
        """Six DRG parents, then eight expander parents."""
        return [*self.drg_parents(np.array([node]))[0].tolist(), *self.expander_parents(node)]

    def table(self) -> np.ndarray:
        """(nodes, 14) uint32 of all nodes."""
        out = np.empty((self.nodes, DRG_PARENTS + EXPANDER_PARENTS), np.uint32)
        out[:, :DRG_PARENTS] = self.drg_parents(np.arange(self.nodes))
        for node in range(self.nodes):
            out[node, DRG_PARENTS:] = self.expander_parents(node)
        return out
