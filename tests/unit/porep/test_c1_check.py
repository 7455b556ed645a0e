"""What a C1 output must satisfy: every hash of one is changed, and each change is named by its place."""

import hashlib
import re

import numpy as np
import pytest

from cuzk.circuits.porep.shape import shape
from cuzk.errors import FormatError
from cuzk.porep.c1 import Owner, read
from cuzk.porep.c1.opening import c1_witness
from cuzk.porep.c1.write import c1_bytes, sector_c1
from cuzk.porep.chacha import chacha20_at
from cuzk.porep.ids import SectorIds, porep_id
from cuzk.porep.opening import sector_challenges
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.registered import ALL, VARIANTS
from cuzk.porep.sealing import pad_data, seal
from cuzk.porep.synthetic import SyntheticSector
from tests.unit.porep.c1_files import MINER, PROVER_ID, SECTOR, TAG, dumped, inner, small_c1
from tests.unit.porep.sector_files import SEED, SMALL, sector_data


@pytest.mark.parametrize("version", [v.option for v in VARIANTS])
def test_a_sealed_sector_is_correct_in_every_version(version):
    found = read(c1_bytes(small_c1(version)))
    found.check(Owner.of_miner(MINER, SECTOR))
    assert found.registered.porep_id == porep_id(SMALL, version)
    assert found.partitions == (13 if version == "non-interactive" else 1)


def test_variants_draw_other_challenges_and_the_statement_the_same():
    drawn = {}
    for variant in VARIANTS:
        c1 = small_c1(variant.option)
        drawn[variant.option] = c1.challenges(0)
        assert c1.statement().public_inputs() == [c1.public_inputs(k) for k in range(c1.partitions)]
        assert all(0 < node < SMALL.nodes for k in range(c1.partitions) for node in c1.challenges(k))
    assert len({tuple(nodes) for nodes in drawn.values()}) == 4


def chacha20_block(key, counter, nonce):
    """RFC 8439, 2.3, with plain integers."""
    words = [int.from_bytes(raw[i : i + 4], "little") for raw in (b"expand 32-byte k", key) for i in range(0, len(raw), 4)]
    words += [counter, *(int.from_bytes(nonce[i : i + 4], "little") for i in (0, 4, 8))]
    v, mask = list(words), (1 << 32) - 1

    def quarter(a, b, c, d):
        for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            v[x] = (v[x] + v[y]) & mask
            v[z] ^= v[x]
            v[z] = (v[z] << n | v[z] >> (32 - n)) & mask

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(((x + y) & mask).to_bytes(4, "little") for x, y in zip(v, words, strict=True))


def test_chacha20_of_the_rfc():
    """RFC 8439, 2.3.2."""
    key, nonce = bytes(range(32)), bytes.fromhex("000000090000004a00000000")
    wanted = "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
    wanted += "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    assert chacha20_block(key, 1, nonce).hex() == wanted
    assert chacha20_at(key, nonce, np.array([16]), 16).tobytes().hex() == wanted


