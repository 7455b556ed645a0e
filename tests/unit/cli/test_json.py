"""What scripts may count on: `--json`, `--yaml`, `--top` and `-o` mean one thing in every verb that has them (docs/cli.md)."""

import argparse
import json
import re
from pathlib import Path

import pytest

from cuzk.cli.main import VERBS, _parser, main

ROOT = Path(__file__).parents[3]
SCENARIO, OOM, STEADY = (str(ROOT / "scenarios" / f"{name}.yaml") for name in ("phase12-pw10", "pw12", "demo-steady"))
CHAIN = ROOT / "tests" / "fixtures" / "chain1k"
FOREIGN = ROOT / "tests" / "fixtures" / "foreign"
SMALL = ("--set", "workload.proofs=2")
POINTS = """measurements:
- {id: x, config: {phase: 11, pw: 10, gw: 2, c: 2, j: 2}, measured: {prove_s: 40.0}}
"""
LOG = """TIMELINE,1000,SYNTH_START,job-a,partition=0
TIMELINE,31000,SYNTH_END,job-a,partition=0
TIMELINE,32000,GPU_START,job-a,partition=0
TIMELINE,35000,GPU_END,job-a,partition=0
"""
COMMANDS: dict[str, list[str]] = {
    "sim": ["sim", SCENARIO, *SMALL],
    "sim of an oom": ["sim", OOM, "--no-fix"],
    "plan": ["plan", SCENARIO, *SMALL, "--pw", "4", "--gw", "1"],
    "size": ["size", SCENARIO, "--target", "100 s/proof", "--card", "RTX 4090", "--top", "1"],
    "explain": ["explain", SCENARIO, *SMALL, "--no-changes"],
    "sweep": ["sweep", SCENARIO, *SMALL, "--over", "policy.pw=2,4", "--no-cache"],
    "diff": ["diff", SCENARIO, SCENARIO, "--set-a", "workload.proofs=2", "--set-b", "workload.proofs=1"],
    "sensitivity": ["sensitivity", SCENARIO, "--set", "workload.proofs=1"],
    "show": ["show", SCENARIO],
    "check": ["check", SCENARIO],
    "validate": ["validate", "--points", "{points}", "--seeds", "1"],
    "calibrate": ["calibrate", "{run}/trace.jsonl", "--cores", "2"],
    "import": ["import", "{log}", "-o", "{new}.jsonl"],
    "prove": ["prove", f"{CHAIN}/chain1k.zkey", f"{CHAIN}/chain1k.wtns", "-o", "{new}"],
    "verify": ["verify", f"{CHAIN}/verification_key.json", f"{CHAIN}/public.json", f"{CHAIN}/proof.json"],
    "run": [
        "run",
        str(ROOT / "scenarios" / "demo-steady.yaml"),
        *SMALL,
        "--scale",
        "1e-4",
        "--time-scale",
        "1e-3",
        "-o",
        "{new}",
    ],
    "setup": ["setup", f"{CHAIN}/chain1k.r1cs", "-o", "{new}.zkey"],
    "key optimise": ["key", "optimise", f"{CHAIN}/chain1k.zkey", "--r1cs", f"{CHAIN}/chain1k.r1cs", "-o", "{new}.ckey"],
    "key convert": ["key", "convert", f"{CHAIN}/chain1k.zkey", "-o", "{new}.ckey"],
    "key verify": ["key", "verify", f"{CHAIN}/chain1k.zkey", "--r1cs", f"{CHAIN}/chain1k.r1cs"],
    "key contribute": ["key", "contribute", f"{CHAIN}/chain1k.zkey", "-o", "{new}.zkey"],
    "key beacon": ["key", "beacon", f"{CHAIN}/chain1k.zkey", "-o", "{new}.zkey", "--beacon", "00"],
    "ptau verify": ["ptau", "verify", f"{FOREIGN}/p3.ptau"],
    "proof convert": ["proof", "convert", f"{CHAIN}/proof.json", "-o", "{new}.bin"],
    "proof calldata": ["proof", "calldata", f"{CHAIN}/public.json", f"{CHAIN}/proof.json"],
    "witness": ["witness", f"{FOREIGN}/mul.wasm", f"{FOREIGN}/input.json", "-o", "{new}.wtns"],
    "inspect": ["inspect", f"{CHAIN}/chain1k.zkey"],
    "circuit": ["circuit", "mimc", "--constraints", "2^10"],
    "porep seal": ["porep", "seal", "--sector", "2KiB", "{data}", "-o", "{new}"],
    "porep c1": ["porep", "c1", "--synthetic", "2KiB", "-o", "{new}.json"],
    "post vanilla": ["post", "vanilla", "--synthetic", "2KiB", "--kind", "window", "-o", "{new}"],
    "update vanilla": ["update", "vanilla", "--synthetic", "2KiB", "-o", "{new}"],
    "compare": ["compare", "{run}/trace.jsonl", "{run}/trace.jsonl"],
    "doctor": ["doctor"],
}
A_GIGABYTE = "not tried: a key of this circuit takes a gigabyte and minutes; it prints by the same function as the others"
ELSEWHERE = {
    "demo": "tests/unit/exec/test_demo.py (minutes)",
    "fullprove": "tests/unit/groth16/test_foreign.py (its key is made there)",
    "key optimize": "another spelling of optimise",
    "porep check": "tests/unit/porep/test_c1_cli.py",
    "porep inputs": "tests/unit/porep/test_porep_cli.py",
    "porep witness": "tests/unit/porep/test_porep_cli.py (it emits the circuit)",
    "porep key": A_GIGABYTE,
    "porep setup": A_GIGABYTE,
    "porep prove": A_GIGABYTE,
    "porep verify": A_GIGABYTE,
    **{f"post {verb}": "tests/unit/post/test_post_cli.py" for verb in ("check", "setup", "prove", "verify", "inputs", "witness")},
    **{
        f"update {verb}": "tests/unit/update/test_update_cli.py"
        for verb in ("apply", "data", "check", "setup", "prove", "verify", "inputs", "witness")
    },
}


