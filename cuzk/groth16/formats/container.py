"""The container that .r1cs, .wtns, .zkey and .ptau share: magic, version, then sections in any order.

4 B magic | u32 version | u32 section count | per section: u32 id, u64 byte length, payload     (all little-endian)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16.field import FQ_MODULUS, FR_MODULUS, prime_name
from cuzk.groth16.formats.files import Path, map_file, unpack

HEADER_BYTES = 12
SECTION_HEADER_BYTES = 12
MAGICS = {b"r1cs": 1, b"wtns": 2, b"zkey": 1, b"ptau": 1}


@dataclass(frozen=True)
class Section:
    """The place of a section in its file. `offset` is that of the payload."""

    id: int
    name: str
    offset: int
    size: int
    data: np.ndarray
    """uint8 view of the payload, mapped."""

    @property
    def label(self) -> str:
        return f"{self.id} ({self.name})"


class Container:
    """An indexed container file. `names` gives the section names for messages."""

    def __init__(self, path: Path, magic: bytes, names: dict[int, str]) -> None:
        self.path, self.names = path, names
        self.data = map_file(path)
        size = len(self.data)
        if size < HEADER_BYTES:
            raise FormatError(path, f"{size} bytes cannot hold the header of a .{magic.decode()} file", offset=0)
        found = self.data[:4].tobytes()
        if found != magic:
            hint = f" (this is a .{found.decode()} file)" if found in MAGICS else ""
            raise FormatError(path, f"not a .{magic.decode()} file: magic is {found!r}{hint}", offset=0)
        version, self.count = unpack("<II", self.data, 4)
        if version != MAGICS[magic]:
            message = f"version {version} of .{magic.decode()} is not supported (expected {MAGICS[magic]})"
            raise FormatError(path, message, offset=4)
        self.index: dict[int, list[Section]] = {}
        at = HEADER_BYTES
        for number in range(self.count):
            if at + SECTION_HEADER_BYTES > size:
                message = f"the file ends where section {number + 1} of {self.count} should begin"
                raise FormatError(path, message, offset=at)
            section_id, length = unpack("<IQ", self.data, at)
            start = at + SECTION_HEADER_BYTES
            if length > size - start:
                message = f"claims {length} bytes, the file has {size - start} left"
                raise FormatError(path, message, offset=at, section=self._label(section_id))
            section = Section(section_id, names.get(section_id, "unknown"), start, length, self.data[start : start + length])
            self.index.setdefault(section_id, []).append(section)
            at = start + length
        if at != size:
            raise FormatError(path, f"{size - at} bytes after the last section", offset=at)

    def _label(self, section_id: int) -> str:
        return f"{section_id} ({self.names.get(section_id, 'unknown')})"

    def __contains__(self, section_id: int) -> bool:
        return section_id in self.index

    def section(self, section_id: int, size: int | None = None, why: str = "") -> Section:
        """The section of this id. Raises FormatError unless there is exactly one, of exactly `size` bytes if given."""
        found = self.index.get(section_id, [])
        if len(found) != 1:
            message = "missing" if not found else f"appears {len(found)} times"
            at = found[1].offset - SECTION_HEADER_BYTES if found else 8  # the second one, or the number of sections
            raise FormatError(self.path, message, section=self._label(section_id), offset=at)
        section = found[0]
        if size is not None and section.size != size:
            message = f"has {section.size} bytes, expected {size}" + (f" ({why})" if why else "")
            raise FormatError(self.path, message, section=section.label, offset=section.offset)
        return section

    def error(self, section: Section, message: str, at: int = 0) -> FormatError:
        """A FormatError at byte `at` of a section's payload."""
        return FormatError(self.path, message, section=section.label, offset=section.offset + at)


def read_prime(container: Container, section: Section, at: int, expected: int, what: str) -> int:
    """Check the field (u32 byte count, prime) at payload offset `at`; return the offset after it.

    Raises FormatError for any field but `expected`.
    """
    size = {FR_MODULUS: 32, FQ_MODULUS: 48}[expected]
    if section.size < at + 4:
        raise container.error(section, f"ends before the size of the {what}", at)
    (n8,) = unpack("<I", section.data, at)
    held = section.size - at - 4
    if 0 < n8 <= min(held, 256):
        prime = int.from_bytes(section.data[at + 4 : at + 4 + n8].tobytes(), "little")
        if prime != expected:
            raise container.error(section, f"the {what} is {prime_name(prime)}; only BLS12-381 is supported", at)
    if n8 != size:
        raise container.error(section, f"the {what} has {n8} bytes an element, expected {size}", at)
    if held < size:
        raise container.error(section, f"ends inside the {what}", at)
    return at + 4 + size


class ContainerWriter:
    """Writes a container; the section count and each section's length are known when it ends."""

    def __init__(self, file: BinaryIO, magic: bytes) -> None:
        self.file, self.count, self._start = file, 0, 0
        file.write(magic + struct.pack("<II", MAGICS[magic], 0))

    def begin(self, section_id: int) -> None:
        self.file.write(struct.pack("<IQ", section_id, 0))
        self._start = self.file.tell()
        self.count += 1

    def end(self) -> None:
        at = self.file.tell()
        self.file.seek(self._start - 8)
        self.file.write(struct.pack("<Q", at - self._start))
        self.file.seek(at)

    def section(self, section_id: int, *payload: bytes | np.ndarray) -> None:
        """One section whose payload is at hand."""
        self.begin(section_id)
        for part in payload:
            self.file.write(np.ascontiguousarray(part).data if isinstance(part, np.ndarray) else part)
        self.end()

    def finish(self) -> None:
        self.file.seek(8)
        self.file.write(struct.pack("<I", self.count))
        self.file.seek(0, 2)
