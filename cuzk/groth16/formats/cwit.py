"""A witness of bits in a file (.cwit): the arrays of a BitWitness, mapped.

Mapped container with magic `cuzk-wit`. Metadata: name, copies, n_wires and n_public of the template, and `variables`, the digest
of its variables, by which a witness of another template is told. Arrays, with one row a copy (the prefix has one):

| inputs_mont | (inputs, 4) u64 | ONE first |
| prefix_bits, body_bits | (copies, words) u64 | bit i % 64 of word i // 64: aux variable i of the copy |
| prefix_fields_mont, body_fields_mont | (copies · fields, 4) u64 | the copy's field elements in order |
"""

from __future__ import annotations

import numpy as np

from cuzk import native
from cuzk.errors import FormatError, InputError
from cuzk.groth16.formats.files import Path
from cuzk.groth16.formats.mapped import MappedArray, MappedFile, write_mapped
from cuzk.groth16.template.bits import ARRAYS, BitWitness
from cuzk.groth16.template.model import Template

MAGIC = b"cuzk-wit"
FIELDS = ("inputs_mont", "prefix_fields_mont", "body_fields_mont")


class CwitFile:
    """An indexed witness; `witness(template)` is over its mapped arrays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mapped = MappedFile(path, MAGIC, "witness of bits (.cwit)")
        self.n_public = self.mapped.integer("n_public", 0, 2**32 - 2)
        self.n_wires = self.mapped.integer("n_wires", self.n_public + 1, 2**32)
        self.copies = self.mapped.integer("copies", 1, 2**31)
        self.name = str(self.mapped.header.get("name", ""))

    def check_values(self) -> None:
        """Raises FormatError at the first field element that is not below r, and unless the first input is one."""
        for name in FIELDS:
            values = self.mapped.array(name, "u8", (-1, 4))
            bad = native.fr_less_than_r(values)
            if bad >= 0:
                where = self.mapped.offset(name) + 32 * bad
                raise FormatError(self.path, f"value {bad} is not below the field's modulus", section=name, offset=where)
        first = self.mapped.array("inputs_mont", "u8", (-1, 4))[:1]
        if not np.array_equal(first, native.root_of_unity_mont(0)):
            raise self.mapped.error("inputs_mont", "value 0 is not one: this is not a witness")

    def witness(self, template: Template, owner: Path) -> BitWitness:
        """The values, for a template that belongs to `owner`. Raises InputError for another one than they were written for,
        FormatError for arrays that do not have its counts or hold what is no field element.
        """
        if self.mapped.header.get("variables") != template.variables_digest():
            ours = f"{self.copies} copies, {self.n_wires} wires"
            theirs = f"{template.copies} copies, {template.n_wires} wires"
            raise InputError(f"{self.path}: a witness of another template ({ours}) than that of {owner} ({theirs})")
        shapes = _shapes(template)
        arrays = {name: self.mapped.array(name, "u8", shapes[name]) for name in ARRAYS}
        self.check_values()
        prefix, body = arrays["prefix_fields_mont"], arrays["body_fields_mont"]
        arrays["prefix_fields_mont"], arrays["body_fields_mont"] = prefix[None], body.reshape(template.copies, -1, 4)
        return BitWitness(template, **arrays)


def _shapes(template: Template) -> dict[str, tuple[int, int]]:
    prefix, body, copies = template.prefix, template.body, template.copies
    return {
        "inputs_mont": (template.n_inputs, 4),
        "prefix_bits": (1, (prefix.aux + 63) // 64),
        "prefix_fields_mont": (int(prefix.field_aux.sum()), 4),
        "body_bits": (copies, (body.aux + 63) // 64),
        "body_fields_mont": (copies * int(body.field_aux.sum()), 4),
    }


def write_cwit(path: Path, witness: BitWitness) -> None:
    """Write a witness of bits."""
    t = witness.template
    metadata = {
        "kind": "witness", "name": t.name, "copies": t.copies, "n_wires": t.n_wires, "n_public": t.n_inputs - 1,
        "variables": t.variables_digest(),
    }  # fmt: skip
    shapes = _shapes(t)
    arrays = {name: MappedArray.of(np.ascontiguousarray(getattr(witness, name)).reshape(shapes[name])) for name in ARRAYS}
    write_mapped(path, MAGIC, metadata, arrays)
