"""Vanilla proofs of SnapDeals: our own, every kind of fault, and what the circuit says of values that do not fit."""

import dataclasses
import random

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.algebra import Scalars
from cuzk.circuits.emitter import Emitter
from cuzk.circuits.update.circuit import emit_partition
from cuzk.circuits.update.shape import UPDATE_SHAPES, update_shape
from cuzk.circuits.update.template import update_witness
from cuzk.circuits.witness import require_satisfied
from cuzk.errors import FormatError
from cuzk.groth16.template.walker import TemplateWalker
from cuzk.update.job import UpdateJob
from cuzk.update.vanilla import UpdateVanilla, update_layout
from cuzk.vanilla.items import Items, item_bytes
from tests.unit.porep.test_sealing import lane
from tests.unit.update.update_files import SMALL, TINY, circuit, vanilla


def inputs_of(witness):
    return [int.from_bytes(x.tobytes(), "little") for x in native.fr_to_std(witness.inputs_mont)]


@pytest.mark.parametrize("shape", [TINY, SMALL], ids=["tiny", "2KiB"])
def test_our_own_come_back_and_satisfy_the_circuit(shape):
    v = vanilla(shape)
    again = UpdateVanilla.of_bytes(item_bytes(v.items), v.statement, "again")
    again.check()
    job = UpdateJob(again, circuit(shape))
    for k in range(job.partitions):
        witness = job.witness(k)
        require_satisfied(job.template, witness, "it")
        assert inputs_of(witness) == [1, *job.public_inputs(k)]


@pytest.mark.parametrize(
    ("size", "bytes_"), [("2KiB", 15_064), ("8MiB", 43_864), ("512MiB", 453_064), ("32GiB", 561_768), ("64GiB", 575_528)]
)
def test_length_of_items(size, bytes_):
    assert update_layout(update_shape(size)).item_bytes == bytes_


@pytest.mark.slow
@pytest.mark.parametrize("shape", [s for s in UPDATE_SHAPES if s.size not in ("2KiB", "64GiB")], ids=lambda s: s.size)
def test_the_last_partition_of_every_size_satisfies_the_circuit(shape):
    v = vanilla(shape)
    v.check()
    job = UpdateJob(v)
    require_satisfied(job.template, job.witness(shape.partitions - 1), "it")


def test_columns_equal_one_challenge_after_the_other_in_integers():
    v = vanilla()
    prefix, challenges = v.prefix(1), v.challenge_values(1)
    cs = Emitter(rows=False, algebra=Scalars())
    emit_partition(cs, TINY, lane(prefix, 0), [lane(challenges, k) for k in range(TINY.challenges)])
    witness = UpdateJob(v, circuit(TINY)).witness(1).expand_std()
    wanted = np.frombuffer(b"".join(x.to_bytes(32, "little") for x in cs.input_values + cs.aux_values), np.uint64)
    assert np.array_equal(witness, wanted.reshape(-1, 4))


def changed(v, place, item=0):
    hashes = v.items.hashes.copy()
    hashes[item, place, 0] ^= 1
    return UpdateVanilla(v.statement, Items(v.items.source, v.items.layout, hashes, v.items.numbers))


def test_faults_are_named_by_their_place():
    v, at = vanilla(), update_layout(TINY)
    cases = [
        (changed(v, at.places.hash["comm_c"], 1), r"vanilla_proofs\[1\]\.\S*\[0\]\.proof_r_old\.data\.Single\.root: with comm_c"),
        (changed(v, at.r_old[1].root), r"\[1\]\.proof_r_old\.data\.Single\.root: another root"),
        (changed(v, at.r_new[0].root), r"\[0\]\.proof_r_new\.data\.Single\.root: with comm_c it does not hash to .* comm_r_new"),
        (changed(v, at.d_new[1].root, 1), r"vanilla_proofs\[1\]\.\S*\[1\]\.proof_d_new\.data\.Single\.root: is not the"),
        (changed(v, at.r_old[1].leaf), r"\[1\]\.proof_r_old\.data\.Single: leaf and siblings"),
        (changed(v, at.d_new[0].levels[1][0]), r"\[0\]\.proof_d_new\.data\.Single: leaf and siblings"),
        (changed(v, at.r_new[1].levels[0][0] + 6), r"\[1\]\.proof_r_new\.data\.Single: leaf and siblings"),
        (changed(v, at.apex + 1, 1), r"vanilla_proofs\[1\]\.apex_leafs: do not hash to comm_d_new"),
    ]  # fmt: skip
    for bad, message in cases:
        with pytest.raises(FormatError, match=message):
            bad.check()


