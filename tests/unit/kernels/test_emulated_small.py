"""Proofs of small circuits by one recorded graph, on the emulated device."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("cuzk.native")
if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.gpu.small import SmallProver
from cuzk.groth16.load import load_key, open_witness
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove

from .emulated import EmulatedDevice

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def prover(tmp_path_factory):
    key = load_key(FIXTURES / "mul" / "mul.zkey")
    made = SmallProver(EmulatedDevice(tmp_path_factory.mktemp("emulated")), key, lanes=2)
    yield made
    made.free()
    assert made.device.live_bytes() == 0


def test_the_same_blinding_gives_the_same_bytes_as_on_the_host(prover):
    witness = open_witness(FIXTURES / "mul" / "mul.wtns")(prover.key)
    for seed in (1, 2):  # a graph serves again
        made = prover.prove(witness, Blinding.from_seed(seed))
        assert made.proof == prove(prover.key, witness, made.quotient, Blinding.from_seed(seed), 1).proof


def test_several_at_a_time(prover):
    witness = open_witness(FIXTURES / "mul" / "mul.wtns")(prover.key)
    made = prover.prove_all([witness] * 3, threads=2)
    assert len({proof.proof.to_bytes() for proof in made}) == 3


def test_a_witness_that_does_not_satisfy_is_refused(prover):
    witness = open_witness(FIXTURES / "mul" / "mul.wtns")(prover.key).copy()
    witness[-1, 0] ^= 1
    with pytest.raises(ProofInvalid):
        prover.prove(witness)
    with pytest.raises(ProofInvalid):
        prover.prove_all([witness])
    with pytest.raises(InputError, match="wires"):
        prover.prove(witness[:-1])
