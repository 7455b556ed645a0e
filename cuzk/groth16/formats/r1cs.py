"""Reading and writing circom's .r1cs (version 1).

Section 1: u32 32, prime r, u32 wires, outputs, public inputs, private inputs, u64 labels, u32 constraints. Section 2:
per constraint three linear combinations A, B, C, each u32 count, then (u32 wire, 32 B coefficient std). Section 3: a
u64 label a wire. 4, 5: custom gates.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, SparseMatrix
from cuzk.groth16.field import FR_MODULUS, first_not_below
from cuzk.groth16.formats.container import Container, ContainerWriter, Section, read_prime
from cuzk.groth16.formats.files import Path, atomic_write, unpack

NAMES = {1: "header", 2: "constraints", 3: "labels", 4: "custom gates", 5: "custom gate uses"}
TERM_BYTES = 36
CHUNK_CONSTRAINTS = 1 << 17


@dataclass(frozen=True)
class R1csHeader:
    n_wires: int
    n_outputs: int
    n_public_inputs: int
    n_private_inputs: int
    n_labels: int
    n_constraints: int

    @property
    def n_public(self) -> int:
        return self.n_outputs + self.n_public_inputs


class R1csFile:
    """An indexed .r1cs; the constraints are read by `constraints()`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.container = Container(path, b"r1cs", NAMES)
        head = self.container.section(1)
        at = read_prime(self.container, head, 0, FR_MODULUS, "scalar field")
        if head.size != at + 28:
            raise self.container.error(head, f"has {head.size} bytes, expected {at + 28}")
        self.header = R1csHeader(*unpack("<IIIIQI", head.data, at))
        header = self.header
        if header.n_wires < 1 + header.n_public:
            message = f"claims {header.n_wires} wires, fewer than the constant and its {header.n_public} public signals"
            raise self.container.error(head, message, at)
        body = self.container.section(2)
        if header.n_constraints * 12 > body.size or body.size % 4:
            message = f"has {body.size} bytes: too few for the {header.n_constraints} constraints claimed"
            raise self.container.error(body, message)
        if body.size and not header.n_constraints:
            raise self.container.error(body, f"has {body.size} bytes although the header claims no constraints")
        for gates in (4, 5):
            if gates in self.container and self.container.section(gates).size > 4:
                section = self.container.section(gates)
                raise self.container.error(section, "custom gates exist only for PLONK; Groth16 cannot prove them")
        if 3 in self.container:
            labels = self.container.section(3)
            if labels.size != 8 * header.n_wires:
                message = f"has {labels.size} bytes, expected 8 for each of {header.n_wires} wires"
                raise self.container.error(labels, message)
        elif header.n_wires > len(self.container.data):
            # Without labels nothing else bounds what a reader would allocate a wire.
            message = f"claims {header.n_wires} wires, more than the file has bytes"
            raise self.container.error(head, message, at)

    def constraints(self) -> ConstraintSystem:
        """The matrices. Raises FormatError at the first combination or term that is wrong."""
        header, body = self.header, self.container.section(2)
        starts = self._scan(body)
        words = body.data.view("<u4")
        counts = words[starts[:-1]].astype(np.int64)
        table = CoefficientTable("std")
        parts: list[list[tuple[np.ndarray, np.ndarray]]] = [[], [], []]
        for first in range(0, header.n_constraints, CHUNK_CONSTRAINTS):
            last = min(first + CHUNK_CONSTRAINTS, header.n_constraints)
            self._read_chunk(body, words, starts[3 * first : 3 * last + 1], counts[3 * first : 3 * last], table, parts)

        def matrix_of(matrix: int) -> SparseMatrix:
            pointers = np.zeros(header.n_constraints + 1, dtype=np.uint64)
            np.cumsum(counts[matrix::3], out=pointers[1:])
            col = np.concatenate([c for c, _ in parts[matrix]] or [np.empty(0, np.uint32)])
            ids = np.concatenate([i for _, i in parts[matrix]] or [np.empty(0, np.uint32)])
            return SparseMatrix(pointers, col, ids)

        a, b, c = map(matrix_of, range(3))
        return ConstraintSystem(header.n_wires, header.n_public, header.n_constraints, table, a, b, c)

    def _scan(self, body: Section) -> np.ndarray:
        """Word offsets of the 3·n combinations, and the end."""
        total = 3 * self.header.n_constraints
        starts = np.empty(total + 1, dtype=np.int64)
        out = starts.data
        words = body.data.data.cast("B").cast("I") if body.size else ()
        at = number = 0
        try:  # the loop is the time of reading a circuit: nothing in it but the walk
            for number in range(total):
                out[number] = at
                at += 1 + 9 * words[at]
        except IndexError:
            message = f"ends before combination {'ABC'[number % 3]} of constraint {number // 3}"
            raise self.container.error(body, message, body.size) from None
        out[total] = at
        if at != len(words):
            what = (
                "claims more terms than the section holds" if at > len(words) else f"leaves {4 * (len(words) - at)} bytes unused"
            )
            raise self.container.error(body, f"the last combination {what}", min(4 * at, body.size))
        return starts

    def _read_chunk(
        self,
        body: Section,
        words: np.ndarray,
        starts: np.ndarray,
        counts: np.ndarray,
        table: CoefficientTable,
        parts: list[list[tuple[np.ndarray, np.ndarray]]],
    ) -> None:
        """Append the columns and coefficient ids of a run of combinations to `parts` by matrix."""
        base = int(starts[0])
        chunk = words[base : int(starts[-1])]
        is_term = np.ones(len(chunk), dtype=bool)
        is_term[starts[:-1] - base] = False
        terms = chunk[is_term].reshape(-1, 9)
        lc_of_term = np.repeat(np.arange(len(counts)), counts)
        col = terms[:, 0].copy()
        values = np.ascontiguousarray(terms[:, 1:]).view("<u8")

        def fail(term: int, message: str) -> FormatError:
            lc = int(lc_of_term[term])
            at = int(starts[lc]) + 1 + 9 * (term - int(counts[:lc].sum()))
            return self.container.error(body, message, 4 * at)

        if len(col) and int(col.max()) >= self.header.n_wires:
            term = int(np.argmax(col >= self.header.n_wires))
            raise fail(term, f"wire {col[term]} does not exist; there are {self.header.n_wires}")
        bad = first_not_below(values, FR_MODULUS)
        if bad >= 0:
            raise fail(bad, "a coefficient is not below the field's modulus")
        ids = table.number(values)
        matrix_of_term = lc_of_term % 3
        for matrix in range(3):
            chosen = matrix_of_term == matrix
            parts[matrix].append((col[chosen], ids[chosen]))


