"""The hashes of PoRep outside the circuit, over many inputs at once."""

from __future__ import annotations

from functools import cache

import numpy as np

from cuzk import native
from cuzk.circuits.emitter import Place
from cuzk.circuits.field import to_mont
from cuzk.circuits.gadgets.poseidon_constants import poseidon_constants
from cuzk.circuits.gadgets.sha256 import INITIAL_STATE, ROUND_CONSTANTS

_K = np.array(ROUND_CONSTANTS, np.uint32)
_IV = np.array([INITIAL_STATE], np.uint32)
_PADDING_64 = np.array([[0x80000000] + [0] * 14 + [512]], np.uint32)


def sha256_compress(state: np.ndarray, block: np.ndarray, threads: int | None = None) -> np.ndarray:
    """(n, 8) and (n, 16) uint32 words to the next state, (n, 8)."""
    return native.sha256_compress(np.ascontiguousarray(state), np.ascontiguousarray(block), _K, threads)


def sha256_64(messages: np.ndarray) -> np.ndarray:
    """SHA-256 of (n, 64) bytes: (n, 32) bytes."""
    words = np.ascontiguousarray(messages).view(">u4").astype(np.uint32)
    return sha256_compress(sha256_compress(_IV, words), _PADDING_64).astype(">u4").view(np.uint8)


@cache
def _tables(arity: int, domain_tag: int | None = None) -> np.ndarray:
    """The tag, then keys, MDS, pre-sparse and sparse matrices one after the other; Montgomery."""
    c = poseidon_constants(arity)
    tag = c.domain_tag if domain_tag is None else domain_tag
    values = [tag, *c.compressed] + [x for m in (c.mds, c.pre_sparse) for row in m for x in row]
    values += [x for column, row in c.sparse for x in (*column, *row)]
    raw = b"".join(to_mont(v).to_bytes(32, "little") for v in values)
    return np.frombuffer(raw, np.uint64).reshape(-1, 4)


def poseidon_mont(
    elements: np.ndarray, threads: int | None = None, domain_tag: int | None = None, place: Place | None = None
) -> np.ndarray:
    """(n, arity, 4) Montgomery elements to (n, 4) hashes; `domain_tag` by default that of a tree's nodes. Raises ValueError
    for an arity that is not defined. `place`: where all values of the hashes' circuits go."""
    arity = elements.shape[1]
    table = _tables(arity, domain_tag)
    flat = np.ascontiguousarray(elements).reshape(-1, 4)
    rounds = poseidon_constants(arity).partial_rounds
    if place is None:
        return native.poseidon(flat, arity, rounds, table, threads)
    rows = place.fields.reshape(len(place.fields), -1)
    return native.poseidon(flat, arity, rounds, table, threads, rows, place.first_field, place.count)


def sha256_trace(words: np.ndarray, variable: np.ndarray, negated: np.ndarray, place: Place) -> np.ndarray:
    """(n, 24) uint32 words of state and block to the next state (n, 8); all bits of the blocks' circuits go to their place."""
    return native.sha256_trace(words, variable, negated, _K, place.bits, place.first_bit, place.count)
