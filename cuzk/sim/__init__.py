"""The simulator: SimPy walks a pipeline's steps in simulated time.

    simulate(scenario, *, seed=None, trace=False) -> SimResult

SimPy is imported with the first of these names that is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.sim.result import Oom, Peak, SimResult
    from cuzk.sim.run import simulate

_HOME = {
    "simulate": "run", "SimResult": "result", "Peak": "result", "Oom": "result",
}  # fmt: skip
__all__ = ["Oom", "Peak", "SimResult", "simulate"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"cuzk.sim.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
