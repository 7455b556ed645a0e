"""Small PoSts for the tests: made-up sectors of 2 KiB, one circuit for all."""

from functools import cache

from cuzk.post.job import PostCircuit
from cuzk.post.registered import registered_post
from cuzk.post.synthetic import synthetic_vanilla

RANDOMNESS = bytes(range(32))
KINDS = (("winning", None, 1), ("window", "1.2", 1), ("window", "1.2", 2), ("window", "1.0", 2), ("window", "1.0", 3))
"""Kind, API version, sectors: with padding, without, and in two partitions."""


@cache
def circuit(kind):
    return PostCircuit(registered_post(kind, "2KiB").shape)


def vanilla(kind="window", version=None, sectors=2, size="2KiB"):
    return synthetic_vanilla(registered_post(kind, size, version), RANDOMNESS, sectors, first_number=7)
