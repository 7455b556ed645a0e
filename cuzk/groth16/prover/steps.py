"""The steps of a Groth16 proof, named as in the pipeline, each a function over one ProofState.

    A = alpha + Σ w_i·A_i + r·delta                      in G1
    B = beta  + Σ w_i·B_i + s·delta                      in G2 (and in G1, for C)
    C = Σ w_i·L_i + Σ p_j·H_j + s·A + r·B − r·s·delta    in G1

[Groth 2016, §3.2.] w: all wires, wire 0 = 1; p: the quotient's scalars (quotient.py). Order: witness, matvec, upload,
ntt_h, msm_h; prep_msm, batch_add, tail_msm, b_g2_msm; epilogue. prep_msm needs only the witness and may run beside
the first five.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk import native
from cuzk.errors import InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FR_MODULUS, fr_array, fr_ints
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.key import ProvingKey, Query
from cuzk.groth16.prover import quotient
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.products import Witness, first_unsatisfied, multiplier, unsatisfied
from cuzk.groth16.prover.state import ProofState, Split
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.system import TemplateSystem

G1_QUERIES = ("l", "a", "b_g1")


def witness(state: ProofState, values: Witness) -> None:
    """Take the assignment of all wires. Raises InputError when it is not one of this circuit."""
    key = state.key
    count = values.n_wires if isinstance(values, BitWitness) else len(values)
    if count != key.n_wires:
        raise InputError(f"the witness has {count} values, the circuit of {key.path} has {key.n_wires} wires")
    if isinstance(values, BitWitness):
        if isinstance(key.system, TemplateSystem) and not key.system.template.has_variables_of(values.template):
            raise InputError(f"the witness is one of another template than that of {key.path}")
        bad_field = values.first_not_below_r()
        if bad_field is not None:
            raise InputError(f"{bad_field} of the witness is not below the field's modulus")
        public = native.fr_to_std(np.ascontiguousarray(values.inputs_mont[: key.n_public + 1]))
    else:
        bad = native.fr_less_than_r(values)
        if bad >= 0:
            raise InputError(f"value {bad} of the witness is not below the field's modulus")
        public = values[: key.n_public + 1]
    if public[0].tolist() != [1, 0, 0, 0]:
        raise InputError("value 0 of the witness is not one")
    state.aux = values
    state.public = fr_ints(public[1:])


def matvec(state: ProofState) -> None:
    """a = A·w, b = B·w and, if the quotient needs it, c, by rows. Where the system has no C, c = a∘b (true of a
    satisfied one).
    """
    system = state.key.system
    product = multiplier(system, state.take("aux"), state.threads)
    state.a, state.b = product(0), product(1)
    if not quotient.NEEDS_C[state.quotient]:
        return
    if not system.has_c:
        rows = min(len(state.a), len(state.b))
        state.c = native.fr_mul(state.a[:rows], state.b[:rows], threads=state.threads)
        return
    state.c = product(2)
    row = first_unsatisfied(state.a, state.b, state.c, state.threads)
    if row >= 0:
        raise unsatisfied(system, row)


def upload(state: ProofState) -> None:
    """Lay a, b, c out on the domain, zeros behind the rows: d_a (m, 4), d_bc (m or 2m, 4). Where there is a device, this
    is the copy.
    """
    m = state.key.domain
    needs_c = quotient.NEEDS_C[state.quotient]
    state.d_a = np.zeros((m, 4), dtype=np.uint64)
    state.d_bc = np.zeros((2 * m if needs_c else m, 4), dtype=np.uint64)
    a, b = state.take("a"), state.take("b")
    if max(len(a), len(b)) > m:
        raise InputError(f"{state.key.path}: {max(len(a), len(b))} rows do not fit the key's domain of {m}")
    state.d_a[: len(a)] = a
    state.d_bc[: len(b)] = b
    if needs_c:
        c = state.take("c")
        state.d_bc[m : m + len(c)] = c


def ntt_h(state: ProofState) -> None:
    """The quotient's scalars, in place of d_a. d_bc is dead afterwards."""
    m, root = state.key.domain, state.key.root
    a, bc = state.take("d_a"), state.take("d_bc")
    if state.quotient == "c-free":
        state.d_a = quotient.c_free(a, bc, root, state.threads)
    else:
        way = quotient.bellman if state.quotient == "bellman" else quotient.odd_coset
        state.d_a = way(a, bc[:m], bc[m:], root, state.threads)


def msm_h(state: ProofState) -> None:
    """Σ p_j·H_j: full-width scalars, every point of the list."""
    h = state.key.h_points(state.quotient)
    state.sums["h"] = native.msm_g1(h, state.take("d_a"), threads=state.threads)


