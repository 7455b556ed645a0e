"""Templates whose copies choose some of the shared variables for themselves: the same as full emission, in every use."""

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.algebra import Scalars
from cuzk.circuits.emitter import Emitter, Library
from cuzk.circuits.gadgets.boolean import bit, xor
from cuzk.circuits.gadgets.number import pack, pack_into_input
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.template import build_template, parameter_bits
from cuzk.circuits.witness import build_witness
from cuzk.errors import FormatError
from cuzk.groth16.formats.template import load_template, save_template
from cuzk.groth16.formats.template_arrays import read_template, template_arrays, template_metadata
from cuzk.groth16.setup.sums import column_sums
from cuzk.groth16.template.system import TemplateSystem
from cuzk.groth16.template.walker import TemplateWalker
from tests.unit.circuits.test_template import assert_equals_full_emission

COPIES, PARAMETERS, SHARED_BITS = 3, 2, 0b1101101


def prefix(cs):
    """Seven bits, of which copy i uses the 2i-th and the next; their number is an input and is hashed."""
    bits = [bit(cs, None if cs.algebra is None else cs.ones * (SHARED_BITS >> k & 1)) for k in range(7)]
    number = pack(cs, bits)
    pack_into_input(cs, bits)
    return bits, poseidon(cs, [number, pack(cs, bits[:3])])


def body(cs, shared, own):
    bits, hashed = shared
    mixed = xor(cs, own[0], xor(cs, own[1], bits[6]))
    pack_into_input(cs, [mixed, own[0]])
    poseidon(cs, [hashed, pack(cs, [mixed, *own])])


def parameters(cs):
    values = None
    if cs.algebra is not None:
        values = [sum((SHARED_BITS >> (2 * i + p) & 1) << i for i in range(COPIES)) for p in range(PARAMETERS)]
    return parameter_bits(PARAMETERS, values)


def copy_body(cs, shared):
    body(cs, shared, parameters(cs))


def template():
    library = Library()

    def choices(shared):
        return np.array([[shared[0][2 * i + p].var for p in range(PARAMETERS)] for i in range(COPIES)])

    return build_template("chosen", COPIES, prefix, copy_body, library, choices=choices), library


def full(algebra=None):
    cs = Emitter(inline=True, algebra=algebra)
    shared = prefix(cs)
    for i in range(COPIES):
        body(cs, shared, shared[0][2 * i : 2 * i + 2])
    return cs


@pytest.fixture(scope="module")
def made():
    t, library = template()
    return t, build_witness(t, library, prefix, copy_body)


def test_equals_full_emission():
    assert_equals_full_emission(template()[0], full())


def test_values_equal_those_of_integers(made):
    t, witness = made
    cs = full(Scalars())
    assert [int.from_bytes(row.tobytes(), "little") for row in witness.expand_std()] == cs.input_values + cs.aux_values
    assert TemplateWalker(t).first_unsatisfied(witness) == -1


def test_products_and_counts_equal_those_of_the_expanded_rows(made):
    t, witness = made
    system, w = TemplateSystem(t).expanded(), native.fr_from_std(witness.expand_std())
    for i, matrix in enumerate((system.a, system.b, system.c)):
        got = native.matvec_csr(matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont, w)
        assert np.array_equal(got, TemplateWalker(t).product(i, witness)[: len(got)])
    for m in (0, 1):
        assert t.used_wires(m).tolist() == system.used_wires(m).tolist()
    assert t.densities() == system.densities() and t.nonzeros() == system.nonzeros()


def test_setup_adds_up_the_same_columns(made):
    t, _ = made
    rows = native.fr_powers_mont(native.root_of_unity_mont(9), t.n_rows)
    sums = [column_sums(s, lambda a, b: rows[a:b], lambda *_: None) for s in (TemplateSystem(t), TemplateSystem(t).expanded())]
    for one, other in zip(*sums, strict=True):
        assert np.array_equal(one, other)


def test_files_keep_the_choices(tmp_path, made):
    t, _ = made
    path = tmp_path / "chosen.tpl"
    save_template(t, path)
    assert load_template(path).is_equal(t)
    other = np.array(t.choices)
    other[2, 1] = t.shared
    save_template(type(t)(t.prefix, t.body, t.copies, t.coefficients_mont, t.name, other), path)
    with pytest.raises(FormatError, match="parameter is outside"):
        load_template(path)


def test_mapped_arrays_keep_the_choices(tmp_path, made):
    from cuzk.groth16.formats.mapped import MappedFile, write_mapped

    t, _ = made
    system = TemplateSystem(t)
    counts = {"n_wires": system.n_wires, "n_public": system.n_public, "n_constraints": system.n_constraints}
    write_mapped(tmp_path / "m", b"cuzk-tst", {"template": template_metadata(t), **counts}, template_arrays(t))
    assert read_template(MappedFile(tmp_path / "m", b"cuzk-tst", "a test")).template.is_equal(t)
