"""The parts of a transform over Fr: passes, and the tables of twiddles that they multiply by. Nothing here needs a device.

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
        """The table kernel's arguments: scale, row, column, cross, Montgomery."""
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
        p,
        first.roots(p),
        first.unit,
        pre,
        post,
        store_natural=True,
        second_roots=second.roots(p),
        second_unit=second.unit,
        mid=first.other_end(factor, always=True),
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
