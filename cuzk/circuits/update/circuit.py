"""One partition of SnapDeals: a prefix (commitments, apex tree, the bits of all challenges), then its challenges.

Variables, inputs and rows stand in the order that the published keys fix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.circuits.emitter import ONE, Bit, Emitter, Num
from cuzk.circuits.field import NUM_BITS
from cuzk.circuits.gadgets.boolean import bit
from cuzk.circuits.gadgets.number import equal, inputize, pack, pick, sha256_of_numbers
from cuzk.circuits.gadgets.poseidon import poseidon, randomness
from cuzk.circuits.merkle import inclusion_at
from cuzk.circuits.update.shape import H_CHOICES, UpdateShape


@dataclass(frozen=True)
class PrefixValues:
    """Values of any algebra, or None while only structure is emitted."""

    partition_and_h: Any = None
    comm_r_old: Any = None
    comm_d_new: Any = None
    comm_r_new: Any = None
    comm_c: Any = None
    root_r_old: Any = None
    root_r_new: Any = None
    apex_leaves: Sequence[Any] = ()
    """Left to right."""
    partition_path: Sequence[Any] = ()
    """Siblings from the partition's apex root up to comm_d_new."""


@dataclass(frozen=True)
class ChallengeValues:
    """Siblings from the leaf up, in the order of their positions."""

    leaf_r_old: Any
    leaf_d_new: Any
    path_r_old: Sequence[Sequence[Any]]
    path_r_new: Sequence[Sequence[Any]]
    path_d_new: Sequence[Any]
    """Up to the apex leaf."""


def blank_prefix(shape: UpdateShape) -> PrefixValues:
    return PrefixValues(apex_leaves=[None] * shape.apex_leaves, partition_path=[None] * shape.partition_bits)


def blank_challenge(shape: UpdateShape) -> ChallengeValues:
    path = [[None] * (arity - 1) for arity in shape.path]
    return ChallengeValues(None, None, path, path, [None] * shape.data_levels)


@dataclass(frozen=True)
class Prefix:
    """The variables that the challenges use."""

    partition_bits: Sequence[Bit]
    h_bits: Sequence[Bit]
    phi: Num
    root_r_old: Num
    root_r_new: Num
    apex_leaves: Sequence[Num]
    challenge_bits: Sequence[Sequence[Bit]]
    """The bits that are drawn for each challenge, least significant first."""


def _number_bits(cs: Emitter, x: Num, count: int) -> list[Bit]:
    """`count` bits of x, least significant first, each with its row; then the row Σ 2^i b_i · 1 = x."""
    values = [None] * count if cs.algebra is None else cs.algebra.bits_of(x.value, count)
    bits = [bit(cs, v) for v in values]
    if cs.recording:
        cs.enforce([(b.var, 1 << i) for i, b in enumerate(bits) if b.var is not None], [(ONE, 1)], [(x.var, 1)])
    return bits


def _public(cs: Emitter, name: str, value: Any) -> Num:
    with cs.scope(name):
        x = cs.num(value)
        inputize(cs, x)
    return x


def emit_prefix(cs: Emitter, shape: UpdateShape, v: PrefixValues) -> Prefix:
    """Inputs: partition and h, comm_r_old, comm_d_new, comm_r_new."""
    p = shape.partition_bits
    number = _public(cs, "partition and h", v.partition_and_h)
    with cs.scope("partition and h"):
        bits = _number_bits(cs, number, p + H_CHOICES)
        partition = pack(cs, bits[:p])
    comm_r_old = _public(cs, "comm_r_old", v.comm_r_old)
    comm_d_new = _public(cs, "comm_d_new", v.comm_d_new)
    comm_r_new = _public(cs, "comm_r_new", v.comm_r_new)
    with cs.scope("phi"):
        phi = randomness(cs, comm_d_new, comm_r_old)
    comm_c, root_r_old, root_r_new = cs.num(v.comm_c), cs.num(v.root_r_old), cs.num(v.root_r_new)
    apex_leaves = [cs.num(x) for x in v.apex_leaves]
    partition_path = [[cs.num(x)] for x in v.partition_path]
    for name, root, comm in (("comm_r_old", root_r_old, comm_r_old), ("comm_r_new", root_r_new, comm_r_new)):
        with cs.scope(name):
            equal(cs, poseidon(cs, [comm_c, root]), comm)
    with cs.scope("apex tree"):
        current = list(apex_leaves)
        while len(current) > 1:
            current = [sha256_of_numbers(cs, current[i : i + 2]) for i in range(0, len(current), 2)]
        inclusion_at(cs, current[0], bits[:p], partition_path, comm_d_new, sha256_of_numbers)
    with cs.scope("challenge bits"):
        challenge_bits = _emit_challenge_bits(cs, shape, partition, comm_r_new)
    return Prefix(bits[:p], bits[p:], phi, root_r_old, root_r_new, apex_leaves, challenge_bits)


