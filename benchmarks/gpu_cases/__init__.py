"""The cases of benchmarks/gpu.py: one module per maths noun, each with `cases() -> list[Case]`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Prepared(Protocol):
    """One case with its data on the device."""

    def start(self, stream: Any) -> None:
        """Enqueues the work; returns without waiting."""

    def finish(self) -> None:
        """Waits until the result is complete, wherever it belongs (host for a point, device for a transform)."""

    def check(self) -> bool:
        """Compares the last result with an independent one. A case whose `start` works in place restores its input here."""

    def free(self) -> None:
        """Gives back all device memory."""


@dataclass(frozen=True)
class Case:
    """What is timed. `prepare(device, rng)` makes fresh random data of the full size and returns a Prepared.

    peer_ms: the best public library's time on an H200 for the same work (source in docs/performance.md), None if unknown.
    ceiling_ms: counted operations over the chip's measured rate: what perfect code would take.
    """

    name: str
    prepare: Callable[[Any, np.random.Generator], Prepared]
    peer_ms: float | None
    ceiling_ms: float
    goal_ms: float | None = None
    note: str = ""


def all_cases() -> list[Case]:
    """The cases of every module here, in the order of module names."""
    found: list[Case] = []
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda i: i.name):
        found += importlib.import_module(f"{__name__}.{info.name}").cases()
    return found
