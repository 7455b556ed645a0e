"""The bincode form of a C1 output: fixed places, since every count in it follows from the sector size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk.circuits.porep.shape import SHAPES, Shape
from cuzk.errors import FormatError
from cuzk.porep.c1.layout import Layout, layout
from cuzk.porep.c1.model import C1
from cuzk.porep.registered import VARIANTS, Registered, registered_name

IDS = ("comm_r", "comm_d", "replica_id", "seed", "ticket")
_IDS_BYTES = 32 * len(IDS)


def bincode_bytes(shape: Shape, partitions: int) -> int:
    return 8 + partitions * (8 + shape.challenges * layout(shape).bincode_bytes) + _IDS_BYTES


def _shape_of(partitions: int, total: int, name: str) -> Shape:
    """The sector size whose document of so many partitions has this length; no two sizes share one."""
    for shape in SHAPES:
        if bincode_bytes(shape, partitions) == total:
            return shape
    known = ", ".join(f"{bincode_bytes(s, partitions):,} ({s.name})" for s in SHAPES)
    raise FormatError(
        name, f"neither JSON nor bincode: {total:,} bytes, of which the first 8 would say {partitions} partitions; such a file "
        f"has one of {known} bytes", offset=0,
    )  # fmt: skip


def read_bincode(data: NDArray[np.uint8], name: str, registered: str | None, max_partitions: int) -> C1:
    """Raises FormatError with the place and the byte of what is not as it must be."""
    partitions = int.from_bytes(data[:8].tobytes(), "little")
    if not 1 <= partitions <= max_partitions or len(data) < 16:
        raise FormatError(name, "neither JSON nor bincode: it begins with neither '{' nor a number of partitions", offset=0)
    shape = _shape_of(partitions, len(data), name)
    kind = Registered(shape, VARIANTS[1]) if registered is None else registered_name(registered)
    if kind.shape is not shape:
        raise FormatError(name, f"a C1 output of {shape.name}, and {kind.name} was asked for")
    where = layout(shape)
    step = 8 + shape.challenges * where.bincode_bytes
    body = data[8 : 8 + partitions * step].reshape(partitions, step)
    counts = np.ascontiguousarray(body[:, :8]).view("<u8")[:, 0]
    for k in np.flatnonzero(counts != shape.challenges)[:1]:
        at = f"vanilla_proofs[{k}]: {counts[k]} challenges, not {shape.challenges}"
        raise FormatError(name, at, offset=8 + int(k) * step)
    records = body[:, 8:].reshape(partitions, shape.challenges, where.bincode_bytes)
    _require_fixed(records, where, name, step)
    hashes = np.empty((partitions, shape.challenges, where.hashes, 32), np.uint8)
    numbers = np.empty((partitions, shape.challenges, where.numbers), np.uint64)
    h = n = 0
    for atom in where.atoms:
        piece = records[:, :, atom.offset : atom.offset + atom.width]
        if atom.kind == "hash":
            hashes[:, :, h] = piece
            h += 1
        elif atom.kind == "number":
            numbers[:, :, n] = _little(piece)
            n += 1
    end = 8 + partitions * step
    ids = [data[end + 32 * i : end + 32 * i + 32].tobytes() for i in range(len(IDS))]
    comm_r, comm_d, replica_id, seed, ticket = ids
    return C1(name, "bincode", kind, hashes, numbers, comm_r, comm_d, replica_id, seed, ticket)


def _little(piece: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(…, width) bytes as numbers."""
    width = piece.shape[-1]
    return np.ascontiguousarray(piece).view(f"<u{width}")[..., 0].astype(np.uint64)


def _require_fixed(records: NDArray[np.uint8], where: Layout, name: str, step: int) -> None:
    """Counts and enum numbers are what the sector size makes them."""
    for atom in where.atoms:
        if atom.kind != "fixed":
            continue
        found = _little(records[:, :, atom.offset : atom.offset + atom.width])
        wrong = np.argwhere(found != atom.expected)
        if len(wrong):
            partition, challenge = (int(x) for x in wrong[0])
            offset = 16 + partition * step + challenge * where.bincode_bytes + atom.offset
            what = "the form of its Merkle proof" if atom.width == 4 else "its number of elements"
            path = f"vanilla_proofs[{partition}][{challenge}].{atom.path}"
            raise FormatError(
                name, f"{path}: {what} is {found[partition, challenge]}, not {atom.expected}, in a sector of {where.shape.name}",
                offset=offset,
            )  # fmt: skip


def bincode_chunks(c1: C1) -> list[bytes]:
    """The whole document in pieces."""
    where = c1.layout
    partitions, challenges = c1.numbers.shape[:2]
    records = np.zeros((partitions, challenges, where.bincode_bytes), np.uint8)
    h = n = 0
    for atom in where.atoms:
        piece = records[:, :, atom.offset : atom.offset + atom.width]
        if atom.kind == "hash":
            piece[...] = c1.hashes[:, :, h]
            h += 1
            continue
        if atom.kind == "number":
            values = c1.numbers[:, :, n].astype(f"<u{atom.width}")
            n += 1
        else:
            values = np.full((partitions, challenges), atom.expected, f"<u{atom.width}")
        piece[...] = np.ascontiguousarray(values)[..., None].view(np.uint8)
    head, count = partitions.to_bytes(8, "little"), challenges.to_bytes(8, "little")
    out = [head]
    for rows in records:
        out += [count, rows.tobytes()]
    return [*out, *(getattr(c1, key) for key in IDS)]
