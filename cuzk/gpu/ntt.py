"""Number-theoretic transforms over Fr on the device, in place, 2^1 to 2^28 points (ntt_plan.py says how they are made up).

Orders: "nr" natural in, bit-reversed out; "rn" the reverse; "nn" is "nr" followed by a bit reversal in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cuzk.errors import OutOfMemoryError
from cuzk.gpu.arena import Layout
from cuzk.gpu.ntt_plan import FR_BYTES, PassCall, Table, natural_to_reversed, reversed_to_natural, transform_for


class Tables:
    """The tables of some calls, each once, in one block of device memory."""

    def __init__(self, calls: Sequence[PassCall]) -> None:
        self.tables = list(dict.fromkeys(t for call in calls for t in call.tables()))
        self._index = {t: i for i, t in enumerate(self.tables)}
        sizes = [(str(i), t.size_bytes) for i, t in enumerate(self.tables)]
        self.layout = Layout([("bases", 4 * FR_BYTES * len(self.tables)), *sizes])
        self.memory: Any = None

    def build(self, device: Any, stream: Any) -> None:
        """Allocates and fills the tables; waits for the upload of their few hundred bytes, not for the kernels."""
        free_bytes, _ = device.memory_info()
        if self.layout.total_bytes > free_bytes:
            raise OutOfMemoryError(
                f"VRAM: tables of a transform need {self.layout.total_bytes / 2**30:.2f} GiB, "
                f"{free_bytes / 2**30:.2f} GiB are free"
            )
        self.memory = device.allocate(self.layout.total_bytes, "tables of a transform")
        at = self.layout.at(self.memory.address)
        bases = np.frombuffer(b"".join(t.bases() for t in self.tables), np.uint8).copy()
        upload = device.upload(bases, "bases of a transform's tables")
        device.copy(at["bases"], upload.address, bases.nbytes, stream)
        kernel = device.kernel("ntt/ntt", "ntt_table")
        for i, t in enumerate(self.tables):
            log_size = t.digits + t.bits
            # a thread an entry, some 60 products each: small blocks, the largest table has 2^19 entries
            device.launch(
                kernel,
                max(1, (1 << log_size) // 128),
                min(128, 1 << log_size),
                (at[str(i)], np.uint32(log_size), np.uint32(t.bits), at["bases"] + i * 4 * FR_BYTES),
                stream,
            )
        done = device.event()
        device.record(done, stream)
        device.wait(done)
        upload.free()

    def address(self, table: Table | None) -> int:
        """Null for no table."""
        if table is None:
            return 0
        return self.layout.at(self.memory.address)[str(self._index[table])]

    def free(self) -> None:
        if self.memory is not None:
            self.memory.free()
            self.memory = None


def launch_passes(
    device: Any,
    calls: Sequence[PassCall],
    tables: Tables,
    data: int,
    stream: Any,
    batch: int = 1,
    batch_stride: int = 0,
    product: tuple[int, int] | None = None,
) -> None:
    """Enqueues the passes on `data` (address of 2^log_n Fr); `batch` transforms, `batch_stride` elements apart.

    product: addresses (a, b or 0): the last pass does not store its values x, but sets a to a x, or to a b - x.
    """
    for call in calls:
        p = call.shape
        pre, post = (*call.pre, None, None), (*call.post, None, None)
        shapes = [(t0.shape if t0 else 0) | (t1.shape if t1 else 0) << 16 for t0, t1 in (pre[:2], post[:2])]
        geometry = p.log_n | p.lo << 8 | p.digits << 16 | p.cols << 24
        mode = call.load_reversed | call.store_natural << 1 | call.unit << 4 | call.second_unit << 8
        roots = (call.roots, call.second_roots, *pre[:2], *post[:2], call.mid)
        name, factors = p.kernel, (0, 0)
        if product and call is calls[-1]:
            name, factors = name + "_pointwise", product
        device.launch(
            device.kernel("ntt/ntt", name), (p.blocks, batch), p.threads,
            (data, np.uint64(batch_stride), *(tables.address(t) for t in roots),
             *map(np.uint32, (geometry, mode, *shapes)), *factors),
            stream, p.shared_bytes,
        )  # fmt: skip


def launch_bit_reverse(device: Any, data: int, log_n: int, stream: Any, batch: int = 1, batch_stride: int = 0) -> None:
    """Bit reversal of the index, in place. Tiles of 16 x 16: rows of 512 bytes in memory; two threads an element and 16 KiB of
    shared memory a block, blocks of 512 threads, four an SM."""
    if log_n < 2:
        return
    edge = min(4, log_n // 2)
    device.launch(
        device.kernel("ntt/ntt", "ntt_bit_reverse"),
        (1 << (log_n - 2 * edge), batch),
        2 << (2 * edge),
        (data, np.uint64(batch_stride), np.uint32(log_n), np.uint32(edge)),
        stream,
        64 << (2 * edge),
    )


class Ntt:
    """A transform with its tables on a device. Safe to run on several streams at once; `free` after the last has ended.

    coset: the shift g as an integer, or None. Data: 2^log_n Fr, 32 bytes each, std or Montgomery: the form is kept.
    Works in place without further memory; `tables_bytes` of tables belong to the plan.
    """

    def __init__(
        self,
        device: Any,
        log_n: int,
        *,
        root: int = 7,
        inverse: bool = False,
        coset: int | None = None,
        order: str = "nn",
        stream: Any = None,
    ) -> None:
        self.device, self.log_n, self.order = device, log_n, order
        self.calls, self.tables = _prepare(log_n, root, inverse, coset, order)
        self.tables.build(device, stream if stream is not None else device.stream())

    def run(self, data: int, stream: Any, batch: int = 1, batch_stride: int = 0) -> None:
        """Enqueues the transform of the 2^log_n elements at address `data`, returns at once."""
        launch_passes(self.device, self.calls, self.tables, data, stream, batch, batch_stride)
        if self.order == "nn":
            launch_bit_reverse(self.device, data, self.log_n, stream, batch, batch_stride)

    @staticmethod
    def work(
        log_n: int, *, root: int = 7, inverse: bool = False, coset: int | None = None, order: str = "nn"
    ) -> tuple[float, int]:
        """Products by a twiddle, and passes over the data (each reads and writes all of it), of such a transform."""
        calls, _ = _prepare(log_n, root, inverse, coset, order)
        return sum(c.multiplications() for c in calls) * 2**log_n, len(calls) + (order == "nn")

    def free(self) -> None:
        self.tables.free()


def _prepare(log_n: int, root: int, inverse: bool, coset: int | None, order: str) -> tuple[list[PassCall], Tables]:
    t = transform_for(log_n, root, inverse, coset, order)
    calls = reversed_to_natural(t) if order == "rn" else natural_to_reversed(t)
    return calls, Tables(calls)


def plan_bytes(log_n: int, *, inverse: bool = False, coset: bool = False, order: str = "nn") -> dict[str, int]:
    """Device bytes of a transform: `data` in place, `tables` while the plan lives, `scratch` (none) while it runs."""
    _, tables = _prepare(log_n, 7, inverse, 7 if coset else None, order)
    return {"data": FR_BYTES << log_n, "tables": tables.layout.total_bytes, "scratch": 0}
