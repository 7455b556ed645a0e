"""Transforms over Fr. Check: the polynomial of the coefficients' side, evaluated on the CPU at random points of the domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk import native
from cuzk.gpu.ntt import Ntt
from cuzk.gpu.ntt_plan import FR_BYTES, FR_MODULUS, root_of_unity, to_mont

from . import Case

# A product by a known twiddle is 88 multiply-adds of 32 bits (kernels/ntt/twiddle.hpp); the chip does 7.64e12 a second, and moves
# 4.27e12 bytes a second, read and write together (docs/performance.md).
TWIDDLE_RATE = 7.64e12 / 88
BYTE_RATE = 4.27e12
CHUNK = 1 << 22


def mont(value: int) -> np.ndarray:
    return np.frombuffer(to_mont(value).to_bytes(FR_BYTES, "little"), np.uint64).reshape(1, 4).copy()


def random_fr(device: Any, n: int, rng: np.random.Generator) -> Any:
    """n random canonical values, made on the device from a seed of `rng`."""
    import cupy

    memory = device.allocate(FR_BYTES * n, f"{n} values")
    unowned = cupy.cuda.UnownedMemory(memory.address, FR_BYTES * n, None)
    view = cupy.ndarray((n, 8), cupy.uint32, cupy.cuda.MemoryPointer(unowned, 0))
    state = cupy.random.RandomState(int(rng.integers(2**32)))
    for begin in range(0, n, CHUNK):
        part = state.randint(0, 2**32, size=(min(CHUNK, n - begin), 8), dtype=cupy.uint32)
        part[:, 7] %= FR_MODULUS >> 224
        view[begin : begin + CHUNK] = part
    cupy.cuda.Device().synchronize()
    cupy.get_default_memory_pool().free_all_blocks()
    return memory


def evaluate(device: Any, coefficients: int, n: int, x: int) -> np.ndarray:
    """sum c_i x^i of n values on the device, computed on the CPU; the form of the coefficients is kept."""
    total, buffer = np.zeros((1, 4), np.uint64), np.empty((min(n, CHUNK), 4), np.uint64)
    for begin in range(0, n, CHUNK):
        part = device.download(coefficients + FR_BYTES * begin, buffer)
        powers = native.fr_powers_mont(mont(x), len(part), mont(pow(x, begin, FR_MODULUS)))
        total = native.fr_add(total, native.fr_dot_mont(part, powers))
    return total


class PreparedNtt:
    """The input is kept beside the buffer that is transformed in place, over and over."""

    def __init__(self, device: Any, log_n: int, rng: np.random.Generator, **options: Any) -> None:
        self.device, self.n, self.log_n, self.options = device, 1 << log_n, log_n, options
        self.input = random_fr(device, self.n, rng)
        self.data = device.allocate(self.input.size_bytes, "data")
        self.plan = Ntt(device, log_n, **options)
        self.stream, self.done, self.rng = device.stream(), device.event(), rng

    def start(self, stream: Any) -> None:
        self.plan.run(self.data.address, stream)
        self.device.record(self.done, stream)

    def finish(self) -> None:
        self.device.wait(self.done)

    def check(self) -> bool:
        self.device.copy(self.data.address, self.input.address, self.input.size_bytes, self.stream)
        self.start(self.stream)
        self.finish()
        inverse, order = self.options.get("inverse", False), self.options.get("order", "nn")
        coefficients, values = (self.data, self.input) if inverse else (self.input, self.data)
        for k in self.rng.integers(0, self.n, 2):
            x = pow(root_of_unity(self.log_n, 7), int(k), FR_MODULUS) * (self.options.get("coset") or 1) % FR_MODULUS
            place = int(format(k, f"0{self.log_n}b")[::-1], 2) if order == "nr" and not inverse else int(k)
            got = self.device.download(values.address + FR_BYTES * place, np.empty((1, 4), np.uint64))
            if not np.array_equal(got, evaluate(self.device, coefficients.address, self.n, x)):
                return False
        return True

    def free(self) -> None:
        self.plan.free()
        self.data.free()
        self.input.free()


def ntt_case(name: str, log_n: int, peer_ms: float | None = None, goal_ms: float | None = None, **options: Any) -> Case:
    n = 1 << log_n
    # every pass reads and writes all data once
    products, passes = Ntt.work(log_n, **options)
    return Case(
        name=f"{name}_2^{log_n}",
        prepare=lambda device, rng: PreparedNtt(device, log_n, rng, **options),
        peer_ms=peer_ms,
        goal_ms=goal_ms,
        ceiling_ms=1e3 * max(products / TWIDDLE_RATE, passes * 2 * FR_BYTES * n / BYTE_RATE),
        note=f"{products / 1e9:.2f} G products, {passes} passes",
    )


# log2 n: the peer's time and the goal, ms
FORWARD = {20: (None, None), 22: (None, None), 24: (4.4, 4.0), 26: (None, None), 27: (42, 37)}


def cases() -> list[Case]:
    found = [ntt_case("ntt", log_n, *figures) for log_n, figures in FORWARD.items()]
    return [
        *found,
        ntt_case("ntt_to_reversed", 27, order="nr"),
        ntt_case("ntt_inverse", 27, inverse=True),
        ntt_case("ntt_coset", 27, coset=7),
        ntt_case("ntt_coset_inverse", 24, inverse=True, coset=7),
        ntt_case("ntt_coset_inverse", 27, 52, 42, inverse=True, coset=7),
    ]
