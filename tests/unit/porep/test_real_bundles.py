"""Real proofs: bundles with their keys, and the 2 KiB proof of another implementation."""

import pytest

from cuzk import native
from cuzk.cli.main import main
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FR_MODULUS
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.verify import Verifier
from cuzk.porep.statement import parse_statement
from tests.unit.porep.sector_files import filecoin_file, foreign_proof

HEAD = 16
VK = 32_356
STATEMENT = 192 + 32 * 327


@pytest.mark.parametrize("name", ["seal32_x10.prf", "winning32.prf", "window.prf"])
def test_real_bundles_are_accepted(name, capsys):
    assert main(["verify", str(filecoin_file(name))]) == 0
    assert "valid" in capsys.readouterr().out


def test_bundle_with_one_input_changed_names_the_proof(tmp_path, capsys):
    data = bytearray(filecoin_file("seal32_x10.prf").read_bytes())
    data[HEAD + VK + 6 * STATEMENT + 192 + 32 * 100 + 31] ^= 1  # the lowest bit of an input of proof 6
    path = tmp_path / "changed.prf"
    path.write_bytes(data)
    assert main(["verify", str(path)]) == 6
    assert "proof 6" in capsys.readouterr().err


def test_bundle_with_two_proofs_swapped_names_the_first(tmp_path, capsys):
    data = bytearray(filecoin_file("seal32_x10.prf").read_bytes())
    first, second = (HEAD + VK + k * STATEMENT for k in (3, 8))
    data[first : first + 192], data[second : second + 192] = data[second : second + 192], data[first : first + 192]
    path = tmp_path / "swapped.prf"
    path.write_bytes(data)
    assert main(["verify", str(path)]) == 6
    assert "proof 3" in capsys.readouterr().err


def test_bundle_with_an_input_of_r_or_more(tmp_path, capsys):
    data = bytearray(filecoin_file("seal32_x10.prf").read_bytes())
    at = HEAD + VK + 192 + 32 * 5
    data[at : at + 32] = FR_MODULUS.to_bytes(32, "big")
    path = tmp_path / "large.prf"
    path.write_bytes(data)
    assert main(["verify", str(path)]) == 2
    assert "large.prf" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [0, 7, 15, 1000, HEAD + VK - 1, HEAD + VK + 191, HEAD + VK + STATEMENT, -1])
def test_bundle_cut_anywhere(cut, tmp_path, capsys):
    data = filecoin_file("seal32_x10.prf").read_bytes()
    path = tmp_path / "cut.prf"
    path.write_bytes(data[:cut])
    assert main(["verify", str(path)]) == 2
    captured = capsys.readouterr()
    assert "cut.prf" in captured.err and not captured.out


def decompressed_key(raw: bytes) -> VerifyingKey:
    """The key of the 2 KiB proof: the order of a .vk, but compressed points."""
    sizes = [48, 48, 96, 96, 48, 96]
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    alpha, beta1, beta2, gamma2, delta1, delta2 = (
        point_bytes.decompress(raw[end - size : end]) for end, size in zip(ends, sizes, strict=True)
    )
    count = int.from_bytes(raw[ends[-1] : ends[-1] + 4], "big")
    at = ends[-1] + 4
    ic = tuple(point_bytes.decompress(raw[at + 48 * i : at + 48 * i + 48]) for i in range(count))
    assert at + 48 * count == len(raw)
    return VerifyingKey(alpha, beta2, gamma2, delta2, ic, beta1, delta1)


def test_independent_2_kib_proof_for_inputs_computed_from_its_statement():
    known = foreign_proof()
    key = decompressed_key(bytes.fromhex(known["verifying_key_compressed_hex"]))
    (public,) = parse_statement(known | {"api_version": "1.1"}).public_inputs()
    verifier = Verifier(key)
    proof = Proof.from_bytes(bytes.fromhex(known["proof_hex"]))
    assert key.n_public == 39 and verifier.accepts(proof, public)
    public[20] ^= 1
    assert not verifier.accepts(proof, public)


def test_the_native_library_reads_the_same_points():
    known = foreign_proof()
    raw = bytes.fromhex(known["proof_hex"])[:48]
    import numpy as np

    point = native.g1_decompress(np.frombuffer(raw, np.uint8).reshape(1, 48))
    assert native.g1_compress(point).tobytes() == raw
