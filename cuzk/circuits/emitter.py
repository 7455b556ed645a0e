"""The emitter: gadgets run against it and become rows, or values, or both.

Variables are integers: aux variable i is i, input j is ~j, so the constant ONE is -1. Aux variables and inputs are
numbered in the order of allocation, rows in the order of enforcement: that order is what makes a foreign key fit.

A linear combination is a list of (variable, coefficient) pairs, the coefficient any Python integer (taken mod r);
equal variables are merged and zero sums dropped before a row is kept.

Structure and values are separate concerns of the same run: `rows` is a recorder or None, `algebra` computes values
(`algebra.py`: Python integers for one instance, columns for many) or is None. A gadget that is used often is called
through `Emitter.call`: its rows are emitted once for each pattern of its arguments and stamped with shifted columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuzk.circuits.field import MODULUS

ONE = -1
Terms = list[tuple[int, int]]
Rows = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint16]]
"""Rows of one matrix: their lengths, and the columns and coefficient ids of all their terms."""


class Bit:
    """A Boolean: a constant (`var` None), a variable, or the negation of one. `value` is that of the Boolean: an
    integer whose k-th bit belongs to the k-th instance; None while only structure is emitted."""

    __slots__ = ("const", "neg", "value", "var")

    def __init__(self, var: int | None, neg: bool = False, value: Any = None, const: int = 0) -> None:
        self.var, self.neg, self.value, self.const = var, neg, value, const

    @property
    def variable(self) -> int:
        """The variable of a bit that is none of the constants."""
        assert self.var is not None, "a constant has no variable"
        return self.var

    @property
    def pattern(self) -> str:
        """A stamped gadget is emitted anew for each: a constant's value, or whether the variable is negated."""
        if self.var is None:
            return "1" if self.const else "0"
        return "n" if self.neg else "b"

    def at(self, var: int | None, value: Any) -> Bit:
        """The same bit on another variable."""
        return Bit(var, self.neg, value, self.const)

    def terms(self, k: int = 1) -> Terms:
        if self.var is None:
            return [(ONE, k)] if self.const else []
        return [(ONE, k), (self.var, -k)] if self.neg else [(self.var, k)]

    def invert(self, ones: int) -> Bit:
        value = None if self.value is None else self.value ^ ones
        return Bit(self.var, not self.neg, value) if self.var is not None else Bit(None, False, value, 1 - self.const)


class Num:
    """A field element that is one variable."""

    __slots__ = ("value", "var")
    pattern = "f"

    def __init__(self, var: int, value: Any = None) -> None:
        self.var, self.value = var, value

    def at(self, var: int | None, value: Any) -> Num:
        """The same number on another variable."""
        assert var is not None, "a number is always a variable"
        return Num(var, value)


W = TypeVar("W", Bit, Num)
"""The kind of a gadget's arguments and outputs: bits or numbers."""


class CoefficientTable:
    """Different coefficients by id: 0 is +1, 1 is -1; at most 65,536 of them."""

    def __init__(self) -> None:
        self.values: list[int] = [1, MODULUS - 1]
        self._ids: dict[int, int] = {1: 0, -1: 1, MODULUS - 1: 1}

    def id(self, coefficient: int) -> int:
        known = self._ids.get(coefficient)
        if known is None:
            value = coefficient % MODULUS
            known = self._ids.get(value)
            if known is None:
                known = len(self.values)
                if known > 0xFFFF:
                    raise OverflowError("more than 65,536 different coefficients")
                self.values.append(value)
                self._ids[value] = known
            self._ids[coefficient] = known
        return known


class Library:
    """The state that emissions share: the coefficient table and the gadgets that were already emitted."""

    def __init__(self) -> None:
        self.coefficients = CoefficientTable()
        self.blocks: dict[tuple[Gadget[Any], str], Block[Any]] = {}


class MatrixRows:
    """One of A, B, C while it grows: Python lists, moved into NumPy chunks (lengths, columns, coefficient ids)."""

    __slots__ = ("chunks", "cols", "ids", "lens")

    def __init__(self) -> None:
        self.lens: list[int] = []
        self.cols: list[int] = []
        self.ids: list[int] = []
        self.chunks: list[Rows] = []

    def flush(self) -> None:
        if self.lens:
            self.chunks.append((np.array(self.lens, np.int32), np.array(self.cols, np.int32), np.array(self.ids, np.uint16)))
            self.lens, self.cols, self.ids = [], [], []

    def joined(self) -> Rows:
        self.flush()
        if not self.chunks:
            return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint16)
        lens, cols, ids = zip(*self.chunks, strict=True)
        return np.concatenate(lens), np.concatenate(cols), np.concatenate(ids)


