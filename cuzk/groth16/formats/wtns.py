"""Reading and writing circom's .wtns (version 2): section 1 (u32 32, prime r, u32 count), section 2 (count × 32 B, std)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cuzk import strict_json
from cuzk.errors import FormatError, InputError
from cuzk.groth16.field import FR_MODULUS, first_not_below, fr_array
from cuzk.groth16.formats import jsonpoints
from cuzk.groth16.formats.container import Container, ContainerWriter, read_prime
from cuzk.groth16.formats.files import Path, atomic_write, read_small, unpack

if TYPE_CHECKING:
    from cuzk.groth16.key import ProvingKey

NAMES = {1: "header", 2: "values"}


class WtnsFile:
    """A mapped witness; `values` is `(count, 4)` uint64, canonical."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.container = Container(path, b"wtns", NAMES)
        head = self.container.section(1)
        at = read_prime(self.container, head, 0, FR_MODULUS, "scalar field")
        if head.size != at + 4:
            raise self.container.error(head, f"has {head.size} bytes, expected {at + 4}")
        (self.count,) = unpack("<I", head.data, at)
        body = self.container.section(2, 32 * self.count, f"{self.count} values of 32 bytes")
        self.values: np.ndarray = body.data.view("<u8").reshape(-1, 4)
        self._body = body
        if not self.count:
            raise self.container.error(body, "a witness holds at least the constant one")
        if self.values[0].tolist() != [1, 0, 0, 0]:
            raise self.container.error(body, "value 0 is not one: this is not a witness", 0)

    def check_values(self) -> None:
        """Raises FormatError at the first value that is not below r."""
        bad = first_not_below(self.values, FR_MODULUS)
        if bad >= 0:
            raise self.container.error(self._body, f"value {bad} is not below the field's modulus", 32 * bad)

    def check_fits(self, n_wires: int, owner: Path) -> None:
        """Raises InputError unless the witness has as many values as the circuit of `owner` has wires."""
        if self.count != n_wires:
            message = f"a witness of {self.count} values does not belong to {owner}, whose circuit has {n_wires} wires"
            raise InputError(f"{self.path}: {message}")


def json_witness(path: Path) -> Callable[[ProvingKey], NDArray[np.uint64]]:
    """A witness.json (`snarkjs wtns export json`, circom's calculators): what gives its values for a key. Raises FormatError."""
    values = fr_array(jsonpoints.decode_public(path, strict_json.loads(path, read_small(path))))
    if not len(values) or values[0].tolist() != [1, 0, 0, 0]:
        raise FormatError(path, "value 0 is not one: this is not a witness", offset=0)

    def of(key: ProvingKey) -> NDArray[np.uint64]:
        if len(values) != key.n_wires:
            message = f"a witness of {len(values)} values does not belong to {key.path}, whose circuit has {key.n_wires} wires"
            raise InputError(f"{path}: {message}")
        return values

    return of


def write_wtns(path: Path, values_std: np.ndarray) -> None:
    """Write `(n, 4)` canonical values."""
    write_wtns_chunks(path, len(values_std), [values_std])


def write_wtns_chunks(path: Path, count: int, chunks: Iterable[np.ndarray]) -> None:
    """Write `count` canonical values that come in chunks."""
    with atomic_write(path) as file:
        out = ContainerWriter(file, b"wtns")
        out.section(1, struct.pack("<I", 32) + FR_MODULUS.to_bytes(32, "little") + struct.pack("<I", count))
        out.begin(2)
        written = 0
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk, dtype="<u8").data)
            written += len(chunk)
        out.end()
        out.finish()
        if written != count:
            raise ValueError(f"{written} values written, {count} announced")
