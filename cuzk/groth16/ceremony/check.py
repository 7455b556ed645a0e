"""Checks that a ceremony's user can make himself: a key's contributions, a key against its circuit and powers of tau, those
powers.

Ratios are compared by pairings of random sums: two lists have the ratio k everywhere if Σ r_i·P_i and Σ r_i·P'_i have it, but for
a probability of 2^-254.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.groth16 import point_bytes
from cuzk.groth16.ceremony.contributions import BY_BEACON, Contribution, read_contributions, transcript_of
from cuzk.groth16.ceremony.randomness import Randomness, hash_to_g2
from cuzk.groth16.consistency import Inconsistent, random_scalars
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.ptau import PtauFile
from cuzk.groth16.formats.zkey import ZkeyFile
from cuzk.groth16.load import read_r1cs_system
from cuzk.groth16.progress import Progress, silent
from cuzk.groth16.setup.phase2 import setup_phase2

Limbs = NDArray[np.uint64]
G1, G2 = point_bytes.G1_GENERATOR, point_bytes.G2_GENERATOR
ROOT = 5


@dataclass(frozen=True)
class Chain:
    """The contributions of a key, which hold, and the hash of its circuit."""

    circuit_hash: bytes
    contributions: list[Contribution]


def same_ratio(a: bytes, ax: bytes, b: bytes, bx: bytes) -> bool:
    """Whether ax = k·a in G1 and bx = k·b in G2 for the same k; points *be*, none may be infinity. Raises PointError."""
    from py_arkworks_bls12381 import GT

    if not all(any(p) for p in (a, ax, b, bx)):
        return False
    return bool(
        GT.pairing_check([point_bytes.load_g1(a), -point_bytes.load_g1(ax)], [point_bytes.load_g2(bx), point_bytes.load_g2(b)])
    )


def check_contributions(path: Path) -> Chain:
    """Check every contribution of a key: transcript, proof of knowledge, delta, beacon. Raises Inconsistent, FormatError."""
    file = ZkeyFile(path)
    circuit_hash, found = read_contributions(file)
    section = file.container.section(10).label
    delta = G1

    def wrong(number: int, message: str) -> Inconsistent:
        return Inconsistent(path, f"contribution {number + 1} of {len(found)}: {message}", section=section)

    for number, c in enumerate(found):
        if c.transcript != transcript_of(circuit_hash, found[:number], c.g1_s, c.g1_sx):
            raise wrong(number, "its transcript is not that of the circuit and the contributions before it")
        p = hash_to_g2(c.transcript)
        try:
            if not same_ratio(c.g1_s, c.g1_sx, p, c.g2_spx):
                raise wrong(number, "its proof of knowledge does not hold")
            if not same_ratio(delta, c.delta_after, p, c.g2_spx):
                raise wrong(number, "delta behind it is not delta before it times its secret")
        except point_bytes.PointError as error:
            raise wrong(number, str(error)) from error
        if c.kind == BY_BEACON:
            drawn = Randomness.of_beacon(c.beacon, c.iterations_exp)
            secret, g1_s = drawn.fr(), drawn.g1()
            if g1_s != c.g1_s or point_bytes.from_mont(native.scale_g1(point_bytes.to_mont(g1_s), _limbs(secret))) != c.g1_sx:
                raise wrong(number, "it is not what the beacon gives")
        delta = c.delta_after
    header = file.header
    if point_bytes.from_mont(header.delta_g1) != delta:
        raise Inconsistent(path, "delta in G1 is not what the contributions leave", section=file.container.section(2).label)
    try:
        followed = same_ratio(G1, delta, G2, point_bytes.from_mont(header.delta_g2))
    except point_bytes.PointError as error:
        raise Inconsistent(path, f"delta: {error}", section=file.container.section(2).label) from error
    if not followed:
        raise Inconsistent(path, "delta in G2 is not that in G1", section=file.container.section(2).label)
    return Chain(circuit_hash, found)


def _limbs(value: int) -> Limbs:
    return np.frombuffer(value.to_bytes(32, "little"), dtype=np.uint64).reshape(1, 4).copy()


def check_against_start(path: Path, r1cs: Path, ptau: Path, progress: Progress = silent) -> None:
    """Check that a key follows from its circuit and powers of tau: made anew without contributions, all but delta, L and H are
    the same, and these have the ratio of delta. Raises Inconsistent. The powers are believed (`check_ptau`).
    """
    file = ZkeyFile(path)
    with tempfile.TemporaryDirectory(prefix="cuzk-key-") as folder:
        start = os.path.join(folder, "start.zkey")
        setup_phase2(read_r1cs_system(r1cs), ptau, start, progress=progress)
        first = ZkeyFile(start)
        _compare(path, file, first)
        if 10 in file.container and not file.development:
            ours, theirs = (read_contributions(each)[0] for each in (first, file))
            if ours != theirs and any(theirs):
                message = "the hash of the circuit is another one than that of this circuit and these powers of tau"
                raise Inconsistent(path, message, section=file.container.section(10).label)
        del first


def _compare(path: Path, file: ZkeyFile, first: ZkeyFile) -> None:
    mine, theirs = file.header, first.header
    sizes = [(h.n_wires, h.n_public, h.domain) for h in (mine, theirs)]
    if sizes[0] != sizes[1]:
        raise Inconsistent(path, f"wires, public signals and domain are {sizes[0]}, the circuit's {sizes[1]}")
    head = file.container.section(2).label
    for name in ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2"):
        if not np.array_equal(getattr(mine, name), getattr(theirs, name)):
            raise Inconsistent(path, f"{name} is not that of the powers of tau", section=head)
    for number in (3, 5, 6, 7):
        ours, other = file.container.section(number), first.container.section(number)
        if not np.array_equal(ours.data, other.data):
            at = int(np.argmax(ours.data != other.data))
            message = "not what the circuit and the powers of tau give"
            raise Inconsistent(path, message, section=ours.label, offset=ours.offset + at)
    tables = [np.sort(f.coefficients, order=("matrix", "row", "wire")) for f in (file, first)]
    if not np.array_equal(tables[0], tables[1]):
        raise Inconsistent(path, "the coefficients are not those of the circuit", section=file.container.section(4).label)
    delta = point_bytes.from_mont(mine.delta_g2)
    for number, after, before in ((8, file.l, first.l), (9, file.h, first.h)):
        scalars = random_scalars(len(after))
        sums = [point_bytes.from_mont(native.msm_g1(np.ascontiguousarray(p), scalars)) for p in (after, before)]
        try:
            holds = sums[0] == sums[1] == bytes(96) or same_ratio(sums[0], sums[1], G2, delta)
        except point_bytes.PointError as error:
            raise Inconsistent(path, f"some point is none: {error}", section=file.container.section(number).label) from error
        if not holds:
            message = "the points are not those of the circuit, divided by delta"
            raise Inconsistent(path, message, section=file.container.section(number).label)


def check_ptau(path: Path, progress: Progress = silent) -> list[str]:
    """Check the powers of a .ptau file against one another and its Lagrange points against the powers. Returns what holds.

    Raises Inconsistent, FormatError. Who contributed to them is not checked.
    """
    file = PtauFile(path)
    n = 1 << file.power
    tau_g1, tau_g2, alpha, beta = (file.points(k) for k in (2, 3, 4, 5))
    head = {2: (tau_g1[:1], G1), 3: (tau_g2[:1], G2)}
    for number, (mont, generator) in head.items():
        if point_bytes.from_mont(mont) != generator:
            raise Inconsistent(path, "the first power is not the generator", section=file.container.section(number).label)
    tau1, tau2 = point_bytes.from_mont(tau_g1[1:2]), point_bytes.from_mont(tau_g2[1:2])
    if tau1 == G1:
        raise Inconsistent(path, "tau is one: nobody has contributed", section=file.container.section(2).label)
    _need(file, 2, "tau in G1 and in G2", lambda: same_ratio(G1, tau1, G2, tau2))
    beta2 = point_bytes.from_mont(file.points(6))
    _need(file, 6, "beta in G1 and in G2", lambda: same_ratio(G1, point_bytes.from_mont(beta[:1]), G2, beta2))
    held = ["tau and beta in G1 are those in G2"]
    for number, mont, what in ((2, tau_g1, "tau^i in G1"), (4, alpha, "alpha·tau^i"), (5, beta, "beta·tau^i")):
        progress(what, 0, 1)
        _need(file, number, what, partial(same_ratio, *_shifted_sums(native.msm_g1, mont), G2, tau2))
        held.append(f"{what}: {len(mont)} points")
    low, high = _shifted_sums(native.msm_g2, tau_g2)
    _need(file, 3, "tau^i in G2", lambda: same_ratio(G1, tau1, low, high))
    held.append(f"tau^i in G2: {n} points")
    if file.prepared:
        for number, powers in ((12, tau_g1), (13, tau_g2), (14, alpha), (15, beta)):
            for log_domain in range(file.power + 1 + (number == 12)):
                progress(f"Lagrange points, section {number}", log_domain, file.power + 1)
                holds = partial(_lagrange_holds, file, number, powers, log_domain)
                _need(file, number, f"the block of 2^{log_domain}", holds)
            held.append(f"{file.container.section(number).label}: {file.power + 1} domains")
    return held


def _need(file: PtauFile, number: int, what: str, holds: Callable[[], bool]) -> None:
    section = file.container.section(number)
    try:
        fine = holds()
    except point_bytes.PointError as error:
        raise Inconsistent(file.path, f"{what}: {error}", section=section.label, offset=section.offset) from error
    if not fine:
        raise Inconsistent(file.path, f"{what}: the points do not have one ratio", section=section.label, offset=section.offset)


def _shifted_sums(msm: Callable[[Limbs, Limbs], Limbs], mont: Limbs) -> tuple[bytes, bytes]:
    """Σ r_i·P_i and Σ r_i·P_(i+1), *be*."""
    scalars = random_scalars(len(mont) - 1)
    low, high = (msm(np.ascontiguousarray(p), scalars) for p in (mont[:-1], mont[1:]))
    return point_bytes.from_mont(low), point_bytes.from_mont(high)


def _lagrange_holds(file: PtauFile, number: int, powers: Limbs, log_domain: int) -> bool:
    """Σ c_i·tau^i = Σ f(w^j)·L_j for a random polynomial f with coefficients c, of a degree whose powers are there."""
    m = 1 << log_domain
    degree = min(m, len(powers))
    c = np.zeros((m, 4), np.uint64)
    c[:degree] = random_scalars(degree)
    values = native.fr_from_std(c)
    if log_domain:
        native.ntt(values, ROOT)
    msm = native.msm_g2 if number == 13 else native.msm_g1
    left = msm(np.ascontiguousarray(powers[:degree]), c[:degree])
    right = msm(np.ascontiguousarray(file.lagrange(number, log_domain)), native.fr_to_std(values))
    return bool(np.array_equal(left, right))
