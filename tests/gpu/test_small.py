"""Proofs of small circuits by one recorded graph, on a GPU: the same bytes as on the host, again and again, several at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.errors import ProofInvalid
from cuzk.groth16.gpu.small import SmallProver
from cuzk.groth16.load import load_key, open_witness
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove

pytestmark = pytest.mark.gpu
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize("name", ["mul", "chain1k"])
def test_the_same_bytes_as_on_the_host(device, name):
    key = load_key(FIXTURES / name / f"{name}.zkey")
    witness = open_witness(FIXTURES / name / f"{name}.wtns")(key)
    prover = SmallProver(device, key, lanes=3)
    for seed in range(3):
        made = prover.prove(witness, Blinding.from_seed(seed))
        assert made.proof == prove(key, witness, made.quotient, Blinding.from_seed(seed)).proof
    assert len({each.proof.to_bytes() for each in prover.prove_all([witness] * 20)}) == 20
    wrong = witness.copy()
    wrong[-1, 0] ^= 1
    with pytest.raises(ProofInvalid):
        prover.prove_all([witness, wrong])
    prover.prove(witness)
    prover.free()
