"""Files of other provers: read where they are Groth16 on BLS12-381, else refused by their own name."""

import json
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.errors import FormatError, ProofInvalid
from cuzk.groth16.circom_wasm import Calculator, fnv1a, read_input
from cuzk.groth16.formats.layouts import NAMES
from cuzk.groth16.formats.proof import Proof, read_proofs
from cuzk.groth16.formats.solidity import eip2537, keccak256, sponge, verifier_contract
from cuzk.groth16.formats.vk import read_vk
from cuzk.groth16.inspect import inspect
from cuzk.groth16.load import load_key, open_witness, read_any_vk, read_r1cs_system
from cuzk.groth16.prover.run import prove
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.verify import Verifier

FOREIGN = Path(__file__).parents[2] / "fixtures" / "foreign"
PUBLIC = [33, 3]


def foreign(name):
    return FOREIGN / name


def run(capsys, *arguments):
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("vk", ("gnark_vk.bin", "ark_vk_u.bin", "ark_vk_c.bin"))
@pytest.mark.parametrize("proof", ("gnark_proof.bin", "ark_proof_u.bin", "proof.hex"))
def test_their_proofs_verify_under_their_keys(vk, proof, tmp_path, capsys):
    for values, code in ((PUBLIC, 0), ([33, 4], 6)):
        (tmp_path / "public.json").write_text(json.dumps([str(v) for v in values]))
        assert run(capsys, "verify", foreign(vk), tmp_path / "public.json", foreign(proof))[0] == code
    assert inspect(foreign(vk))["kind"] == "vk" and inspect(foreign(proof))["kind"] == "proof"


def test_ours_are_theirs_byte_for_byte():
    """The keys and proofs in the fixtures are one key and one proof, written by three programs."""
    key, proof = read_vk(foreign("gnark_vk.bin")), read_proofs(foreign("proof.hex"))[0]
    assert key.to_bytes("gnark") == foreign("gnark_vk.bin").read_bytes()
    assert key.to_bytes("arkworks") == foreign("ark_vk_c.bin").read_bytes()
    assert key.to_bytes("arkworks-uncompressed") == foreign("ark_vk_u.bin").read_bytes()
    assert proof.to_bytes("gnark") == foreign("gnark_proof.bin").read_bytes()
    assert proof.to_bytes("arkworks-uncompressed") == foreign("ark_proof_u.bin").read_bytes()
    assert proof.to_bytes("arkworks") == proof.to_bytes() == bytes.fromhex(foreign("proof.hex").read_text())


@pytest.mark.parametrize("layout", NAMES)
def test_every_layout_round_trips_and_every_cut_is_refused(circuits, tmp_path, capsys, layout):
    chain = circuits["chain1k"]
    vk, proof = tmp_path / "k.vk", tmp_path / "p.bin"
    assert run(capsys, "key", "convert", chain.path("zkey"), "-o", vk, "--layout", layout)[0] == 0
    assert run(capsys, "proof", "convert", chain.file("proof.json"), "-o", proof, "--layout", layout)[0] == 0
    assert run(capsys, "verify", vk, chain.file("public.json"), proof)[0] == 0
    again = tmp_path / "proof.json"
    assert run(capsys, "proof", "convert", proof, "-o", again)[0] == 0
    assert json.loads(again.read_text()) == {
        **json.loads(chain.file("proof.json").read_text()), "protocol": "groth16", "curve": "bls12381",
    }  # fmt: skip
    for path, read in ((vk, read_vk), (proof, read_proofs)):
        data = path.read_bytes()
        for cut in range(0, len(data), 7):
            path.write_bytes(data[:cut])
            with pytest.raises((FormatError, ProofInvalid)):
                read(path)
        path.write_bytes(data + b"\0")
        with pytest.raises((FormatError, ProofInvalid)):
            read(path)