def prep_msm(state: ProofState) -> None:
    """Split the scalars of each query into zero, one and other: bitmaps for batch_add, tails for tail_msm and b_g2_msm."""
    wires = classified(state.take("aux"), state.threads)
    splits = {name: _split(state.key.query(name, state.quotient), wires, state.threads) for name in G1_QUERIES}
    b_g1, b_g2 = state.key.b_g1_query, state.key.b_g2_query
    same = b_g1.wires is b_g2.wires and _same_rows(b_g1.finite, b_g2.finite)
    splits["b_g2"] = splits["b_g1"] if same else _split(b_g2, wires, state.threads)
    state.splits = splits


def _same_rows(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def classified(aux: Witness, threads: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Zeros, ones and the rest as BitWitness.classified gives them, for either form."""
    if isinstance(aux, BitWitness):
        return aux.classified()
    ones, tail = native.scan_witness(aux, threads)
    return ones, tail.astype(np.int64), aux[tail]


def _split(query: Query, wires: tuple[np.ndarray, np.ndarray, np.ndarray], threads: int | None) -> Split:
    is_one, tail_wires, tail_values = wires
    ones = native.gather_bits(is_one, len(query), query.wires, query.first, threads)
    rows, of_tail = query.rows_of(tail_wires)
    if query.finite is not None:
        ones &= query.finite
        kept = (query.finite[rows // 8] >> (rows % 8).astype(np.uint8) & 1).astype(bool)
        rows, of_tail = rows[kept], of_tail[kept]
    return Split(ones, int(np.bitwise_count(ones).sum(dtype=np.int64)), rows, tail_values[of_tail])


def _ones(state: ProofState, name: str) -> np.ndarray:
    split, query = _splits(state)[name], state.key.query(name, state.quotient)
    add = native.batch_add_g2 if name == "b_g2" else native.batch_add_g1
    return add(query.points, split.ones, threads=state.threads)


def _tail(state: ProofState, name: str) -> np.ndarray:
    split, query = _splits(state)[name], state.key.query(name, state.quotient)
    msm = native.msm_g2 if name == "b_g2" else native.msm_g1
    # A list whose every scalar is wide is used where it lies.
    everything = len(split.tail_rows) == len(query)
    bases = query.points if everything else query.points[split.tail_rows]
    return msm(bases, split.tail_scalars, threads=state.threads)


def _splits(state: ProofState) -> dict[str, Split]:
    if state.splits is None:
        raise RuntimeError("step out of order: prep_msm has not run")
    return state.splits


def batch_add(state: ProofState) -> None:
    """The sums of the points whose scalar is one, in G1."""
    for name in G1_QUERIES:
        state.sums[f"{name}_ones"] = _ones(state, name)


def tail_msm(state: ProofState) -> None:
    """The MSMs over the scalars that are neither zero nor one, in G1."""
    for name in G1_QUERIES:
        state.sums[f"{name}_tail"] = _tail(state, name)


def b_g2_msm(state: ProofState) -> None:
    """The B query in G2, ones and tail."""
    state.sums["b_g2"] = native.g2_add(_ones(state, "b_g2"), _tail(state, "b_g2"))


@dataclass(frozen=True)
class Blinded:
    """The points of a proof besides the sums: alpha + r·delta, beta + s·delta in both groups, −r·s·delta."""

    a: np.ndarray
    b_g1: np.ndarray
    b_g2: np.ndarray
    c: np.ndarray


def blinded(key: ProvingKey, blinding: Blinding) -> Blinded:
    """These points; they need no sum, so a GPU may be making the sums meanwhile."""
    r, s = blinding.r, blinding.s
    return Blinded(
        _combine_g1((key.alpha_g1, 1), (key.delta_g1, r)),
        _combine_g1((key.beta_g1, 1), (key.delta_g1, s)),
        native.msm_g2(np.concatenate([key.beta_g2, key.delta_g2]), fr_array([1, s]), threads=1),
        _combine_g1((key.delta_g1, -r * s % FR_MODULUS)),
    )


def epilogue(state: ProofState, blind: Blinded | None = None) -> Proof:
    """Blind and assemble. The proof is not yet verified."""
    key, sums, r, s = state.key, state.sums, state.blinding.r, state.blinding.s
    blind = blind or blinded(key, state.blinding)
    l_sum, a_sum, b_sum = (native.g1_add(sums[f"{n}_ones"], sums[f"{n}_tail"]) for n in G1_QUERIES)
    a, b_g1, b_g2 = native.g1_add(blind.a, a_sum), native.g1_add(blind.b_g1, b_sum), native.g2_add(blind.b_g2, sums["b_g2"])
    c = _combine_g1((l_sum, 1), (sums["h"], 1), (blind.c, 1), (a, s), (b_g1, r))
    state.proof = Proof(point_bytes.from_mont(a), point_bytes.from_mont(b_g2), point_bytes.from_mont(c))
    return state.proof


def _combine_g1(*terms: tuple[np.ndarray, int]) -> np.ndarray:
    """Σ scalar·point of a handful of points: to start threads would take longer."""
    return native.msm_g1(np.concatenate([p for p, _ in terms]), fr_array([k for _, k in terms]), threads=1)
