"""Random pairing checks of a proving key against itself and its circuit: whether key and circuit belong together.

The equation of a proof [Groth 2016, §3.2] without blinding holds for more than witnesses. For any three vectors x, y, c over the
wires with (A·x) ∘ (B·y) = C·c on every row,

    e(A_x, B_y) · e(A_c, beta) · e(alpha, B_c) = e(IC_c, gamma) · e(L_c + Σ p_j·H_j, delta)        Q_v = Σ_i v_i·Q_i

where p are the quotient's scalars of the rows A·x, B·y, C·c. The vectors are drawn at random and then solved, row by row, for a
wire that a row has to itself. A wrong point of a list, or another coefficient of A, B or C, then fails with overwhelming
probability wherever its wire has a value; `untested_wires` counts those of L and C that have none. Relations between points
never use a generator, since some keys have their own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.constraints import ConstraintSystem, SparseMatrix
from cuzk.groth16.key import ProvingKey, Query
from cuzk.groth16.own_thread import in_own_thread
from cuzk.groth16.prover import quotient
from cuzk.groth16.template.system import TemplateSystem

Limbs = NDArray[np.uint64]
Rows = NDArray[np.int64]
MOST_ROUNDS = 64
LARGEST_TEMPLATE = 1 << 22
"""Rows up to which a template is expanded to be checked."""


class Inconsistent(FormatError):
    """A key whose points do not agree with one another or with the circuit."""


@dataclass(frozen=True)
class Checked:
    """Relations that were found to hold."""

    relations: tuple[str, ...]
    untested_wires: int
    """Wires whose L, and whose column of C, the circuit's equation did not touch."""


def random_scalars(n: int) -> Limbs:
    """`(n, 4)` canonical scalars below 2^254 from the operating system."""
    scalars = np.frombuffer(os.urandom(32 * n), dtype=np.uint64).reshape(n, 4).copy()
    scalars[:, 3] >>= np.uint64(2)
    return scalars


def check_key(key: ProvingKey) -> Checked:
    """Check what can be checked of a key without its powers of tau. Raises Inconsistent at the first relation that fails."""
    done = [_fixed(key), _b_lists(key)]
    system = key.system
    if isinstance(system, TemplateSystem) and system.rows > LARGEST_TEMPLATE:
        return Checked(tuple(done), key.n_wires)
    untested = in_own_thread(_equation, key, system.expanded())
    done.append("A, B, H, L and IC with the circuit's A, B and C" if system.has_c else "A, B and H with the circuit's A and B")
    return Checked(tuple(done), untested)


def _load(key: ProvingKey, what: str, point: Limbs) -> Any:
    try:
        return point_bytes.load(point_bytes.from_mont(point))
    except point_bytes.PointError as error:
        raise Inconsistent(key.path, f"{what}: some point is no point of its group (cuzk inspect --deep names it)") from error


def _product_is_one(key: ProvingKey, what: str, *pairs: tuple[Limbs, Limbs]) -> bool:
    from py_arkworks_bls12381 import GT

    g1, g2 = ([_load(key, what, pair[k]) for pair in pairs] for k in (0, 1))
    return bool(GT.pairing_check(g1, g2))


def _fixed(key: ProvingKey) -> str:
    what = "beta and delta in G1 and G2"
    if not _product_is_one(key, what, (native.g1_neg(key.beta_g1), key.delta_g2), (key.delta_g1, key.beta_g2)):
        raise Inconsistent(key.path, "beta and delta in G1 are not those in G2")
    return what


def _sum(query: Query, scalars: Limbs) -> Limbs:
    """Σ scalars[wire]·point; `scalars` has one a wire."""
    rows = np.arange(len(query))
    msm = native.msm_g1 if query.points.shape[1] == 12 else native.msm_g2
    if not len(query):
        return np.zeros((1, query.points.shape[1]), np.uint64)
    return msm(query.points, np.ascontiguousarray(scalars[query.wires_of(rows)]))


def _b_lists(key: ProvingKey) -> str:
    what = "B in G1 and in G2"
    scalars = random_scalars(key.n_wires)
    g1, g2 = _sum(key.b_g1_query, scalars), _sum(key.b_g2_query, scalars)
    if not _product_is_one(key, what, (native.g1_neg(g1), key.delta_g2), (key.delta_g1, g2)):
        raise Inconsistent(key.path, "the points of B in G1 are not those in G2")
    return what


