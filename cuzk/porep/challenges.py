"""The nodes that a partition must open: three ways to draw them, none of which gives node 0.

interactive: SHA-256 of the replica id, the seed and a counter over all partitions. synthetic: a set of up to 2^18 nodes
follows from the sector alone (a ChaCha20 stream keyed with the replica id and comm_r), and the seed chooses among them.
non-interactive: as interactive, with comm_r in place of the seed.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cuzk.circuits.porep.shape import Shape
from cuzk.porep.chacha import chacha20_at
from cuzk.porep.registered import Drawing, registered_id

_SYNTHETIC_SET = 1 << 18
_NONCE = b"synth-porep\0"
_GENERATION = b"filecoin.io|PoRep|1|Synthetic|1|Generation"
_SELECTION = b"filecoin.io|PoRep|1|Synthetic|1|Selection"
_NON_INTERACTIVE = b"filecoin.io|PoRep|1|NonInteractive|1"


def challenges(shape: Shape, replica_id: bytes, seed: bytes, partition: int) -> list[int]:
    """The interactive challenges of a partition (from 0)."""
    return _hashed(shape, replica_id + seed, partition)


def drawn(shape: Shape, porep_id: bytes, replica_id: bytes, comm_r: bytes, seed: bytes, partition: int) -> list[int]:
    """The challenges of a partition as the registered type draws them. Raises InputError for a PoRep id of no type."""
    drawing = registered_id(porep_id).drawing
    if drawing is Drawing.INTERACTIVE:
        return challenges(shape, replica_id, seed, partition)
    if drawing is Drawing.NON_INTERACTIVE:
        return _hashed(shape, _NON_INTERACTIVE + replica_id + comm_r, partition)
    return _synthetic(shape, replica_id, comm_r, seed, partition)


def _counters(shape: Shape, partition: int) -> range:
    first = partition * shape.challenges
    return range(first, first + shape.challenges)


def _node(shape: Shape, little_endian: bytes) -> int:
    return int.from_bytes(little_endian, "little") % (shape.nodes - 1) + 1


def _hashed(shape: Shape, head: bytes, partition: int) -> list[int]:
    return [_node(shape, hashlib.sha256(head + i.to_bytes(4, "little")).digest()) for i in _counters(shape, partition)]


def _keyed(key: bytes, message: bytes) -> bytes:
    return hashlib.blake2b(message, digest_size=32, key=key).digest()


def _synthetic(shape: Shape, replica_id: bytes, comm_r: bytes, seed: bytes, partition: int) -> list[int]:
    counters = np.array(_counters(shape, partition), np.int64)
    chosen = chacha20_at(_keyed(_SELECTION, replica_id + seed), _NONCE, counters, 1)[:, 0].astype(np.int64)
    index = chosen % min(shape.nodes, _SYNTHETIC_SET)
    members = chacha20_at(_keyed(_GENERATION, replica_id + comm_r), _NONCE, 8 * index, 8)
    return [_node(shape, row.tobytes()) for row in members]
