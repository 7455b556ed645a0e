"""Witnesses of bits in files: they come back as they were, prove through every verb, and are refused where they do not fit."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from cuzk.cli.main import main
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.cwit import CwitFile, write_cwit
from cuzk.groth16.formats.template import save_template
from cuzk.groth16.formats.wtns import write_wtns
from cuzk.groth16.load import load_key, open_witness
from cuzk.groth16.template.bits import ARRAYS
from tests.small_template import small_case


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Template, c-free key made from it by the verb, and a witness in both forms."""
    folder = tmp_path_factory.mktemp("cwit")
    template, witness = small_case()
    save_template(template, folder / "c.tpl")
    write_cwit(folder / "w.cwit", witness)
    write_wtns(folder / "w.wtns", witness.expand_std())
    assert main(["setup", str(folder / "c.tpl"), "-o", str(folder / "k.ckey"), "--quotients", "c-free"]) == 0
    return folder


def test_a_file_gives_the_same_witness(files):
    template, witness = small_case()
    again = CwitFile(files / "w.cwit").witness(template, "key")
    for name in ARRAYS:
        assert np.array_equal(getattr(again, name), getattr(witness, name)), name


def test_both_forms_of_a_witness_give_the_same_proof(files, tmp_path, capsys):
    documents = []
    for name in ("w.cwit", "w.wtns"):
        arguments = ["prove", files / "k.ckey", files / name, "-o", tmp_path / name, "--json", "--insecure-seed", "3"]
        assert main([str(a) for a in arguments]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0]["proof_hex"] == documents[1]["proof_hex"] and documents[0]["public"] == documents[1]["public"]


def test_a_run_with_bits_and_a_template(files, tmp_path):
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "version: 1\nmachine:\n  name: here\n  ram: 4GiB\n  cores: 2\n"
        "  gpus: [{name: none, vram: 2GiB, context: 0B, sms: 1, pcie_h2d: 10GB/s, pcie_d2h: 10GB/s}]\n"
        "circuit: circuits/porep-32g.yaml\npipeline: phase12\npolicy: {pw: 2, gw: 1, j: 1}\nworkload: {proofs: 1}\n"
    )
    witnesses = ["--witness", str(files / "w.cwit"), "--witness", str(files / "w.cwit")]
    arguments = ["run", str(scenario), "--key", str(files / "k.ckey"), *witnesses, "-o", str(tmp_path / "out"), "--no-predict"]
    assert main([*arguments, "--set", "circuit.partitions=2"]) == 0
    document = json.loads((tmp_path / "out" / "run.json").read_text())
    assert document["measured"]["verified_partitions"] == 2
    header = json.loads((tmp_path / "out" / "trace.jsonl").read_text().splitlines()[0])
    assert header["policy"]["matrices"] == "template" and header["policy"]["witness"] == "bits"


def test_inspect_tells_a_template_and_a_witness_of_bits(files, capsys):
    template, _ = small_case()
    assert main(["inspect", str(files / "k.ckey"), "--deep", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "3 copies" in found["matrices_form"]
    assert list(found["circuit"]["nonzeros"].values()) == list(template.nonzeros())
    assert found["deep"]["coefficients_checked"] == sum(template.nonzeros())
    assert main(["inspect", str(files / "w.cwit"), "--deep", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["copies"], found["n_values"]) == ("cwit", 3, template.n_wires)


def test_a_witness_of_another_template_is_refused(files, tmp_path):
    _, witness = small_case(copies=2)
    write_cwit(tmp_path / "w.cwit", witness)
    with pytest.raises(InputError, match=r"w\.cwit: a witness of another template .2 copies"):
        open_witness(tmp_path / "w.cwit")(load_key(files / "k.ckey"))


def test_a_key_of_rows_says_what_to_do(files, tmp_path):
    from cuzk.groth16.load import read_r1cs_system
    from cuzk.groth16.setup.development import setup_development

    setup_development(read_r1cs_system(files / "c.tpl").expanded(), tmp_path / "rows.ckey")
    with pytest.raises(InputError, match="make the key from the template"):
        open_witness(files / "w.cwit")(load_key(tmp_path / "rows.ckey"))


def test_values_that_are_no_field_elements_are_placed(files, tmp_path):
    template, witness = small_case()
    for name in ("prefix_fields_mont", "body_fields_mont"):
        wrong = witness.copy()
        getattr(wrong, name)[0, 7] = 2**64 - 1
        write_cwit(tmp_path / "w.cwit", wrong)
        file = CwitFile(tmp_path / "w.cwit")
        with pytest.raises(FormatError, match="value 7 is not below") as raised:
            file.witness(template, "key")
        assert raised.value.section == name and raised.value.offset == file.mapped.offset(name) + 7 * 32
    wrong = replace(witness, inputs_mont=np.roll(witness.inputs_mont, 1, axis=0))
    write_cwit(tmp_path / "w.cwit", wrong)
    with pytest.raises(FormatError, match="value 0 is not one"):
        CwitFile(tmp_path / "w.cwit").witness(template, "key")


@pytest.mark.parametrize("name", ARRAYS)
def test_misshapen_arrays_are_named(files, tmp_path, name):
    template, _ = small_case()
    data = (files / "w.cwit").read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    header = json.loads(data[16 : 16 + length])
    rows, columns = header["arrays"][name]["shape"]
    header["arrays"][name]["shape"] = [rows, columns - 1] if rows == 1 else [rows - 1, columns]
    text = json.dumps(header).encode()
    (tmp_path / "w.cwit").write_bytes(data[:12] + struct.pack("<I", len(text)) + text.ljust(length) + data[16 + length :])
    with pytest.raises(FormatError, match=rf"section {name}|after the last array"):
        CwitFile(tmp_path / "w.cwit").witness(template, "key")


def test_templates_and_witnesses_are_no_keys(files):
    for name, kind in (("c.tpl", "a template"), ("w.cwit", "a witness of bits")):
        with pytest.raises(FormatError, match=f"this is {kind}"):
            load_key(files / name)