def _equation(key: ProvingKey, system: ConstraintSystem) -> int:
    """Check the equation above. Raises Inconsistent; returns the untested wires."""
    x, y, c = _vectors(system)
    rows = [np.zeros((key.domain, 4), np.uint64) for _ in range(3)]
    for out, matrix, vector in zip(rows, (system.a, system.b, system.c), (x, y, c), strict=True):
        if matrix is not None:
            out[: matrix.rows] = _times(system, matrix, vector)
    name = key.quotients[0] if system.has_c or key.quotients[0] != "bellman" else "bellman"
    scalars = _quotient(name, rows, key.root)
    std = [native.fr_to_std(v) for v in (x, y, c)]
    l_query = key.query("l", name)
    first = key.n_public + 1
    h_sum = native.msm_g1(key.h_points(name), scalars)
    right = native.g1_add(_sum(l_query, std[2]), h_sum)
    ic = native.msm_g1(np.ascontiguousarray(key.ic), np.ascontiguousarray(std[2][:first]))
    pairs = [
        (_sum(key.a_query, std[0]), _sum(key.b_g2_query, std[1])),
        (_sum(key.a_query, std[2]), key.beta_g2),
        (key.alpha_g1, _sum(key.b_g2_query, std[2])),
        (native.g1_neg(ic), key.gamma_g2),
        (native.g1_neg(right), key.delta_g2),
    ]
    if not _product_is_one(key, "the lists of points", *pairs):
        lists = "A, B, H, L and IC are not those of the circuit" if system.has_c else "A, B and H are not the circuit's"
        raise Inconsistent(key.path, f"key and circuit do not belong together: the points of {lists}")
    return int((~c.any(axis=1)).sum())


def _quotient(name: str, rows: list[Limbs], root: int) -> Limbs:
    if name == "c-free":
        return quotient.c_free(rows[0], rows[1], root)
    way = quotient.bellman if name == "bellman" else quotient.odd_coset
    return way(rows[0], rows[1], rows[2], root)


def _times(system: ConstraintSystem, matrix: SparseMatrix, vector: Limbs) -> Limbs:
    return native.matvec_csr(matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont, vector)


def _vectors(system: ConstraintSystem) -> tuple[Limbs, Limbs, Limbs]:
    """x, y, c, mont `(n_wires, 4)`, with (A·x) ∘ (B·y) = C·c."""
    drawn = _drawn(system) if system.c is not None else _without_c(system)
    if _wrong_rows(system, *drawn).size and system.c is not None:
        return _without_shared(system, system.c)
    return drawn


def _random(system: ConstraintSystem) -> list[Limbs]:
    return [native.fr_from_std(random_scalars(system.n_wires)) for _ in range(3)]


def _shared_rows(system: ConstraintSystem) -> Rows:
    return np.arange(min(system.a.rows, system.b.rows))


def _wrong_rows(system: ConstraintSystem, x: Limbs, y: Limbs, c: Limbs) -> Rows:
    rows = _shared_rows(system)
    found = _products(system, x, y)
    if system.c is not None:
        count = min(system.c.rows, len(rows))
        found[:count] = native.fr_sub(found[:count], _times(system, system.c, c)[:count])
    return rows[found.any(axis=1)]


def _products(system: ConstraintSystem, x: Limbs, y: Limbs) -> Limbs:
    count = len(_shared_rows(system))
    return native.fr_mul(_times(system, system.a, x)[:count], _times(system, system.b, y)[:count])


def _drawn(system: ConstraintSystem) -> tuple[Limbs, Limbs, Limbs]:
    """Vectors with values on as many wires as can be: c is solved for where a row has a wire of C for itself; else x is, else
    y, which take the quotient of C·c by the other factor.
    """
    assert system.c is not None
    x, y, c = _random(system)
    rows = _shared_rows(system)
    of_c, rest = _peel(system, system.c, rows[: system.c.rows])
    rest = np.concatenate([rest, rows[system.c.rows :]])
    empty = (np.diff(system.a.row_ptr)[rest] == 0) | (np.diff(system.b.row_ptr)[rest] == 0)
    _clear(system.c, c, rest[empty])
    of_x, rest = _peel(system, system.a, rest[~empty])
    of_y, rest = _peel(system, system.b, rest)
    _clear(system.c, c, rest)
    _clear(system.a, x, rest)
    # The wires that one step solves for stand in no row of a later one, so that each step leaves the others' factors alone.
    wanted = _times(system, system.c, c)
    _solve(system, system.b, y, of_y, _divided(system, wanted, system.a, x))
    _solve(system, system.a, x, of_x, _divided(system, wanted, system.b, y))
    _solve(system, system.c, c, of_c, _products(system, x, y))
    return x, y, c


