"""Turning a key of one kind into another, and saying why where that cannot be."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from cuzk.errors import FormatError, InputError
from cuzk.groth16 import point_bytes, transforms
from cuzk.groth16.consistency import check_key
from cuzk.groth16.formats.ckey import CkeyArrays, write_ckey
from cuzk.groth16.formats.files import Path, write_text
from cuzk.groth16.formats.mapped import MappedArray
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.key import QUOTIENTS, ProvingKey, Query
from cuzk.groth16.own_thread import in_own_thread
from cuzk.groth16.progress import Progress, silent

OTHER_ROOTS = (
    "the rows of the circuit sit at powers of another root of unity: snarkjs derives it from 5, bellman from 7, and "
    "each program computes with its own. No transformation of the points changes that; convert to .ckey, which records "
    "the root"
)


@dataclass
class _Forms:
    """H and L in every form that was asked for or that the key had."""

    h_odd: np.ndarray | None
    h_monomial: np.ndarray | None
    l_points: np.ndarray | None
    l_c_free: np.ndarray | None


def default_quotients(key: ProvingKey) -> tuple[str, ...]:
    """c-free, and what the key serves already, as far as that needs no further transform over group elements."""
    served = {"c-free", *key.quotients} | ({"odd-coset"} if key.h_odd is not None or key.h_monomial is not None else set())
    return tuple(name for name in QUOTIENTS if name in served)


def optimise(
    key: ProvingKey, out: Path, quotients: tuple[str, ...] | None = None, progress: Progress = silent
) -> tuple[str, ...]:
    """Write a .ckey that serves `quotients` (None: default_quotients), checked against the key. Returns them.

    Raises InputError when C is needed and not at hand, Inconsistent when the key is not that of its circuit.
    """
    quotients = default_quotients(key) if quotients is None else quotients
    if "c-free" in quotients and key.l_c_free_query is None and not key.system.has_c:
        raise InputError(f"{key.path}: the c-free quotient needs the matrix C, which a {key.kind} lacks; give --r1cs R1CS")
    if key.system.has_c:
        progress("checking the key against its circuit", 0, 1)
        check_key(key)
        progress("checking the key against its circuit", 1, 1)
    try:
        forms = _forms(key, quotients, progress)
    except transforms.FormsDisagree as error:
        raise FormatError(key.path, str(error)) from error
    system = key.system.with_input_rows()
    a, b_g1, b_g2 = _filtered(key.a_query), _filtered(key.b_g1_query), _filtered(key.b_g2_query)
    if not np.array_equal(b_g1[0], b_g2[0]):
        wire = int(np.setxor1d(b_g1[0], b_g2[0])[0])
        sections = {"zkey": "6 and 7 (B in G1 and in G2)"}.get(key.kind, "b_g1 and b_g2")
        raise FormatError(key.path, f"wire {wire} has a point in one list and infinity in the other", section=sections)
    odd, plain_l = {"c-free", "odd-coset"} & set(quotients), {"odd-coset", "bellman"} & set(quotients)
    arrays = CkeyArrays(
        g1=np.concatenate([key.alpha_g1, key.beta_g1, key.delta_g1]),
        g2=np.concatenate([key.beta_g2, key.gamma_g2, key.delta_g2]),
        ic=np.ascontiguousarray(key.ic),
        a_wires=a[0],
        a_points=a[1],
        b_wires=b_g1[0],
        b_g1_points=b_g1[1],
        b_g2_points=b_g2[1],
        l_points=_wanted(forms.l_points if plain_l else None),
        l_c_free=_wanted(forms.l_c_free if "c-free" in quotients else None),
        h_odd=_wanted(forms.h_odd if odd else None),
        h_monomial=_wanted(forms.h_monomial if "bellman" in quotients else None),
    )
    origin = {
        "made_by": "cuzk key optimise",
        "from": key.kind,
        "name": os.path.basename(os.fspath(key.path)),
        "verifying_key_blake2b": verifying_key_digest(key),
    }
    write_ckey(out, arrays, system, root=key.root, log_domain=key.log_domain, development=key.development, origin=origin)
    return quotients


def verifying_key_digest(key: ProvingKey) -> str:
    """BLAKE2b-256 of the verifying key's binary form: the same for every form of one key."""
    return blake2b(key.verifying_key().to_bytes(), digest_size=32).hexdigest()


