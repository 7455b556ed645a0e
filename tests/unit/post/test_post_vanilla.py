"""Vanilla proofs of PoSt: a real one of 32 GiB, our own, and every kind of fault, named by its place."""

import base64
import dataclasses
import json
import random

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.algebra import Scalars
from cuzk.circuits.emitter import Emitter
from cuzk.circuits.post.circuit import SectorValues, emit_partition, post_witness
from cuzk.circuits.post.shape import PostShape
from cuzk.circuits.witness import require_satisfied
from cuzk.errors import FormatError, ProofInvalid
from cuzk.groth16.template.walker import TemplateWalker
from cuzk.post.job import PostCircuit, PostJob
from cuzk.post.statement import read_statement
from cuzk.post.vanilla import PostVanilla, post_layout
from cuzk.vanilla.items import Items, item_bytes, read_raw_items, write_raw_items
from tests.unit.circuits.circuit_checks import filecoin_file, first_failing_row
from tests.unit.porep.test_sealing import lane
from tests.unit.post.post_files import KINDS, circuit, vanilla


@pytest.fixture(scope="module")
def real():
    path = filecoin_file("post.vproof")
    return PostVanilla.of_bytes(read_raw_items(path), read_statement(filecoin_file("postpub.json")), str(path))


@pytest.fixture(scope="module")
def sector_circuit(real):
    return PostCircuit(dataclasses.replace(real.statement.shape, sectors=1))


def test_a_real_post_of_32_gib(real, sector_circuit):
    """Read to the last byte, all checks, every row of a sector's circuit, the inputs that its statement gives."""
    real.check()
    assert item_bytes(real.items) == [filecoin_file("post.vproof").read_bytes()]
    witness = post_witness(sector_circuit.template, sector_circuit.library, real.partition(0, 1))
    require_satisfied(sector_circuit.template, witness, "it")
    inputs = [int.from_bytes(x.tobytes(), "little") for x in native.fr_to_std(witness.inputs_mont)]
    assert inputs == [1, *real.statement.public_inputs(0)[:11]]


def changed(v, place, item=0):
    """With the lowest bit of one hash flipped."""
    hashes = v.items.hashes.copy()
    hashes[item, place, 0] ^= 1
    return PostVanilla(v.statement, Items(v.items.source, v.items.layout, hashes, v.items.numbers))


@pytest.mark.parametrize("challenge", [0, 9])
def test_one_changed_sibling_or_leaf_of_the_real_post_is_found_and_fails_one_row(real, sector_circuit, challenge):
    at = real.layout.paths[challenge]
    for place in (at.leaf, at.levels[4][0] + 3):
        bad = changed(real, place)
        with pytest.raises(FormatError, match=rf"inclusion_proofs\[{challenge}\]\.data\.Sub: leaf and siblings do not"):
            bad.check()
        witness = post_witness(sector_circuit.template, sector_circuit.library, bad.partition(0, 1))
        with pytest.raises(ProofInvalid, match=rf"in sector 0 / challenge {challenge} / root"):
            require_satisfied(sector_circuit.template, witness, "it")


