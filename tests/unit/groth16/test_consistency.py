"""Keys against their circuits: no false alarm on any circuit, every wrong point and coefficient is found, and the party at fault
is named when a proof does not verify.
"""

import struct
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuzk.cli.main import main
from cuzk.errors import FormatError, ProofInvalid
from cuzk.groth16 import consistency
from cuzk.groth16.consistency import Inconsistent, check_key
from cuzk.groth16.constraints import CoefficientTable, ConstraintSystem, matrix_from_rows
from cuzk.groth16.field import FR_MODULUS, fr_array
from cuzk.groth16.formats.r1cs import R1csFile, write_r1cs
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.load import load_key, open_witness, read_r1cs_system
from cuzk.groth16.prover.run import prove
from cuzk.groth16.setup.development import setup_development


@st.composite
def systems(draw):
    """Any small R1CS: empty rows, repeated wires, zero coefficients, more rows than wires."""
    wires = draw(st.integers(2, 6))
    public = draw(st.integers(0, wires - 2))
    rows = draw(st.integers(0, 9))
    table = CoefficientTable("std")
    values = [1, FR_MODULUS - 1, 0, 2, FR_MODULUS - 7, 1 << 200]
    ids = table.number(fr_array(values))
    matrices = []
    for _ in range(3):
        terms = [
            (row, draw(st.integers(0, wires - 1)), int(ids[draw(st.integers(0, len(values) - 1))]))
            for row in range(rows)
            for _ in range(draw(st.integers(0, 3)))
        ]
        columns = np.ascontiguousarray(np.array(terms, dtype=np.uint32).reshape(-1, 3).T)
        matrices.append(matrix_from_rows(rows, *columns))
    return ConstraintSystem(wires, public, rows, table, *matrices)


@settings(max_examples=120, deadline=None)
@given(system=systems(), suffix=st.sampled_from(("zkey", "ckey")), without_c=st.booleans())
def test_a_key_of_its_circuit_always_passes(tmp_path_factory, system, suffix, without_c):
    path = tmp_path_factory.mktemp("k") / f"key.{suffix}"
    setup_development(system, path)
    key = load_key(path)
    if not without_c:
        key.__dict__["system"] = system.with_input_rows()
    check_key(key)


def test_nothing_is_untested_where_each_row_has_a_wire_of_its_own(circuits):
    for name in ("mul", "chain1k"):
        circuit = circuits[name]
        for suffix in ("zkey", "params"):
            checked = check_key(load_key(circuit.path(suffix), circuit.path("r1cs")))
            assert checked.untested_wires == 0 and len(checked.relations) == 3


@pytest.mark.parametrize("section", (3, 5, 6, 7, 8, 9))
def test_every_wrong_point_of_a_valid_group_is_found(circuits, tmp_path, section):
    """Two points of a list change places: each is in its group, only the pairing check can tell."""
    chain, path = circuits["chain1k"], tmp_path / "bad.zkey"
    found = ZkeyFile(chain.path("zkey")).container.section(section)
    size = 192 if section == 7 else 96
    data = bytearray(chain.path("zkey").read_bytes())
    points = [bytes(found.data[at : at + size]) for at in range(0, found.size, size)]
    first = next(i for i, p in enumerate(points) if any(p))
    second = next(i for i, p in enumerate(points) if any(p) and p != points[first])
    for to, source in ((first, second), (second, first)):
        data[found.offset + size * to : found.offset + size * (to + 1)] = points[source]
    path.write_bytes(data)
    with pytest.raises(Inconsistent):
        check_key(load_key(path, chain.path("r1cs")))
    if section in (3, 8):
        return  # without C these cannot be tested
    for _ in range(20):  # a random half of the rows decides which wires have values
        try:
            check_key(load_key(path))
        except Inconsistent:
            return
    pytest.fail("not found")


