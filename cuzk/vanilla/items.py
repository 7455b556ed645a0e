"""Items of a vanilla proof: bincode of one schema, all values at fixed places, so that many are read in columns.

A file holds a JSON array of base64 strings (Go's form of a list of byte strings), or the bytes of one item as they are.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import native, strict_json
from cuzk.errors import FormatError
from cuzk.groth16.formats.files import read_small, write_text
from cuzk.porep.c1.layout import Places
from cuzk.porep.c1.schema import Atom, Record

MAX_FILE_BYTES = 1 << 28
"""A whole partition of WindowPoSt is 78 MB of JSON."""


class ItemLayout:
    """The places of an item's values in its bytes and among its hashes and numbers."""

    def __init__(self, schema: Record) -> None:
        self.schema = schema
        self.places = Places(schema)
        self.atoms: tuple[Atom, ...] = self.places.atoms
        last = self.atoms[-1]
        self.item_bytes = last.offset + last.width

    def hash_path(self, place: int) -> str:
        return [atom.path for atom in self.atoms if atom.kind == "hash"][place]

    def number_path(self, place: int) -> str:
        return [atom.path for atom in self.atoms if atom.kind == "number"][place]


@dataclass(frozen=True)
class Items:
    """`hashes` (items, k, 32) uint8 and `numbers` (items, m) uint64, as `layout` says."""

    source: str
    """The file, for messages."""
    layout: ItemLayout
    hashes: NDArray[np.uint8]
    numbers: NDArray[np.uint64]

    @staticmethod
    def blank(layout: ItemLayout, count: int, source: str = "") -> Items:
        """Items of zeros, to be filled."""
        hashes = np.zeros((count, layout.schema.hashes, 32), np.uint8)
        return Items(source, layout, hashes, np.zeros((count, layout.schema.numbers), np.uint64))

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def values(self) -> NDArray[np.uint64]:
        """The hashes as canonical field elements, (items, k, 4)."""
        return self.hashes.view(np.uint64).reshape(*self.hashes.shape[:2], 4)

    @cached_property
    def mont(self) -> NDArray[np.uint64]:
        """The same in Montgomery form."""
        return native.fr_from_std(self.values.reshape(-1, 4)).reshape(self.values.shape)

    def of_hash(self, path: str) -> NDArray[np.uint8]:
        """(items, 32): a hash of every item."""
        return self.hashes[:, self.layout.places.hash[path]]

    def of_number(self, path: str) -> NDArray[np.uint64]:
        return self.numbers[:, self.layout.places.number[path]]

    def fault(self, item: int, path: str, message: str, offset: int | None = None) -> FormatError:
        """An error that names the file and the place in an item."""
        return FormatError(self.source, f"{place(item, path)}: {message}", offset=offset)

    def require_elements(self) -> None:
        """Raises FormatError for the first hash that is not below r."""
        bad = native.fr_less_than_r(self.values.reshape(-1, 4))
        if bad >= 0:
            item, k = divmod(bad, self.hashes.shape[1])
            raise self.fault(item, self.layout.hash_path(k), "not below the field's modulus")


def place(item: int, path: str = "") -> str:
    """The name of a place, as in `vanilla_proofs[3].comm_c`."""
    return f"vanilla_proofs[{item}]" + (f".{path}" if path else "")


def parse_items(raw: Sequence[bytes], layout: ItemLayout, source: str, what: str) -> Items:
    """Items from their bytes. `what` they are, for messages. Raises FormatError with the place and the byte of a count or a
    length that is not as it must be."""
    for i, one in enumerate(raw):
        if len(one) != layout.item_bytes:
            raise _wrong_length(one, i, layout, source, what)
    data = np.frombuffer(b"".join(raw), np.uint8).reshape(len(raw), layout.item_bytes)
    out = Items.blank(layout, len(raw), source)
    h = n = 0
    for atom in layout.atoms:
        piece = data[:, atom.offset : atom.offset + atom.width]
        if atom.kind == "hash":
            out.hashes[:, h] = piece
            h += 1
            continue
        found = np.ascontiguousarray(piece).view(f"<u{atom.width}")[:, 0]
        if atom.kind == "number":
            out.numbers[:, n] = found
            n += 1
        elif (found != atom.expected).any():
            item = int(np.argmax(found != atom.expected))
            raise _wrong_count(int(found[item]), item, atom, source, what)
    return out


def _wrong_count(found: int, item: int, atom: Atom, source: str, what: str) -> FormatError:
    kind = "the form of its Merkle proof" if atom.width == 4 else "its number of elements"
    text = f"{place(item, atom.path)}: {kind} is {found}, not {atom.expected}, in {what}"
    return FormatError(source, text, offset=atom.offset)


def _wrong_length(one: bytes, item: int, layout: ItemLayout, source: str, what: str) -> FormatError:
    """The reason of a wrong length: the first count that differs, else where the bytes end."""
    for atom in layout.atoms:
        piece = one[atom.offset : atom.offset + atom.width]
        if len(piece) < atom.width:
            return FormatError(source, f"{place(item)} ends inside {atom.path}: {len(one):,} bytes, {what} has "
                               f"{layout.item_bytes:,}", offset=len(one))  # fmt: skip
        found = int.from_bytes(piece, "little")
        if atom.kind == "fixed" and found != atom.expected:
            return _wrong_count(found, item, atom, source, what)
    extra = len(one) - layout.item_bytes
    return FormatError(source, f"{place(item)}: {extra:,} bytes behind the end of {what}", offset=layout.item_bytes)


def item_bytes(items: Items) -> list[bytes]:
    """The bincode of each item."""
    data = np.zeros((len(items), items.layout.item_bytes), np.uint8)
    h = n = 0
    for atom in items.layout.atoms:
        piece = data[:, atom.offset : atom.offset + atom.width]
        if atom.kind == "hash":
            piece[...] = items.hashes[:, h]
            h += 1
            continue
        if atom.kind == "number":
            values = items.numbers[:, n].astype(f"<u{atom.width}")
            n += 1
        else:
            values = np.full(len(items), atom.expected, f"<u{atom.width}")
        piece[...] = values[:, None].view(np.uint8)
    return [row.tobytes() for row in data]


def read_raw_items(path: str | PathLike[str]) -> list[bytes]:
    """The items of a file in either form. Raises FormatError with the place of what is not base64, InputError."""
    data = read_small(path, MAX_FILE_BYTES)
    if data.lstrip()[:1] != b"[":
        return [data]
    document: Any = strict_json.loads(path, data)
    out = []
    for i, text in enumerate(document):
        if not isinstance(text, str):
            raise FormatError(path, f"[{i}]: must be a string of base64, not {type(text).__name__}")
        try:
            out.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError) as error:
            raise FormatError(path, f"[{i}]: not base64: {error}") from error
    if not out:
        raise FormatError(path, "no items: the array is empty")
    return out


def write_raw_items(path: str | PathLike[str], items: Sequence[bytes]) -> None:
    """A JSON array of base64 strings."""
    write_text(fspath(path), raw_items_text(items))


def raw_items_text(items: Sequence[bytes]) -> str:
    return json.dumps([base64.b64encode(one).decode() for one in items]) + "\n"