@pytest.mark.parametrize("layout", ("arkworks", "arkworks-uncompressed"))
def test_an_arkworks_proving_key_proves(circuits, tmp_path, capsys, layout):
    chain, ckey, pk = circuits["chain1k"], tmp_path / "k.ckey", tmp_path / "k.pk"
    setup_development(read_r1cs_system(chain.path("r1cs")), ckey)
    assert run(capsys, "key", "convert", ckey, "-o", pk, "--layout", layout)[0] == 0
    found = inspect(pk)
    assert found["kind"] == "arkworks key" and found["layout"] == layout and found["circuit"]["domain"] == 1024
    code, _, err = run(capsys, "prove", pk, chain.path("wtns"), "-o", tmp_path / "o")
    assert code == 2 and "--r1cs" in err
    key = load_key(pk, chain.path("r1cs"))
    made = prove(key, open_witness(chain.path("wtns"))(key))
    assert Verifier(read_any_vk(ckey)).accepts(made.proof, made.public)
    assert Verifier(read_any_vk(pk)).accepts(made.proof, made.public)
    assert run(capsys, "inspect", pk, "--deep")[0] == 0
    assert run(capsys, "key", "convert", pk, "--r1cs", chain.path("r1cs"), "-o", tmp_path / "back.params")[0] == 0
    assert load_key(tmp_path / "back.params", chain.path("r1cs")).n_wires == key.n_wires
    data = bytearray(pk.read_bytes())
    data[-50] ^= 1
    pk.write_bytes(data)
    code, _, err = run(capsys, "inspect", pk, "--deep")
    assert code == 2 and "section l at byte" in err


@pytest.mark.parametrize(
    ("verb", "name", "words"),
    (
        ("inspect", "mul.zkey.json", ".zkey exported as JSON"),
        ("prove", "mul.zkey.json", ".zkey exported as JSON"),
        ("verify", "mul.zkey.json", ".zkey exported as JSON"),
        ("inspect", "mul.wasm", "WebAssembly"),
        ("prove", "mul.wasm", "WebAssembly"),
        ("prove", "gnark_vk.bin", "a verifying key (gnark)"),
        ("prove", "ark_vk_u.bin", "a verifying key (arkworks-uncompressed)"),
        ("inspect", "input.json", "a circuit's input"),
        ("verify", "bnvk.json", "bn128"),
    ),
)
def test_what_is_something_else_is_refused_by_its_name(circuits, tmp_path, capsys, verb, name, words):
    mul = circuits["mul"]
    rest = {"prove": [mul.path("wtns"), "-o", tmp_path / "o"], "verify": [mul.file("public.json"), mul.file("proof.json")]}
    code, _, err = run(capsys, verb, foreign(name), *rest.get(verb, []))
    assert code == 2 and words in err, err


def test_commitments_of_gnark_are_named(tmp_path):
    data = bytearray(foreign("gnark_proof.bin").read_bytes())
    data[195] = 1
    path = tmp_path / "p.bin"
    path.write_bytes(data + bytes(48))
    with pytest.raises(FormatError, match="1 commitments"):
        read_proofs(path)


def test_our_verifying_key_has_the_pairing_that_others_require(circuits):
    for circuit in circuits.values():
        theirs = json.loads(circuit.file("verification_key.json").read_text())
        ours = json.loads(read_any_vk(circuit.path("zkey")).to_json())
        assert ours["vk_alphabeta_12"] == theirs["vk_alphabeta_12"]
        assert {k: ours[k] for k in theirs} == theirs


def test_a_witness_from_wasm_and_input_without_node(tmp_path, capsys):
    wasm, given = foreign("mul.wasm"), foreign("input.json")
    assert run(capsys, "witness", wasm, given, "-o", tmp_path / "w.wtns")[0] == 0
    assert (tmp_path / "w.wtns").read_bytes() == foreign("mul.wtns").read_bytes()
    assert run(capsys, "witness", wasm, given, "-o", tmp_path / "w.json")[0] == 0
    assert json.loads((tmp_path / "w.json").read_text()) == json.loads(foreign("witness.json").read_text())
    key = tmp_path / "k.zkey"
    setup_development(read_r1cs_system(foreign("mul.r1cs")), key)
    assert run(capsys, "fullprove", key, wasm, given, "-o", tmp_path / "full")[0] == 0
    assert run(capsys, "prove", key, foreign("witness.json"), "-o", tmp_path / "json")[0] == 0
    public = [(tmp_path / name / "public.json").read_text() for name in ("full", "json")]
    assert public[0] == public[1] and json.loads(public[0]) == ["33", "3"]
    assert fnv1a("a") == 0xAF63DC4C8601EC8C