def _wanted(array: np.ndarray | None) -> MappedArray | None:
    return None if array is None else MappedArray.of(array)


def _filtered(query: Query, chunk: int = 1 << 18) -> tuple[np.ndarray, MappedArray]:
    """The wires and points of a query without those at infinity; the points in chunks."""
    rows = query.finite_rows()
    pieces = (query.points[rows[first : first + chunk]] for first in range(0, len(rows), chunk))
    shape = (len(rows), query.points.shape[1])
    return query.wires_of(rows).astype(np.uint32), MappedArray("u8", shape, pieces)


def _forms(key: ProvingKey, quotients: tuple[str, ...], progress: Progress) -> _Forms:
    """Compute the missing forms and check them by random evaluations. Raises InputError if a check fails."""
    root = key.root
    l_points = None if key.l_query is None else key.l_query.points
    forms = _Forms(key.h_odd, key.h_monomial, l_points, None if key.l_c_free_query is None else key.l_c_free_query.points)
    if {"odd-coset", "bellman"} & set(quotients) and l_points is None:
        raise InputError(f"{key.path}: has L only with C absorbed; make {' and '.join(quotients)} from the original key")
    had_both = forms.h_odd is not None and forms.h_monomial is not None
    if "bellman" in quotients and forms.h_monomial is None:
        assert forms.h_odd is not None
        forms.h_monomial = transforms.monomial_from_odd(forms.h_odd, root, progress)
    if {"c-free", "odd-coset"} & set(quotients) and forms.h_odd is None:
        assert forms.h_monomial is not None
        forms.h_odd = transforms.odd_from_monomial(forms.h_monomial, root, progress)
    if not had_both and forms.h_odd is not None and forms.h_monomial is not None:
        in_own_thread(transforms.check_forms_agree, forms.h_odd, forms.h_monomial, root)
    if "c-free" in quotients and forms.l_c_free is None:
        assert forms.h_odd is not None and l_points is not None
        if key.h_monomial is not None:
            rows = transforms.row_points_from_monomial(key.h_monomial, root, progress)
        else:
            rows = transforms.row_points_from_odd(forms.h_odd, root, progress)
        forms.l_c_free = transforms.absorb(l_points, transforms.wire_points(key.system.expanded(), rows))
        in_own_thread(transforms.check_absorbed, key.system.expanded(), forms.h_odd, l_points, forms.l_c_free, root)
    return forms


def convert(
    key: ProvingKey, out: Path, quotients: tuple[str, ...] | None = None, progress: Progress = silent, layout: str | None = None
) -> str:
    """Write the key as the kind that the suffix of `out` names: .ckey, .zkey, .params, .pk (arkworks), or a verifying key
    .json, .vk, .sol; `layout` is that of .pk and .vk (formats/layouts.py).

    Returns what was written. Raises InputError with the reason where it is impossible.
    """
    suffix = os.path.splitext(os.fspath(out))[1]
    if suffix == ".ckey":
        return "ckey for " + ", ".join(optimise(key, out, quotients or key.quotients, progress))
    if suffix in VERIFYING:
        write_verifying_key_of(key.verifying_key(), out, layout or "bellman")
        return "verifying key"
    if suffix == ".pk":
        _write_arkworks(key, out, layout or "arkworks")
        return "arkworks proving key"
    if suffix == ".zkey":
        _write_zkey(key, out)
        return "zkey"
    if suffix == ".params":
        _write_params(key, out)
        return "params"
    raise InputError(f"{os.fspath(out)}: the name must end in .ckey, .zkey, .params, .pk, .json, .vk or .sol")


VERIFYING = (".json", ".vk", ".sol")
"""Suffixes of verifying keys: snarkjs's, binary, a Solidity contract."""


