"""Circuits compiled here by circom, in both directions: snarkjs's key and our proof, our key and snarkjs's proof."""

import filecmp
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuzk.groth16.formats.proof import proof_json, public_json, read_proofs, read_public
from cuzk.groth16.formats.wtns import WtnsFile
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.load import load_key, read_any_vk, read_r1cs_system
from cuzk.groth16.prover.run import prove
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.setup.phase2 import setup_phase2
from cuzk.groth16.verify import Verifier

CHAIN = """pragma circom 2.0.0;
template Chain(n) {
    signal input x; signal input k; signal output y;
    signal s[n + 1];
    s[0] <== x;
    for (var i = 0; i < n; i++) { s[i + 1] <== s[i] * s[i] + k; }
    y <== s[n];
}
component main {public [k]} = Chain(%d);
"""
NO_PUBLIC = """pragma circom 2.0.0;
template Factors() { signal input a; signal input b; signal ab; ab <== a * b; ab * a === 45; }
component main = Factors();
"""
OUTPUTS_ONLY = """pragma circom 2.0.0;
template Outputs() { signal input a; signal output c[3]; c[0] <== a * a; c[1] <== c[0] * a; c[2] <== c[1] * c[0] + 5; }
component main = Outputs();
"""
UNUSED = """pragma circom 2.0.0;
template Unused() { signal input a; signal input nowhere; signal output c; c <== a * (a + 1); }
component main {public [nowhere]} = Unused();
"""
REPEATED = """pragma circom 2.0.0;
template Repeated() {
    signal input a; signal input b; signal output c;
    signal d;
    d <== (a + a + b - b + 3 * a) * (b + 2 * b - 7);
    c <== (d + a + d) * (d - a - a);
}
component main {public [b]} = Repeated();
"""

# The domain is the next power of two ≥ constraints + public + 1; a chain has two public signals.
CHAINS = {n: (CHAIN % n, {"x": "3", "k": "11"}) for n in (1, 2, 15, 17, 29, 61)}
CIRCUITS = {f"chain{n}": value for n, value in CHAINS.items()} | {
    "no_public": (NO_PUBLIC, {"a": "3", "b": "5"}),
    "outputs_only": (OUTPUTS_ONLY, {"a": "7"}),
    "unused": (UNUSED, {"a": "7", "nowhere": "12"}),
    "repeated": (REPEATED, {"a": "7", "b": "12"}),
}


@dataclass
class Built:
    """A compiled circuit with its witness and the keys of both sides."""

    folder: object
    name: str

    def path(self, suffix):
        return self.folder / f"{self.name}.{suffix}"


@pytest.fixture(scope="module")
def built(tools, ptau, tmp_path_factory) -> dict[str, Built]:
    folder = tmp_path_factory.mktemp("circuits")
    jobs = []
    for name, (source, given) in CIRCUITS.items():
        tools.compile(folder, name, source)
        one = Built(folder, name)
        setup_development(read_r1cs_system(one.path("r1cs")), one.path("ours.zkey"))
        jobs += [
            {"do": "witness", "dir": folder, "name": name, "input": given, "out": one.path("wtns")},
            {
                "do": "setup",
                "r1cs": one.path("r1cs"),
                "ptau": ptau,
                "zkey": one.path("0.zkey"),
                "vkey": one.path("0.json"),
            },
            {"do": "contribute", "zkey": one.path("0.zkey"), "out": one.path("zkey"), "vkey": one.path("json")},
            {"do": "export_vkey", "zkey": one.path("ours.zkey"), "vkey": one.path("ours.json")},
            {
                "do": "prove",
                "zkey": one.path("ours.zkey"),
                "wtns": one.path("wtns"),
                "proof": one.path("theirs.proof"),
                "publics": one.path("theirs.public"),
            },
        ]
    tools.run(*jobs)
    return {name: Built(folder, name) for name in CIRCUITS}


def write(one, label, made):
    one.path(f"{label}.proof").write_text(proof_json(made.proof))
    one.path(f"{label}.public").write_text(public_json(made.public))


def test_our_proofs_from_their_keys_are_accepted(tools, built):
    jobs = []
    for one in built.values():
        write(one, "a", prove(load_key(one.path("zkey"), one.path("r1cs")), WtnsFile(one.path("wtns")).values))
        jobs.append({"do": "verify", "vkey": one.path("json"), "proof": one.path("a.proof"), "publics": one.path("a.public")})
    assert tools.run(*jobs) == [True] * len(built)


