"""Statements of PoSt: registered types, challenges by the book, public inputs with padding, and what is refused."""

import hashlib
import json

import pytest

from cuzk.circuits.field import MODULUS
from cuzk.circuits.post.shape import POST_SHAPES
from cuzk.errors import InputError
from cuzk.post.challenges import challenge
from cuzk.post.registered import RegisteredPost, registered_post
from cuzk.post.statement import PostSector, PostStatement, parse_statement, read_statement, sealed_cid
from tests.unit.circuits.circuit_checks import filecoin_file
from tests.unit.post.post_files import RANDOMNESS, vanilla


def element(k):
    return (k * 12345 + 1).to_bytes(32, "little")


def statement(number, sectors, first=0):
    return PostStatement(RegisteredPost(number), RANDOMNESS, tuple(PostSector(n, element(n)) for n in sectors), first)


def by_the_book(sector, j, nodes):
    digest = hashlib.sha256(RANDOMNESS + sector.to_bytes(8, "little") + j.to_bytes(8, "little")).digest()
    return int.from_bytes(digest[:8], "little") % nodes


def test_every_number_is_a_type_of_its_own():
    types = [RegisteredPost(n) for n in range(15)]
    assert len({t.name for t in types}) == 15
    assert [t.shape.kind for t in types] == ["winning"] * 5 + ["window"] * 10
    assert [t.version for t in types] == ["1.0"] * 10 + ["1.2"] * 5
    assert [registered_post(t.shape.kind, t.shape.size, t.version) for t in types] == types
    assert registered_post("window", "32g").number == 13 and registered_post("winning", "2KiB").number == 0
    for wrong in (-1, 15):
        with pytest.raises(InputError, match=r"0 … 14"):
            RegisteredPost(wrong)
    with pytest.raises(InputError, match=r"API version '1\.2'"):
        registered_post("winning", "2KiB", "1.2")


def test_challenges_of_a_winning_post():
    s = statement(0, [11])
    assert s.leaves(0) == [by_the_book(11, j, 64) for j in range(66)]
    public = s.public_inputs(0)
    assert public[0::2] == [int.from_bytes(element(11), "little")] * 66 and public[1::2] == s.leaves(0)


@pytest.mark.parametrize("first", [0, 4])
def test_challenges_of_a_window_count_over_the_whole_proof_in_version_1_0(first):
    s = statement(5, [3, 8, 9], first)
    assert s.partitions == 2
    for i, (partition, place) in enumerate([(0, 0), (0, 1), (1, 0)]):
        start = ((first + partition) * 2 + place) * 10
        assert s.leaves(i) == [by_the_book(s.sectors[i].number, start + m, 64) for m in range(10)]


def test_challenges_of_a_window_do_not_depend_on_the_place_in_version_1_2():
    s = statement(10, [3, 8, 9])
    assert [s.leaves(i) for i in range(3)] == [[by_the_book(n, m, 64) for m in range(10)] for n in (3, 8, 9)]


def test_a_missing_sector_is_the_last_one_again():
    """With the challenges that it had at its own place."""
    for number in (5, 10):
        s = statement(number, [3, 8, 9])
        one = [int.from_bytes(element(9), "little"), *s.leaves(2)]
        assert s.public_inputs(1) == one * 2
        assert s.public_inputs(0) == [int.from_bytes(element(3), "little"), *s.leaves(0),
                                      int.from_bytes(element(8), "little"), *s.leaves(1)]  # fmt: skip


@pytest.mark.parametrize("shape", POST_SHAPES, ids=lambda s: s.name)
def test_numbers_of_public_inputs(shape):
    s = PostStatement(registered_post(shape.kind, shape.size), RANDOMNESS, (PostSector(1, element(1)),))
    public = s.public_inputs(0)
    assert len(public) == shape.public_inputs
    if shape.kind == "window" or shape.nodes > 1 << 20:
        assert all(c < shape.nodes for i, c in enumerate(public) if i % (1 + shape.challenges))


def test_the_public_side_of_a_real_post():
    s = read_statement(filecoin_file("postpub.json"))
    assert (s.registered.name, s.registered.version, s.sectors[0].number) == ("StackedDrgWindow32GiBV1", "1.0", 1)
    assert s.sectors[0].comm_r.hex() == "df691086e3c673c95a45908713d4c5938e5ced43f21b888bd9bc6e181c9f326b"
    assert s.leaves(0) == [707914199, 439148358, 967788220, 548708700, 1061661429, 6202012, 1055504637, 389535735, 1000069704,
                           600088878]  # fmt: skip


def test_documents_come_back():
    for s in (vanilla().statement, vanilla("winning", sectors=1).statement, statement(5, [3, 8, 9], 4)):
        assert parse_statement(json.loads(json.dumps(s.document()))) == s


GOOD = statement(10, [3, 8]).document()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"registered_post": 15}, "0 … 14"), ({"registered_post": True}, "registered_post"), ({"kind": "winning"}, "kind"),
        ({"randomness_hex": "00"}, "randomness_hex"), ({"randomness_hex": None}, "randomness_hex: missing"),
        ({"randomness_hex": MODULUS.to_bytes(32, "little").hex()}, "randomness: not below"), ({"sectors": []}, "there are none"),
        ({"sectors": [GOOD["sectors"][1], GOOD["sectors"][0]]}, r"sectors\[1\].sector_number: 3 does not rise"),
        ({"sectors": [GOOD["sectors"][0]] * 2}, r"sectors\[1\].sector_number: 3 does not rise"),
        ({"sectors": [{"sector_number": -1}]}, r"sectors\[0\].sector_number"), ({"sectors": 5}, "sectors"),
        ({"sectors": [{"sector_number": 1, "comm_r_hex": 5}]}, r"sectors\[0\].comm_r_hex"), ({"partition": -1}, "partition"),
        ({"sectors": [{"sector_number": 1, "comm_r_hex": "ff" * 32}]}, r"sectors\[0\].comm_r: not below"),
    ],
)  # fmt: skip
def test_wrong_statements_name_the_key(change, word):
    with pytest.raises(InputError, match=word):
        parse_statement(GOOD | change)


def test_a_winning_post_is_of_one_sector():
    with pytest.raises(InputError, match="one sector"):
        statement(0, [1, 2])


@pytest.mark.parametrize(
    "text", ["", "zdj7", "b!", "bagboea4b5abcbx3jccdohrttzfneleehcpkmle4oltwuh4q3rcf5tpdodaoj6m", "bagaaiera"]
)
def test_other_cids_are_refused(text):
    with pytest.raises(InputError, match="sectors"):
        sealed_cid(text, "sectors[0]")


def test_challenges_are_below_the_nodes_of_any_tree():
    assert all(challenge(RANDOMNESS, 5, j, 96) < 96 for j in range(100))
