"""Vanilla proofs of PoSt, one item a sector: read, written from sectors, checked, and opened for the circuit.

Item: sector number, comm_r, one sector proof: Merkle proofs of tree R (10, of a WinningPoSt 66), comm_c, comm_r_last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cuzk.circuits.merkle import PathValues
from cuzk.circuits.post.circuit import SectorValues
from cuzk.circuits.post.shape import PostShape
from cuzk.errors import FormatError
from cuzk.porep.c1.layout import MerkleAt, merkle_schema, tree_parts
from cuzk.porep.c1.schema import Hash, Number, Record, Repeated
from cuzk.porep.trees import poseidon_std
from cuzk.post.statement import PostStatement
from cuzk.vanilla import merkle
from cuzk.vanilla.items import ItemLayout, Items, parse_items
from cuzk.vanilla.merkle import AnyTree, Elements

_PROOF = "sector_proofs[0]"


class PostLayout(ItemLayout):
    """The item of a sector."""

    def __init__(self, shape: PostShape) -> None:
        parts = tree_parts(shape.path)
        proof = Record((
            ("inclusion_proofs", Repeated(shape.paths, merkle_schema(parts))), ("comm_c", Hash()), ("comm_r_last", Hash()),
        ))  # fmt: skip
        super().__init__(Record((("sector_id", Number()), ("comm_r", Hash()), ("sector_proofs", Repeated(1, proof)))))
        self.paths: tuple[MerkleAt, ...] = tuple(
            self.places.merkle(f"{_PROOF}.inclusion_proofs[{i}]", parts) for i in range(shape.paths)
        )


@cache
def post_layout(shape: PostShape) -> PostLayout:
    return PostLayout(shape)


@dataclass(frozen=True)
class Replica:
    """A sector as a PoSt sees it. Commitments 32 bytes each; `tree_r` is the tree over the replica."""

    number: int
    comm_r: bytes
    comm_c: bytes
    comm_r_last: bytes
    tree_r: AnyTree


@dataclass(frozen=True)
class PostVanilla:
    """The sectors of a statement with their proofs, in its order."""

    statement: PostStatement
    items: Items

    @staticmethod
    def of_bytes(raw: Sequence[bytes], statement: PostStatement, source: str) -> PostVanilla:
        """Items as a request carries them. Raises FormatError for what has not the form of the statement's circuit; see
        `check`."""
        shape = statement.shape
        what = f"an item of a {statement.registered.name}"
        if len(raw) != len(statement.sectors):
            raise FormatError(source, f"{len(raw)} items; the statement is of {len(statement.sectors)} sectors")
        return PostVanilla(statement, parse_items(raw, post_layout(shape), source, what))

    @staticmethod
    def of_replicas(replicas: Sequence[Replica], statement: PostStatement) -> PostVanilla:
        """Opened from trees. The statement's sectors must be these, in this order."""
        layout = post_layout(statement.shape)
        items = Items.blank(layout, len(replicas), "the sectors")
        for i, replica in enumerate(replicas):
            items.of_number("sector_id")[i] = replica.number
            for name in ("comm_r", f"{_PROOF}.comm_c", f"{_PROOF}.comm_r_last"):
                items.of_hash(name)[i] = np.frombuffer(getattr(replica, name.rpartition(".")[2]), np.uint8)
            merkle.fill(items, i, layout.paths, replica.tree_r, statement.leaves(i))
        return PostVanilla(statement, items)

    @property
    def layout(self) -> PostLayout:
        return post_layout(self.statement.shape)

    def _elements(self, path: str) -> Elements:
        """(items, 4), canonical."""
        return self.items.values[:, self.layout.places.hash[path]]

    def check(self) -> None:
        """All that the circuit and the verifier would find. Raises FormatError with the place of the first fault."""
        items, statement, paths = self.items, self.statement, self.layout.paths
        for i, sector in enumerate(statement.sectors):
            number = int(items.of_number("sector_id")[i])
            if number != sector.number:
                raise items.fault(i, "sector_id", f"{number}; sector {i} of the statement is {sector.number}")
            if items.of_hash("comm_r")[i].tobytes() != sector.comm_r:
                raise items.fault(i, "comm_r", f"is not the statement's comm_r of sector {number}")
        items.require_elements()
        comm_c, root = self._elements(f"{_PROOF}.comm_c"), self._elements(f"{_PROOF}.comm_r_last")
        wrong = (poseidon_std(np.stack([comm_c, root], axis=1)) != self._elements("comm_r")).any(axis=1)
        if wrong.any():
            text = "is not the hash of comm_c and comm_r_last"
            raise items.fault(int(np.argmax(wrong)), "comm_r", text)
        merkle.require_roots(items, paths, root, "another root than comm_r_last")
        wanted = np.array([statement.leaves(i) for i in range(len(items))], np.int64)
        merkle.require_positions(items, paths, wanted, "randomness and sector number")
        merkle.require_paths(items, paths, poseidon_std)

    def partition(self, k: int, places: int | None = None) -> SectorValues:
        """Columns over the sectors of the k-th partition's circuit; places behind the last sector repeat it. `places`: fewer
        than the circuit has, to count."""
        shape, items, paths = self.statement.shape, self.items, self.layout.paths
        first = k * shape.real_sectors
        real = len(self.statement.partition_sectors(k))
        rows = first + np.minimum(np.arange(places or shape.sectors), real - 1)
        groups = [list(paths)] if shape.kind == "winning" else [[path] for path in paths]
        openings: list[tuple[Elements, PathValues]] = [
            (merkle.leaf_values(items, rows, group), merkle.path_values(items, rows, group)) for group in groups
        ]
        mont = [np.ascontiguousarray(items.mont[rows, self.layout.places.hash[name]])
                for name in (f"{_PROOF}.comm_r_last", f"{_PROOF}.comm_c", "comm_r")]  # fmt: skip
        return SectorValues(mont[0], mont[1], mont[2], openings)
