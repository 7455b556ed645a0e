"""Data put into a sealed sector, and the updated sector as a directory.

`update.json` (the statement, comm_c, roots), `replica.bin` (the new one), `tree-d.bin`, and `tree-r-last.bin` without its
leaves, as in a sealed sector's directory, which stays as it is: its proofs open both.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuzk.circuits.update.shape import update_shape
from cuzk.errors import FormatError, InputError
from cuzk.outputs import whole_directory
from cuzk.porep.files import map_nodes, map_tree
from cuzk.porep.sealing import Sealed
from cuzk.porep.statement import read_json
from cuzk.porep.trees import Tree, poseidon_std, poseidon_tree, sha256_tree
from cuzk.update.encoding import Elements, decode, encode, factors_mont
from cuzk.update.statement import UpdateStatement, read_statement
from cuzk.update.vanilla import UpdatedTrees, UpdateVanilla


@dataclass(frozen=True)
class Updated:
    """An updated sector."""

    sector_number: int
    statement: UpdateStatement
    comm_c: bytes
    tree_d: Tree
    tree_r_last: Tree

    @property
    def comm_r_last(self) -> bytes:
        return self.tree_r_last.root.tobytes()

    def vanilla(self, sealed: Sealed) -> UpdateVanilla:
        """All partitions, opened from this and the sealed sector. Raises InputError if that is another one."""
        self.require_of(sealed)
        apex = self.tree_d.levels[self.statement.shape.data_levels]
        trees = UpdatedTrees(self.comm_c, sealed.tree_r_last, self.tree_d, self.tree_r_last, apex)
        return UpdateVanilla.of_trees(trees, self.statement)

    def require_of(self, sealed: Sealed) -> None:
        if (sealed.comm_r, sealed.comm_c) != (self.statement.comm_r_old, self.comm_c):
            raise InputError("the updated sector was not made from this sealed one: its comm_r_old or comm_c is another")

    def data(self, sealed: Sealed) -> Elements:
        """The data again, from the two replicas alone."""
        self.require_of(sealed)
        statement = self.statement
        factors = factors_mont(statement.shape, statement.comm_d_new, statement.comm_r_old)
        return decode(statement.shape, sealed.tree_r_last.levels[0], self.tree_r_last.levels[0], factors)


def update_sector(sealed: Sealed, data: Elements) -> Updated:
    """Puts (nodes, 4) padded data into a sealed sector. Raises InputError if that holds data already."""
    if np.asarray(sealed.tree_d.levels[0]).any():
        raise InputError("the sealed sector holds data already; an update is of one that was sealed over zeros")
    shape = update_shape(sealed.shape.name)
    tree_d = sha256_tree(data)
    comm_d_new = tree_d.root.tobytes()
    factors = factors_mont(shape, comm_d_new, sealed.comm_r)
    tree_r = poseidon_tree(encode(shape, np.ascontiguousarray(sealed.tree_r_last.levels[0]), data, factors), shape.path)
    roots = np.stack([np.frombuffer(sealed.comm_c, np.uint64).reshape(1, 4), tree_r.root], axis=1)
    statement = UpdateStatement(shape, sealed.comm_r, comm_d_new, poseidon_std(roots).tobytes())
    return Updated(sealed.ids.sector_number, statement, sealed.comm_c, tree_d, tree_r)


def save_updated(updated: Updated, directory: str | os.PathLike[str]) -> None:
    """The directory appears whole or not at all. Raises InputError if there is something there."""
    document = {**updated.statement.document(), "sector_number": updated.sector_number, "comm_c_hex": updated.comm_c.hex()}
    with whole_directory(directory) as temporary:
        (temporary / "replica.bin").write_bytes(updated.tree_r_last.levels[0].tobytes())
        for name, tree, first in (("tree-d.bin", updated.tree_d, 0), ("tree-r-last.bin", updated.tree_r_last, 1)):
            with open(temporary / name, "wb") as out:
                for level in tree.levels[first:]:
                    out.write(level.tobytes())
        (temporary / "update.json").write_text(json.dumps(document, indent=2) + "\n")


def load_updated(directory: str | os.PathLike[str]) -> Updated:
    """Maps an updated sector. Raises InputError for what is missing, of another length, or has another root than update.json
    says; leaves and inner nodes are believed here, and judged by the check of what is opened."""
    base = Path(directory)
    path = base / "update.json"
    if not path.exists():
        raise InputError(f"{path}: missing; is {base} an updated sector?")
    statement, document = read_statement(path), read_json(path)
    number, text = document.get("sector_number"), document.get("comm_c_hex")
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise FormatError(path, "sector_number: missing or not a whole number")
    try:
        comm_c = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        comm_c = b""
    if len(comm_c) != 32:
        raise FormatError(path, "comm_c_hex: missing or not 64 hexadecimal digits")
    shape = statement.shape
    tree_d = map_tree(base / "tree-d.bin", (2,) * shape.node_bits, shape.nodes)
    tree_r = map_tree(base / "tree-r-last.bin", shape.path, shape.nodes, map_nodes(base / "replica.bin", shape.nodes))
    if tree_d.root.tobytes() != statement.comm_d_new:
        raise FormatError(base / "tree-d.bin", "its root is not the comm_d_new of update.json")
    roots = np.stack([np.frombuffer(comm_c, np.uint64).reshape(1, 4), tree_r.root], axis=1)
    if poseidon_std(roots).tobytes() != statement.comm_r_new:
        raise FormatError(base / "tree-r-last.bin", "its root and comm_c do not make the comm_r_new of update.json")
    return Updated(number, statement, comm_c, tree_d, tree_r)
