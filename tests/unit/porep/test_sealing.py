"""Sealing and opening: labels, trees and commitments against plain Python; the circuit judges every kind of tampering."""

import hashlib
import random
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.algebra import Scalars
from cuzk.circuits.emitter import Emitter
from cuzk.circuits.field import MODULUS
from cuzk.circuits.porep.circuit import emit_partition
from cuzk.circuits.porep.shape import Shape, shape
from cuzk.circuits.porep.witness import porep_witness
from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.template.walker import TemplateWalker
from cuzk.porep.challenges import challenges
from cuzk.porep.graph import Graph
from cuzk.porep.ids import SectorIds, porep_id
from cuzk.porep.opening import challenge_values, prefix_values, public_inputs
from cuzk.porep.partition import PartitionMaker
from cuzk.porep.sealing import pad_data, seal
from cuzk.porep.synthetic import SyntheticSector
from cuzk.porep.trees import SparseTree, poseidon_std, poseidon_tree, sha256_std, sha256_tree
from tests.unit.porep.sector_files import SEED, SMALL


def number(row):
    return int.from_bytes(row.tobytes(), "little")


def test_comm_d_of_zeros_is_the_well_known_one():
    sealed = seal(SMALL, SectorIds(porep_id=porep_id(SMALL, "1.1")), pad_data(np.zeros(2032, np.uint8), SMALL))
    assert sealed.comm_d.hex() == "fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833"


def test_labels_by_the_book(sealed):
    graph = Graph(SMALL, sealed.ids.porep_id)
    for layer in (1, 2):
        for node in (0, 1, 33, 63):
            around = graph.parents(node)
            preimage = sealed.replica_id + layer.to_bytes(4, "big") + node.to_bytes(8, "big") + bytes(20)
            same = [sealed.labels[layer - 1][p].tobytes() for p in around[:6]]
            before = [sealed.labels[layer - 2][p].tobytes() for p in around[6:]]
            if node:
                both = same + before
                preimage += b"".join(same * 6 + same[:1] if layer == 1 else both * 2 + both[:9])
                assert len(preimage) == 1248
            digest = int.from_bytes(hashlib.sha256(preimage).digest(), "little") % 2**254
            assert number(sealed.labels[layer - 1][node]) == digest


def test_replica_is_data_plus_last_label(sealed):
    for node in (0, 17, 63):
        data, key = sealed.tree_d.levels[0][node], sealed.labels[-1][node]
        assert number(sealed.tree_r_last.levels[0][node]) == (number(data) + number(key)) % MODULUS


def test_padding_adds_two_zero_bits_after_every_254():
    rng = random.Random(4)
    raw = rng.randbytes(2032)
    padded = pad_data(np.frombuffer(raw, np.uint8), SMALL)
    whole = int.from_bytes(raw, "little")
    assert [number(row) for row in padded] == [whole >> 254 * i & (2**254 - 1) for i in range(64)]
    assert np.array_equal(pad_data(padded.reshape(-1).view(np.uint8), SMALL), padded)


@pytest.mark.parametrize("length", [0, 1, 2031, 2033, 2047, 2049, 4096])
def test_data_of_another_length(length):
    with pytest.raises(InputError, match=r"x\.bin: .*2,032"):
        pad_data(np.zeros(length, np.uint8), SMALL, "x.bin")


def test_padded_data_with_a_top_bit():
    data = np.zeros(2048, np.uint8)
    data[32 * 5 + 31] = 0x40
    with pytest.raises(InputError, match="at byte 160"):
        pad_data(data, SMALL)


@pytest.mark.parametrize(("arities", "make", "node_hash"), [
    ((2,) * 6, sha256_tree, sha256_std), ((8, 8), lambda x: poseidon_tree(x, (8, 8)), poseidon_std)
])  # fmt: skip
def test_sparse_tree_equals_the_full_one(arities, make, node_hash):
    rng = np.random.default_rng(2)
    default = rng.integers(0, 1 << 60, (1, 4), np.uint64)
    leaves = np.repeat(default, 64, axis=0)
    where = np.array([5, 3, 40, 63])
    leaves[where] = rng.integers(0, 1 << 60, (4, 4), np.uint64)
    full, sparse = make(leaves), SparseTree(arities, node_hash, default, where, leaves[where])
    assert np.array_equal(full.root, sparse.root)
    asked = np.array([0, 3, 4, 63])
    for (p, s), (q, t) in zip(full.siblings(asked), sparse.siblings(asked), strict=True):
        assert np.array_equal(p, q) and np.array_equal(s, t)


