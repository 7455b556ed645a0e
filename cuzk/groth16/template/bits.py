"""Witnesses of a template: bits kept as bits, field elements apart.

For each part (prefix, every copy of the body) the aux variables are one bit each in 64-bit words, and a list of the
field elements in order; which variable is which is the template's knowledge, the same for all copies. A bit of a
variable that is a field element means nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuzk import native
from cuzk.errors import ProofInvalid
from cuzk.groth16.template.model import Part, Template


@dataclass(frozen=True)
class FieldIndex:
    """The places of a part's field elements: `mask` (words) uint64, `rank` (words) uint32: field elements before a word."""

    mask: np.ndarray
    rank: np.ndarray
    count: int

    def before(self, at: int) -> int:
        """The number of field elements among the first `at` variables."""
        word, bit = divmod(at, 64)
        if word == len(self.mask):
            return self.count
        return int(self.rank[word]) + (int(self.mask[word]) & ((1 << bit) - 1)).bit_count()

    @staticmethod
    def of(part: Part) -> FieldIndex:
        words = (part.aux + 63) // 64
        packed = np.zeros(8 * words, np.uint8)
        packed[: (part.aux + 7) // 8] = np.packbits(part.field_aux, bitorder="little")
        mask = packed.view(np.uint64)
        before = np.zeros(words + 1, np.uint32)
        np.cumsum(np.bitwise_count(mask), out=before[1:])
        return FieldIndex(mask, before[:-1], int(before[-1]))


ARRAYS = ("inputs_mont", "prefix_bits", "prefix_fields_mont", "body_bits", "body_fields_mont")


@dataclass(frozen=True)
class BitWitness:
    """All values of a partition. `inputs_mont` (n_inputs, 4), ONE first. For prefix and body: bits (copies, words)
    uint64 and field elements (copies, count, 4), Montgomery; the prefix has one copy."""

    template: Template
    inputs_mont: np.ndarray
    prefix_bits: np.ndarray
    prefix_fields_mont: np.ndarray
    body_bits: np.ndarray
    body_fields_mont: np.ndarray

    @staticmethod
    def of_std(template: Template, values_std: np.ndarray) -> BitWitness:
        """The witness with these values of all wires, `(n_wires, 4)` canonical. Raises ProofInvalid where a variable that is a
        bit by the template is neither 0 nor 1: no row that uses it could hold.
        """
        at = template.n_inputs
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        for part in (template.prefix, *[template.body] * template.copies):
            values, words = values_std[at : at + part.aux], np.zeros(8 * ((part.aux + 63) // 64), np.uint8)
            wrong = ((values[:, 0] > 1) | values[:, 1:].any(axis=1)) & ~part.field_aux
            if wrong.any():
                raise ProofInvalid(f"wire {at + int(np.argmax(wrong))} is a bit of the circuit, and its value is neither 0 nor 1")
            bits = np.packbits((values[:, 0] == 1) & ~part.field_aux, bitorder="little")
            words[: len(bits)] = bits
            parts.append((words.view(np.uint64), native.fr_from_std(values[part.field_aux])))
            at += part.aux
        inputs = native.fr_from_std(np.ascontiguousarray(values_std[: template.n_inputs]))
        (bits, fields), body = parts[0], parts[1:]
        return BitWitness(
            template, inputs, bits[None], fields[None], np.stack([p[0] for p in body]), np.stack([p[1] for p in body])
        )

    @property
    def n_wires(self) -> int:
        return self.template.n_wires

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self._arrays())

    def _arrays(self) -> tuple[np.ndarray, ...]:
        return tuple(getattr(self, name) for name in ARRAYS)

    def copy(self) -> BitWitness:
        """With arrays of its own."""
        return BitWitness(self.template, *(a.copy() for a in self._arrays()))

    def first_not_below_r(self) -> str | None:
        """The place of the first field element that is not below the modulus, or None."""
        for name in ("inputs_mont", "prefix_fields_mont", "body_fields_mont"):
            bad = native.fr_less_than_r(getattr(self, name).reshape(-1, 4))
            if bad >= 0:
                return f"element {bad} of {name.removesuffix('_mont')}"
        return None

    def parts(self) -> Iterator[tuple[Part, np.ndarray, np.ndarray]]:
        """Each part in the order of the aux variables: the part, its bits (words), its field elements."""
        yield self.template.prefix, self.prefix_bits[0], self.prefix_fields_mont[0]
        for bits, fields in zip(self.body_bits, self.body_fields_mont, strict=True):
            yield self.template.body, bits, fields

    def ones_share(self) -> float:
        """Share of the values that are 1 (bits only)."""
        ones = int(np.bitwise_count(self.prefix_bits).sum()) + int(np.bitwise_count(self.body_bits).sum())
        return ones / (self.template.n_aux + self.template.n_inputs)

    def classified(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The wires by value: a bitmap of those that are 1 (bit i % 8 of byte i // 8), those that are neither 0 nor 1
        (int64, rising), and the values of the latter, `(k, 4)` canonical. A byte a wire for a moment.
        """
        flags = np.empty(self.n_wires, np.uint8)
        wires, values = [], []
        at = 0

        def take(where: np.ndarray, fields_mont: np.ndarray) -> None:
            std = native.fr_to_std(np.ascontiguousarray(fields_mont))
            small = ~std[:, 1:].any(axis=1) & (std[:, 0] <= 1)
            flags[at + where] = small & (std[:, 0] == 1)
            wires.append(at + where[~small])
            values.append(std[~small])

        take(np.arange(self.template.n_inputs), self.inputs_mont)
        at += self.template.n_inputs
        fields_of = {id(p): np.flatnonzero(p.field_aux) for p in (self.template.prefix, self.template.body)}
        for part, bits, fields in self.parts():
            flags[at : at + part.aux] = np.unpackbits(bits.view(np.uint8), count=part.aux, bitorder="little")
            take(fields_of[id(part)], fields)
            at += part.aux
        return np.packbits(flags, bitorder="little"), np.concatenate(wires), np.concatenate(values)

    def chunks_std(self) -> Iterator[np.ndarray]:
        """All wires in order, canonical, (n, 4) uint64 at a time: inputs, prefix, each copy of the body."""
        yield native.fr_to_std(self.inputs_mont)
        for part, bits, fields in self.parts():
            values = np.zeros((part.aux, 4), np.uint64)
            values[:, 0] = np.unpackbits(bits.view(np.uint8), count=part.aux, bitorder="little")
            values[part.field_aux] = native.fr_to_std(np.ascontiguousarray(fields))
            yield values

    def expand_std(self) -> np.ndarray:
        """(wires, 4) uint64, canonical. 32 bytes a value: 3.9 GiB for a partition of 32 GiB."""
        out = np.empty((self.template.n_inputs + self.template.n_aux, 4), np.uint64)
        at = 0
        for chunk in self.chunks_std():
            out[at : at + len(chunk)] = chunk
            at += len(chunk)
        return out
