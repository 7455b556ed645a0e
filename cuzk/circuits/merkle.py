"""Merkle paths in a circuit: with the position as a public input (PoRep, PoSt), and with index bits that exist already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.circuits.emitter import Bit, Emitter, Num
from cuzk.circuits.gadgets.boolean import bit
from cuzk.circuits.gadgets.number import equal, insert, pack_into_input, sha256_of_numbers
from cuzk.circuits.gadgets.poseidon import poseidon

Hash = Callable[[Emitter, Sequence[Num]], Num]


@dataclass(frozen=True)
class PathValues:
    """A Merkle path from the leaf up: for each level the bits of the index (least significant first) and the
    siblings in the order of their positions."""

    levels: Sequence[tuple[Sequence[Any], Sequence[Any]]]


def blank_path(arities: Sequence[int]) -> PathValues:
    """The shape of a path without values."""
    return PathValues([([None] * (a.bit_length() - 1), [None] * (a - 1)) for a in arities])


def inclusion(cs: Emitter, leaf: Num, path: PathValues, root: Num, node_hash: Hash) -> None:
    """The leaf lies under the root at the position that becomes the next public input."""
    current, index = leaf, []
    for level, (bit_values, sibling_values) in enumerate(path.levels):
        with cs.scope(f"level {level}"):
            with cs.scope("index bits"):
                bits = [bit(cs, v) for v in bit_values]
            siblings = [cs.num(v) for v in sibling_values]
            with cs.scope("insertion"):
                children = insert(cs, current, bits, siblings)
            with cs.scope("hash"):
                current = node_hash(cs, children)
        index += bits
    with cs.scope("position"):
        pack_into_input(cs, index)
    with cs.scope("root"):
        equal(cs, current, root)


def inclusion_at(
    cs: Emitter, leaf: Num, index: Sequence[Bit], siblings: Sequence[Sequence[Num]], root: Num, node_hash: Hash
) -> None:
    """The leaf lies under the root at the position of `index` (least significant bit first); the siblings of each level,
    from the leaf up, were allocated before. No input, no row but those of insertion, hash and root."""
    current, used = leaf, 0
    for level, others in enumerate(siblings):
        width = len(others).bit_length()  # arity - 1 siblings: 1, 3 or 7
        with cs.scope(f"level {level}"):
            with cs.scope("insertion"):
                children = insert(cs, current, index[used : used + width], others)
            with cs.scope("hash"):
                current = node_hash(cs, children)
        used += width
    assert used == len(index), "the index has other bits than the path has levels"
    with cs.scope("root"):
        equal(cs, current, root)


def poseidon_inclusion(cs: Emitter, leaf: Num, path: PathValues, root: Num) -> None:
    inclusion(cs, leaf, path, root, poseidon)


def sha256_inclusion(cs: Emitter, leaf: Num, path: PathValues, root: Num) -> None:
    inclusion(cs, leaf, path, root, sha256_of_numbers)
