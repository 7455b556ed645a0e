"""Setup and conversion: byte-identical files where the secrets are known, and equal proofs from every form of a key."""

import numpy as np
import pytest

from cuzk.circuits.builtin.registry import builtin
from cuzk.errors import InputError
from cuzk.groth16 import transforms
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, matrix_from_rows
from cuzk.groth16.convert import convert, optimise, verifying_key_digest
from cuzk.groth16.field import FR_MODULUS, fr_array
from cuzk.groth16.formats.params import ParamsFile
from cuzk.groth16.formats.r1cs import R1csHeader, write_r1cs
from cuzk.groth16.formats.wtns import WtnsFile
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.inspect import inspect
from cuzk.groth16.key import QUOTIENTS
from cuzk.groth16.load import load_key, read_r1cs_system
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove
from cuzk.groth16.setup.development import setup_development

BLINDING = Blinding(11, 22, private=False)


def values_of(circuit):
    return WtnsFile(circuit.path("wtns")).values


@pytest.mark.parametrize("name", ("mul", "chain1k"))
def test_params_are_byte_identical_to_bellmans(circuits, name, tmp_path):
    circuit, out = circuits[name], tmp_path / "key.params"
    secrets, _, _ = circuit.bellman()
    setup_development(read_r1cs_system(circuit.path("r1cs")), out, secrets, mark=False)
    assert out.read_bytes() == circuit.path("params").read_bytes()


@pytest.mark.parametrize("name", ("mul", "chain1k"))
def test_every_quotient_of_a_ckey_gives_bellmans_proof(circuits, name, tmp_path):
    circuit, out = circuits[name], tmp_path / "key.ckey"
    secrets, blinding, expected = circuit.bellman()
    setup_development(read_r1cs_system(circuit.path("r1cs")), out, secrets)
    key = load_key(out)
    assert key.quotients == QUOTIENTS and key.development
    for quotient in QUOTIENTS:
        made = prove(key, values_of(circuit), quotient, blinding)
        assert made.proof.to_bytes() == expected and made.quotient == quotient


@pytest.mark.parametrize("name", ("mul", "chain1k", pytest.param("checked16k", marks=pytest.mark.slow)))
def test_optimised_zkey_gives_the_known_proof_under_every_quotient(circuits, name, tmp_path):
    """In checked16k the H points are not exactly Lagrange (the powers of tau end one short): all forms agree even so."""
    circuit, out = circuits[name], tmp_path / "key.ckey"
    optimise(load_key(circuit.path("zkey"), circuit.path("r1cs")), out, QUOTIENTS)
    key = load_key(out)
    assert key.root == 5 and not key.development
    for quotient in QUOTIENTS:
        made = prove(key, values_of(circuit), quotient, circuit.kat_blinding())
        assert made.proof.to_dict() == circuit.kat()["proof"]


def test_optimised_params_give_bellmans_proof_under_every_quotient(circuits, tmp_path):
    circuit, out = circuits["mul"], tmp_path / "key.ckey"
    _, blinding, expected = circuit.bellman()
    assert optimise(load_key(circuit.path("params"), circuit.path("r1cs")), out) == QUOTIENTS
    key = load_key(out)
    for quotient in QUOTIENTS:
        assert prove(key, values_of(circuit), quotient, blinding).proof.to_bytes() == expected
    convert(key, tmp_path / "again.params")
    assert (tmp_path / "again.params").read_bytes() == circuit.path("params").read_bytes()


def test_zkey_comes_back_from_a_ckey_unchanged(circuits, tmp_path):
    circuit = circuits["mul"]
    optimise(load_key(circuit.path("zkey"), circuit.path("r1cs")), tmp_path / "key.ckey", ("odd-coset",))
    convert(load_key(tmp_path / "key.ckey"), tmp_path / "again.zkey")
    first, again = (ZkeyFile(path).container for path in (circuit.path("zkey"), tmp_path / "again.zkey"))
    for section in range(1, 10):
        assert first.section(section).data.tobytes() == again.section(section).data.tobytes()


