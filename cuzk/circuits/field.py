"""The scalar field of BLS12-381, as plain integers.

Figures: r of the curve's definition; `CAPACITY` is the number of bits that every element can hold, `NUM_BITS` the
number that an element may need.
"""

from __future__ import annotations

MODULUS = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
CAPACITY = 254
NUM_BITS = 255
_R256 = pow(2, 256, MODULUS)
_R256_INV = pow(_R256, -1, MODULUS)


def to_mont(x: int) -> int:
    """x·2^256 mod r."""
    return x * _R256 % MODULUS


def from_mont(x: int) -> int:
    """x·2^-256 mod r."""
    return x * _R256_INV % MODULUS
