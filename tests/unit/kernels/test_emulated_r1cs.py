"""Witness scan and matrix products: the device's kernels run on the CPU and compared with the host library."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest

native = pytest.importorskip("cuzk.native")
if shutil.which("g++") is None:
    pytest.skip("g++ is needed to emulate the kernels", allow_module_level=True)

from cuzk.errors import OutOfMemoryError  # noqa: E402
from cuzk.gpu.matvec import BitWitness, CsrMatrix, TemplateMatrices, TemplateWitness, bit_ranks  # noqa: E402
from cuzk.gpu.ntt_plan import FR_MODULUS as R  # noqa: E402
from cuzk.gpu.ntt_plan import to_mont  # noqa: E402
from cuzk.gpu.scan import ScanPlan, scan  # noqa: E402

from .emulated import EmulatedDevice  # noqa: E402
from .test_emulated_ntt import array, integers  # noqa: E402


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> EmulatedDevice:
    return EmulatedDevice(tmp_path_factory.mktemp("emulated"))


def mostly_bits(n: int, others: float, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice([R - 1, 2, rng.randrange(R), 1 << 128]) if rng.random() < others else rng.getrandbits(1) for _ in range(n)]


def scanned(device: EmulatedDevice, values: list[int], mont: bool, capacity: int):
    plan = ScanPlan(len(values), capacity)
    memory, host = device.allocate(plan.layout.total_bytes, "scan"), device.pinned(4)
    data = device.upload(array([to_mont(v) if mont else v for v in values]))
    return scan(device, plan, memory.address, data.address, None, mont=mont, host=host), memory, data


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("others", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("mont", [True, False])
def test_scan(device, n, others, mont):
    values = mostly_bits(n, others, n)
    result, memory, data = scanned(device, values, mont, n)
    ones, tail = native.scan_witness(array(values))
    assert result.count() == len(tail)
    words = result.plan.words
    got_ones = device.download(result.ones, np.empty(8 * words, np.uint8))
    assert np.array_equal(got_ones[: len(ones)], ones) and not got_ones[len(ones) :].any()
    assert np.array_equal(device.download(result.tail, np.empty(len(tail), np.uint32)), tail)
    given = array([to_mont(v) if mont else v for v in values])
    assert np.array_equal(device.download(result.values, np.empty((len(tail), 4), np.uint64)), given[tail])
    mask = device.download(result.mask, np.empty(words, np.uint64))
    assert np.array_equal(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")), tail)
    assert np.array_equal(device.download(result.rank, np.empty(words, np.uint32)), bit_ranks(mask))
    memory.free(), data.free()


def test_scan_of_many_blocks(device):
    """More counters than the block that adds them up has threads."""
    n = 1024 * 1100
    values = np.zeros((n, 4), np.uint64)
    tail = np.sort(np.random.default_rng(1).choice(n, 3000, replace=False)).astype(np.uint32)
    values[tail, 1] = 5
    plan = ScanPlan(n, 4000)
    memory, host, data = device.allocate(plan.layout.total_bytes, "scan"), device.pinned(4), device.upload(values)
    result = scan(device, plan, memory.address, data.address, None, mont=True, host=host)
    assert result.count() == len(tail)
    assert np.array_equal(device.download(result.tail, np.empty(len(tail), np.uint32)), tail)


def test_scan_beyond_its_plan(device):
    result, memory, _ = scanned(device, [5] * 100, False, 99)
    with pytest.raises(OutOfMemoryError, match="100 values that are neither 0 nor 1"):
        result.count()
    memory.free()  # nothing was written past the plan


def random_matrix(rows: int, columns: int, id_type: type, seed: int):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0, 1, 2, 3, 40, 300, 5000], rows, p=[0.1, 0.3, 0.3, 0.2, 0.07, 0.02, 0.01])
    row_ptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint64)
    nonzeros = int(row_ptr[-1])
    table = [1, R - 1] + [random.Random(i).randrange(R) for i in range(20)]
    return (
        row_ptr, rng.integers(0, columns, nonzeros, dtype=np.uint32),
        rng.choice(len(table), nonzeros, p=[0.4, 0.3] + [0.3 / 20] * 20).astype(id_type), array([to_mont(v) for v in table]),
    )  # fmt: skip


@pytest.mark.parametrize("id_type", [np.uint16, np.uint32])
@pytest.mark.parametrize("others", [0.05, 1.0])
def test_csr(device, id_type, others):
    rows, columns = 333, 500
    matrix = random_matrix(rows, columns, id_type, 7)
    witness = mostly_bits(columns, others, 3)
    mont = array([to_mont(v) for v in witness])
    want = native.matvec_csr(*matrix, mont)
    m = CsrMatrix(device, *matrix)
    out = device.allocate(32 * rows, "out")
    fields = device.upload(mont)
    m.multiply(fields.address, out.address, None)
    assert np.array_equal(device.download(out.address, np.empty_like(want)), want)

    result, memory, _ = scanned(device, witness, True, columns)
    result.count()
    out2 = device.allocate(32 * rows, "out")
    m.multiply(BitWitness(result.ones, result.mask, result.rank, result.values), out2.address, None)
    assert np.array_equal(device.download(out2.address, np.empty_like(want)), want)
    for block in (out, out2, memory, fields):
        block.free()
    m.free()


def test_csr_keeps_std_form(device):
    matrix = random_matrix(50, 60, np.uint16, 8)
    std = array([random.Random(i).randrange(R) for i in range(60)])
    m, fields, out = CsrMatrix(device, *matrix), device.upload(std), device.allocate(32 * 50, "out")
    m.multiply(fields.address, out.address, None)
    assert np.array_equal(device.download(out.address, np.empty((50, 4), np.uint64)), native.matvec_csr_std(*matrix, std))


@pytest.mark.parametrize("parameters", [0, 5])
def test_template(device, parameters):
    """A small template with its own shifts, and shared variables that each copy chooses, against its expansion by the host."""
    template_module = pytest.importorskip("cuzk.groth16.template.model")
    witness_module = pytest.importorskip("cuzk.groth16.template.bits")
    rng = np.random.default_rng(5)

    def part(rows: int, inputs: int, aux: int, columns: int) -> object:
        matrices = []
        for _ in range(3):
            lengths = rng.choice([0, 1, 2, 3, 80], rows)
            row_ptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.uint32)
            n = int(row_ptr[-1])
            matrices.append(template_module.TemplateMatrix(
                row_ptr, rng.integers(0, columns, n, dtype=np.int32), rng.integers(0, 5, n, dtype=np.uint16)
            ))  # fmt: skip
        return template_module.Part(rows, inputs, aux, tuple(matrices), rng.random(aux) < 0.1)

    prefix, body = part(40, 4, 70, 74), part(150, 6, 200, 74 + parameters + 206)
    choices = rng.integers(0, 74, (3, parameters), dtype=np.uint32) if parameters else None
    table = array([to_mont(v) for v in (1, R - 1, 5, 2**64, R - 7)])
    template = template_module.Template(prefix, body, 3, table, choices=choices)
    values = {
        "inputs": array([to_mont(v) for v in [1, *mostly_bits(template.n_inputs - 1, 1, 1)]]),
        "prefix_bits": random_bits(rng, 1, prefix.field_aux), "prefix_fields": random_fields(1, prefix.field_aux),
        "body_bits": random_bits(rng, 3, body.field_aux), "body_fields": random_fields(3, body.field_aux),
    }  # fmt: skip
    witness = witness_module.BitWitness(
        template, values["inputs"], values["prefix_bits"], values["prefix_fields"], values["body_bits"], values["body_fields"]
    )
    wires_std = witness.expand_std()
    matrices, held = TemplateMatrices(device, template), TemplateWitness.like(device, witness)
    held.upload(witness, None)
    out = device.allocate(32 * template.n_rows, "out")
    for matrix in range(3):
        row_ptr, col, ids = template.expand(matrix)
        want = native.matvec_csr_std(row_ptr, col, ids, table, wires_std)
        matrices.multiply(matrix, held, out.address, None)
        got = device.download(out.address, np.empty_like(want))
        assert integers(got) == [to_mont(v) for v in integers(want)]
    out.free(), held.free(), matrices.free()


def random_bits(rng: np.random.Generator, copies: int, field_aux: np.ndarray) -> np.ndarray:
    bits = rng.random((copies, len(field_aux))) < 0.5
    bits[:, field_aux] = False
    packed = np.packbits(bits, axis=1, bitorder="little")
    return np.ascontiguousarray(np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))).view(np.uint64)


def random_fields(copies: int, field_aux: np.ndarray) -> np.ndarray:
    count = int(field_aux.sum())
    return array([to_mont(v) for v in mostly_bits(copies * count, 1, 9)]).reshape(copies, count, 4)
