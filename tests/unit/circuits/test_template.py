"""Templates: the same system as full emission, products against Python integers, files that are cut or wrong."""

import random

import numpy as np
import pytest

from cuzk.circuits.algebra import Scalars
from cuzk.circuits.emitter import Emitter, Gadget, Library
from cuzk.circuits.field import MODULUS, from_mont
from cuzk.circuits.gadgets.boolean import bit, xor
from cuzk.circuits.gadgets.number import insert, pack, pack_into_input
from cuzk.circuits.gadgets.poseidon import poseidon
from cuzk.circuits.porep.circuit import emit_partition
from cuzk.circuits.porep.shape import SHAPES, Shape
from cuzk.circuits.porep.template import porep_template
from cuzk.circuits.template import build_template
from cuzk.circuits.witness import build_witness
from cuzk.errors import FormatError
from cuzk.groth16.formats.template import load_template, save_template
from cuzk.groth16.template.system import TemplateSystem
from cuzk.groth16.template.walker import TemplateWalker


def values_of(limbs):
    return [from_mont(int.from_bytes(row.tobytes(), "little")) for row in limbs]


def assert_equals_full_emission(template, cs):
    """`cs`: the whole partition, every gadget in full."""
    assert (template.n_constraints, template.n_inputs, template.n_aux) == (cs.n_rows, cs.n_inputs, cs.n_aux)
    ours = np.array(values_of(template.coefficients_mont), object)
    theirs = np.array(cs.library.coefficients.values, object)
    for m in range(3):
        row_ptr, wires, ids = template.expand(m)
        lens, cols, full_ids = cs.matrices[m].joined()
        last = int(row_ptr[cs.n_rows])
        assert np.array_equal(np.diff(row_ptr[: cs.n_rows + 1].astype(np.int64)), lens)
        assert np.array_equal(wires[:last], np.where(cols < 0, ~cols, cols + template.n_inputs))
        assert (ours[ids[:last]] == theirs[full_ids]).all()
        # then the rows of the inputs: in A alone
        assert wires[last:].tolist() == (list(range(cs.n_inputs)) if m == 0 else [])
    masks = [template.prefix.field_aux, *[template.body.field_aux] * template.copies]
    assert np.array_equal(np.concatenate(masks), cs.field_mask())


def small_body(cs, shared):
    """A body that uses everything: shared variables, its own bits, field elements, an input, a stamped gadget."""
    values = (lambda v: None) if cs.algebra is None else (lambda v: v)
    x, y = bit(cs, values(cs.ones)), bit(cs, values(0))
    z = xor(cs, x, xor(cs, y, shared[1]))
    number = pack(cs, [x, y, z])
    pack_into_input(cs, [z, x])
    pair = insert(cs, number, [z], [shared[0]])
    for _ in range(2):
        pair = [poseidon(cs, pair), pair[0]]


def small_prefix(cs):
    a = cs.num(None if cs.algebra is None else cs.algebra.combine([], 12345))
    return a, bit(cs, None if cs.algebra is None else cs.ones)


def small_template(copies=3):
    library = Library()
    return build_template("small", copies, small_prefix, small_body, library), library


def test_small_template_equals_full_emission():
    template, _ = small_template()
    cs = Emitter(inline=True)
    shared = small_prefix(cs)
    for _ in range(3):
        small_body(cs, shared)
    assert_equals_full_emission(template, cs)


def test_porep_template_equals_full_emission_of_a_small_tree():
    shape = Shape("test", (2, 2, 2), layers=2, challenges=1, partitions=1)
    cs = Emitter(inline=True)
    emit_partition(cs, shape)
    assert_equals_full_emission(porep_template(shape), cs)


@pytest.mark.slow
def test_porep_template_equals_full_emission_at_2_kib():
    cs = Emitter(inline=True)
    emit_partition(cs, SHAPES[0])
    assert_equals_full_emission(porep_template(SHAPES[0]), cs)


