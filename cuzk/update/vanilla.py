"""Vanilla proofs of SnapDeals, one item a partition: read, written from sectors, checked, and opened for the circuit.

Item: comm_c, the apex leaves (nodes of the new tree D), and of each challenge three Merkle proofs: old tree R, new tree D, new
tree R. The item's place is the partition's number; the commitments come with the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cuzk import native
from cuzk.circuits.update.circuit import ChallengeValues, PrefixValues
from cuzk.circuits.update.shape import UpdateShape
from cuzk.errors import FormatError
from cuzk.porep.c1.layout import MerkleAt, merkle_schema, tree_parts
from cuzk.porep.c1.schema import Hash, Record, Repeated
from cuzk.porep.trees import poseidon_std, sha256_std
from cuzk.update.encoding import Elements, challenges, element, elements_of, factors_mont
from cuzk.update.statement import UpdateStatement
from cuzk.vanilla import merkle
from cuzk.vanilla.items import ItemLayout, Items, parse_items
from cuzk.vanilla.merkle import AnyTree

_TREES = ("proof_r_old", "proof_d_new", "proof_r_new")


class UpdateLayout(ItemLayout):
    """The item of a partition."""

    def __init__(self, shape: UpdateShape) -> None:
        parts = tree_parts(shape.path)
        data = ((2,) * shape.node_bits,)
        forms = (parts, data, parts)
        proofs = Record(tuple((name, merkle_schema(form)) for name, form in zip(_TREES, forms, strict=True)))
        super().__init__(Record((
            ("comm_c", Hash()), ("apex_leafs", Repeated(shape.apex_leaves, Hash())),
            ("challenge_proofs", Repeated(shape.challenges, proofs)),
        )))  # fmt: skip
        self.apex = self.places.hash["apex_leafs[0]"]

        def of_tree(name: str, form: tuple[tuple[int, ...], ...]) -> tuple[MerkleAt, ...]:
            return tuple(self.places.merkle(f"challenge_proofs[{i}].{name}", form) for i in range(shape.challenges))

        self.r_old, self.d_new, self.r_new = (of_tree(n, f) for n, f in zip(_TREES, forms, strict=True))


@cache
def update_layout(shape: UpdateShape) -> UpdateLayout:
    return UpdateLayout(shape)


@dataclass(frozen=True)
class UpdatedTrees:
    """An updated sector as its proof sees it. `apex_level` (n, 4): the nodes of the new tree D from which apex trees grow."""

    comm_c: bytes
    tree_r_old: AnyTree
    tree_d_new: AnyTree
    tree_r_new: AnyTree
    apex_level: Elements


@dataclass(frozen=True)
class UpdateVanilla:
    """The partitions of a statement, in order."""

    statement: UpdateStatement
    items: Items

    @staticmethod
    def of_bytes(raw: Sequence[bytes], statement: UpdateStatement, source: str) -> UpdateVanilla:
        """Items as a request carries them. Raises FormatError for what has not the form of the statement's circuit; see
        `check`."""
        shape = statement.shape
        if len(raw) != shape.partitions:
            raise FormatError(source, f"{len(raw)} items; an update of a {shape.size} sector has {shape.partitions} partitions")
        what = f"an item of a {shape.size} update"
        return UpdateVanilla(statement, parse_items(raw, update_layout(shape), source, what))

    @staticmethod
    def of_trees(trees: UpdatedTrees, statement: UpdateStatement) -> UpdateVanilla:
        shape, layout = statement.shape, update_layout(statement.shape)
        items = Items.blank(layout, shape.partitions, "the sector")
        for k in range(shape.partitions):
            nodes = challenges(shape, statement.comm_r_new, k)
            items.of_hash("comm_c")[k] = np.frombuffer(trees.comm_c, np.uint8)
            first = k * shape.apex_leaves
            items.values[k, layout.apex : layout.apex + shape.apex_leaves] = trees.apex_level[first : first + shape.apex_leaves]
            for ats, tree in (
                (layout.r_old, trees.tree_r_old), (layout.d_new, trees.tree_d_new), (layout.r_new, trees.tree_r_new)
            ):  # fmt: skip
                merkle.fill(items, k, ats, tree, nodes)
        return UpdateVanilla(statement, items)

    @property
    def layout(self) -> UpdateLayout:
        return update_layout(self.statement.shape)

    def _element(self, place: int) -> Elements:
        """(items, 4), canonical."""
        return self.items.values[:, place]

    def _apex(self) -> Elements:
        """(items, leaves, 4)."""
        return self.items.values[:, self.layout.apex : self.layout.apex + self.statement.shape.apex_leaves]

    def check(self) -> None:
        """All that the circuit and the verifier would find. Raises FormatError with the place of the first fault."""
        items, statement, layout, shape = self.items, self.statement, self.layout, self.statement.shape
        items.require_elements()
        comm_c = self._element(layout.places.hash["comm_c"])
        for name, ats in (("comm_r_old", layout.r_old), ("comm_r_new", layout.r_new)):
            root = self._element(ats[0].root)
            wrong = (poseidon_std(np.stack([comm_c, root], axis=1)) != element(getattr(statement, name))).any(axis=1)
            if wrong.any():
                text = f"with comm_c it does not hash to the statement's {name}"
                raise items.fault(int(np.argmax(wrong)), f"{ats[0].path}.root", text)
            merkle.require_roots(items, ats, root, "another root than that of the partition's first challenge")
        comm_d = element(statement.comm_d_new)
        merkle.require_roots(items, layout.d_new, comm_d, "is not the statement's comm_d_new")
        wanted = np.array([challenges(shape, statement.comm_r_new, k) for k in range(len(items))], np.int64)
        for ats in (layout.r_old, layout.d_new, layout.r_new):
            merkle.require_positions(items, ats, wanted, "comm_r_new and the partition")
        merkle.require_paths(items, layout.r_old, poseidon_std)
        merkle.require_paths(items, layout.d_new, sha256_std)
        merkle.require_paths(items, layout.r_new, poseidon_std)
        self._check_apex(wanted)
        self._check_encoding(wanted)

    def _check_apex(self, nodes: np.ndarray) -> None:
        """The apex leaves hash up to comm_d_new, and are the nodes that the challenges' paths pass."""
        items, shape = self.items, self.statement.shape
        current = self._apex()
        while current.shape[1] > 1:
            current = sha256_std(current.reshape(-1, 2, 4)).reshape(len(items), -1, 4)
        roots = current[:, 0]
        level = shape.challenge_bits
        above = roots
        for at_level in range(level, shape.node_bits):
            first = self.layout.d_new[0].levels[at_level][0]
            position = np.arange(len(items)) >> (at_level - level) & 1
            sibling = self._element(first)
            left = np.where(position[:, None] == 1, sibling, above)
            right = np.where(position[:, None] == 1, above, sibling)
            above = sha256_std(np.stack([left, right], axis=1))
        wrong = (above != element(self.statement.comm_d_new)).any(axis=1)
        if wrong.any():
            raise items.fault(int(np.argmax(wrong)), "apex_leafs", "do not hash to comm_d_new")
        self._check_passes(nodes)

    def _check_passes(self, nodes: np.ndarray) -> None:
        items, shape = self.items, self.statement.shape
        below = [MerkleAt(at.path, at.root, at.leaf, at.levels[: shape.data_levels]) for at in self.layout.d_new]
        if shape.data_levels:
            reached = merkle.computed_roots(items, below, sha256_std)
        else:
            reached = items.values[:, [at.leaf for at in below]]
        slot = (nodes >> shape.data_levels) % shape.apex_leaves
        passed = np.take_along_axis(self._apex(), slot[:, :, None], axis=1)
        for item, k in np.argwhere((passed != reached).any(axis=-1))[:1].tolist():
            raise items.fault(item, f"apex_leafs[{slot[item, k]}]", f"is not the node that {below[k].path} passes")

    def _check_encoding(self, nodes: np.ndarray) -> None:
        items, statement, layout, shape = self.items, self.statement, self.layout, self.statement.shape
        factors = factors_mont(shape, statement.comm_d_new, statement.comm_r_old)
        rho = factors[nodes.reshape(-1) >> (shape.node_bits - shape.h)]
        old, data, new = (
            np.ascontiguousarray(items.values[:, [at.leaf for at in ats]].reshape(-1, 4))
            for ats in (layout.r_old, layout.d_new, layout.r_new)
        )
        wrong = (native.fr_add(old, native.fr_mul(rho, data)) != new).any(axis=1).reshape(nodes.shape)
        for item, k in np.argwhere(wrong)[:1].tolist():
            raise items.fault(item, f"{layout.r_new[k].path}.leaf", "is not the old leaf with the data's encoding added")

    def prefix(self, partition: int) -> PrefixValues:
        """Elements (1, 4), Montgomery."""
        statement, layout, shape = self.statement, self.layout, self.statement.shape
        mont = self.items.mont[partition]
        given = [element(getattr(statement, n)) for n in ("comm_r_old", "comm_d_new", "comm_r_new")]
        stated = native.fr_from_std(np.concatenate([elements_of([shape.partition_and_h(partition)]), *given]))
        top = layout.d_new[0].levels[shape.challenge_bits :]
        return PrefixValues(
            stated[0:1], stated[1:2], stated[2:3], stated[3:4],
            mont[layout.places.hash["comm_c"]][None], mont[layout.r_old[0].root][None], mont[layout.r_new[0].root][None],
            [mont[layout.apex + i][None] for i in range(shape.apex_leaves)], [mont[first][None] for first, _, _ in top],
        )  # fmt: skip

    def challenge_values(self, partition: int) -> ChallengeValues:
        """Columns over the challenges, Montgomery."""
        layout, shape = self.layout, self.statement.shape
        mont = self.items.mont[partition]

        def columns(places: Sequence[int]) -> Elements:
            return np.ascontiguousarray(mont[list(places)])

        def path(ats: Sequence[MerkleAt]) -> list[list[Elements]]:
            return [
                [columns([at.levels[level][0] + j for at in ats]) for j in range(arity - 1)]
                for level, (_, _, arity) in enumerate(ats[0].levels)
            ]

        return ChallengeValues(
            columns([at.leaf for at in layout.r_old]), columns([at.leaf for at in layout.d_new]),
            path(layout.r_old), path(layout.r_new), [level[0] for level in path(layout.d_new)[: shape.data_levels]],
        )  # fmt: skip