def opened(sealed, seed=SEED):
    return challenges(SMALL, sealed.replica_id, seed, 0)


def test_a_sealed_sector_satisfies_its_circuit(sealed, maker):
    witness = maker.witness(sealed, opened(sealed))
    maker.require_satisfied(witness)
    wanted = public_inputs(SMALL, sealed.ids, sealed.comm_d, sealed.comm_r, SEED)
    assert [number(x) for x in native.fr_to_std(witness.inputs_mont)] == [1, *wanted]
    share = np.count_nonzero(witness.expand_std().any(axis=1)) / (maker.template.n_aux + maker.template.n_inputs)
    assert 0.4 < witness.ones_share() < share < 0.6


def lane(values, k):
    """Column values as those of one instance."""
    if isinstance(values, np.ndarray):
        return number(native.fr_to_std(np.ascontiguousarray(values[k : k + 1])))
    if isinstance(values, int):
        return values >> k & 1
    if is_dataclass(values):
        return type(values)(**{f.name: lane(getattr(values, f.name), k) for f in fields(values)})
    return [lane(v, k) for v in values]


def test_columns_over_challenges_equal_one_challenge_after_the_other_in_integers():
    """Every variable of a partition: the vectorised witness, and the scalar emitter without any shortcut."""
    tiny = Shape("test", (8,), layers=2, challenges=1, partitions=1)
    maker = PartitionMaker(tiny)
    sector = SyntheticSector(tiny, SectorIds(porep_id=porep_id(SMALL, "1.1")), SEED)
    cs = Emitter(rows=False, algebra=Scalars())
    values = [lane(challenge_values(sector, sector.nodes), k) for k in range(tiny.challenges)]
    emit_partition(cs, tiny, lane(prefix_values(sector), 0), values)
    witness = maker.witness(sector, sector.nodes).expand_std()
    wanted = np.frombuffer(b"".join(v.to_bytes(32, "little") for v in cs.input_values + cs.aux_values), np.uint64)
    assert np.array_equal(witness, wanted.reshape(-1, 4))


def failing_gadget(maker, witness):
    row = TemplateWalker(maker.template).first_unsatisfied(witness)
    assert row >= 0, "the witness satisfies the circuit"
    with pytest.raises(ProofInvalid, match=f"row {row} fails, in"):
        maker.require_satisfied(witness)
    return maker.template.row_name(row)


def changed(rows, index):
    out = rows.copy()
    out[index, 0] ^= np.uint64(1)
    return out


def rebuilt(sealed, *, labels=None, replica=None):
    """A prover that keeps wrong labels or a wrong replica, with trees and comm_r that fit them."""
    labels = labels or sealed.labels
    columns = np.stack([native.fr_from_std(x) for x in labels], axis=1).reshape(-1, 2, 4)
    tree_c = poseidon_tree(poseidon_std(native.fr_to_std(columns.reshape(-1, 4)).reshape(-1, 2, 4)), SMALL.path)
    tree_r = poseidon_tree(sealed.tree_r_last.levels[0] if replica is None else replica, SMALL.path)
    comm_r = poseidon_std(np.stack([tree_c.root, tree_r.root], axis=1)).tobytes()
    return replace(sealed, labels=labels, tree_c=tree_c, tree_r_last=tree_r, comm_r=comm_r,
                   comm_c=tree_c.root.tobytes(), comm_r_last=tree_r.root.tobytes())  # fmt: skip


def test_a_rebuilt_honest_sector_is_the_same(sealed, maker):
    same = rebuilt(sealed)
    assert same.comm_r == sealed.comm_r
    maker.require_satisfied(maker.witness(same, opened(same)))


