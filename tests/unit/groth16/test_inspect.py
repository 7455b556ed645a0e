"""inspect, its deep checks, and the proving verbs as functions."""

import argparse
import importlib
import json
import struct

import numpy as np
import pytest

from cuzk.cli import main as cli
from cuzk.errors import FormatError, InputError, ProofInvalid
from cuzk.groth16 import point_bytes
from cuzk.groth16.deep import deep_check
from cuzk.groth16.field import FQ_MODULUS
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.inspect import detect, inspect
from cuzk.groth16.inspect_text import as_text
from cuzk.groth16.load import read_r1cs_system
from cuzk.groth16.setup.development import setup_development

from .test_verify import off_subgroup


def test_counts_of_the_same_circuit_agree_in_every_kind(circuits, tmp_path):
    circuit = circuits["chain1k"]
    setup_development(read_r1cs_system(circuit.path("r1cs")), tmp_path / "key.ckey")
    files = [circuit.path("r1cs"), circuit.path("zkey"), circuit.path("params"), tmp_path / "key.ckey"]
    found = [inspect(path) for path in files]
    for one in found:
        assert one["curve"] == "bls12381"
        part = {name: one["circuit"][name] for name in ("n_wires", "n_public", "n_aux", "domain")}
        assert part == {"n_wires": 1023, "n_public": 2, "n_aux": 1020, "domain": 1024}
        assert one["proof"]["c-free"]["transforms"] == 4
        assert as_text(one)
    assert found[3]["quotients"] == ["c-free", "odd-coset", "bellman"]
    assert found[0]["circuit"]["nonzeros"]["total"] == sum(found[3]["circuit"]["nonzeros"].values()) - 3
    assert found[2]["residency"]["mmap"] is None
    assert found[1]["residency"]["vram"]["vram_bytes"] == found[1]["points"]["bytes"]