@dataclass(frozen=True)
class Gadget(Generic[W]):
    """A gadget that `Emitter.call` stamps.

    body(cs, args) emits it and returns its outputs. `trace(algebra, args, place)` puts the values of all its variables where
    `place` says, natively, and returns those of its outputs; None where there is only the body.
    """

    name: str
    body: Callable[[Emitter, Sequence[W]], Sequence[W]]
    trace: Callable[[Any, Sequence[W], Place], Sequence[Any]] | None = None


@dataclass(frozen=True)
class Place:
    """The variables of a call in a witness: `bits` (lanes, words) uint64 and `fields` (lanes, k, 4); the first bit,
    the first field element, and how many variables (of a gadget that has only one kind)."""

    bits: np.ndarray
    fields: np.ndarray
    first_bit: int
    first_field: int
    count: int


class Sink(Protocol):
    """A witness that takes values while they are emitted."""

    def place(self, var: int, count: int) -> Place:
        """The place of `count` variables from `var` on."""


@dataclass
class Block(Generic[W]):
    """An emitted gadget. Columns: parameter p is p, ONE is `n_params`, aux i is `n_params + 1 + i`."""

    n_params: int
    n_aux: int
    n_rows: int
    matrices: tuple[Rows, ...]
    field_aux: np.ndarray
    """(n_aux,) bool: True where the variable is a field element, False where it is a bit."""
    outputs: Sequence[W]
    marks: Marks


@dataclass
class Marks:
    """The gadget that emitted each row: a step function over the rows, nested through blocks."""

    starts: list[int] = field(default_factory=list)
    labels: list[tuple[str, Marks | None]] = field(default_factory=list)

    def add(self, row: int, label: str, inner: Marks | None = None) -> None:
        if self.starts and self.starts[-1] == row:
            self.labels[-1] = (label, inner)
        else:
            self.starts.append(row)
            self.labels.append((label, inner))

    def name(self, row: int) -> str:
        at = bisect_right(self.starts, row) - 1
        if at < 0:
            return ""
        label, inner = self.labels[at]
        rest = inner.name(row - self.starts[at]) if inner else ""
        return " / ".join(part for part in (label, rest) if part)


