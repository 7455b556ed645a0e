"""WinningPoSt and WindowPoSt of each registered sector size: one circuit, two sets of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from cuzk.circuits.porep.shape import NODE_BYTES, SHAPES, shape
from cuzk.errors import InputError

Kind = Literal["winning", "window"]
WINNING_CHALLENGES = 66
WINDOW_CHALLENGES = 10
WINDOW_SECTORS = {"32GiB": 2349, "64GiB": 2300}
"""Sectors in a partition of WindowPoSt; of the other sizes two."""


@dataclass(frozen=True)
class PostShape:
    """`path` gives the arities of tree R from the leaves to the root; the circuit repeats a sector of `challenges` paths.

    A WinningPoSt opens one sector 66 times: its circuit has 66 sectors of one challenge each.
    """

    kind: Kind
    size: str
    path: tuple[int, ...]
    sectors: int
    challenges: int

    @property
    def name(self) -> str:
        """`window-32g`, `winning-2k`."""
        return f"{self.kind}-{self.size.lower().removesuffix('ib')}"

    @property
    def nodes(self) -> int:
        return prod(self.path)

    @property
    def sector_bytes(self) -> int:
        return self.nodes * NODE_BYTES

    @property
    def real_sectors(self) -> int:
        """The most sectors that one proof is about."""
        return 1 if self.kind == "winning" else self.sectors

    @property
    def paths(self) -> int:
        """Inclusion proofs of a sector in its vanilla proof."""
        return self.sectors * self.challenges if self.kind == "winning" else self.challenges

    @property
    def public_inputs(self) -> int:
        """Without the constant one: of each sector comm_r and the challenged positions."""
        return self.sectors * (1 + self.challenges)


def post_shape(kind: str, size: str) -> PostShape:
    """The shape of a kind (winning, window) and a sector size such as `2KiB` or `32g`. Raises InputError."""
    found = shape(size)
    if kind == "winning":
        return PostShape("winning", found.name, found.path, WINNING_CHALLENGES, 1)
    if kind == "window":
        return PostShape("window", found.name, found.path, WINDOW_SECTORS.get(found.name, 2), WINDOW_CHALLENGES)
    raise InputError(f"unknown kind of PoSt {kind!r}: one of {', '.join(get_args(Kind))}")


POST_SHAPES = tuple(post_shape(kind, s.name) for kind in get_args(Kind) for s in SHAPES)