@pytest.mark.slow
def test_porep_template_equals_full_emission_of_one_challenge_at_32_gib():
    """Part by part, from the recorded chunks: in full emission a challenge is a few gigabytes of Python numbers, so it
    is recorded in the template's own way and compared there."""
    stamped = porep_template(SHAPES[3])
    full = porep_template(SHAPES[3], inline=True)
    assert stamped.body.rows == full.body.rows
    ours, theirs = (np.array(values_of(t.coefficients_mont), object) for t in (stamped, full))
    assert set(ours) == set(theirs)
    position = {v: i for i, v in enumerate(ours)}
    renumber = np.array([position[v] for v in theirs], np.uint16)
    for p, q in ((stamped.prefix, full.prefix), (stamped.body, full.body)):
        assert np.array_equal(p.field_aux, q.field_aux)
        for m, n in zip(p.matrices, q.matrices, strict=True):
            assert np.array_equal(m.row_ptr, n.row_ptr)
            assert np.array_equal(m.col, n.col)
            assert np.array_equal(m.coef_id, renumber[n.coef_id])


def small_witness():
    template, library = small_template()
    return template, build_witness(template, library, small_prefix, small_body)


def test_witness_expands_to_the_scalar_values():
    _, witness = small_witness()
    cs = Emitter(algebra=Scalars())
    shared = small_prefix(cs)
    for _ in range(3):
        small_body(cs, shared)
    std = [int.from_bytes(row.tobytes(), "little") for row in witness.expand_std()]
    assert std == cs.input_values + cs.aux_values
    assert witness.ones_share() == pytest.approx(
        sum(1 for v, f in zip(cs.aux_values, cs.field_mask(), strict=True) if v == 1 and not f) / len(std)
    )


def plain_product(template, matrix, wires):
    row_ptr, col, ids = template.expand(matrix)
    k = values_of(template.coefficients_mont)
    return [
        sum(k[i] * wires[c] for c, i in zip(col[a:b], ids[a:b], strict=True)) % MODULUS
        for a, b in zip(row_ptr[:-1].tolist(), row_ptr[1:].tolist(), strict=True)
    ]


def test_products_of_the_walker_equal_plain_integers():
    template, witness = small_witness()
    wires = [int.from_bytes(row.tobytes(), "little") for row in witness.expand_std()]
    walker = TemplateWalker(template)
    for matrix in range(3):
        assert values_of(walker.product(matrix, witness, threads=2)) == plain_product(template, matrix, wires)
    assert walker.first_unsatisfied(witness) == -1


@pytest.mark.parametrize("seed", range(3))
def test_products_of_random_witnesses(seed):
    """Not a satisfying one: any bits, any field elements."""
    template, witness = small_witness()
    rng = np.random.default_rng(seed)
    for bits, mask in ((witness.prefix_bits, template.prefix.field_aux), (witness.body_bits, template.body.field_aux)):
        random_bits = rng.integers(0, 2, (len(bits), 64 * bits.shape[1]), np.uint8)
        random_bits[:, len(mask) :] = 0
        random_bits[:, : len(mask)][:, mask] = 0
        bits[:] = np.packbits(random_bits, axis=1, bitorder="little").view(np.uint64)
    numbers = random.Random(seed)
    for fields in (witness.prefix_fields_mont, witness.body_fields_mont):
        for row in fields.reshape(-1, 4):
            row[:] = np.frombuffer(numbers.randrange(MODULUS).to_bytes(32, "little"), np.uint64)
    wires = [int.from_bytes(row.tobytes(), "little") for row in witness.expand_std()]
    walker = TemplateWalker(template)
    for matrix in range(3):
        assert values_of(walker.product(matrix, witness)) == plain_product(template, matrix, wires)
    assert walker.first_unsatisfied(witness) >= 0


def test_system_for_the_prover_has_the_same_products():
    from cuzk import native

    template, witness = small_witness()
    system = TemplateSystem(template).expanded()
    w = native.fr_from_std(witness.expand_std())
    walker = TemplateWalker(template)
    for i, matrix in enumerate((system.a, system.b, system.c)):
        got = native.matvec_csr(matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont, w)
        assert np.array_equal(got, walker.product(i, witness)[: len(got)])
    assert system.merged() is system
    assert (1 << system.log_domain) >= template.n_rows > 1 << (system.log_domain - 1)


