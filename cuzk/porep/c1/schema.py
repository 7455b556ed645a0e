"""The parts of a document, once for all its forms: JSON read natively, JSON written, bincode read and written.

A document's values are 32-byte hashes and whole numbers; each lies at a fixed place of two arrays, in the order of the
schema, whatever order the keys of a file have. `program` turns a schema into what `native.json_records` follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

U64 = (1 << 64) - 1
U32 = (1 << 32) - 1


@dataclass(frozen=True)
class Hash:
    """An array of 32 numbers in JSON, 32 bytes in bincode."""

    hashes, numbers = 1, 0


@dataclass(frozen=True)
class Number:
    largest: int = U64
    width: int = 8
    """Bytes in bincode."""

    hashes, numbers = 0, 1


@dataclass(frozen=True)
class Phantom:
    """`null`, which may be missing; no byte of bincode."""

    hashes = numbers = 0


@dataclass(frozen=True)
class Repeated:
    """Exactly `count` elements; in bincode behind their number as u64."""

    count: int
    element: Schema

    @property
    def hashes(self) -> int:
        return self.count * self.element.hashes

    @property
    def numbers(self) -> int:
        return self.count * self.element.numbers


@dataclass(frozen=True)
class Record:
    """An object. `variant`: its number in bincode (u32 in front), where it is the content of an enum's only key."""

    fields: tuple[tuple[str, Schema], ...]
    variant: int | None = None

    @cached_property
    def hashes(self) -> int:
        return sum(child.hashes for _, child in self.fields)

    @cached_property
    def numbers(self) -> int:
        return sum(child.numbers for _, child in self.fields)

    def places(self) -> Iterator[tuple[str, Schema, int, int]]:
        """Each field with the places of its first hash and number."""
        h = n = 0
        for name, child in self.fields:
            yield name, child, h, n
            h, n = h + child.hashes, n + child.numbers


Schema = Hash | Number | Phantom | Repeated | Record


@dataclass(frozen=True)
class Atom:
    """A value of the flattened schema. Of bincode: where it lies, and what it must be if it is a count or a variant."""

    path: str
    kind: str
    """`hash`, `number` or `fixed`."""
    offset: int
    width: int
    expected: int = 0


def atoms(schema: Schema) -> list[Atom]:
    """Every value in the order of bincode, which is that of the arrays."""
    out: list[Atom] = []
    _flatten(schema, "", 0, out)
    return out


def _flatten(schema: Schema, path: str, offset: int, out: list[Atom]) -> int:
    match schema:
        case Hash():
            out.append(Atom(path, "hash", offset, 32))
            return offset + 32
        case Number():
            out.append(Atom(path, "number", offset, schema.width))
            return offset + schema.width
        case Repeated():
            out.append(Atom(path, "fixed", offset, 8, schema.count))
            offset += 8
            for i in range(schema.count):
                offset = _flatten(schema.element, f"{path}[{i}]", offset, out)
        case Record():
            if schema.variant is not None:
                out.append(Atom(path, "fixed", offset, 4, schema.variant))
                offset += 4
            for name, child in schema.fields:
                offset = _flatten(child, f"{path}.{name}" if path else name, offset, out)
        case Phantom():
            pass
    return offset


_OBJECT, _ARRAY, _HASH, _NUMBER, _SKIP, _STRING, _TAGGED, _BASE64, _LIST = range(9)


class Program:
    """Assembles what `native.json_records` follows."""

    def __init__(self) -> None:
        self._code: list[int] = []
        self._names = bytearray()
        self._known: dict[Schema, int] = {}

    def _name(self, name: str) -> tuple[int, int]:
        raw = name.encode()
        at = self._names.find(raw)
        if at < 0:
            at = len(self._names)
            self._names += raw
        return at, len(raw)

    def _put(self, *words: int) -> int:
        at = len(self._code)
        self._code += words
        return at

    def schema(self, schema: Schema) -> int:
        """The element of a schema."""
        if schema in self._known:
            return self._known[schema]
        match schema:
            case Hash():
                at = self._put(_HASH)
            case Number():
                at = self._put(_NUMBER, schema.largest & U32, schema.largest >> 32)
            case Phantom():
                at = self._put(_SKIP)
            case Repeated():
                child = self.schema(schema.element)
                at = self._put(_ARRAY, schema.count, child, schema.element.hashes, schema.element.numbers)
            case Record():
                at = self.record([
                    (name, self.schema(child), h, n, not isinstance(child, Phantom), -1) for name, child, h, n in schema.places()
                ])  # fmt: skip
        self._known[schema] = at
        return at

    def record(self, fields: Sequence[tuple[str, int, int, int, bool, int]]) -> int:
        """An object of (name, element, first hash, first number, required, place of the flag that it was there or -1)."""
        words = [w for name, child, h, n, required, flag in fields for w in (*self._name(name), child, h, n, int(required), flag)]
        return self._put(_OBJECT, len(fields), *words)

    def number(self, largest: int) -> int:
        return self.schema(Number(largest))

    def hash(self) -> int:
        return self.schema(Hash())

    def string(self, hashes: int) -> int:
        return self._put(_STRING, hashes)

    def base64(self, element: int) -> int:
        return self._put(_BASE64, element)

    def tagged(self, options: Sequence[tuple[str, int]]) -> int:
        return self._put(_TAGGED, len(options), *(w for name, child in options for w in (*self._name(name), child)))

    def listed(self, schema: Schema, most: int, flag: int, first_hash: int, first_number: int) -> int:
        child = self.schema(schema)
        return self._put(_LIST, most, child, schema.hashes, schema.numbers, flag, first_hash, first_number)

    def finished(self, root: int) -> tuple[NDArray[np.int32], bytes, int]:
        """The code, the names, and where to begin."""
        code = np.array(self._code, np.int64).astype(np.uint32).view(np.int32)
        return code, bytes(self._names), root
