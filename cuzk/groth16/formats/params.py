"""bellman and Filecoin parameter files (.params): verifying key, then five lists, each u32 BE count and uncompressed
points.

Lists: h, l, a, b in G1, b in G2. No magic, no version, no curve tag; points at infinity are left out of a and b, so
that which wire a point belongs to is known only from the circuit's densities. Ceremony files have a tail (64 B hash,
u32 BE count, contributions).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.formats.files import Path, atomic_write, map_file, unpack
from cuzk.groth16.formats.vk import HEAD_BYTES, VerifyingKey, parse_binary

LISTS = ("h", "l", "a", "b_g1", "b_g2")
POINT_BYTES = {"h": 96, "l": 96, "a": 96, "b_g1": 96, "b_g2": 192}
DEVELOPMENT_MARK = b"cuzk development key: whoever made it can forge proofs"
TAIL_HEAD_BYTES, CONTRIBUTION_BYTES = 68, 544
CHUNK = 1 << 16


@dataclass(frozen=True)
class PointList:
    """One list of the file: `raw` is a mapped `(count, 96 or 192)` uint8 view in uncompressed ZCash encoding."""

    name: str
    offset: int
    raw: np.ndarray

    @property
    def count(self) -> int:
        return len(self.raw)

    def mont(self, path: Path, index: np.ndarray | slice | None = None) -> np.ndarray:
        """The points as `(count, 12)` or `(count, 24)` mont. Raises FormatError at the first that is not an encoding.

        Infinity is an error: the format leaves it out.
        """
        from cuzk import native

        raw = self.raw if index is None else self.raw[index]
        size = POINT_BYTES[self.name]
        mont = np.empty((len(raw), size // 8), dtype=np.uint64)
        convert = native.g1_from_be_uncompressed if size == 96 else native.g2_from_be_uncompressed
        for first in range(0, len(raw), CHUNK):
            chunk = np.ascontiguousarray(raw[first : first + CHUNK])
            try:
                mont[first : first + CHUNK] = convert(chunk)
            except ValueError as error:
                raise self._undecodable(path, chunk, first, index) from error
        finite = mont.any(axis=1)
        if not finite.all():
            bad = int(np.argmin(finite))
            message = f"point {bad} is infinity, which this format leaves out"
            raise FormatError(path, message, offset=self.offset + size * bad, section=self.name)
        return mont

    def _undecodable(self, path: Path, chunk: np.ndarray, first: int, index: np.ndarray | slice | None) -> FormatError:
        """The error for the first point of a chunk that is no encoding, with its place in the file."""
        row, message = first, "not an uncompressed encoding"
        for within, raw in enumerate(chunk):
            try:
                point_bytes.from_zcash(raw.tobytes())
            except point_bytes.PointError as error:
                row, message = first + within, str(error)
                break
        if isinstance(index, slice):
            row += index.start or 0
        elif index is not None:
            row = int(index[row])
        at = self.offset + POINT_BYTES[self.name] * row
        return FormatError(path, f"point {row}: {message}", offset=at, section=self.name)


class ParamsFile:
    """An indexed .params file: counts and places of everything, points not yet read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = map_file(path)
        size = len(self.data)
        if size < HEAD_BYTES + 4:
            message = f"{size} bytes cannot hold the verifying key at the head of a .params file"
            raise FormatError(path, message, offset=0)
        (n_ic,) = unpack(">I", self.data, HEAD_BYTES)
        at = HEAD_BYTES + 4 + 96 * n_ic
        if at > size:
            message = f"claims {n_ic} IC points, the file has room for {(size - HEAD_BYTES - 4) // 96}"
            raise FormatError(path, message, offset=HEAD_BYTES, section="verifying key")
        self.n_inputs: int = n_ic
        self._key_bytes = at
        if at == size:
            message = "the file ends after the verifying key: this is a .vk file, not parameters"
            raise FormatError(path, message, offset=at)
        self.lists: dict[str, PointList] = {}
        for name in LISTS:
            if size - at < 4:
                raise FormatError(path, "the file ends before the count of this list", offset=at, section=name)
            (count,) = unpack(">I", self.data, at)
            bytes_ = count * POINT_BYTES[name]
            if bytes_ > size - at - 4:
                message = f"claims {count} points ({bytes_} bytes), the file has {size - at - 4} bytes left"
                raise FormatError(path, message, offset=at, section=name)
            raw = self.data[at + 4 : at + 4 + bytes_].reshape(count, POINT_BYTES[name])
            self.lists[name] = PointList(name, at + 4, raw)
            at += 4 + bytes_
        self.tail = self.data[at : at + 4096].tobytes()
        self.tail_bytes = size - at
        self._check_tail(at)
        self._check_counts()

    def _check_tail(self, at: int) -> None:
        """Nothing follows the lists, or a ceremony's: 64 B hash, u32 BE count, 544 B a contribution."""
        if not self.tail_bytes:
            return
        if self.tail_bytes >= TAIL_HEAD_BYTES:
            (contributions,) = unpack(">I", self.tail, TAIL_HEAD_BYTES - 4)
            if self.tail_bytes == TAIL_HEAD_BYTES + contributions * CONTRIBUTION_BYTES:
                return
        message = f"{self.tail_bytes} bytes after the last list are no ceremony's (68 and 544 for each contribution)"
        raise FormatError(self.path, message, offset=at)

    def _check_counts(self) -> None:
        counts = {name: part.count for name, part in self.lists.items()}
        domain = counts["h"] + 1
        if domain & (domain - 1):
            message = f"{counts['h']} points: one more is not a power of two, so it is no FFT domain"
            raise FormatError(self.path, message, offset=self.lists["h"].offset - 4, section="h")
        if counts["b_g1"] != counts["b_g2"]:
            message = f"{counts['b_g2']} points, but b_g1 has {counts['b_g1']}"
            raise FormatError(self.path, message, offset=self.lists["b_g2"].offset - 4, section="b_g2")
        wires = self.n_inputs + counts["l"]
        for name in ("a", "b_g1"):
            if counts[name] > wires:
                message = f"{counts[name]} points, but the circuit has only {wires} wires"
                raise FormatError(self.path, message, offset=self.lists[name].offset - 4, section=name)
        if counts["a"] < self.n_inputs:
            message = f"{counts['a']} points, fewer than the {self.n_inputs} inputs, which all have one"
            raise FormatError(self.path, message, offset=self.lists["a"].offset - 4, section="a")

    def verifying_key(self, with_ic: bool = True) -> VerifyingKey:
        """The key at the head of the file; with one IC point only if not `with_ic`."""
        data = self.data[: self._key_bytes if with_ic else HEAD_BYTES].tobytes()
        if not with_ic:
            data += struct.pack(">I", 1) + point_bytes.to_zcash(point_bytes.G1_INFINITY)
        key, _ = parse_binary(self.path, data)
        return replace(key, development=self.development)

    @property
    def domain(self) -> int:
        return self.lists["h"].count + 1

    @property
    def n_wires(self) -> int:
        return self.n_inputs + self.lists["l"].count

    @property
    def development(self) -> bool:
        return self.tail.startswith(DEVELOPMENT_MARK)


def development_tail() -> bytes:
    """The tail of a ceremony file without contributions whose 64-byte hash field says what the key is."""
    return DEVELOPMENT_MARK.ljust(64, b"\0") + struct.pack(">I", 0)


def write_params(path: Path, key: VerifyingKey, lists: Mapping[str, tuple[int, Iterable[np.ndarray]]], tail: bytes = b"") -> None:
    """Write the key and the five lists, each a count and chunks of mont points."""
    from cuzk import native

    with atomic_write(path) as file:
        file.write(key.to_bytes())
        for name in LISTS:
            count, chunks = lists[name]
            file.write(struct.pack(">I", count))
            encode = native.g1_to_be_uncompressed if POINT_BYTES[name] == 96 else native.g2_to_be_uncompressed
            written = 0
            for chunk in chunks:
                for first in range(0, len(chunk), CHUNK):
                    file.write(encode(np.ascontiguousarray(chunk[first : first + CHUNK])).data)
                written += len(chunk)
            if written != count:
                raise ValueError(f"list {name}: {written} points written, {count} announced")
        file.write(tail)
