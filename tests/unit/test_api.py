"""The interface for programs: what docs/api.md shows, on small circuits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuzk import api
from cuzk.errors import FormatError, InputError, ProofInvalid
from cuzk.groth16.formats.vk import read_vk

ROOT = Path(__file__).parents[2]
CHAIN = ROOT / "tests" / "fixtures" / "chain1k"


@pytest.fixture(scope="module")
def made():
    key = api.load_key(CHAIN / "chain1k.zkey")
    return key, api.prove(key, CHAIN / "chain1k.wtns", threads=1)


def test_a_proof_of_a_witness(made) -> None:
    key, proved = made
    proof = proved.proof.to_bytes()
    for each in (key, key.verifying_key, CHAIN / "chain1k.zkey", str(CHAIN / "verification_key.json")):
        api.verify(each, proof, [proved.public], allow_unsafe_key=True)
    api.verify(read_vk(CHAIN / "verification_key.json"), proof * 2, [proved.public] * 2, allow_unsafe_key=True)


def test_what_does_not_hold_is_named(made) -> None:
    key, proved = made
    proof = proved.proof.to_bytes()
    wrong = [proved.public[0] ^ 1, *proved.public[1:]]
    with pytest.raises(ProofInvalid, match="proof 1"):
        api.verify(key, proof * 2, [proved.public, wrong], allow_unsafe_key=True)
    with pytest.raises(ProofInvalid, match="192 bytes"):
        api.verify(key, proof[:-1], [proved.public], allow_unsafe_key=True)
    with pytest.raises(InputError, match="1 proofs but 2"):
        api.verify(key, proof, [proved.public] * 2, allow_unsafe_key=True)


def test_a_key_under_which_proofs_can_be_forged_is_refused(made) -> None:
    key, proved = made
    reasons = key.weaknesses
    if not reasons:
        pytest.skip("the fixture's key has no weakness")
    with pytest.raises(ProofInvalid):
        api.verify(key, proved.proof.to_bytes(), [proved.public])


def test_wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none"):
        api.load_key(tmp_path / "none.zkey")
    with pytest.raises(InputError, match="3KiB"):
        api.load_key(CHAIN / "chain1k.params", sector="3KiB")
    with pytest.raises(InputError, match="2KiB PoRep circuit"):
        api.load_key(CHAIN / "chain1k.params", sector="2KiB")
    with pytest.raises(FormatError, match="C1 output"):
        api.read_c1(b"{}")


def test_a_prediction_is_what_the_verb_prints() -> None:
    document = api.predict(ROOT / "scenarios" / "demo-proofs.yaml", seed=3)
    assert document["verdict"] == "fits" and document["throughput"]["s_per_proof"] > 0


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, cuzk.api; print(*sorted({'numpy', 'cupy', 'simpy', 'pydantic', 'py_arkworks_bls12381'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_page_and_the_interface_name_the_same_functions() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    for name in ("load_key", "read_c1", "prove", "verify", "predict"):
        assert f"`{name}(" in page and callable(getattr(api, name))
