"""JSON as snarkjs writes it: points and field elements as decimal strings, canonical, c0 first.

G1 `[x, y, "1"]`, G2 `[[x.c0, x.c1], [y.c0, y.c1], ["1", "0"]]`; infinity `["0", "1", "0"]` and `[["0","0"],
["1","0"], ["0","0"]]`.
"""

from __future__ import annotations

from cuzk.errors import FormatError
from cuzk.groth16 import point_bytes
from cuzk.groth16.field import FR_MODULUS
from cuzk.groth16.formats.files import Path
from cuzk.groth16.point_bytes import PointError

MAX_DIGITS = 120


def decimal(value: object) -> int:
    """A field element written as a decimal string (or a JSON integer). Raises PointError."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise PointError(f"expected a decimal string, found {type(value).__name__}")
    if isinstance(value, int):
        if value < 0:
            raise PointError("negative")
        return value
    if not value.isascii() or not value.isdigit() or len(value) > MAX_DIGITS:
        raise PointError(f"{value[:40]!r} is not a decimal number of a field element")
    return int(value)


def encode(be: bytes) -> list[str] | list[list[str]]:
    """A *be* point as JSON lists."""
    values = [str(v) for v in point_bytes.coordinates(be)]
    if len(values) == 2:
        return [*values, "1"] if any(be) else ["0", "1", "0"]
    if not any(be):
        return [["0", "0"], ["1", "0"], ["0", "0"]]
    return [values[:2], values[2:], ["1", "0"]]


def decode(value: object, group: int) -> bytes:
    """The *be* point of JSON lists. Raises PointError; curve membership is not checked."""
    if not isinstance(value, list) or len(value) != 3:
        raise PointError("a point is a list of three coordinates")
    if group == 2:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
            raise PointError("a coordinate of a G2 point is a list of two")
        flat = [decimal(v) for pair in value for v in pair]
    else:
        flat = [decimal(v) for v in value]
    affine, z = flat[: 2 * group], flat[2 * group :]
    one = [1, 0][:group]
    if z == one:
        be = point_bytes.from_coordinates(affine)
        if not any(be):
            raise PointError("all coordinates are zero")
        return be
    if not any(z):
        if affine != [0] * group + one:
            raise PointError("infinity is written 0, 1, 0")
        return bytes(96 * group)
    raise PointError("the third coordinate is neither one nor zero")


class Reader:
    """Field access to a JSON object with errors that name file and field."""

    def __init__(self, path: Path, document: object) -> None:
        if not isinstance(document, dict):
            raise FormatError(path, "expected a JSON object")
        self.path, self.document = path, document

    def error(self, name: str, message: str) -> FormatError:
        return FormatError(self.path, f"{name}: {message}")

    def get(self, name: str) -> object:
        if name not in self.document:
            raise self.error(name, "missing")
        return self.document[name]

    def list(self, name: str) -> list[object]:
        value = self.get(name)
        if not isinstance(value, list):
            raise self.error(name, "expected a list")
        return value

    def point(self, name: str, value: object, group: int) -> bytes:
        try:
            return decode(value, group)
        except PointError as error:
            raise self.error(name, str(error)) from error

    def check_curve(self) -> None:
        """Protocol and curve must be ours; snarkjs ignores both."""
        if self.get("protocol") != "groth16":
            raise self.error("protocol", f"is {self.document['protocol']!r}; only groth16 is supported")
        if self.get("curve") not in ("bls12381", "bls12-381"):
            raise self.error("curve", f"is {self.document['curve']!r}; only bls12381 is supported")


def decode_public(path: Path, document: object) -> list[int]:
    """The public signals of a public.json. Raises FormatError for anything but a list of numbers below r."""
    if not isinstance(document, list):
        raise FormatError(path, "expected a JSON list of public signals")
    values = []
    for number, item in enumerate(document):
        try:
            value = decimal(item)
        except PointError as error:
            raise FormatError(path, f"public signal {number}: {error}") from error
        if value >= FR_MODULUS:
            raise FormatError(path, f"public signal {number} is not below the modulus of the scalar field")
        values.append(value)
    return values
