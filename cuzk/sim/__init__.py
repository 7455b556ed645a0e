"""The simulator: SimPy walks a pipeline's steps in simulated time.

    simulate(scenario, *, seed=None, trace=False)       one run                                      run.py
    sweep(scenario, axes)                               every combination of policy values           sweeps.py
    sensible_policies(scenario, axes)                   what to run: fits, and nothing beats it      planner.py
    uncertainty(scenario, seeds)                        bands, P(OOM), the verdict 'risky'           bands.py
    explore(scenario, n)                                the worst of n legal orders of events        bands.py
    suggest_fix(scenario), nearest_changes(scenario)    other policies, each simulated               fixes.py
    explain(scenario)                                   what the peak consists of, and why           explanation.py
    replay(scenario, events)                            with the step times of a measured run        replays.py
    judge(scenario, result)                             a scenario file's own claims                 checks.py

SimPy is imported with the first of these names that is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuzk.sim.bands import Band, Exploration, Uncertainty, explore, uncertainty
    from cuzk.sim.checks import Claim, judge
    from cuzk.sim.explanation import Explanation, explain
    from cuzk.sim.fixes import Change, nearest_changes, suggest_fix
    from cuzk.sim.planner import sensible_policies
    from cuzk.sim.replays import replay
    from cuzk.sim.result import Oom, Peak, SimResult
    from cuzk.sim.run import simulate
    from cuzk.sim.sweeps import SweepRow, in_parallel, sweep

_HOME = {
    "run": ["simulate"], "result": ["Oom", "Peak", "SimResult"], "sweeps": ["SweepRow", "in_parallel", "sweep"],
    "bands": ["Band", "Exploration", "Uncertainty", "explore", "uncertainty"],
    "fixes": ["Change", "nearest_changes", "suggest_fix"], "explanation": ["Explanation", "explain"],
    "replays": ["replay"], "planner": ["sensible_policies"], "checks": ["Claim", "judge"],
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = [
    "Band", "Change", "Claim", "Explanation", "Exploration", "Oom", "Peak", "SimResult", "SweepRow",
    "Uncertainty", "explain", "explore", "in_parallel", "judge", "nearest_changes", "replay",
    "sensible_policies", "simulate", "suggest_fix", "sweep", "uncertainty",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"cuzk.sim.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
