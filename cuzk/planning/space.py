"""The settings that a plan considers: which options matter for a pipeline, and the values to try."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from cuzk.errors import InputError
from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario
from cuzk.pipeline.program import bind

Settings = dict[str, Any]
Axes = dict[str, list[Any]]

J = (1, 2, 3, 4, 5, 8)
REFERENCE: Axes = {
    "pw": list(range(1, 25)), "gw": [1, 2, 3], "channel_capacity": [1, "pw"],
    "permit_returns": ["after-send", "after-gpu-start", "after-pickup", "after-synthesis"],
}  # fmt: skip
"""Options of the reference prover that move memory or pace; the rest of it is fixed in its code."""
OWN: Axes = {
    "pw": [1, 2, 3, 4], "gw": [1, 2], "srs": ["vram", "pinned", "mmap"], "pce": ["vram", "pageable"],
    "matvec": ["gpu", "cpu"], "prep_msm": ["gpu", "cpu"], "b_g2_msm": ["gpu", "cpu"], "key_tables": ["none", "pair-sums"],
}  # fmt: skip
LAST_RESORTS: Axes = {
    "quotient": ["c-free"], "prestage": ["off", "inside-mutex"], "gpu_locks": ["one"], "free_d_bc": ["after-ntt"],
    "srs": ["pinned", "mmap"], "pce": ["pageable"],
}  # fmt: skip
"""Options that take memory off a pool, tried one by one and in pairs when nothing else fits."""


def own(scenario: Scenario, policy: Policy) -> bool:
    """Whether the scenario runs cuzk's own executor."""
    return scenario.pipeline == "own" or getattr(policy, "prover", None) == "cuzk"


def axes_of(scenario: Scenario, given: Mapping[str, list[Any]] | None = None) -> Axes:
    """The axes of a plan: the given ones, and for the other options those that matter; `pw` comes last.

    Values that the scenario itself has are among them. A pipeline written as steps is varied in pw, gw and j alone.
    """
    policy = bind(scenario).policy
    fixed = dict(given or {})
    if not isinstance(scenario.pipeline, str):
        axes: Axes = {name: list(values) for name, values in REFERENCE.items() if name in ("pw", "gw")}
    elif own(scenario, policy):
        axes = {name: list(values) for name, values in OWN.items()}
    else:
        axes = {name: list(values) for name, values in REFERENCE.items()}
        if scenario.pipeline in ("phase2", "supraseal", "supraseal-own"):
            axes = {"pw": axes["pw"], "gw": axes["gw"]}
    axes["j"] = [j for j in J if j <= max(scenario.workload.proofs, policy.j or 1)]
    for name, values in axes.items():
        here = getattr(policy, name)
        if name not in fixed and here is not None and here not in values:
            values.append(here)
    axes |= fixed
    return {name: axes[name] for name in sorted(axes, key=lambda n: n == "pw")}


def lines(axes: Axes) -> Iterator[Settings]:
    """Every combination of all but `pw` and `j`."""
    names = [name for name in axes if name not in ("pw", "j")]
    for values in itertools.product(*(axes[name] for name in names)):
        yield dict(zip(names, values, strict=True))


def count(axes: Axes) -> int:
    total = 1
    for values in axes.values():
        total *= len(values)
    return total


def resolved(scenario: Scenario, settings: Settings) -> Policy | None:
    """The policy with no option open; None where the options do not go together."""
    try:
        return bind(scenario.with_policy(**settings)).policy
    except (InputError, ValueError):
        return None


def last_resorts(policy: Policy) -> Iterator[Settings]:
    """Single changes of options, then pairs, that may make a smaller set of buffers."""
    single = [{name: value} for name, values in LAST_RESORTS.items() for value in values if getattr(policy, name) != value]
    yield from single
    for a, b in itertools.combinations(single, 2):
        if not a.keys() & b.keys():
            yield a | b


def words(settings: Settings) -> list[str]:
    """The settings as arguments of `--set`."""
    return [f"policy.{name}={value}" for name, value in settings.items()]