def test_ckey_holds_only_what_was_asked_for(circuits, tmp_path):
    circuit, out = circuits["chain1k"], tmp_path / "key.ckey"
    setup_development(read_r1cs_system(circuit.path("r1cs")), out, quotients=("c-free",))
    key = load_key(out)
    assert key.quotients == ("c-free",)
    prove(key, values_of(circuit))
    for quotient in ("odd-coset", "bellman"):
        with pytest.raises(InputError, match="key optimise"):
            prove(key, values_of(circuit), quotient)


@pytest.mark.parametrize(("suffix", "quotients"), (("zkey", ("c-free", "bellman")), ("params", ("c-free", "odd-coset"))))
def test_missing_quotient_names_the_way_out(circuits, suffix, quotients):
    key = load_key(circuits["mul"].path(suffix), circuits["mul"].path("r1cs"))
    for quotient in quotients:
        with pytest.raises(InputError, match="cuzk key optimise"):
            key.require_quotient(quotient)


def test_impossible_conversions_are_refused_with_the_reason(circuits, tmp_path):
    circuit = circuits["mul"]
    zkey = load_key(circuit.path("zkey"), circuit.path("r1cs"))
    params = load_key(circuit.path("params"), circuit.path("r1cs"))
    for key, name in ((zkey, "out.params"), (params, "out.zkey")):
        with pytest.raises(InputError, match="root of unity"):
            convert(key, tmp_path / name)
    with pytest.raises(InputError, match="needs the matrix C"):
        optimise(load_key(circuit.path("zkey")), tmp_path / "out.ckey")
    assert not list(tmp_path.iterdir())


def test_conversion_checks_notice_a_wrong_point(circuits):
    key = load_key(circuits["mul"].path("zkey"), circuits["mul"].path("r1cs"))
    h = np.array(key.h_odd)
    monomial = transforms.monomial_from_odd(h, 5)
    transforms.check_forms_agree(h, monomial, 5)
    with pytest.raises(InputError, match="do not agree"):
        transforms.check_forms_agree(h, monomial[::-1].copy(), 5)
    # The other root gives other points: the check knows.
    with pytest.raises(InputError, match="do not agree"):
        transforms.check_forms_agree(h, transforms.monomial_from_odd(h, 7), 5)


@pytest.mark.parametrize("suffix", (".zkey", ".params", ".ckey"))
def test_development_keys_say_so(circuits, tmp_path, suffix):
    out = tmp_path / f"key{suffix}"
    setup_development(read_r1cs_system(circuits["mul"].path("r1cs")), out)
    assert load_key(out, circuits["mul"].path("r1cs")).development
    assert inspect(out)["development"] is True


@pytest.mark.parametrize("name", ("mimc", "bits"))
@pytest.mark.parametrize("n", (1, 2, 126, 127, 1021, 1022))
def test_builtin_circuits_prove_at_any_size(tmp_path, name, n):
    """Around domain borders: rows + 2 is 2^k − …, 2^k, 2^k + 1."""
    family, tiling = builtin(name, n)
    setup_development(tiling.system(), tmp_path / "key.ckey")
    key = load_key(tmp_path / "key.ckey")
    assert key.domain >= n + 2 > key.domain // 2 or n == 1
    values = np.concatenate(list(family.witness(tiling, seed=3)))
    proofs = [prove(key, values, quotient, BLINDING).proof for quotient in QUOTIENTS]
    assert proofs[0] == proofs[1] == proofs[2]


def system_of(rows, n_wires, n_public):
    """A system from rows of three {wire: coefficient} lists; lists of pairs keep repeats."""
    table = CoefficientTable("std")
    matrices = []
    for number in range(3):
        terms = [(k, wire, value % FR_MODULUS) for k, row in enumerate(rows) for wire, value in row[number]]
        row = np.array([t[0] for t in terms], dtype=np.uint32)
        col = np.array([t[1] for t in terms], dtype=np.uint32)
        ids = table.number(fr_array([t[2] for t in terms])) if terms else np.zeros(0, np.uint32)
        matrices.append(matrix_from_rows(len(rows), row, col, ids))
    return ConstraintSystem(n_wires, n_public, len(rows), table, *matrices)


