"""Templates in files: `CUZKTPL1`, u64 length of a JSON head, the head, then the arrays, each at a multiple of 64.

All numbers little-endian. The arrays are mapped, not read; what the walkers rely on (offsets that only grow, columns
and coefficient ids in range) is checked once when the file is opened.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from cuzk import native, strict_json
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.files import atomic_write, map_file
from cuzk.groth16.template.model import Part, Template, TemplateMatrix

MAGIC = b"CUZKTPL1"
_ALIGN = 64
_MAX_HEAD_BYTES = 1 << 20
_KINDS = {"row_ptr": "<u4", "col": "<i4", "coef_id": "<u2"}


def save_template(template: Template, path: str | os.PathLike[str]) -> None:
    """Writes through a temporary name. Gadget names are not kept."""
    arrays: list[np.ndarray] = [np.ascontiguousarray(template.coefficients_mont, "<u8")]
    parts = []
    for part in (template.prefix, template.body):
        parts.append({"rows": part.rows, "inputs": part.inputs, "aux": part.aux,
                      "nonzeros": [m.nonzeros for m in part.matrices]})  # fmt: skip
        arrays += [np.ascontiguousarray(getattr(m, k), t) for m in part.matrices for k, t in _KINDS.items()]
        arrays.append(np.packbits(part.field_aux, bitorder="little"))
    head = {"name": template.name, "copies": template.copies, "coefficients": len(template.coefficients_mont),
            "prefix": parts[0], "body": parts[1]}  # fmt: skip
    if template.choices is not None:
        head["parameters"] = template.parameters
        arrays.append(np.ascontiguousarray(template.choices, "<u4"))
    _write(path, json.dumps(head).encode(), arrays)


def _write(path: str | os.PathLike[str], head: bytes, arrays: list[np.ndarray]) -> None:
    with atomic_write(path) as out:
        out.write(MAGIC + len(head).to_bytes(8, "little") + head)
        for array in arrays:
            out.write(b"\0" * (-out.tell() % _ALIGN))
            out.write(array.data.cast("B"))


class _Reader:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.data = map_file(path)
        self.at = 0

    def fail(self, message: str) -> FormatError:
        return FormatError(self.path, message, offset=self.at)

    def take(self, count: int, kind: str, what: str) -> np.ndarray:
        self.at += -self.at % _ALIGN
        size = count * np.dtype(kind).itemsize
        if self.at + size > len(self.data):
            raise self.fail(f"ends inside {what}: {size:,} bytes are stated, {max(0, len(self.data) - self.at):,} left")
        out = self.data[self.at : self.at + size].view(kind)
        self.at += size
        return out


def _count(head: dict[str, Any], key: str, reader: _Reader, least: int = 0) -> int:
    value = head.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
        raise reader.fail(f"head: {key} must be a whole number from {least}, not {value!r}")
    return value


def load_template(path: str | os.PathLike[str]) -> Template:
    """Maps a template. Raises FormatError (file, byte) for anything that its walkers could not trust."""
    reader = _Reader(path)
    if bytes(reader.data[:8]) != MAGIC:
        raise reader.fail(f"not a template: it must begin with {MAGIC.decode()}")
    length = int.from_bytes(bytes(reader.data[8:16]), "little")
    reader.at = 16
    if length > min(_MAX_HEAD_BYTES, len(reader.data) - 16):
        raise reader.fail(f"a head of {length:,} bytes does not fit")
    try:
        head = strict_json.loads(path, bytes(reader.data[16 : 16 + length]), base=16)
        parts = [dict(head[k]) for k in ("prefix", "body")]
        counts = [[int(n) for n in p["nonzeros"]] for p in parts]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise reader.fail(f"head is not as expected: {error}") from error
    if any(len(c) != 3 or min(c) < 0 for c in counts):
        raise reader.fail("head: nonzeros must be three counts")
    reader.at += length
    copies, coefficients = _count(head, "copies", reader, 1), _count(head, "coefficients", reader, 2)
    table = reader.take(4 * coefficients, "<u8", "the coefficients").reshape(-1, 4)
    bad = native.fr_less_than_r(table)
    if bad >= 0:
        raise reader.fail(f"coefficient {bad} is not below the field's modulus")
    shared = sum(_count(parts[0], k, reader) for k in ("inputs", "aux"))
    parameters = _count(head, "parameters", reader) if "parameters" in head else 0
    columns = shared + parameters + sum(_count(parts[1], k, reader) for k in ("inputs", "aux"))
    loaded = [_load_part(reader, p, c, n, coefficients) for p, c, n in zip(parts, counts, (shared, columns), strict=True)]
    choices = None
    if parameters:
        choices = reader.take(copies * parameters, "<u4", "the parameters of the copies").reshape(copies, parameters)
        if choices.max() >= shared:
            raise reader.fail(f"a copy's parameter is outside 0 … {shared - 1:,}")
    if reader.at != len(reader.data):
        raise reader.fail(f"{len(reader.data) - reader.at:,} bytes too many")
    return Template(loaded[0], loaded[1], copies, table, str(head.get("name", "")), choices)


def _load_part(reader: _Reader, head: dict[str, Any], nonzeros: list[int], columns: int, coefficients: int) -> Part:
    rows, inputs, aux = (_count(head, k, reader) for k in ("rows", "inputs", "aux"))

    def taken(letter: str, count: int) -> TemplateMatrix:
        row_ptr = reader.take(rows + 1, _KINDS["row_ptr"], f"the rows of {letter}")
        col = reader.take(count, _KINDS["col"], f"the columns of {letter}")
        ids = reader.take(count, _KINDS["coef_id"], f"the coefficients of {letter}")
        matrix = TemplateMatrix(row_ptr, col, ids)
        fault = matrix.fault(columns, coefficients)
        if fault is not None:
            raise reader.fail(f"{letter}: {fault}")
        return matrix

    a, b, c = map(taken, "ABC", nonzeros)
    mask = reader.take((aux + 7) // 8, "u1", "the kinds of the variables")
    field_aux = np.unpackbits(mask, count=aux, bitorder="little").astype(bool)
    return Part(rows, inputs, aux, (a, b, c), field_aux)


def is_template(path: str | os.PathLike[str]) -> bool:
    try:
        return map_file(path)[: len(MAGIC)].tobytes() == MAGIC
    except InputError:
        return False


def describe(path: str | os.PathLike[str]) -> dict[str, int | str]:
    """Counts of a template file, which is checked whole. Raises FormatError."""
    t = load_template(path)
    nnz_a, nnz_b, nnz_c = t.nonzeros()
    a_aux, b_input, b_aux = t.densities()
    return {
        "kind": "template", "name": t.name, "copies": t.copies, "rows": t.n_rows, "aux": t.n_aux, "inputs": t.n_inputs,
        "domain": 1 << t.log2_domain, "nnz_a": nnz_a, "nnz_b": nnz_b, "nnz_c": nnz_c,
        "coefficients": len(t.coefficients_mont), "density_a_aux": a_aux, "density_b_input": b_input,
        "density_b_aux": b_aux, "file_bytes": len(map_file(path)),
    }  # fmt: skip
