"""Label, column and inclusion: the parts of a PoRep challenge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuzk.circuits.emitter import Bit, Emitter, Num
from cuzk.circuits.gadgets import uint32
from cuzk.circuits.gadgets.boolean import bit
from cuzk.circuits.gadgets.number import digest_to_number, equal, insert, pack_into_input, sha256_of_numbers
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.gadgets.sha256 import sha256
from cuzk.circuits.porep.shape import parent_sequence
from cuzk.circuits.porep.values import PathValues

Hash = Callable[[Emitter, Sequence[Num]], Num]


def label(cs: Emitter, replica_id: Sequence[Bit], layer: int, node: Sequence[Bit], parents: Sequence[Sequence[Bit]]) -> Num:
    """A node's label in a layer (from 1). `node`: 64 bits, least significant first; `replica_id` and each of the
    `parents` (6 in layer 1, else 14): 256 bits as SHA-256 takes them.

    Preimage, 1,248 bytes: replica id | layer, u32 big-endian | node, u64 big-endian | 20 zero bytes | 37 parents.
    """
    preimage = [*replica_id, *reversed(uint32.constant(cs, layer)), *reversed(node)]
    preimage += [cs.constant_bit(0)] * (512 - len(preimage))
    for parent in parent_sequence(layer, parents):
        preimage += parent
    return digest_to_number(cs, sha256(cs, preimage))


def column_hash(cs: Emitter, labels: Sequence[Num]) -> Num:
    """The hash of a node's labels in all layers (2 or 11)."""
    with cs.scope("column hash"):
        return poseidon(cs, labels)


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


def poseidon_inclusion(cs: Emitter, leaf: Num, path: PathValues, root: Num) -> None:
    inclusion(cs, leaf, path, root, poseidon)


def sha256_inclusion(cs: Emitter, leaf: Num, path: PathValues, root: Num) -> None:
    inclusion(cs, leaf, path, root, sha256_of_numbers)