def test_densities_count_what_full_matrices_hold():
    template, _ = small_template()
    inputs = template.n_inputs
    a, b = (np.unique(template.expand(m)[1]) for m in (0, 1))
    expected = (int((a >= inputs).sum()), int((b < inputs).sum()), int((b >= inputs).sum()))
    assert template.densities() == expected
    assert template.used_wires(0).tolist() == a.tolist() and template.used_wires(1).tolist() == b.tolist()
    system = TemplateSystem(template)
    for each in (system, system.expanded()):
        assert each.used_wires(0).tolist() == a.tolist() and each.used_wires(1).tolist() == b.tolist()
        assert each.densities() == expected and each.nonzeros() == template.nonzeros()
    assert len(template.expand(0)[1]) == template.nonzeros()[0]


def test_a_gadget_that_allocates_inputs_cannot_be_stamped():
    gadget = Gadget("bad", lambda cs, args: [cs.input(None)])
    with pytest.raises(ValueError, match="allocates inputs"):
        Emitter().call(gadget, [])


def test_a_call_with_a_repeated_variable_is_emitted_in_full():
    cs, plain = Emitter(), Emitter(inline=True)
    for emitter in (cs, plain):
        x = emitter.num(None)
        poseidon(emitter, [x, x])
    assert cs.library.blocks == {}
    assert all(np.array_equal(a.joined()[1], b.joined()[1]) for a, b in zip(cs.matrices, plain.matrices, strict=True))


def test_row_names():
    template, _ = small_template()
    assert template.row_name(template.n_constraints) == "row of input 0"
    assert template.row_name(template.prefix.rows + template.body.rows - 1).startswith("challenge 0")
    assert template.row_name(template.n_constraints - 1) == "challenge 2 / Poseidon"


def test_file_gives_the_same_template(tmp_path):
    template, _ = small_template()
    path = tmp_path / "small.tpl"
    save_template(template, path)
    loaded = load_template(path)
    assert (loaded.name, loaded.copies, loaded.n_rows) == ("small", 3, template.n_rows)
    for m in range(3):
        for x, y in zip(loaded.expand(m), template.expand(m), strict=True):
            assert np.array_equal(x, y)
    assert np.array_equal(loaded.coefficients_mont, template.coefficients_mont)
    assert np.array_equal(loaded.body.field_aux, template.body.field_aux)
    assert [p.name for p in tmp_path.iterdir()] == ["small.tpl"]


def test_files_that_are_cut_anywhere_or_longer_are_refused(tmp_path):
    template, _ = small_template()
    path, cut = tmp_path / "small.tpl", tmp_path / "cut.tpl"
    save_template(template, path)
    whole = path.read_bytes()
    rng = random.Random(1)
    for n in [0, 1, 7, 15, 16, 40, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(40))]:
        cut.write_bytes(whole[:n])
        with pytest.raises(FormatError, match=r"cut\.tpl"):
            load_template(cut)
    cut.write_bytes(whole + b"\0")
    with pytest.raises(FormatError, match="too many"):
        load_template(cut)


def test_files_with_flipped_bytes_are_refused_or_stay_in_range(tmp_path):
    template, _ = small_template()
    path = tmp_path / "small.tpl"
    save_template(template, path)
    whole = path.read_bytes()
    rng = random.Random(2)
    refused = 0
    for _ in range(200):
        broken = bytearray(whole)
        broken[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        try:
            loaded = load_template(path)
        except FormatError:
            refused += 1
            continue
        columns = loaded.body_aux_column + loaded.body.aux
        for part in (loaded.prefix, loaded.body):
            for m in part.matrices:
                assert m.nonzeros == 0 or (m.col.min() >= 0 and m.col.max() < columns)
                assert m.nonzeros == 0 or m.coef_id.max() < len(loaded.coefficients_mont)
    assert refused > 0
