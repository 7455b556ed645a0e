"""ChaCha key streams with 8 or 20 rounds (RFC 8439's layout), many keys or many counters at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

_CONSTANT = np.frombuffer(b"expand 32-byte k", np.uint32)


def _rotl(x: Words, n: int) -> Words:
    return (x << np.uint32(n)) | (x >> np.uint32(32 - n))


def _quarter(v: list[Words], a: int, b: int, c: int, d: int) -> None:
    for x, y, z, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        v[x] = v[x] + v[y]
        v[z] = _rotl(v[z] ^ v[x], n)


def chacha_blocks(keys: Words, counters: Words, nonce: Words, rounds: int) -> Words:
    """(n, 16) words: a block for each of n keys (n, 8), counters (n,) and nonces (n, 3); one row stands for all."""
    n = max(len(keys), len(counters), len(nonce))
    columns = [*np.ascontiguousarray(keys.T), counters, *np.ascontiguousarray(nonce.T)]
    start = [np.full(n, c, np.uint32) for c in _CONSTANT] + [np.broadcast_to(c, (n,)).astype(np.uint32) for c in columns]
    v = list(start)
    for _ in range(rounds // 2):
        for i in range(4):
            _quarter(v, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            _quarter(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return np.stack([x + y for x, y in zip(v, start, strict=True)], axis=1)


def chacha8(keys: Words, blocks: int) -> Words:
    """Key streams of (n, 8) keys, nonce 0, counters from 0: (n, 16·blocks)."""
    zero = np.zeros((1, 3), np.uint32)
    return np.concatenate([chacha_blocks(keys, np.array([c], np.uint32), zero, 8) for c in range(blocks)], axis=1)


def chacha20_at(key: bytes, nonce: bytes, words: NDArray[np.int64], width: int) -> NDArray[np.uint32]:
    """(n, width) words of one key stream, n runs of `width` words; run i begins at word `words[i]` and lies in one block."""
    block, at = np.divmod(words, 16)
    stream = chacha_blocks(
        np.frombuffer(key, np.uint32)[None], block.astype(np.uint32), np.frombuffer(nonce, np.uint32)[None], 20
    )  # fmt: skip
    return stream[np.arange(len(words))[:, None], at[:, None] + np.arange(width)]
