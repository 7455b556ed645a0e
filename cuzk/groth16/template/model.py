"""Matrices as a template: a prefix, then copies of one body whose columns are shifted.

A partition of PoRep repeats one challenge, one of WindowPoSt one sector; only the body's rows are kept. Columns of the template
(int32):

    [0, shared_inputs)            ONE and the prefix's inputs     the same in all copies
    [.., + shared_aux)            the prefix's aux variables      the same in all copies
    [.., + parameters)            the copy's parameters           shared variables that each copy chooses for itself
    [.., + body.inputs)           the body's inputs               shifted by body.inputs from copy to copy
    [.., + body.aux)              the body's aux variables        shifted by body.aux from copy to copy

Wires of the whole system are numbered as everywhere else: inputs (ONE first), then aux variables. Its rows are the
prefix's, the body's of copy 0, of copy 1, …, and last a row A = input for every input (B = C = 0).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Protocol

import numpy as np


class RowNames(Protocol):
    """Who emitted a row of a part."""

    def name(self, row: int) -> str:
        """The gadget's name."""


@dataclass(frozen=True)
class TemplateMatrix:
    """Compressed rows of one part: `row_ptr` (rows + 1) u32, `col` int32 (see above), `coef_id` u16."""

    row_ptr: np.ndarray
    col: np.ndarray
    coef_id: np.ndarray

    @property
    def nonzeros(self) -> int:
        return len(self.col)

    def fault(self, columns: int, coefficients: int) -> str | None:
        """A fault in these arrays that a walker could not trust, or None."""
        if self.row_ptr[0] != 0 or self.row_ptr[-1] != len(self.col) or bool(np.any(self.row_ptr[1:] < self.row_ptr[:-1])):
            return f"row offsets do not grow from 0 to {len(self.col):,}"
        if len(self.col) and (self.col.min() < 0 or self.col.max() >= columns):
            return f"a column is outside 0 … {columns - 1:,}"
        if len(self.col) and self.coef_id.max() >= coefficients:
            return f"a coefficient id is outside 0 … {coefficients - 1:,}"
        return None


@dataclass(frozen=True)
class Part:
    """Prefix or body."""

    rows: int
    inputs: int
    aux: int
    matrices: tuple[TemplateMatrix, TemplateMatrix, TemplateMatrix]
    field_aux: np.ndarray
    """(aux,) bool: True where the variable is a field element, False where it is a bit."""


