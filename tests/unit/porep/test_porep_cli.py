"""The porep verbs and `circuit porep-…` as a user calls them; broken directories, keys and statements."""

import json
import shutil
from dataclasses import replace

import pytest

from cuzk.circuits.field import MODULUS
from cuzk.cli.main import main
from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.formats.cwit import CwitFile
from cuzk.groth16.formats.params import ParamsFile
from cuzk.groth16.formats.template import load_template
from cuzk.groth16.template.system import TemplateSystem
from cuzk.model import Circuit, load_part
from cuzk.porep.files import load_sealed
from cuzk.porep.proving import find_params
from tests.unit.porep.sector_files import ROOT, filecoin_file, foreign_proof, sector_data


@pytest.fixture(scope="module")
def sealed_dir(tmp_path_factory):
    base = tmp_path_factory.mktemp("seal")
    (base / "data").write_bytes(sector_data().tobytes())
    arguments = ["--prover-id", "03" * 32, "--sector-number", "7", "--ticket", "09" * 32]
    assert main(["porep", "seal", "--sector", "2KiB", str(base / "data"), "-o", str(base / "sector"), *arguments]) == 0
    return base / "sector"


@pytest.fixture
def copy(sealed_dir, tmp_path):
    return shutil.copytree(sealed_dir, tmp_path / "sector")


