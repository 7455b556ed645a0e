"""Reading a file to its last value: field elements below their modulus, points on the curve and in the subgroup."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cuzk.errors import FormatError, ProofInvalid
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FQ_MODULUS, first_not_below
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.layouts import FIXED
from cuzk.groth16.formats.vk import FIXED_SIZES, VerifyingKey
from cuzk.groth16.progress import Progress, silent

CHUNK = 1 << 14


def deep_check(path: Path, kind: str, sample: int | None = None, progress: Progress = silent) -> dict[str, Any]:
    """Validate a file of this kind. Returns what was checked; raises FormatError (InputError) at the first fault.

    `sample`: check that many random points of each list instead of all.
    """
    checks: dict[str, Callable[[], dict[str, Any]]] = {
        "zkey": lambda: _zkey(path, sample, progress),
        "ckey": lambda: _ckey(path, sample, progress),
        "params": lambda: _params(path, sample, progress),
        "arkworks key": lambda: _arkworks(path, sample, progress),
        "ptau": lambda: _ptau(path, sample, progress),
        "r1cs": lambda: _system(path),
        "pce": lambda: _system(path),
        "curio-pce": lambda: _curio(path),
        "wtns": lambda: _wtns(path),
        "cwit": lambda: _cwit(path),
    }
    if kind in checks:
        return checks[kind]()
    return _small(path, kind)


def _rows(count: int, sample: int | None) -> np.ndarray | None:
    """Sorted random rows, or None for all."""
    if sample is None or sample >= count:
        return None
    return np.sort(np.random.default_rng().choice(count, size=sample, replace=False))


def _check_points(
    path: Path,
    name: str,
    mont: np.ndarray,
    offset: int | None,
    sample: int | None,
    progress: Progress,
    may_be_infinity: bool = True,
    numbers: np.ndarray | None = None,
) -> int:
    """Check mont points, `(n, 12)` or `(n, 24)`. Returns how many were checked; raises FormatError at the first bad one.

    `numbers`: which points of the list these are, where they are not all of it.
    """
    from cuzk import native

    rows = _rows(len(mont), sample)
    total = len(mont) if rows is None else len(rows)
    check = native.check_g1 if mont.shape[1] == 12 else native.check_g2
    for first in range(0, total, CHUNK):
        chosen = slice(first, first + CHUNK) if rows is None else rows[first : first + CHUNK]
        chunk = np.ascontiguousarray(mont[chosen])

        def fail(bad: int, message: str, first: int = first) -> FormatError:
            row = first + bad if rows is None else int(rows[first + bad])
            row = row if numbers is None else int(numbers[row])
            at = None if offset is None else offset + mont.shape[1] * 8 * row
            return FormatError(path, f"point {row} {message}", offset=at, section=name)

        bad = first_not_below(chunk.reshape(-1, 6), FQ_MODULUS)
        if bad >= 0:
            raise fail(bad // (chunk.shape[1] // 6), "has a coordinate that is not below the modulus of the base field")
        if not may_be_infinity and not chunk.any(axis=1).all():
            raise fail(int(np.argmin(chunk.any(axis=1))), "is infinity, which is not allowed here")
        bad = check(chunk)
        if bad >= 0:
            on_curve = check(chunk[bad : bad + 1], subgroup=False) < 0
            raise fail(bad, "is outside the subgroup of order r" if on_curve else "is not on the curve")
        progress(f"checking {name}", min(first + CHUNK, total), total)
    return total


def _zkey(path: Path, sample: int | None, progress: Progress) -> dict[str, Any]:
    from cuzk.groth16.formats.zkey import ZkeyFile

    file = ZkeyFile(path)
    h, head = file.header, file.container.section(2)
    at = head.offset + head.size
    for name, size in zip(reversed(FIXED), reversed(FIXED_SIZES), strict=True):  # the last part of the section
        at -= size
        _check_points(path, f"{head.label}, {name}", getattr(h, name), at, None, silent, may_be_infinity=False)
    lists = {3: file.ic, 5: file.a, 6: file.b_g1, 7: file.b_g2, 8: file.l, 9: file.h}
    checked = 6
    for section_id, found in lists.items():
        section = file.container.section(section_id)
        checked += _check_points(path, section.label, found, section.offset, sample, progress)
    system = file.constraints()
    return {"points_checked": checked, "coefficients_checked": system.a.nonzeros + system.b.nonzeros}


def _ckey(path: Path, sample: int | None, progress: Progress) -> dict[str, Any]:
    from cuzk.groth16.formats.ckey import CkeyFile

    file = CkeyFile(path)
    key = file.key()
    checked = 0
    for name in ("g1", "g2"):
        fixed = file.mapped.array(name, "u8", (3, -1))
        checked += _check_points(path, name, fixed, file.mapped.offset(name), None, silent, may_be_infinity=False)
    lists: dict[str, np.ndarray | None] = {
        "ic": key.ic,
        "a_points": key.a_query.points,
        "b_g1_points": key.b_g1_query.points,
        "b_g2_points": key.b_g2_query.points,
        "l": None if key.l_query is None else key.l_query.points,
        "l_c_free": None if key.l_c_free_query is None else key.l_c_free_query.points,
        "h_odd": key.h_odd,
        "h_monomial": key.h_monomial,
    }
    for name, found in lists.items():
        if found is not None:
            checked += _check_points(path, name, found, file.mapped.offset(name), sample, progress)
    system = key.system
    return {"points_checked": checked, "coefficients_checked": sum(system.nonzeros())}


def _params(path: Path, sample: int | None, progress: Progress) -> dict[str, Any]:
    from cuzk.groth16.formats.params import ParamsFile

    file = ParamsFile(path)
    checked = _check_verifying_key(file.verifying_key(), path)
    for name, part in file.lists.items():
        rows = _rows(part.count, sample)
        total = part.count if rows is None else len(rows)
        for first in range(0, total, CHUNK):
            last = min(first + CHUNK, total)
            chosen = np.arange(first, last) if rows is None else rows[first:last]
            mont = part.mont(path, slice(first, last) if rows is None else chosen)
            _check_points(path, name, mont, part.offset, None, silent, may_be_infinity=False, numbers=chosen)
            progress(f"checking {name}", last, total)
        checked += total
    return {"points_checked": checked}


def _arkworks(path: Path, sample: int | None, progress: Progress) -> dict[str, Any]:
    from cuzk.groth16.formats.arkworks import ArkworksKeyFile

    file = ArkworksKeyFile(path)
    checked = _check_verifying_key(file.verifying_key(), path)
    for name, part in file.lists.items():
        mont = file.mont(name)
        size = part.raw.shape[1]
        found = _rows(len(mont), sample)
        for first in range(0, len(mont) if found is None else len(found), CHUNK):
            rows = np.arange(first, min(first + CHUNK, len(mont))) if found is None else found[first : first + CHUNK]
            try:
                _check_points(path, name, mont[rows], None, None, silent, numbers=rows)
            except FormatError as error:
                row = int(error.message.split()[1])
                raise FormatError(path, error.message, section=name, offset=part.offset + size * row) from error
            checked += len(rows)
            progress(f"checking {name}", first + len(rows), len(mont))
    return {"points_checked": checked}


def _ptau(path: Path, sample: int | None, progress: Progress) -> dict[str, Any]:
    from cuzk.groth16.formats.ptau import POINT_BYTES, PtauFile

    file = PtauFile(path)
    checked = 0
    for section_id in POINT_BYTES:
        if section_id in file.container:
            section = file.container.section(section_id)
            checked += _check_points(path, section.label, file.points(section_id), section.offset, sample, progress)
    return {"points_checked": checked}


def _system(path: Path) -> dict[str, Any]:
    from cuzk.groth16.load import read_r1cs_system

    system = read_r1cs_system(path).expanded()
    nonzeros = {name: m.nonzeros for name in "abc" if (m := getattr(system, name)) is not None}
    return {"nonzeros": nonzeros, "coefficients": len(system.table)}


def _curio(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.curio_pce import CurioPceFile

    system = CurioPceFile(path).constraints()
    return {"nonzeros": {n: getattr(system, n).nonzeros for n in "abc"}, "coefficients": len(system.table)}


def _wtns(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.wtns import WtnsFile

    file = WtnsFile(path)
    file.check_values()
    values = file.values
    zero_or_one = int(sum(_small_values(values)))
    return {"values_checked": file.count, "zeros_and_ones": zero_or_one}


def _cwit(path: Path) -> dict[str, Any]:
    from cuzk.groth16.formats.cwit import FIELDS, CwitFile

    file = CwitFile(path)
    file.check_values()
    return {"field_elements_checked": sum(len(file.mapped.array(name, "u8", (-1, 4))) for name in FIELDS)}


def _small_values(values: np.ndarray) -> Iterator[int]:
    for first in range(0, len(values), 1 << 20):
        chunk = values[first : first + (1 << 20)]
        yield int(((chunk[:, 0] <= 1) & ~chunk[:, 1:].any(axis=1)).sum())


def _check_verifying_key(key: VerifyingKey, path: Path) -> int:
    """Load every point of a verifying key, those that only its binary form has included. Raises InputError at the first bad
    one; returns their number.
    """
    from cuzk.groth16.verify import Verifier

    Verifier(key, str(path))
    found = 4 + len(key.ic)
    for name in ("beta_g1", "delta_g1"):
        be = getattr(key, name)
        if be is None:
            continue
        found += 1
        where = key.place(name) if key.place else (path, "verifying key", None)
        try:
            point_bytes.load(be)
        except point_bytes.PointError as error:
            raise FormatError(where[0], f"{name}: {error}", section=where[1], offset=where[2]) from error
        if not any(be):
            raise FormatError(where[0], f"{name}: the point at infinity", section=where[1], offset=where[2])
    return found


def _small(path: Path, kind: str) -> dict[str, Any]:
    """Keys and proofs that are read whole anyway."""
    from cuzk.groth16.formats.proof import read_bundle, read_proofs
    from cuzk.groth16.formats.vk import read_vk
    from cuzk.groth16.verify import verify_bundle

    if kind in ("vk", "verification_key.json"):
        return {"points_checked": _check_verifying_key(read_vk(path), path)}
    if kind == "prf":
        bundle = read_bundle(path)
        verify_bundle(bundle, str(path))
        return {"proofs_verified": len(bundle.proofs)}
    if kind in ("proof", "proof.json"):
        proofs = read_proofs(path)
        for number, proof in enumerate(proofs):
            for name in ("a", "b", "c"):
                try:
                    point_bytes.load(getattr(proof, name))
                except point_bytes.NotInGroup as error:
                    raise ProofInvalid(f"{path}: proof {number}: pi_{name}: {error}") from error
        return {"points_checked": 3 * len(proofs)}
    return {}
