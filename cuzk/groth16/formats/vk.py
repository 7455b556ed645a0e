"""Verifying keys: snarkjs's verification_key.json and the binary form of bellman and Filecoin (.vk, the head of
.params).

Binary: alpha G1, beta G1, beta G2, gamma G2, delta G1, delta G2, u32 BE count, IC points; uncompressed ZCash
encoding.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from cuzk import strict_json
from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.formats import jsonpoints
from cuzk.groth16.formats.files import Path, read_small, unpack
from cuzk.groth16.formats.layouts import FIXED, LAYOUTS, Layout, foreign_json, foreign_name, key_layout
from cuzk.groth16.point_bytes import PointError

HEAD_BYTES = 3 * 96 + 3 * 192
FIXED_SIZES = (96, 96, 192, 192, 96, 192)


SHORT = {"alpha_g1": "alpha", "beta_g2": "beta", "gamma_g2": "gamma", "delta_g2": "delta"}
Place = tuple[Path, str, int]
"""File, section, byte offset."""
_OFFSETS = {"alpha": 0, "beta_g1": 96, "beta": 192, "gamma": 384, "delta_g1": 576, "delta": 672}


def element_place(path: Path, fixed: tuple[str, int], ic: tuple[str, int]) -> Callable[[str], Place]:
    """`VerifyingKey.place` where the six fixed points stand in this order at (section, offset) `fixed`, IC at `ic`."""

    def place(element: str) -> Place:
        if element.startswith("IC["):
            return path, ic[0], ic[1] + 96 * int(element[3:-1])
        return path, fixed[0], fixed[1] + _OFFSETS[element]

    return place


@dataclass(frozen=True)
class VerifyingKey:
    """Points in *be* form. `beta_g1` and `delta_g1` are not needed to verify and are absent in the JSON form."""

    alpha_g1: bytes
    beta_g2: bytes
    gamma_g2: bytes
    delta_g2: bytes
    ic: tuple[bytes, ...]
    beta_g1: bytes | None = None
    delta_g1: bytes | None = None
    development: bool = False
    """Made by one machine for tests: whoever made it can forge proofs."""
    place: Callable[[str], Place] | None = field(default=None, compare=False, repr=False)
    """The place of an element (alpha, beta, gamma, delta, IC[i]) in the file that it was read from."""

    @property
    def n_public(self) -> int:
        return len(self.ic) - 1

    def to_bytes(self, layout: str = "bellman") -> bytes:
        """A binary form. Raises ValueError where it needs the two G1 points that this key was read without."""
        form = LAYOUTS[layout]
        if "beta_g1" in form.fixed and (self.beta_g1 is None or self.delta_g1 is None):
            raise ValueError(f"the {layout} form of a verifying key needs beta and delta in G1, which the JSON form lacks")
        fixed = b"".join(form.write_point(getattr(self, name)) for name in form.fixed)
        ic = b"".join(map(form.write_point, self.ic))
        return fixed + struct.pack(form.count, len(self.ic)) + ic + form.tail

    def to_json(self) -> str:
        """verification_key.json as snarkjs reads it, with the pairing of alpha and beta, which some readers require. Raises
        ValueError where alpha or beta is no point.
        """
        document = {
            "protocol": "groth16",
            "curve": "bls12381",
            "nPublic": self.n_public,
            "vk_alpha_1": jsonpoints.encode(self.alpha_g1),
            "vk_beta_2": jsonpoints.encode(self.beta_g2),
            "vk_gamma_2": jsonpoints.encode(self.gamma_g2),
            "vk_delta_2": jsonpoints.encode(self.delta_g2),
            "vk_alphabeta_12": point_bytes.pairing_tower(self.alpha_g1, self.beta_g2),
            "IC": [jsonpoints.encode(p) for p in self.ic],
        }
        if self.development:
            document["development"] = True
        return json.dumps(document, indent=1) + "\n"


def parse_binary(path: Path, data: bytes, base: int = 0) -> tuple[VerifyingKey, int]:
    """A verifying key at the start of `data`, and the bytes it takes. `base` is the offset of `data` in the file, for
    messages.
    """
    if len(data) < HEAD_BYTES + 4:
        message = f"{len(data)} bytes cannot hold a verifying key (at least {HEAD_BYTES + 4})"
        raise FormatError(path, message, offset=base, section="verifying key")
    at, fixed = 0, {}
    try:
        for name, size in zip(FIXED, FIXED_SIZES, strict=True):
            fixed[name] = point_bytes.from_zcash(data[at : at + size])
            at += size
        (count,) = unpack(">I", data, at)
        if count * 96 > len(data) - at - 4:
            message = f"claims {count} IC points, the file has room for {(len(data) - at - 4) // 96}"
            raise FormatError(path, message, offset=base + at, section="verifying key")
        if not count:
            raise FormatError(path, "has no IC points", offset=base + at, section="verifying key")
        at += 4
        ic = []
        for _ in range(count):
            ic.append(point_bytes.from_zcash(data[at : at + 96]))
            at += 96
    except PointError as error:
        raise FormatError(path, str(error), offset=base + at, section="verifying key") from error
    section = "verifying key"
    place = element_place(path, (section, base), (section, base + HEAD_BYTES + 4))
    key = VerifyingKey(
        fixed["alpha_g1"], fixed["beta_g2"], fixed["gamma_g2"], fixed["delta_g2"], tuple(ic),
        fixed["beta_g1"], fixed["delta_g1"], place=place,
    )  # fmt: skip
    return key, at


def parse_layout(path: Path, data: bytes, layout: Layout, n_ic: int) -> VerifyingKey:
    """A verifying key in another prover's layout. Raises FormatError."""
    section, at = f"verifying key ({layout.name})", 0
    found: dict[str, bytes] = {}
    places: dict[str, int] = {}
    sizes = [(name, layout.point_bytes(name)) for name in layout.fixed]
    sizes += [(f"IC[{i}]", layout.point_bytes("ic_g1")) for i in range(n_ic)]
    for number, (name, size) in enumerate(sizes):
        at += layout.count_bytes if number == len(layout.fixed) else 0
        places[SHORT.get(name, name)] = at
        try:
            found[name] = layout.read_point(data[at : at + size])
        except PointError as error:
            raise FormatError(path, f"{name}: {error}", offset=at, section=section) from error
        at += size
    if data[at:] != layout.tail:
        raise FormatError(path, "a gnark key with commitments: that is an extension of Groth16, not supported", offset=at)
    ic = tuple(found[f"IC[{i}]"] for i in range(n_ic))
    alpha, beta, gamma, delta = (found[name] for name in ("alpha_g1", "beta_g2", "gamma_g2", "delta_g2"))
    return VerifyingKey(
        alpha, beta, gamma, delta, ic, found.get("beta_g1"), found.get("delta_g1"),
        place=lambda element: (path, section, places[element]),
    )  # fmt: skip


