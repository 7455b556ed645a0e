"""`cuzk post`: from sealed sectors to proofs that their statement alone verifies."""

import json

import pytest

from cuzk.cli.main import main
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.load import read_any_vk
from cuzk.groth16.verify import Verifier
from cuzk.post.statement import read_statement
from tests.unit.porep.sector_files import ROOT, sector_data

RANDOMNESS = "05" * 31 + "01"


def run(*arguments):
    return main([str(a) for a in arguments])


@pytest.fixture(scope="module")
def sectors(tmp_path_factory):
    base = tmp_path_factory.mktemp("sectors")
    (base / "data").write_bytes(sector_data().tobytes())
    for number in (4, 9):
        given = ["--sector", "2KiB", "--sector-number", number, "--ticket", f"{number:02}" * 32]
        assert run("porep", "seal", base / "data", *given, "-o", base / f"s{number}") == 0
    return base


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    base = tmp_path_factory.mktemp("keys")
    assert run("post", "setup", "--kind", "window", "--sector", "2KiB", "-o", base / "window.params") == 0
    assert (
        run("post", "setup", "--kind", "winning", "--sector", "2KiB", "-o", base / "winning.ckey", "--quotients", "c-free") == 0
    )
    return base


def accepted(directory, key, capsys, expected=0):
    capsys.readouterr()
    assert run("post", "verify", directory, key, "--allow-unsafe-key") == expected
    return capsys.readouterr()


@pytest.mark.parametrize("names", [["s4"], ["s9", "s4"]], ids=["padded", "two"])
def test_window_post_of_sealed_sectors(names, sectors, keys, tmp_path, capsys):
    job, proof, key = tmp_path / "job", tmp_path / "proof", keys / "window.params"
    assert key.stat().st_size - 11_501_496 in range(0, 4096)  # and the mark of a development key
    given = [sectors / name for name in names]
    assert run("post", "vanilla", *given, "--kind", "window", "--randomness", RANDOMNESS, "-o", job) == 0
    assert run("post", "check", job) == 0
    assert run("post", "prove", job, keys, "-o", proof) == 0
    assert "valid: StackedDrgWindow2KiBV1_1" in accepted(proof, key, capsys).out
    statement = read_statement(proof / "statement.json")
    verifier = Verifier(read_any_vk(key))
    made, public = Proof.from_bytes((proof / "proof.bin").read_bytes()), statement.public_inputs(0)
    assert verifier.accepts(made, public)
    for i in (0, 5, 12, 21):
        assert not verifier.accepts(made, [x ^ (i == k) for k, x in enumerate(public)])
    document = statement.document()
    for change in ({"randomness_hex": "06" * 32}, {"registered_post": 5, "api_version": "1.0"},
                   {"sectors": [{**document["sectors"][0], "sector_number": 3}, *document["sectors"][1:]]}):  # fmt: skip
        (proof / "statement.json").write_text(json.dumps(document | change))
        same = "api_version" in change and len(names) == 1  # one sector: both versions count from 0
        accepted(proof, key, capsys, 0 if same else 6)


def test_winning_post_of_a_sealed_sector(sectors, keys, tmp_path, capsys):
    job, proof, key = tmp_path / "job", tmp_path / "proof", keys / "winning.ckey"
    assert run("post", "vanilla", sectors / "s9", "--kind", "winning", "--randomness", RANDOMNESS, "-o", job) == 0
    assert run("post", "prove", job, key, "-o", proof) == 0
    assert "sector 9" in accepted(proof, key, capsys).out
    document = json.loads((proof / "statement.json").read_text())
    (proof / "statement.json").write_text(json.dumps(document | {"randomness_hex": "00" * 32}))
    accepted(proof, key, capsys, 6)


def test_a_job_with_a_fault_is_not_proved(sectors, keys, tmp_path, capsys):
    job, proof = tmp_path / "job", tmp_path / "proof"
    assert run("post", "vanilla", sectors / "s4", "--kind", "window", "-o", job) == 0
    statement = json.loads((job / "statement.json").read_text())
    (job / "statement.json").write_text(json.dumps(statement | {"randomness_hex": RANDOMNESS}))
    capsys.readouterr()
    assert run("post", "prove", job, keys / "window.params", "-o", proof) == 2
    captured = capsys.readouterr()
    assert "vanilla.json: vanilla_proofs[0].sector_proofs[0].inclusion_proofs[0]" in captured.err and not captured.out
    assert not proof.exists()