def test_our_proofs_from_our_keys_are_accepted_by_them(tools, built):
    jobs = []
    for one in built.values():
        write(one, "b", prove(load_key(one.path("ours.zkey")), WtnsFile(one.path("wtns")).values))
        vkey = one.path("ours.json")
        jobs.append({"do": "verify", "vkey": vkey, "proof": one.path("b.proof"), "publics": one.path("b.public")})
    assert tools.run(*jobs) == [True] * len(built)


def test_their_proofs_from_our_keys_are_accepted(built):
    for one in built.values():
        proof, public = read_proofs(one.path("theirs.proof"))[0], read_public(one.path("theirs.public"))[0]
        assert Verifier(read_any_vk(one.path("ours.zkey"))).accepts(proof, public)
        assert Verifier(read_any_vk(one.path("ours.json"))).accepts(proof, public)


def test_the_same_circuit_as_params_and_ckey(built):
    """Every key of ours proves the same public signals; unused wires have no place in .params."""
    for name, one in built.items():
        values = WtnsFile(one.path("wtns")).values
        system = read_r1cs_system(one.path("r1cs"))
        publics = read_public(one.path("theirs.public"))[0]
        for suffix in ("ckey", "params"):
            # In "unused" it is a public wire, whose IC may be infinity: .params hold that.
            setup_development(system, one.path(suffix))
            key = load_key(one.path(suffix), one.path("r1cs"))
            for quotient in key.quotients:
                made = prove(key, values, quotient)
                assert made.public == publics, name
                assert Verifier(read_any_vk(one.path(suffix))).accepts(made.proof, publics)


def test_phase2_keys_equal_theirs_and_pass_their_check(tools, built, ptau):
    jobs = []
    for one in built.values():
        key = setup_phase2(read_r1cs_system(one.path("r1cs")), ptau, one.path("phase2.zkey"))
        assert not key.development
        assert filecmp.cmp(one.path("phase2.zkey"), one.path("0.zkey"), shallow=False), one.name
        jobs.append({"do": "verify_key", "r1cs": one.path("r1cs"), "ptau": ptau, "zkey": one.path("phase2.zkey")})
    assert tools.run(*jobs[:3]) == [True] * 3


def test_our_contributions_and_beacons_pass_their_check_and_a_beacon_is_theirs(tools, built, ptau):
    """A ceremony with hands of both: ours, theirs, ours, and one beacon made by each, byte for byte the same."""
    from cuzk.groth16.ceremony.check import check_against_start, check_contributions
    from cuzk.groth16.ceremony.contributions import apply_beacon, contribute

    one, beacon = built["repeated"], bytes(range(7, 27))
    steps = [one.path(f"step{k}.zkey") for k in range(5)]
    contribute(one.path("0.zkey"), steps[0], "first", b"some text")
    tools.run({"do": "contribute", "zkey": steps[0], "out": steps[1], "vkey": one.path("step.json")})
    contribute(steps[1], steps[2], "third")
    apply_beacon(steps[2], steps[3], beacon, 11, "end")
    check = {"do": "verify_key", "r1cs": one.path("r1cs"), "ptau": ptau, "zkey": steps[3]}
    theirs = {"do": "beacon", "zkey": steps[2], "out": steps[4], "beacon": beacon.hex(), "iterations": 11, "name": "end"}
    assert tools.run(check, theirs)[0] is True
    assert filecmp.cmp(steps[3], steps[4], shallow=False)
    assert [c.name for c in check_contributions(steps[4]).contributions] == ["first", "test", "third", "end"]
    check_against_start(steps[4], one.path("r1cs"), ptau)
    made = prove(load_key(steps[3]), WtnsFile(one.path("wtns")).values)
    assert Verifier(read_any_vk(steps[4])).accepts(made.proof, made.public)


def test_their_powers_of_tau_pass_our_check(ptau):
    from cuzk.groth16.ceremony.check import check_ptau
    from cuzk.groth16.formats.ptau import PtauFile

    assert len(check_ptau(ptau)) == 9 and PtauFile(ptau).contributions == 1


