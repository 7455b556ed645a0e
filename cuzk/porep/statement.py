"""The statement of a PoRep proof, as a JSON file.

Keys: `sector` (such as "2KiB") or `sector_bytes`; `prover_id_hex`, `sector_number`, `ticket_hex`, `porep_id_hex`,
`comm_d_hex`, `comm_r_hex`, `seed_hex` (each 32 bytes but the number); `api_version` ("1.0" or "1.1"; by default that of
the registered type in the porep id). `replica_id_hex` may stand in the place of `prover_id_hex` and `sector_number`. Other
keys are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from cuzk import strict_json
from cuzk.circuits.field import MODULUS
from cuzk.circuits.porep.shape import SHAPES, Shape, shape
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.files import read_small
from cuzk.porep.ids import SectorIds, hex32
from cuzk.porep.opening import public_inputs
from cuzk.porep.registered import partitions_of, registered_id


@dataclass(frozen=True)
class Statement:
    shape: Shape
    ids: SectorIds
    comm_d: bytes
    comm_r: bytes
    seed: bytes | None = None
    version: str | None = None
    replica_id: bytes | None = None
    """The replica id where prover id and sector number, from which it follows, are not known (a C1 output has neither)."""

    def public_inputs(self) -> list[list[int]]:
        """The public inputs of each partition, without ONE. Raises InputError without a seed."""
        if self.seed is None:
            raise InputError("the statement has no seed: the challenges follow from it (--seed)")
        return [
            public_inputs(self.shape, self.ids, self.comm_d, self.comm_r, self.seed, k, self.version, self.replica_id)
            for k in range(partitions_of(self.shape, registered_id(self.ids.porep_id).drawing))
        ]

    def document(self) -> dict[str, Any]:
        ids = self.ids
        who: dict[str, Any] = {"prover_id_hex": ids.prover_id.hex(), "sector_number": ids.sector_number}
        out: dict[str, Any] = {
            "sector": self.shape.name,
            **(who if self.replica_id is None else {"replica_id_hex": self.replica_id.hex()}),
            "ticket_hex": ids.ticket.hex(),
            "porep_id_hex": ids.porep_id.hex(),
            "comm_d_hex": self.comm_d.hex(),
            "comm_r_hex": self.comm_r.hex(),
        }
        if self.seed is not None:
            out["seed_hex"] = self.seed.hex()
        if self.version is not None:
            out["api_version"] = self.version
        return out


def element_bytes(raw: bytes, what: str) -> bytes:
    """32 bytes that are a field element, little-endian. Raises InputError."""
    if int.from_bytes(raw, "little") >= MODULUS:
        raise InputError(f"{what}: not below the field's modulus")
    return raw


def parse_statement(document: Any) -> Statement:
    """Raises InputError naming the key."""
    if not isinstance(document, dict):
        raise InputError("a statement is a JSON object")

    def given(key: str) -> bytes | None:
        return None if document.get(key) is None else raw(key)

    def raw(key: str) -> bytes:
        value = document.get(key)
        if not isinstance(value, str):
            raise InputError(f"{key}: {'missing' if value is None else 'must be a string of hexadecimal digits'}")
        return hex32(value, key)

    replica_id = given("replica_id_hex") if "prover_id_hex" not in document else None
    number = document.get("sector_number") if replica_id is None else 0
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError(f"sector_number: {'missing' if number is None else f'must be a whole number, not {number!r}'}")
    version = document.get("api_version")
    if version not in (None, "1.0", "1.1"):
        raise InputError(f"api_version: must be 1.0 or 1.1, not {version!r}")
    fixed = {k: raw(f"{k}_hex") for k in ("ticket", "porep_id", "comm_d", "comm_r")}
    fixed["prover_id"] = raw("prover_id_hex") if replica_id is None else bytes(32)
    ids = SectorIds(fixed["prover_id"], number, fixed["ticket"], fixed["porep_id"])
    comms = [element_bytes(fixed[k], f"{k}_hex") for k in ("comm_d", "comm_r")]
    if replica_id is not None:
        element_bytes(replica_id, "replica_id_hex")
    return Statement(_shape_of(document), ids, comms[0], comms[1], given("seed_hex"), version, replica_id)


def _shape_of(document: dict[str, Any]) -> Shape:
    name, size = document.get("sector"), document.get("sector_bytes")
    if isinstance(name, str):
        return shape(name)
    for known in SHAPES:
        if known.sector_bytes == size:
            return known
    raise InputError(f"sector: must be one of {', '.join(s.name for s in SHAPES)} (or sector_bytes its size)")


def read_json(path: str | PathLike[str], limit_bytes: int = 1 << 20) -> Any:
    return strict_json.loads(path, read_small(path, limit_bytes))


def read_statement(path: str | PathLike[str]) -> Statement:
    """Raises InputError that begins with the file."""
    return read_statement_with(path, {})


def read_statement_with(path: str | PathLike[str] | None, changes: dict[str, Any]) -> Statement:
    """A statement from a file with some keys replaced, or from the keys alone. Raises InputError, which begins with the
    file if there is one."""
    if path is None:
        return parse_statement(changes)
    document = read_json(path)
    try:
        return parse_statement(document | changes if isinstance(document, dict) else document)
    except InputError as error:
        raise FormatError(path, str(error)) from error