def _emit_challenge_bits(cs: Emitter, shape: UpdateShape, partition: Num, comm_r_new: Num) -> list[list[Bit]]:
    """Each digest gives the bits of several challenges; what is left of it is not used. A digest below 2^255 - r has two
    decompositions, and no row excludes the second."""
    out: list[list[Bit]] = []
    for j in range(shape.digests):
        with cs.scope(f"digest {j}"):
            value = None
            if cs.algebra is not None:
                value = cs.algebra.combine([(shape.digests, partition.value)], j)
            index = cs.num(value)
            cs.enforce([(partition.var, shape.digests), *([(ONE, j)] if j else [])], [(ONE, 1)], [(index.var, 1)])
            digest = randomness(cs, comm_r_new, index)
            bits = _number_bits(cs, digest, NUM_BITS)
        w = shape.challenge_bits
        for i in range(min(shape.per_digest, shape.challenges - len(out))):
            out.append(bits[i * w : (i + 1) * w])
    return out


def emit_challenge(cs: Emitter, shape: UpdateShape, prefix: Prefix, drawn: Sequence[Bit], v: ChallengeValues) -> None:
    """`drawn`: the challenge's own bits, those of the partition stand above them."""
    position = [*drawn, *prefix.partition_bits]
    with cs.scope("high bits"):
        selected = _emit_high_bits(cs, shape, prefix, position)
    with cs.scope("rho"):
        rho = randomness(cs, prefix.phi, selected)
    with cs.scope("encoding"):
        leaf_r_old, leaf_d_new = cs.num(v.leaf_r_old), cs.num(v.leaf_d_new)
        algebra = cs.algebra
        masked = cs.num(None if algebra is None else algebra.mul(leaf_d_new.value, rho.value))
        cs.enforce([(leaf_d_new.var, 1)], [(rho.var, 1)], [(masked.var, 1)])
        leaf_r_new = cs.num(None if algebra is None else algebra.add(leaf_r_old.value, masked.value))
        cs.enforce([(leaf_r_old.var, 1), (masked.var, 1)], [(ONE, 1)], [(leaf_r_new.var, 1)])
    for name, leaf, path, root in (
        ("tree R old", leaf_r_old, v.path_r_old, prefix.root_r_old),
        ("tree R new", leaf_r_new, v.path_r_new, prefix.root_r_new),
    ):
        with cs.scope(name):
            siblings = [[cs.num(x) for x in level] for level in path]
            inclusion_at(cs, leaf, position, siblings, root, poseidon)
    with cs.scope("apex leaf"):
        chosen = list(prefix.apex_leaves)
        for b in reversed(drawn[shape.data_levels :]):
            half = len(chosen) // 2
            chosen = [pick(cs, b, chosen[half + j], chosen[j]) for j in range(half)]
    with cs.scope("tree D new"):
        below = [[cs.num(x)] for x in v.path_d_new]
        inclusion_at(cs, leaf_d_new, drawn[: shape.data_levels], below, chosen[0], sha256_of_numbers)


def _emit_high_bits(cs: Emitter, shape: UpdateShape, prefix: Prefix, position: Sequence[Bit]) -> Num:
    """The h high bits of the position for the h that is selected."""
    products = []
    for h, selector in zip(shape.hs, prefix.h_bits, strict=True):
        high = pack(cs, position[len(position) - h :])
        value = None
        if cs.algebra is not None:
            value = cs.algebra.select(selector.value, high.value, cs.algebra.constant(0))
        z = cs.num(value)
        cs.enforce([(high.var, 1)], selector.terms(), [(z.var, 1)])
        products.append(z)
    total = None if cs.algebra is None else cs.algebra.combine([(1, z.value) for z in products])
    selected = cs.num(total)
    cs.enforce([(z.var, 1) for z in products], [(ONE, 1)], [(selected.var, 1)])
    return selected


def emit_partition(
    cs: Emitter, shape: UpdateShape, prefix: PrefixValues | None = None, challenges: Sequence[ChallengeValues] | None = None
) -> None:
    """A whole partition, without the rows of the inputs that the proof system appends."""
    shared = emit_prefix(cs, shape, prefix or blank_prefix(shape))
    each = challenges or [blank_challenge(shape)] * shape.challenges
    for i, (drawn, values) in enumerate(zip(shared.challenge_bits, each, strict=True)):
        with cs.scope(f"challenge {i}"):
            emit_challenge(cs, shape, shared, drawn, values)
