"""Contributions, beacons and the checks of a ceremony's user. That snarkjs agrees is tested in tests/interop."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuzk.cli.main import main
from cuzk.errors import InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.ceremony.check import check_against_start, check_contributions, check_ptau
from cuzk.groth16.ceremony.contributions import apply_beacon, contribute, read_contributions
from cuzk.groth16.ceremony.randomness import Randomness, hash_to_g2
from cuzk.groth16.consistency import Inconsistent
from cuzk.groth16.formats.r1cs import R1csFile, write_r1cs
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.load import load_key, open_witness, read_any_vk, read_r1cs_system
from cuzk.groth16.prover.run import prove
from cuzk.groth16.safety import weaknesses
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.setup.phase2 import setup_phase2
from cuzk.groth16.verify import Verifier

FOREIGN = Path(__file__).parents[2] / "fixtures" / "foreign"
R1CS, PTAU, WTNS = (FOREIGN / name for name in ("mul.r1cs", "p3.ptau", "mul.wtns"))
BEACON = bytes(range(32))


@pytest.fixture(scope="module")
def ceremony(tmp_path_factory):
    """The key without a contribution, with one, and with a beacon behind it."""
    folder = tmp_path_factory.mktemp("ceremony")
    keys = [folder / f"{k}.zkey" for k in range(3)]
    setup_phase2(read_r1cs_system(R1CS), PTAU, keys[0])
    contribute(keys[0], keys[1], "alice", b"entropy")
    apply_beacon(keys[1], keys[2], BEACON, 10, "final")
    return keys


def test_known_values_of_the_randomness():
    """As snarkjs 0.7.6 and ffjavascript give them for these seeds."""
    assert point_bytes.coordinates(hash_to_g2(bytes(range(64))))[0] == int(
        "538674571464570369390525906428040040872251000499217169558159204024435080528189214496667904477755763005185732155862"
    )
    stream = Randomness(bytes(32))
    assert point_bytes.coordinates(stream.g1())[0] == int(
        "226096390287944729060674765850761795051305207434368996301798632038309642154093202563530850338449199293648326621747"
    )
    assert hex(stream.fr()) == "0x2c80a83b93d1d3f07418997380b80a8a8ca36500c995736a484c788abe6d3b8b"


def test_a_contribution_makes_a_key_and_the_checks_hold(ceremony, capsys):
    assert "contribution" in weaknesses(read_any_vk(ceremony[0]))[0]
    for number, path in enumerate(ceremony[1:], 1):
        assert weaknesses(read_any_vk(path)) == []
        chain = check_contributions(path)
        assert [c.name for c in chain.contributions] == ["alice", "final"][:number]
        check_against_start(path, R1CS, PTAU)
        key = load_key(path, R1CS)
        made = prove(key, open_witness(WTNS)(key))
        assert Verifier(read_any_vk(path)).accepts(made.proof, made.public)
        assert main(["key", "verify", str(path), "--r1cs", str(R1CS), "--ptau", str(PTAU), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["valid"] and found["untested_wires"] == 0 and len(found["contributions"]) == number
    assert main(["key", "verify", str(ceremony[0]), "--json"]) == 6
    assert not json.loads(capsys.readouterr().out)["valid"]


def test_the_command_line_contributes_and_ends_with_a_beacon(ceremony, tmp_path, capsys):
    one, two = tmp_path / "one.zkey", tmp_path / "two.zkey"
    assert main(["key", "contribute", str(ceremony[0]), "-o", str(one), "--name", "böb", "--entropy", "x", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["contribution_hash"] == check_contributions(one).contributions[0].digest().hex()
    assert main(["key", "beacon", str(one), "-o", str(two), "--beacon", BEACON.hex(), "--iterations", "10"]) == 0
    assert [c.name for c in check_contributions(two).contributions] == ["böb", ""]
    for wrong in (["--beacon", "xyz"], ["--beacon", ""], ["--beacon", "00", "--iterations", "9"], ["--beacon", "00" * 256]):
        assert main(["key", "beacon", str(one), "-o", str(tmp_path / "no.zkey"), *wrong]) == 2
    assert main(["key", "contribute", str(one), "-o", str(tmp_path / "no.zkey"), "--name", "n" * 65]) == 2
    assert main(["key", "contribute", str(one), "-o", str(one)]) == 2
    assert not (tmp_path / "no.zkey").exists()


def test_two_contributions_are_never_alike(ceremony, tmp_path):
    for k in range(2):
        contribute(ceremony[0], tmp_path / f"{k}.zkey", "same", b"same")
    assert (tmp_path / "0.zkey").read_bytes() != (tmp_path / "1.zkey").read_bytes()


def test_a_development_key_takes_no_contribution(tmp_path):
    setup_development(read_r1cs_system(R1CS), tmp_path / "dev.zkey")
    with pytest.raises(InputError, match="development key"):
        contribute(tmp_path / "dev.zkey", tmp_path / "out.zkey")


def broken(path, out, section, at, change):
    data = bytearray(path.read_bytes())
    place = ZkeyFile(path).container.section(section).offset + at
    data[place : place + len(change)] = bytes(a ^ b for a, b in zip(data[place:], change, strict=False))
    out.write_bytes(data)


def test_every_byte_of_a_contribution_counts(ceremony, tmp_path):
    """Flip one bit anywhere in section 10 but in a name: no check passes."""
    out = tmp_path / "bad.zkey"
    section = ZkeyFile(ceremony[2]).container.section(10)
    record = 3 * 96 + 192 + 64
    names = [range(68 + record + 8 + 2, 68 + record + 8 + 2 + 5)]
    second = 68 + record + 8 + 7 + record + 8
    names.append(range(second + 2, second + 7))
    for at in range(0, section.size, 17):
        if any(at in name for name in names):
            continue
        broken(ceremony[2], out, 10, at, b"\x01")
        with pytest.raises(InputError):
            check_contributions(out)


@pytest.mark.parametrize("section", (3, 5, 6, 7, 8, 9))
def test_a_key_that_is_not_the_circuits_is_found(ceremony, tmp_path, section):
    """Two points of a list change places, or the only one is doubled: valid points, another key."""
    from cuzk import native

    path, out = ceremony[2], tmp_path / "bad.zkey"
    found = ZkeyFile(path).container.section(section)
    width = 24 if section == 7 else 12
    mont = np.array(found.data.view("<u8").reshape(-1, width))
    row = int(np.argmax(mont.any(axis=1)))
    add = native.g2_add if section == 7 else native.g1_add
    mont[row : row + 1] = add(mont[row : row + 1], mont[row : row + 1])
    data = bytearray(path.read_bytes())
    data[found.offset : found.offset + found.size] = mont.tobytes()
    out.write_bytes(data)
    with pytest.raises(Inconsistent):
        check_against_start(out, R1CS, PTAU)


def test_another_circuit_is_found(ceremony, tmp_path):
    system = read_r1cs_system(R1CS)
    other = replace(system, c=replace(system.c, coef_id=np.array(system.c.coef_id) ^ 1))
    write_r1cs(tmp_path / "other.r1cs", other, R1csFile(R1CS).header)
    with pytest.raises(Inconsistent):
        check_against_start(ceremony[2], tmp_path / "other.r1cs", PTAU)


def test_powers_of_tau_are_checked_in_every_section(tmp_path, capsys):
    from cuzk import native
    from cuzk.groth16.formats.ptau import POINT_BYTES, PtauFile

    assert len(check_ptau(PTAU)) == 9
    assert main(["ptau", "verify", str(PTAU)]) == 0
    assert "names no contribution" in capsys.readouterr().err
    file, out = PtauFile(PTAU), tmp_path / "bad.ptau"
    for section, size in POINT_BYTES.items():
        mont = np.array(file.points(section))
        row = len(mont) - 1 if section < 12 else len(mont) // 2
        add = native.g2_add if size == 192 else native.g1_add
        mont[row : row + 1] = add(mont[row : row + 1], mont[:1])
        found = file.container.section(section)
        data = bytearray(PTAU.read_bytes())
        data[found.offset : found.offset + found.size] = mont.tobytes()
        out.write_bytes(data)
        with pytest.raises(Inconsistent) as caught:
            check_ptau(out)
        assert caught.value.section is not None, section


def test_a_section_of_contributions_that_is_cut_is_refused(ceremony, tmp_path):
    found = ZkeyFile(ceremony[1]).container.section(10)
    head = ceremony[1].read_bytes()[: found.offset - 8]
    for size in range(0, found.size, 11):
        out = tmp_path / "cut.zkey"
        out.write_bytes(head + struct.pack("<Q", size) + found.data[:size].tobytes())
        with pytest.raises(InputError):
            read_contributions(ZkeyFile(out))
