"""Hashes over many inputs against hashlib."""

import hashlib
import random

import numpy as np
import pytest

from cuzk import native
from cuzk.circuits.gadgets.sha256 import INITIAL_STATE
from cuzk.circuits.hashes import sha256_64, sha256_compress


@pytest.mark.parametrize("n", [1, 3, 5000])
def test_sha256_of_64_bytes(n):
    data = np.frombuffer(random.Random(n).randbytes(64 * n), np.uint8).reshape(n, 64)
    digests = sha256_64(data)
    assert digests.shape == (n, 32)
    for k in {0, n // 2, n - 1}:
        assert digests[k].tobytes() == hashlib.sha256(data[k].tobytes()).digest()


def test_chained_blocks():
    message = random.Random(1).randbytes(119)
    padded = message + b"\x80" + bytes(0) + (8 * 119).to_bytes(8, "big")
    words = np.frombuffer(padded, ">u4").astype(np.uint32).reshape(-1, 16)
    state = np.array([INITIAL_STATE], np.uint32)
    for block in words:
        state = sha256_compress(state, block[None])
    assert state.astype(">u4").tobytes() == hashlib.sha256(message).digest()


def test_rows_that_do_not_go_together():
    with pytest.raises(ValueError, match="2 and 3 rows"):
        sha256_compress(np.zeros((2, 8), np.uint32), np.zeros((3, 16), np.uint32))
    with pytest.raises(ValueError, match="round_constants"):
        native.sha256_compress(np.zeros((1, 8), np.uint32), np.zeros((1, 16), np.uint32), np.zeros(63, np.uint32))
