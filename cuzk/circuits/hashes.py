"""The hashes of PoRep outside the circuit, over many inputs at once."""

from __future__ import annotations

from functools import cache

import numpy as np

from cuzk import native
from cuzk.circuits.field import to_mont
from cuzk.circuits.gadgets.poseidon_constants import poseidon_constants
from cuzk.circuits.gadgets.sha256 import INITIAL_STATE, ROUND_CONSTANTS

_K = np.array(ROUND_CONSTANTS, np.uint32)
_IV = np.array(INITIAL_STATE, np.uint32)


def _rotr(x: np.ndarray, n: int) -> np.ndarray:
    return (x >> np.uint32(n)) | (x << np.uint32(32 - n))


def sha256_compress(state: np.ndarray, block: np.ndarray) -> np.ndarray:
    """(n, 8) and (n, 16) uint32 words to the next state, (n, 8)."""
    w = list(np.ascontiguousarray(block.T))
    for i in range(16, 64):
        x, y = w[i - 15], w[i - 2]
        s0 = _rotr(x, 7) ^ _rotr(x, 18) ^ (x >> np.uint32(3))
        s1 = _rotr(y, 17) ^ _rotr(y, 19) ^ (y >> np.uint32(10))
        w.append(w[i - 16] + s0 + w[i - 7] + s1)
    start = np.ascontiguousarray(state.T)
    a, b, c, d, e, f, g, h = start
    for i in range(64):
        s1 = _rotr(e, 6) ^ _rotr(e, 11) ^ _rotr(e, 25)
        t1 = h + s1 + ((f ^ g) & e ^ g) + _K[i] + w[i]
        s0 = _rotr(a, 2) ^ _rotr(a, 13) ^ _rotr(a, 22)
        t2 = s0 + ((a | b) & c | a & b)
        a, b, c, d, e, f, g, h = t1 + t2, a, b, c, d + t1, e, f, g
    return np.ascontiguousarray((np.stack([a, b, c, d, e, f, g, h]) + start).T)


def sha256_64(messages: np.ndarray) -> np.ndarray:
    """SHA-256 of (n, 64) bytes: (n, 32) bytes."""
    padding = np.zeros((1, 16), np.uint32)
    padding[0, 0], padding[0, 15] = 0x80000000, 512
    words = np.ascontiguousarray(messages).view(">u4").astype(np.uint32)
    state = sha256_compress(np.broadcast_to(_IV, (len(words), 8)), words)
    return sha256_compress(state, np.broadcast_to(padding, (len(words), 16))).astype(">u4").view(np.uint8)


@cache
def _tables(arity: int) -> np.ndarray:
    """The tag, then keys, MDS, pre-sparse and sparse matrices one after the other; Montgomery."""
    c = poseidon_constants(arity)
    values = [c.domain_tag, *c.compressed] + [x for m in (c.mds, c.pre_sparse) for row in m for x in row]
    values += [x for column, row in c.sparse for x in (*column, *row)]
    raw = b"".join(to_mont(v).to_bytes(32, "little") for v in values)
    return np.frombuffer(raw, np.uint64).reshape(-1, 4)


def poseidon_mont(elements: np.ndarray, threads: int | None = None) -> np.ndarray:
    """(n, arity, 4) Montgomery elements to (n, 4) hashes. Raises ValueError for an arity that is not defined."""
    arity = elements.shape[1]
    table = _tables(arity)
    flat = np.ascontiguousarray(elements).reshape(-1, 4)
    return native.poseidon(flat, arity, poseidon_constants(arity).partial_rounds, table, threads)
