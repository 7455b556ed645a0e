"""The registered proof types of PoSt: 0-4 WinningPoSt, 5-9 WindowPoSt V1, 10-14 WindowPoSt V1_1, by sector size."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.circuits.porep.shape import SHAPES
from cuzk.circuits.post.shape import PostShape, post_shape
from cuzk.errors import InputError

KINDS = (("winning", "1.0", "StackedDrgWinning{}V1"), ("window", "1.0", "StackedDrgWindow{}V1"),
         ("window", "1.2", "StackedDrgWindow{}V1_1"))  # fmt: skip
"""Kind, API version, and the form of the name."""


@dataclass(frozen=True)
class RegisteredPost:
    number: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < len(KINDS) * len(SHAPES):
            raise InputError(f"registered PoSt types are 0 … {len(KINDS) * len(SHAPES) - 1}, not {self.number}")

    @property
    def shape(self) -> PostShape:
        return post_shape(KINDS[self.number // len(SHAPES)][0], SHAPES[self.number % len(SHAPES)].name)

    @property
    def version(self) -> str:
        return KINDS[self.number // len(SHAPES)][1]

    @property
    def name(self) -> str:
        return KINDS[self.number // len(SHAPES)][2].format(SHAPES[self.number % len(SHAPES)].name)


def registered_post(kind: str, size: str, version: str | None = None) -> RegisteredPost:
    """The type of a kind, a sector size and an API version (by default the network's: 1.0 for winning, 1.2 for window).
    Raises InputError."""
    shape = post_shape(kind, size)
    wanted = version or ("1.0" if kind == "winning" else "1.2")
    for i, (name, its, _) in enumerate(KINDS):
        if (name, its) == (kind, wanted):
            return RegisteredPost(i * len(SHAPES) + [s.name for s in SHAPES].index(shape.size))
    raise InputError(f"there is no {kind} PoSt of API version {wanted!r}: 1.0 for winning; 1.0 or 1.2 for window")
