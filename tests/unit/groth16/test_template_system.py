"""A template as the matrices of a key, and witnesses as bits: the same key, the same rows, the same proof as expanded."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from cuzk import native
from cuzk.errors import InputError, ProofInvalid
from cuzk.groth16.ahead import ahead
from cuzk.groth16.formats.ckey import CkeyFile
from cuzk.groth16.formats.template import save_template
from cuzk.groth16.key import QUOTIENTS
from cuzk.groth16.load import load_key
from cuzk.groth16.prover import steps
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove
from cuzk.groth16.prover.state import ProofState
from cuzk.groth16.setup import sums
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.setup.secrets import Secrets
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.system import TemplateSystem
from tests.small_template import small_case

BLINDING = Blinding(11, 22, private=False)


@pytest.fixture(scope="module")
def case():
    template, witness = small_case()
    return TemplateSystem(template), witness


@pytest.fixture(scope="module")
def key_file(case, tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "key.ckey"
    setup_development(case[0], path)
    return path


def test_a_key_of_a_template_proves_under_every_quotient(case, key_file):
    _, witness = case
    key = load_key(key_file)
    assert isinstance(key.system, TemplateSystem)
    forms = (witness, witness.expand_std())
    proofs = {prove(key, values, quotient, BLINDING).proof for quotient in QUOTIENTS for values in forms}
    assert len(proofs) == 1


def test_a_key_of_expanded_rows_takes_bits_too(case, tmp_path):
    system, witness = case
    setup_development(system.expanded(), tmp_path / "key.ckey")
    key = load_key(tmp_path / "key.ckey")
    assert not isinstance(key.system, TemplateSystem)
    made = [prove(key, values, None, BLINDING) for values in (witness, witness.expand_std())]
    assert made[0].proof == made[1].proof and made[0].public == made[1].public


def test_splits_are_those_of_the_expanded_witness(case, key_file):
    _, witness = case
    key = load_key(key_file)
    states = [ProofState(key, "c-free", BLINDING, aux=aux) for aux in (witness, witness.expand_std())]
    for state in states:
        steps.prep_msm(state)
    for name, ours in states[0].splits.items():
        theirs, query = states[1].splits[name], key.query(name, "c-free")
        assert np.array_equal(ours.ones, theirs.ones) and ours.n_ones == theirs.n_ones
        assert np.array_equal(ours.tail_rows, theirs.tail_rows) and np.array_equal(ours.tail_scalars, theirs.tail_scalars)
        # against the values themselves
        values = witness.expand_std()[query.wires_of(np.arange(len(query)))]
        small, finite = ~values[:, 1:].any(axis=1) & (values[:, 0] <= 1), query.points.any(axis=1)
        one = np.unpackbits(ours.ones, count=len(query), bitorder="little").astype(bool)
        assert np.array_equal(one, small & (values[:, 0] == 1) & finite)
        assert np.array_equal(ours.tail_rows, np.flatnonzero(~small & finite))


def test_bits_of_a_field_element_mean_nothing(case):
    _, witness = case
    noisy = witness.copy()
    noisy.body_bits[:] |= np.packbits(np.pad(noisy.template.body.field_aux, (0, 6)), bitorder="little").view(np.uint64)
    for ours, theirs in zip(noisy.classified(), witness.classified(), strict=True):
        assert np.array_equal(ours, theirs)


def test_bits_come_back_from_their_expansion(case):
    _, witness = case
    again = BitWitness.of_std(witness.template, witness.expand_std())
    for name in ("inputs_mont", "prefix_bits", "prefix_fields_mont", "body_bits", "body_fields_mont"):
        assert np.array_equal(getattr(again, name), getattr(witness, name))


def test_a_bit_that_is_no_bit_is_named(case, key_file):
    _, witness = case
    values = witness.expand_std()
    wire = witness.template.n_inputs + witness.template.prefix.aux + 3
    values[wire] = [2, 0, 0, 0]
    with pytest.raises(ProofInvalid, match=f"wire {wire} is a bit"):
        prove(load_key(key_file), values)


def test_a_wrong_bit_ends_with_its_row(case, key_file):
    system, witness = case
    wrong = witness.copy()
    wrong.body_bits[1, 0] ^= np.uint64(1)
    row = system.walker.first_unsatisfied(wrong)
    assert row >= system.template.prefix.rows + system.template.body.rows
    for quotient in ("c-free", "bellman"):
        with pytest.raises(ProofInvalid, match=f"constraint {row} "):
            prove(load_key(key_file), wrong, quotient)


def test_field_elements_above_the_modulus_are_refused(case, key_file):
    wrong = case[1].copy()
    wrong.body_fields_mont[2, 5] = 2**64 - 1
    with pytest.raises(InputError, match="of body_fields of the witness is not below"):
        prove(load_key(key_file), wrong)


def test_a_witness_of_another_number_of_copies_is_refused(key_file):
    with pytest.raises(InputError, match="the witness has"):
        prove(load_key(key_file), small_case(copies=2)[1])


def test_a_witness_of_other_variables_is_refused(case, key_file):
    """As many wires, but another one of them is a field element: its arrays must not be walked by this template."""
    template, witness = case[0].template, case[1]
    flags = template.body.field_aux.copy()
    flags[[0, int(np.flatnonzero(flags)[0])]] = True, False
    other = replace(template, body=replace(template.body, field_aux=flags))
    with pytest.raises(InputError, match="another template"):
        prove(load_key(key_file), replace(witness, template=other))


@pytest.mark.parametrize("suffix", (".ckey", ".params", ".zkey"))
def test_setup_from_a_template_is_setup_from_its_rows(case, tmp_path, suffix):
    system, _ = case
    secrets = Secrets(1234567, 2345678, 3456789, 4567891, 5678912)
    paths = [tmp_path / f"{name}{suffix}" for name in ("template", "rows")]
    for each, path in zip((system, system.expanded()), paths, strict=True):
        setup_development(each, path, secrets)
    if suffix != ".ckey":
        assert paths[0].read_bytes() == paths[1].read_bytes()
        return
    ours, theirs = (CkeyFile(path).mapped for path in paths)
    matrices = {name for name in theirs.names() if name.startswith(("a_r", "a_c", "b_r", "b_c", "c_")) or name == "coef_table"}
    for name in set(theirs.names()) - matrices:
        shape = (-1, -1)[: theirs._arrays[name].ndim]
        kind = f"u{theirs._arrays[name].dtype.itemsize}"
        assert np.array_equal(ours.array(name, kind, shape), theirs.array(name, kind, shape)), name


def test_params_of_a_template_file(case, tmp_path):
    system, witness = case
    save_template(system.template, tmp_path / "c.tpl")
    setup_development(system, tmp_path / "key.params")
    key = load_key(tmp_path / "key.params", tmp_path / "c.tpl")
    assert isinstance(key.system, TemplateSystem)
    prove(key, witness)
    other, _ = small_case(copies=2)
    save_template(other, tmp_path / "other.tpl")
    with pytest.raises(InputError, match="not the parameters of"):
        load_key(tmp_path / "key.params", tmp_path / "other.tpl")


def test_a_template_file_beside_a_key_of_rows(case, tmp_path):
    """A .zkey has no C: its circuit's template gives it."""
    system, witness = case
    save_template(system.template, tmp_path / "c.tpl")
    setup_development(system, tmp_path / "key.zkey")
    key = load_key(tmp_path / "key.zkey", tmp_path / "c.tpl")
    assert isinstance(key.system, TemplateSystem)
    prove(key, witness)
    wrong = witness.copy()
    wrong.body_bits[0, 0] ^= np.uint64(2)
    with pytest.raises(ProofInvalid, match="constraint"):
        prove(key, wrong)


