"""Proofs: proof.json and public.json of snarkjs, the 192-byte form of bellman, and Filecoin bundles (.prf).

192 bytes: A ‖ B ‖ C, compressed ZCash encoding. Several partition proofs are concatenated. Bundles, big-endian: u64
proofs, u64 inputs, verifying key, then per proof 192 B and the inputs (32 B each); or (WinningPoSt) proof, u64
inputs, the inputs, verifying key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk import strict_json
from cuzk.errors import FormatError, ProofInvalid
from cuzk.groth16.field import FR_MODULUS
from cuzk.groth16.formats import jsonpoints
from cuzk.groth16.formats.files import Path, read_small, unpack
from cuzk.groth16.formats.layouts import LAYOUTS, Layout, foreign_json, foreign_name, of_hex, proof_layout
from cuzk.groth16.formats.vk import HEAD_BYTES, VerifyingKey, parse_binary
from cuzk.groth16.point_bytes import NotInGroup, PointError

PROOF_BYTES = 192


@dataclass(frozen=True)
class Proof:
    """The three elements in *be* form: A in G1, B in G2, C in G1."""

    a: bytes
    b: bytes
    c: bytes

    def to_bytes(self, layout: str = "bellman") -> bytes:
        """The 192-byte form, or that of another layout."""
        form = LAYOUTS[layout]
        return b"".join(form.write_point(p, form.compressed_proof) for p in (self.a, self.b, self.c)) + form.proof_tail

    @staticmethod
    def from_bytes(data: bytes, layout: Layout = LAYOUTS["bellman"]) -> Proof:
        """Raises PointError; bellman refuses infinity, so do we."""
        size = sum(layout.proof_points)
        if len(data) != size + len(layout.proof_tail):
            raise PointError(f"a proof has {size + len(layout.proof_tail)} bytes, not {len(data)}")
        if data[size:] != layout.proof_tail:
            raise PointError(f"the end is not that of a {layout.name} proof without commitments")
        elements, high = [], 0
        for name, length in zip("ABC", layout.proof_points, strict=True):
            low, high = high, high + length
            try:
                element = layout.read_point(data[low:high], layout.compressed_proof)
            except PointError as error:
                raise type(error)(f"element {name}: {error}") from error
            if not any(element):
                raise PointError(f"element {name}: the point at infinity")
            elements.append(element)
        return Proof(*elements)

    def to_dict(self) -> dict[str, Any]:
        """proof.json as snarkjs reads it."""
        return {
            "pi_a": jsonpoints.encode(self.a),
            "pi_b": jsonpoints.encode(self.b),
            "pi_c": jsonpoints.encode(self.c),
            "protocol": "groth16",
            "curve": "bls12381",
        }


@dataclass(frozen=True)
class Bundle:
    """Proofs with their public inputs and the key they are for."""

    key: VerifyingKey
    proofs: tuple[bytes, ...]
    """192-byte proofs; decoded when verified, so that a broken one is named."""
    publics: tuple[tuple[int, ...], ...]
    places: tuple[int, ...]
    """The byte offset of each proof in its file."""


def bad_proof(path: Path, number: int, count: int, at: int, error: PointError) -> FormatError | ProofInvalid:
    """The error of a proof, at byte `at`, that cannot be decoded: it is malformed, or it is well-formed and invalid since
    a point is not in its group. The kind decides, in whichever form the proof comes.
    """
    which = f"proof {number} (of {count}, counted from 0)" if count > 1 else "the proof"
    found = FormatError(path, f"{which}: {error}", offset=at)
    return ProofInvalid(str(found)) if isinstance(error, NotInGroup) else found


def read_proofs(path: Path) -> list[Proof]:
    """One proof (proof.json or 192 bytes) or several (n × 192 bytes). Raises FormatError, and
    ProofInvalid where a point is not in its group.
    """
    data = read_small(path)
    if data.lstrip()[:1] == b"{":
        reader = jsonpoints.Reader(path, strict_json.loads(path, data))
        kind = None if "pi_a" in reader.document else foreign_json(reader.document)
        if kind is not None:
            raise FormatError(path, f"this is {kind}", offset=0)
        reader.check_curve()
        elements = [reader.point(n, reader.get(n), g) for n, g in (("pi_a", 1), ("pi_b", 2), ("pi_c", 1))]
        for name, element in zip("abc", elements, strict=True):
            if not any(element):
                raise reader.error(f"pi_{name}", "the point at infinity")
        return [Proof(*elements)]
    data = of_hex(data) or data
    found = proof_layout(path, data)
    if found is None and len(data) % PROOF_BYTES:
        kind = foreign_name(data)
        message = f"{len(data)} bytes are neither JSON nor a multiple of {PROOF_BYTES} bytes"
        message = message if kind is None else f"this is {kind}, not a proof"
        raise FormatError(path, message, offset=len(data) - len(data) % PROOF_BYTES)
    layout, count = found or (LAYOUTS["bellman"], len(data) // PROOF_BYTES)
    proofs = []
    for number in range(count):
        at = number * sum(layout.proof_points)
        try:
            proofs.append(Proof.from_bytes(data[at : at + len(data) // count], layout))
        except PointError as error:
            raise bad_proof(path, number, count, at, error) from error
    return proofs


def read_public(path: Path) -> list[list[int]]:
    """Public signals: one list (public.json) or a list of lists for several proofs. Raises FormatError."""
    document = strict_json.loads(path, read_small(path))
    if isinstance(document, list) and document and all(isinstance(item, list) for item in document):
        return [jsonpoints.decode_public(path, item) for item in document]
    return [jsonpoints.decode_public(path, document)]


def public_json(values: Sequence[int]) -> str:
    return json.dumps([str(v) for v in values], indent=1) + "\n"


def proof_json(proof: Proof) -> str:
    return json.dumps(proof.to_dict(), indent=1) + "\n"


def _inputs(path: Path, data: bytes, at: int, count: int) -> tuple[int, ...]:
    values = []
    for number in range(count):
        value = int.from_bytes(data[at + 32 * number : at + 32 * number + 32], "big")
        if value >= FR_MODULUS:
            message = f"input {number} is not below the modulus of the scalar field"
            raise FormatError(path, message, offset=at + 32 * number)
        values.append(value)
    return tuple(values)


def bundle_layout(data: bytes | np.ndarray) -> tuple[str, int, int] | None:
    """(layout, proofs, inputs) when sizes and counts agree with one of the two layouts, else None."""
    size = len(data)
    if size >= 16 + HEAD_BYTES + 4:
        proofs, inputs = unpack(">QQ", data)
        if 0 < inputs < size and size == 16 + HEAD_BYTES + 4 + 96 * (inputs + 1) + proofs * (PROOF_BYTES + 32 * inputs):
            return "many", proofs, inputs
    if size >= PROOF_BYTES + 8 + HEAD_BYTES + 4:
        (inputs,) = unpack(">Q", data, PROOF_BYTES)
        if inputs < size and size == PROOF_BYTES + 8 + 32 * inputs + HEAD_BYTES + 4 + 96 * (inputs + 1):
            return "single", 1, inputs
    return None


def read_bundle(path: Path) -> Bundle:
    """A .prf file, either layout. Raises FormatError."""
    data = read_small(path)
    layout = bundle_layout(data)
    if layout is None:
        message = "not a bundle of proofs: the counts of neither layout agree with the size of the file"
        raise FormatError(path, f"{message} ({len(data)} bytes)", offset=0)
    kind, count, inputs = layout
    if not count:
        raise FormatError(path, "a bundle of no proofs: there is nothing to verify", offset=0)
    key_at = 16 if kind == "many" else PROOF_BYTES + 8 + 32 * inputs
    key, key_size = parse_binary(path, data[key_at:], key_at)
    if key.n_public != inputs:
        message = f"the key is for {key.n_public} public inputs, the proofs have {inputs}"
        raise FormatError(path, message, offset=key_at, section="verifying key")
    if kind == "single":
        return Bundle(key, (data[:PROOF_BYTES],), (_inputs(path, data, PROOF_BYTES + 8, inputs),), (0,))
    proofs, publics, places, at = [], [], [], key_at + key_size
    for _ in range(count):
        places.append(at)
        proofs.append(data[at : at + PROOF_BYTES])
        publics.append(_inputs(path, data, at + PROOF_BYTES, inputs))
        at += PROOF_BYTES + 32 * inputs
    return Bundle(key, tuple(proofs), tuple(publics), tuple(places))
