"""The verifier is strict where others are lax, and names the bad proof of a batch."""

import json
from dataclasses import replace

import pytest

from cuzk.errors import FormatError, InputError, ProofInvalid
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FQ_MODULUS, FR_MODULUS
from cuzk.groth16.formats.proof import Proof, proof_json, read_bundle, read_proofs, read_public
from cuzk.groth16.formats.vk import VerifyingKey, parse_binary, read_vk
from cuzk.groth16.load import read_any_vk
from cuzk.groth16.verify import Verifier, require_valid, verify_bundle


@pytest.fixture(scope="module")
def chain(circuits):
    circuit = circuits["chain1k"]
    key = read_vk(circuit.file("verification_key.json"))
    return Verifier(key), read_proofs(circuit.file("proof.json"))[0], read_public(circuit.file("public.json"))[0]


def off_subgroup() -> bytes:
    """A point of the curve y^2 = x^3 + 4 that is not in the subgroup of order r."""
    x = 0
    while True:
        x += 1
        square = (x**3 + 4) % FQ_MODULUS
        y = pow(square, (FQ_MODULUS + 1) // 4, FQ_MODULUS)
        if y * y % FQ_MODULUS == square:
            be = point_bytes.from_coordinates([x, y])
            with pytest.raises(point_bytes.PointError, match="subgroup"):
                point_bytes.load(be)
            return be


def test_wrong_counts_and_ranges_of_public_signals(chain):
    verifier, proof, public = chain
    for wrong in ([], public[:1], [*public, 0]):
        with pytest.raises(InputError, match="public signals"):
            verifier.accepts(proof, wrong)
    for value in (FR_MODULUS, public[0] + FR_MODULUS, -1):
        with pytest.raises(InputError, match="not below"):
            verifier.accepts(proof, [value, public[1]])


def test_json_is_read_strictly(circuits, tmp_path):
    """What snarkjs lets pass: another curve's label, x + q for x, missing public signals."""
    path = tmp_path / "proof.json"
    good = json.loads(circuits["chain1k"].file("proof.json").read_text())

    def refused(document, message):
        path.write_text(json.dumps(document))
        with pytest.raises(FormatError, match=message):
            read_proofs(path)

    refused({**good, "curve": "bn128"}, "bn128")
    refused({**good, "protocol": "plonk"}, "plonk")
    refused({**good, "pi_a": [str(int(good["pi_a"][0]) + FQ_MODULUS), *good["pi_a"][1:]]}, "modulus")
    refused({**good, "pi_a": ["0", "1", "0"]}, "infinity")
    refused({**good, "pi_a": [*good["pi_a"][:2], "2"]}, "third coordinate")
    refused({**good, "pi_a": good["pi_a"][:2]}, "three coordinates")
    refused({**good, "pi_a": ["0x12", "1", "1"]}, "decimal")
    refused({**good, "pi_a": ["9" * 5000, "1", "1"]}, "decimal")
    refused({k: v for k, v in good.items() if k != "pi_b"}, "missing")
    for text in ("{", "[" * 100000, '{"pi_a": NaN', ""):
        path.write_text(text)
        with pytest.raises(FormatError):
            read_proofs(path)


def test_public_json_is_read_strictly(tmp_path):
    path = tmp_path / "public.json"
    for text, message in (
        (f'["{FR_MODULUS}"]', "not below"),
        ('{"a": 1}', "list"),
        ("[null]", "decimal"),
        ("[true]", "decimal"),
        ("[-1]", "negative"),
        ("[1.5]", "decimal"),
    ):
        path.write_text(text)
        with pytest.raises(FormatError, match=message):
            read_public(path)
    path.write_text('["1", 2]')
    assert read_public(path) == [[1, 2]]


def test_points_off_the_curve_or_subgroup_are_not_accepted(chain):
    verifier, proof, public = chain
    assert verifier.accepts(proof, public)
    off_curve = point_bytes.from_coordinates([point_bytes.coordinates(proof.a)[0], point_bytes.coordinates(proof.a)[1] ^ 1])
    for bad in (off_curve, off_subgroup()):
        for field in ("a", "c"):
            forged = replace(proof, **{field: bad})
            assert not verifier.accepts(forged, public)
            assert not verifier.accepts_all([proof, forged], [public, public])
        with pytest.raises(InputError, match="alpha"):
            Verifier(replace(verifier.key, alpha_g1=bad))
        with pytest.raises(InputError, match=r"IC\[1\]"):
            Verifier(replace(verifier.key, ic=(verifier.key.ic[0], bad, verifier.key.ic[2])))


def test_192_bytes_round_trip_and_their_flags(chain):
    _, proof, _ = chain
    data = proof.to_bytes()
    assert Proof.from_bytes(data) == proof
    for at, mask in ((0, 0x80), (48, 0x80), (144, 0x80), (0, 0x40)):
        bad = bytearray(data)
        bad[at] ^= mask
        with pytest.raises(point_bytes.PointError):
            Proof.from_bytes(bytes(bad))
    infinity = point_bytes.compress(point_bytes.G1_INFINITY) + data[48:]
    with pytest.raises(point_bytes.PointError, match="infinity"):
        Proof.from_bytes(infinity)
    negated = bytes([data[0] ^ 0x20]) + data[1:]
    assert point_bytes.coordinates(Proof.from_bytes(negated).a)[1] == FQ_MODULUS - point_bytes.coordinates(proof.a)[1]


def test_binary_verifying_key_round_trip(circuits):
    data = circuits["chain1k"].path("params").read_bytes()
    key, size = parse_binary("params", data)
    assert key.to_bytes() == data[:size] and key.n_public == 2
    assert read_any_vk(circuits["chain1k"].path("params")) == key
    with pytest.raises(ValueError, match="G1"):
        VerifyingKey(key.alpha_g1, key.beta_g2, key.gamma_g2, key.delta_g2, key.ic).to_bytes()


def test_json_verifying_key_equals_that_of_the_zkey(circuits):
    for circuit in circuits.values():
        from_json, from_zkey = (read_any_vk(p) for p in (circuit.file("verification_key.json"), circuit.path("zkey")))
        for field in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2", "ic"):
            assert getattr(from_json, field) == getattr(from_zkey, field)


def test_batch_names_the_first_bad_proof(chain):
    verifier, proof, public = chain
    wrong = [public[0], public[1] + 1]
    require_valid(verifier, [proof] * 5, [public] * 5)
    with pytest.raises(ProofInvalid, match="proof 3 "):
        require_valid(verifier, [proof] * 5, [public, public, public, wrong, wrong])
    with pytest.raises(InputError, match="2 proofs but 1"):
        require_valid(verifier, [proof] * 2, [public])
    swapped = Proof(proof.c, proof.b, proof.a)
    with pytest.raises(ProofInvalid, match="proof 0 "):
        require_valid(verifier, [swapped, proof], [public] * 2)


def test_proof_json_of_ours_reads_back(chain, tmp_path):
    _, proof, _ = chain
    (tmp_path / "p.json").write_text(proof_json(proof))
    (tmp_path / "p.bin").write_bytes(proof.to_bytes() * 3)
    assert read_proofs(tmp_path / "p.json") == [proof]
    assert read_proofs(tmp_path / "p.bin") == [proof] * 3


@pytest.mark.parametrize(("name", "proofs", "inputs"), (("seal32_x10", 10, 327), ("winning32", 1, 132)))
def test_filecoin_bundles(filecoin, name, proofs, inputs):
    bundle = read_bundle(filecoin / f"{name}.prf")
    assert (len(bundle.proofs), bundle.key.n_public) == (proofs, inputs)
    verify_bundle(bundle, name)


@pytest.mark.slow
def test_filecoin_window_bundle(filecoin):
    bundle = read_bundle(filecoin / "window.prf")
    assert bundle.key.n_public == 25839
    verify_bundle(bundle, "window")


def test_changed_bundle_names_the_first_bad_proof(filecoin, tmp_path):
    data = bytearray((filecoin / "seal32_x10.prf").read_bytes())
    head = len(data) - 10 * (192 + 327 * 32)
    path = tmp_path / "changed.prf"

    def with_bytes(changes):
        changed = bytearray(data)
        for at in changes:
            changed[at] ^= 1
        path.write_bytes(changed)
        return read_bundle(path)

    size = 192 + 327 * 32
    with pytest.raises(ProofInvalid, match="proof 4 "):
        verify_bundle(with_bytes([head + 4 * size + 192 + 31]), "changed")
    with pytest.raises(ProofInvalid, match="proof 6 "):
        verify_bundle(with_bytes([head + 6 * size + 20]), "changed")
    # A broken point behind a false statement: the false statement comes first.
    with pytest.raises(ProofInvalid, match="proof 2 "):
        verify_bundle(with_bytes([head + 6 * size + 20, head + 2 * size + 192 + 31]), "changed")
    for cut in (len(data) - 1, head, 100, 1):
        path.write_bytes(data[:cut])
        with pytest.raises(FormatError):
            read_bundle(path)
    path.write_bytes(bytes(data) + b"\0")
    with pytest.raises(FormatError):
        read_bundle(path)


def off_curve_x(data: bytes) -> bytes:
    """48 compressed bytes of an x that no point of the curve has."""
    x = int.from_bytes(bytes([data[0] & 0x1F]) + data[1:48], "big")
    while pow((x**3 + 4) % FQ_MODULUS, (FQ_MODULUS - 1) // 2, FQ_MODULUS) == 1:
        x += 1
    return bytes([x.to_bytes(48, "big")[0] | 0x80]) + x.to_bytes(48, "big")[1:]


def test_one_kind_of_fault_has_one_exit_code_in_every_form(circuits, tmp_path, capsys):
    """A point off the curve: an invalid proof (6), as JSON, as bytes and in a bundle. A coordinate not below q: malformed (2)."""
    from cuzk.cli.main import main

    mul = circuits["mul"]
    vk, public = mul.file("verification_key.json"), mul.file("public.json")
    good = json.loads(mul.file("proof.json").read_text())
    data = read_proofs(mul.file("proof.json"))[0].to_bytes()
    # The bundle is under a key of which the proof is valid, so that only the fault decides.
    key, _ = parse_binary("params", mul.path("params").read_bytes())
    binary = replace(read_any_vk(mul.path("zkey")), place=None).to_bytes()
    publics = b"".join(v.to_bytes(32, "big") for v in read_public(public)[0])
    faults = {
        6: (off_curve_x(data), [good["pi_a"][0], str(int(good["pi_a"][1]) ^ 1), "1"]),
        2: (bytes([0x80 | 0x1F]) + b"\xff" * 47, [str(FQ_MODULUS + 5), good["pi_a"][1], "1"]),
    }
    assert key.n_public == 2
    for code, (raw, decimal) in faults.items():
        bad = raw + data[48:]
        (tmp_path / "p.json").write_text(json.dumps({**good, "pi_a": decimal}))
        (tmp_path / "p.bin").write_bytes(bad)
        (tmp_path / "p.prf").write_bytes((1).to_bytes(8, "big") + (2).to_bytes(8, "big") + binary + bad + publics)
        for arguments in ([vk, public, tmp_path / "p.json"], [vk, public, tmp_path / "p.bin"], [tmp_path / "p.prf"]):
            assert main(["verify", *map(str, arguments)]) == code, arguments
            assert main(["verify", *map(str, arguments), "--json"]) == code
            document = json.loads(capsys.readouterr().out)
            assert document["valid"] is False if code == 6 else document["error"]["exit_code"] == 2
    (tmp_path / "p.prf").write_bytes((1).to_bytes(8, "big") + (2).to_bytes(8, "big") + binary + data + publics)
    assert main(["verify", str(tmp_path / "p.prf")]) == 0