def _divided(system: ConstraintSystem, wanted: Limbs, matrix: SparseMatrix, vector: Limbs) -> Limbs:
    """wanted / (matrix·vector) for every row; zero where either is."""
    count = min(len(wanted), matrix.rows)
    out = np.zeros((max(system.a.rows, system.b.rows), 4), np.uint64)
    out[:count] = native.fr_mul(wanted[:count], native.fr_inv(_times(system, matrix, vector)[:count]))
    return out


def _without_shared(system: ConstraintSystem, matrix_c: SparseMatrix) -> tuple[Limbs, Limbs, Limbs]:
    """Vectors that are zero on the wires of every row that has no wire of C for itself."""
    x, y, c = _random(system)
    rows = _shared_rows(system)
    of_c, rest = _peel(system, matrix_c, rows[: matrix_c.rows])
    _clear(matrix_c, c, rest)
    _clear(system.a, x, np.concatenate([rest, rows[matrix_c.rows :]]))
    _solve(system, matrix_c, c, of_c, _products(system, x, y))
    return x, y, c


def _without_c(system: ConstraintSystem) -> tuple[Limbs, Limbs, Limbs]:
    """Vectors with (A·x) ∘ (B·y) = 0 and c = 0: x vanishes on a random half of the rows, y on the other."""
    x, y, c = _random(system)
    c[:] = 0
    rows = _shared_rows(system)
    share = np.frombuffer(os.urandom(len(rows)), dtype=np.uint8) < 128
    for matrix, vector, part in ((system.a, x, rows[share]), (system.b, y, rows[~share])):
        rounds, rest = _peel(system, matrix, part)
        _clear(matrix, vector, rest)
        _solve(system, matrix, vector, rounds, None)
    return x, y, c


def _terms(matrix: SparseMatrix, rows: Rows) -> tuple[Rows, Rows]:
    """The terms of some rows, and for each which of `rows` it is of."""
    starts = matrix.row_ptr[rows].astype(np.int64)
    lengths = matrix.row_ptr[rows + 1].astype(np.int64) - starts
    owner = np.repeat(np.arange(len(rows)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + within, owner


def _clear(matrix: SparseMatrix, vector: Limbs, rows: Rows) -> None:
    vector[matrix.col[_terms(matrix, rows)[0]]] = 0


def _peel(system: ConstraintSystem, matrix: SparseMatrix, rows: Rows) -> tuple[list[tuple[Rows, Rows]], Rows]:
    """Rounds of (rows, the term of each to solve for): the wire of such a term occurs once in its own and all later rounds'
    rows. And the rows that are left; empty ones are in neither unless they are all that there is to a row.
    """
    rounds: list[tuple[Rows, Rows]] = []
    rest, not_zero, n_wires = rows, np.asarray(system.table_mont.any(axis=1)), system.n_wires
    for _ in range(MOST_ROUNDS):
        terms, owner = _terms(matrix, rest)
        wires = matrix.col[terms]
        alone = np.asarray(np.bincount(wires, minlength=n_wires)[wires] == 1)
        once = np.flatnonzero(alone & not_zero[matrix.coef_id[terms]])
        if not len(once):
            break
        solved, first = np.unique(owner[once], return_index=True)
        rounds.append((rest[solved], terms[once[first]]))
        keep = np.ones(len(rest), dtype=bool)
        keep[solved] = False
        rest = rest[keep]
    return rounds, rest


def _solve(
    system: ConstraintSystem, matrix: SparseMatrix, vector: Limbs, rounds: list[tuple[Rows, Rows]], values: Limbs | None
) -> None:
    """Set the wires of `rounds`, the last round first, so that each of their rows has its value (None: zero)."""
    for rows, terms in reversed(rounds):
        wires = matrix.col[terms]
        vector[wires] = 0
        found = _times(system, matrix, vector)[rows]
        wanted = np.zeros_like(found) if values is None else values[rows]
        inverse = native.fr_inv(np.ascontiguousarray(system.table_mont[matrix.coef_id[terms]]))
        vector[wires] = native.fr_mul(native.fr_sub(wanted, found), inverse)
