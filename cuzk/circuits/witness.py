"""Witnesses of a template filled: the gadgets run on columns, one lane a copy of the body."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from cuzk.circuits.algebra import Columns, bits_to_lanes
from cuzk.circuits.emitter import Bit, Block, Deferred, Emitter, Library, Num
from cuzk.groth16.template.bits import BitWitness
from cuzk.groth16.template.model import Part, Template

_CHUNK_BYTES = 32 << 20
"""Bytes of unpacked bits while the calls of one gadget are spread over the witness."""
_FIELD_BYTES = 256 << 20
"""Bytes of field elements while the calls of one gadget run together: more calls than these take go in several rounds."""


def build_witness(
    template: Template, library: Library, prefix: Callable[[Emitter], Any], body: Callable[[Emitter, Any], None]
) -> BitWitness:
    """Runs `prefix(cs)` in one lane and `body(cs, prefix's result)` on columns, one lane a copy. `library` is the one that
    emitted the template; what prefix returns is made of dataclasses and sequences of bits and numbers."""
    lanes = template.copies
    cs = Emitter(library, rows=False, algebra=Columns(1))
    shared = prefix(cs)
    first = _Filler(template.prefix, 1)
    first.fill(cs.aux_values, 0, library)
    inputs, aux = cs.n_inputs, cs.n_aux
    cs.aux_values = []
    cs.algebra = Columns(lanes)
    cs.ones = cs.algebra.ones
    body(cs, in_all_lanes(shared, cs.ones))
    if (inputs, aux, cs.n_inputs - inputs, cs.n_aux - aux) != (
        template.prefix.inputs, template.prefix.aux, template.body.inputs, template.body.aux
    ):  # fmt: skip
        raise AssertionError("values and structure allocate different variables")
    public = np.stack([np.broadcast_to(v, (lanes, 4)) for v in cs.input_values])
    inputs_mont = np.concatenate([public[:inputs, 0], public[inputs:].transpose(1, 0, 2).reshape(-1, 4)])
    second = _Filler(template.body, lanes)
    second.fill(cs.aux_values, aux, library)
    return BitWitness(
        template, np.ascontiguousarray(inputs_mont),
        first.packed(), first.fields, second.packed(), second.fields,
    )  # fmt: skip


def in_all_lanes(shared: Any, ones: int) -> Any:
    """One lane's values as every lane sees them: bits become masks; (1, 4) field elements stand for all as they are."""
    if isinstance(shared, Bit):
        return Bit(shared.var, shared.neg, ones if shared.value else 0, shared.const)
    if is_dataclass(shared) and not isinstance(shared, type):
        return replace(shared, **{f.name: in_all_lanes(getattr(shared, f.name), ones) for f in fields(shared)})
    if isinstance(shared, (list, tuple)):
        return [in_all_lanes(x, ones) for x in shared]
    return shared


class _Filler:
    """Spreads columns over the witness of one part, lane by lane."""

    def __init__(self, part: Part, lanes: int) -> None:
        self.part, self.lanes = part, lanes
        words = (part.aux + 63) // 64
        self.bits = np.zeros((lanes, 64 * words), np.uint8)
        self.rank = np.concatenate([np.zeros(1, np.int32), np.cumsum(part.field_aux, dtype=np.int32)])
        self.fields = np.zeros((lanes, int(self.rank[-1]), 4), np.uint64)

    def packed(self) -> np.ndarray:
        """(lanes, words) uint64."""
        return np.packbits(self.bits, axis=1, bitorder="little").view(np.uint64)

    def fill(self, values: Sequence[Any], base: int, library: Library) -> None:
        """`values` in the order of the aux variables; the first is variable `base` of the emitter, 0 of the part."""
        at = 0
        positions: list[int] = []
        columns: list[int] = []
        deferred: dict[int, list[Deferred]] = defaultdict(list)
        for value in values:
            if isinstance(value, Deferred):
                deferred[id(value.block)].append(value)
                at += value.block.n_aux
                continue
            if isinstance(value, int):
                positions.append(at)
                columns.append(value)
            else:
                self.fields[:, self.rank[at]] = value
            at += 1
        if columns:
            self.bits[:, positions] = bits_to_lanes(columns, self.lanes)
        for calls in deferred.values():
            block = calls[0].block
            at_once = max(1, _FIELD_BYTES // max(1, 32 * self.lanes * int(block.field_aux.sum())))
            for first in range(0, len(calls), at_once):
                self._fill_calls(block, calls[first : first + at_once], base, library)

    def _fill_calls(self, block: Block[Any], calls: Sequence[Deferred], base: int, library: Library) -> None:
        """Runs the gadget once over all its calls; lanes of a call are padded to whole bytes where there are bits."""
        lanes = self.lanes if block.field_aux.all() else -(-self.lanes // 8) * 8
        width = lanes // 8
        total = lanes * len(calls)
        cs = Emitter(library, rows=False, algebra=Columns(total), inline=True)
        args: list[Bit | Num] = []
        for slot, arg in enumerate(calls[0].args):
            given = [call.args[slot] for call in calls]
            if isinstance(arg, Num):
                args.append(Num(0, self._joined([g.value for g in given], lanes)))
            elif arg.var is None:
                args.append(Bit(None, False, cs.ones if arg.const else 0, arg.const))
            else:
                raw = b"".join([g.value.to_bytes(width, "little") for g in given])
                args.append(Bit(0, arg.neg, int.from_bytes(raw, "little")))
        calls[0].gadget.body(cs, args)
        starts = [call.base - base for call in calls]
        is_field = block.field_aux
        bit_columns = [v for v, f in zip(cs.aux_values, is_field, strict=True) if not f]
        if bit_columns:
            self._spread_bits(bit_columns, np.flatnonzero(~is_field), starts, lanes)
        ranks = self.rank[starts]
        k = 0
        for value, f in zip(cs.aux_values, is_field, strict=True):
            if f:
                rows = np.broadcast_to(value, (total, 4)).reshape(len(calls), lanes, 4)[:, : self.lanes]
                self.fields[:, ranks + k] = rows.transpose(1, 0, 2)
                k += 1

    def _joined(self, values: Sequence[np.ndarray], lanes: int) -> np.ndarray:
        out = np.zeros((len(values), lanes, 4), np.uint64)
        for row, value in zip(out, values, strict=True):
            row[: self.lanes] = value
        return out.reshape(-1, 4)

    def _spread_bits(self, columns: Sequence[int], offsets: np.ndarray, starts: Sequence[int], lanes: int) -> None:
        width = lanes // 8
        whole = len(starts) * width
        raw = np.frombuffer(b"".join([c.to_bytes(whole, "little") for c in columns]), np.uint8)
        raw = raw.reshape(len(columns), len(starts), width)
        contiguous = len(offsets) == int(offsets[-1]) - int(offsets[0]) + 1
        step = max(1, _CHUNK_BYTES // (len(columns) * lanes))
        for first in range(0, len(starts), step):
            some = np.ascontiguousarray(raw[:, first : first + step].transpose(1, 2, 0))
            # (calls, width, columns) bytes: each byte holds eight lanes of one variable
            for call, block_bytes in zip(starts[first : first + step], some, strict=True):
                for lane in range(self.lanes):
                    values = (block_bytes[lane // 8] >> np.uint8(lane % 8)) & np.uint8(1)
                    if contiguous:
                        at = call + int(offsets[0])
                        self.bits[lane, at : at + len(offsets)] = values
                    else:
                        self.bits[lane, call + offsets] = values