def wrong_c(circuit, path):
    """The circuit's R1CS with one coefficient of C changed."""
    system = read_r1cs_system(circuit.path("r1cs"))
    ids = np.array(system.c.coef_id)
    ids[-1] ^= 1
    write_r1cs(path, replace(system, c=replace(system.c, coef_id=ids)), R1csFile(circuit.path("r1cs")).header)
    return path


@pytest.mark.parametrize("suffix", ("zkey", "params"))
@pytest.mark.parametrize("action", ("optimise", "convert"))
def test_a_circuit_that_is_not_the_keys_is_refused(circuits, tmp_path, capsys, suffix, action):
    chain, out = circuits["chain1k"], tmp_path / "out.ckey"
    other = wrong_c(chain, tmp_path / "other.r1cs")
    arguments = ["key", action, str(chain.path(suffix)), "-o", str(out)]
    assert main([*arguments, "--r1cs", str(other)]) == 2
    assert "do not belong together" in capsys.readouterr().err and not out.exists()
    assert main([*arguments, "--r1cs", str(chain.path("r1cs"))]) == 0


def corrupted(circuit, path, section, at, change):
    data = bytearray(circuit.path("zkey").read_bytes())
    found = ZkeyFile(circuit.path("zkey")).container.section(section)
    data[found.offset + at : found.offset + at + len(change)] = change
    path.write_bytes(data)
    return found.offset + at


def test_the_party_at_fault_is_named(circuits, tmp_path):
    """Key, witness and circuit, each wrong in turn, with and without the R1CS."""
    chain, key, bad = circuits["chain1k"], tmp_path / "k.zkey", tmp_path / "bad.wtns"
    witness = chain.path("wtns")
    h = ZkeyFile(chain.path("zkey")).h
    place = corrupted(chain, key, 9, 96 * 5, bytes(1) + h[5].tobytes()[1:])
    for r1cs in (None, chain.path("r1cs")):
        loaded = load_key(key, r1cs)
        with pytest.raises(FormatError, match="the key is at fault: point 5 is not on the curve") as caught:
            prove(loaded, open_witness(witness)(loaded))
        assert caught.value.offset == place and caught.value.section == "9 (H)"
    corrupted(chain, key, 9, 0, np.roll(h, 1, axis=0).tobytes())
    loaded = load_key(key, chain.path("r1cs"))
    with pytest.raises(FormatError, match="the witness is not at fault: key and circuit do not belong together"):
        prove(loaded, open_witness(witness)(loaded))
    data = bytearray(witness.read_bytes())
    data[-32:] = struct.pack("<QQQQ", 5, 0, 0, 0)
    bad.write_bytes(data)
    good = load_key(chain.path("zkey"))
    with pytest.raises(ProofInvalid, match=r"the witness does not satisfy the circuit .*agree with one another"):
        prove(good, open_witness(bad)(good))
    good = load_key(chain.path("zkey"), chain.path("r1cs"))
    with pytest.raises(ProofInvalid, match=r"the witness does not satisfy constraint \d+"):
        prove(good, open_witness(bad)(good))


def test_vectors_do_solve_what_they_say(circuits):
    """(A·x) ∘ (B·y) = C·c by plain integers."""
    from cuzk import native
    from cuzk.groth16.field import fr_ints

    system = read_r1cs_system(circuits["mul"].path("r1cs")).with_input_rows()
    table = fr_ints(native.fr_to_std(system.table_mont))
    vectors = [fr_ints(native.fr_to_std(v)) for v in consistency._vectors(system)]

    def rows(matrix, vector):
        ends = matrix.row_ptr.astype(int)
        terms = [table[i] * vector[w] for i, w in zip(matrix.coef_id, matrix.col, strict=True)]
        return [sum(terms[a:b]) % FR_MODULUS for a, b in pairwise(ends)]

    a, b, c = (rows(m, v) for m, v in zip((system.a, system.b, system.c), vectors, strict=True))
    assert [x * y % FR_MODULUS for x, y in zip(a, b, strict=False)][: len(c)] == c and any(c)
