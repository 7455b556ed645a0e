"""The two fields of BLS12-381 as plain integers, and the array forms that files and kernels use.

Array forms (numpy uint64, little-endian limbs): Fr `(n, 4)`, Fq `(n, 6)`. *std* is the canonical value, *mont* is
value·R with R = 2^256 in Fr and R = 2^384 in Fq. Bulk conversion is the host library's work; here are single values
and cheap vectorised checks.
"""

from __future__ import annotations

import numpy as np

FR_MODULUS = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
FQ_MODULUS = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
FR_TWO_ADICITY = 32
FR_CAPACITY = 254
"""Bits that every element can hold."""

FR_R = (1 << 256) % FR_MODULUS
FR_R2 = FR_R * FR_R % FR_MODULUS
FQ_R = (1 << 384) % FQ_MODULUS
FQ_R_INV = pow(FQ_R, -1, FQ_MODULUS)

BN254_FR = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
BN254_FQ = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47


def prime_name(prime: int) -> str:
    """A name for the primes that people's files carry, else the hexadecimal value."""
    known = {
        FR_MODULUS: "the scalar field of BLS12-381",
        FQ_MODULUS: "the base field of BLS12-381",
        BN254_FR: "the scalar field of BN254 (bn128)",
        BN254_FQ: "the base field of BN254 (bn128)",
    }
    return known.get(prime, f"the unknown prime {prime:#x}")


def root_of_unity(log_n: int, root: int) -> int:
    """Generator of the subgroup of order 2^log_n, derived from `root` (5: snarkjs; 7: bellman), canonical."""
    return pow(root, (FR_MODULUS - 1) >> log_n, FR_MODULUS)


def fr_array(values: list[int]) -> np.ndarray:
    """Integers below 2^256 as `(n, 4)` limbs."""
    return np.frombuffer(b"".join(v.to_bytes(32, "little") for v in values), dtype="<u8").reshape(-1, 4).copy()


def fr_ints(array: np.ndarray) -> list[int]:
    """`(n, 4)` limbs as integers. For a handful of values only."""
    raw = np.ascontiguousarray(array).tobytes()
    return [int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32)]


def first_not_below(values: np.ndarray, modulus: int) -> int:
    """Index of the first row of `(n, limbs)` that is not below `modulus`, or -1."""
    bound = [np.uint64((modulus >> (64 * i)) & 0xFFFFFFFFFFFFFFFF) for i in range(values.shape[1])]
    # Almost every row is decided by its top limb.
    doubtful = np.flatnonzero(values[:, -1] >= bound[-1])
    if not len(doubtful):
        return -1
    below = np.zeros(len(doubtful), dtype=bool)
    equal = np.ones(len(doubtful), dtype=bool)
    for limb in range(values.shape[1] - 1, -1, -1):
        column = values[doubtful, limb]
        below |= equal & (column < bound[limb])
        equal &= column == bound[limb]
    return -1 if bool(below.all()) else int(doubtful[int(np.argmin(below))])
