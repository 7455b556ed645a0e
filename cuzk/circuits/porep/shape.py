"""The registered sectors: what decides the size of their circuits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

from cuzk.errors import InputError

T = TypeVar("T")

NODE_BYTES = 32
DRG_PARENTS = 6
EXPANDER_PARENTS = 8
MAX_CHALLENGES = 256
LABEL_PARENTS = 37
"""Parents in a label's preimage, with repetitions."""


@dataclass(frozen=True)
class Shape:
    """A sector's circuit. `path` gives the arities of trees C and R from the leaves to the root; tree D is binary."""

    name: str
    path: tuple[int, ...]
    layers: int
    challenges: int
    """Challenges in one partition."""
    partitions: int
    registered_id: int = 0
    """Registered proof type of API version 1.0; version 1.1 adds 5."""

    @property
    def nodes(self) -> int:
        return prod(self.path)

    @property
    def sector_bytes(self) -> int:
        return self.nodes * NODE_BYTES

    @property
    def tree_d_levels(self) -> int:
        return self.nodes.bit_length() - 1

    @property
    def inputs_per_challenge(self) -> int:
        """Tree-D leaf, the parents, the challenge, the R and the C path."""
        return 4 + DRG_PARENTS + EXPANDER_PARENTS

    @property
    def public_inputs(self) -> int:
        """Without the constant one."""
        return 3 + self.challenges * self.inputs_per_challenge

    def with_challenges(self, challenges: int | None) -> Shape:
        """A partition of the same sector that opens another number of nodes: the same rows, fewer or more times. No
        registered proof has it; it is for rehearsals. None: the shape itself. Raises InputError.
        """
        if challenges is None or challenges == self.challenges:
            return self
        if not 1 <= challenges <= MAX_CHALLENGES:
            raise InputError(f"--challenges {challenges}: from 1 to {MAX_CHALLENGES}")
        return replace(self, name=f"{self.name}-{challenges}-challenges", challenges=challenges)


SHAPES = (
    Shape("2KiB", (8, 8), 2, 2, 1, 0),
    Shape("8MiB", (8,) * 6, 2, 2, 1, 1),
    Shape("512MiB", (8,) * 8, 2, 2, 1, 2),
    Shape("32GiB", (*(8,) * 9, 8), 11, 18, 10, 3),
    Shape("64GiB", (*(8,) * 9, 8, 2), 11, 18, 10, 4),
)


def shape(name: str) -> Shape:
    """The shape of a sector size such as `2KiB` or `32g`. Raises InputError for a size that is not registered."""
    wanted = name.strip().lower().removesuffix("b").removesuffix("i")
    for s in SHAPES:
        if s.name.lower().removesuffix("ib") == wanted:
            return s
    raise InputError(f"unknown sector size {name!r}: one of {', '.join(s.name for s in SHAPES)}")


def parent_sequence(layer: int, parents: Sequence[T]) -> list[T]:
    """The 37 parents of a label's preimage, of the six DRG parents (layer 1) or those and the eight expander parents."""
    if layer == 1:
        return [*list(parents[:DRG_PARENTS]) * 6, parents[0]]
    return [*list(parents) * 2, *parents[:9]]
