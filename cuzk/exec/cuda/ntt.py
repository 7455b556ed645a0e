"""Number-theoretic transforms over Fr on the device, in place, 2^1 to 2^28 points.

A transform is a short list of passes (kernels/ntt/ntt.cu). Everything that is multiplied on the way comes from tables that a
plan builds once: twiddles between passes, the powers of a coset's shift, and 1/n, folded into as few tables as possible. With
the digits of the natural index j = (j1 | j2 | ...), j1 the highest, and of the transformed index k = k1 + R1 k2 + ..., pass
i < last uses

    w_(2^(lo + digits))^(k_i low)  H^(k_i R1 ... R_(i-1))  G^low (first pass only),     low = j mod 2^lo,

so a factor G^j on the natural side costs one more table, G^(j1 2^lo), at the first pass, and H^k on the transformed side one more
at the last. The forward transform on a coset has G (natural to reversed) or H (reversed to natural) equal to the shift.

Orders: "nr" natural in, bit-reversed out; "rn" the reverse; "nn" is "nr" followed by a bit reversal in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuzk.errors import OutOfMemoryError

from .arena import Layout

FR_MODULUS = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
FR_RADIX = 1 << 256
FR_BYTES = 32
TWIDDLE_BYTES = 64
"""A split twiddle: w 2^128 and w 2^256 mod r (kernels/ntt/twiddle.hpp)."""

MAX_LOG_N = 28
TILE_BITS = 10
"""A block of 128 threads holds 2^10 values, 32 KiB of shared memory: five blocks an SM, what 96 registers a thread allow.
Measured for 2^27 on an H200: docs/performance-log-ntt.md."""
PLANE_BYTES = 16 << TILE_BITS
DIGITS = 9
"""A pass's digits: 512 points are three eight-point transforms, and 2^27 is three such passes. Two neighbouring columns of 32
bytes then make 64 bytes of each access."""
MAX_TABLE_BITS = 18
"""Larger tables of twiddles are cut in two: 16 MiB each stay in the second-level cache."""


def root_of_unity(log_n: int, root: int) -> int:
    """Generator of order 2^log_n derived from 5 (circom family) or 7 (bellman family)."""
    if root not in (5, 7):
        raise ValueError(f"the domain's generator is derived from 5 or 7, not {root}")
    return pow(root, (FR_MODULUS - 1) >> log_n, FR_MODULUS)


def to_mont(value: int) -> int:
    return value * FR_RADIX % FR_MODULUS


@dataclass(frozen=True)
class Pass:
    """Bits [lo, lo + digits) of the index; a block transforms 2^cols columns."""

    log_n: int
    lo: int
    digits: int

    @property
    def cols(self) -> int:
        return max(3 - self.digits, min(TILE_BITS, self.log_n) - self.digits)

    @property
    def threads(self) -> int:
        """Eight values a thread: 64 registers of values, about 20 more for a product."""
        return 1 << (self.digits + self.cols - 3)

    @property
    def blocks(self) -> int:
        return 1 << max(0, self.log_n - self.digits - self.cols)

    @property
    def shared_bytes(self) -> int:
        return PLANE_BYTES + (16 << (self.digits + self.cols))

    @property
    def kernel(self) -> str:
        return "ntt_pass_mixed" if self.digits % 3 else "ntt_pass_eights"


def split_passes(log_n: int) -> tuple[Pass, ...]:
    """The passes from the highest bits down. One up to 2^10; digits of nine as far as they go, the rest last but never tiny."""
    if not 1 <= log_n <= MAX_LOG_N:
        raise ValueError(f"a transform has 2^1 to 2^{MAX_LOG_N} points, not 2^{log_n}")
    count = 1 if log_n <= 10 else max(2, -(-(log_n - 1) // DIGITS))
    digits = []
    left = log_n
    for i in range(count):
        share = -(-left // (count - i))
        take = min(left, 10) if i == count - 1 else max(share, min(DIGITS, left - 6 * (count - i - 1)))
        digits.append(take)
        left -= take
    passes, lo = [], log_n
    for d in digits:
        lo -= d
        passes.append(Pass(log_n, lo, d))
    return tuple(passes)


@dataclass(frozen=True)
class Table:
    """scale row^k column^l cross^(k l) for digit values k < 2^digits and l < 2^bits; l = (low >> shift) mod 2^bits."""

    digits: int
    bits: int = 0
    shift: int = 0
    scale: int = 1
    row: int = 1
    column: int = 1
    cross: int = 1

    @property
    def size_bytes(self) -> int:
        return TWIDDLE_BYTES << (self.digits + self.bits)

    @property
    def shape(self) -> int:
        return self.shift | self.bits << 8

    def bases(self) -> bytes:
        """What the table kernel reads: scale, row, column, cross, Montgomery."""
        values = (self.scale, self.row, self.column, self.cross)
        return b"".join(to_mont(v).to_bytes(FR_BYTES, "little") for v in values)


@dataclass(frozen=True)
class Transform:
    """The arithmetic of a transform: sum over the input of w^(j k), times G^j on the natural, scale H^k on the other side."""

    log_n: int
    root: int
    inverse: bool
    natural_shift: int = 1
    other_shift: int = 1
    scale: int = 1
    passes: tuple[Pass, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passes", split_passes(self.log_n))

    def omega(self, bits: int) -> int:
        w = root_of_unity(bits, self.root)
        return pow(w, -1, FR_MODULUS) if self.inverse else w

    @property
    def unit(self) -> int:
        """This root's eighth root of unity as a power of the kernel's, 7^((r-1)/8)."""
        base = root_of_unity(3, 7)
        return next(u for u in (1, 3, 5, 7) if pow(base, u, FR_MODULUS) == self.omega(3))

    @property
    def scale_at_end(self) -> bool:
        return self.other_shift != 1 or len(self.passes) == 1

    def roots(self, p: Pass) -> Table:
        return Table(p.digits, row=self.omega(p.digits))

    def natural_end(self) -> Table | None:
        """G^(j1 2^lo) at the first pass."""
        p = self.passes[0]
        return Table(p.digits, row=pow(self.natural_shift, 1 << p.lo, FR_MODULUS)) if self.natural_shift != 1 else None

    def other_end(self, factor: int = 1, always: bool = False) -> Table | None:
        """H^(k_last R1 R2 ...) and, where it fits here, the scale; at the last pass."""
        p = self.passes[-1]
        scale = factor * (self.scale if self.scale_at_end else 1) % FR_MODULUS
        row = pow(self.other_shift, 1 << (self.log_n - p.digits), FR_MODULUS)
        return Table(p.digits, scale=scale, row=row) if always or scale != 1 or row != 1 else None

    def between(self, i: int) -> tuple[Table, ...]:
        """The twiddles after pass i (before it, from bit-reversed order), in one table or two."""
        p = self.passes[i]
        if p.lo == 0:
            return ()
        first = i == 0
        g = self.natural_shift if first else 1
        h = pow(self.other_shift, 1 << (self.log_n - p.lo - p.digits), FR_MODULUS)
        scale = self.scale if first and not self.scale_at_end else 1
        w = self.omega(p.lo + p.digits)
        if p.lo + p.digits <= MAX_TABLE_BITS:
            return (Table(p.digits, p.lo, 0, scale, h, g, w),)
        cut = p.lo // 2
        coarse = Table(p.digits, p.lo - cut, cut, scale, h, pow(g, 1 << cut, FR_MODULUS), pow(w, 1 << cut, FR_MODULUS))
        return (coarse, Table(p.digits, cut, 0, 1, 1, g, w))


@dataclass(frozen=True)
class PassCall:
    """One launch, with the tables by value; addresses come from the plan."""

    shape: Pass
    roots: Table
    unit: int
    pre: tuple[Table, ...] = ()
    post: tuple[Table, ...] = ()
    load_reversed: bool = False
    store_natural: bool = False
    second_roots: Table | None = None
    second_unit: int = 1
    mid: Table | None = None

    def tables(self) -> list[Table]:
        return [t for t in (self.roots, self.second_roots, self.mid, *self.pre, *self.post) if t is not None]

    def multiplications(self) -> float:
        """Products an element: in the small transforms, between them, and from tables."""
        count, m = 0.0, self.shape.digits
        while m:
            rho = min(3, m)
            m -= rho
            count += {1: 0.0, 2: 0.25, 3: 0.5}[rho] + (0.875 if m else 0.0)
        return count * (2 if self.second_roots else 1) + (self.mid is not None) + len(self.pre) + len(self.post)


def natural_to_reversed(t: Transform) -> list[PassCall]:
    """Decimation in frequency: passes from the highest bits down."""
    calls, last = [], len(t.passes) - 1
    for i, p in enumerate(t.passes):
        pre = (t.natural_end(),) if i == 0 else ()
        post = t.between(i) if i < last else (t.other_end(),)
        calls.append(PassCall(p, t.roots(p), t.unit, _present(pre), _present(post)))
    return calls


def reversed_to_natural(t: Transform) -> list[PassCall]:
    """Decimation in time: the same passes transposed, from the lowest bits up."""
    calls, last = [], len(t.passes) - 1
    for i in range(last, -1, -1):
        p = t.passes[i]
        pre = t.between(i) if i < last else (t.other_end(),)
        post = (t.natural_end(),) if i == 0 else ()
        calls.append(PassCall(p, t.roots(p), t.unit, _present(pre), _present(post), load_reversed=True, store_natural=True))
    return calls


def there_and_back(first: Transform, second: Transform, factor: int = 1) -> list[PassCall]:
    """`first` natural to reversed, then `second` reversed to natural, the two passes that meet fused into one."""
    head, tail = natural_to_reversed(first)[:-1], reversed_to_natural(second)[1:]
    p = first.passes[-1]
    single = len(first.passes) == 1
    pre = _present((first.natural_end(),)) if single else ()
    post = _present((second.natural_end(),)) if single else ()
    middle = PassCall(
        p, first.roots(p), first.unit, pre, post, store_natural=True,
        second_roots=second.roots(p), second_unit=second.unit, mid=first.other_end(factor, always=True),
    )
    return [*head, middle, *tail]


def _present(tables: Sequence[Table | None]) -> tuple[Table, ...]:
    return tuple(t for t in tables if t is not None)


def transform_for(log_n: int, root: int, inverse: bool, coset: int | None, order: str) -> Transform:
    """forward: y_k = sum_j x_j (g w^k)^j; inverse undoes it. The shift belongs to the coefficients' side."""
    if order not in ("nn", "nr", "rn"):
        raise ValueError(f"order is nn, nr or rn, not {order}")
    shift = 1 if coset is None else coset % FR_MODULUS
    if shift == 0:
        raise ValueError("a coset's shift is not zero")
    if inverse:
        shift = pow(shift, -1, FR_MODULUS)
    scale = pow(1 << log_n, -1, FR_MODULUS) if inverse else 1
    natural = (order == "rn") == inverse  # the coefficients are on the natural side
    return Transform(log_n, root, inverse, shift if natural else 1, 1 if natural else shift, scale)


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
                kernel, max(1, (1 << log_size) // 128), min(128, 1 << log_size),
                (at[str(i)], np.uint32(log_size), np.uint32(t.bits), at["bases"] + i * 4 * FR_BYTES), stream,
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
    device: Any, calls: Sequence[PassCall], tables: Tables, data: int, stream: Any, batch: int = 1, batch_stride: int = 0,
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
        device.kernel("ntt/ntt", "ntt_bit_reverse"), (1 << (log_n - 2 * edge), batch), 2 << (2 * edge),
        (data, np.uint64(batch_stride), np.uint32(log_n), np.uint32(edge)), stream, 64 << (2 * edge),
    )


class Ntt:
    """A transform with its tables on a device. Safe to run on several streams at once; `free` after the last has ended.

    coset: the shift g as an integer, or None. Data: 2^log_n Fr, 32 bytes each, std or Montgomery: the form is kept.
    Works in place without further memory; `tables_bytes` of tables belong to the plan.
    """

    def __init__(
        self, device: Any, log_n: int, *, root: int = 7, inverse: bool = False, coset: int | None = None, order: str = "nn",
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
