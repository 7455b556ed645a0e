"""Writing a C1 output, in the form and order that phase 1 writes; and opening our own sectors as one."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from os import PathLike

import numpy as np

from cuzk.errors import InputError
from cuzk.outputs import atomic_write
from cuzk.porep.c1.bincode import bincode_chunks
from cuzk.porep.c1.layout import MerkleAt, layout
from cuzk.porep.c1.model import C1
from cuzk.porep.c1.schema import Hash, Number, Phantom, Record, Schema
from cuzk.porep.opening import sector_challenges
from cuzk.porep.registered import registered_id
from cuzk.porep.sealing import Sealed
from cuzk.porep.synthetic import SyntheticSector
from cuzk.porep.trees import SparseTree, Tree

FORMS = ("wrapper", "inner", "bincode")
_BYTES = [str(b) for b in range(256)]
_RUST = ("registered_proof", "vanilla_proofs", "comm_r", "comm_d", "replica_id", "seed", "ticket")


def sector_c1(sector: Sealed | SyntheticSector, seed: bytes) -> C1:
    """The C1 output of a sector: for each partition its challenges with their paths, columns and labels.

    Raises InputError for a seed of zeros, which every reader refuses.
    """
    if not any(seed):
        raise InputError("--seed: all zero; readers of C1 outputs refuse that")
    registered = registered_id(sector.ids.porep_id)
    at = layout(sector.shape)
    n = sector.shape.challenges
    hashes = np.zeros((registered.partitions, n, at.hashes, 32), np.uint8)
    numbers = np.zeros((registered.partitions, n, at.numbers), np.uint64)
    c1 = C1(
        "C1 output", "wrapper", registered, hashes, numbers, sector.comm_r, sector.comm_d, sector.replica_id, seed,
        sector.ids.ticket, sector.ids.sector_number, sector.shape.sector_bytes,
    )  # fmt: skip
    for partition in range(registered.partitions):
        nodes = np.array(sector_challenges(sector, seed, partition), np.int64)
        _fill(c1, partition, sector, nodes)
    return c1


def _fill(c1: C1, partition: int, sector: Sealed | SyntheticSector, nodes: np.ndarray) -> None:
    at = c1.layout
    hashes, numbers = c1.hashes[partition].view(np.uint64), c1.numbers[partition]

    def merkle(to: MerkleAt, tree: Tree | SparseTree, leaves: np.ndarray) -> None:
        hashes[:, to.root], hashes[:, to.leaf] = tree.root[0], tree.leaves(leaves)
        for (first, index, arity), (position, others) in zip(to.levels, tree.siblings(leaves), strict=True):
            hashes[:, first : first + arity - 1] = others
            numbers[:, index] = position

    merkle(at.data, sector.tree_d, nodes)
    merkle(at.replica, sector.tree_r_last, nodes)
    parents = np.array([[int(node), *c1.graph.parents(int(node))] for node in nodes], np.int64)
    for column, around in zip(at.columns, parents.T, strict=True):
        merkle(column.proof, sector.tree_c, around)
        numbers[:, column.index] = around
        for k, labels in enumerate(sector.column(around)):
            hashes[:, column.rows + k] = labels
    layers = len(at.labels)
    for k, label in enumerate([*at.labels, at.encoding]):
        layer = min(k, layers - 1)
        hashes[:, label.parents : label.parents + 37] = hashes[:, at.parent_rows(layer)]
        numbers[:, label.layer], numbers[:, label.node] = layer + 1, nodes


def write_c1(c1: C1, path: str | PathLike[str], form: str = "wrapper") -> int:
    """Writes a C1 output as `wrapper`, `inner` or `bincode`; its bytes. Raises InputError where it cannot be written."""
    written = 0
    with atomic_write(path) as file:
        for piece in chunks(c1, form):
            file.write(piece)
            written += len(piece)
    return written


def c1_bytes(c1: C1, form: str = "wrapper") -> bytes:
    return b"".join(chunks(c1, form))


def chunks(c1: C1, form: str) -> Iterable[bytes]:
    """The document in pieces. Raises InputError for a form that there is not."""
    if form == "bincode":
        return bincode_chunks(c1)
    if form == "inner":
        return _inner(c1)
    if form == "wrapper":
        return _wrapper(c1)
    raise InputError(f"unknown form {form!r}: {', '.join(FORMS)}")


def _wrapper(c1: C1) -> Iterator[bytes]:
    yield b'{"SectorNum":%d,"Phase1Out":"' % (c1.sector_number or 0)
    rest = b""
    for piece in _inner(c1):
        rest += piece
        whole = len(rest) // 3 * 3
        yield base64.b64encode(rest[:whole])
        rest = rest[whole:]
    yield base64.b64encode(rest) + b'","SectorSize":%d}' % c1.sector_size


def _inner(c1: C1) -> Iterator[bytes]:
    for k, key in enumerate(_RUST):
        yield (b"," if k else b"{") + f'"{key}":'.encode()
        if key == "registered_proof":
            yield f'"{c1.registered.name}"'.encode()
        elif key == "vanilla_proofs":
            yield from _vanilla(c1)
        else:
            yield _hash(getattr(c1, key)).encode()
    yield b"}"


def _vanilla(c1: C1) -> Iterator[bytes]:
    yield f'{{"StackedDrg{c1.shape.name}V1":['.encode()
    schema = c1.layout.schema
    for partition in range(c1.partitions):
        yield b",[" if partition else b"["
        for challenge in range(c1.shape.challenges):
            texts = iter([_hash(row.tobytes()) for row in c1.hashes[partition, challenge]])
            figures = iter(c1.numbers[partition, challenge].tolist())
            parts: list[str] = [","] if challenge else []
            _element(schema, texts, figures, parts)
            yield "".join(parts).encode()
        yield b"]"
    yield b"]}"


def _hash(raw: bytes) -> str:
    return f"[{','.join([_BYTES[b] for b in raw])}]"


def _element(schema: Schema, hashes: Iterator[str], numbers: Iterator[int], out: list[str]) -> None:
    match schema:
        case Hash():
            out.append(next(hashes))
        case Number():
            out.append(str(next(numbers)))
        case Phantom():
            out.append("null")
        case Record():
            for k, (name, child) in enumerate(schema.fields):
                out.append(f'{"," if k else "{"}"{name}":')
                _element(child, hashes, numbers, out)
            out.append("}")
        case _:
            for k in range(schema.count):
                out.append("," if k else "[")
                _element(schema.element, hashes, numbers, out)
            out.append("]")
