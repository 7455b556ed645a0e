"""Matrix times witness on the device: from CSR or from a template, with a witness of field elements or of bits.

Bound by memory. CSR: 6 (u16 ids) or 8 bytes a nonzero, 8 a row, 32 written a row, and the witness: 32 bytes a value, or about a
quarter byte where it is bits. Template: the same per nonzero, but a template of 0.1 GB is read from cache for most copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.gpu.arena import Layout

FR_BYTES = 32
ROW_THREADS = 128
SHORT_ROW = 24
"""Rows up to this many nonzeros get a thread each; a longer one would hold up the 31 rows beside it."""
WARP_ROW = 4096
"""Rows up to this many nonzeros get a warp each, longer ones a block."""
WARPS = ROW_THREADS // 32
TEMPLATE_PART = np.dtype(
    [(n, "<u8") for n in ("row_ptr", "col", "coef_id", "mask", "rank", "listed")]
    + [(n, "<u8") for n in ("rows", "by_warp", "by_block", "words", "fields")]
)
TEMPLATE_SHAPE = np.dtype(
    [("prefix", TEMPLATE_PART), ("body", TEMPLATE_PART)]
    + [(n, "<u8") for n in ("shared_inputs", "shared", "body_inputs", "body_aux", "choices")]
)


def list_long_rows(row_ptr: np.ndarray) -> tuple[np.ndarray, int, int]:
    """(listed uint32, by warp, by block): the rows above SHORT_ROW nonzeros, those for a warp first."""
    lengths = np.diff(row_ptr.astype(np.int64, copy=False))
    by_warp = np.flatnonzero((lengths > SHORT_ROW) & (lengths <= WARP_ROW))
    by_block = np.flatnonzero(lengths > WARP_ROW)
    return np.concatenate((by_warp, by_block)).astype(np.uint32), len(by_warp), len(by_block)


def row_blocks(rows: int, by_warp: int, by_block: int) -> int:
    """Blocks of a launch: a thread a row, then a warp and a block each for the listed ones (kernels/r1cs/matvec.cu)."""
    return -(-rows // ROW_THREADS) + -(-by_warp // WARPS) + by_block


def bit_ranks(mask_words: np.ndarray) -> np.ndarray:
    """(words,) uint32: set bits before each uint64 word of a bitmap."""
    counts = np.bitwise_count(mask_words).astype(np.uint32)
    ranks: np.ndarray = np.cumsum(counts, dtype=np.uint32) - counts
    return ranks.astype(np.uint32)


@dataclass(frozen=True)
class BitWitness:
    """Addresses of a witness kept as bits: value i is fields[rank] where bit i of mask is set, else bit i of ones.

    ones, mask: uint64 words; rank: uint32 a word; fields: Montgomery. What a scan leaves (scan.Scanned has the same names,
    `values` for `fields`).
    """

    ones: int
    mask: int
    rank: int
    fields: int


class CsrMatrix:
    """A sparse matrix on the device. Coefficient ids 0 and 1 are +1 and -1, in the table too.

    row_ptr: (rows + 1) uint64; col: (nonzeros) uint32; coef_id: (nonzeros) uint16 or uint32; table_mont: (k, 4) uint64.
    Indices are trusted: whoever read them from a file checked them.
    """

    def __init__(self, device: Any, row_ptr: np.ndarray, col: np.ndarray, coef_id: np.ndarray, table_mont: np.ndarray) -> None:
        self.device, self.rows, self.nonzeros = device, len(row_ptr) - 1, len(col)
        if coef_id.dtype not in (np.uint16, np.uint32):
            raise TypeError(f"coefficient ids are uint16 or uint32, not {coef_id.dtype}")
        self._ids = "u16" if coef_id.dtype == np.uint16 else "u32"
        listed, self._by_warp, self._by_block = list_long_rows(row_ptr)
        parts = (("row_ptr", row_ptr), ("col", col), ("coef_id", coef_id), ("table", table_mont), ("listed", listed))
        arrays = [(name, np.ascontiguousarray(a)) for name, a in parts]
        self.device_bytes = sum(a.nbytes for _, a in arrays)
        self._memory = {name: device.upload(a, f"{name} of a matrix") for name, a in arrays}

    def multiply(self, witness: BitWitness | int, out: int, stream: Any) -> None:
        """out[i] = row i times the witness, `rows` values at address `out`; returns at once.

        witness: an address of field values (the result has their form, std or Montgomery), or bits (the result is Montgomery).
        """
        at = {name: block.address for name, block in self._memory.items()}
        if self.rows == 0:
            return
        values: tuple[int, ...]
        if isinstance(witness, BitWitness):
            kernel, values = "matvec_bits_", (witness.ones, witness.mask, witness.rank, witness.fields)
        else:
            kernel, values = "matvec_fields_", (witness,)
        # a thread a row; the listed rows' warps and blocks in the same launch, so that they run beside the short ones
        self.device.launch(
            self.device.kernel("r1cs/matvec", kernel + self._ids), row_blocks(self.rows, self._by_warp, self._by_block),
            ROW_THREADS,
            (at["row_ptr"], at["col"], at["coef_id"], at["table"], *values, np.uint32(self.rows), np.uint32(SHORT_ROW),
             at["listed"], np.uint32(self._by_warp), np.uint32(self._by_block), out), stream,
        )  # fmt: skip

    def free(self) -> None:
        for block in self._memory.values():
            block.free()


def csr_bytes(rows: int, nonzeros: int, coefficients: int, id_bytes: int = 2, long_rows: int = 0) -> int:
    """Device bytes of a CsrMatrix; long_rows: how many have more than SHORT_ROW nonzeros."""
    return 8 * (rows + 1) + (4 + id_bytes) * nonzeros + FR_BYTES * coefficients + 4 * long_rows


class TemplateMatrices:
    """The matrices of a template (cuzk.groth16.template.model.Template, or anything of that shape) on the device.

    Its witness comes as cuzk.groth16.template.bits.BitWitness keeps it, uploaded by TemplateWitness.
    """

    def __init__(self, device: Any, template: Any, matrices: tuple[int, ...] = (0, 1, 2)) -> None:
        self.device, self.template = device, template
        self._blocks: list[Any] = []
        self._table = self._upload(template.coefficients_mont, "coefficients of a template")
        masks = {}
        for name in ("prefix", "body"):
            mask = mask_words(getattr(template, name).field_aux)
            masks[name] = self._upload(mask, "a template's mask"), self._upload(bit_ranks(mask), "a template's ranks"), mask
        choices = 0
        if template.choices is not None:
            choices = self._upload(template.choices.astype(np.uint32, copy=False), "parameters of a template")
        self._shapes: dict[int, int] = {}
        self._blocks_of: dict[int, list[int]] = {}
        for matrix in matrices:
            shape, blocks = np.zeros(1, TEMPLATE_SHAPE), []
            for name in ("prefix", "body"):
                part = getattr(template, name)
                m, (mask_at, rank_at, mask) = part.matrices[matrix], masks[name]
                entry = shape[name]
                entry["row_ptr"] = self._upload(m.row_ptr.astype(np.uint32, copy=False), "rows of a template")
                entry["col"] = self._upload(m.col.astype(np.int32, copy=False), "columns of a template")
                entry["coef_id"] = self._upload(m.coef_id.astype(np.uint16, copy=False), "coefficient ids of a template")
                listed, by_warp, by_block = list_long_rows(m.row_ptr)
                entry["listed"] = self._upload(listed, "long rows of a template")
                entry["by_warp"], entry["by_block"] = by_warp, by_block
                blocks.append(row_blocks(part.rows, by_warp, by_block))
                entry["mask"], entry["rank"] = mask_at, rank_at
                entry["rows"], entry["words"], entry["fields"] = part.rows, len(mask), int(part.field_aux.sum())
            shape["shared_inputs"], shape["shared"] = template.prefix.inputs, template.shared
            shape["body_inputs"], shape["body_aux"] = template.body_input_column, template.body_aux_column
            shape["choices"] = choices
            self._shapes[matrix] = self._upload(shape.view(np.uint8), "shape of a template")
            self._blocks_of[matrix] = blocks

    @property
    def device_bytes(self) -> int:
        return sum(block.size_bytes for block in self._blocks)

    def _upload(self, array: np.ndarray, what: str) -> int:
        block = self.device.upload(np.ascontiguousarray(array), what)
        self._blocks.append(block)
        return int(block.address)

    def multiply(self, matrix: int, witness: TemplateWitness, out: int, stream: Any) -> None:
        """Matrix 0 (A), 1 (B) or 2 (C) times the witness: `template.n_rows` Montgomery values at `out`; returns at once.

        The last rows are the inputs' own: A is the input, B and C are zero.
        """
        t, at = self.template, witness.addresses
        kernel = self.device.kernel("r1cs/matvec", "matvec_template")
        # a thread a row; copies side by side, so that the template's rows stay in cache from one copy to the next
        for part, copies in ((0, 1), (1, t.copies)):
            blocks = self._blocks_of[matrix][part]
            if blocks and copies:
                self.device.launch(
                    kernel, (blocks, copies), ROW_THREADS,
                    (self._shapes[matrix], np.uint32(part), np.uint32(SHORT_ROW), self._table,
                     *(at[name] for name in TemplateWitness.NAMES), out), stream,
                )  # fmt: skip
        own_rows = out + FR_BYTES * t.n_constraints
        if matrix == 0:
            self.device.copy(own_rows, at["inputs"], FR_BYTES * t.n_inputs, stream)
        else:
            self.device.fill(own_rows, 0, FR_BYTES * t.n_inputs, stream)

    def free(self) -> None:
        for block in self._blocks:
            block.free()


class TemplateWitness:
    """One partition's witness as bits in device memory; `upload` fills it on a stream from pinned or pageable arrays.

    The field elements of inputs, prefix and copies lie one after another, in the order of their wires.
    """

    NAMES = ("inputs", "prefix_bits", "prefix_fields", "body_bits", "body_fields")
    FIELDS = ("inputs", "prefix_fields", "body_fields")

    def __init__(self, device: Any, sizes_bytes: dict[str, int], base: int | None = None) -> None:
        """`base`: address of `bytes_for(sizes_bytes)` of device memory; None allocates them (OutOfMemoryError)."""
        self.device, self.sizes_bytes, self._memory = device, sizes_bytes, None
        self.device_bytes = self.bytes_for(sizes_bytes)
        if base is None:
            self._memory = device.allocate(self.device_bytes, "a witness as bits")
            base = self._memory.address
        self.base, offsets = base, self.offsets(sizes_bytes)
        self.addresses = {name: base + offset for name, offset in offsets.items()}

    @classmethod
    def _layout(cls, sizes_bytes: dict[str, int]) -> Layout:
        fields = sum(sizes_bytes[name] for name in cls.FIELDS)
        return Layout([("fields", fields), *((name, sizes_bytes[name]) for name in ("prefix_bits", "body_bits"))])

    @classmethod
    def bytes_for(cls, sizes_bytes: dict[str, int]) -> int:
        return cls._layout(sizes_bytes).total_bytes

    @classmethod
    def offsets(cls, sizes_bytes: dict[str, int]) -> dict[str, int]:
        """The offset of each array from the start of the block."""
        offsets = cls._layout(sizes_bytes).at(0)
        end = offsets.pop("fields")
        for name in cls.FIELDS:
            offsets[name] = end
            end += sizes_bytes[name]
        return offsets

    @classmethod
    def arrays(cls, witness: Any) -> dict[str, np.ndarray]:
        """The arrays of a cuzk.groth16.template.bits.BitWitness by our names."""
        return {
            "inputs": witness.inputs_mont, "prefix_bits": witness.prefix_bits, "prefix_fields": witness.prefix_fields_mont,
            "body_bits": witness.body_bits, "body_fields": witness.body_fields_mont,
        }  # fmt: skip

    @classmethod
    def sizes(cls, witness: Any) -> dict[str, int]:
        return {name: a.nbytes for name, a in cls.arrays(witness).items()}

    @classmethod
    def like(cls, device: Any, witness: Any) -> TemplateWitness:
        return cls(device, cls.sizes(witness))

    def upload(self, witness: Any, stream: Any) -> None:
        """Enqueues the copies; the arrays stay unchanged until they have ended."""
        for name, array in self.arrays(witness).items():
            if array.nbytes != self.sizes_bytes[name]:
                raise ValueError(f"{name}: {array.nbytes} bytes, not {self.sizes_bytes[name]}")
            if not array.flags.c_contiguous:
                raise ValueError(f"{name} is not contiguous")
            self.device.copy(self.addresses[name], array.ctypes.data, array.nbytes, stream)

    def free(self) -> None:
        if self._memory is not None:
            self._memory.free()


def mask_words(flags: np.ndarray) -> np.ndarray:
    """A bool array as uint64 words, bit i of word i // 64."""
    packed = np.packbits(flags, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)


def multiply_elements(device: Any, a: int, b: int, n: int, out: int, stream: Any, *, mont: bool) -> None:
    """Enqueues out[i] = a[i] b[i], i < n, elements of Fr at device addresses, Montgomery or canonical as all of them are."""
    if n:
        device.launch(
            device.kernel("r1cs/matvec", "multiply_elements"), min(8 * device.multiprocessors, -(-n // 256)), 256,
            (a, b, np.uint32(n), np.uint32(not mont), out), stream,
        )  # fmt: skip
