"""SnapDeals of each sector size: what decides the size of its circuit."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cuzk.circuits.field import CAPACITY
from cuzk.circuits.porep.shape import NODE_BYTES
from cuzk.errors import InputError

H_CHOICES = 6
SMALL_HS, HS = (1,) * H_CHOICES, (7, 8, 9, 10, 11, 12)
"""Numbers of high bits of a challenge that a factor may depend on, of small sectors (to 32 KiB) and of the others."""
USED_H = 10
"""The one in use where there is a choice."""


@dataclass(frozen=True)
class UpdateShape:
    """`path` gives the arities of tree R from the leaves to the root; tree D is binary."""

    size: str
    path: tuple[int, ...]
    partition_bits: int
    challenges: int
    """In one partition."""
    apex_bits: int
    """The apex tree is that many levels of tree D below a partition's root."""
    hs: tuple[int, ...]

    @property
    def name(self) -> str:
        """`snap-32g`."""
        return f"snap-{self.size.lower().removesuffix('ib')}"

    @property
    def nodes(self) -> int:
        return prod(self.path)

    @property
    def sector_bytes(self) -> int:
        return self.nodes * NODE_BYTES

    @property
    def node_bits(self) -> int:
        return self.nodes.bit_length() - 1

    @property
    def partitions(self) -> int:
        return 1 << self.partition_bits

    @property
    def challenge_bits(self) -> int:
        """Bits of a challenge that are drawn; the partition's number stands above them."""
        return self.node_bits - self.partition_bits

    @property
    def per_digest(self) -> int:
        """Challenges drawn from one digest."""
        return CAPACITY // self.challenge_bits

    @property
    def digests(self) -> int:
        return -(-self.challenges // self.per_digest)

    @property
    def apex_leaves(self) -> int:
        return 1 << self.apex_bits

    @property
    def data_levels(self) -> int:
        """Levels of tree D below the apex leaves."""
        return self.challenge_bits - self.apex_bits

    @property
    def h_index(self) -> int:
        """The place among `hs` of the number that is used."""
        return self.hs.index(USED_H) if USED_H in self.hs else 0

    @property
    def h(self) -> int:
        return self.hs[self.h_index]

    @property
    def public_inputs(self) -> int:
        """Without the constant one: partition and h, comm_r_old, comm_d_new, comm_r_new."""
        return 4

    def partition_and_h(self, partition: int) -> int:
        """The first input: the partition's number, above it one bit for the h in use."""
        return partition | 1 << self.h_index << self.partition_bits


UPDATE_SHAPES = (
    UpdateShape("1KiB", (8, 4), 0, 10, 3, SMALL_HS),
    UpdateShape("2KiB", (8, 8), 0, 10, 3, SMALL_HS),
    UpdateShape("4KiB", (8, 8, 2), 0, 10, 3, SMALL_HS),
    UpdateShape("8KiB", (8, 8, 4), 0, 10, 3, SMALL_HS),
    UpdateShape("16KiB", (8, 8, 8), 1, 10, 7, SMALL_HS),
    UpdateShape("32KiB", (8, 8, 8, 2), 1, 10, 7, SMALL_HS),
    UpdateShape("8MiB", (8,) * 6, 2, 10, 7, HS),
    UpdateShape("16MiB", (*(8,) * 6, 2), 2, 10, 7, HS),
    UpdateShape("512MiB", (8,) * 8, 4, 86, 7, HS),
    UpdateShape("32GiB", (*(8,) * 9, 8), 4, 86, 7, HS),
    UpdateShape("64GiB", (*(8,) * 9, 8, 2), 4, 86, 7, HS),
)
REGISTERED = ("2KiB", "8MiB", "512MiB", "32GiB", "64GiB")
"""Sizes with a registered proof type, in the order of its numbers (0 … 4)."""


def update_shape(size: str) -> UpdateShape:
    """The shape of a sector size such as `2KiB` or `32g`. Raises InputError for one without a circuit."""
    wanted = size.strip().lower().removesuffix("b").removesuffix("i")
    for s in UPDATE_SHAPES:
        if s.size.lower().removesuffix("ib") == wanted:
            return s
    raise InputError(f"unknown sector size {size!r}: one of {', '.join(s.size for s in UPDATE_SHAPES)}")