def _parse_json(path: Path, document: object) -> VerifyingKey:
    reader = jsonpoints.Reader(path, document)
    kind = foreign_json(document) if "IC" not in reader.document or "ccoefs" in reader.document else None
    if kind is not None:
        raise FormatError(path, f"this is {kind}", offset=0)
    reader.check_curve()
    ic_values = reader.list("IC")
    if not ic_values:
        raise reader.error("IC", "has no points")
    ic = tuple(reader.point(f"IC[{i}]", value, 1) for i, value in enumerate(ic_values))
    n_public = reader.get("nPublic")
    if n_public != len(ic) - 1:
        raise reader.error("nPublic", f"is {n_public!r}, but IC has {len(ic)} points")
    return VerifyingKey(
        alpha_g1=reader.point("vk_alpha_1", reader.get("vk_alpha_1"), 1),
        beta_g2=reader.point("vk_beta_2", reader.get("vk_beta_2"), 2),
        gamma_g2=reader.point("vk_gamma_2", reader.get("vk_gamma_2"), 2),
        delta_g2=reader.point("vk_delta_2", reader.get("vk_delta_2"), 2),
        ic=ic,
        development=reader.document.get("development") is True,
    )


def read_vk(path: Path) -> VerifyingKey:
    """A verifying key, JSON or binary. Raises FormatError; that points lie in the subgroup is checked when they are
    used.
    """
    data = read_small(path)
    if data.lstrip()[:1] == b"{":
        return _parse_json(path, strict_json.loads(path, data))
    found = key_layout(data)
    if found is not None and found[0].name != "bellman":
        return parse_layout(path, data, *found)
    kind = foreign_name(data)
    if kind is not None:
        raise FormatError(path, f"this is {kind}, not a verifying key", offset=0)
    key, size = parse_binary(path, data)
    if size != len(data):
        message = f"{len(data) - size} bytes after the verifying key; a .params file holds one at its head (cuzk key convert)"
        raise FormatError(path, message, offset=size)
    return key
