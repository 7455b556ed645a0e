"""Witness scan and matrix products on a GPU against the host library."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk import native
from cuzk.gpu.matvec import BitWitness, CsrMatrix
from cuzk.gpu.scan import ScanPlan, scan

pytestmark = pytest.mark.gpu

R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def random_fr(n: int, rng: np.random.Generator) -> np.ndarray:
    out = rng.integers(0, 1 << 64, (n, 4), dtype=np.uint64)
    out[:, 3] %= np.uint64(R >> 192)
    return out


def mont(value: int) -> np.ndarray:
    return np.frombuffer(((value << 256) % R).to_bytes(32, "little"), np.uint64).reshape(1, 4).copy()


def witness_std(n: int, others: float, rng: np.random.Generator) -> np.ndarray:
    values = np.zeros((n, 4), np.uint64)
    values[:, 0] = rng.integers(0, 2, n)
    picked = np.flatnonzero(rng.random(n) < others)
    values[picked] = random_fr(max(len(picked), 1), rng)[: len(picked)]
    return values


def scanned(device, values: np.ndarray, mont_form: bool, stream):
    plan = ScanPlan(len(values), len(values))
    memory, host, data = device.allocate(plan.layout.total_bytes, "scan"), device.pinned(4), device.upload(values)
    result = scan(device, plan, memory.address, data.address, stream, mont=mont_form, host=host)
    return result, (memory, host, data)


@pytest.mark.parametrize("n", [1, 64, 1000, 1025, 3_000_001])
@pytest.mark.parametrize("others", [0.0, 0.013, 1.0])
def test_scan(device, n, others):
    values = witness_std(n, others, np.random.default_rng())
    ones, tail = native.scan_witness(values)
    for mont_form in (False, True):
        given = native.fr_from_std(values) if mont_form else values
        result, blocks = scanned(device, given, mont_form, device.stream())
        assert result.count() == len(tail)
        assert np.array_equal(device.download(result.ones, np.empty(len(ones), np.uint8)), ones)
        assert np.array_equal(device.download(result.tail, np.empty(len(tail), np.uint32)), tail)
        assert np.array_equal(device.download(result.values, np.empty((len(tail), 4), np.uint64)), given[tail])
        for block in blocks:
            block.free()


@pytest.mark.parametrize("rows", [3000, 200_000])
@pytest.mark.parametrize("id_type", [np.uint16, np.uint32])
@pytest.mark.parametrize("others", [0.013, 1.0])
def test_csr(device, rows, id_type, others):
    rng = np.random.default_rng()
    columns = 3 * rows // 4
    lengths = rng.choice([0, 1, 2, 3, 70, 5000], rows, p=[0.1, 0.3, 0.3, 0.2899, 0.01, 0.0001])
    row_ptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
    col = rng.integers(0, columns, int(row_ptr[-1]), dtype=np.uint32)
    table = np.concatenate([mont(1), mont(R - 1), random_fr(100, rng)])
    ids = rng.choice(len(table), len(col), p=[0.4, 0.3] + [0.003] * 100).astype(id_type)
    witness = native.fr_from_std(witness_std(columns, others, rng))
    want = native.matvec_csr(row_ptr, col, ids, table, witness)
    matrix, stream = CsrMatrix(device, row_ptr, col, ids, table), device.stream()
    out = device.allocate(32 * rows, "out")
    result, blocks = scanned(device, witness, True, stream)
    for given in (blocks[2].address, BitWitness(result.ones, result.mask, result.rank, result.values)):
        device.fill(out.address, 0xA5, 32 * rows, stream)
        matrix.multiply(given, out.address, stream)
        stream.synchronize()
        assert np.array_equal(device.download(out.address, np.empty_like(want)), want)
    for block in (*blocks, out, matrix):
        block.free()
