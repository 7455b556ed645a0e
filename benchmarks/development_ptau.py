"""A prepared powers-of-tau file from secrets of this process, for timing setups: no ceremony, no security, minutes faster.

python benchmarks/development_ptau.py POWER OUT.ptau
"""

from __future__ import annotations

import struct
import sys

import numpy as np

from cuzk import native
from cuzk.groth16.field import FQ_MODULUS, fr_array, root_of_unity
from cuzk.groth16.formats.container import ContainerWriter
from cuzk.groth16.formats.files import atomic_write
from cuzk.groth16.setup.columns import lagrange_at, mont
from cuzk.groth16.setup.secrets import Secrets

CHUNK = 1 << 16


def write_ptau(path: str, power: int, secrets: Secrets) -> None:
    """Every section that `groth16 setup` reads; the list of contributions is empty."""
    n, s = 1 << power, secrets

    def powers(scale: int, count: int) -> np.ndarray:
        return native.fr_to_std(native.fr_powers_mont(mont(s.tau), count, mont(scale)))

    def blocks(scale: int, last: int) -> np.ndarray:
        parts = []
        for k in range(last + 1):
            ell = lagrange_at(s.tau, 1, root_of_unity(k, 5), 1 << k, 1 << k)
            parts.append(native.fr_to_std(native.fr_mul(ell, mont(scale))))
        return np.concatenate(parts)

    with atomic_write(path) as file:
        out = ContainerWriter(file, b"ptau")
        out.section(1, struct.pack("<I", 48) + FQ_MODULUS.to_bytes(48, "little") + struct.pack("<II", power, power))
        lists = {
            2: (1, powers(1, 2 * n - 1)),
            3: (2, powers(1, n)),
            4: (1, powers(s.alpha, n)),
            5: (1, powers(s.beta, n)),
            6: (2, fr_array([s.beta])),
            12: (1, blocks(1, power + 1)),
            13: (2, blocks(1, power)),
            14: (1, blocks(s.alpha, power)),
            15: (1, blocks(s.beta, power)),
        }
        out.section(7, struct.pack("<I", 0))
        for number, (group, scalars) in lists.items():
            multiply = native.fixed_base_g1 if group == 1 else native.fixed_base_g2
            out.begin(number)
            for first in range(0, len(scalars), CHUNK):
                file.write(multiply(scalars[first : first + CHUNK]).data)
            out.end()
        out.finish()


if __name__ == "__main__":
    write_ptau(sys.argv[2], int(sys.argv[1]), Secrets.random())
