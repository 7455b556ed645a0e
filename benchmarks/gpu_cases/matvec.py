"""Witness scan and matrix products: random CSR with row lengths and bits as in PoRep, and the template of a 32 GiB partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk import native
from cuzk.circuits.porep.shape import SHAPES
from cuzk.circuits.porep.template import porep_template
from cuzk.gpu.matvec import BitWitness, CsrMatrix, TemplateMatrices, TemplateWitness, bit_ranks
from cuzk.gpu.ntt_plan import FR_BYTES, FR_MODULUS, to_mont
from cuzk.gpu.scan import ScanPlan, scan
from cuzk.groth16.template.bits import BitWitness as HostWitness
from cuzk.groth16.template.model import Part

from . import Case
from .ntt import BYTE_RATE

FIELD_SHARE = 0.013  # of PoRep's variables are not bits
ROW_LENGTHS, ROW_SHARES = np.array([1, 2, 3, 12, 841]), [0.595, 0.323, 0.079, 0.002, 0.001]  # 2.4 on average
ID_SHARES = [0.6, 0.3]  # +1, -1; the rest spread over the table
PROBES = 300


def integer(value: np.ndarray) -> int:
    return int.from_bytes(value.tobytes(), "little")


def from_mont(value: np.ndarray) -> int:
    return integer(value) * pow(to_mont(1), -1, FR_MODULUS) % FR_MODULUS


def random_table(rng: np.random.Generator, size: int) -> tuple[list[int], np.ndarray]:
    values = [1, FR_MODULUS - 1, *(int.from_bytes(rng.bytes(40), "little") % FR_MODULUS for _ in range(size - 2))]
    return values, np.frombuffer(b"".join(to_mont(v).to_bytes(FR_BYTES, "little") for v in values), np.uint64).reshape(-1, 4)


def random_values(rng: np.random.Generator, n: int) -> np.ndarray:
    out = rng.integers(0, 1 << 64, (n, 4), dtype=np.uint64)
    out[:, 3] %= np.uint64(FR_MODULUS >> 192)
    return out


def random_rows(rng: np.random.Generator, rows: int, columns: int, table: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """row_ptr (uint64), columns near the row as in real circuits, ids (uint16)."""
    lengths = rng.choice(ROW_LENGTHS, rows, p=ROW_SHARES)
    row_ptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
    near = np.repeat(np.arange(rows, dtype=np.int64) * columns // rows, lengths)
    col = np.clip(near - rng.integers(0, 4096, len(near)), 0, columns - 1).astype(np.uint32)
    pick = rng.random(len(near), dtype=np.float32)
    ids = rng.integers(2, table, len(near), dtype=np.uint16)
    ids[pick < ID_SHARES[0]] = 0
    ids[pick > 1 - ID_SHARES[1]] = 1
    return row_ptr, col, ids


@dataclass
class Bits:
    """A host witness of bits and field values."""

    ones: np.ndarray
    mask: np.ndarray
    rank: np.ndarray
    fields: np.ndarray

    @classmethod
    def random(cls, rng: np.random.Generator, n: int) -> Bits:
        words = -(-n // 64)
        mask = np.packbits(rng.random(64 * words, dtype=np.float32) < FIELD_SHARE, bitorder="little").view(np.uint64)
        ones = rng.integers(0, 1 << 64, words, dtype=np.uint64) & ~mask
        return cls(ones, mask, bit_ranks(mask), random_values(rng, int(np.bitwise_count(mask).sum())))

    def value(self, i: int) -> int:
        """Montgomery."""
        word, bit = int(i) >> 6, int(i) & 63
        mask = int(self.mask[word])
        if mask >> bit & 1:
            return integer(self.fields[int(self.rank[word]) + (mask & ((1 << bit) - 1)).bit_count()])
        return to_mont(int(self.ones[word]) >> bit & 1)


class Prepared:
    """Common: an event, and blocks to give back."""

    def __init__(self, device: Any) -> None:
        self.device, self.done, self.blocks = device, device.event(), []

    def keep(self, block: Any) -> Any:
        self.blocks.append(block)
        return block

    def finish(self) -> None:
        self.device.wait(self.done)

    def free(self) -> None:
        for block in self.blocks:
            block.free()

    def result(self, row: int) -> int:
        return integer(self.device.download(self.out.address + FR_BYTES * int(row), np.empty((1, 4), np.uint64)))  # type: ignore[attr-defined]


class PreparedCsr(Prepared):
    def __init__(self, device: Any, rows: int, rng: np.random.Generator, bits: bool) -> None:
        super().__init__(device)
        self.rng, self.bits = rng, bits
        self.values, table = random_table(rng, 2466)
        self.row_ptr, self.col, self.ids = random_rows(rng, rows, rows, len(self.values))
        self.matrix = self.keep(CsrMatrix(device, self.row_ptr, self.col, self.ids, table))
        if bits:
            self.host = Bits.random(rng, rows)
            held = [self.keep(device.upload(a)) for a in (self.host.ones, self.host.mask, self.host.rank, self.host.fields)]
            self.witness: Any = BitWitness(*(block.address for block in held))
        else:
            self.fields = random_values(rng, rows)
            self.witness = self.keep(device.upload(self.fields)).address
        self.out = self.keep(device.allocate(FR_BYTES * rows, "product"))

    def start(self, stream: Any) -> None:
        self.matrix.multiply(self.witness, self.out.address, stream)
        self.device.record(self.done, stream)

    def check(self) -> bool:
        for row in self.rng.integers(0, len(self.row_ptr) - 1, PROBES):
            span = slice(int(self.row_ptr[row]), int(self.row_ptr[row + 1]))
            terms = zip(self.col[span], self.ids[span], strict=True)
            value = self.host.value if self.bits else lambda i: integer(self.fields[i])
            if self.result(row) != sum(self.values[i] * value(c) for c, i in terms) % FR_MODULUS:
                return False
        return True


class PreparedTemplate(Prepared):
    """A matrix of a 32 GiB PoRep partition from its template, with a random witness of bits where the real one has bits."""

    def __init__(self, device: Any, matrix: int, rng: np.random.Generator) -> None:
        super().__init__(device)
        self.matrix, self.rng, self.template = matrix, rng, porep_template(SHAPES[3])
        t = self.template
        self.values = [from_mont(value) for value in t.coefficients_mont]
        bits, fields = [], []
        for part, copies in ((t.prefix, 1), (t.body, t.copies)):
            mask = np.packbits(part.field_aux, bitorder="little")
            mask = np.pad(mask, (0, -len(mask) % 8)).view(np.uint64)
            bits.append(rng.integers(0, 1 << 64, (copies, len(mask)), dtype=np.uint64) & ~mask)
            fields.append(random_values(rng, copies * int(part.field_aux.sum())).reshape(copies, -1, 4))
        self.host = HostWitness(t, random_values(rng, t.n_inputs), bits[0], fields[0], bits[1], fields[1])
        self.matrices = self.keep(TemplateMatrices(device, t, (matrix,)))
        self.witness = self.keep(TemplateWitness.like(device, self.host))
        self.witness.upload(self.host, device.stream())
        self.out = self.keep(device.allocate(FR_BYTES * t.n_rows, "product"))
        self.ranks = [np.concatenate(([0], np.cumsum(p.field_aux))) for p in (t.prefix, t.body)]

    def start(self, stream: Any) -> None:
        self.matrices.multiply(self.matrix, self.witness, self.out.address, stream)
        self.device.record(self.done, stream)

    def value(self, column: int, copy: int) -> int:
        t, w = self.template, self.host
        if column < t.prefix.inputs:
            return integer(w.inputs_mont[column])
        if column < t.shared:
            return self.aux(t.prefix, w.prefix_bits[0], w.prefix_fields_mont[0], self.ranks[0], column - t.prefix.inputs)
        if column < t.body_aux_column:
            return integer(w.inputs_mont[t.prefix.inputs + copy * t.body.inputs + column - t.shared])
        return self.aux(t.body, w.body_bits[copy], w.body_fields_mont[copy], self.ranks[1], column - t.body_aux_column)

    @staticmethod
    def aux(part: Part, bits: np.ndarray, fields: np.ndarray, ranks: np.ndarray, i: int) -> int:
        return integer(fields[ranks[i]]) if part.field_aux[i] else to_mont(int(bits[i >> 6]) >> (i & 63) & 1)

    def check(self) -> bool:
        t = self.template
        m = t.body.matrices[self.matrix]
        long_rows = np.flatnonzero(np.diff(m.row_ptr.astype(np.int64)) > 100)
        rows = [*self.rng.integers(0, t.body.rows, PROBES), *long_rows[:: len(long_rows) // 30 + 1]]
        for row, copy in zip(rows, self.rng.integers(0, t.copies, len(rows)), strict=True):
            span = slice(int(m.row_ptr[row]), int(m.row_ptr[row + 1]))
            terms = zip(m.col[span], m.coef_id[span], strict=True)
            want = sum(self.values[i] * self.value(int(c), int(copy)) for c, i in terms) % FR_MODULUS
            if self.result(t.prefix.rows + int(copy) * t.body.rows + int(row)) != want:
                return False
        last = self.result(t.n_rows - 1)
        return last == (integer(self.host.inputs_mont[-1]) if self.matrix == 0 else 0)


class PreparedScan(Prepared):
    def __init__(self, device: Any, n: int, rng: np.random.Generator) -> None:
        super().__init__(device)
        self.host = np.zeros((n, 4), np.uint64)
        self.host[:, 0] = rng.integers(0, 2, n, dtype=np.uint8)
        others = np.flatnonzero(rng.random(n, dtype=np.float32) < FIELD_SHARE)
        self.host[others] = random_values(rng, len(others))
        self.values = self.keep(device.upload(self.host))
        self.plan = ScanPlan(n, n // 32)
        self.memory = self.keep(device.allocate(self.plan.layout.total_bytes, "scan"))
        self.pinned = self.keep(device.pinned(4))

    def start(self, stream: Any) -> None:
        self.scanned = scan(
            self.device, self.plan, self.memory.address, self.values.address, stream, mont=False, host=self.pinned
        )

    def finish(self) -> None:
        self.count = self.scanned.count()

    def check(self) -> bool:
        ones, tail = native.scan_witness(self.host)
        download = self.device.download
        return (
            self.count == len(tail)
            and np.array_equal(download(self.scanned.ones, np.empty(len(ones), np.uint8)), ones)
            and np.array_equal(download(self.scanned.tail, np.empty(len(tail), np.uint32)), tail)
            and np.array_equal(download(self.scanned.values, np.empty((len(tail), 4), np.uint64)), self.host[tail])
        )


def cases() -> list[Case]:
    rows = 1 << 25
    nonzeros = float(ROW_LENGTHS @ ROW_SHARES)
    csr_bytes = rows * (8 + 6 * nonzeros + FR_BYTES)  # matrix and result; the witness comes on top
    # the whole system's rows written, its witness read once; the template itself once
    porep_rows, porep_template_bytes = 130_278_869, (60 << 20, 130 << 20)
    porep_bytes = porep_rows * (FR_BYTES + 1 / 8 + FIELD_SHARE * FR_BYTES)
    scan_bytes = (1 << 27) * (FR_BYTES + FIELD_SHARE * 2 * FR_BYTES + 1 / 4)

    def case(name: str, prepare: Any, moved_bytes: float) -> Case:
        return Case(name, prepare, None, 1e3 * moved_bytes / BYTE_RATE, note=f"{moved_bytes / 2**30:.2f} GiB moved at least")

    return [
        case("matvec_csr_bits_2^25", lambda d, rng: PreparedCsr(d, rows, rng, True), csr_bytes + rows * (0.3 + FIELD_SHARE * 32)),
        case("matvec_csr_fields_2^25", lambda d, rng: PreparedCsr(d, rows, rng, False), csr_bytes + rows * FR_BYTES),
        case("matvec_template_porep_a", lambda d, rng: PreparedTemplate(d, 0, rng), porep_bytes + porep_template_bytes[1]),
        case("matvec_template_porep_b", lambda d, rng: PreparedTemplate(d, 1, rng), porep_bytes + porep_template_bytes[0]),
        case("scan_2^27", lambda d, rng: PreparedScan(d, 1 << 27, rng), scan_bytes),
    ]
