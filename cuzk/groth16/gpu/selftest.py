"""Arithmetic of a GPU's kernels, on the card: fields against Python's integers, sums and transforms against the host library."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cuzk import native
from cuzk.gpu import ntt
from cuzk.gpu.msm import Msm
from cuzk.gpu.msm_plan import plan_msm
from cuzk.groth16.field import FQ_MODULUS, FQ_R_INV, FR_MODULUS, fr_array
from cuzk.groth16.selftest import R_INVERSE, Report, edge_values, random_elements

Limbs = NDArray[np.uint64]
BLOCK = 128
BUDGET_BYTES = 1 << 30


def run_device(device: Any, operations: int, progress: Callable[[str, int, int], None] = lambda *_: None) -> Report:
    """Compare about `operations` field operations on a device, an MSM of each group and a transform of each root."""
    report, start = Report(), time.perf_counter()
    rng = np.random.default_rng()
    fr: dict[str, Callable[[int, int], int]] = {
        "fr_mul": lambda a, b: a * b * R_INVERSE % FR_MODULUS,
        "fr_add": lambda a, b: (a + b) % FR_MODULUS,
        "fr_sub": lambda a, b: (a - b) % FR_MODULUS,
    }
    fq: dict[str, Callable[[int, int], int]] = {
        "fq_mul": lambda a, b: a * b * FQ_R_INV % FQ_MODULUS,
        "fq_add": lambda a, b: (a + b) % FQ_MODULUS,
        "fq_sub": lambda a, b: (a - b) % FQ_MODULUS,
    }
    each = max(1, operations // (len(fr) + len(fq)))
    done = 0
    for wanted, limbs, modulus in ((fr, 4, FR_MODULUS), (fq, 6, FQ_MODULUS)):
        edges = [v % modulus for v in (*edge_values(), modulus - 1, modulus - 2, (1 << 64 * limbs) % modulus)]
        grid = [(a, b) for a in edges for b in edges]
        for name, expected in wanted.items():
            left, first = each, True
            while left > 0 or first:
                n = min(1 << 17, left)
                if first:
                    pair = _array([a for a, _ in grid], limbs), _array([b for _, b in grid], limbs)
                else:
                    pair = _random(n, limbs, modulus, rng), _random(n, limbs, modulus, rng)
                    left -= n
                first = False
                found = _launch(device, name, *pair)
                values = [expected(x, y) for x, y in zip(_ints(pair[0]), _ints(pair[1]), strict=True)]
                wrong = next((k for k, (x, y) in enumerate(zip(_ints(found), values, strict=True)) if x != y), None)
                report.count(f"gpu {name}", len(values), None if wrong is None else f"operands {wrong} of this round")
                done += len(values)
                progress("field operations of the GPU", done, operations)
    _sums(device, report, rng)
    _transforms(device, report, rng)
    report.took_s = time.perf_counter() - start
    return report


def _finish(device: Any, stream: Any) -> None:
    done = device.event()
    device.record(done, stream)
    device.wait(done)


def _array(values: Sequence[int], limbs: int) -> Limbs:
    return np.frombuffer(b"".join(v.to_bytes(8 * limbs, "little") for v in values), np.uint64).reshape(-1, limbs).copy()


def _random(n: int, limbs: int, modulus: int, rng: np.random.Generator) -> Limbs:
    out = rng.integers(0, 1 << 64, (n, limbs), dtype=np.uint64)
    out[:, -1] %= np.uint64(modulus >> (64 * (limbs - 1)))
    return out


def _ints(array: Limbs) -> list[int]:
    size, raw = 8 * array.shape[1], array.tobytes()
    return [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]


def _launch(device: Any, name: str, a: Limbs, b: Limbs) -> Limbs:
    held = [device.upload(x) for x in (np.zeros_like(a), a, b)]
    stream = device.stream()
    arguments = (*(block.address for block in held), np.uint32(len(a)))
    device.launch(device.kernel("ec/operations", name), 4 * device.multiprocessors, BLOCK, arguments, stream)
    _finish(device, stream)
    out: Limbs = device.download(held[0].address, np.empty_like(a))
    for block in held:
        block.free()
    return out


def _sums(device: Any, report: Report, rng: np.random.Generator) -> None:
    sizes: dict[Literal["g1", "g2"], int] = {"g1": 5000, "g2": 1500}
    for group, n in sizes.items():
        of_g1, of_g2 = (native.fixed_base_g1, native.msm_g1, native.g1_neg), (native.fixed_base_g2, native.msm_g2, native.g2_neg)
        fixed, msm, neg = of_g1 if group == "g1" else of_g2
        points, scalars = fixed(random_elements(n, rng)), random_elements(n, rng)
        points[::17] = 0
        points[5::31] = points[4]
        points[6::37] = neg(points[4:5])
        scalars[: len(edge_values())] = fr_array(edge_values())
        plan = Msm(device, plan_msm(n, group, BUDGET_BYTES, multiprocessors=device.multiprocessors))
        held = [device.upload(points), device.upload(scalars)]
        found = plan.run(held[0].address, held[1].address, device.stream(), copy_stream=device.stream()).result()
        for block in held:
            block.free()
        plan.free()
        same = np.array_equal(found, msm(points, scalars))
        report.count(f"gpu {group}_msm of {n}", 1, None if same else "another sum than the host's")


def _transforms(device: Any, report: Report, rng: np.random.Generator) -> None:
    for root in (5, 7):
        for log_n in (4, 11):
            values = native.fr_from_std(random_elements(1 << log_n, rng))
            wanted = values.copy()
            native.ntt(wanted, root)
            plan = ntt.Ntt(device, log_n, root=root)
            data, stream = device.upload(values), device.stream()
            plan.run(data.address, stream)
            _finish(device, stream)
            found = device.download(data.address, np.empty_like(values))
            data.free()
            plan.free()
            same = np.array_equal(found, wanted)
            wrong = None if same else "other values than the host's"
            report.count(f"gpu ntt of 2^{log_n} with the root of {root}", len(values), wrong)