# (x + x)·(2y − y − y + 3z) = 6·w with x = 2, y = 9, z = 5, w = 10; wire 5 appears in a sum that cancels, wire 6 nowhere.
REPEATS = [([(1, 1), (1, 1)], [(2, 2), (2, -1), (2, -1), (3, 3), (5, 4), (5, -4)], [(4, 6)])]
REPEATS_WITNESS = [1, 2, 9, 5, 10, 7, 8]


@pytest.mark.parametrize("n_public", (0, 1, 3))
@pytest.mark.parametrize("suffix", (".zkey", ".ckey"))
def test_repeated_cancelling_and_unused_wires(tmp_path, n_public, suffix):
    system = system_of(REPEATS, 7, n_public)
    setup_development(system, tmp_path / f"key{suffix}")
    key = load_key(tmp_path / f"key{suffix}")
    proofs = [prove(key, fr_array(REPEATS_WITNESS), q, BLINDING).proof for q in key.quotients]
    assert all(proof == proofs[0] for proof in proofs)


def test_params_refuse_a_wire_without_constraint(tmp_path):
    with pytest.raises(InputError, match="wire 2 appears in no constraint"):
        setup_development(system_of(REPEATS, 7, 0), tmp_path / "key.params")
    assert not list(tmp_path.iterdir())


def test_params_merge_repeats_and_drop_zero_sums(tmp_path):
    """Wires 2 and 5 cancel in B, so bellman's lists must not hold them although they are written there."""
    rows = [*REPEATS, ([(2, 1)], [(0, 1)], [(2, 1)]), ([(5, 1)], [(0, 1)], [(5, 1)])]
    system = system_of(rows, 6, 1)
    setup_development(system, tmp_path / "key.params")
    counts = {name: part.count for name, part in ParamsFile(tmp_path / "key.params").lists.items()}
    # A: ONE and wire 1 (input rows), 2, 5. B: 3 of the first row, 0 of the others.
    assert counts == {"h": 7, "l": 4, "a": 4, "b_g1": 2, "b_g2": 2}


def test_merging_is_exact():
    merged = system_of(REPEATS, 7, 0).merged()
    assert merged.a.col.tolist() == [1] and merged.b.col.tolist() == [3] and merged.c.col.tolist() == [4]
    values = [int.from_bytes(merged.table.values[m.coef_id[0]].tobytes(), "little") for m in (merged.a, merged.b, merged.c)]
    assert values == [2, 3, 6]


def test_a_ckey_records_its_origin(circuits, tmp_path):
    circuit = circuits["mul"]
    source = load_key(circuit.path("zkey"), circuit.path("r1cs"))
    optimise(source, tmp_path / "key.ckey")
    origin = inspect(tmp_path / "key.ckey")["origin"]
    assert (origin["from"], origin["name"]) == ("zkey", "mul.zkey")
    assert origin["verifying_key_blake2b"] == verifying_key_digest(source)
    assert origin["verifying_key_blake2b"] == verifying_key_digest(load_key(tmp_path / "key.ckey"))


@pytest.mark.parametrize("n_public", (0, 2))
def test_a_circuit_without_constraints(tmp_path, n_public):
    """Nothing to show but the public signals: the rows of the inputs are all there is."""
    system = system_of([], n_public + 1, n_public)
    write_r1cs(tmp_path / "c.r1cs", system, R1csHeader(n_public + 1, 0, n_public, 0, n_public + 1, 0))
    read = read_r1cs_system(tmp_path / "c.r1cs")
    assert (read.n_constraints, read.n_wires, read.a.rows) == (0, n_public + 1, 0)
    witness = fr_array([1, 5, 6][: n_public + 1])
    for suffix in (".zkey", ".ckey", ".params"):
        setup_development(read, tmp_path / f"k{suffix}")
        key = load_key(tmp_path / f"k{suffix}", tmp_path / "c.r1cs")
        for quotient in key.quotients:
            assert prove(key, witness, quotient).public == [5, 6][:n_public]
