"""The three quotients. Check: A, B and C evaluated on the CPU from their values on the domain (barycentric formula)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuzk import native
from cuzk.gpu.ntt_plan import FR_BYTES, FR_MODULUS, root_of_unity, to_mont
from cuzk.gpu.quotient import Quotient, polynomials

from . import Case
from .ntt import BYTE_RATE, CHUNK, TWIDDLE_RATE, evaluate, mont, random_fr

MUL_RATE = 59.7e9


def integer(value: np.ndarray) -> int:
    return int.from_bytes(value.tobytes(), "little")


def value_at(device: Any, values: int, log_n: int, x: int) -> int:
    """The polynomial with these Montgomery values on the domain, at x outside it; std: (x^n - 1) / n sum v_k w^k / (x - w^k)."""
    n, w = 1 << log_n, root_of_unity(log_n, 7)
    total, buffer = np.zeros((1, 4), np.uint64), np.empty((min(n, CHUNK), 4), np.uint64)
    for begin in range(0, n, CHUNK):
        part = device.download(values + FR_BYTES * begin, buffer)
        points = native.fr_powers_mont(mont(w), len(part), mont(pow(w, begin, FR_MODULUS)))
        weights = native.fr_mul(points, native.fr_inv(native.fr_sub(points, mont(x))))  # w^k / (w^k - x)
        total = native.fr_add(total, native.fr_dot_mont(part, weights))
    factor = (1 - pow(x, n, FR_MODULUS)) * pow(n, -1, FR_MODULUS)
    return integer(total) * pow(to_mont(1), -1, FR_MODULUS) * factor % FR_MODULUS


class PreparedQuotient:
    def __init__(self, device: Any, kind: str, log_n: int, rng: np.random.Generator) -> None:
        self.device, self.kind, self.log_n, self.n, self.rng = device, kind, log_n, 1 << log_n, rng
        self.stream, self.done = device.stream(), device.event()
        self.inputs = [random_fr(device, self.n, rng) for _ in range(2)]
        if kind != "c-free":  # c = a b, a satisfied circuit
            self.inputs.append(device.allocate(FR_BYTES * self.n, "c"))
            a, b, c = (block.address for block in self.inputs)
            for begin in range(0, FR_BYTES * self.n, FR_BYTES * CHUNK):
                parts = [device.download(at + begin, np.empty((min(self.n, CHUNK), 4), np.uint64)) for at in (a, b)]
                product = native.fr_mul(*parts)
                device.copy(c + begin, product.ctypes.data, product.nbytes, self.stream)
                self.stream.synchronize()
        self.data = [device.allocate(block.size_bytes, "data") for block in self.inputs]
        self.quotient = Quotient(device, kind, log_n)

    def start(self, stream: Any) -> None:
        a, b, c = ([block.address for block in self.data] + [0])[:3]
        self.quotient.run(a, b, c, stream)
        self.device.record(self.done, stream)

    def finish(self) -> None:
        self.device.wait(self.done)

    def check(self) -> bool:
        for to, block in zip(self.data, self.inputs, strict=True):
            self.device.copy(to.address, block.address, block.size_bytes, self.stream)
        self.start(self.stream)
        self.finish()
        k = int(self.rng.integers(self.n))
        bellman = self.kind == "bellman"
        # bellman: anywhere off the domain, by the coefficients; else one of the values themselves
        x = int(self.rng.integers(2, 2**62)) if bellman else pow(root_of_unity(self.log_n + 1, 7), 2 * k + 1, FR_MODULUS)
        a, b, c = ([value_at(self.device, block.address, self.log_n, x) for block in self.inputs] + [0])[:3]
        want = (a * b - c) % FR_MODULUS
        if not bellman:
            got = self.device.download(self.data[0].address + FR_BYTES * k, np.empty((1, 4), np.uint64))
            return integer(got) == want
        last = self.device.download(self.data[0].address + FR_BYTES * (self.n - 1), np.empty((1, 4), np.uint64))
        h = integer(evaluate(self.device, self.data[0].address, self.n, x))
        return not last.any() and h * (pow(x, self.n, FR_MODULUS) - 1) % FR_MODULUS == want

    def free(self) -> None:
        self.quotient.free()
        for block in (*self.data, *self.inputs):
            block.free()


def quotient_case(name: str, kind: str, log_n: int, peer_ms: float | None, goal_ms: float | None) -> Case:
    n = 1 << log_n
    products, passes = Quotient.work(kind, log_n)
    factor_bytes = (len(polynomials(kind)) - 1) * FR_BYTES * n  # the last pass reads these, and stores into a
    return Case(
        name=f"{name}_2^{log_n}",
        prepare=lambda device, rng: PreparedQuotient(device, kind, log_n, rng),
        peer_ms=peer_ms,
        goal_ms=goal_ms,
        ceiling_ms=1e3 * max(products / TWIDDLE_RATE + n / MUL_RATE, (passes * 2 * FR_BYTES * n + factor_bytes) / BYTE_RATE),
        note=f"{products / 1e9:.2f} G products; the peer's 411 ms are seven transforms with the upload of a, b, c",
    )


def cases() -> list[Case]:
    return [
        quotient_case("quotient", "c-free", 27, 411, 165),
        quotient_case("quotient_odd_coset", "odd-coset", 27, None, None),
        quotient_case("quotient_bellman", "bellman", 27, 411, None),
    ]
