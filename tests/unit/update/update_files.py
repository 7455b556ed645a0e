"""Small updates for the tests."""

from functools import cache

from cuzk.circuits.update.shape import SMALL_HS, UpdateShape, update_shape
from cuzk.update.job import UpdateCircuit
from cuzk.update.synthetic import synthetic_vanilla

TINY = UpdateShape("tiny", (8,), 1, 2, 1, SMALL_HS)
"""8 nodes in two partitions; no registered size."""
SMALL = update_shape("2KiB")


@cache
def circuit(shape):
    return UpdateCircuit(shape)


@cache
def vanilla(shape=TINY):
    return synthetic_vanilla(shape)
