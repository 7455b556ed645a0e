"""A sealed sector as a directory.

`seal.json` (ids, commitments), `layer-N.bin` (labels), `replica.bin` (the encoded sector), and the trees, all levels
from the leaves up: `tree-d.bin`, `tree-c.bin`, `tree-r-last.bin` (without its leaves: they are the replica). 32 bytes
a node, little-endian.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cuzk.circuits.porep.shape import NODE_BYTES, Shape
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.files import map_file
from cuzk.outputs import whole_directory
from cuzk.porep.ids import hex32, version_of
from cuzk.porep.sealing import Sealed
from cuzk.porep.statement import Statement, read_json, read_statement
from cuzk.porep.trees import Tree

_TREES = {"tree_d": "tree-d.bin", "tree_c": "tree-c.bin", "tree_r_last": "tree-r-last.bin"}
_COMMS = {"tree_d": "comm_d", "tree_c": "comm_c", "tree_r_last": "comm_r_last"}


def save_sealed(sealed: Sealed, directory: str | os.PathLike[str]) -> None:
    """The directory appears whole or not at all. Raises InputError if there is something there."""
    statement = Statement(sealed.shape, sealed.ids, sealed.comm_d, sealed.comm_r, None, sealed.version)
    document = statement.document()
    document |= {"comm_c_hex": sealed.comm_c.hex(), "comm_r_last_hex": sealed.comm_r_last.hex(),
                 "replica_id_hex": sealed.replica_id.hex()}  # fmt: skip
    with whole_directory(directory) as temporary:
        for i, labels in enumerate(sealed.labels, 1):
            (temporary / f"layer-{i}.bin").write_bytes(labels.tobytes())
        (temporary / "replica.bin").write_bytes(sealed.tree_r_last.levels[0].tobytes())
        for name, file in _TREES.items():
            with open(temporary / file, "wb") as out:
                for level in getattr(sealed, name).levels[name == "tree_r_last" :]:
                    out.write(level.tobytes())
        (temporary / "seal.json").write_text(json.dumps(document, indent=2) + "\n")


def map_nodes(path: Path, count: int) -> np.ndarray:
    """The nodes of a file, (count, 4). Raises InputError for a file that is absent or of another length."""
    if not path.exists():
        raise InputError(f"{path}: missing; the sealed sector is not complete")
    data = map_file(path)
    if len(data) != NODE_BYTES * count:
        message = f"{len(data):,} bytes, a sector of this size needs {NODE_BYTES * count:,}"
        raise FormatError(path, message, offset=min(len(data), NODE_BYTES * count))
    return data.view(np.uint64).reshape(-1, 4)


def map_tree(path: Path, arities: Sequence[int], nodes: int, leaves: np.ndarray | None = None) -> Tree:
    """The tree in a file; `leaves` where it begins with the level above them. Raises InputError."""
    sizes = [nodes]
    for arity in arities:
        sizes.append(sizes[-1] // arity)
    kept = sizes if leaves is None else sizes[1:]
    data = map_nodes(path, sum(kept))
    levels = [data[end - size : end] for end, size in zip(np.cumsum(kept), kept, strict=True)]
    return Tree(tuple(arities), levels if leaves is None else [leaves, *levels])


def _arities(shape: Shape, name: str) -> tuple[int, ...]:
    return (2,) * shape.tree_d_levels if name == "tree_d" else shape.path


def load_sealed(directory: str | os.PathLike[str]) -> Sealed:
    """Maps a sealed sector. Raises InputError for what is missing, of another length, or has another root than
    seal.json says; labels and inner nodes are believed here, and judged by the circuit."""
    base = Path(directory)
    if not base.is_dir():
        raise InputError(f"{base}: no directory of a sealed sector")
    path = base / "seal.json"
    if not path.exists():
        raise InputError(f"{path}: missing; is {base} a sealed sector?")
    statement = read_statement(path)
    document = read_json(path)
    comms = {"comm_d": statement.comm_d, "comm_r": statement.comm_r}
    for name in ("comm_c", "comm_r_last", "replica_id"):
        value = document.get(f"{name}_hex")
        if not isinstance(value, str):
            raise FormatError(path, f"{name}_hex: missing or not a string")
        comms[name] = hex32(value, f"{path}: {name}_hex")
    shape = statement.shape
    labels = [map_nodes(base / f"layer-{i}.bin", shape.nodes) for i in range(1, shape.layers + 1)]
    leaves = {"tree_r_last": map_nodes(base / "replica.bin", shape.nodes)}
    trees = {name: map_tree(base / file, _arities(shape, name), shape.nodes, leaves.get(name)) for name, file in _TREES.items()}
    for name, comm in _COMMS.items():
        if trees[name].root.tobytes() != comms[comm]:
            raise FormatError(base / _TREES[name], f"its root is not the {comm} of seal.json")
    if statement.ids.replica_id(statement.comm_d) != comms["replica_id"]:
        raise FormatError(path, "replica_id does not follow from the ids and comm_d")
    version = statement.version or version_of(statement.ids.porep_id)
    return Sealed(
        shape, statement.ids, version, labels,
        trees["tree_d"], trees["tree_c"], trees["tree_r_last"],
        comms["comm_d"], comms["comm_r"], comms["comm_c"], comms["comm_r_last"], comms["replica_id"],
    )  # fmt: skip
