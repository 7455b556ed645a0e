"""A partition's witness on a GPU: uploaded as it is, multiplied by the matrices, split for the key's lists.

A witness of field elements is canonical, one of bits has its field elements in Montgomery form; rows and tails are as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.errors import InputError, OutOfMemoryError
from cuzk.gpu.arena import aligned
from cuzk.gpu.matvec import FR_BYTES, BitWitness, TemplateWitness, multiply_elements
from cuzk.gpu.scan import ScanPlan, scan
from cuzk.gpu.split import RowSplit, SplitPlan, bitmap_words, capacity_within, flatten_bits, split
from cuzk.groth16.gpu.proving_gpu import QUERIES, ProvingGpu
from cuzk.groth16.key import ProvingKey


def is_bits(witness: Any) -> bool:
    """Whether a witness is kept as bits (cuzk.groth16.prover.products.Witness)."""
    return not isinstance(witness, np.ndarray)


def arrays_of(witness: Any) -> list[np.ndarray]:
    """The memory of a witness."""
    return list(TemplateWitness.arrays(witness).values()) if is_bits(witness) else [witness]


def upload(gpu: ProvingGpu, witness: Any, d_w: Any) -> None:
    """Enqueues the copy into the buffer `d_w`. OutOfMemoryError if it is too small."""
    if is_bits(witness):
        _on_device(gpu, witness, d_w).upload(witness, gpu.stream())
        return
    _require(d_w, witness.nbytes, "a witness")
    gpu.device.copy(d_w.address, witness.ctypes.data, witness.nbytes, gpu.stream())


def _on_device(gpu: ProvingGpu, witness: Any, d_w: Any) -> TemplateWitness:
    sizes = TemplateWitness.sizes(witness)
    _require(d_w, TemplateWitness.bytes_for(sizes), "a witness as bits")
    return TemplateWitness(gpu.device, sizes, d_w.address)


def _require(block: Any, need_bytes: int, what: str) -> None:
    if need_bytes > block.size_bytes:
        raise OutOfMemoryError(f"VRAM: {what} needs {need_bytes} bytes, {block.size_bytes} are granted")


def multiply(gpu: ProvingGpu, key: ProvingKey, witness: Any, d_w: Any, targets: list[int]) -> None:
    """Enqueues the rows of A, B (and C) onto the domain, zeros behind them; one address a matrix."""
    domain, stream, matrices = key.domain, gpu.stream(), list(gpu.matrices.values())
    for number, out in enumerate(targets):
        if gpu.template is None and number >= len(matrices):
            multiply_elements(gpu.device, targets[0], targets[1], domain, out, stream, mont=False)
            continue
        rows = int(gpu.template.template.n_rows) if gpu.template is not None else matrices[number].rows
        if rows > domain:
            raise InputError(f"{key.path}: {rows} rows do not fit the key's domain of {domain}")
        if gpu.template is not None:
            gpu.template.multiply(number, _on_device(gpu, witness, d_w), out, stream)
        else:
            matrices[number].multiply(d_w.address, out, stream)
        gpu.device.fill(out + FR_BYTES * rows, 0, FR_BYTES * (domain - rows), stream)


def prepare(gpu: ProvingGpu, witness: Any, d_w: Any, d_splits: Any) -> dict[str, RowSplit]:
    """Splits the key's lists into the buffer `d_splits`, which then needs `d_w` no more. Waits. OutOfMemoryError."""
    device, stream = gpu.device, gpu.stream()
    lists = list(dict.fromkeys(gpu.rows[name] for name in QUERIES))
    rows = tuple(each.rows for each in lists)
    numbers, tail = device.pinned(8 * len(lists)), device.pinned(4)
    try:
        if is_bits(witness):
            held = _on_device(gpu, witness, d_w)
            template, at = witness.template, held.addresses
            bits_bytes = aligned(8 * bitmap_words(template.n_inputs + template.n_aux))
            fields = sum(held.sizes_bytes[name] for name in TemplateWitness.FIELDS) // FR_BYTES
            plan = SplitPlan(rows, fields)
            _require(d_splits, bits_bytes + plan.total_bytes, "the split of a witness")
            flatten_bits(
                device, template, at["prefix_bits"], at["body_bits"], witness.body_bits.shape[1], False, d_splits.address, stream
            )
            assert gpu.wires is not None
            values = BitWitness(d_splits.address, gpu.wires.mask, gpu.wires.rank, at["inputs"])
            base = d_splits.address + bits_bytes
        else:
            fixed = ScanPlan(len(witness), 0).layout.total_bytes
            capacity = min(len(witness), capacity_within(rows, 4 + FR_BYTES, d_splits.size_bytes - fixed - 1024))
            found = ScanPlan(len(witness), capacity)
            plan = SplitPlan(rows, capacity)
            base = d_splits.address + found.layout.total_bytes
            _require(d_splits, found.layout.total_bytes + plan.total_bytes, "the split of a witness")
            scanned = scan(device, found, d_splits.address, d_w.address, stream, mont=False, host=tail)
            scanned.count()  # what lies beyond the capacity was not kept
            values = BitWitness(scanned.ones, scanned.mask, scanned.rank, scanned.values)
        results = split(device, plan, base, lists, values, stream, numbers).result()
    finally:
        gpu.finish()
        numbers.free(), tail.free()
    by_rows = dict(zip(lists, results, strict=True))
    return {name: by_rows[gpu.rows[name]] for name in QUERIES}