def test_a_template_file_beside_a_key_takes_its_rows_place(case, tmp_path, monkeypatch):
    """Rows give way to the template; an equal template is told without rows; another one is refused by its row."""
    system, _ = case
    save_template(system.template, tmp_path / "c.tpl")
    for name, each in (("rows", system.expanded()), ("template", system)):
        setup_development(each, tmp_path / f"{name}.ckey", quotients=("c-free",))
    assert isinstance(load_key(tmp_path / "rows.ckey", tmp_path / "c.tpl").system, TemplateSystem)
    body = system.template.body
    a = body.matrices[0]
    coef_id = a.coef_id.copy()
    coef_id[3] ^= 1
    wrong = replace(system.template, body=replace(body, matrices=(replace(a, coef_id=coef_id), *body.matrices[1:])))
    save_template(wrong, tmp_path / "wrong.tpl")
    row = system.template.prefix.rows + int(np.searchsorted(a.row_ptr, 3, "right")) - 1
    for name in ("rows", "template"):
        with pytest.raises(InputError, match=rf"matrix A differs in row {row} "):
            load_key(tmp_path / f"{name}.ckey", tmp_path / "wrong.tpl")
    monkeypatch.setattr(TemplateSystem, "expanded", lambda self: pytest.fail("expanded"))
    load_key(tmp_path / "template.ckey", tmp_path / "c.tpl")


def test_long_columns_are_cut_between_threads(case, tmp_path, monkeypatch):
    """However small the pieces, the sums are the same: files of two setups with the same secrets are equal."""
    secrets = Secrets(11, 12, 13, 14, 15)
    setup_development(case[0], tmp_path / "one.params", secrets)
    monkeypatch.setattr(sums, "SEGMENT", 3)
    setup_development(case[0], tmp_path / "two.params", secrets)
    assert (tmp_path / "one.params").read_bytes() == (tmp_path / "two.params").read_bytes()


def test_pieces_ahead():
    assert list(ahead(iter(range(100)), 3)) == list(range(100))

    def failing():
        yield 1
        raise ValueError("the second piece")

    made = ahead(failing())
    assert next(made) == 1
    with pytest.raises(ValueError, match="second piece"):
        next(made)


def test_pieces_ahead_end_with_whoever_asks():
    count = 0

    def endless():
        nonlocal count
        while True:
            count += 1
            yield count

    made = ahead(endless(), 2)
    assert [next(made) for _ in range(5)] == [1, 2, 3, 4, 5]
    made.close()
    threads = [t for t in threading.enumerate() if t.name.startswith("ahead")]
    for thread in threads:
        thread.join(5)
    assert not any(t.is_alive() for t in threads) and count <= 5 + 2 + 2


def test_gathered_bits():
    rng = np.random.default_rng(3)
    flags = rng.integers(0, 2, 1003, np.uint8)
    bits = np.packbits(flags, bitorder="little")
    wires = rng.integers(0, 1003, 501, np.uint32)
    for n, chosen, first in ((501, wires, 0), (990, None, 13), (0, None, 5)):
        want = flags[chosen] if chosen is not None else flags[first : first + n]
        assert np.array_equal(native.gather_bits(bits, n, chosen, first, threads=2), np.packbits(want, bitorder="little"))
    with pytest.raises(IndexError, match="bit 7 of 9"):
        native.gather_bits(bits, 9, None, 8 * len(bits) - 7)