def test_no_hash_can_be_changed_without_a_fault():
    v = vanilla()
    rng = random.Random(2)
    for place in rng.sample(range(v.items.hashes.shape[1]), 30):
        with pytest.raises(FormatError):
            changed(v, place, rng.randrange(2)).check()


def test_partitions_that_changed_places_and_roots_that_did():
    v = vanilla()
    with pytest.raises(FormatError, match="the challenge, by comm_r_new and the partition"):
        UpdateVanilla.of_bytes(item_bytes(v.items)[::-1], v.statement, "x").check()
    s = v.statement
    swapped = dataclasses.replace(s, comm_r_old=s.comm_r_new, comm_r_new=s.comm_r_old)
    with pytest.raises(FormatError, match="does not hash to the statement's comm_r_old"):
        UpdateVanilla.of_bytes(item_bytes(v.items), swapped, "x").check()


def test_other_lengths():
    v = vanilla()
    good = item_bytes(v.items)
    with pytest.raises(FormatError, match="1 items; an update of a tiny sector has 2 partitions"):
        UpdateVanilla.of_bytes(good[:1], v.statement, "x")
    with pytest.raises(FormatError, match=r"vanilla_proofs\[1\] ends inside"):
        UpdateVanilla.of_bytes([good[0], good[1][:-1]], v.statement, "x")
    bad = bytearray(good[0])
    bad[32] = 3  # the number of apex leaves
    with pytest.raises(FormatError, match="apex_leafs: its number of elements is 3, not 2"):
        UpdateVanilla.of_bytes([bytes(bad), good[1]], v.statement, "x")


def failing(v, prefix=None, challenges=None, partition=0):
    c = circuit(TINY)
    witness = update_witness(
        TINY, c.template, c.library, prefix or v.prefix(partition), challenges or v.challenge_values(partition)
    )
    row = TemplateWalker(c.template).first_unsatisfied(witness)
    return "" if row < 0 else c.template.row_name(row)


def test_what_the_circuit_says():
    v = vanilla()
    prefix, challenges = v.prefix(0), v.challenge_values(0)
    assert failing(v, prefix, challenges) == ""
    one = native.root_of_unity_mont(0)

    def other(x):
        return native.fr_add(x, one)

    assert failing(v, dataclasses.replace(prefix, comm_r_old=other(prefix.comm_r_old))) == "comm_r_old"
    assert failing(v, dataclasses.replace(prefix, comm_c=other(prefix.comm_c))) == "comm_r_old"
    assert failing(v, dataclasses.replace(prefix, root_r_new=other(prefix.root_r_new))) == "comm_r_new"
    assert failing(v, dataclasses.replace(prefix, comm_d_new=other(prefix.comm_d_new))).startswith("apex tree / root")
    leaf = dataclasses.replace(challenges, leaf_r_old=other(challenges.leaf_r_old))
    assert failing(v, challenges=leaf) == "challenge 0 / tree R old / root"
    data = dataclasses.replace(challenges, leaf_d_new=other(challenges.leaf_d_new))
    assert failing(v, challenges=data) == "challenge 0 / tree R new / root"
    path = dataclasses.replace(challenges, path_d_new=[other(x) for x in challenges.path_d_new])
    assert failing(v, challenges=path) == "challenge 0 / tree D new / root"
    # two bits of h, in partition 1, whose nodes have a high bit: the sum is twice that
    two = dataclasses.replace(v.prefix(1), partition_and_h=native.fr_from_std(np.array([[0b111, 0, 0, 0]], np.uint64)))
    assert failing(v, two, partition=1) == "challenge 0 / tree R new / root"
    partition = dataclasses.replace(prefix, partition_and_h=v.prefix(1).partition_and_h)
    assert failing(v, partition) != ""