def write_verifying_key_of(key: VerifyingKey, out: Path, layout: str = "bellman") -> None:
    """Write a verifying key: as a Solidity contract if the name ends in .sol, binary in a layout if it ends in .vk, else JSON.
    Raises InputError where the source lacks points.
    """
    from cuzk.groth16.formats.files import atomic_write
    from cuzk.groth16.formats.solidity import verifier_contract
    from cuzk.groth16.safety import weaknesses

    suffix = os.path.splitext(os.fspath(out))[1]
    if suffix != ".vk":
        try:
            write_text(out, verifier_contract(key, weaknesses(key)) if suffix == ".sol" else key.to_json())
        except point_bytes.PointError as error:
            raise InputError(f"{os.fspath(out)}: alpha or beta of the verifying key: {error}") from error
        return
    try:
        data = key.to_bytes(layout)
    except ValueError as error:
        raise InputError(f"{os.fspath(out)}: {error}; make it from the proving key") from error
    with atomic_write(out) as file:
        file.write(data)


def _write_zkey(key: ProvingKey, out: Path) -> None:
    from cuzk.groth16.formats.zkey import ZkeyHeader, ZkeyPoints, development_section, unmarked_section, write_zkey

    if key.root != 5:
        raise InputError(f"{key.path}: cannot become a .zkey: {OTHER_ROOTS}")
    if key.h_odd is None or key.l_query is None:
        raise InputError(f"{key.path}: cannot become a .zkey, which needs H on the odd coset and L without C absorbed")
    if point_bytes.from_mont(key.gamma_g2) != point_bytes.G2_GENERATOR:
        raise InputError(f"{key.path}: cannot become a .zkey, whose gamma is always one")
    fixed = (key.alpha_g1, key.beta_g1, key.beta_g2, key.gamma_g2, key.delta_g1, key.delta_g2)
    lists = ZkeyPoints(
        ZkeyHeader(key.n_wires, key.n_public, key.domain, *fixed),
        ic=[key.ic],
        a=[_dense(key.a_query, key.n_wires)],
        b_g1=[_dense(key.b_g1_query, key.n_wires)],
        b_g2=[_dense(key.b_g2_query, key.n_wires)],
        l_query=[key.l_query.points],
        h=[key.h_odd],
    )
    write_zkey(out, lists, key.system.expanded(), development_section if key.development else unmarked_section)


def _dense(query: Query, n_wires: int) -> np.ndarray:
    """One point a wire, infinity where the query has none."""
    dense = np.zeros((n_wires, query.points.shape[1]), dtype=np.uint64)
    dense[query.wires_of(np.arange(len(query)))] = query.points
    return dense


def _write_params(key: ProvingKey, out: Path) -> None:
    from cuzk.groth16.formats.params import development_tail, write_params

    if key.root != 7:
        raise InputError(f"{key.path}: cannot become .params for bellman's prover: {OTHER_ROOTS}")
    if key.h_monomial is None or key.l_query is None:
        raise InputError(f"{key.path}: cannot become .params, which need H as monomials and L without C absorbed")
    if not key.l_query.points.any(axis=1).all():
        raise InputError(f"{key.path}: cannot become .params: a wire appears in no constraint, and its L is infinity")
    queries = {"l": key.l_query, "a": key.a_query, "b_g1": key.b_g1_query, "b_g2": key.b_g2_query}
    finite = {
        name: query.points if query.finite is None else query.points[query.finite_rows()] for name, query in queries.items()
    }
    lists = {name: (len(found), [found]) for name, found in finite.items()}
    lists["h"] = (len(key.h_monomial), [key.h_monomial])
    write_params(out, key.verifying_key(), lists, development_tail() if key.development else b"")


def _write_arkworks(key: ProvingKey, out: Path, layout: str) -> None:
    from cuzk.groth16.formats.arkworks import write_key

    if layout not in ("arkworks", "arkworks-uncompressed"):
        raise InputError(
            f"{os.fspath(out)}: a .pk is arkworks's proving key, compressed or not; of {layout} only the .vk is written"
        )
    if key.root != 7:
        raise InputError(f"{key.path}: cannot become an arkworks key: {OTHER_ROOTS}")
    if key.h_monomial is None or key.l_query is None:
        raise InputError(f"{key.path}: cannot become an arkworks key, which needs H as monomials and L without C absorbed")
    dense = {
        "a": _dense(key.a_query, key.n_wires), "b_g1": _dense(key.b_g1_query, key.n_wires),
        "b_g2": _dense(key.b_g2_query, key.n_wires), "h": key.h_monomial, "l": key.l_query.points,
    }  # fmt: skip
    write_key(out, key.verifying_key(), {name: (len(found), [found]) for name, found in dense.items()}, layout)