def leaves(parser: argparse.ArgumentParser, path: str) -> dict[str, argparse.ArgumentParser]:
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not inner:
        return {path: parser}
    return {k: v for a in inner for name, sub in a.choices.items() for k, v in leaves(sub, f"{path} {name}".strip()).items()}


@pytest.fixture(scope="module")
def verbs():
    found = {}
    for verb in [verb for group in VERBS.values() for verb in group]:
        found |= leaves(_parser(verb)[0], "")
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    base = tmp_path_factory.mktemp("json")
    (base / "points.yaml").write_text(POINTS, encoding="utf-8")
    (base / "data").write_bytes(bytes(2032))
    (base / "daemon.log").write_text(LOG, encoding="utf-8")
    command = [part.replace("{new}", str(base / "run")) for part in COMMANDS["run"]]
    assert main(command) == 0
    names = {"points": "points.yaml", "data": "data", "run": "run", "log": "daemon.log"}
    return {"base": base, **{key: str(base / name) for key, name in names.items()}}


def test_every_verb_with_json_is_tried(verbs):
    with_json = {name for name, parser in verbs.items() if "--json" in parser._option_string_actions}
    tried = {name.partition(" of ")[0] for name in COMMANDS} | set(ELSEWHERE)
    assert tried == with_json, "a verb with --json needs a command here, or the test that has it"


# INV-20
@pytest.mark.parametrize("name", COMMANDS)
def test_json_prints_one_document_and_nothing_else(name, files, capsys):
    places = {**files, "new": str(files["base"] / f"new-{name.replace(' ', '-')}")}
    capsys.readouterr()
    code = main([part.format(**places) if "{" in part else part for part in COMMANDS[name]] + ["--json"])
    printed = capsys.readouterr().out
    document = json.loads(printed)
    assert code == (3 if "oom" in name else 0)
    assert isinstance(document, dict) and document["schema_version"] >= 1 and "error" not in document
    assert printed.endswith("}\n")


def test_an_option_means_the_same_wherever_it_is(verbs):
    for name, parser in verbs.items():
        options = parser._option_string_actions
        for flag in ("--json", "--yaml"):
            if flag in options:
                assert options[flag].nargs == 0, f"{name}: {flag} takes no value; a file is named by -o or an option of its own"
        if "--top" in options:
            assert options["--top"].type("7") == 7, f"{name}: --top takes one number"
        if "-o" in options:
            assert "--output" in options, name


def test_every_verb_is_on_the_page():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = {
        name.split()[0] for cell in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`([\w …]+)`", cell)
    }
    missing = [verb for group in VERBS.values() for verb in group if verb not in rows]
    assert not missing, f"docs/cli.md has no row for {missing}"
