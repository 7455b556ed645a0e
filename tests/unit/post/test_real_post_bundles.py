"""Real proofs of 32 GiB with their keys, of sectors that are not known: what follows from the circuit is held to them."""

import pytest

from cuzk.circuits.post.circuit import post_template
from cuzk.circuits.post.shape import post_shape
from cuzk.circuits.sizes import CircuitSizes
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.vk import parse_binary
from cuzk.groth16.verify import Verifier
from tests.unit.circuits.circuit_checks import filecoin_file

PROOF = 192


def numbers(raw):
    return [int.from_bytes(raw[i : i + 32], "big") for i in range(0, len(raw), 32)]


def bundle(kind):
    """The proof, its inputs, its key's bytes."""
    shape = post_shape(kind, "32GiB")
    inputs = 32 * shape.public_inputs
    vk_bytes = CircuitSizes(post_template(shape)).vk_bytes
    if kind == "winning":
        raw = filecoin_file("winning32.prf").read_bytes()
        assert len(raw) == PROOF + 8 + inputs + vk_bytes and int.from_bytes(raw[PROOF : PROOF + 8], "big") == shape.public_inputs
        return raw[:PROOF], numbers(raw[PROOF + 8 : PROOF + 8 + inputs]), raw[PROOF + 8 + inputs :]
    raw = filecoin_file("window.prf").read_bytes()
    assert [int.from_bytes(raw[i : i + 8], "big") for i in (0, 8)] == [1, shape.public_inputs]
    assert len(raw) == 16 + vk_bytes + PROOF + inputs
    at = 16 + vk_bytes
    return raw[at : at + PROOF], numbers(raw[at + PROOF :]), raw[16:at]


@pytest.mark.parametrize("kind", ["winning", "window"])
def test_lengths_order_and_ranges_are_those_of_our_circuit(kind):
    """The length of a key, the number of inputs and their order: comm_r of a sector, then its leaves."""
    shape = post_shape(kind, "32GiB")
    _, public, _ = bundle(kind)
    step = 1 + shape.challenges
    comm_rs, leaves = public[::step], [x for i, x in enumerate(public) if i % step]
    assert len(comm_rs) == shape.sectors and all(x < shape.nodes for x in leaves) and max(leaves) > shape.nodes // 2
    # a WinningPoSt is of one sector with other leaves at each place; this WindowPoSt is full, without a repeated sector
    assert len(set(comm_rs)) == (1 if kind == "winning" else shape.sectors)
    assert len(set(leaves)) > len(leaves) - 4


@pytest.mark.parametrize(
    ("kind", "changes"), [("winning", (0, 1, 131)), pytest.param("window", (0, 25_838), marks=pytest.mark.slow)]
)
def test_they_verify_and_no_input_can_be_another(kind, changes):
    proof, public, vk = bundle(kind)
    verifier, made = Verifier(parse_binary("the bundle", vk)[0]), Proof.from_bytes(proof)
    assert verifier.accepts(made, public)
    for i in changes:
        assert not verifier.accepts(made, [x ^ (i == k) for k, x in enumerate(public)])
