"""Label and column: the parts of a PoRep challenge beside its Merkle paths."""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.circuits.emitter import Bit, Emitter, Num
from cuzk.circuits.gadgets import uint32
from cuzk.circuits.gadgets.number import digest_to_number
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.gadgets.sha256 import sha256
from cuzk.circuits.porep.shape import parent_sequence


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
