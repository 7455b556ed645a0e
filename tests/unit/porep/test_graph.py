"""Graph, ids and challenges against digests, real proofs and an independent proof."""

import hashlib

import numpy as np
import pytest

from cuzk.circuits.porep.shape import shape
from cuzk.errors import InputError
from cuzk.porep.chacha import chacha8
from cuzk.porep.challenges import challenges
from cuzk.porep.graph import Graph
from cuzk.porep.ids import SectorIds, hex32, porep_id, version_of
from cuzk.porep.opening import public_inputs
from cuzk.porep.statement import parse_statement
from tests.unit.porep.sector_files import filecoin_file, foreign_proof


@pytest.mark.parametrize(("version", "digest"), [("1.0", "3da49221"), ("1.1", "84005770")])
def test_parent_cache_of_2_kib(version, digest):
    small = shape("2KiB")
    table = Graph(small, porep_id(small, version)).table()
    assert table.shape == (64, 14)
    assert hashlib.sha256(table.astype("<u4").tobytes()).hexdigest()[:8] == digest


def test_parents_one_by_one_are_those_of_the_table():
    small = shape("2KiB")
    graph = Graph(small, porep_id(small, "1.1"))
    assert [graph.parents(n) for n in range(64)] == graph.table().tolist()
    assert graph.parents(0)[:6] == graph.parents(1)[:6] == [0] * 6


def test_chacha8_differs_by_key_and_counter():
    keys = np.arange(16, dtype=np.uint32).reshape(2, 8)
    stream = chacha8(keys, 2)
    assert stream.shape == (2, 32)
    assert len({tuple(stream[i, 16 * j : 16 * j + 16]) for i in range(2) for j in range(2)}) == 4


def test_parents_of_180_real_challenges():
    """Ten partitions of a real 32 GiB proof: each challenge's parents are among its public inputs."""
    raw = filecoin_file("seal32_x10.prf").read_bytes()
    count, n_inputs = (int.from_bytes(raw[i : i + 8], "big") for i in (0, 8))
    big = shape("32GiB")
    assert (count, n_inputs) == (big.partitions, big.public_inputs)
    graph = Graph(big, porep_id(big, "1.0"))
    at = 16 + 96 * 3 + 192 * 3 + 4 + 96 * (n_inputs + 1)
    for _ in range(count):
        at += 192
        inputs = [int.from_bytes(raw[at + 32 * i : at + 32 * i + 32], "big") for i in range(n_inputs)]
        at += 32 * n_inputs
        for k in range(big.challenges):
            leaf, *parents, node, in_r, in_c = inputs[3 + 18 * k : 21 + 18 * k]
            assert leaf == node == in_r == in_c
            assert graph.parents(node) == parents
    assert at == len(raw)


def test_public_inputs_of_an_independent_proof():
    known = foreign_proof()
    s = parse_statement(known | {"api_version": "1.1"})  # its graph is 1.1, its porep id zero
    assert s.public_inputs() == [[int(v) for v in known["public_inputs_decimal"]]]
    other = public_inputs(s.shape, s.ids, s.comm_d, s.comm_r, bytes(32), 0, "1.1")
    assert other[:3] == s.public_inputs()[0][:3] and other[3:] != s.public_inputs()[0][3:]


def test_challenges_avoid_node_0_and_differ_by_partition():
    big = shape("32GiB")
    lists = [challenges(big, bytes(32), bytes(32), k) for k in range(big.partitions)]
    assert all(0 < n < big.nodes for part in lists for n in part)
    assert len({n for part in lists for n in part}) > 170


def test_versions_follow_from_the_registered_type():
    versions = ("1.0", "1.1", "synthetic", "non-interactive")
    assert [version_of(porep_id(shape("64GiB"), v)) for v in versions] == ["1.0", "1.1", "1.1", "1.1"]
    assert [porep_id(shape("32GiB"), v)[0] for v in versions] == [3, 8, 13, 18]
    with pytest.raises(InputError, match="0 … 19, not 20"):
        version_of((20).to_bytes(8, "little") + bytes(24))
    with pytest.raises(InputError, match=r"1\.2"):
        porep_id(shape("2KiB"), "1.2")


@pytest.mark.parametrize("change", [{"prover_id": bytes(31)}, {"sector_number": -1}, {"sector_number": 1 << 64}])
def test_ids_out_of_range(change):
    with pytest.raises(InputError, match=next(iter(change)).replace("_", " ")):
        SectorIds(**change)


@pytest.mark.parametrize("text", ["00" * 31, "00" * 33, "zz" * 32, ""])
def test_hexadecimal_numbers(text):
    with pytest.raises(InputError, match="seed"):
        hex32(text, "seed")


def test_unknown_sizes_are_refused_with_the_known_ones():
    assert shape("32g") is shape("32GiB") is shape("32gib")
    with pytest.raises(InputError, match="2KiB, 8MiB"):
        shape("4KiB")