def test_unknown_files_are_refused(tmp_path):
    for content in (b"hello, world", b"[1, {", b'{"a": 1}', bytes(5000)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(FormatError):
            detect(tmp_path / "file")


@pytest.mark.parametrize("suffix", ("zkey", "params"))
def test_deep_accepts_good_keys(circuits, suffix):
    path = circuits["chain1k"].path(suffix)
    all_points = deep_check(path, suffix)["points_checked"]
    assert all_points > 4000
    assert deep_check(path, suffix, sample=10)["points_checked"] < 100


def test_deep_counts_zeros_and_ones(circuits):
    found = deep_check(circuits["mul"].path("wtns"), "wtns")
    assert found["values_checked"] == 4 and 1 <= found["zeros_and_ones"] <= 4


BAD_POINTS = {
    "not on the curve": lambda good: point_bytes.to_mont(
        point_bytes.from_coordinates([point_bytes.coordinates(good)[0], point_bytes.coordinates(good)[1] ^ 1])
    ),
    "outside the subgroup": lambda good: point_bytes.to_mont(off_subgroup()),
    "not below the modulus": lambda good: np.frombuffer(FQ_MODULUS.to_bytes(48, "little") + bytes(48), dtype=np.uint64).reshape(
        1, 12
    ),
}


@pytest.mark.parametrize("message", BAD_POINTS)
def test_deep_names_the_bad_point(circuits, tmp_path, message):
    path = circuits["chain1k"].path("zkey")
    section = ZkeyFile(path).container.section(9)
    row = 700
    at = section.offset + 96 * row
    data = bytearray(path.read_bytes())
    good = point_bytes.from_mont(np.frombuffer(bytes(data[at : at + 96]), dtype=np.uint64))
    data[at : at + 96] = BAD_POINTS[message](good).tobytes()
    (tmp_path / "bad.zkey").write_bytes(data)
    with pytest.raises(FormatError, match=f"section 9.*at byte {at}: point {row} .*{message}"):
        deep_check(tmp_path / "bad.zkey", "zkey")


def test_deep_refuses_infinity_where_it_is_not_allowed(circuits, tmp_path):
    data = bytearray(circuits["chain1k"].path("params").read_bytes())
    at = 864 + 4 + 3 * 96 + 4 + 96 * 5
    data[at : at + 96] = b"\x40" + bytes(95)
    (tmp_path / "bad.params").write_bytes(data)
    with pytest.raises(FormatError, match="infinity"):
        deep_check(tmp_path / "bad.params", "params")
    data = bytearray(circuits["mul"].path("zkey").read_bytes())
    at = ZkeyFile(circuits["mul"].path("zkey")).container.section(2).offset + 4 + 48 + 4 + 32 + 12
    data[at : at + 96] = bytes(96)
    (tmp_path / "bad.zkey").write_bytes(data)
    with pytest.raises(FormatError, match=r"alpha_g1.*infinity"):
        deep_check(tmp_path / "bad.zkey", "zkey")


def test_deep_checks_verifying_keys_and_proofs(circuits, tmp_path):
    mul = circuits["mul"]
    assert deep_check(mul.file("verification_key.json"), "verification_key.json")["points_checked"] == 7
    assert deep_check(mul.file("proof.json"), "proof.json")["points_checked"] == 3
    proof = json.loads(mul.file("proof.json").read_text())
    proof["pi_c"][1] = str(int(proof["pi_c"][1]) ^ 1)
    (tmp_path / "p.json").write_text(json.dumps(proof))
    with pytest.raises(ProofInvalid, match="not on the curve"):
        deep_check(tmp_path / "p.json", "proof.json")
    key = json.loads(mul.file("verification_key.json").read_text())
    key["IC"][1][1] = str(int(key["IC"][1][1]) ^ 1)
    (tmp_path / "k.json").write_text(json.dumps(key))
    with pytest.raises(InputError, match=r"IC\[1\]"):
        deep_check(tmp_path / "k.json", "verification_key.json")


def cuzk(capsys, *args):
    """Run a verb: its exit code, its JSON document (or text), and what it complained."""
    code = cli.main([str(arg) for arg in args])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out.startswith("{") else out, err


def test_a_newcomers_path(circuits, tmp_path, capsys):
    """circuit → setup → prove → verify, all with --json, then the optimised key."""
    r1cs, wtns, key, vkey = (tmp_path / name for name in ("c.r1cs", "c.wtns", "k.zkey", "vk.json"))
    code, made, _ = cuzk(capsys, "circuit", "mimc", "--constraints", "2^7", "--r1cs", r1cs, "--wtns", wtns, "--json")
    assert code == 0 and made["n_constraints"] == 128 and made["domain"] == 256
    code, made, err = cuzk(capsys, "setup", r1cs, "-o", key, "--vkey", vkey, "--json")
    assert code == 0 and made["development_key"] and "development key" in err
    out = tmp_path / "out"
    code, made, err = cuzk(capsys, "prove", key, wtns, "-o", out, "--json")
    assert code == 0 and made["verified"] and made["private"] and made["quotient"] == "odd-coset"
    assert "development key" in err
    assert len((out / "proof.bin").read_bytes()) == 192
    for proof in ("proof.json", "proof.bin"):
        code, found, err = cuzk(capsys, "verify", vkey, out / "public.json", out / proof, "--json", "--allow-unsafe-key")
        assert code == 0 and found["valid"] and found["development_key"] and "development key" in err
        code, found, _ = cuzk(capsys, "verify", vkey, out / "public.json", out / proof, "--json")
        assert code == 6 and not found["valid"] and "development key" in found["reason"]
    ckey = tmp_path / "k.ckey"
    code, made, err = cuzk(capsys, "key", "optimise", key, "--r1cs", r1cs, "-o", ckey, "--json")
    assert code == 0 and made["development_key"]
    documents = {}
    for quotient, source in (("c-free", ckey), ("odd-coset", ckey), ("odd-coset", key)):
        arguments = ("--quotient", quotient, "--insecure-seed", "5", "-o", tmp_path / "q", "--json")
        code, made, _ = cuzk(capsys, "prove", source, wtns, *arguments)
        assert code == 0 and not made["private"]
        documents[quotient, source.suffix] = made["proof_hex"]
    assert len(set(documents.values())) == 1
    code, found, _ = cuzk(capsys, "inspect", ckey, "--json", "--deep")
    assert code == 0 and found["schema_version"] == 1 and found["deep"]["points_checked"] > 100


def test_refusals_have_their_exit_codes_and_leave_nothing(circuits, tmp_path, capsys):
    chain, mul, out = circuits["chain1k"], circuits["mul"], tmp_path / "out"
    prove = lambda *args: cuzk(capsys, "prove", *args, "-o", out)  # noqa: E731
    cases = [
        (prove(chain.path("zkey"), mul.path("wtns")), 2, "does not belong"),
        (prove(chain.path("wtns"), chain.path("zkey")), 2, "not a .wtns"),
        (prove(chain.path("params"), chain.path("wtns")), 2, "--r1cs"),
        (prove(chain.path("zkey"), chain.path("wtns"), "--quotient", "c-free"), 2, "key optimise"),
        (prove(tmp_path / "absent", chain.path("wtns")), 2, "No such file"),
    ]
    data = bytearray(chain.path("wtns").read_bytes())
    data[-32] ^= 1
    (tmp_path / "bad.wtns").write_bytes(data)
    cases.append((prove(chain.path("zkey"), tmp_path / "bad.wtns"), 6, "does not"))
    cases.append((prove(chain.path("zkey"), tmp_path / "bad.wtns", "--r1cs", chain.path("r1cs")), 6, "constraint"))
    truncated = tmp_path / "cut.zkey"
    truncated.write_bytes(chain.path("zkey").read_bytes()[:-1000])
    cases.append((prove(truncated, chain.path("wtns")), 2, "section"))
    for (code, text, err), expected, message in cases:
        assert (code, text) == (expected, "") and message in err and "Traceback" not in err
    assert not out.exists()
    public = tmp_path / "public.json"
    public.write_text("[]")
    code, _, err = cuzk(capsys, "verify", mul.file("verification_key.json"), public, mul.file("proof.json"))
    assert code == 2 and "0 public signals" in err
    public.write_text('["1", "2"]')
    code, found, err = cuzk(capsys, "verify", mul.file("verification_key.json"), public, mul.file("proof.json"), "--json")
    assert code == 6 and found["valid"] is False and "does not verify" in err
    code, _, err = cuzk(capsys, "setup", mul.path("r1cs"), "-o", tmp_path / "key.bin")
    assert code == 2 and ".zkey" in err
    for place in (tmp_path / "absent" / "key.zkey", tmp_path):
        code, _, err = cuzk(capsys, "setup", mul.path("r1cs"), "-o", place)
        assert code == 2 and str(place) in err
        code, _, err = cuzk(capsys, "setup", mul.path("r1cs"), "-o", tmp_path / "k.zkey", "--vkey", place)
        assert code == 2 and str(place) in err and not (tmp_path / "k.zkey").exists()
    code, _, err = cuzk(capsys, "prove", mul.path("zkey"), mul.path("wtns"), "-o", public)
    assert code == 2 and "not a directory" in err
    code, _, err = cuzk(capsys, "key", "convert", mul.path("zkey"), "-o", tmp_path / "key.params")
    assert code == 2 and "root of unity" in err


def test_batches_on_the_command_line(circuits, tmp_path, capsys):
    mul = circuits["mul"]
    vkey, public, proof = (mul.file(n) for n in ("verification_key.json", "public.json", "proof.json"))
    code, found, _ = cuzk(capsys, "verify", vkey, public, proof, public, proof, "--json")
    assert code == 0 and found["proofs"] == 2
    wrong = tmp_path / "wrong.json"
    wrong.write_text('["1", "2"]')
    code, found, _ = cuzk(capsys, "verify", vkey, public, proof, wrong, proof, "--json")
    assert code == 6 and "proof 1 " in found["reason"]
    many = tmp_path / "many.json"
    many.write_text(json.dumps([json.loads(public.read_text())] * 2))
    code, made, _ = cuzk(capsys, "prove", mul.path("zkey"), mul.path("wtns"), "-o", tmp_path / "p", "--json")
    pair = tmp_path / "pair.bin"
    pair.write_bytes(bytes.fromhex(made["proof_hex"]) * 2)
    code, found, _ = cuzk(capsys, "verify", vkey, many, pair, "--json")
    assert code == 0 and found["proofs"] == 2


def test_verifying_keys_convert_between_their_forms(circuits, tmp_path, capsys):
    mul = circuits["mul"]
    for source in (mul.path("zkey"), mul.path("params")):
        for name in ("out.vk", "out.json"):
            code, _, err = cuzk(capsys, "key", "convert", source, "-o", tmp_path / name)
            assert code == 0, err
    code, _, _ = cuzk(capsys, "key", "convert", tmp_path / "out.vk", "-o", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "out.json").read_bytes() and code == 0
    code, _, err = cuzk(capsys, "key", "convert", tmp_path / "out.json", "-o", tmp_path / "again.vk")
    assert code == 2 and "in G1" in err
    assert struct.unpack(">I", (tmp_path / "out.vk").read_bytes()[864:868]) == (3,)


@pytest.mark.parametrize("verb", ("prove", "verify", "setup", "key", "inspect", "circuit"))
def test_every_verb_explains_itself(verb):
    module = importlib.import_module(f"cuzk.cli.{verb}")
    parser = argparse.ArgumentParser()
    module.add_parser(parser.add_subparsers())
    with pytest.raises(SystemExit) as done:
        parser.parse_args([verb, "--help"])
    assert done.value.code == 0 and module.__doc__
