"""The values that a challenge's witness is made from: those of any algebra, or None while only structure is emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.circuits.merkle import PathValues, blank_path
from cuzk.circuits.porep.shape import DRG_PARENTS, EXPANDER_PARENTS, Shape


@dataclass(frozen=True)
class ParentValues:
    labels: Sequence[Any]
    """The parent's column: its label in each layer."""
    path: PathValues


@dataclass(frozen=True)
class ChallengeValues:
    data: Any
    data_path: PathValues
    parents: Sequence[ParentValues]
    """Six DRG parents, then eight expander parents."""
    node_bits: Sequence[Any]
    """64 bits of the challenge, least significant first."""
    replica_path: PathValues
    column_path: PathValues


@dataclass(frozen=True)
class PrefixValues:
    replica_id: Any = None
    comm_d: Any = None
    comm_r: Any = None
    comm_r_last: Any = None
    comm_c: Any = None


def blank_challenge(shape: Shape) -> ChallengeValues:
    """The shape of a challenge without values."""
    path = blank_path(shape.path)
    parent = ParentValues([None] * shape.layers, path)
    return ChallengeValues(
        None, blank_path([2] * shape.tree_d_levels), [parent] * (DRG_PARENTS + EXPANDER_PARENTS), [None] * 64, path, path
    )