def test_synthetic_challenges_by_the_definition():
    """From the whole key stream, number by number."""
    c1 = small_c1("synthetic")

    def stream(tag, message, blocks):
        key = hashlib.blake2b(message, digest_size=32, key=f"filecoin.io|PoRep|1|Synthetic|1|{tag}".encode()).digest()
        return b"".join(chacha20_block(key, k, b"synth-porep\0") for k in range(blocks))

    members = stream("Generation", c1.replica_id + c1.comm_r, SMALL.nodes // 2)
    chosen = stream("Selection", c1.replica_id + SEED, 1)
    index = [int.from_bytes(chosen[4 * i : 4 * i + 4], "little") % SMALL.nodes for i in range(2)]
    wanted = [int.from_bytes(members[32 * j : 32 * j + 32], "little") % (SMALL.nodes - 1) + 1 for j in index]
    assert c1.challenges(0) == wanted


def test_names_and_numbers_of_the_registered_types():
    assert [r.number for r in ALL] == list(range(20))
    assert ALL[8].name == "StackedDrg32GiBV1_1" and ALL[13].name == "StackedDrg32GiBV1_1_Feat_SyntheticPoRep"
    assert ALL[18].partitions == 126 and ALL[15].partitions == 13


def test_prover_id_of_a_miner():
    assert Owner.of_miner(MINER, 1).prover_id == PROVER_ID
    assert Owner.of_miner(127, 1).prover_id[:2] == b"\x7f\0"


def test_every_changed_hash_is_named():
    """One bit of each of the 405 hashes of a challenge, one after the other; the place named holds the changed one."""
    c1 = small_c1()
    places = [atom.path for atom in c1.layout.atoms if atom.kind == "hash"]
    for k, place in enumerate(places):
        c1.hashes[0, 1, k, 3] ^= 1
        try:
            with pytest.raises(FormatError) as caught:
                c1.check()
        finally:
            c1.hashes[0, 1, k, 3] ^= 1
        named = re.search(rf"vanilla_proofs\.{TAG}\[0\]\[1\]\.([^:]+):", str(caught.value))
        assert named and place.startswith(named.group(1)), (place, str(caught.value))
    c1.check()


def test_every_changed_number_is_named():
    c1 = small_c1()
    places = [atom.path for atom in c1.layout.atoms if atom.kind == "number"]
    for k, place in enumerate(places):
        c1.numbers[0, 1, k] ^= np.uint64(1)
        try:
            with pytest.raises(FormatError) as caught:
                c1.check(full=False)
        finally:
            c1.numbers[0, 1, k] ^= np.uint64(1)
        named = re.search(rf"vanilla_proofs\.{TAG}\[0\]\[1\]\.([^:]+):", str(caught.value))
        assert named and place.startswith(named.group(1)), (place, str(caught.value))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("comm_r", lambda v: [v[0] ^ 1, *v[1:]], ("comm_r", "roots")),
        ("comm_d", lambda v: [v[0] ^ 1, *v[1:]], ("comm_d", "tree D")),
        ("comm_d", lambda v: [0] * 32, ("comm_d", "zero")), ("comm_r", lambda v: [0] * 32, ("comm_r", "zero")),
        ("seed", lambda v: [0] * 32, ("seed", "zero")), ("comm_r", lambda v: [255] * 32, ("comm_r", "modulus")),
        ("seed", lambda v: [v[0] ^ 1, *v[1:]], ("[0][0].labeling_proofs[0].node", "seed")),
        ("replica_id", lambda v: [v[0] ^ 1, *v[1:]], ("[0][0].labeling_proofs[0].node", "replica_id")),
        ("registered_proof", lambda v: "StackedDrg2KiBV1", ("drg_parents[0].column.index", "graph")),
        ("registered_proof", lambda v: "StackedDrg2KiBV1_1_Feat_SyntheticPoRep", ("node",)),
        ("registered_proof", lambda v: "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", ("1 partitions", "13")),
    ],
)  # fmt: skip
def test_commitments_and_ids(key, value, words):
    document = inner()
    document[key] = value(document[key])
    with pytest.raises(FormatError) as caught:
        read(dumped(document)).check()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_wrong_owner():
    for owner in (Owner.of_miner(MINER + 1, SECTOR), Owner.of_miner(MINER, SECTOR + 1)):
        with pytest.raises(FormatError, match="replica_id: is not that of sector"):
            small_c1().check(owner)


def test_partitions_are_counted():
    document = inner()
    document["vanilla_proofs"][TAG] *= 2
    with pytest.raises(FormatError, match="2 partitions; StackedDrg2KiBV1_1 has 1"):
        read(dumped(document)).check()


def test_the_witness_of_a_c1_output_is_that_of_its_sector(maker):
    """Both ways to a partition's values, bit for bit."""
    ids = SectorIds(PROVER_ID, SECTOR, bytes([9] * 32), porep_id(SMALL, "1.1"))
    sealed = seal(SMALL, ids, pad_data(sector_data(), SMALL))
    direct = maker.witness(sealed, sector_challenges(sealed, SEED, 0))
    found = c1_witness(maker, read(c1_bytes(small_c1())), 0)
    for name in ("inputs_mont", "prefix_bits", "prefix_fields_mont", "body_bits", "body_fields_mont"):
        assert np.array_equal(getattr(direct, name), getattr(found, name))


@pytest.mark.parametrize("size", ["8MiB", "512MiB", "32GiB", "64GiB"])
def test_every_size_without_sealing(size):
    """Forms of the Merkle proofs by size; written, read, checked in full; one partition of the large ones' ten."""
    wanted = shape(size)
    sector = SyntheticSector(wanted, SectorIds(PROVER_ID, 3, bytes([7] * 32), porep_id(wanted, "1.0")), SEED, None)
    c1 = sector_c1(sector, SEED)
    for form in ("inner", "bincode"):
        found = read(c1_bytes(c1, form), registered=c1.registered.name)
        assert np.array_equal(found.hashes, c1.hashes) and np.array_equal(found.numbers, c1.numbers)
    found.check(Owner(PROVER_ID, 3), full=size != "64GiB")
    last = c1.partitions - 1
    place = c1.layout.columns[3].proof.levels[-1][0]
    c1.hashes[last, 1, place, 0] ^= 1
    with pytest.raises(FormatError, match=rf"\[{last}\]\[1\]\.replica_column_proofs\.drg_parents\[2\]"):
        c1.check()


@pytest.mark.slow
def test_the_witness_of_a_large_partition_satisfies_its_circuit():
    wanted = shape("32GiB")
    sector = SyntheticSector(wanted, SectorIds(PROVER_ID, 3, bytes([7] * 32), porep_id(wanted, "1.1")), SEED, None)
    maker = PartitionMaker(wanted)
    maker.require_satisfied(c1_witness(maker, sector_c1(sector, SEED), 7))
