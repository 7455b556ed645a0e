"""The encoding of an updated sector, and the challenges of its proof.

    phi = H(comm_d_new, comm_r_old);  rho(i) = H(phi, i >> (log2 nodes - h));  new_i = old_i + data_i · rho(i)

H: Poseidon of two elements with the tag for arbitrary-length input. Elements are canonical (n, 4) unless said otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.circuits.field import MODULUS
from cuzk.circuits.gadgets.poseidon_constants import RANDOMNESS_TAG
from cuzk.circuits.hashes import poseidon_mont
from cuzk.circuits.update.shape import UpdateShape

Elements = NDArray[np.uint64]


def element(raw: bytes) -> Elements:
    """(1, 4) of 32 bytes."""
    return np.frombuffer(raw, np.uint64).reshape(1, 4)


def elements_of(numbers: list[int]) -> Elements:
    return np.frombuffer(b"".join(x.to_bytes(32, "little") for x in numbers), np.uint64).reshape(-1, 4)


def randomness_hash(first: Elements, second: Elements) -> Elements:
    """H of (n, 4) and (n, 4), either of which may be one row."""
    n = max(len(first), len(second))
    pairs = np.stack([np.broadcast_to(x, (n, 4)) for x in (first, second)], axis=1)
    mont = native.fr_from_std(pairs.reshape(-1, 4)).reshape(n, 2, 4)
    return native.fr_to_std(poseidon_mont(mont, domain_tag=RANDOMNESS_TAG))


def factors_mont(shape: UpdateShape, comm_d_new: bytes, comm_r_old: bytes) -> Elements:
    """(2^h, 4), Montgomery: rho of each value of a node's h high bits."""
    phi = randomness_hash(element(comm_d_new), element(comm_r_old))
    return native.fr_from_std(randomness_hash(phi, elements_of(list(range(1 << shape.h)))))


def _of_nodes(shape: UpdateShape, factors: Elements) -> Elements:
    """(nodes, 4): each node's factor."""
    return np.repeat(factors, shape.nodes >> shape.h, axis=0)


def encode(shape: UpdateShape, old: Elements, data: Elements, factors: Elements) -> Elements:
    """The new replica of (nodes, 4) old one and data; `factors` Montgomery."""
    return native.fr_add(old, native.fr_mul(_of_nodes(shape, factors), data))  # mont by std is std


def decode(shape: UpdateShape, old: Elements, new: Elements, factors: Elements) -> Elements:
    """The data of a new replica: (new - old) / rho."""
    return native.fr_mul(_of_nodes(shape, native.fr_inv(factors)), native.fr_sub(new, old))


def remove(shape: UpdateShape, new: Elements, data: Elements, factors: Elements) -> Elements:
    """The old replica: new - data · rho."""
    return native.fr_sub(new, native.fr_mul(_of_nodes(shape, factors), data))


def challenges(shape: UpdateShape, comm_r_new: bytes, partition: int) -> list[int]:
    """The nodes that a partition (from 0) opens; a node may occur twice."""
    first = partition * shape.digests
    indices = elements_of([(first + j) % MODULUS for j in range(shape.digests)])
    digests = randomness_hash(element(comm_r_new), indices)
    out: list[int] = []
    w = shape.challenge_bits
    for row in digests:
        digest = int.from_bytes(row.tobytes(), "little")
        for i in range(min(shape.per_digest, shape.challenges - len(out))):
            out.append((digest >> i * w) % (1 << w) + (partition << w))
    return out