@pytest.mark.parametrize(("kind", "version", "sectors"), KINDS)
def test_our_own_come_back_and_satisfy_the_circuit(kind, version, sectors):
    v = vanilla(kind, version, sectors)
    v.check()
    again = PostVanilla.of_bytes(item_bytes(v.items), v.statement, "again")
    again.check()
    job = PostJob(again, circuit(kind))
    assert job.partitions == -(-sectors // 2)
    for k in range(job.partitions):
        witness = job.witness(k)
        require_satisfied(job.template, witness, "it")
        inputs = [int.from_bytes(x.tobytes(), "little") for x in native.fr_to_std(witness.inputs_mont)]
        assert inputs == [1, *job.public_inputs(k)]


@pytest.mark.parametrize(
    ("kind", "size", "bytes_"),
    [
        ("window", "2KiB", 5_680), ("window", "8MiB", 15_280), ("window", "512MiB", 20_080), ("window", "32GiB", 24_960),
        ("window", "64GiB", 25_520), ("winning", "2KiB", 36_816), ("winning", "8MiB", 100_176), ("winning", "512MiB", 131_856),
        ("winning", "32GiB", 164_064), ("winning", "64GiB", 167_760),
    ],
)  # fmt: skip
def test_every_size(kind, size, bytes_):
    v = vanilla(kind, None, 1, size)
    v.check()
    assert [len(one) for one in item_bytes(v.items)] == [bytes_]


def test_columns_equal_one_sector_after_the_other_in_integers():
    v = vanilla()
    shape: PostShape = v.statement.shape
    values: SectorValues = v.partition(0)
    cs = Emitter(algebra=Scalars(), inline=True)
    emit_partition(cs, shape, [lane(values, k) for k in range(shape.sectors)])
    assert first_failing_row(cs) == -1
    job = PostJob(v, circuit("window"))
    witness = job.witness(0).expand_std()
    wanted = np.frombuffer(b"".join(x.to_bytes(32, "little") for x in cs.input_values + cs.aux_values), np.uint64)
    assert np.array_equal(witness, wanted.reshape(-1, 4))


def with_number(v, path, value, item=0):
    numbers = v.items.numbers.copy()
    numbers[item, v.layout.places.number[path]] = value
    return PostVanilla(v.statement, Items(v.items.source, v.items.layout, v.items.hashes, numbers))


def test_faults_are_named_by_their_place():
    v = vanilla()
    head, where = "sector_proofs[0].inclusion_proofs[4].data.Single", v.layout.places
    leaf = v.layout.paths[4].leaf
    cases = [
        (with_number(v, "sector_id", 99, 1), r"vanilla_proofs\[1\]\.sector_id: 99"),
        (with_number(v, f"{head}.path.path[1].index", 8), r"inclusion_proofs\[4\]\.data\.Single\.path\.path\[1\]\.index: 8"),
        (changed(v, where.hash["comm_r"], 1), r"vanilla_proofs\[1\]\.comm_r: is not the statement's"),
        (changed(v, where.hash["sector_proofs[0].comm_c"], 1), r"vanilla_proofs\[1\]\.comm_r: is not the hash"),
        (changed(v, where.hash["sector_proofs[0].comm_r_last"]), r"vanilla_proofs\[0\]\.comm_r: is not the hash"),
        (changed(v, where.hash[f"{head}.root"], 1), r"vanilla_proofs\[1\]\.\S*proofs\[4\]\.data\.Single\.root: another"),
        (changed(v, leaf, 1), r"vanilla_proofs\[1\]\.\S*inclusion_proofs\[4\]\.data\.Single: leaf and siblings"),
    ]  # fmt: skip
    index = int(v.items.numbers[0, where.number[f"{head}.path.path[0].index"]])
    moved = with_number(v, f"{head}.path.path[0].index", (index + 1) % 8)
    cases.append((moved, r"the path of node \d+, but the challenge, by randomness and sector number"))
    large = v.items.hashes.copy()
    large[1, leaf] = 0xFF
    big = PostVanilla(v.statement, Items("x", v.items.layout, large, v.items.numbers))
    cases.append((big, r"vanilla_proofs\[1\]\.\S*inclusion_proofs\[4\]\.data\.Single\.leaf: not below"))
    for bad, message in cases:
        with pytest.raises(FormatError, match=message):
            bad.check()


def test_every_hash_counts():
    """No byte of an item can be changed without a fault."""
    v = vanilla("window", "1.2", 1)
    for place in random.Random(3).sample(range(v.items.hashes.shape[1]), 40):
        with pytest.raises(FormatError):
            changed(v, place).check()


def test_sectors_in_another_order_or_another_randomness():
    v = vanilla()
    with pytest.raises(FormatError, match=r"vanilla_proofs\[0\]\.sector_id: 8; sector 0 of the statement is 7"):
        PostVanilla.of_bytes(item_bytes(v.items)[::-1], v.statement, "x").check()
    other = dataclasses.replace(v.statement, randomness=bytes(32))
    with pytest.raises(FormatError, match="the challenge, by randomness and sector number"):
        PostVanilla.of_bytes(item_bytes(v.items), other, "x").check()


def test_other_numbers_of_items():
    v = vanilla()
    with pytest.raises(FormatError, match="1 items; the statement is of 2 sectors"):
        PostVanilla.of_bytes(item_bytes(v.items)[:1], v.statement, "x")


def test_items_cut_anywhere_and_counts_that_differ():
    v = vanilla()
    good = item_bytes(v.items)
    rng = random.Random(5)
    for cut in [0, 7, 40, len(good[1]) - 1, *(rng.randrange(len(good[1])) for _ in range(20))]:
        with pytest.raises(FormatError, match=r"vanilla_proofs\[1\] ends inside \S+: .*5,680") as fault:
            PostVanilla.of_bytes([good[0], good[1][:cut]], v.statement, "x")
        assert fault.value.offset == cut
    with pytest.raises(FormatError, match=r"vanilla_proofs\[1\]: 1 bytes behind the end"):
        PostVanilla.of_bytes([good[0], good[1] + b"\0"], v.statement, "x")
    fixed = [atom for atom in post_layout(v.statement.shape).atoms if atom.kind == "fixed"]
    for atom in rng.sample(fixed, 10):
        bad = bytearray(good[1])
        bad[atom.offset] ^= 1
        with pytest.raises(FormatError, match=r"vanilla_proofs\[1\]\.\S+: .* is \d+, not \d+") as fault:
            PostVanilla.of_bytes([good[0], bytes(bad)], v.statement, "x")
        assert fault.value.offset == atom.offset
    short = bytearray(good[1][:-32])
    short[48] = 9  # the number of Merkle proofs
    with pytest.raises(FormatError, match=r"inclusion_proofs: its number of elements is 9, not 10"):
        PostVanilla.of_bytes([good[0], bytes(short)], v.statement, "x")


def test_files_of_items(tmp_path):
    path, items = tmp_path / "v.json", [b"abc", bytes(range(256))]
    write_raw_items(path, items)
    assert read_raw_items(path) == items
    path.write_bytes(b"\1\0\0")
    assert read_raw_items(path) == [b"\1\0\0"]
    for text, word in (
        ("[1]", r"\[0\]: must be a string"), ('["AAAA", "A=A"]', r"\[1\]: not base64"), ("[", "not JSON"), ("[]", "no items"),
        (json.dumps([base64.b64encode(b"x").decode() + "!"]), r"\[0\]: not base64"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(FormatError, match=word):
            read_raw_items(path)


def test_a_changed_value_fails_its_row():
    job = PostJob(vanilla(), circuit("window"))
    witness = job.witness(0).copy()
    witness.body_fields_mont[1, 1000] = witness.inputs_mont[0]
    row = TemplateWalker(job.template).first_unsatisfied(witness)
    assert job.template.row_name(row).startswith("sector 1 / challenge ")
