"""Verification with an independent pairing (py-arkworks).

    e(A, B) = e(alpha, beta) · e(IC_0 + Σ x_i·IC_i, gamma) · e(C, delta)

[Groth, On the Size of Pairing-Based Non-interactive Arguments, 2016, §3.2.] A batch is checked at once with random
128-bit weights: Σ ρ_j of the equations, so that a false proof passes with probability 2^-128.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from cuzk.errors import FormatError, InputError, ProofInvalid
from cuzk.groth16.field import FR_MODULUS
from cuzk.groth16.formats.proof import Bundle, Proof, bad_proof
from cuzk.groth16.formats.vk import VerifyingKey
from cuzk.groth16.point_bytes import PointError, load_g1, load_g2

if TYPE_CHECKING:
    from py_arkworks_bls12381 import G1Point

Point = TypeVar("Point")


class Verifier:
    """A verifying key with its points checked and loaded once."""

    def __init__(self, key: VerifyingKey, name: str = "the verifying key") -> None:
        self.key, self.name = key, name
        self._alpha = self._load("alpha", key.alpha_g1, load_g1)
        self._beta = self._load("beta", key.beta_g2, load_g2)
        self._gamma = self._load("gamma", key.gamma_g2, load_g2)
        self._delta = self._load("delta", key.delta_g2, load_g2)
        self._ic = [self._load(f"IC[{i}]", p, load_g1, may_be_infinity=True) for i, p in enumerate(key.ic)]

    def _load(self, what: str, be: bytes, load: Callable[[bytes], Point], may_be_infinity: bool = False) -> Point:
        if not may_be_infinity and not any(be):
            raise self._bad(what, "the point at infinity")
        try:
            return load(be)
        except PointError as error:
            raise self._bad(what, str(error)) from error

    def _bad(self, element: str, message: str) -> InputError:
        """With its place in the file, where the key knows it."""
        if self.key.place is None:
            return InputError(f"{self.name}: {element}: {message}")
        path, section, offset = self.key.place(element)
        return FormatError(path, f"{element} of the verifying key: {message}", section=section, offset=offset)

    def check_public(self, public: Sequence[int]) -> None:
        """Raises InputError unless there are exactly n_public signals below r."""
        if len(public) != self.key.n_public:
            raise InputError(f"{len(public)} public signals given, {self.name} needs {self.key.n_public}")
        for number, value in enumerate(public):
            if not 0 <= value < FR_MODULUS:
                raise InputError(f"public signal {number} is not below the modulus of the scalar field")

    def _inputs_point(self, public: Sequence[int]) -> G1Point:
        from py_arkworks_bls12381 import G1Point, Scalar

        scalars = [Scalar.from_le_bytes(v.to_bytes(32, "little")) for v in (1, *public)]
        return G1Point.multiexp_unchecked(self._ic, scalars)

    def accepts(self, proof: Proof, public: Sequence[int]) -> bool:
        """Whether the proof holds. Raises InputError for a wrong count or range of public signals."""
        from py_arkworks_bls12381 import GT

        self.check_public(public)
        try:
            a, b, c = load_g1(proof.a), load_g2(proof.b), load_g1(proof.c)
        except PointError:
            return False
        return GT.pairing_check([-a, self._alpha, self._inputs_point(public), c], [b, self._beta, self._gamma, self._delta])

    def accepts_all(self, proofs: Sequence[Proof], publics: Sequence[Sequence[int]]) -> bool:
        """Whether all proofs hold, by one random linear combination."""
        from py_arkworks_bls12381 import GT, Scalar

        if len(proofs) != len(publics):
            raise InputError(f"{len(proofs)} proofs but {len(publics)} lists of public signals")
        for public in publics:
            self.check_public(public)
        weights = [int.from_bytes(os.urandom(16), "little") | 1 for _ in proofs]
        g1, g2 = [], []
        c_sum: G1Point | None = None
        for proof, weight in zip(proofs, weights, strict=True):
            try:
                a, b, c = load_g1(proof.a), load_g2(proof.b), load_g1(proof.c)
            except PointError:
                return False
            scalar = Scalar.from_le_bytes(weight.to_bytes(32, "little"))
            g1.append(-(a * scalar))
            g2.append(b)
            c_sum = c * scalar if c_sum is None else c_sum + c * scalar
        if c_sum is None:
            return True
        total = sum(weights)
        inputs = [sum(w * p[i] for w, p in zip(weights, publics, strict=True)) for i in range(self.key.n_public)]
        alpha = self._alpha * Scalar.from_le_bytes((total % FR_MODULUS).to_bytes(32, "little"))
        # IC_0 carries the sum of the weights, so it is added with that scalar instead of one.
        ic_point = self._combined_ic([total, *inputs])
        return GT.pairing_check([*g1, alpha, ic_point, c_sum], [*g2, self._beta, self._gamma, self._delta])

    def _combined_ic(self, scalars: Sequence[int]) -> G1Point:
        from py_arkworks_bls12381 import G1Point, Scalar

        reduced = [Scalar.from_le_bytes((v % FR_MODULUS).to_bytes(32, "little")) for v in scalars]
        return G1Point.multiexp_unchecked(self._ic, reduced)

    def first_invalid(self, proofs: Sequence[Proof], publics: Sequence[Sequence[int]]) -> int:
        """Index of the first proof that does not hold, or -1: by the batch first, one by one only if that fails."""
        if len(proofs) > 1 and self.accepts_all(proofs, publics):
            return -1
        for number, (proof, public) in enumerate(zip(proofs, publics, strict=True)):
            if not self.accepts(proof, public):
                return number
        return -1


def require_valid(verifier: Verifier, proofs: Sequence[Proof], publics: Sequence[Sequence[int]]) -> None:
    """Raises ProofInvalid that names the first proof that does not hold."""
    if len(proofs) != len(publics):
        raise InputError(f"{len(proofs)} proofs but {len(publics)} lists of public signals")
    bad = verifier.first_invalid(proofs, publics)
    if bad >= 0:
        which = f"proof {bad} (of {len(proofs)}, counted from 0)" if len(proofs) > 1 else "the proof"
        raise ProofInvalid(f"{which} does not verify")


def verify_bundle(bundle: Bundle, name: str) -> None:
    """Verify every proof of a bundle. Raises ProofInvalid naming the first bad one, FormatError for a malformed one,
    InputError for a bad key.
    """
    verifier = Verifier(bundle.key, f"{name}: the verifying key")
    proofs = []
    for number, data in enumerate(bundle.proofs):
        try:
            proofs.append(Proof.from_bytes(data))
        except PointError as error:
            # Proofs before the broken one may be invalid themselves: those come first.
            require_valid(verifier, proofs, bundle.publics[:number])
            raise bad_proof(name, number, len(bundle.proofs), bundle.places[number], error) from error
    require_valid(verifier, proofs, bundle.publics)