def test_witnesses_from_wasm_are_theirs(built, tmp_path):
    from cuzk.groth16.circom_wasm import Calculator, read_input

    for name, one in built.items():
        (tmp_path / "input.json").write_text(json.dumps(CIRCUITS[name][1]))
        calculator = Calculator(one.folder / f"{name}_js" / f"{name}.wasm")
        values = calculator.witness(read_input(tmp_path / "input.json"), tmp_path / "input.json")
        assert (values == WtnsFile(one.path("wtns")).values).all(), name


def test_contributions_of_their_keys_are_named(built):
    assert ZkeyFile(built["chain1"].path("zkey")).contribution_names() == ["test"]


def test_domains_are_what_the_sizes_say(built):
    sizes = {n: ZkeyFile(built[f"chain{n}"].path("zkey")).header.domain for n in CHAINS}
    assert sizes == {1: 4, 2: 8, 15: 32, 17: 32, 29: 32, 61: 64}


def test_command_line_from_circuit_to_verification(tools, built, tmp_path):
    """setup, prove, verify as a script would call them; their verifier agrees."""
    one = built["chain29"]

    def cuzk(*args):
        done = subprocess.run([sys.executable, "-m", "cuzk", *map(str, args)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    key, vkey, out = tmp_path / "k.zkey", tmp_path / "vk.json", tmp_path / "proof"
    made = cuzk("setup", one.path("r1cs"), "-o", key, "--vkey", vkey, "--json")
    assert made["schema_version"] == 1 and made["development_key"] and made["domain"] == 32
    proved = cuzk("prove", key, one.path("wtns"), "-o", out, "--json")
    assert proved["verified"] and proved["private"] and len(bytes.fromhex(proved["proof_hex"])) == 192
    assert cuzk("verify", vkey, out / "public.json", out / "proof.json", "--allow-unsafe-key", "--json")["valid"]
    assert cuzk("verify", vkey, out / "public.json", out / "proof.bin", "--allow-unsafe-key", "--json")["valid"]
    job = {"do": "verify", "vkey": vkey, "proof": out / "proof.json", "publics": out / "public.json"}
    assert tools.run(job) == [True]


@pytest.mark.slow
@pytest.mark.parametrize("n", (511, 513, 1021))
def test_larger_chains(tools, tmp_path, n):
    """2^10/2 ± 1 and 2^10 − 1 − public: sizes where the roots of 5 and 7 no longer agree."""
    tools.compile(tmp_path, "chain", CHAIN % n)
    one = Built(tmp_path, "chain")
    setup_development(read_r1cs_system(one.path("r1cs")), one.path("zkey"))
    key, wtns = load_key(one.path("zkey")), one.path("wtns")
    tools.run(
        {"do": "witness", "dir": tmp_path, "name": "chain", "input": {"x": "3", "k": "11"}, "out": wtns},
        {"do": "export_vkey", "zkey": one.path("zkey"), "vkey": one.path("json")},
        {"do": "prove", "zkey": one.path("zkey"), "wtns": wtns, "proof": one.path("p"), "publics": one.path("q")},
    )
    write(one, "ours", prove(key, WtnsFile(wtns).values))
    job = {
        "do": "verify",
        "vkey": one.path("json"),
        "proof": one.path("ours.proof"),
        "publics": one.path("ours.public"),
    }
    assert tools.run(job) == [True]
    assert Verifier(key.verifying_key()).accepts(read_proofs(one.path("p"))[0], read_public(one.path("q"))[0])


@pytest.mark.slow
def test_phase2_keys_above_a_chunk_of_their_hash_equal_theirs(tools, tmp_path):
    """A domain of 2^15: their hash of the circuit takes H points in full chunks of 2^14."""
    one = Built(tmp_path, "mimc")
    ptau = tmp_path / "16.ptau"
    root = Path(__file__).parents[2]
    made = (
        ["-m", "cuzk", "circuit", "mimc", "--constraints", str(2**14 + 1), "--r1cs", str(one.path("r1cs"))],
        [str(root / "benchmarks" / "development_ptau.py"), "16", str(ptau)],
    )
    for arguments in made:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=root)
    tools.run({"do": "setup", "r1cs": one.path("r1cs"), "ptau": ptau, "zkey": one.path("0.zkey"), "vkey": one.path("json")})
    setup_phase2(read_r1cs_system(one.path("r1cs")), ptau, one.path("zkey"))
    assert filecmp.cmp(one.path("zkey"), one.path("0.zkey"), shallow=False)
