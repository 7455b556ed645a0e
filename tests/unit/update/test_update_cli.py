"""`cuzk update`: data into a sealed sector, and proofs that the commitments alone verify."""

import json
import shutil

import pytest

from cuzk.cli.main import main
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.load import load_key, read_any_vk
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.template.system import TemplateSystem
from cuzk.groth16.verify import Verifier
from cuzk.update.job import UpdateJob
from cuzk.update.sector import load_updated
from cuzk.update.statement import read_statement
from cuzk.vanilla.proving import prove_job
from tests.unit.porep.sector_files import sector_data
from tests.unit.update.update_files import TINY, circuit, vanilla


def run(*arguments):
    return main([str(a) for a in arguments])


@pytest.fixture(scope="module")
def sector(tmp_path_factory):
    base = tmp_path_factory.mktemp("sector")
    (base / "zeros").write_bytes(bytes(2032))
    (base / "data").write_bytes(sector_data().tobytes())
    assert run("porep", "seal", base / "zeros", "--sector", "2KiB", "--sector-number", 6, "-o", base / "sealed") == 0
    assert run("update", "apply", base / "sealed", base / "data", "-o", base / "updated") == 0
    return base


def test_two_partitions_of_a_tiny_sector_are_proved(tmp_path):
    """Under the public inputs of the statement; every other input is refused."""
    job, path = UpdateJob(vanilla(), circuit(TINY)), tmp_path / "k.ckey"
    setup_development(TemplateSystem(job.template), path, quotients=("c-free",))
    key = load_key(path)
    made = prove_job(job, key)
    assert made.publics == vanilla().statement.all_public_inputs() and len(made.to_bytes()) == 2 * 192
    verifier = Verifier(key.verifying_key())
    for k, proof in enumerate(made.proofs):
        assert verifier.accepts(proof, made.publics[k]) and not verifier.accepts(proof, made.publics[1 - k])
        for i in range(4):
            assert not verifier.accepts(proof, [x ^ (i == j) for j, x in enumerate(made.publics[k])])


def test_the_data_comes_back(sector, tmp_path, capsys):
    assert run("update", "data", sector / "sealed", sector / "updated", "-o", tmp_path / "back", "--json") == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 2048
    updated = load_updated(sector / "updated")
    assert (tmp_path / "back").read_bytes() == updated.tree_d.levels[0].tobytes()
    assert updated.statement.comm_r_new != updated.statement.comm_r_old


def test_a_job_of_a_real_sector_is_correct(sector, tmp_path, capsys):
    job = tmp_path / "job"
    assert run("update", "vanilla", sector / "sealed", sector / "updated", "-o", job) == 0
    assert run("update", "check", job) == 0
    assert run("update", "witness", job, "-o", tmp_path / "w.cwit") == 0
    capsys.readouterr()
    assert run("update", "inputs", job / "statement.json", "--json") == 0
    statement = read_statement(job / "statement.json")
    assert json.loads(capsys.readouterr().out)["partitions"] == [[str(x) for x in statement.public_inputs(0)]]
    # and a WindowPoSt is of the updated sector
    assert run("post", "vanilla", sector / "updated", "--kind", "window", "-o", tmp_path / "post") == 0
    assert run("post", "check", tmp_path / "post") == 0
    written = json.loads((tmp_path / "post" / "statement.json").read_text())["sectors"]
    assert written == [{"sector_number": 6, "comm_r_hex": statement.comm_r_new.hex()}]


def refused(arguments, capsys, *words):
    capsys.readouterr()
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    for word in words:
        assert word in captured.err, captured.err


def test_what_is_refused(sector, tmp_path, capsys):
    sealed, updated, out = sector / "sealed", sector / "updated", tmp_path / "out"
    full = tmp_path / "full"
    assert run("porep", "seal", sector / "data", "--sector", "2KiB", "-o", full) == 0
    refused(["update", "apply", full, sector / "data", "-o", out], capsys, "holds data already")
    refused(["update", "vanilla", full, updated, "-o", out], capsys, "not made from this sealed one")
    refused(["update", "vanilla", sealed, "-o", out], capsys, "--synthetic")
    refused(["update", "vanilla", sealed, sealed, "-o", out], capsys, "update.json")
    refused(["update", "vanilla", "--synthetic", "3KiB", "-o", out], capsys, "3KiB")
    refused(["update", "witness", "--synthetic", "2KiB", "--partition", "1", "-o", tmp_path / "w.cwit"], capsys, "--partition 1")
    broken = shutil.copytree(updated, tmp_path / "broken")
    (broken / "replica.bin").write_bytes(bytes(100))
    refused(["update", "vanilla", sealed, broken, "-o", out], capsys, "replica.bin", "100 bytes")
    (broken / "replica.bin").write_bytes((updated / "replica.bin").read_bytes())
    document = json.loads((broken / "update.json").read_text())
    for change, word in (({"comm_c_hex": "00"}, "comm_c_hex"), ({"comm_r_new_hex": "00" * 32}, "tree-r-last.bin"),
                         ({"comm_d_new_hex": "00" * 32}, "tree-d.bin"), ({"sector_number": -1}, "sector_number")):  # fmt: skip
        (broken / "update.json").write_text(json.dumps(document | change))
        refused(["update", "vanilla", sealed, broken, "-o", out], capsys, word)
    assert not out.exists()


def test_a_changed_replica_is_found_by_the_check(sector, tmp_path, capsys):
    broken, job = shutil.copytree(sector / "updated", tmp_path / "broken"), tmp_path / "job"
    replica = bytearray((broken / "replica.bin").read_bytes())
    for i in range(0, len(replica), 32):
        replica[i] ^= 1
    (broken / "replica.bin").write_bytes(replica)
    assert run("update", "vanilla", sector / "sealed", broken, "-o", job) == 0
    refused(["update", "check", job], capsys, "vanilla.json: vanilla_proofs[0].challenge_proofs[0].proof_r_new")


@pytest.mark.slow
def test_2_kib_sector_updated_proved_and_verified(sector, tmp_path, capsys):
    """The key has Filecoin's layout and length."""
    job, key, proof = tmp_path / "job", tmp_path / "k.params", tmp_path / "proof"
    assert run("update", "vanilla", sector / "sealed", sector / "updated", "-o", job) == 0
    assert run("update", "setup", "--sector", "2KiB", "-o", key) == 0
    assert key.stat().st_size - 655_789_464 in range(0, 4096)  # and the mark of a development key
    assert run("update", "prove", job, key, "-o", proof) == 0
    assert run("update", "verify", proof, key, "--allow-unsafe-key") == 0
    made, public = Proof.from_bytes((proof / "proof.bin").read_bytes()), read_statement(proof / "statement.json").public_inputs(0)
    assert Verifier(read_any_vk(key)).accepts(made, public)
    statement = json.loads((proof / "statement.json").read_text())
    old, new = statement["comm_r_old_hex"], statement["comm_r_new_hex"]
    for change in ({"comm_r_old_hex": new, "comm_r_new_hex": old}, {"comm_d_new_hex": old}):
        (proof / "statement.json").write_text(json.dumps(statement | change))
        assert run("update", "verify", proof, key, "--allow-unsafe-key") == 6
