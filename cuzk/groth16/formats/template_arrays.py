"""A template as arrays of a mapped file: the matrices of a `.ckey` whose circuit is one.

Header `template`: {name, copies, prefix, body}, of both parts {rows, inputs, aux}, and `parameters` where there are any.
Arrays: coef_table (k, 4) mont with +1 and −1 first; for P in prefix, body and X in a, b, c: P_X_row_ptr (rows + 1) u32, P_X_col
u32, P_X_coef u16; P_field: a bit an aux variable, set where it is a field element; choices (copies · parameters) u32: the shared
columns that the copies' parameters stand for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk.errors import FormatError
from cuzk.groth16.formats.mapped import MappedArray, MappedFile
from cuzk.groth16.formats.matrices import read_table
from cuzk.groth16.template.model import Part, Template, TemplateMatrix
from cuzk.groth16.template.system import TemplateSystem

PARTS = ("prefix", "body")


def is_template(mapped: MappedFile) -> bool:
    """Whether the matrices of a mapped file are a template."""
    return "template" in mapped.header


def template_arrays(template: Template) -> dict[str, MappedArray]:
    arrays = {"coef_table": MappedArray.of(template.coefficients_mont)}
    for name in PARTS:
        part: Part = getattr(template, name)
        for letter, m in zip("abc", part.matrices, strict=True):
            arrays[f"{name}_{letter}_row_ptr"] = MappedArray.of(m.row_ptr)
            arrays[f"{name}_{letter}_col"] = MappedArray.of(m.col.view(np.uint32))
            arrays[f"{name}_{letter}_coef"] = MappedArray.of(m.coef_id)
        arrays[f"{name}_field"] = MappedArray.of(np.packbits(part.field_aux, bitorder="little"))
    if template.choices is not None:
        arrays["choices"] = MappedArray.of(np.ascontiguousarray(template.choices, np.uint32).reshape(-1))
    return arrays


def template_metadata(template: Template) -> dict[str, Any]:
    parts = {name: getattr(template, name) for name in PARTS}
    return {
        "name": template.name, "copies": template.copies,
        **{name: {"rows": part.rows, "inputs": part.inputs, "aux": part.aux} for name, part in parts.items()},
        **({} if template.choices is None else {"parameters": template.parameters}),
    }  # fmt: skip


def template_counts(mapped: MappedFile) -> tuple[int, dict[str, int]] | None:
    """Copies of the body, and the nonzeros of A (rows of the inputs included), B, C; None where there is no template."""
    if not is_template(mapped):
        return None
    copies = _count(mapped, mapped.header["template"], "copies", 1)
    n_inputs = mapped.integer("n_public", 0, 2**32 - 2) + 1
    prefix, body = ([len(mapped.array(f"{p}_{x}_col", "u4", (-1,))) for x in "abc"] for p in PARTS)
    a, b, c = (p + copies * q for p, q in zip(prefix, body, strict=True))
    return copies, {"a": a + n_inputs, "b": b, "c": c}


def _count(mapped: MappedFile, owner: object, key: str, least: int) -> int:
    value = owner.get(key) if isinstance(owner, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 31:
        raise FormatError(mapped.path, f"header field {key} of the template is {value!r}", offset=16)
    return value


def read_template(mapped: MappedFile) -> TemplateSystem:
    """The template of a mapped file. Raises FormatError for whatever its walkers could not trust."""
    head = mapped.header["template"]
    copies = _count(mapped, head, "copies", 1)
    sizes = {p: tuple(_count(mapped, head.get(p), k, 0) for k in ("rows", "inputs", "aux")) for p in PARTS}
    if sizes["prefix"][1] < 1:
        raise FormatError(mapped.path, "the template's prefix has no input, not even the constant one", offset=16)
    table = read_table(mapped)
    parameters = _count(mapped, head, "parameters", 1) if "parameters" in head else 0
    shared = sum(sizes["prefix"][1:])
    columns = {"prefix": shared, "body": shared + parameters + sum(sizes["body"][1:])}
    prefix, body = (_read_part(mapped, name, sizes[name], columns[name], len(table)) for name in PARTS)
    choices = None
    if parameters:
        choices = mapped.array("choices", "u4", (copies * parameters,)).reshape(copies, parameters)
        if choices.max() >= shared:
            raise FormatError(mapped.path, f"a copy's parameter is outside 0 … {shared - 1:,}", section="choices")
    template = Template(prefix, body, copies, table, str(head.get("name", "")), choices)
    system = TemplateSystem(template)
    for field in ("n_wires", "n_public", "n_constraints"):
        claimed = mapped.integer(field, 0, 2**32)
        if claimed != getattr(system, field):
            raise FormatError(mapped.path, f"{field} is {claimed}, the template has {getattr(system, field)}", offset=16)
    return system


def _read_part(mapped: MappedFile, name: str, sizes: tuple[int, ...], columns: int, coefficients: int) -> Part:
    rows, inputs, aux = sizes
    matrices = []
    for letter in "abc":
        row_ptr = mapped.array(f"{name}_{letter}_row_ptr", "u4", (rows + 1,))
        col = mapped.array(f"{name}_{letter}_col", "u4", (-1,)).view(np.int32)
        matrix = TemplateMatrix(row_ptr, col, mapped.array(f"{name}_{letter}_coef", "u2", (len(col),)))
        fault = matrix.fault(columns, coefficients)
        if fault is not None:
            raise mapped.error(f"{name}_{letter}_row_ptr", fault)
        matrices.append(matrix)
    mask = mapped.array(f"{name}_field", "u1", ((aux + 7) // 8,))
    field_aux = np.unpackbits(mask, count=aux, bitorder="little").astype(bool)
    return Part(rows, inputs, aux, (matrices[0], matrices[1], matrices[2]), field_aux)
