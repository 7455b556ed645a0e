"""The statement of a SnapDeals proof, as a JSON file: the commitments before and after, and the data's.

Keys: `sector` (such as "2KiB"), `comm_r_old_hex`, `comm_d_new_hex`, `comm_r_new_hex`; other keys are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from cuzk.circuits.update.shape import UpdateShape, update_shape
from cuzk.errors import FormatError, InputError
from cuzk.porep.ids import hex32
from cuzk.porep.statement import element_bytes, read_json

COMMITMENTS = ("comm_r_old", "comm_d_new", "comm_r_new")


@dataclass(frozen=True)
class UpdateStatement:
    shape: UpdateShape
    comm_r_old: bytes
    comm_d_new: bytes
    comm_r_new: bytes

    def __post_init__(self) -> None:
        for name in COMMITMENTS:
            element_bytes(getattr(self, name), name)

    def public_inputs(self, partition: int) -> list[int]:
        """A partition's, without ONE: its number with the bit of h, then the commitments."""
        numbers = [int.from_bytes(getattr(self, name), "little") for name in COMMITMENTS]
        return [self.shape.partition_and_h(partition), *numbers]

    def all_public_inputs(self) -> list[list[int]]:
        return [self.public_inputs(k) for k in range(self.shape.partitions)]

    def document(self) -> dict[str, Any]:
        return {"sector": self.shape.size, **{f"{name}_hex": getattr(self, name).hex() for name in COMMITMENTS}}


def parse_statement(document: Any) -> UpdateStatement:
    """Raises InputError naming the key."""
    if not isinstance(document, dict):
        raise InputError("a statement is a JSON object")
    values = []
    for name in COMMITMENTS:
        text = document.get(f"{name}_hex")
        if not isinstance(text, str):
            problem = "missing" if text is None else "must be a string of hexadecimal digits"
            raise InputError(f"{name}_hex: {problem}")
        values.append(hex32(text, f"{name}_hex"))
    size = document.get("sector")
    if not isinstance(size, str):
        raise InputError(f"sector: {'missing' if size is None else 'must be a string such as 2KiB'}")
    return UpdateStatement(update_shape(size), *values)


def read_statement(path: str | PathLike[str]) -> UpdateStatement:
    """Raises InputError that begins with the file."""
    document = read_json(path)
    try:
        return parse_statement(document)
    except InputError as error:
        raise FormatError(path, str(error)) from error