class Emitter:
    """Collects variables, rows and values. `inline=True` emits every gadget in full (the reference of the stamping)."""

    def __init__(self, library: Library | None = None, *, rows: bool = True, algebra: Any = None, inline: bool = False) -> None:
        self.library = library or Library()
        self.recording, self.algebra, self.inline = rows, algebra, inline
        self.ones = algebra.ones if algebra is not None else 1
        self.matrices = (MatrixRows(), MatrixRows(), MatrixRows())
        self.n_rows = self.n_aux = 0
        self.n_inputs = 1
        self.input_values: list[Any] = [None if algebra is None else algebra.constant(1)]
        self.field_aux: list[np.ndarray | bool] = []
        self.aux_values: list[Any] = []
        """Values in the order of allocation: a bit column, a field value, or `Traced` ones that are in the sink."""
        self.sink: Sink | None = None
        self.marks = Marks()
        self._path: list[str] = []

    # variables

    def bit(self, value: Any) -> Bit:
        """A new aux variable that holds a bit; no row."""
        var = self.n_aux
        self.n_aux = var + 1
        if self.recording:
            self.field_aux.append(False)
        if self.algebra is not None:
            self.aux_values.append(value)
        return Bit(var, False, value)

    def num(self, value: Any) -> Num:
        """A new aux variable that holds a field element; no row."""
        var = self.n_aux
        self.n_aux = var + 1
        if self.recording:
            self.field_aux.append(True)
        if self.algebra is not None:
            self.aux_values.append(value)
        return Num(var, value)

    def input(self, value: Any) -> Num:
        """A new public input; no row."""
        var = ~self.n_inputs
        self.n_inputs += 1
        self.input_values.append(value)
        return Num(var, value)

    def constant_bit(self, value: int) -> Bit:
        return Bit(None, False, None if self.algebra is None else (self.ones if value else 0), value)

    # rows

    def enforce(self, a: Terms, b: Terms, c: Terms) -> None:
        """The row a · b = c."""
        if not self.recording:
            return
        self.n_rows += 1
        ids = self.library.coefficients.id
        for matrix, terms in zip(self.matrices, (a, b, c), strict=True):
            if len(terms) > 1 and len({t[0] for t in terms}) != len(terms):
                merged: dict[int, int] = {}
                for var, k in terms:
                    merged[var] = (merged.get(var, 0) + k) % MODULUS
                terms = [(var, k) for var, k in merged.items() if k]
            matrix.lens.append(len(terms))
            for var, k in terms:
                matrix.cols.append(var)
                matrix.ids.append(ids(k))

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names the rows emitted inside."""
        self._path.append(name)
        self.marks.add(self.n_rows, " / ".join(self._path))
        try:
            yield
        finally:
            self._path.pop()
            self.marks.add(self.n_rows, " / ".join(self._path))

    # stamping

    def call(self, gadget: Gadget[W], args: Sequence[W]) -> Sequence[W]:
        """Emits `gadget` on `args`: stamped where only rows are recorded, traced into the sink where only values are."""
        traced = self.algebra is not None and self.sink is not None and gadget.trace is not None and not self.recording
        stamped = self.algebra is None and self.recording
        variables = [a.var for a in args if a.var is not None]
        if self.inline or not (traced or stamped) or len(set(variables)) != len(variables):
            with self.scope(gadget.name):
                return gadget.body(self, args)
        block = self._block(gadget, args)
        if stamped:
            return self._stamp(gadget, block, variables)
        assert self.sink is not None
        return self._trace(gadget, block, args, self.sink)

    def _block(self, gadget: Gadget[W], args: Sequence[W]) -> Block[W]:
        key = (gadget, "".join(arg.pattern for arg in args))
        block = self.library.blocks.get(key)
        if block is None:
            block = self.library.blocks[key] = _emit_block(self.library, gadget, args)
        return block

    def _stamp(self, gadget: Gadget[W], block: Block[W], variables: list[int]) -> Sequence[W]:
        base = self.n_aux
        columns = np.empty(block.n_params + 1 + block.n_aux, np.int32)
        columns[: block.n_params] = variables
        columns[block.n_params] = ONE
        columns[block.n_params + 1 :] = np.arange(base, base + block.n_aux, dtype=np.int32)
        for matrix, (lens, cols, ids) in zip(self.matrices, block.matrices, strict=True):
            matrix.flush()
            matrix.chunks.append((lens, columns[cols], ids))
        self.field_aux.append(block.field_aux)
        self.marks.add(self.n_rows, " / ".join([*self._path, gadget.name]), block.marks)
        self.n_aux += block.n_aux
        self.n_rows += block.n_rows
        self.marks.add(self.n_rows, " / ".join(self._path))
        return [out if out.var is None else out.at(int(columns[out.var]), None) for out in block.outputs]

    def _trace(self, gadget: Gadget[W], block: Block[W], args: Sequence[W], sink: Sink) -> Sequence[W]:
        assert gadget.trace is not None
        base = self.n_aux
        self.aux_values.append(Traced(block.n_aux))
        self.n_aux += block.n_aux
        values = gadget.trace(self.algebra, args, sink.place(base, block.n_aux))
        first = block.n_params + 1
        outputs: list[W] = []
        for out, value in zip(block.outputs, values, strict=True):
            var = out.var
            if var is not None:
                var = base + var - first if var >= first else args[self._parameter(args, var)].var
            outputs.append(out.at(var, value))
        return outputs

    @staticmethod
    def _parameter(args: Sequence[Bit | Num], p: int) -> int:
        return [i for i, a in enumerate(args) if a.var is not None][p]

    # results

    def field_mask(self) -> np.ndarray:
        """(n_aux,) bool: True where an aux variable is a field element, False where it is a bit."""
        parts = [np.atleast_1d(np.asarray(p, bool)) for p in _grouped(self.field_aux)]
        return np.concatenate(parts) if parts else np.empty(0, bool)


@dataclass(frozen=True)
class Traced:
    """So many values that are in the sink already."""

    count: int


def _grouped(items: list[np.ndarray | bool]) -> Iterator[np.ndarray | list[bool]]:
    run: list[bool] = []
    for item in items:
        if isinstance(item, np.ndarray):
            if run:
                yield run
                run = []
            yield item
        else:
            run.append(item)
    if run:
        yield run


def _emit_block(library: Library, gadget: Gadget[W], args: Sequence[W]) -> Block[W]:
    cs = Emitter(library)
    formal: list[W] = []
    n_params = 0
    for arg in args:
        if arg.var is None:
            formal.append(arg.at(None, None))
        else:
            formal.append(arg.at(-2 - n_params, None))
            n_params += 1
    outputs = gadget.body(cs, formal)
    if cs.n_inputs != 1:
        raise ValueError(f"gadget {gadget.name!r} allocates inputs and cannot be stamped")
    # local numbering: parameter p (-2-p) -> p, ONE (-1) -> n_params, aux i -> n_params + 1 + i
    first = n_params + 1
    matrices = []
    for matrix in cs.matrices:
        lens, cols, ids = matrix.joined()
        matrices.append((lens, np.where(cols >= 0, cols + first, np.where(cols == ONE, n_params, -2 - cols)), ids))
    local = [out if out.var is None else out.at(out.var + first if out.var >= 0 else -2 - out.var, None) for out in outputs]
    return Block(n_params, cs.n_aux, cs.n_rows, tuple(matrices), cs.field_mask(), local, cs.marks)