def write_r1cs(path: Path, system: ConstraintSystem, header: R1csHeader, chunk: int = CHUNK_CONSTRAINTS) -> None:
    """Write a system whose table is in canonical form."""
    if system.c is None or system.table.form != "std" or system.has_input_rows:
        raise ValueError("an .r1cs holds A, B and C with canonical coefficients and no input rows")
    values = system.table.values.view("<u4").reshape(-1, 8)
    with atomic_write(path) as file:
        out = ContainerWriter(file, b"r1cs")
        prime = struct.pack("<I", 32) + FR_MODULUS.to_bytes(32, "little")
        h = header
        counts = (h.n_wires, h.n_outputs, h.n_public_inputs, h.n_private_inputs, h.n_labels, h.n_constraints)
        out.section(1, prime + struct.pack("<IIIIQI", *counts))
        out.begin(2)
        for first in range(0, system.n_constraints, chunk):
            last = min(first + chunk, system.n_constraints)
            file.write(_encode_rows((system.a, system.b, system.c), values, first, last).data)
        out.end()
        out.begin(3)
        for first in range(0, header.n_wires, 1 << 20):
            file.write(np.arange(first, min(first + (1 << 20), header.n_wires), dtype="<u8").data)
        out.end()
        out.finish()


def _encode_rows(matrices: tuple[SparseMatrix, ...], values: np.ndarray, first: int, last: int) -> np.ndarray:
    """Rows first … last−1 of the three matrices as the words of section 2."""
    lengths = np.stack([np.diff(m.row_ptr[first : last + 1]).astype(np.int64) for m in matrices], axis=1)
    sizes = 1 + 9 * lengths.reshape(-1)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    words = np.empty(int(starts[-1]), dtype="<u4")
    words[starts[:-1]] = lengths.reshape(-1)
    for number, matrix in enumerate(matrices):
        low, high = int(matrix.row_ptr[first]), int(matrix.row_ptr[last])
        count = lengths[:, number]
        within = np.arange(high - low) - np.repeat(np.cumsum(count) - count, count)
        at = np.repeat(starts[number:-1:3], count) + 1 + 9 * within
        words[at] = matrix.col[low:high]
        for limb in range(8):
            words[at + 1 + limb] = values[matrix.coef_id[low:high], limb]
    return words
