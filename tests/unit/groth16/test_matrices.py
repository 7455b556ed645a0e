"""Matrix files, coefficient numbering, and the two CSR formats."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk import native
from cuzk.errors import FormatError, InputError
from cuzk.groth16.combine import combine
from cuzk.groth16.constraints import CoefficientTable, matrix_from_rows
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, fr_ints
from cuzk.groth16.formats.matrices import read_pce, write_pce
from cuzk.groth16.formats.wtns import WtnsFile
from cuzk.groth16.load import load_key, read_r1cs_system
from cuzk.groth16.prover.run import prove

SCALARS = st.one_of(st.sampled_from([0, 1, 2, FR_MODULUS - 1, FR_MODULUS - 2]), st.integers(0, FR_MODULUS - 1))


@settings(deadline=None)
@given(st.lists(st.lists(SCALARS, max_size=30), max_size=4))
def test_numbering_is_exact_and_stable(chunks):
    table, ids = CoefficientTable("std"), []
    for chunk in chunks:
        if chunk:
            ids += table.number(fr_array(chunk)).tolist()
    values = [v for chunk in chunks for v in chunk]
    assert [fr_ints(table.values)[i] for i in ids] == values
    assert all(i == 0 for i, v in zip(ids, values, strict=True) if v == 1)
    assert all(i == 1 for i, v in zip(ids, values, strict=True) if v == FR_MODULUS - 1)
    # In order of first appearance, whatever the random hash was.
    seen = list(dict.fromkeys([1, FR_MODULUS - 1, *values]))
    assert fr_ints(table.values) == seen


def test_colliding_hashes_cost_time_and_nothing_else(monkeypatch):
    table = CoefficientTable("std")
    calls = iter(range(100))
    honest = CoefficientTable._hash
    monkeypatch.setattr(
        CoefficientTable,
        "_hash",
        lambda self, values: np.zeros(len(values), np.uint64) if next(calls) < 4 else honest(self, values),
    )
    ids = table.number(fr_array([5, 6, 7, 5]))
    assert [fr_ints(table.values)[i] for i in ids] == [5, 6, 7, 5]


def products(system, values):
    w = native.fr_from_std(values)
    found = []
    for matrix in (system.a, system.b, system.c):
        found.append(native.matvec_csr(matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont, w))
    return found


@pytest.mark.parametrize("name", ("mul", "chain1k", "checked16k"))
def test_pce_gives_the_same_products(circuits, name, tmp_path):
    circuit = circuits[name]
    system = read_r1cs_system(circuit.path("r1cs"))
    write_pce(tmp_path / "m.pce", system)
    values = WtnsFile(circuit.path("wtns")).values
    for mine, theirs in zip(products(read_pce(tmp_path / "m.pce"), values), products(system, values), strict=True):
        rows = min(len(mine), len(theirs))
        assert np.array_equal(mine[:rows], theirs[:rows])


def test_products_equal_plain_integers(circuits):
    system = read_r1cs_system(circuits["chain1k"].path("r1cs"))
    values = WtnsFile(circuits["chain1k"].path("wtns")).values
    w, table = fr_ints(values), fr_ints(system.table.values)
    found = products(system, values)
    for matrix, vector in zip((system.a, system.b, system.c), found, strict=True):
        got = fr_ints(native.fr_to_std(vector))
        for row in range(0, matrix.rows, 97):
            terms = range(int(matrix.row_ptr[row]), int(matrix.row_ptr[row + 1]))
            assert got[row] == sum(table[matrix.coef_id[k]] * w[matrix.col[k]] for k in terms) % FR_MODULUS
    assert np.array_equal(native.fr_mul(found[0], found[1]), found[2])


def curio_file(system, padded, input_rows) -> bytes:
    """The format of curio's prover, written from its description."""
    inputs = system.n_public + 1
    full = system.with_input_rows() if input_rows else system
    body, total = b"", 0
    for matrix in (full.a, full.b, full.c):
        row_ptr = np.full(full.a.rows + 1, matrix.nonzeros, dtype="<u4")
        row_ptr[: matrix.rows + 1] = matrix.row_ptr
        values = full.table_mont[matrix.coef_id]
        for array in (row_ptr, matrix.col.astype("<u4"), values):
            body += struct.pack("<Q", len(array)) + array.tobytes()
        total += matrix.nonzeros
    head = b"PCE\x02" + struct.pack("<IIII", 2, inputs, system.n_wires - inputs, full.a.rows)
    head += struct.pack("<IQ", 0, total) if padded else struct.pack("<QI", total, 0)
    return head + body + bytes(16)


@pytest.mark.parametrize("padded", (True, False))
@pytest.mark.parametrize("input_rows", (True, False))
def test_curio_matrices_prove_with_bellman_parameters(circuits, tmp_path, padded, input_rows):
    circuit = circuits["chain1k"]
    _, blinding, expected = circuit.bellman()
    path = tmp_path / "chain.pce"
    path.write_bytes(curio_file(read_r1cs_system(circuit.path("r1cs")), padded, input_rows))
    key = load_key(circuit.path("params"), path)
    assert prove(key, WtnsFile(circuit.path("wtns")).values, blinding=blinding).proof.to_bytes() == expected


def test_broken_curio_matrices_are_refused(circuits, tmp_path):
    data = curio_file(read_r1cs_system(circuits["mul"].path("r1cs")), True, True)
    path = tmp_path / "m.pce"
    for cut in range(len(data) - 16):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError):
            read_r1cs_system(path)
    for at in range(4, len(data) - 16, 4):
        path.write_bytes(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
        try:
            read_r1cs_system(path)
        except FormatError as error:
            assert str(path) in str(error)


def test_montgomery_table_of_each_form():
    values = [1, FR_MODULUS - 1, 5]
    mont = [v * FR_R % FR_MODULUS for v in values]
    standard, double = CoefficientTable("std"), CoefficientTable("mont2")
    standard.number(fr_array([5]))
    double.number(fr_array([5 * FR_R * FR_R % FR_MODULUS]))
    for table in (standard, double, CoefficientTable.from_mont(fr_array(mont))):
        assert fr_ints(table.mont()) == mont


@pytest.mark.parametrize("group", (1, 2))
def test_rows_combined_by_msm_equal_rows_combined_term_by_term(group):
    """Rows of 0, 1, 31 … 80 terms, some all ±1, some wide: against the multiples that the scalars say."""
    rng = np.random.default_rng(5)
    lengths = [0, 1, 31, 32, 33, 80, 50, 2]
    row = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    values = [int(v) for v in rng.integers(2, 2**60, size=len(row))]
    values[sum(lengths[:6]) :] = [1, FR_MODULUS - 1] * (len(row) - sum(lengths[:6]))
    values = values[: len(row)]
    table = CoefficientTable("std")
    matrix = matrix_from_rows(
        len(lengths), row, rng.integers(0, 20, size=len(row)).astype(np.uint32), table.number(fr_array(values))
    )
    scalars = [int(v) for v in rng.integers(1, 2**60, size=20)]
    multiply = native.fixed_base_g1 if group == 1 else native.fixed_base_g2
    points = multiply(fr_array(scalars))
    sums = [0] * len(lengths)
    for k, value in zip(row, zip(values, matrix.col, strict=True), strict=True):
        sums[k] = (sums[k] + value[0] * scalars[value[1]]) % FR_MODULUS
    expected = multiply(fr_array(sums))
    assert np.array_equal(combine(matrix, table.mont(), points, 0, len(lengths)), expected)
    assert np.array_equal(combine(matrix, table.mont(), points, 3, 6), expected[3:6])