@dataclass(frozen=True)
class Template:
    prefix: Part
    body: Part
    copies: int
    coefficients_mont: np.ndarray
    """(k, 4) uint64; id 0 is +1, id 1 is -1."""
    name: str = ""
    choices: np.ndarray | None = None
    """(copies, parameters) u32: the shared column that each parameter of a copy stands for, none that the row of
    the body that uses it names itself; None: no parameters."""
    marks: tuple[RowNames, RowNames] | None = field(default=None, repr=False, compare=False)
    """Gadget names of the prefix's and the body's rows; not kept in files."""
    copy_name: str = field(default="challenge", compare=False)
    """The name of a copy where a row is named; not kept in files."""

    @property
    def shared(self) -> int:
        """Columns below this one are not shifted."""
        return self.prefix.inputs + self.prefix.aux

    @property
    def parameters(self) -> int:
        return 0 if self.choices is None else self.choices.shape[1]

    @property
    def body_input_column(self) -> int:
        """First column of the body's inputs."""
        return self.shared + self.parameters

    @property
    def body_aux_column(self) -> int:
        """First column of the body's aux variables."""
        return self.body_input_column + self.body.inputs

    @property
    def n_inputs(self) -> int:
        """ONE included."""
        return self.prefix.inputs + self.copies * self.body.inputs

    @property
    def n_aux(self) -> int:
        return self.prefix.aux + self.copies * self.body.aux

    @property
    def n_wires(self) -> int:
        return self.n_inputs + self.n_aux

    @property
    def n_constraints(self) -> int:
        """Rows without those of the inputs."""
        return self.prefix.rows + self.copies * self.body.rows

    @property
    def n_rows(self) -> int:
        return self.n_constraints + self.n_inputs

    @property
    def log2_domain(self) -> int:
        return (self.n_rows - 1).bit_length()

    def has_variables_of(self, other: Template) -> bool:
        """Whether witnesses of one are witnesses of the other as far as their arrays go: the same counts, the same bits."""
        return self is other or (
            self.copies == other.copies
            and all(
                (p.inputs, p.aux) == (q.inputs, q.aux) and np.array_equal(p.field_aux, q.field_aux)
                for p, q in ((self.prefix, other.prefix), (self.body, other.body))
            )
        )

    def is_equal(self, other: Template) -> bool:
        """The same matrices in the same arrays; names do not matter."""
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return self.has_variables_of(other) and all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def _arrays(self) -> list[np.ndarray]:
        matrices = [m for p in (self.prefix, self.body) for m in p.matrices]
        chosen = np.zeros((self.copies, 0), np.uint32) if self.choices is None else self.choices
        return [a for m in matrices for a in (m.row_ptr, m.col, m.coef_id)] + [self.coefficients_mont, chosen]

    def variables_digest(self) -> str:
        """BLAKE2b-256, hexadecimal, of what `has_variables_of` compares."""
        digest = blake2b(digest_size=32)
        for part in (self.prefix, self.body):
            digest.update(struct.pack("<QQQ", self.copies, part.inputs, part.aux))
            digest.update(np.packbits(part.field_aux, bitorder="little").data)
        return digest.hexdigest()

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self._arrays())

    def nonzeros(self) -> tuple[int, int, int]:
        """Nonzeros of A (rows of the inputs included), B, C of the whole system."""
        a, b, c = (p.nonzeros + self.copies * q.nonzeros for p, q in zip(self.prefix.matrices, self.body.matrices, strict=True))
        return a + self.n_inputs, b, c

    def wires(self, columns: np.ndarray, copy: int) -> np.ndarray:
        """Wires (int64) of template columns in a copy."""
        columns = columns.astype(np.int64)
        inputs, shared, own, aux = self.prefix.inputs, self.shared, self.body_input_column, self.body_aux_column
        if self.choices is not None:
            chosen = (columns >= shared) & (columns < own)
            columns[chosen] = self.choices[copy, columns[chosen] - shared]
        shift = np.where(columns < inputs, 0, self.n_inputs - inputs)
        shift = np.where(columns < shared, shift, inputs - own + copy * self.body.inputs)
        first_aux = self.n_inputs + self.prefix.aux + copy * self.body.aux
        return columns + np.where(columns < aux, shift, first_aux - aux)

    @cached_property
    def used_aux(self) -> tuple[np.ndarray, np.ndarray]:
        """Two bool arrays, A's and B's: whether each of the columns (shared and body) occurs."""
        out = []
        for i in (0, 1):
            used = np.zeros(self.body_aux_column + self.body.aux, bool)
            used[self.prefix.matrices[i].col] = True
            used[self.body.matrices[i].col] = True
            if self.choices is not None:
                used[self.choices[:, used[self.shared : self.body_input_column]]] = True
            out.append(used)
        return out[0], out[1]

    def used_wires(self, matrix: int) -> np.ndarray:
        """Wires (u32, rising) of A (0; every input is there) or B (1): what bellman's lists a and b hold."""
        used = self.used_aux[matrix]
        first, shared, own, body = self.prefix.inputs, self.shared, self.body_input_column, self.body_aux_column
        inputs = np.concatenate([used[:first], np.tile(used[own:body], self.copies)])
        if matrix == 0:
            inputs[:] = True
        aux = [used[first:shared], np.tile(used[body:], self.copies)]
        return np.flatnonzero(np.concatenate([inputs, *aux])).astype(np.uint32)

    def densities(self) -> tuple[int, int, int]:
        """Aux variables in A; inputs in B; aux variables in B (every input is in A, by its own row)."""
        a, b = self.used_aux
        first, shared, own, body = self.prefix.inputs, self.shared, self.body_input_column, self.body_aux_column

        def aux(used: np.ndarray) -> int:
            return int(used[first:shared].sum()) + self.copies * int(used[body:].sum())

        return aux(a), int(b[:first].sum()) + self.copies * int(b[own:body].sum()), aux(b)

    def bit_share(self) -> float:
        """Share of the aux variables that are bits by construction."""
        fields = int(self.prefix.field_aux.sum()) + self.copies * int(self.body.field_aux.sum())
        return 1 - fields / self.n_aux

    def row_name(self, row: int) -> str:
        """The gadget that emitted a row of the whole system. Needs `marks`."""
        assert self.marks is not None
        if row < self.prefix.rows:
            return self.marks[0].name(row)
        copy, local = divmod(row - self.prefix.rows, self.body.rows)
        if copy >= self.copies:
            return f"row of input {row - self.n_constraints}"
        return f"{self.copy_name} {copy} / {self.marks[1].name(local)}"

    def expand(self, matrix: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One matrix (0 A, 1 B, 2 C) of the whole system, rows of the inputs included: row_ptr u64, wires u32,
        coefficient ids u16. Size: 6 bytes a nonzero and 8 a row."""
        prefix, body = self.prefix.matrices[matrix], self.body.matrices[matrix]
        extra = self.n_inputs if matrix == 0 else 0
        total = prefix.nonzeros + self.copies * body.nonzeros
        row_ptr = np.empty(self.n_rows + 1, np.uint64)
        col = np.empty(total + extra, np.uint32)
        ids = np.zeros(total + extra, np.uint16)
        row_ptr[: self.prefix.rows + 1] = prefix.row_ptr
        col[: prefix.nonzeros] = self.wires(prefix.col, 0)
        ids[: prefix.nonzeros] = prefix.coef_id
        for copy in range(self.copies):
            at = prefix.nonzeros + copy * body.nonzeros
            row = self.prefix.rows + copy * self.body.rows
            np.add(body.row_ptr[1:], at, out=row_ptr[row + 1 : row + 1 + self.body.rows], dtype=np.uint64)
            col[at : at + body.nonzeros] = self.wires(body.col, copy)
            ids[at : at + body.nonzeros] = body.coef_id
        row_ptr[self.n_constraints + 1 :] = total + (np.arange(1, self.n_inputs + 1) if matrix == 0 else 0)
        if matrix == 0:
            col[total:] = np.arange(self.n_inputs, dtype=np.uint32)
        return row_ptr, col, ids
