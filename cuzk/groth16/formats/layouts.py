"""Binary verifying keys and proofs of other provers: which points in which order, compressed or not, and what counts them.

| layout | verifying key | proof |
| bellman | alpha, beta G1, beta, gamma, delta G1, delta; u32 BE count, IC; uncompressed | A, B, C compressed |
| gnark | the same compressed; then two u32 zeros (no commitments) | A, B, C, u32 zero, infinity, compressed |
| gnark-raw | the same uncompressed, then the zeros | uncompressed |
| arkworks | alpha, beta, gamma, delta; u64 LE count, IC; compressed | A, B, C compressed, as bellman's |
| arkworks-uncompressed | the same uncompressed | A, B, C uncompressed |

All write a point of BLS12-381 as ZCash does. Sources: ark-groth16 and ark-bls12-381 from 0.4 on, gnark's
backend/groth16/bls12-381; checked against files of both.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.formats.files import Path, unpack

Data = bytes | NDArray[np.uint8]
"""A file: its bytes, or its pages, of which only the counts are read."""

FIXED = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")
FOUR = ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2")
NO_COMMITMENTS = bytes(8)


@dataclass(frozen=True)
class Layout:
    """A binary form. `count` is the struct format of the number of IC points, `tail` what follows them, `proof_tail` what
    follows a proof.
    """

    name: str
    fixed: tuple[str, ...]
    compressed: bool
    count: str
    tail: bytes = b""
    proof_tail: bytes = b""
    compressed_proof: bool = True

    def point_bytes(self, element: str) -> int:
        """Size of a point named as in VerifyingKey."""
        return (192 if element.endswith("g2") else 96) // (2 if self.compressed else 1)

    @property
    def head_bytes(self) -> int:
        return sum(map(self.point_bytes, self.fixed))

    @property
    def count_bytes(self) -> int:
        return struct.calcsize(self.count)

    @property
    def proof_points(self) -> tuple[int, int, int]:
        """Sizes of A, B, C."""
        return (48, 96, 48) if self.compressed_proof else (96, 192, 96)

    def key_bytes(self, n_ic: int) -> int:
        """Size of a whole verifying key."""
        return self.head_bytes + self.count_bytes + n_ic * self.point_bytes("ic_g1") + len(self.tail)

    def read_point(self, data: bytes, compressed: bool | None = None) -> bytes:
        """One point, *be*. Raises PointError."""
        if self.compressed if compressed is None else compressed:
            return point_bytes.decompress(data)
        return point_bytes.from_zcash(data)

    def write_point(self, be: bytes, compressed: bool | None = None) -> bytes:
        """One point in this layout."""
        return (point_bytes.compress if (self.compressed if compressed is None else compressed) else point_bytes.to_zcash)(be)


_INFINITY = bytes([point_bytes.INFINITY])
_COMPRESSED_INFINITY = bytes([point_bytes.INFINITY | point_bytes.COMPRESSED])
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("bellman", FIXED, False, ">I"),
        Layout("gnark-raw", FIXED, False, ">I", NO_COMMITMENTS, bytes(4) + _INFINITY + bytes(95), compressed_proof=False),
        Layout(
            "gnark",
            FIXED,
            True,
            ">I",
            NO_COMMITMENTS,
            bytes(4) + _COMPRESSED_INFINITY + bytes(47),
        ),
        Layout("arkworks-uncompressed", FOUR, False, "<Q", compressed_proof=False),
        Layout("arkworks", FOUR, True, "<Q"),
    )
}
NAMES = tuple(LAYOUTS)


def key_layout(data: Data) -> tuple[Layout, int] | None:
    """The layout of a verifying key and the number of its IC points, where count, size and the first flag agree with one."""
    for layout in LAYOUTS.values():
        at = layout.head_bytes
        if len(data) < at + layout.count_bytes or bool(data[0] & point_bytes.COMPRESSED) != layout.compressed:
            continue
        (n_ic,) = unpack(layout.count, data, at)
        if n_ic and n_ic < len(data) and len(data) == layout.key_bytes(n_ic):
            return layout, n_ic
    return None


def proof_layout(path: Path, data: Data) -> tuple[Layout, int] | None:
    """The layout of a file of proofs and their number. Raises FormatError for a gnark proof with commitments, which plain
    Groth16 does not have.
    """
    for name in ("bellman", "arkworks-uncompressed", "gnark", "gnark-raw"):
        layout = LAYOUTS[name]
        size = sum(layout.proof_points)
        if not len(data) or bool(data[0] & point_bytes.COMPRESSED) != layout.compressed_proof:
            continue
        if not layout.proof_tail and len(data) % size == 0:
            return layout, len(data) // size
        if layout.proof_tail and len(data) >= size + 4:
            (commitments,) = unpack(">I", data, size)
            extra = commitments * (48 if layout.compressed_proof else 96)
            if commitments < 1 << 16 and len(data) == size + len(layout.proof_tail) + extra:
                if commitments:
                    message = f"a gnark proof with {commitments} commitments: that is an extension of Groth16, not supported"
                    raise FormatError(path, message, offset=size)
                return layout, 1
    return None


MOST_HEX_BYTES = 1 << 22
_HEX = re.compile(rb"\s*(?:0[xX])?((?:[0-9a-fA-F]{2}|\s)+)")


def of_hex(data: bytes) -> bytes | None:
    """The bytes behind hexadecimal text, or None."""
    found = _HEX.fullmatch(data) if len(data) < MOST_HEX_BYTES else None
    return bytes.fromhex(found[1].decode()) if found else None


FOREIGN = (
    (b"\0asm", "a WebAssembly module (circom's witness calculator: cuzk witness)"),
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
)


def foreign_name(data: bytes) -> str | None:
    """The name of a file of another kind, by its first bytes; None for one that is not known."""
    return next((name for magic, name in FOREIGN if data.startswith(magic)), None)


def foreign_json(document: object) -> str | None:
    """The name of a JSON document of another kind, by its keys; None for one that is not known."""
    if not isinstance(document, dict):
        return None
    protocol = str(document.get("protocol", ""))
    if {"ccoefs", "hExps"} & set(document) or ("nVars" in document and "A" in document):
        return "a .zkey exported as JSON: give the .zkey itself"
    if {"Ar", "Bs", "Krs"} <= set(document):
        return "a gnark proof as JSON: write it with WriteTo"
    if "constraints" in document and "nVars" in document:
        return "an .r1cs exported as JSON: give the .r1cs itself"
    if {"a_query", "h_query"} & set(document):
        return "an arkworks key as JSON: serialize it in binary"
    if protocol in ("plonk", "fflonk"):
        return f"of {protocol}; only groth16 is supported"
    if document and all(isinstance(v, str | int | list) and not isinstance(v, bool) for v in document.values()):
        return "perhaps a circuit's input (cuzk witness takes it), certainly neither a proof nor a verifying key"
    return None
