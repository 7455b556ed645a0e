"""`cuzk porep c1`, `check` and `prove` on C1 outputs, without a key of real size: a small circuit's key stands in."""

import json

import pytest

from cuzk.cli.main import main
from cuzk.errors import ProofInvalid
from cuzk.porep.c1 import read
from cuzk.porep.files import save_sealed
from cuzk.porep.job import PartitionFailed, SectorAssignments, prove_c1
from cuzk.porep.statement import read_statement
from tests.unit.porep.c1_files import MINER, SECTOR, challenge, inner, small_c1, wrapped
from tests.unit.porep.sector_files import sealed_sector


def fails(arguments, capsys, *words, code=2):
    assert main([str(a) for a in arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and all(word in captured.err for word in words), captured.err


@pytest.mark.parametrize("form", ["wrapper", "inner", "bincode"])
def test_c1_of_a_sealed_sector_is_correct(form, tmp_path, capsys):
    save_sealed(sealed_sector(), tmp_path / "sector")
    path = tmp_path / "c1"
    assert main(["porep", "c1", str(tmp_path / "sector"), "-o", str(path), "--form", form, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes"] == path.stat().st_size and document["registered_proof"] == "StackedDrg2KiBV1_1"
    assert main(["porep", "check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["form"] == form


def test_c1_of_a_made_up_sector(tmp_path, capsys):
    path = tmp_path / "c1.json"
    made = ["porep", "c1", "--synthetic", "2KiB", "-o", str(path), "--miner", str(MINER), "--sector-number", "8"]
    assert main([*made, "--api-version", "1.0"]) == 0
    assert read(path).registered.name == "StackedDrg2KiBV1" and read(path).sector_number == 8
    assert main(["porep", "check", str(path), "--miner", str(MINER), "--sector-number", "8"]) == 0
    capsys.readouterr()
    fails(["porep", "check", path, "--miner", MINER, "--sector-number", "9"], capsys, "c1.json: replica_id")
    fails(["porep", "check", path, "--miner", MINER], capsys, "--sector-number")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "--synthetic"), (["S", "--synthetic", "2KiB"], "either"), (["--synthetic", "3KiB"], "3KiB"),
        (["--synthetic", "2KiB", "--seed", "00" * 32], "--seed"), (["S", "--miner", "3"], "--synthetic"),
        (["--synthetic", "2KiB", "--miner", "-3"], "miner"), (["missing"], "missing"),
    ],
)  # fmt: skip
def test_c1_refuses(arguments, word, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fails(["porep", "c1", *arguments, "-o", "c1.json"], capsys, word)
    assert not list(tmp_path.iterdir())


def test_prove_names_a_changed_hash_before_it_opens_a_key(tmp_path, capsys):
    document = inner()
    hashes = challenge(document, 1)["comm_r_last_proof"]["data"]["Single"]["path"]["path"][0]["hashes"]
    hashes[3][0] ^= 1
    path = tmp_path / "c1.json"
    path.write_bytes(wrapped(document))
    place = "vanilla_proofs.StackedDrg2KiBV1[0][1].comm_r_last_proof.data.Single"
    fails(["porep", "prove", path, tmp_path / "no.params", "-o", tmp_path / "out"], capsys, "c1.json", place)
    fails(["porep", "check", path], capsys, place)
    assert main(["porep", "check", str(path), "--quick"]) == 0  # which does not hash
    capsys.readouterr()
    path.write_bytes(b"no C1 output")
    fails(["porep", "prove", path, tmp_path / "no.params"], capsys, "c1.json", "bincode")
    fails(["porep", "prove", tmp_path / "none.json", tmp_path / "no.params"], capsys, "none.json", "No such file")
    path.write_bytes(wrapped(inner()))
    fails(["porep", "prove", path, tmp_path / "no.params"], capsys, "no.params")
    fails(["porep", "prove", path, tmp_path / "no.params", "--seed", "01" * 32], capsys, "--seed")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c1.json"]


class FakeKey:
    path = "a key"

    def verifying_key(self):
        return None

    def require_quotient(self, quotient):
        return "c-free"


class Made:
    """Proofs that a verifier of the same test accepts or not."""

    def __init__(self, proof):
        self.proof, self.step_s = proof, {}

    def to_bytes(self):
        return self.proof


@pytest.fixture
def fake_verifier(monkeypatch):
    """Accepts proofs that are the partition's public inputs."""

    class Verifier:
        def __init__(self, *_):
            pass

        def accepts(self, proof, public):
            return proof == tuple(public)

        def first_invalid(self, proofs, publics):
            return next((k for k, (p, x) in enumerate(zip(proofs, publics, strict=True)) if p != tuple(x)), -1)

    monkeypatch.setattr("cuzk.porep.job.Verifier", Verifier)


@pytest.mark.parametrize("spoiled", [1, 2])
def test_a_bad_partition_is_proved_again_and_the_others_are_kept(spoiled, fake_verifier, maker, monkeypatch):
    c1 = small_c1("non-interactive")  # 13 partitions
    monkeypatch.setattr("cuzk.porep.job.c1_witness", lambda maker, c1, k: k)
    made = []

    def make(witness, verifier):
        made.append(witness)
        if witness == 5 and made.count(5) <= spoiled:
            if spoiled == 2 and made.count(5) == 1:
                raise ProofInvalid("it was spoiled")
            return Made(("spoiled",))
        return Made(tuple(c1.public_inputs(witness)))

    found = prove_c1(c1, FakeKey(), maker, make=make)
    assert made == [0, 1, 2, 3, 4, *[5] * (1 + spoiled), 6, 7, 8, 9, 10, 11, 12]
    assert found.attempts == [1] * 5 + [1 + spoiled] + [1] * 7 and len(found.proofs) == 13
    assert found.note is not None and "aggregate" in found.note


def test_a_partition_that_cannot_be_proved_is_named(fake_verifier, maker, monkeypatch):
    c1 = small_c1("non-interactive")
    monkeypatch.setattr("cuzk.porep.job.c1_witness", lambda maker, c1, k: k)

    def make(witness, verifier):
        if witness == 2:
            raise ProofInvalid("a broken device")
        return Made(tuple(c1.public_inputs(witness)))

    with pytest.raises(PartitionFailed, match=r"partition 2 \(of 13, from 0\) .* 3 attempts: a broken device") as caught:
        prove_c1(c1, FakeKey(), maker, make=make)
    assert (caught.value.partition, caught.value.attempts, caught.value.exit_code) == (2, 3, 6)


def test_assignments_repeat_their_sectors(maker):
    both = SectorAssignments([small_c1(), small_c1("1.0")], maker)
    assert both.sector(2) is both.sector(0) and both.partitions == 1
    assert both.public_inputs(3, 0) == small_c1("1.0").public_inputs(0) != both.public_inputs(2, 0)
    assert both.witness(0, 0).n_wires == maker.template.n_wires


def test_the_statement_of_a_c1_output_gives_its_inputs(tmp_path):
    c1 = small_c1("synthetic")
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(c1.statement().document()))
    assert read_statement(path).public_inputs() == [c1.public_inputs(0)]
    assert c1.sector_number == SECTOR
