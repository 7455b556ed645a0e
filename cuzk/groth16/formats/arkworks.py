"""arkworks's proving key, compressed or not: the verifying key, beta and delta in G1, then a, b in G1, b in G2, h, l.

Each list is a u64 LE count and its points, those at infinity kept; points as ZCash writes them. The prover is arkworks's
LibsnarkReduction: root 7, h_i = tau^i·Z(tau)/delta for i < m − 1, the rows of the inputs behind the constraints, as in bellman.
Source: ark-groth16 from 0.4 on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.formats.files import Path, atomic_write, map_file
from cuzk.groth16.formats.layouts import LAYOUTS, Layout
from cuzk.groth16.formats.vk import VerifyingKey, parse_layout

LISTS = ("a", "b_g1", "b_g2", "h", "l")
CHUNK = 1 << 16


@dataclass(frozen=True)
class _List:
    """The raw points of a list, `(count, size)` uint8, and its place in the file."""

    offset: int
    raw: NDArray[np.uint8]


def key_layout(data: NDArray[np.uint8]) -> tuple[Layout, int, dict[str, _List]] | None:
    """The layout, the number of IC points, and the lists, where all counts add up to the file; else None."""
    for name in ("arkworks-uncompressed", "arkworks"):
        layout, size = LAYOUTS[name], len(data)
        at = layout.head_bytes
        if size < at + 8 or bool(data[0] & point_bytes.COMPRESSED) != layout.compressed:
            continue
        (n_ic,) = struct.unpack_from("<Q", data[at : at + 8].tobytes())
        if not 0 < n_ic < size:
            continue
        at = layout.key_bytes(n_ic) + 2 * layout.point_bytes("g1")
        lists: dict[str, _List] = {}
        for each in LISTS:
            if at + 8 > size:
                break
            (count,) = struct.unpack_from("<Q", data[at : at + 8].tobytes())
            bytes_ = layout.point_bytes("b_g2" if each == "b_g2" else "g1")
            if count > (size - at - 8) // bytes_:
                break
            end = at + 8 + count * bytes_
            lists[each], at = _List(at + 8, data[at + 8 : end].reshape(count, bytes_)), end
        if len(lists) == len(LISTS) and at == size:
            return layout, n_ic, lists
    return None


class ArkworksKeyFile:
    """An indexed proving key. Raises FormatError unless its counts are those of a circuit."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, map_file(path)
        found = key_layout(self.data)
        if found is None:
            raise FormatError(path, "not an arkworks proving key: its counts do not add up to the file", offset=0)
        self.layout, self.n_inputs, self.lists = found
        counts = {name: len(part.raw) for name, part in self.lists.items()}
        self.n_wires, self.domain = self.n_inputs + counts["l"], counts["h"] + 1
        wrong = next((name for name in ("a", "b_g1", "b_g2") if counts[name] != self.n_wires), None)
        if self.domain & (self.domain - 1):
            wrong = "h"
        if wrong is not None:
            message = f"{counts[wrong]} points of {wrong} do not go with {self.n_wires} wires and a domain"
            raise FormatError(path, message, offset=self.lists[wrong].offset - 8, section=wrong)

    def verifying_key(self) -> VerifyingKey:
        """The key at the head, with beta and delta in G1. Raises FormatError."""
        end, size = self.layout.key_bytes(self.n_inputs), self.layout.point_bytes("g1")
        key = parse_layout(self.path, self.data[:end].tobytes(), self.layout, self.n_inputs)
        pair = []
        for name, at in (("beta_g1", end), ("delta_g1", end + size)):
            try:
                pair.append(self.layout.read_point(self.data[at : at + size].tobytes()))
            except point_bytes.PointError as error:
                raise FormatError(self.path, str(error), offset=at, section=name) from error
        place = key.place
        assert place is not None
        own = {"beta_g1": (self.path, "beta_g1", end), "delta_g1": (self.path, "delta_g1", end + size)}
        fields = {**key.__dict__, "beta_g1": pair[0], "delta_g1": pair[1]}
        return VerifyingKey(**{**fields, "place": lambda element: own.get(element) or place(element)})

    def mont(self, name: str) -> NDArray[np.uint64]:
        """A list as mont points, infinity zero. Raises FormatError at the first that is no encoding."""
        part = self.lists[name]
        convert: Callable[[NDArray[np.uint8]], NDArray[np.uint64]]
        if self.layout.compressed:
            convert = native.g2_decompress if name == "b_g2" else native.g1_decompress
        else:
            convert = native.g2_from_be_uncompressed if name == "b_g2" else native.g1_from_be_uncompressed
        out = np.empty((len(part.raw), 24 if name == "b_g2" else 12), np.uint64)
        for first in range(0, len(out), CHUNK):
            chunk = np.ascontiguousarray(part.raw[first : first + CHUNK])
            try:
                out[first : first + CHUNK] = convert(chunk)
            except ValueError as error:
                raise self._undecodable(name, first, chunk) from error
        return out

    def _undecodable(self, name: str, first: int, chunk: NDArray[np.uint8]) -> FormatError:
        part = self.lists[name]
        for row, raw in enumerate(chunk):
            try:
                self.layout.read_point(raw.tobytes())
            except point_bytes.PointError as error:
                at = part.offset + (first + row) * part.raw.shape[1]
                return FormatError(self.path, f"point {first + row}: {error}", offset=at, section=name)
        return FormatError(self.path, "some point is no encoding", offset=part.offset, section=name)


def write_key(
    path: Path, key: VerifyingKey, lists: dict[str, tuple[int, Iterable[NDArray[np.uint64]]]], layout_name: str
) -> None:
    """Write a proving key; `lists` gives the count and chunks of mont points of each list. Raises InputError about the file."""
    layout = LAYOUTS[layout_name]
    assert key.beta_g1 is not None and key.delta_g1 is not None
    with atomic_write(path) as file:
        file.write(key.to_bytes(layout_name) + layout.write_point(key.beta_g1) + layout.write_point(key.delta_g1))
        for name in LISTS:
            count, chunks = lists[name]
            file.write(struct.pack("<Q", count))
            encode: Callable[[NDArray[np.uint64]], NDArray[np.uint8]]
            if layout.compressed:
                encode = native.g2_compress if name == "b_g2" else native.g1_compress
            else:
                encode = native.g2_to_be_uncompressed if name == "b_g2" else native.g1_to_be_uncompressed
            for chunk in chunks:
                for first in range(0, len(chunk), CHUNK):
                    file.write(encode(np.ascontiguousarray(chunk[first : first + CHUNK])).data)
