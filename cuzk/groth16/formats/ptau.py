"""Reading snarkjs's .ptau (version 1): powers of tau, and Lagrange points once prepared for phase 2.

| section | content |
| 1 | u32 48, q, u32 power p, u32 power of the ceremony |
| 2, 3 | tau^i: 2·2^p − 1 in G1, 2^p in G2 | 4, 5 | alpha·tau^i, beta·tau^i, 2^p in G1 | 6 | beta in G2 | 7 |
contributions |
| 12 … 15 | Lagrange points of tau G1, tau G2, alpha, beta for the domains 2^0 … 2^p (12 also 2^(p+1)), one block
after the other |
"""

from __future__ import annotations

import numpy as np

from cuzk.errors import InputError
from cuzk.groth16.field import FQ_MODULUS, FR_TWO_ADICITY
from cuzk.groth16.formats.container import Container, read_prime
from cuzk.groth16.formats.files import Path, unpack

NAMES = {
    1: "header",
    2: "tau G1",
    3: "tau G2",
    4: "alpha tau G1",
    5: "beta tau G1",
    6: "beta G2",
    7: "contributions",
    12: "Lagrange tau G1",
    13: "Lagrange tau G2",
    14: "Lagrange alpha tau G1",
    15: "Lagrange beta tau G1",
}
POINT_BYTES = {2: 96, 3: 192, 4: 96, 5: 96, 6: 192, 12: 96, 13: 192, 14: 96, 15: 96}


class PtauFile:
    """An indexed .ptau; `points(section)` and `lagrange(section, k)` are views of the mapped file, mont."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.container = Container(path, b"ptau", NAMES)
        head = self.container.section(1)
        at = read_prime(self.container, head, 0, FQ_MODULUS, "base field")
        if head.size != at + 8:
            raise self.container.error(head, f"has {head.size} bytes, expected {at + 8}")
        self.power, self.ceremony_power = unpack("<II", head.data, at)
        if not 1 <= self.power <= FR_TWO_ADICITY - 1:
            raise self.container.error(head, f"the power {self.power} is not between 1 and {FR_TWO_ADICITY - 1}", at)
        n = 1 << self.power
        counts = {2: 2 * n - 1, 3: n, 4: n, 5: n, 6: 1}
        self.prepared = 12 in self.container
        if self.prepared:
            counts |= {12: 4 * n - 1, 13: 2 * n - 1, 14: 2 * n - 1, 15: 2 * n - 1}
        for section_id, count in counts.items():
            size = count * POINT_BYTES[section_id]
            self.container.section(section_id, size, f"{count} points for power {self.power}")

    @property
    def contributions(self) -> int:
        """The number of contributions that the file names; 0 where it has no such section."""
        if 7 not in self.container:
            return 0
        section = self.container.section(7)
        if section.size < 4:
            raise self.container.error(section, "ends before the number of contributions")
        return int(unpack("<I", section.data)[0])

    def points(self, section_id: int) -> np.ndarray:
        return self.container.section(section_id).data.view("<u8").reshape(-1, POINT_BYTES[section_id] // 8)

    def lagrange(self, section_id: int, log_domain: int) -> np.ndarray:
        """The block of Lagrange points of the domain 2^log_domain. Raises InputError when the file has none."""
        if not self.prepared:
            raise InputError(f"{self.path}: not prepared for phase 2 (snarkjs powersoftau prepare phase2)")
        if log_domain > self.power + (section_id == 12):
            message = f"holds powers for domains up to 2^{self.power}; this circuit needs 2^{log_domain}"
            raise InputError(f"{self.path}: {message}")
        first = (1 << log_domain) - 1
        return self.points(section_id)[first : first + (1 << log_domain)]