def fails(arguments, capsys, *words):
    """Exit 2, one message with the words on stderr, nothing on stdout."""
    assert main([str(a) for a in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    for word in words:
        assert word in captured.err, captured.err


def test_seal_writes_a_sector_that_loads_again(sealed_dir, sealed):
    loaded = load_sealed(sealed_dir)
    assert (loaded.comm_d, loaded.comm_r, loaded.replica_id) == (sealed.comm_d, sealed.comm_r, sealed.replica_id)
    assert (loaded.ids, loaded.version) == (sealed.ids, "1.1")
    assert all((a == b).all() for a, b in zip(loaded.labels, sealed.labels, strict=True))
    assert (sealed_dir / "replica.bin").read_bytes() == sealed.tree_r_last.levels[0].tobytes()


def test_seal_prints_one_document(tmp_path, capsys):
    (tmp_path / "data").write_bytes(bytes(2032))
    arguments = ["porep", "seal", "--sector", "2KiB", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "--json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["comm_d_hex"] == "fc7e928296e516faade986b28f92d44a4f24b935485223376a799027bc18f833"


def test_seal_refuses_data_of_another_length_and_leaves_nothing(tmp_path, capsys):
    (tmp_path / "data").write_bytes(bytes(2000))
    fails(["porep", "seal", "--sector", "2KiB", tmp_path / "data", "-o", tmp_path / "out"], capsys, "data", "2,000", "2,032")
    assert [p.name for p in tmp_path.iterdir()] == ["data"]


def test_seal_refuses_a_directory_with_something_in_it(copy, tmp_path, capsys):
    (tmp_path / "data").write_bytes(bytes(2032))
    fails(["porep", "seal", "--sector", "2KiB", tmp_path / "data", "-o", copy], capsys, "exists already")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--sector", "3KiB"], "3KiB"), (["--sector", "32GiB"], "32GiB"),
        (["--sector", "2KiB", "--prover-id", "abc"], "--prover-id"),
        (["--sector", "2KiB", "--ticket", "00" * 31], "--ticket"),
        (["--sector", "2KiB", "--sector-number", "-1"], "sector number"),
        (["--sector", "2KiB", "--porep-id", "ff" * 32], "porep id"),
    ],
)  # fmt: skip
def test_seal_refuses_ids_out_of_range(options, word, tmp_path, capsys):
    (tmp_path / "data").write_bytes(bytes(2032))
    fails(["porep", "seal", tmp_path / "data", "-o", tmp_path / "out", *options], capsys, word)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["seal.json", "layer-1.bin", "layer-2.bin", "replica.bin", "tree-d.bin", "tree-c.bin", "tree-r-last.bin"]
)
def test_prove_names_what_is_missing_or_cut(name, copy, tmp_path, capsys):
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[: len(whole) // 2])
    fails(["porep", "prove", copy, tmp_path / "no.params"], capsys, name)
    (copy / name).unlink()
    fails(["porep", "prove", copy, tmp_path / "no.params"], capsys, name, "missing")


def test_prove_refuses_a_tree_with_another_root(copy, tmp_path, capsys):
    data = bytearray((copy / "tree-c.bin").read_bytes())
    data[-1] ^= 1
    (copy / "tree-c.bin").write_bytes(data)
    fails(["porep", "prove", copy, tmp_path / "no.params"], capsys, "tree-c.bin", "comm_c")


@pytest.mark.parametrize("seed", ["00", "xx" * 32, "00" * 33])
def test_prove_refuses_other_seeds(seed, copy, tmp_path, capsys):
    fails(["porep", "prove", copy, tmp_path / "no.params", "--seed", seed], capsys, "--seed")


def test_prove_refuses_a_key_of_another_circuit(copy, capsys):
    bundle = filecoin_file("seal32_x10.prf")
    fails(["porep", "prove", copy, bundle], capsys, "seal32_x10.prf")
    fixtures = ROOT / "tests" / "fixtures"
    fails(["porep", "prove", copy, fixtures / "chain1k" / "chain1k.zkey"], capsys, "2KiB PoRep circuit")
    fails(["porep", "prove", copy, fixtures / "chain1k" / "chain1k.params"], capsys, "2KiB PoRep circuit")


def test_keys_in_a_folder(tmp_path, maker):
    """Filecoin's files have long names and one folder for all sizes: the one whose counts fit is taken."""
    chain = ROOT / "tests" / "fixtures" / "chain1k" / "chain1k.params"
    with pytest.raises(InputError, match=r"no \.params"):
        find_params(tmp_path, maker)
    shutil.copy(chain, tmp_path / "v28-other.params")
    with pytest.raises(InputError, match="v28-other"):
        find_params(tmp_path, maker)
    # a head with the right counts is enough to be chosen; the lists are judged when the key is opened
    vk = ParamsFile(chain).verifying_key()
    head = replace(vk, ic=tuple(vk.ic[i % 2] for i in range(40))).to_bytes()
    fits = tmp_path / "v28-2k.params"
    with open(fits, "wb") as out:
        out.write(head + ((1 << 22) - 1).to_bytes(4, "big"))
        out.truncate(1_114_707_768)
    assert find_params(tmp_path, maker) == str(fits)
    fits.with_suffix(".vk").write_bytes(head)
    assert find_params(tmp_path, maker) == str(fits)
    fits.with_suffix(".vk").write_bytes(head[:-1] + b"\0")
    with pytest.raises(InputError, match=r"v28-2k\.vk"):
        find_params(tmp_path, maker)
    fits.with_suffix(".vk").unlink()
    shutil.copy(fits, tmp_path / "v27-2k.params")
    with pytest.raises(InputError, match="two or more"):
        find_params(tmp_path, maker)


def test_tampered_label_on_disk_is_named_by_its_gadget(copy, tmp_path, sealed, maker):
    """What the files' lengths and roots do not show, the circuit does."""
    from cuzk.porep.challenges import challenges

    nodes = challenges(sealed.shape, sealed.replica_id, bytes(32), 0)
    labels = bytearray((copy / "layer-1.bin").read_bytes())
    for i in range(0, len(labels), 32):
        labels[i] ^= 1
    (copy / "layer-1.bin").write_bytes(labels)
    bad = load_sealed(copy)
    with pytest.raises(ProofInvalid, match="in challenge 0 / DRG parent 0 / root"):
        maker.require_satisfied(maker.witness(bad, nodes))


def test_check_accepts_the_sector_and_names_the_gadget_of_a_changed_byte(copy, capsys):
    assert main(["porep", "check", str(copy), "--seed", "06" * 32]) == 0
    assert "2,687,921 rows" in capsys.readouterr().out
    replica = bytearray((copy / "replica.bin").read_bytes())
    for node in range(64):
        replica[32 * node] ^= 1
    (copy / "replica.bin").write_bytes(replica)
    assert main(["porep", "check", str(copy), "--seed", "06" * 32]) == 6
    captured = capsys.readouterr()
    assert captured.out == "" and "in challenge 0 / tree R / root" in captured.err


def test_inputs_of_a_foreign_statement(tmp_path, capsys):
    known = foreign_proof()
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(known))
    assert main(["porep", "inputs", str(path), "--api-version", "1.1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["partitions"] == [known["public_inputs_decimal"]]


def test_inputs_from_options_alone(sealed_dir, tmp_path, capsys):
    document = json.loads((sealed_dir / "seal.json").read_text())
    options = ["--sector", "2KiB", "--sector-number", "7", "--seed", "05" * 32]
    for key in ("comm_d", "comm_r", "prover_id", "ticket", "porep_id"):
        options += ["--" + key.replace("_", "-"), document[f"{key}_hex"]]
    assert main(["porep", "inputs", *options]) == 0
    alone = capsys.readouterr().out
    assert main(["porep", "inputs", str(sealed_dir / "seal.json"), "--seed", "05" * 32]) == 0
    assert capsys.readouterr().out == alone
    fails(["porep", "inputs", *options[2:]], capsys, "sector")
    fails(["porep", "inputs", *options[:-1], "77"], capsys, "porep_id_hex")
    fails(["porep", "inputs", "--sector", "2KiB"], capsys, "missing")


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("comm_r_hex", "00" * 31, "comm_r_hex"), ("comm_d_hex", (MODULUS).to_bytes(32, "little").hex(), "comm_d_hex"),
        ("sector_number", 1 << 64, "sector number"), ("sector_number", "7", "sector_number"),
        ("sector", "5KiB", "5KiB"), ("sector", None, "sector"), ("ticket_hex", 5, "ticket_hex"),
        ("seed_hex", None, "seed"), ("porep_id_hex", "ff" * 32, "porep id"), ("api_version", "2.0", "api_version"),
    ],
)  # fmt: skip
def test_statements_out_of_range(key, value, word, sealed_dir, tmp_path, capsys):
    document = json.loads((sealed_dir / "seal.json").read_text()) | {"seed_hex": "00" * 32}
    document[key] = value
    if value is None:
        del document[key]
    path = tmp_path / "statement.json"
    path.write_text(json.dumps(document))
    fails(["porep", "inputs", path], capsys, word)


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", "7", '{"sector": "2KiB"}', "[" * 100_000])
def test_statements_that_are_no_statement(text, tmp_path, capsys):
    path = tmp_path / "statement.json"
    path.write_text(text)
    fails(["porep", "inputs", path], capsys, "statement.json")


@pytest.mark.parametrize("source", ["sealed", "synthetic"])
def test_witness_for_other_provers(source, sealed_dir, tmp_path, capsys, maker):
    from cuzk.groth16.formats.wtns import WtnsFile

    path = tmp_path / "partition.wtns"
    given = ["--sealed", str(sealed_dir)] if source == "sealed" else ["--synthetic", "2KiB"]
    assert main(["porep", "witness", *given, "-o", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    witness = WtnsFile(path)
    witness.check_values()
    assert len(witness.values) == document["wires"] == maker.template.n_inputs + maker.template.n_aux
    assert document["bits_bytes"] < path.stat().st_size // 30
    fails(["porep", "witness", *given, "-o", path, "--partition", "1"], capsys, "--partition")


def test_a_synthetic_witness_as_bits(tmp_path, capsys):
    """Of one challenge instead of two: it belongs to the template that the same option gives, and satisfies it."""
    template, bits = tmp_path / "c.tpl", tmp_path / "w.cwit"
    given = ["--challenges", "1", "--json"]
    assert main(["circuit", "porep-2k", *given, "--template", str(template)]) == 0
    circuit = json.loads(capsys.readouterr().out)
    assert (circuit["challenges"], circuit["inputs"]) == (1, 22)
    assert main(["porep", "witness", "--synthetic", "2KiB", *given, "-o", str(bits)]) == 0
    written = json.loads(capsys.readouterr().out)
    assert bits.stat().st_size < 40 * written["wires"] / 8 < 32 * written["wires"] / 5
    system = TemplateSystem(load_template(template))
    assert system.walker.first_unsatisfied(CwitFile(bits).witness(system.template, template)) == -1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["porep", "witness", "--synthetic", "2KiB", "-o", "w.bits"], ".cwit"),
        (["porep", "witness", "--synthetic", "2KiB", "-o", "w.cwit", "--challenges", "0"], "--challenges 0"),
        (["porep", "witness", "--sealed", "S", "-o", "w.cwit", "--challenges", "1"], "--synthetic"),
        (["circuit", "porep-2k", "--challenges", "1000"], "from 1 to"), (["circuit", "mimc", "--challenges", "1"], "porep-"),
    ],
)  # fmt: skip
def test_other_numbers_of_challenges_are_refused(arguments, word, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(arguments, capsys, word)
    assert not list(tmp_path.iterdir())


def test_verify_needs_as_many_proofs_as_partitions(sealed_dir, tmp_path, capsys):
    statement = json.loads((sealed_dir / "seal.json").read_text()) | {"seed_hex": "00" * 32}
    (tmp_path / "statement.json").write_text(json.dumps(statement))
    known = bytes.fromhex(foreign_proof()["proof_hex"])
    (tmp_path / "proof.bin").write_bytes(known * 2)
    fails(["porep", "verify", tmp_path, filecoin_file("seal32_x10.prf")], capsys, "2 proofs")
    (tmp_path / "proof.bin").write_bytes(known)
    of_32_gib = tmp_path / "32gib.vk"
    of_32_gib.write_bytes(filecoin_file("seal32_x10.prf").read_bytes()[16 : 16 + 32_356])
    fails(["porep", "verify", tmp_path, of_32_gib], capsys, "39 public signals", "327")
    (tmp_path / "proof.bin").write_bytes(known[:-1])
    fails(["porep", "verify", tmp_path, filecoin_file("seal32_x10.prf")], capsys, "proof.bin")


def test_circuit_sizes_and_files(tmp_path, capsys):
    yaml, template = tmp_path / "porep-2k.yaml", tmp_path / "porep.tpl"
    assert main(["circuit", "porep-2KiB", "--json", "--counts", str(yaml), "--template", str(template)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["rows"], document["aux"], document["inputs"]) == (2_687_961, 2_685_673, 40)
    assert document["params_bytes"] == 1_114_707_768
    circuit = load_part(yaml, "circuit", Circuit)
    assert (circuit.constraints, circuit.domain, circuit.a) == (2_687_961, 1 << 22, document["queries"]["a"])
    assert circuit.nnz == sum(document["nonzeros"].values())
    assert main(["inspect", str(template), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for count in ("rows", "aux", "inputs", "domain"):
        assert found[count] == document[count]
    assert found["nnz_a"] == document["nonzeros"]["a"] and found["copies"] == 2
    template.write_bytes(template.read_bytes()[:-5])
    fails(["inspect", template], capsys, "porep.tpl", "ends inside")


def test_circuit_files_of_the_library_are_what_the_verb_writes(tmp_path):
    written = tmp_path / "porep-2k.yaml"
    assert main(["circuit", "porep-2k", "--counts", str(written)]) == 0
    assert written.read_text() == (ROOT / "scenarios" / "circuits" / "porep-2k.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["porep-3g"], "3g"), (["porep-32g", "--pce", "x.pce"], "32GiB"), (["porep-2k", "--wtns", "x"], "porep witness"),
        (["mimc", "--counts", "x"], "--counts"),
    ],
)  # fmt: skip
def test_circuit_refuses(arguments, word, capsys):
    fails(["circuit", *arguments], capsys, word)