def test_tampered_label_of_a_challenged_node(sealed, maker):
    node = opened(sealed)[0]
    bad = rebuilt(sealed, labels=[changed(sealed.labels[0], node), sealed.labels[1]])
    assert failing_gadget(maker, maker.witness(bad, opened(bad))) == "challenge 0 / tree C / root"


def test_tampered_label_of_a_parent(sealed, maker):
    """Its column is committed with the wrong label, so it is the challenged node's label that does not follow."""
    parent = Graph(SMALL, sealed.ids.porep_id).parents(opened(sealed)[0])[2]
    bad = rebuilt(sealed, labels=[changed(sealed.labels[0], parent), sealed.labels[1]])
    assert failing_gadget(maker, maker.witness(bad, opened(bad))) in (
        "challenge 0 / tree R / root", "challenge 0 / tree C / root",
    )  # fmt: skip


def test_tampered_column(sealed, maker):
    parent = Graph(SMALL, sealed.ids.porep_id).parents(opened(sealed)[0])[8]
    bad = replace(sealed, labels=[sealed.labels[0], changed(sealed.labels[1], parent)])
    assert failing_gadget(maker, maker.witness(bad, opened(bad))) == "challenge 0 / expander parent 2 / root"


def test_tampered_path(sealed, maker):
    node = opened(sealed)[1]
    levels = list(sealed.tree_d.levels)
    levels[3] = changed(levels[3], node // 8 ^ 1)
    bad = replace(sealed, tree_d=replace(sealed.tree_d, levels=levels))
    name = failing_gadget(maker, maker.witness(bad, opened(bad)))
    assert name in ("challenge 0 / tree D / root", "challenge 1 / tree D / root")


def test_tampered_replica_byte(sealed, maker):
    node = opened(sealed)[0]
    bad = rebuilt(sealed, replica=changed(sealed.tree_r_last.levels[0], node))
    assert failing_gadget(maker, maker.witness(bad, opened(bad))) == "challenge 0 / tree R / root"


def test_wrong_challenge(sealed, maker):
    """Everything opened for one node, its number claimed to be another: the label is another."""
    values = challenge_values(sealed, opened(sealed))
    bits = list(values.node_bits)
    bits[0] ^= 1
    witness = porep_witness(SMALL, maker.template, maker.library, prefix_values(sealed), replace(values, node_bits=bits))
    assert failing_gadget(maker, witness) == "challenge 0 / tree R / root"


def test_wrong_comm_r(sealed, maker):
    bad = replace(sealed, comm_r=changed(np.frombuffer(sealed.comm_r, np.uint64).reshape(1, 4), 0).tobytes())
    assert failing_gadget(maker, maker.witness(bad, opened(bad))) == "comm_r"


def test_flipped_bit_inside_a_label(sealed, maker):
    witness = maker.witness(sealed, opened(sealed))
    where = maker.template.body.aux // 2
    assert not maker.template.body.field_aux[where]
    witness.body_bits[1, where // 64] ^= np.uint64(1 << where % 64)
    name = failing_gadget(maker, witness)
    assert name.startswith("challenge 1 / layer 1 / label / sha256 block / "), name


def test_synthetic_partition_of_another_shape_satisfies_its_circuit():
    small = Shape("test", (8, 4, 2), layers=2, challenges=3, partitions=1)
    maker = PartitionMaker(small)
    sector = SyntheticSector(small, SectorIds(porep_id=porep_id(SMALL, "1.1")), SEED)
    maker.require_satisfied(maker.witness(sector, sector.nodes))


@pytest.mark.slow
def test_synthetic_partition_of_32_gib_satisfies_its_circuit():
    big = shape("32GiB")
    maker = PartitionMaker(big)
    sector = SyntheticSector(big, SectorIds(porep_id=porep_id(big, "1.1")), SEED)
    witness = maker.witness(sector, sector.nodes)
    maker.require_satisfied(witness)
    assert witness.nbytes < 100 << 20
    witness.body_bits[17, 1234] ^= np.uint64(1)
    assert failing_gadget(maker, witness).startswith("challenge 17 / tree D / ")
