"""Proofs against known answers made by other programs, and what a prover must refuse."""

import numpy as np
import pytest

from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.field import fr_array
from cuzk.groth16.formats.proof import read_proofs, read_public
from cuzk.groth16.formats.vk import read_vk
from cuzk.groth16.formats.wtns import WtnsFile
from cuzk.groth16.load import load_key
from cuzk.groth16.prover import steps
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove
from cuzk.groth16.prover.state import ProofState
from cuzk.groth16.verify import Verifier

NAMES = ("mul", "chain1k", "checked16k")


@pytest.mark.parametrize("name", NAMES)
def test_zkey_proof_equals_known_answer(circuits, name):
    circuit = circuits[name]
    made = prove(load_key(circuit.path("zkey")), WtnsFile(circuit.path("wtns")).values, blinding=circuit.kat_blinding())
    assert made.proof.to_dict() == circuit.kat()["proof"]
    assert made.proof.to_bytes().hex() == circuit.kat()["proof192"]
    assert made.public == read_public(circuit.file("public.json"))[0]
    assert not made.private


@pytest.mark.parametrize("name", ("mul", "chain1k"))
def test_params_proof_equals_bellman(circuits, name):
    circuit = circuits[name]
    _, blinding, expected = circuit.bellman()
    key = load_key(circuit.path("params"), circuit.path("r1cs"))
    assert prove(key, WtnsFile(circuit.path("wtns")).values, blinding=blinding).proof.to_bytes() == expected


@pytest.mark.parametrize("name", NAMES)
def test_fresh_proof_verifies_under_foreign_key_file(circuits, name):
    circuit = circuits[name]
    key, values = load_key(circuit.path("zkey")), WtnsFile(circuit.path("wtns")).values
    one, two = prove(key, values), prove(key, values)
    assert one.private and one.proof != two.proof
    verifier = Verifier(read_vk(circuit.file("verification_key.json")))
    assert verifier.accepts(one.proof, one.public)
    assert verifier.accepts(two.proof, two.public)
    assert not verifier.accepts(one.proof, [one.public[0] + 1, *one.public[1:]])


def test_foreign_proof_is_accepted(circuits):
    for name in NAMES:
        verifier = Verifier(read_vk(circuits[name].file("verification_key.json")))
        assert verifier.accepts(
            read_proofs(circuits[name].file("proof.json"))[0], read_public(circuits[name].file("public.json"))[0]
        )


def broken(values, wire):
    values = np.array(values)
    values[wire] = fr_array([123456789])[0]
    return values


def test_unsatisfied_witness_is_refused_from_the_key_alone(circuits):
    circuit = circuits["chain1k"]
    values = broken(WtnsFile(circuit.path("wtns")).values, 500)
    with pytest.raises(ProofInvalid, match="does not satisfy"):
        prove(load_key(circuit.path("zkey")), values)


@pytest.mark.parametrize("suffix", ("zkey", "params"))
def test_first_failing_constraint_is_named(circuits, suffix):
    circuit = circuits["chain1k"]
    key = load_key(circuit.path(suffix), circuit.path("r1cs"))
    values = np.array(WtnsFile(circuit.path("wtns")).values)
    system = key.system
    wire = 500
    rows = [int(np.searchsorted(m.row_ptr, np.flatnonzero(m.col == wire)[0], side="right")) - 1
            for m in (system.a, system.b, system.c) if (m.col == wire).any()]  # fmt: skip
    with pytest.raises(ProofInvalid, match=f"constraint {min(rows)} "):
        prove(key, broken(values, wire))


def test_witness_of_another_circuit_or_wrong_values(circuits):
    key = load_key(circuits["chain1k"].path("zkey"))
    values = np.array(WtnsFile(circuits["chain1k"].path("wtns")).values)
    for wrong, message in (
        (values[:-1], "1022 values"),
        (np.concatenate([values, values[:1]]), "1024 values"),
        (broken(values, 0), "not one"),
    ):
        with pytest.raises(InputError, match=message):
            prove(key, wrong)
    too_large = values.copy()
    too_large[7] = np.uint64(2**64 - 1)
    with pytest.raises(InputError, match="value 7"):
        prove(key, too_large)


def test_r1cs_of_another_circuit_is_refused(circuits):
    with pytest.raises(InputError, match="not the circuit"):
        load_key(circuits["chain1k"].path("zkey"), circuits["mul"].path("r1cs"))
    with pytest.raises(InputError, match="not the parameters"):
        load_key(circuits["chain1k"].path("params"), circuits["mul"].path("r1cs"))
    with pytest.raises(InputError, match="--r1cs"):
        load_key(circuits["mul"].path("params"))


def test_steps_free_what_they_say_and_order_is_checked(circuits):
    circuit = circuits["mul"]
    key = load_key(circuit.path("zkey"))
    state = ProofState(key, "odd-coset", Blinding.from_seed(1))
    with pytest.raises(RuntimeError, match="order"):
        steps.matvec(state)
    steps.witness(state, WtnsFile(circuit.path("wtns")).values)
    steps.matvec(state)
    steps.upload(state)
    assert state.live_bytes() == {"aux": 4 * 32, "a": 4 * 32, "b": 4 * 32, "c": 4 * 32, "d_a": 4 * 32, "d_bc": 8 * 32}
    state.free("a", "b", "c", "d_bc")
    assert set(state.live_bytes()) == {"aux", "d_a"}
    with pytest.raises(ValueError, match="no buffer"):
        state.free("sums")


def test_seeded_blinding_is_reproducible_and_marked():
    assert Blinding.from_seed(7) == Blinding.from_seed(7) != Blinding.from_seed(8)
    assert not Blinding.from_seed(7).private
    assert Blinding.random() != Blinding.random()
