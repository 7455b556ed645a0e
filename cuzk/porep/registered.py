"""The registered proof types of PoRep: a sector size and a variant, with their names and numbers.

The number is what a PoRep id holds. API version 1.2 keeps the graph of 1.1; its two types differ in how challenges are
drawn, and the non-interactive one in how many partitions a proof has. Circuits and keys are the same in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cuzk.circuits.porep.shape import SHAPES, Shape
from cuzk.errors import InputError


class Drawing(Enum):
    """The way in which the challenged nodes are drawn."""

    INTERACTIVE = "interactive"
    SYNTHETIC = "synthetic"
    NON_INTERACTIVE = "non-interactive"


@dataclass(frozen=True)
class Variant:
    suffix: str
    option: str
    """The command line's name for it."""
    graph: str
    """API version whose rules the graph follows: 1.0 or 1.1."""
    drawing: Drawing


VARIANTS = (
    Variant("V1", "1.0", "1.0", Drawing.INTERACTIVE),
    Variant("V1_1", "1.1", "1.1", Drawing.INTERACTIVE),
    Variant("V1_1_Feat_SyntheticPoRep", "synthetic", "1.1", Drawing.SYNTHETIC),
    Variant("V1_2_Feat_NonInteractivePoRep", "non-interactive", "1.1", Drawing.NON_INTERACTIVE),
)
NON_INTERACTIVE_PARTITIONS = {1: 13, 10: 126}
"""By the number that the interactive types have."""
MAX_PARTITIONS = max(NON_INTERACTIVE_PARTITIONS.values())


@dataclass(frozen=True)
class Registered:
    shape: Shape
    variant: Variant

    @property
    def number(self) -> int:
        return VARIANTS.index(self.variant) * len(SHAPES) + self.shape.registered_id

    @property
    def name(self) -> str:
        """Such as `StackedDrg32GiBV1_1`."""
        return f"StackedDrg{self.shape.name}{self.variant.suffix}"

    @property
    def porep_id(self) -> bytes:
        return self.number.to_bytes(8, "little") + bytes(24)

    @property
    def drawing(self) -> Drawing:
        return self.variant.drawing

    @property
    def partitions(self) -> int:
        return partitions_of(self.shape, self.drawing)


def partitions_of(shape: Shape, drawing: Drawing) -> int:
    """Partitions of a proof."""
    count = shape.partitions
    return NON_INTERACTIVE_PARTITIONS[count] if drawing is Drawing.NON_INTERACTIVE else count


ALL = tuple(Registered(shape, variant) for variant in VARIANTS for shape in SHAPES)


def registered_name(name: str) -> Registered:
    """Raises InputError for a name that is not registered."""
    for one in ALL:
        if one.name == name:
            return one
    raise InputError(f"unknown registered proof {name[:80]!r}: StackedDrg, a size ({', '.join(s.name for s in SHAPES)}), "
                     f"then {', '.join(v.suffix for v in VARIANTS)}")  # fmt: skip


def registered_id(porep_id: bytes) -> Registered:
    """The type that a PoRep id holds. Raises InputError for another number."""
    number = int.from_bytes(porep_id[:8], "little")
    if number >= len(ALL):
        raise InputError(f"porep id: registered types are 0 … {len(ALL) - 1}, not {number}")
    return ALL[number]


def variant_option(option: str) -> Variant:
    """The variant of an option such as `1.1` or `synthetic`. Raises InputError."""
    for variant in VARIANTS:
        if option in (variant.option, variant.suffix):
            return variant
    raise InputError(f"unknown API version {option!r}: one of {', '.join(v.option for v in VARIANTS)}")