def test_a_proof_through_the_pipeline_from_template_and_bits(keys, tmp_path, capsys):
    """`cuzk run` takes the key, the circuit's template and a partition's bits, and verifies what it makes."""
    template, bits = tmp_path / "c.tpl", tmp_path / "w.cwit"
    assert run("circuit", "window-2k", "--template", template) == 0
    assert run("post", "witness", "--synthetic", "2KiB", "--kind", "window", "-o", bits) == 0
    capsys.readouterr()
    arguments = [
        "--key",
        keys / "window.params",
        "--r1cs",
        template,
        "--witness",
        bits,
        "--device",
        "cpu",
        "-o",
        tmp_path / "run",
    ]
    assert run("run", ROOT / "scenarios" / "demo-proofs.yaml", "--set", "workload.proofs=2", *arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["counts"]["failed_proofs"] == 0


def test_a_job_through_the_pipeline(sectors, keys, tmp_path, capsys):
    """Witnesses are made in the run, and proofs hold under the statement's inputs; the key is found in its folder."""
    job, out = tmp_path / "job", tmp_path / "run"
    assert run("post", "vanilla", sectors / "s4", sectors / "s9", "--kind", "window", "-o", job) == 0
    capsys.readouterr()
    scenario = ROOT / "scenarios" / "demo-proofs.yaml"
    arguments = ["--set", "workload.proofs=1", "--key", keys, "--job", job, "--device", "cpu", "-o", out, "--json"]
    assert run("run", scenario, *arguments) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["failed_proofs"] == 0
    (made,) = out.glob("proof-*.bin")
    statement = read_statement(job / "statement.json")
    verifier = Verifier(read_any_vk(keys / "window.params"))
    assert verifier.accepts(Proof.from_bytes(made.read_bytes()), statement.public_inputs(0))
    assert run("run", scenario, *arguments[:-3], "--c1", keys / "window.params", "--json") == 2
    assert "do not go together" in capsys.readouterr().err


def test_statements_print_their_inputs(tmp_path, capsys):
    assert run("post", "vanilla", "--synthetic", "2KiB", "--kind", "window", "--count", 3, "-o", tmp_path / "job") == 0
    capsys.readouterr()
    assert run("post", "inputs", tmp_path / "job" / "statement.json", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    publics = read_statement(tmp_path / "job" / "statement.json").all_public_inputs()
    assert document["partitions"] == [[str(x) for x in p] for p in publics]
    assert len(document["partitions"]) == 2


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["vanilla", "--kind", "window", "-o", "j"], "--synthetic"),
        (["vanilla", "--synthetic", "3KiB", "--kind", "window", "-o", "j"], "3KiB"),
        (["vanilla", "--synthetic", "2KiB", "--kind", "winning", "--count", "2", "-o", "j"], "one sector"),
        (["vanilla", "--synthetic", "2KiB", "--kind", "window", "--count", "0", "-o", "j"], "--count 0"),
        (["vanilla", "nowhere", "--kind", "window", "-o", "j"], "nowhere"),
        (["vanilla", "--synthetic", "2KiB", "--kind", "window", "--randomness", "00", "-o", "j"], "--randomness"),
        (["witness", "--synthetic", "2KiB", "-o", "w.cwit"], "--kind"), (["witness", "-o", "w.cwit"], "--synthetic"),
        (["witness", "--synthetic", "2KiB", "--kind", "window", "-o", "w.bin"], ".cwit"),
        (["witness", "--synthetic", "2KiB", "--kind", "window", "--partition", "1", "-o", "w.cwit"], "--partition 1"),
        (["check", "items.bin"], "--statement"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments, word, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("post", *arguments) == 2
    captured = capsys.readouterr()
    assert word in captured.err and captured.out == "" and "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []
