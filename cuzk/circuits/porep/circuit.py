"""One partition of PoRep: a prefix (ids and commitments), then its challenges, all of the same form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuzk.circuits.emitter import ONE, Bit, Emitter, Num
from cuzk.circuits.gadgets.boolean import bit
from cuzk.circuits.gadgets.number import equal, inputize, pack_into_input, to_bytes_bits
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.merkle import poseidon_inclusion, sha256_inclusion
from cuzk.circuits.porep.gadgets import column_hash, label
from cuzk.circuits.porep.shape import DRG_PARENTS, Shape
from cuzk.circuits.porep.values import ChallengeValues, PrefixValues, blank_challenge


@dataclass(frozen=True)
class Prefix:
    """The variables that all challenges share."""

    replica_id_bits: Sequence[Bit]
    comm_d: Num
    comm_c: Num
    comm_r_last: Num


def emit_prefix(cs: Emitter, v: PrefixValues) -> Prefix:
    """Inputs: replica id, comm_d, comm_r. Rows: 571."""
    with cs.scope("replica id"):
        replica_id = cs.num(v.replica_id)
        inputize(cs, replica_id)
        replica_id_bits = to_bytes_bits(cs, replica_id)
    with cs.scope("comm_d"):
        comm_d = cs.num(v.comm_d)
        inputize(cs, comm_d)
    with cs.scope("comm_r"):
        comm_r = cs.num(v.comm_r)
        inputize(cs, comm_r)
        comm_r_last = cs.num(v.comm_r_last)
        comm_c = cs.num(v.comm_c)
        equal(cs, comm_r, poseidon(cs, [comm_c, comm_r_last]))
    return Prefix(replica_id_bits, comm_d, comm_c, comm_r_last)


def emit_challenge(cs: Emitter, shape: Shape, prefix: Prefix, v: ChallengeValues) -> None:
    """Inputs: data leaf's index, the parents' indices, the challenge, indices of the replica and the column path."""
    with cs.scope("tree D"):
        data = cs.num(v.data)
        sha256_inclusion(cs, data, v.data_path, prefix.comm_d)
    columns = []
    for i, parent in enumerate(v.parents):
        with cs.scope(f"DRG parent {i}" if i < DRG_PARENTS else f"expander parent {i - DRG_PARENTS}"):
            column = [cs.num(x) for x in parent.labels]
            poseidon_inclusion(cs, column_hash(cs, column), parent.path, prefix.comm_c)
        columns.append(column)
    with cs.scope("challenge number"):
        node = [bit(cs, x) for x in v.node_bits]
        pack_into_input(cs, node)
    labels = []
    for layer in range(1, shape.layers + 1):
        with cs.scope(f"layer {layer}"):
            with cs.scope("parents' bits"):
                parents = [to_bytes_bits(cs, c[layer - 1]) for c in columns[:DRG_PARENTS]]
                if layer > 1:
                    parents += [to_bytes_bits(cs, c[layer - 2]) for c in columns[DRG_PARENTS:]]
            with cs.scope("label"):
                labels.append(label(cs, prefix.replica_id_bits, layer, node, parents))
    key = labels[-1]
    with cs.scope("encoding"):
        encoded = cs.num(None if cs.algebra is None else cs.algebra.add(key.value, data.value))
        cs.enforce([(key.var, 1), (data.var, 1)], [(ONE, 1)], [(encoded.var, 1)])
    with cs.scope("tree R"):
        poseidon_inclusion(cs, encoded, v.replica_path, prefix.comm_r_last)
    with cs.scope("tree C"):
        poseidon_inclusion(cs, column_hash(cs, labels), v.column_path, prefix.comm_c)


def emit_partition(
    cs: Emitter, shape: Shape, prefix: PrefixValues | None = None, challenges: Sequence[ChallengeValues] | None = None
) -> None:
    """A whole partition, without the rows of the inputs that the proof system appends."""
    shared = emit_prefix(cs, prefix or PrefixValues())
    for i, values in enumerate(challenges or [blank_challenge(shape)] * shape.challenges):
        with cs.scope(f"challenge {i}"):
            emit_challenge(cs, shape, shared, values)
