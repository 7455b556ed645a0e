"""Random satisfied systems: every key, every quotient and every conversion gives the same group elements, and they
verify.
"""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cuzk import native
from cuzk.errors import ProofInvalid
from cuzk.groth16 import point_bytes
from cuzk.groth16.convert import optimise
from cuzk.groth16.field import FR_MODULUS, FR_R, fr_array, fr_ints, root_of_unity
from cuzk.groth16.key import QUOTIENTS
from cuzk.groth16.load import load_key
from cuzk.groth16.prover import quotient
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.run import prove
from cuzk.groth16.setup.columns import Columns, lagrange_at
from cuzk.groth16.setup.development import setup_development
from cuzk.groth16.setup.secrets import Secrets

from .test_keys import system_of

VALUES = st.one_of(st.sampled_from([0, 1, 1, 2, FR_MODULUS - 1]), st.integers(0, FR_MODULUS - 1))
COEFFICIENTS = st.one_of(st.sampled_from([1, -1, 2, 0]), st.integers(-5, 5), st.integers(0, FR_MODULUS - 1))


@st.composite
def satisfied(draw):
    """(system, witness): random A and B; C makes each row true through the constant wire, or through another."""
    n_wires = draw(st.integers(2, 12))
    n_public = draw(st.integers(0, n_wires - 1))
    witness = [1, *draw(st.lists(VALUES, min_size=n_wires - 1, max_size=n_wires - 1))]
    combination = st.lists(st.tuples(st.integers(0, n_wires - 1), COEFFICIENTS), max_size=5)
    rows = []
    for a, b, wire in draw(st.lists(st.tuples(combination, combination, st.integers(0, n_wires - 1)), min_size=1, max_size=20)):
        product = sum(k * witness[i] for i, k in a) * sum(k * witness[i] for i, k in b) % FR_MODULUS
        wire = wire if witness[wire] else 0
        rows.append((a, b, [(wire, product * pow(witness[wire], -1, FR_MODULUS) % FR_MODULUS)] if product else []))
    return system_of(rows, n_wires, n_public), fr_array(witness)


@settings(deadline=None, max_examples=20)
@given(satisfied(), st.integers(0, FR_MODULUS - 1), st.integers(0, FR_MODULUS - 1))
def test_all_ways_to_a_proof_agree(case, r, s):
    system, witness = case
    secrets, blinding = Secrets(3**80, 5**60, 7**50, 1, 11**40), Blinding(r, s, private=False)
    with tempfile.TemporaryDirectory() as folder:
        zkey, ckey, optimised = (Path(folder) / name for name in ("a.zkey", "b.ckey", "c.ckey"))
        setup_development(system, zkey, secrets)
        setup_development(system, ckey, secrets)
        source = load_key(zkey)
        source.__dict__["system"] = system.with_input_rows()  # the zkey's rows, and C beside them
        optimise(source, optimised, QUOTIENTS)
        proofs = {}
        for path in (zkey, ckey, optimised):
            key = load_key(path)
            for name in key.quotients:
                made = prove(key, witness, name, blinding)
                assert made.public == fr_ints(witness[1 : system.n_public + 1])
                proofs[path.name, name] = made.proof
    # A .zkey has the root 5 and a .ckey of setup 7: the rows sit elsewhere, so the proofs are others.
    assert len({proofs[k] for k in proofs if k[0] != "b.ckey"}) == 1
    assert len({proofs[k] for k in proofs if k[0] == "b.ckey"}) == 1


@settings(deadline=None, max_examples=20)
@given(satisfied(), st.data())
def test_no_unsatisfied_witness_gets_a_proof(case, data):
    system, witness = case
    wire = data.draw(st.integers(1, system.n_wires - 1))
    witness = witness.copy()
    witness[wire] = fr_array([data.draw(VALUES)])[0]
    w = native.fr_from_std(witness)
    a, b, c = (
        fr_ints(native.fr_to_std(native.matvec_csr(m.row_ptr, m.col, m.coef_id, system.table_mont, w)))
        for m in (system.a, system.b, system.c)
    )
    wrong = [i for i in range(len(a)) if (a[i] * b[i] - c[i]) % FR_MODULUS]
    with tempfile.TemporaryDirectory() as folder:
        setup_development(system, Path(folder) / "k.ckey")
        setup_development(system, Path(folder) / "k.zkey")
        for path in Path(folder).iterdir():
            key = load_key(path)
            for name in key.quotients:
                try:
                    prove(key, witness, name)
                except ProofInvalid as error:
                    assert wrong
                    # A .ckey has C and names the row.
                    assert path.suffix == ".zkey" or f"constraint {wrong[0]} " in str(error)
                else:
                    assert not wrong


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.sampled_from([5, 7]), st.integers(2, FR_MODULUS - 1))
def test_lagrange_values_at_a_point(log_n, root, tau):
    """Against the products of differences, in plain integers."""
    n = 1 << log_n
    w = root_of_unity(log_n, root)
    xs = [pow(w, i, FR_MODULUS) for i in range(n)]
    assume(tau not in xs)
    found = fr_ints(native.fr_to_std(lagrange_at(tau, 1, w, n, n)))
    for k in range(n):
        top = bottom = 1
        for j in range(n):
            if j != k:
                top, bottom = top * (tau - xs[j]) % FR_MODULUS, bottom * (xs[k] - xs[j]) % FR_MODULUS
        assert found[k] == top * pow(bottom, -1, FR_MODULUS) % FR_MODULUS


