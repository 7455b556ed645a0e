"""The simulator: SimPy walks a bound pipeline's steps in simulated time.

    simulate(scenario, *, seed=None, trace=False)       one run

Many runs of a scenario, and what they say, are cuzk.analysis. SimPy is imported with the first of these names that is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.sim.result import Oom, Peak, SimResult
    from cuzk.sim.run import simulate

_MODULE_OF = {"simulate": "run", "Oom": "result", "Peak": "result", "SimResult": "result"}
__all__ = ["Oom", "Peak", "SimResult", "simulate"]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"cuzk.sim.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
