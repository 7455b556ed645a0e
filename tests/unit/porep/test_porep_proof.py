"""From data to an accepted proof at 2^22 rows: minutes, and 3 GiB of memory."""

import json

import pytest

from cuzk.cli.main import main
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.load import read_any_vk
from cuzk.groth16.verify import Verifier
from tests.unit.porep.sector_files import ROOT, sector_data


@pytest.mark.slow
def test_2_kib_sector_sealed_proved_and_verified(tmp_path, capsys):
    """The key has Filecoin's layout and length and lies in a folder, as Filecoin's own would."""
    data, sector, keys, proof = (tmp_path / n for n in ("data", "sector", "keys", "proof"))
    data.write_bytes(sector_data().tobytes())
    keys.mkdir()
    key = keys / "development-2k.params"
    assert main(["porep", "seal", "--sector", "2KiB", str(data), "-o", str(sector), "--sector-number", "5"]) == 0
    assert main(["porep", "setup", "--sector", "2KiB", "-o", str(key)]) == 0
    vk = read_any_vk(key)
    key.with_suffix(".vk").write_bytes(vk.to_bytes())
    assert key.stat().st_size - 1_114_707_768 in range(0, 4096)  # and the mark of a development key
    assert main(["porep", "prove", str(sector), str(keys), "--seed", "07" * 32, "-o", str(proof)]) == 0
    capsys.readouterr()
    assert main(["porep", "verify", str(proof), str(key)]) == 6  # a development key
    for verifying in (key, key.with_suffix(".vk")):
        assert main(["porep", "verify", str(proof), str(verifying), "--allow-unsafe-key"]) == 0
    assert "sector 5 is sealed" in capsys.readouterr().out
    public = [int(v) for v in json.loads((proof / "public.json").read_text())[0]]
    assert Verifier(vk).accepts(Proof.from_bytes((proof / "proof.bin").read_bytes()), public)
    statement = json.loads((proof / "statement.json").read_text())
    for change in ({"sector_number": 6}, {"seed_hex": "08" * 32}, {"comm_r_hex": statement["comm_d_hex"]}):
        (proof / "statement.json").write_text(json.dumps(statement | change))
        assert main(["porep", "verify", str(proof), str(key), "--allow-unsafe-key"]) == 6


@pytest.mark.slow
def test_a_partition_as_a_template_and_bits(tmp_path, capsys):
    """No rows, no field elements a wire: template, key, witness, proof, each by its verb."""
    template, key, bits, out = (str(tmp_path / n) for n in ("c.tpl", "k.ckey", "w.cwit", "out"))
    given = ["--challenges", "1"]
    assert main(["circuit", "porep-2k", *given, "--template", template]) == 0
    assert main(["setup", template, "-o", key, "--quotients", "c-free"]) == 0
    assert main(["porep", "witness", "--synthetic", "2KiB", *given, "-o", bits]) == 0
    assert main(["prove", key, bits, "-o", out]) == 0
    assert main(["verify", key, f"{out}/public.json", f"{out}/proof.json", "--allow-unsafe-key"]) == 0
    assert "proof verified" in capsys.readouterr().out


@pytest.mark.slow
def test_c_free_proof_of_a_2_kib_sector(tmp_path, capsys):
    """The quotient without C, from the template: A and B alone."""
    data, sector, key = (tmp_path / n for n in ("data", "sector", "development.ckey"))
    data.write_bytes(sector_data().tobytes())
    assert main(["porep", "seal", "--sector", "2KiB", str(data), "-o", str(sector)]) == 0
    assert main(["porep", "setup", "--sector", "2KiB", "-o", str(key), "--quotients", "c-free"]) == 0
    assert main(["porep", "prove", str(sector), str(key)]) == 0
    assert main(["porep", "verify", str(sector / "proof"), str(key), "--allow-unsafe-key"]) == 0
    assert "sealed" in capsys.readouterr().out


@pytest.mark.slow
def test_the_operators_job_from_a_c1_output_to_verified_bytes(tmp_path, capsys, monkeypatch):
    """Sealed sector, C1 output, key as .params and converted, proof by each way; each holds for whoever has key and inputs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, sector, c1, keys = (tmp_path / n for n in ("data", "sector", "c1.json", "keys"))
    data.write_bytes(sector_data().tobytes())
    keys.mkdir()
    params = keys / "development-2k.params"
    assert main(["porep", "seal", "--sector", "2KiB", str(data), "-o", str(sector), "--porep-id", f"{10:02x}" + "00" * 31]) == 0
    assert main(["porep", "c1", str(sector), "-o", str(c1)]) == 0
    assert main(["porep", "setup", "--sector", "2KiB", "-o", str(params)]) == 0
    assert main(["porep", "prove", str(c1), str(keys), "-o", str(tmp_path / "a")]) == 0
    assert main(["porep", "key", "--sector", "2KiB", "--params", str(keys)]) == 0
    assert (keys / "development-2k.ckey").exists()
    params_bytes = params.read_bytes()[:4096]
    assert main(["porep", "prove", str(c1), str(params), "-o", str(tmp_path / "b"), "--device", "cpu", "--json"]) == 0
    for out in ("a", "b"):
        files = [str(tmp_path / out / name) for name in ("verification_key.json", "public.json", "proof.bin")]
        assert (tmp_path / out / "proof.bin").stat().st_size == 192
        assert main(["verify", *files, "--allow-unsafe-key"]) == 0
        assert main(["verify", *files]) != 0  # a development key
        single = [str(tmp_path / out / name) for name in ("public-00.json", "proof-00.json")]
        assert main(["verify", files[0], *single, "--allow-unsafe-key"]) == 0
        assert main(["porep", "verify", str(tmp_path / out), str(params), "--allow-unsafe-key"]) == 0
    assert params.read_bytes()[:4096] == params_bytes
    run = ["run", str(ROOT / "scenarios" / "demo-proofs.yaml"), "--key", str(keys), "--c1", str(c1), "--no-predict", "--json"]
    sizes = ["--set", "workload.proofs=2", "--set", "machine.ram=12GiB"]
    capsys.readouterr()
    assert main([*run, *sizes, "-o", str(tmp_path / "run"), "--makers", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"]["verified_partitions"] == 2
    public = tmp_path / "a" / "public.json"
    assert main(["verify", str(params), str(public), str(tmp_path / "run" / "proof-001.bin"), "--allow-unsafe-key"]) == 0