@settings(deadline=None, max_examples=15)
@given(satisfied(), st.sampled_from([5, 7]))
def test_quotients_are_the_polynomial_that_the_paper_says(case, root):
    """Σ h_i·tau^i·Z(tau) = A(tau)·B(tau) − C(tau) for the bellman scalars; the odd values give the same number."""
    system, witness = case
    system = system.with_input_rows()
    tau = 987654321987654321
    columns = Columns(system, Secrets(tau, 2, 3, 1, 1), root)
    w = fr_ints(witness)

    def at_tau(column):
        return sum(x * y for x, y in zip(w, fr_ints(native.fr_to_std(column)), strict=True)) % FR_MODULUS

    expected = (at_tau(columns.u) * at_tau(columns.v) - at_tau(columns.w)) % FR_MODULUS
    w_mont = native.fr_from_std(witness)

    def domain(matrix):
        vector = np.zeros((columns.m, 4), dtype=np.uint64)
        rows = native.matvec_csr(matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont, w_mont)
        vector[: len(rows)] = rows
        return vector

    a, b, c = domain(system.a), domain(system.b), domain(system.c)
    scalars = {
        "bellman": (quotient.bellman(a.copy(), b.copy(), c.copy(), root), columns.h_monomial()),
        "odd-coset": (quotient.odd_coset(a.copy(), b.copy(), c.copy(), root), columns.h_odd()),
        "c-free": (quotient.c_free(a.copy(), b.copy(), root), columns.h_odd()),
    }
    sums = {name: sum(x * y for x, y in zip(*map(fr_ints, pair), strict=True)) % FR_MODULUS for name, pair in scalars.items()}
    assert sums["bellman"] == sums["odd-coset"] == expected
    absorbed = sum(x * y for x, y in zip(w, fr_ints(columns.l_c_free()), strict=True))
    plain = sum(x * y for x, y in zip(w[system.n_public + 1 :], fr_ints(columns.l_odd()), strict=True))
    assert (sums["c-free"] + absorbed - expected - plain) % FR_MODULUS == 0


@settings(deadline=None, max_examples=60)
@given(st.integers(0, FR_MODULUS - 1))
def test_encodings_of_points_round_trip(k):
    from py_arkworks_bls12381 import G1Point, G2Point, Scalar

    scalar = Scalar.from_le_bytes(k.to_bytes(32, "little"))
    for group in (G1Point, G2Point):
        point = group() * scalar
        be = bytes(point.to_xy_bytes_be())
        assert point_bytes.compress(be) == bytes(point.to_compressed_bytes())
        assert point_bytes.decompress(point_bytes.compress(be)) == be
        assert point_bytes.from_zcash(point_bytes.to_zcash(be)) == be
        assert point_bytes.from_mont(point_bytes.to_mont(be)) == be


def test_generators_and_montgomery_constants():
    from py_arkworks_bls12381 import G1Point, G2Point

    assert bytes(G1Point().to_xy_bytes_be()) == point_bytes.G1_GENERATOR
    assert bytes(G2Point().to_xy_bytes_be()) == point_bytes.G2_GENERATOR
    assert pow(root_of_unity(32, 5), 1 << 31, FR_MODULUS) == FR_MODULUS - 1
    assert root_of_unity(2, 5) in (root_of_unity(2, 7), FR_MODULUS - root_of_unity(2, 7))
    assert root_of_unity(10, 5) != root_of_unity(10, 7)
    assert FR_R == 2**256 % FR_MODULUS
