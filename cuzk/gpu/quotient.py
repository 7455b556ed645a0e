"""The h quotient on the device, three ways; every step in place on a, b and c.

Given A, B, C on the domain <w_n> (values a, b, c, Montgomery), P = A B - C vanishes there for a satisfied circuit:

    bellman     h = P / Z as coefficients: a, b, c to the coset 7 <w_n> and back, Z = 7^n - 1 there      7 transforms
    odd-coset   P at the odd 2n-th roots, w_2n <w_n>, against the key's Lagrange points there            6
    c-free      A B at the odd 2n-th roots; the key has absorbed C                                        4

An inverse transform and the next forward one on a coset meet in bit-reversed order, so nothing is permuted on the way, and their
two middle passes are one kernel. The scalars come out in std form: a factor rides on b's (and c's) table of coset powers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuzk.gpu.ntt import Tables, launch_bit_reverse, launch_passes
from cuzk.gpu.ntt_plan import (
    FR_BYTES,
    FR_MODULUS,
    FR_RADIX,
    PassCall,
    Transform,
    natural_to_reversed,
    root_of_unity,
    there_and_back,
)

KINDS = ("bellman", "odd-coset", "c-free")
TRANSFORMS = {"bellman": 7, "odd-coset": 6, "c-free": 4}
BELLMAN_SHIFT = 7


def polynomials(kind: str) -> str:
    """The vectors among a, b, c that a kind transforms."""
    if kind not in KINDS:
        raise ValueError(f"quotient is one of {', '.join(KINDS)}, not {kind}")
    return "ab" if kind == "c-free" else "abc"


class Quotient:
    """A quotient of a domain of 2^log_n, with its tables on a device. `free` after the last run has ended.

    mont: whether a, b and c come in Montgomery form (else std).
    """

    def __init__(self, device: Any, kind: str, log_n: int, *, root: int = 7, mont: bool = True, stream: Any = None) -> None:
        self.device, self.kind, self.log_n, self.last = device, kind, log_n, polynomials(kind)[-1]
        self.calls, self.back = _calls(kind, log_n, root, mont)
        self.tables = Tables([call for calls in (*self.calls.values(), self.back) for call in calls])
        self.tables.build(device, stream if stream is not None else device.stream())

    def to_coset(self, which: str, data: int, stream: Any) -> None:
        """Takes the values of polynomial "a", "b" or "c" at address `data` from the domain to the coset; returns at once.

        One call a polynomial, so that the first can run while the next is still being copied. The last polynomial's last pass is
        left to `combine`.
        """
        calls = self.calls[which]
        launch_passes(self.device, calls[:-1] if which == self.last else calls, self.tables, data, stream)

    def combine(self, a: int, b: int, c: int, stream: Any) -> None:
        """The scalars for the MSM, 2^log_n std in natural order, in place of a; b and c (0 if c-free) are free afterwards.

        The last pass of the last polynomial multiplies into a instead of storing. bellman: the last scalar is 0 for a satisfied
        circuit and is not used.
        """
        if (c != 0) != (self.last == "c"):
            raise ValueError(f"a {self.kind} quotient takes {'no ' if c else ''}c")
        data, factors = (c, (a, b)) if c else (b, (a, 0))
        launch_passes(self.device, self.calls[self.last][-1:], self.tables, data, stream, product=factors)
        if self.back:
            launch_passes(self.device, self.back, self.tables, a, stream)
            launch_bit_reverse(self.device, a, self.log_n, stream)

    def run(self, a: int, b: int, c: int, stream: Any, pause: Callable[[], None] | None = None) -> None:
        """Everything, on one stream; returns at once, or, with `pause`, which is called between passes, when it lets it."""
        for which, data in zip(polynomials(self.kind), (a, b, c), strict=False):
            calls = self.calls[which]
            for call in calls[:-1] if which == self.last else calls:
                launch_passes(self.device, [call], self.tables, data, stream)
                if pause is not None:
                    pause()
        self.combine(a, b, c, stream)

    @staticmethod
    def work(kind: str, log_n: int) -> tuple[float, int]:
        """Products by a twiddle (2^log_n general ones come on top), and passes over one polynomial, the pointwise step apart."""
        calls, back = _calls(kind, log_n, 7)
        all_calls = [call for each in (*calls.values(), back) for call in each]
        return sum(call.multiplications() for call in all_calls) * 2**log_n, len(all_calls) + bool(back)

    def free(self) -> None:
        self.tables.free()


def _calls(kind: str, log_n: int, root: int, mont: bool = True) -> tuple[dict[str, list[PassCall]], list[PassCall]]:
    names, count = polynomials(kind), 1 << log_n
    shift = BELLMAN_SHIFT if kind == "bellman" else root_of_unity(log_n + 1, root)
    vanishing = pow(shift, count, FR_MODULUS) - 1 if kind == "bellman" else 1
    # the pointwise product divides by R: a and b's forms must be std and mont, in this or the other order, and c's std
    over_z = pow(vanishing, -1, FR_MODULUS)
    to_std = pow(FR_RADIX, -1, FR_MODULUS)
    factors = {"a": 1, "b": over_z * (to_std if mont else FR_RADIX), "c": over_z * (to_std if mont else 1)}
    inverse = Transform(log_n, root, True, 1, shift, pow(count, -1, FR_MODULUS))
    forward = Transform(log_n, root, False)
    calls = {name: there_and_back(inverse, forward, factors[name]) for name in names}
    if kind != "bellman":
        return calls, []
    unshift = pow(shift, -1, FR_MODULUS)
    return calls, natural_to_reversed(Transform(log_n, root, True, 1, unshift, pow(count, -1, FR_MODULUS)))


def plan_bytes(kind: str, log_n: int) -> dict[str, int]:
    """Device bytes: `data` (a, b and, unless c-free, c), `tables` while the plan lives, `scratch` (none) while it runs."""
    calls, back = _calls(kind, log_n, 7)
    tables = Tables([call for each in (*calls.values(), back) for call in each])
    return {"data": len(polynomials(kind)) * FR_BYTES << log_n, "tables": tables.layout.total_bytes, "scratch": 0}
