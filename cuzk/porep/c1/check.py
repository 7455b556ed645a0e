"""Everything a C1 output must satisfy, before a proof is begun (SERVICE.md 1.8); each fault is named by its place.

The quick checks (counts, commitments, challenges, parents) take milliseconds. The full ones hash every Merkle path, column
and label: what the circuit would find, a second of a core for 32 GiB and no proof lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.circuits.hashes import poseidon_mont
from cuzk.errors import FormatError
from cuzk.porep.c1.layout import LabelAt, MerkleAt
from cuzk.porep.c1.model import C1, Owner
from cuzk.porep.registered import Drawing
from cuzk.porep.sealing import label
from cuzk.porep.trees import Hash, poseidon_std, sha256_std

Elements = NDArray[np.uint64]


def check_c1(c1: C1, owner: Owner | None = None, *, full: bool = True, threads: int | None = None) -> None:
    """Raises FormatError for the first fault, with its place in the document. `owner`: whose sector it must be; without one,
    that the replica id follows from miner and sector number is not checked."""
    checks = Checks(c1, threads)
    checks.counts()
    checks.commitments()
    if owner is not None:
        checks.owner(owner)
    checks.roots()
    checks.nodes()
    if full:
        checks.columns()
        checks.paths()
        checks.encoding()
        checks.labels()


class Checks:
    def __init__(self, c1: C1, threads: int | None = None) -> None:
        self.c1, self.at, self.threads = c1, c1.layout, threads
        self.values: Elements = c1.hashes.view(np.uint64).reshape(*c1.hashes.shape[:3], 4)
        self.all_columns = [column.proof for column in self.at.columns]

    def _fail(self, where: tuple[int, int], rest: str, message: str) -> FormatError:
        return self.c1.fault(self.c1.place(*where, rest), message)

    def counts(self) -> None:
        c1 = self.c1
        wanted = c1.registered.partitions
        if c1.partitions != wanted:
            raise c1.fault(c1.place(), f"{c1.partitions} partitions; {c1.registered.name} has {wanted}")
        named = c1.sector_bytes_named
        if named is not None and named != c1.sector_size:
            raise c1.fault("SectorSize", f"{named}, but {c1.registered.name} is of {c1.sector_size} bytes")

    def commitments(self) -> None:
        c1 = self.c1
        for name in ("comm_d", "comm_r", "seed"):
            if not any(getattr(c1, name)):
                raise c1.fault(name, "all zero")
        for name in ("comm_d", "comm_r", "replica_id"):
            if native.fr_less_than_r(_element(getattr(c1, name))) >= 0:
                raise c1.fault(name, "not below the field's modulus")
        bad = native.fr_less_than_r(self.values.reshape(-1, 4))
        if bad >= 0:
            partition, challenge, k = (int(x) for x in np.unravel_index(bad, self.values.shape[:3]))
            path = [atom.path for atom in self.at.atoms if atom.kind == "hash"][k]
            raise self._fail((partition, challenge), path, "not below the field's modulus")

    def owner(self, owner: Owner) -> None:
        c1 = self.c1
        if c1.ids(owner).replica_id(c1.comm_d) != c1.replica_id:
            raise c1.fault(
                "replica_id", f"is not that of sector {owner.sector_number} of this miner, with this ticket and comm_d"
            )

    def roots(self) -> None:
        """One root of each tree in the whole sector, and the commitments are theirs."""
        c1 = self.c1
        self._same_roots([self.at.data], _element(c1.comm_d), "comm_d", "is not the root of tree D")
        trees = [self.all_columns, [self.at.replica]]
        kinds = [np.unique(self.values[:, :, [m.root for m in merkles]].reshape(-1, 4), axis=0) for merkles in trees]
        # one changed root of many: the commitment says which ones belong to it
        pairs = [(c, r) for c in kinds[0][:4] for r in kinds[1][:4]]
        hashed = poseidon_std(np.stack([np.stack(pair) for pair in pairs]))
        fits = np.flatnonzero((hashed == _element(c1.comm_r)).all(axis=1))
        if not len(fits):
            if len(pairs) == 1:
                raise c1.fault("comm_r", "is not the hash of the roots of trees C and R")
            common = [_most_common(self.values[:, :, [m.root for m in merkles]]) for merkles in trees]
        else:
            common = [root[None] for root in pairs[int(fits[0])]]
        for merkles, root in zip(trees, common, strict=True):
            self._same_roots(merkles, root, None, "")

    def _same_roots(self, merkles: list[MerkleAt], root: Elements, commitment: str | None, message: str) -> None:
        wrong = (self.values[:, :, [m.root for m in merkles]] != root[0]).any(axis=-1)
        if commitment is not None and wrong.all():
            first = self.values[0, 0, merkles[0].root]
            if (self.values[:, :, merkles[0].root] == first).all():
                raise self.c1.fault(commitment, message)
        for partition, challenge, k in np.argwhere(wrong)[:1].tolist():
            raise self._fail((partition, challenge), f"{merkles[k].path}.root", "another root than the sector's")

    def nodes(self) -> None:
        """Challenges follow from the seed, indices and parents from the challenges."""
        c1, drawing = self.c1, self.c1.registered.drawing
        source = "replica_id and comm_r" if drawing is Drawing.NON_INTERACTIVE else "replica_id and seed"
        for partition in range(c1.partitions):
            for challenge, (node, parents) in enumerate(c1.opened[partition]):
                where, numbers = (partition, challenge), c1.numbers[partition, challenge]
                for k, at in enumerate([*self.at.labels, self.at.encoding]):
                    if numbers[at.node] != node:
                        text = f"{numbers[at.node]}, but its challenge, by {source}, is node {node}"
                        raise self._fail(where, f"{at.path}.node", text)
                    layer = min(k + 1, len(self.at.labels))
                    if numbers[at.layer] != layer:
                        raise self._fail(where, f"{at.path}.layer_index", f"{numbers[at.layer]}, not {layer}")
                self._index(where, numbers, self.at.data, node)
                self._index(where, numbers, self.at.replica, node)
                for column, wanted in zip(self.at.columns, [node, *parents], strict=True):
                    if numbers[column.index] != wanted:
                        text = f"{numbers[column.index]}, but the graph of {c1.registered.name} has node {wanted} there"
                        raise self._fail(where, f"{column.path}.column.index", text)
                    self._index(where, numbers, column.proof, wanted)

    def _index(self, where: tuple[int, int], numbers: Elements, merkle: MerkleAt, node: int) -> None:
        found, weight = 0, 1
        for _, index, arity in merkle.levels:
            found += int(numbers[index]) * weight
            weight *= arity
        if found != node:
            raise self._fail(where, merkle.path, f"the indices of its path lead to node {found}, not {node}")

    def columns(self) -> None:
        """Labels hash to the leaf that the path begins with; where not, the path says which of the two is wrong."""
        layers = self.c1.shape.layers
        for at in self.at.columns:
            rows = self.values[:, :, at.rows : at.rows + layers]
            hashed = self._poseidon(rows.reshape(-1, layers, 4)).reshape(*rows.shape[:2], 4)
            for partition, challenge in np.argwhere((hashed != self.values[:, :, at.proof.leaf]).any(axis=-1))[:1].tolist():
                where = (partition, challenge)
                one = self.values[partition, challenge][None], self.c1.numbers[partition, challenge][None]
                if self._roots([at.proof], *one, hashed[partition, challenge][None]):
                    raise self._fail(where, f"{at.proof.path}.leaf", "is not the hash of the column, which leads to the root")
                k = self._differing_row(where, at.rows)
                rows_at = f"{at.path}.column.rows" + ("" if k is None else f"[{k}]")
                raise self._fail(where, rows_at, "the labels do not hash to the leaf of their path")

    def _differing_row(self, where: tuple[int, int], rows: int) -> int | None:
        """A parent's label that labelings of the node repeat, and differently."""
        labels = self.values[where]
        for k, at in enumerate(self.at.labels):
            for slot, row in enumerate(self.at.parent_rows(k)):
                if rows <= row < rows + len(self.at.labels) and (labels[row] != labels[at.parents + slot]).any():
                    return row - rows
        return None

    def paths(self) -> None:
        flat = self.values.reshape(-1, *self.values.shape[2:]), self.c1.numbers.reshape(-1, self.c1.numbers.shape[2])
        poseidon = [self.at.replica, *self.all_columns]
        for merkles in ([self.at.data], poseidon):
            leaves = np.concatenate([flat[0][:, merkle.leaf] for merkle in merkles])
            good = self._roots(merkles, *flat, leaves).reshape(len(merkles), -1)
            for m, k in np.argwhere(~good)[:1].tolist():
                where = divmod(k, self.c1.shape.challenges)
                raise self._fail(where, merkles[m].path, "its leaf and the hashes of its path do not lead to its root")

    def _roots(self, merkles: list[MerkleAt], values: Elements, numbers: Elements, leaves: Elements) -> NDArray[np.bool_]:
        """Whether each leaf leads to its root. `leaves` (m n, 4) in m trees of one form, `values` (n, h, 4), `numbers` (n, k)."""
        rows = np.arange(len(leaves))
        current = leaves
        node_hash: Hash = sha256_std if merkles[0] is self.at.data else self._poseidon
        for level in zip(*(merkle.levels for merkle in merkles), strict=True):
            arity = level[0][2]
            position = np.concatenate([numbers[:, index] for _, index, _ in level]).astype(np.int64)
            children = np.empty((len(leaves), arity, 4), np.uint64)
            others = np.arange(arity - 1)[None] + (np.arange(arity - 1)[None] >= position[:, None])
            children[rows[:, None], others] = np.concatenate([values[:, first : first + arity - 1] for first, _, _ in level])
            children[rows, position] = current
            current = node_hash(children)
        return np.asarray((current == np.concatenate([values[:, merkle.root] for merkle in merkles])).all(axis=1))

    def _poseidon(self, children: Elements) -> Elements:
        n, arity, _ = children.shape
        mont = native.fr_from_std(np.ascontiguousarray(children).reshape(-1, 4), threads=self.threads)
        return native.fr_to_std(poseidon_mont(mont.reshape(n, arity, 4), self.threads), threads=self.threads)

    def encoding(self) -> None:
        """The replica's leaf is the last label plus the data."""
        layers, own = self.c1.shape.layers, self.at.columns[0]
        places = (own.rows + layers - 1, self.at.data.leaf)
        key, data = (np.ascontiguousarray(self.values[:, :, k]).reshape(-1, 4) for k in places)
        wrong = (native.fr_add(key, data) != self.values[:, :, self.at.replica.leaf].reshape(-1, 4)).any(axis=1)
        for k in np.flatnonzero(wrong)[:1].tolist():
            where = divmod(k, self.c1.shape.challenges)
            raise self._fail(where, f"{self.at.replica.path}.leaf", "is not the node's last label plus its data")

    def labels(self) -> None:
        """Every label follows from its parents; the lists of parents repeat the columns'."""
        layers, own = self.c1.shape.layers, self.at.columns[0]
        for k, at in enumerate(self.at.labels):
            rows = self.at.parent_rows(k)
            self._parents(at, rows)
            if k == layers - 1:
                self._parents(self.at.encoding, rows)
            for partition, challenge in np.ndindex(*self.values.shape[:2]):
                raw = [self.c1.hashes[partition, challenge, row].tobytes() for row in rows[: 14 if k else 6]]
                node = int(self.c1.numbers[partition, challenge, at.node])
                if label(self.c1.replica_id, k + 1, node, raw) != self.c1.hashes[partition, challenge, own.rows + k].tobytes():
                    text = f"is not the label that replica_id and its parents' labels in layer {k + 1} give"
                    raise self._fail((partition, challenge), f"{own.path}.column.rows[{k}]", text)

    def _parents(self, at: LabelAt, rows: list[int]) -> None:
        wrong = (self.values[:, :, at.parents : at.parents + len(rows)] != self.values[:, :, rows]).any(axis=-1)
        for partition, challenge, slot in np.argwhere(wrong)[:1].tolist():
            text = "is not the label of that parent's column"
            raise self._fail((partition, challenge), f"{at.path}.parents[{slot}]", text)


def _element(raw: bytes) -> Elements:
    return np.frombuffer(raw, np.uint64).reshape(1, 4)


def _most_common(roots: Elements) -> Elements:
    kinds, counts = np.unique(roots.reshape(-1, 4), axis=0, return_counts=True)
    return np.asarray(kinds[int(np.argmax(counts))][None], np.uint64)
