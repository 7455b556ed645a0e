"""The first key of a phase 2: a circuit over the Lagrange points of a prepared powers-of-tau file, with gamma = delta =
1.

    A_i = Σ_k A_ki·[ell_k]   B_i = Σ_k B_ki·[ell_k]   L_i = Σ_k A_ki·[beta·ell_k] + B_ki·[alpha·ell_k] + C_ki·[ell_k]
    H_j = [ell_{2j+1}] of the domain of twice the order

with [x] = x·generator, all read from the file: nobody needs the secrets. The key is sound only after a contribution
(snarkjs zkey contribute) has put a secret delta in the place of 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from cuzk import native
from cuzk.errors import InputError
from cuzk.groth16 import point_bytes
from cuzk.groth16.combine import combine
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.ptau import PtauFile
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.formats.zkey import ZkeyHeader, ZkeyPoints, write_zkey
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.setup.circuit_hash import CircuitHash
from cuzk.groth16.template.system import System

TAU_G1, TAU_G2, ALPHA_TAU, BETA_TAU = 12, 13, 14, 15
CHUNK_WIRES = 1 << 16


def setup_phase2(
    system: System, ptau: Path, out: Path, quotients: tuple[str, ...] = (), progress: Progress = silent
) -> VerifyingKey:
    """Write the .zkey of a circuit over a .ptau file. Returns its verifying key. Raises InputError where that cannot be."""
    if os.path.splitext(os.fspath(out))[1] != ".zkey":
        raise InputError(
            f"{os.fspath(out)}: a powers-of-tau file has Lagrange points for the root 5, so its keys are .zkey; "
            "make a .ckey from that with cuzk key optimise"
        )
    file = PtauFile(ptau)
    system = system.with_input_rows().expanded()
    log_domain = system.log_domain
    if log_domain > file.power:
        message = f"made for domains up to 2^{file.power}; this circuit needs 2^{log_domain}"
        raise InputError(f"{os.fspath(ptau)}: {message}")
    assert system.has_c
    matrices = {name: getattr(system, name).transposed(system.n_wires) for name in "abc"}
    table = system.table_mont
    tau_g1 = np.ascontiguousarray(file.lagrange(TAU_G1, log_domain))
    tau_g2 = np.ascontiguousarray(file.lagrange(TAU_G2, log_domain))
    alpha, beta = (np.ascontiguousarray(file.lagrange(k, log_domain)) for k in (ALPHA_TAU, BETA_TAU))

    def columns(what: str, name: str, bases: np.ndarray, first: int = 0, last: int | None = None) -> Iterator[np.ndarray]:
        last = system.n_wires if last is None else last
        for low in range(first, last, CHUNK_WIRES):
            high = min(low + CHUNK_WIRES, last)
            yield combine(matrices[name], table, bases, low, high)
            if what:
                progress(what, high - first, last - first)

    def l_points(first: int, last: int) -> Iterator[np.ndarray]:
        parts = (("a", beta), ("b", alpha), ("c", tau_g1))
        for a, b, c in zip(*(columns("", name, bases, first, last) for name, bases in parts), strict=True):
            yield native.g1_add(native.g1_add(a, b), c)
            progress("L", first + len(a), last)

    def h_points() -> Iterator[np.ndarray]:
        yield np.ascontiguousarray(file.lagrange(TAU_G1, log_domain + 1)[1::2])

    g1 = point_bytes.to_mont(point_bytes.G1_GENERATOR)
    g2 = point_bytes.to_mont(point_bytes.G2_GENERATOR)
    first_private = system.n_public + 1
    ic = np.concatenate(list(l_points(0, first_private)))
    header = ZkeyHeader(
        n_wires=system.n_wires,
        n_public=system.n_public,
        domain=1 << log_domain,
        alpha_g1=np.ascontiguousarray(file.points(4)[:1]),
        beta_g1=np.ascontiguousarray(file.points(5)[:1]),
        beta_g2=np.ascontiguousarray(file.points(6)[:1]),
        gamma_g2=g2,
        delta_g1=g1,
        delta_g2=g2,
    )
    hashed = CircuitHash(header)
    m, wires = header.domain, system.n_wires

    def h_list() -> Iterator[np.ndarray]:
        yield from h_points()
        hashed.add_monomials(file, m)

    # The order in which write_zkey takes the lists is that of the hash.
    lists = ZkeyPoints(
        header,
        ic=hashed.passing(first_private, [ic]),
        h=h_list(),
        l_query=hashed.passing(wires - first_private, l_points(first_private, wires)),
        a=hashed.passing(wires, columns("A", "a", tau_g1)),
        b_g1=hashed.passing(wires, columns("B in G1", "b", tau_g1)),
        b_g2=hashed.passing(wires, columns("B in G2", "b", tau_g2)),
    )
    write_zkey(out, lists, system, lambda: hashed.digest() + bytes(4))
    return VerifyingKey(
        alpha_g1=point_bytes.from_mont(header.alpha_g1),
        beta_g1=point_bytes.from_mont(header.beta_g1),
        beta_g2=point_bytes.from_mont(header.beta_g2),
        gamma_g2=point_bytes.G2_GENERATOR,
        delta_g1=point_bytes.G1_GENERATOR,
        delta_g2=point_bytes.G2_GENERATOR,
        ic=tuple(point_bytes.from_mont(p) for p in ic),
    )
