"""Many scenarios at once: every combination of some policy values, on several processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cuzk.model.scenario import Scenario
from cuzk.sim.result import SimResult
from cuzk.sim.run import simulate

T = TypeVar("T")
_jobs: Sequence[Callable[[], Any]] = ()


@dataclass(frozen=True)
class SweepRow:
    settings: dict[str, Any]
    result: SimResult


def sweep(scenario: Scenario, axes: Mapping[str, Iterable[Any]], *, seed: int | None = None,
          processes: int | None = None) -> list[SweepRow]:  # fmt: skip
    """Simulate every combination of policy values, such as `{"pw": range(1, 25), "gw": [1, 2, 3]}`.

    Each row equals the single run of its scenario, bit for bit. `processes`: default one per core.
    """
    names = list(axes)
    combinations = [dict(zip(names, values, strict=True)) for values in itertools.product(*(list(axes[n]) for n in names))]

    variants = [scenario.with_policy(**settings) for settings in combinations]
    results = in_parallel([lambda v=v: bare(simulate(v, seed=seed)) for v in variants], processes)
    for result, variant in zip(results, variants, strict=True):
        result.scenario = variant
    return [SweepRow(settings, result) for settings, result in zip(combinations, results, strict=True)]


def bare(result: SimResult) -> SimResult:
    """Without its scenario, which every process has."""
    result.scenario = None  # type: ignore[assignment]
    return result


def in_parallel(jobs: Sequence[Callable[[], T]], processes: int | None = None) -> list[T]:
    """The results of `jobs`, in order. They run in forked processes, so they need not be picklable, but results must."""
    global _jobs
    workers = min(len(jobs), processes or len(os.sched_getaffinity(0)))
    if workers < 2 or multiprocessing.current_process().daemon:
        return [job() for job in jobs]
    _jobs = jobs
    try:
        # large jobs first would need to know them; small chunks keep the processes even
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            return pool.map(_run, range(len(jobs)), chunksize=max(1, len(jobs) // (workers * 16)))
    finally:
        _jobs = ()


def _run(index: int) -> Any:
    return _jobs[index]()
