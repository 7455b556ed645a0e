"""Reading and writing snarkjs's .zkey (Groth16, version 1). Points are affine, Montgomery, little-endian; infinity is
all zero.

| section | content |
| 1 | u32 protocol (1 Groth16) |
| 2 | u32 48, q, u32 32, r, u32 wires, public, domain; alpha G1, beta G1, beta G2, gamma G2, delta G1, delta G2 |
| 3 | IC, public+1 G1 |
| 4 | u32 count, then (u32 matrix, u32 row, u32 wire, 32 B value·R²) |
| 5, 6, 7 | A, B in G1, B in G2, one a wire |
| 8 | L/delta of the private wires |
| 9 | odd Lagrange points/delta, one a row |
| 10 | 64 B circuit hash, u32 count, contributions; optional |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix, matrix_from_rows
from cuzk.groth16.field import FQ_MODULUS, FR_MODULUS, first_not_below
from cuzk.groth16.formats.container import Container, ContainerWriter, Section, read_prime
from cuzk.groth16.formats.files import Path, atomic_write, unpack
from cuzk.groth16.formats.vk import element_place

NAMES = {
    1: "protocol",
    2: "header",
    3: "IC",
    4: "coefficients",
    5: "A",
    6: "B in G1",
    7: "B in G2",
    8: "L",
    9: "H",
    10: "contributions",
}
PROTOCOLS = {1: "groth16", 2: "plonk", 10: "fflonk"}
G1_BYTES, G2_BYTES = 96, 192
COEFFICIENT = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("wire", "<u4"), ("value", "<u8", 4)])
DEVELOPMENT_MARK = b"cuzk development key"
"""Stands where the hash of the circuit would, in keys that no ceremony made."""
CHUNK = 1 << 20


@dataclass(frozen=True)
class ZkeyHeader:
    n_wires: int
    n_public: int
    domain: int
    alpha_g1: np.ndarray
    beta_g1: np.ndarray
    beta_g2: np.ndarray
    gamma_g2: np.ndarray
    delta_g1: np.ndarray
    delta_g2: np.ndarray
    """Points mont: G1 (1, 12), G2 (1, 24)."""


def split_points(data: np.ndarray, kinds: str) -> list[np.ndarray]:
    """Consecutive points as (1, 12) for each '1' and (1, 24) for each '2' of `kinds`."""
    points, at = [], 0
    for kind in kinds:
        size = G1_BYTES if kind == "1" else G2_BYTES
        points.append(data[at : at + size].copy().view("<u8").reshape(1, -1))
        at += size
    return points


class ZkeyFile:
    """An indexed .zkey. Point sections are `(n, 12)` or `(n, 24)` views of the mapped file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.container = Container(path, b"zkey", NAMES)
        protocol = self.container.section(1, 4)
        (number,) = unpack("<I", protocol.data)
        if number != 1:
            name = PROTOCOLS.get(number, f"number {number}")
            raise self.container.error(protocol, f"the protocol is {name}; only groth16 is supported")
        self.header = self._read_header(self.container.section(2))
        wires, public = self.header.n_wires, self.header.n_public
        self.ic = self._points(3, public + 1, G1_BYTES)
        self.a = self._points(5, wires, G1_BYTES)
        self.b_g1 = self._points(6, wires, G1_BYTES)
        self.b_g2 = self._points(7, wires, G2_BYTES)
        self.l = self._points(8, wires - public - 1, G1_BYTES)
        self.h = self._points(9, self.header.domain, G1_BYTES)
        self.coefficients = self._read_coefficients(self.container.section(4))

    def _read_header(self, head: Section) -> ZkeyHeader:
        at = read_prime(self.container, head, 0, FQ_MODULUS, "base field")
        at = read_prime(self.container, head, at, FR_MODULUS, "scalar field")
        expected = at + 12 + 3 * G1_BYTES + 3 * G2_BYTES
        if head.size != expected:
            raise self.container.error(head, f"has {head.size} bytes, expected {expected}")
        wires, public, domain = unpack("<III", head.data, at)
        if public + 1 > wires:
            raise self.container.error(head, f"claims {public} public signals but only {wires} wires", at)
        if domain < 2 or domain & (domain - 1):
            raise self.container.error(head, f"the domain {domain} is not a power of two of at least 2", at + 8)
        self.place = element_place(self.path, (head.label, head.offset + at + 12), self._ic_place())
        return ZkeyHeader(wires, public, domain, *split_points(head.data[at + 12 :], "112212"))

    def _ic_place(self) -> tuple[str, int]:
        section = self.container.section(3)
        return section.label, section.offset

    def _points(self, section_id: int, count: int, size: int) -> np.ndarray:
        section = self.container.section(section_id, count * size, f"{count} points of {size} bytes")
        return section.data.view("<u8").reshape(count, size // 8)

    def _read_coefficients(self, section: Section) -> np.ndarray:
        if section.size < 4:
            raise self.container.error(section, "ends before its count")
        (count,) = unpack("<I", section.data)
        if section.size != 4 + count * COEFFICIENT.itemsize:
            message = f"has {section.size} bytes, expected {4 + count * COEFFICIENT.itemsize} ({count} entries of 44 bytes)"
            raise self.container.error(section, message)
        return section.data[4:].view(COEFFICIENT)

    def constraints(self) -> ConstraintSystem:
        """The matrices A and B with their input rows (a zkey has no C). Raises FormatError at the first wrong entry."""
        header, entries = self.header, self.coefficients
        section = self.container.section(4)
        table = CoefficientTable("mont2")
        parts: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = [[], []]
        for first in range(0, len(entries), CHUNK):
            chunk = entries[first : first + CHUNK]
            matrix, row, wire = (np.ascontiguousarray(chunk[name]) for name in ("matrix", "row", "wire"))
            values = np.ascontiguousarray(chunk["value"])
            for column, limit, what in (
                (matrix, 2, "matrix"),
                (row, header.domain, "row"),
                (wire, header.n_wires, "wire"),
            ):
                if int(column.max()) >= limit:
                    bad = int(np.argmax(column >= limit))
                    message = f"entry {first + bad}: {what} {column[bad]} does not exist; there are {limit}"
                    raise self.container.error(section, message, 4 + 44 * (first + bad))
            bad = first_not_below(values, FR_MODULUS)
            if bad >= 0:
                message = f"entry {first + bad}: the value is not below the field's modulus"
                raise self.container.error(section, message, 4 + 44 * (first + bad))
            ids = table.number(values)
            for number in (0, 1):
                chosen = matrix == number
                parts[number].append((row[chosen], wire[chosen], ids[chosen]))
        columns = [[np.concatenate([p[k] for p in part] or [np.empty(0, np.uint32)]) for k in range(3)] for part in parts]
        rows = 1 + max((int(c[0].max()) for c in columns if len(c[0])), default=-1)
        a, b = (matrix_from_rows(rows, *column) for column in columns)
        # The last rows are those of the inputs.
        n_constraints = max(0, rows - header.n_public - 1)
        return ConstraintSystem(header.n_wires, header.n_public, n_constraints, table, a, b, None, has_input_rows=True)

    @property
    def development(self) -> bool:
        """Whether `cuzk setup` made the key from secrets of its own."""
        return 10 in self.container and self.container.section(10).data[:64].tobytes().startswith(DEVELOPMENT_MARK)

    def contribution_names(self) -> list[str]:
        """Names of the phase 2 contributions in section 10; empty where the section is missing. Raises FormatError if
        malformed.
        """
        if 10 not in self.container:
            return []
        section = self.container.section(10)
        if section.size < 68:
            raise self.container.error(section, "ends before the number of contributions")
        (count,) = unpack("<I", section.data, 64)
        names, at = [], 68
        for number in range(count):
            at += 3 * G1_BYTES + G2_BYTES + 64
            if at + 8 > section.size:
                raise self.container.error(section, f"ends inside contribution {number + 1} of {count}", min(at, section.size))
            kind, length = unpack("<II", section.data, at)
            at += 8
            if length > section.size - at:
                raise self.container.error(section, f"parameters of contribution {number + 1} claim {length} bytes", at)
            names.append(_contribution_name(kind, section.data[at : at + length].tobytes()))
            at += length
        return names


def _contribution_name(kind: int, parameters: bytes) -> str:
    """The name in a contribution's parameters (tag 1, length, text), or what kind it is."""
    at = 0
    while at + 2 <= len(parameters):
        tag, value = parameters[at], parameters[at + 1]
        if tag == 1:
            return parameters[at + 2 : at + 2 + value].decode("utf-8", "replace")
        at += 2 + (value if tag == 3 else 0)
    return "random beacon" if kind == 1 else "unnamed"


@dataclass
class ZkeyPoints:
    """The point lists of a key to write, each as chunks of mont points (so that none need be held whole)."""

    header: ZkeyHeader
    ic: Iterable[np.ndarray]
    a: Iterable[np.ndarray]
    b_g1: Iterable[np.ndarray]
    b_g2: Iterable[np.ndarray]
    l_query: Iterable[np.ndarray]
    h: Iterable[np.ndarray]


def coefficient_entries(system: ConstraintSystem, values_mont2: np.ndarray) -> Iterable[np.ndarray]:
    """Section 4 in snarkjs's order, in chunks: row by row, the terms of A then those of B; then the input rows."""
    rows = system.a.rows
    pieces = (system.a, system.b)
    for first in range(0, rows, CHUNK):
        last = min(first + CHUNK, rows)
        parts = []
        for number, matrix in enumerate(pieces):
            low, high = int(matrix.row_ptr[min(first, matrix.rows)]), int(matrix.row_ptr[min(last, matrix.rows)])
            entries = np.empty(high - low, dtype=COEFFICIENT)
            entries["matrix"] = number
            entries["row"] = _rows_between(matrix, first, last)
            entries["wire"] = matrix.col[low:high]
            entries["value"] = values_mont2[matrix.coef_id[low:high]]
            parts.append(entries)
        both = np.concatenate(parts)
        yield both[np.argsort(both["row"], kind="stable")]


def _rows_between(matrix: SparseMatrix, first: int, last: int) -> np.ndarray:
    pointers = matrix.row_ptr[min(first, matrix.rows) : min(last, matrix.rows) + 1]
    return np.repeat(np.arange(first, first + len(pointers) - 1, dtype=np.uint32), np.diff(pointers).astype(np.int64))


def write_zkey(path: Path, points: ZkeyPoints, system: ConstraintSystem, contributions: Callable[[], bytes]) -> None:
    """Write a key in the section order of `snarkjs groth16 setup`. `system` must have its input rows.

    `contributions` gives section 10 and is called last.
    """
    from cuzk import native

    header = points.header
    with atomic_write(path) as file:
        out = ContainerWriter(file, b"zkey")
        out.section(1, struct.pack("<I", 1))
        head = struct.pack("<I", 48) + FQ_MODULUS.to_bytes(48, "little") + struct.pack("<I", 32)
        head += FR_MODULUS.to_bytes(32, "little") + struct.pack("<III", header.n_wires, header.n_public, header.domain)
        fixed = (header.alpha_g1, header.beta_g1, header.beta_g2, header.gamma_g2, header.delta_g1, header.delta_g2)
        out.section(2, head, *fixed)
        # One more Montgomery factor: value·R to value·R².
        values = native.fr_from_std(system.table_mont)
        out.begin(4)
        file.write(struct.pack("<I", system.a.nonzeros + system.b.nonzeros))
        for entries in coefficient_entries(system, values):
            file.write(entries.data)
        out.end()
        for section_id, chunks in (
            (3, points.ic),
            (9, points.h),
            (8, points.l_query),
            (5, points.a),
            (6, points.b_g1),
            (7, points.b_g2),
        ):
            out.begin(section_id)
            for chunk in chunks:
                file.write(np.ascontiguousarray(chunk).data)
            out.end()
        out.section(10, contributions())
        out.finish()


def development_section() -> bytes:
    """Section 10 of a key that no ceremony made: no contributions, and what it is where the circuit's hash would stand."""
    return DEVELOPMENT_MARK.ljust(64, b"\0") + struct.pack("<I", 0)


def unmarked_section() -> bytes:
    """Section 10 of a key whose origin is not known."""
    return bytes(68)