@pytest.mark.parametrize(
    ("text", "words"),
    (
        ('{"a": "3"}', "1 values given, the circuit takes 2"),
        ('{"a": "3", "b": "11", "c": 1}', "c: the circuit has no such input"),
        ('{"a": ["3", "4"], "b": "11"}', "a: 2 values given, the circuit takes 1"),
        ('{"a": "three", "b": "11"}', "a: 'three' is not a whole number"),
        ('{"a": 1.5, "b": "11"}', "a: '1.5' is not a whole number"),
        ('{"a": null, "b": "11"}', "not a whole number"),
        ("[1, 2]", "a JSON object"),
        ('{"a": 1, "a": 2}', "appears twice"),
    ),
)
def test_inputs_that_do_not_fit_are_named(tmp_path, capsys, text, words):
    path = tmp_path / "input.json"
    path.write_text(text)
    code, _, err = run(capsys, "witness", foreign("mul.wasm"), path, "-o", tmp_path / "w.wtns")
    assert code == 2 and words in err and str(path) in err, err
    assert not (tmp_path / "w.wtns").exists()


def test_inputs_of_every_shape(tmp_path):
    path = tmp_path / "input.json"
    path.write_text('{"a": [[1, "2"], ["0x10", -1]], "b": {"x": 5, "y": [6, 7]}, "c": [{"z": 8}, {"z": 9}], "d": true}')
    found = read_input(path)
    assert found["a"][:3] == [1, 2, 16] and found["a"][3] > 1 << 250
    assert {k: found[k] for k in ("b.x", "b.y", "c[0].z", "c[1].z", "d")} == {
        "b.x": [5], "b.y": [6, 7], "c[0].z": [8], "c[1].z": [9], "d": [1],
    }  # fmt: skip


def test_what_is_no_calculator_is_refused(tmp_path):
    path = tmp_path / "x.wasm"
    for data in (b"\0asm\1\0\0\0", b"\0asm\1\0\0\0\xff", b"text", foreign("mul.wasm").read_bytes()[:3000]):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"x\.wasm"):
            Calculator(path)


def test_the_contract_and_its_call(circuits, tmp_path, capsys):
    chain, out = circuits["chain1k"], tmp_path / "Verifier.sol"
    assert run(capsys, "key", "convert", chain.path("zkey"), "-o", out)[0] == 0
    source, key = out.read_text(), read_any_vk(chain.path("zkey"))
    assert "uint256[2] calldata input" in source and "WARNING" not in source
    for point in (key.alpha_g1, *key.ic):
        assert eip2537(point).hex() in source
    assert "WARNING: this key is a development key" in verifier_contract(key, ["is a development key"])
    code, text, _ = run(capsys, "proof", "calldata", chain.file("public.json"), chain.file("proof.json"))
    call = bytes.fromhex(text.strip()[2:])
    assert code == 0 and call[:4] == keccak256(b"verifyProof(bytes,uint256[2])")[:4]
    words = [int.from_bytes(call[4 + 32 * k : 36 + 32 * k], "big") for k in range(4)]
    assert words == [96, *(int(v) for v in json.loads(chain.file("public.json").read_text())), 512]
    proof = read_proofs(chain.file("proof.json"))[0]
    assert call[4 + 128 :] == eip2537(proof.a) + eip2537(proof.b) + eip2537(proof.c)
    assert isinstance(proof, Proof) and len(eip2537(proof.b)) == 256
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def test_keccak_is_sha3_but_for_the_padding():
    import hashlib

    for length in (*range(130, 142), *range(268, 276), 0, 1, 1000):
        data = bytes(k % 251 for k in range(length))
        assert sponge(data, padding=6) == hashlib.sha3_256(data).digest()
    assert keccak256(b"transfer(address,uint256)")[:4].hex() == "a9059cbb"
